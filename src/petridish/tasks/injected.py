"""Inputs of a task with others among them that have no label [FL App. E.5]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from typing import ClassVar

import numpy as np

from petridish.choices import describe
from petridish.errors import UserError, require
from petridish.seeds import Streams
from petridish.tasks.base import Examples, HasParts, LimitsData, Sample, Task, draw_examples
from petridish.tasks.domain import Classes, Domain, Reals
from petridish.tasks.patterns import first_taken, taken


@dataclass(frozen=True)
class _Sizes:
    """Sizes of the samples that the task inside is asked for."""

    m: float
    n_test: int


@dataclass(frozen=True)
class Injected(HasParts, LimitsData):
    """Examples of a task, and among them other inputs without a label (−1): the part `injected`.

    Every sample has the share of injected inputs exactly, up to one. ``Injected(task, 0.5)`` puts
    standard normals of the task's shape between its examples, ``Injected(task, 0.5, other)`` the
    inputs of another task. A loss that asks only for labels learns from the part `original` alone;
    ``Taught(Injected(task, 0.5), teacher)`` lets a trained network label both parts.

    Attributes
    ----------
    original : Task
        What has labels.
    share : float
        The paper's α: the share of injected inputs.
    injected : Task, optional
        What draws them, its labels unused; standard normal numbers if not given.
    """

    name: ClassVar[str] = "injected"

    original: Task
    share: float
    injected: Task | None = None

    def __post_init__(self) -> None:
        for name in ("original", "injected"):
            given = getattr(self, name)
            require(
                (name == "injected" and given is None) or is_dataclass(given),
                f"Injected: {name}={given!r} is no task. Give one.",
            )
        require(
            0 < self.share < 1,
            f"Injected: share={self.share} of the inputs are to be injected. Give a number between "
            "0 and 1: some inputs of each kind.",
        )

    @property
    def domain(self) -> Domain:
        """That of the original task; the injected inputs have to be of the same kind."""
        domain = self.original.domain
        if not isinstance(domain.target, Classes):
            raise UserError(
                f"Injected: the task {describe(self.original)} has {domain.target}, which cannot "
                "be missing. Give a task with classes."
            )
        if self.injected is None and not isinstance(domain.inputs, Reals):
            raise UserError(
                f"Injected: the inputs of {describe(self.original)} are {domain.inputs}, and "
                "normal numbers are none. Give a task of such inputs as injected."
            )
        if self.injected is not None and self.injected.domain.inputs != domain.inputs:
            raise UserError(
                f"Injected: the inputs of {describe(self.original)} are {domain.inputs}, and those "
                f"of {describe(self.injected)} are {self.injected.domain.inputs}. Give tasks of "
                "the same inputs."
            )
        return domain

    @property
    def parts(self) -> tuple[str, ...]:
        """The two kinds of inputs."""
        return ("original", "injected")

    def check_data(self, data: Sample) -> None:
        """Refuse what one of the tasks inside refuses."""
        for task, injected in ((self.original, False), (self.injected, True)):
            if isinstance(task, LimitsData):
                m = data.m if data.m == float("inf") else self._sizes(int(data.m))[injected]
                task.check_data(_Sizes(m, self._sizes(data.n_test)[injected]))

    def _sizes(self, count: int) -> tuple[int, int]:
        """Return how many of the first `count` examples are original, and how many injected."""
        injected = int(first_taken(np.array([count]), self.share)[0])
        return count - injected, injected

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw both parts and put them in turns; each part is read as its task has it."""
        others = taken(start, count, self.share)  # (example,)
        (first, before), (_, later) = self._sizes(start), self._sizes(start + count)
        n_others = later - before
        domain = self.domain
        own = draw_examples(self.original, seeds, purpose, first, count - n_others)
        if self.injected is None:
            size = domain.n_inputs
            streams = Streams(seeds, f"{purpose}/injected")
            normals = streams.normals(before * size, n_others * size)
            inputs = normals.reshape(len(seeds), n_others, *domain.input_shape)
        else:
            inputs = draw_examples(self.injected, seeds, f"{purpose}/injected", before, n_others).x
        x = np.empty((len(seeds), count, *domain.input_shape), own.x.dtype)
        x[:, ~others], x[:, others] = own.x, inputs
        labels = np.full((len(seeds), count, *own.labels.shape[2:]), -1, np.int64)
        labels[:, ~others] = own.labels
        part = np.broadcast_to(others.astype(np.int64), (len(seeds), count)).copy()
        return Examples(labels, dense=x, facts={"part": part})
