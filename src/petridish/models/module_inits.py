"""Starts that ask the model's own module, and the start that a model has if none is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from petridish.choices import name_of
from petridish.errors import require
from petridish.models.base import (
    FitsItself,
    Init,
    Model,
    Parameter,
    Stacked,
    Weights,
    first_fitting,
)
from petridish.models.inits import Uniform

if TYPE_CHECKING:
    from torch import nn

Build = Callable[[], "nn.Module"]


class FromModule(ABC):
    """A start that keeps the values with which the model's own module was built."""

    @abstractmethod
    def draw_from(
        self, build: Build, parameters: Sequence[Parameter], seeds: Sequence[int]
    ) -> list[Weights]:
        """Return the values of `parameters` for the runs `seeds`; `build` makes a new module."""


@dataclass(frozen=True)
class Own(FromModule):
    """The module's own start: what its `build` draws, from the run's stream "init/module"."""

    name: ClassVar[str] = "own"

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Return empty arrays for no runs, as checks ask for; values need the module."""
        if seeds:
            raise TypeError("a module's own start needs the module: see initial_weights")
        return [np.zeros((0, *p.shape), np.float32) for p in parameters]

    def draw_from(
        self, build: Build, parameters: Sequence[Parameter], seeds: Sequence[int]
    ) -> list[Weights]:
        """Build one module per run."""
        from petridish.models.parameters import seeded

        each = [dict(seeded(build, seed).named_parameters()) for seed in seeds]
        return [
            np.stack([named[p.name].detach().numpy().astype(np.float32) for named in each])
            for p in parameters
        ]


@dataclass(frozen=True)
class ByName(FromModule):
    """A start for each parameter: that of the first pattern that fits it.

    ``ByName((("norm*", Constant(1.0)), ("@bias", Constant(0.0)), ("*", Normal(0.02))))``: a pattern
    is that of a name, or `@weight`, `@bias`, `@scale`.
    """

    name: ClassVar[str] = "by_name"

    rules: tuple[tuple[str, Init], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple((str(p), init) for p, init in self.rules))

    def draw(self, parameters: Sequence[Parameter], seeds: Sequence[int]) -> list[Weights]:
        """Draw every parameter by its rule."""
        chosen = self._chosen(parameters)
        return [_draw_one(init, p, seeds) for p, init in zip(parameters, chosen, strict=True)]

    def draw_from(
        self, build: Build, parameters: Sequence[Parameter], seeds: Sequence[int]
    ) -> list[Weights]:
        """Draw every parameter by its rule, which may be its module's own start."""
        return [
            init.draw_from(build, [p], seeds)[0]
            if isinstance(init, FromModule)
            else _draw_one(init, p, seeds)
            for p, init in zip(parameters, self._chosen(parameters), strict=True)
        ]

    def _chosen(self, parameters: Sequence[Parameter]) -> list[Init]:
        return first_fitting("ByName", self.rules, parameters)


def _draw_one(init: Init, parameter: Parameter, seeds: Sequence[int]) -> Weights:
    found = init.draw([parameter], seeds)
    require(
        len(found) == 1,
        f"ByName: {name_of(init)} draws no single parameter, and fits no pattern. Begin with "
        "another start here; From(run, take=…, base=ByName(…)) takes a part over from a run.",
    )
    return found[0]


def usual_start(model: Model) -> Init:
    """Return how a model starts if nothing else is said: `Uniform`, or its module's own start."""
    return Uniform() if isinstance(model, Stacked | FitsItself) else Own()
