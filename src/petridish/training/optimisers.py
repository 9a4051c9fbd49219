"""Optimisers and schedules as values; the engines carry them out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, cast

from petridish.errors import UserError
from petridish.models.base import Parameter, first_fitting
from petridish.values import LATER, settle


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent with PyTorch's coupled weight decay and momentum.

    g ← ∇L + λ w;  u ← μ u + g;  w ← w − η u.
    """

    name: ClassVar[str] = "sgd"

    momentum: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            raise UserError(f"SGD: momentum={self.momentum}. Give a number from 0 to below 1.")


@dataclass(frozen=True)
class Adam:
    """Adam with weight decay added to the gradient, as in PyTorch's `Adam`."""

    name: ClassVar[str] = "adam"

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        if not (0 <= self.beta1 < 1 and 0 <= self.beta2 < 1 and self.epsilon > 0):
            raise UserError(
                f"{type(self).__name__}: beta1={self.beta1}, beta2={self.beta2}, "
                f"epsilon={self.epsilon}. Give betas from 0 to below 1 and a positive epsilon."
            )


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with decoupled weight decay, w ← (1 − η λ) w before the step, as in `AdamW`."""

    name: ClassVar[str] = "adamw"


OPTIMISERS: dict[str, type] = {o.name: o for o in (SGD, Adam, AdamW)}

Named = tuple[tuple[str, float], ...]
Factors = float | tuple[float, ...] | Named


@dataclass(frozen=True, repr=False)
class Piece:
    """From step `start` on, the rate and the decay are multiplied by these factors.

    A factor is one number, or one for each layer, or one for each parameter (weights and biases
    apart, in the model's order), or pairs of a pattern and a number, of which the first that fits a
    parameter counts: ``rate=(("layer1.*", 0.0), ("*", 1.0))`` freezes the first layer,
    ``decay=(("@weight", 1.0), ("*", 0.0))`` decays matrices alone.

    Attributes
    ----------
    keep : factor
        The exact factor of the old value in an update, w ← keep · w − η g; 0 forgets it. Forgetting
        by weight decay of 1/η would be rounding noise.
    """

    start: int = 0
    rate: Factors = 1.0
    decay: Factors = 1.0
    keep: Factors = field(default=1.0, metadata=LATER)

    def __post_init__(self) -> None:
        settle(self)
        for name in ("rate", "decay", "keep"):
            given = getattr(self, name)
            factors = given if isinstance(given, tuple) else (given,)
            numbers = [each[1] if isinstance(each, tuple) else each for each in factors]
            if not all(0 <= factor < math.inf for factor in numbers):
                raise UserError(f"Piece: {name}={given}. Give finite factors of at least 0.")

    def __repr__(self) -> str:
        """Leave `keep` out at its default, as the text of stored schedules does."""
        keep = "" if self.keep == 1 else f", keep={self.keep!r}"
        return f"Piece(start={self.start!r}, rate={self.rate!r}, decay={self.decay!r}{keep})"

    def spread(self, factors: Factors, parameters: Sequence[Parameter]) -> tuple[float, ...]:
        """Return one factor for each parameter."""
        if not isinstance(factors, tuple):
            return (factors,) * len(parameters)
        if factors and isinstance(factors[0], tuple):
            return tuple(first_fitting("The schedule", factors, parameters))
        numbers = cast("tuple[float, ...]", factors)
        n_layers = max(parameter.layer for parameter in parameters) + 1
        if len(numbers) == len(parameters):
            return numbers
        if len(numbers) == n_layers:
            return tuple(numbers[parameter.layer] for parameter in parameters)
        raise UserError(
            f"The schedule gives {len(factors)} factors {factors}, but the model has "
            f"{n_layers} layers and {len(parameters)} parameters. Give as many as one of these."
        )


FIRST = Piece()  # in force until the first piece of a schedule


@dataclass(frozen=True)
class Schedule:
    """Factors on the learning rate and the weight decay, constant between steps.

    ``Schedule()`` changes nothing. ``step_schedule((1000, 2000), 0.1)`` divides the rate by ten
    twice. ``Schedule((Piece(rate=(1.0, 0.0)), Piece(start=1, rate=(0.0, 1.0))))`` trains the first
    layer for one step and the second layer from then on.
    """

    name: ClassVar[str] = "schedule"

    pieces: tuple[Piece, ...] = ()

    def __post_init__(self) -> None:
        starts = [piece.start for piece in self.pieces]
        if starts != sorted(set(starts)) or (starts and starts[0] < 0):
            raise UserError(
                f"The schedule's pieces start at the steps {starts}. "
                "Give steps from 0 on, in order, each once."
            )

    def at(self, step: int) -> Piece:
        """Return the factors in force at `step`, the first step being 0."""
        current = FIRST
        for piece in self.pieces:
            if piece.start <= step:
                current = piece
        return current


def step_schedule(at: tuple[int, ...], factor: float) -> Schedule:
    """Multiply the learning rate by `factor` at each of the steps `at`."""
    return Schedule(tuple(Piece(start, factor ** (i + 1)) for i, start in enumerate(at)))


def per_layer(rates: Factors = 1.0, decays: Factors = 1.0) -> Schedule:
    """Return a schedule with a factor per layer on the learning rate and on the weight decay."""
    return Schedule((Piece(0, rates, decays),))
