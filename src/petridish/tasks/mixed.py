"""Two tasks in one: some examples of one, the others of another [TH Fig. 8.4a]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError, nearest, require
from petridish.tasks.base import Examples, HasParts, HasStrategies, Task, draw_examples
from petridish.tasks.domain import Domain
from petridish.tasks.patterns import first_taken, taken


@dataclass(frozen=True)
class Mixed(HasParts, HasStrategies):
    """Examples of a task, and a share of examples of another: the parts `first` and `second`.

    ``Mixed(MarkovChains(4, 100, "doubly"), MarkovChains(4, 100, "unigram"), 0.5)`` has as many
    chains of one kind as of the other. Every sample has the share exactly, up to one, and so has
    every batch in which it is a whole number. A part may itself be a mixture.

    The strategies are those that both tasks have; each answers as its own task has it.

    Attributes
    ----------
    first, second : Task
        Tasks of the same domain.
    share : float
        That of the second.
    """

    name: ClassVar[str] = "mixed"

    first: Task
    second: Task
    share: float = 0.5

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            given = getattr(self, name)
            require(is_dataclass(given), f"Mixed: {name}={given!r} is no task. Give one.")
        require(
            0 < self.share < 1,
            f"Mixed: share={self.share} of the examples are to be of the second task. Give a "
            "number between 0 and 1: some examples of each.",
        )

    @property
    def domain(self) -> Domain:
        """That of both."""
        domain, other = self.first.domain, self.second.domain
        require(
            domain == other,
            f"Mixed: {describe(self.first)} has the domain {domain}, and {describe(self.second)} "
            f"has {other}. Give tasks of the same domain.",
        )
        return domain

    @property
    def parts(self) -> tuple[str, ...]:
        """The two tasks."""
        return "first", "second"

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies that both tasks know."""
        sides = [t.strategies for t in (self.first, self.second) if isinstance(t, HasStrategies)]
        return tuple(name for name in sides[0] if name in sides[1]) if len(sides) == 2 else ()

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw both parts and put them in turns."""
        others = taken(start, count, self.share)  # (example,)
        before, later = (
            int(first_taken(np.array([n]), self.share)[0]) for n in (start, start + count)
        )
        n_others = later - before
        sides = (
            draw_examples(self.first, seeds, f"{purpose}/first", start - before, count - n_others),
            draw_examples(self.second, seeds, f"{purpose}/second", before, n_others),
        )

        def woven(arrays: Sequence[NDArray[np.generic]]) -> NDArray[np.generic]:
            one, other = arrays
            found = np.empty((len(seeds), count, *one.shape[2:]), np.result_type(one, other))
            found[:, ~others], found[:, others] = one, other
            return found

        facts: dict[str, NDArray[Any]] = {}
        for name, side, places in zip(self.parts, sides, (~others, others), strict=True):
            for fact, values in side.facts.items():  # each task's own, 0 for the other's examples
                whole = np.zeros((len(seeds), count, *values.shape[2:]), values.dtype)
                whole[:, places] = values
                facts[f"{name}/{fact}"] = whole
        facts["part"] = np.broadcast_to(others.astype(np.int64), (len(seeds), count)).copy()
        return Examples(
            woven([side.labels for side in sides]),
            dense=woven([side.x for side in sides]),
            facts=facts,
        )

    def predict(self, strategy: str, examples: Examples) -> NDArray[np.floating]:
        """Return what each example's own task predicts."""
        if strategy not in self.strategies:
            raise UserError(
                f"The task {describe(self)} knows no strategy called {strategy!r}. "
                f"{nearest(strategy, self.strategies)}"
            )
        second = examples.facts["part"][0] == 1  # the same in every run
        found: NDArray[Any] | None = None
        for name, places in zip(self.parts, (~second, second), strict=True):
            task = getattr(self, name)
            own = f"{name}/"
            facts = {
                fact.removeprefix(own): values[:, places]
                for fact, values in examples.facts.items()
                if fact.startswith(own)
            }
            some = Examples(examples.labels[:, places], dense=examples.x[:, places], facts=facts)
            predicted = task.predict(strategy, some)
            if found is None:
                found = np.empty((*examples.x.shape[:2], *predicted.shape[2:]), predicted.dtype)
            found[:, places] = predicted
        assert found is not None, "there are two parts"
        return found
