"""Runs that continue another run: its last weights are their first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import ClassVar

import numpy as np

from petridish.choices import describe
from petridish.errors import UserError, check_whole
from petridish.models import Init, Parameter, usual_start
from petridish.models.base import Weights
from petridish.training.chains import Ended, StartsFromRuns, ended, parents_of
from petridish.training.spec import RunSpec


def check_parent(owner: str, field: str, run: RunSpec, seed: int | None) -> None:
    """Refuse a parent that is no spec, or that has a seed of its own beside the one named."""
    if not isinstance(run, RunSpec):
        raise UserError(f"{owner}: {field}={run!r} is no RunSpec. Give the run that it needs.")
    if run.seed or run.restart:
        given = f"seed={run.seed}" if run.seed else f"restart={run.restart}"
        raise UserError(
            f"{owner}: {field} has {given}, and the seed of a parent is the run's own unless "
            f"{owner} names one. Give {field} with seed and restart 0, and seed={run.seed or '…'} "
            f"to {owner} to name it."
        )
    if seed is not None:
        check_whole(owner, 0, seed=seed)


@dataclass(frozen=True)
class From(StartsFromRuns):
    """Start with the weights with which another run ended.

    Phases of training are chains of such runs: other rates, another batch size, another task, a
    part that is frozen by the schedule, a new layer on top. Steps, schedules and minibatches begin
    anew, the memory of the optimiser is not carried over, and weights come in float32.

    ``From(first)`` goes on from the whole of `first`. ``From(first, ("layer1.*",))`` takes over the
    first layer, and draws the rest by the model's usual start.

    Attributes
    ----------
    run : RunSpec
        The parent; its seed and restart are the run's own.
    take : tuple of str
        Patterns of the parameters (and buffers) that are taken over.
    base : Init, optional
        How the other parameters start; as usual for the model if not given.
    seed : int, optional
        The parent's seed, if it is to be the same for runs of all seeds.
    """

    name: ClassVar[str] = "from"

    run: RunSpec
    take: tuple[str, ...] = ("*",)
    base: Init | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        check_parent("From", "run", self.run, self.seed)
        take = (self.take,) if isinstance(self.take, str) else tuple(self.take)
        if not take or not all(isinstance(pattern, str) for pattern in take):
            raise UserError(f"From: take={self.take!r}. Give patterns, such as ('layer1.*',).")
        object.__setattr__(self, "take", take)
        if self.base is not None and "*" in take:
            raise UserError(
                f"From: base={describe(self.base)} has no effect, since take={take} takes all "
                "parameters over. Leave base out, or name fewer parameters in take."
            )

    def parent(self, spec: RunSpec) -> RunSpec:
        """Return the run that a run goes on from."""
        if self.seed is not None:
            return replace(self.run, seed=self.seed)
        return replace(self.run, seed=spec.seed, restart=spec.restart)

    def parents(self, spec: RunSpec) -> tuple[RunSpec, ...]:
        """Return that run, and what the other parameters' start needs."""
        others = () if self.base is None else parents_of(replace(spec, init=self.base))
        return (self.parent(spec), *others)

    def takes(self, parameter: Parameter) -> bool:
        """Return whether a parameter is taken over."""
        return any(parameter.fits(pattern) for pattern in self.take)

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Refuse patterns that fit nothing, and parameters that the parent lacks."""
        if seeds:
            raise TypeError("a run that goes on depends on more than its seed: see initial_weights")
        for pattern in self.take:
            if not any(parameter.fits(pattern) for parameter in parameters):
                names = ", ".join(parameter.name for parameter in parameters)
                raise UserError(
                    f"From: take={self.take} has the pattern {pattern!r}, which fits no parameter. "
                    f"Known: {names}."
                )
        has = {parameter.name: parameter.shape for parameter in self.run.parameters}
        for parameter in filter(self.takes, parameters):
            if has.get(parameter.name) != parameter.shape:
                found = has.get(parameter.name)
                there = "none" if found is None else f"one of the shape {found}"
                raise UserError(
                    f"From: this run has a parameter {parameter.name} of the shape "
                    f"{parameter.shape}, and the run {describe(self.run)} that it goes on from has "
                    f"{there}. Give runs of one shape, or name fewer parameters in take."
                )
        return []

    def start(self, specs: Sequence[RunSpec]) -> list[Weights]:
        """Return the weights that the parents ended with, and the rest as it is drawn."""
        from petridish.training.data import initial_weights

        taken = [ended(self.parent(spec)) for spec in specs]
        parameters = specs[0].parameters
        rest: list[Weights] = []
        if not all(map(self.takes, parameters)):
            base = usual_start(specs[0].model) if self.base is None else self.base
            rest = initial_weights([replace(spec, init=base) for spec in specs])
        return [
            np.stack([own[parameter.name] for own in taken])
            if self.takes(parameter)
            else rest[place]
            for place, parameter in enumerate(parameters)
        ]

    def buffers(self, spec: RunSpec) -> Ended:
        """Return what the parent's module kept, such as running means."""
        names = {parameter.name for parameter in spec.parameters}
        return {
            name: values
            for name, values in ended(self.parent(spec)).items()
            if name not in names and any(fnmatchcase(name, pattern) for pattern in self.take)
        }
