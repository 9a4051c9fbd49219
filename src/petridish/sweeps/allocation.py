"""Which runs of a sweep are carried out, from what is known of the others: the contract.

An allocation is a value of the sweep, and names the runs that it wants as a pure function of how
the runs that it wanted before have ended. So it can be replayed on stored runs, and priced.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import polars as pl

    from petridish.sweeps.sweep import Sweep
    from petridish.training import RunSpec

Solved = Mapping[str, bool]
"""Whether each run that has ended was solved, by key."""


class Search(ABC):
    """One allocation on one sweep."""

    @abstractmethod
    def wanted(self, solved: Solved) -> dict[str, RunSpec]:
        """Return the runs that are wanted next, by key; none of them is in `solved`."""

    def scenarios(self) -> Iterator[Callable[[RunSpec], bool]]:
        """Yield ways in which runs may end, between which its price lies."""
        yield lambda _: True
        yield lambda _: False


class Allocates(ABC):
    """A rule that chooses which runs of a sweep to make: a frozen dataclass with a `name`.

    `assumes` are the axes along which it takes success to rise: a claim that success does so along
    one of them cannot be judged from what it chose.
    """

    name: ClassVar[str]

    @property
    def assumes(self) -> tuple[str, ...]:
        """The axes along which success is taken to rise."""
        return ()

    def check(self, sweep: Sweep) -> None:  # noqa: B027 - some fit every sweep
        """Refuse a sweep on which it cannot choose."""

    @abstractmethod
    def search(self, sweep: Sweep) -> Search:
        """Return the search on a sweep."""


class Everything(Search):
    """All runs of a sweep, whatever their outcomes."""

    def __init__(self, specs: Iterable[RunSpec]) -> None:
        from petridish.training import run_key

        self.runs = {run_key(spec): spec for spec in specs}

    def wanted(self, solved: Solved) -> dict[str, RunSpec]:
        """Return the runs that have not ended."""
        return {key: spec for key, spec in self.runs.items() if key not in solved}


class Together(Search):
    """The searches of several sweeps, none of which knows of the others."""

    def __init__(self, parts: Sequence[Search]) -> None:
        self.parts = parts

    def wanted(self, solved: Solved) -> dict[str, RunSpec]:
        """Return what any of them wants next."""
        return {key: spec for part in self.parts for key, spec in part.wanted(solved).items()}


def chooses(sweep: Sweep) -> bool:
    """Return whether a sweep, or a part of it, chooses its runs."""
    return any(part.allocate is not None for part in sweep.grids())


def search_of(sweep: Sweep) -> Search:
    """Return the search on a sweep: its own, or those of its parts together."""
    if sweep.allocate is not None:
        return sweep.allocate.search(sweep)
    if not chooses(sweep):
        return Everything(sweep.specs())
    return Together([search_of(part) for part in sweep.parts()])


def simulate(search: Search, is_solved: Callable[[RunSpec], bool | None]) -> dict[str, RunSpec]:
    """Return the runs that a search carries out if runs end as a function says.

    Raises
    ------
    LookupError
        If the function does not know how a run ended that the search wants.
    """
    solved: dict[str, bool] = {}
    made: dict[str, RunSpec] = {}
    while wanted := search.wanted(solved):
        for key, spec in wanted.items():
            outcome = is_solved(spec)
            if outcome is None:
                raise LookupError(key)
            solved[key], made[key] = outcome, spec
    return made


@dataclass(frozen=True)
class Replay:
    """What an allocation would have spent on a sweep, and what all its runs cost.

    `estimated` counts the runs that are not stored: they are taken to cost what the stored runs of
    their cell cost on average, or their whole budget where the cell has none.
    """

    runs: int
    all_runs: int
    model_steps: int
    all_model_steps: int
    estimated: int

    @property
    def share(self) -> float:
        """Model-steps of the allocation, as a share of the whole sweep's."""
        return self.model_steps / self.all_model_steps


def replay(sweep: Sweep, table: pl.DataFrame, search: Search) -> Replay | None:
    """Replay a search on stored runs; None if a run that it asks for is missing."""
    from petridish.training import cell_text, run_key

    stored = table.select("key", "outcome", "steps").iter_rows()
    known: dict[str, tuple[bool, int]] = {
        key: (outcome == "SOLVED", steps) for key, outcome, steps in stored
    }

    def is_solved(spec: RunSpec) -> bool | None:
        found = known.get(run_key(spec))
        return None if found is None else found[0]

    try:
        made = simulate(search, is_solved)
    except LookupError:
        return None
    cells: dict[str, list[int | None]] = {}
    budgets: dict[str, int] = {}
    for spec in sweep.specs():
        cell = cell_text(spec)
        cells.setdefault(cell, []).append(known.get(run_key(spec), (None, None))[1])
        budgets[cell] = spec.training.steps
    whole, estimated = 0.0, 0
    for cell, taken in cells.items():
        steps = [each for each in taken if each is not None]
        mean = sum(steps) / len(steps) if steps else budgets[cell]
        whole += mean * len(taken)
        estimated += len(taken) - len(steps)
    spent = sum(known[key][1] for key in made)
    return Replay(len(made), len(sweep), spent, round(whole), estimated)
