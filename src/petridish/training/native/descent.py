"""What runs of attention in compiled code share: parameters end to end, and how they descend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.training.native.library import NativeDescent, NativeFactors

Floats = NDArray[np.float32]

OPTIMISERS = ("sgd", "adam", "adamw")  # in the order of petridish_optimiser
NEVER = 2**62  # a step that no run reaches


@dataclass(frozen=True)
class Factors:
    """From step `start` on: rate, decay and kept share of each parameter."""

    start: int
    rate: tuple[float, ...]
    decay: tuple[float, ...]
    keep: tuple[float, ...]


@dataclass(frozen=True)
class Descent:
    """An optimiser, how long a gradient may be, and the factors of every part of the schedule."""

    optimiser: str
    momentum: float
    beta1: float
    beta2: float
    epsilon: float
    clip: float | None
    factors: Sequence[Factors]


def native_descent(given: Descent) -> tuple[NativeDescent, list[Any]]:
    """Return what the library reads, and what must be kept alive while it does."""
    kept: list[Any] = []

    def address(numbers: tuple[float, ...]) -> int:
        array = np.array(numbers, np.float32)
        kept.append(array)
        return int(array.ctypes.data)

    pieces = (NativeFactors * len(given.factors))(
        *[
            NativeFactors(min(f.start, NEVER), *map(address, (f.rate, f.decay, f.keep)))
            for f in given.factors
        ]
    )
    kept.append(pieces)
    descent = NativeDescent(
        optimiser=OPTIMISERS.index(given.optimiser),
        momentum=given.momentum,
        beta1=given.beta1,
        beta2=given.beta2,
        epsilon=given.epsilon,
        clip=given.clip or 0.0,
        n_pieces=len(pieces),
        pieces=pieces,
    )
    return descent, kept


class Parameters:
    """The shapes of a run's parameters, which lie end to end in compiled code."""

    def __init__(self, weights: Sequence[Floats]) -> None:
        self._shapes = [weight.shape for weight in weights]
        self._ends = np.cumsum([weight.size for weight in weights])

    def flat(self, weights: Sequence[Floats]) -> Floats:
        """Return the weights end to end."""
        joined = np.concatenate([np.ravel(weight) for weight in weights])
        return np.ascontiguousarray(joined, np.float32)

    def empty(self) -> Floats:
        """Return room for all of them."""
        return np.empty(int(self._ends[-1]), np.float32)

    def parts(self, flat: Floats) -> list[Floats]:
        """Return each parameter in its shape."""
        parts = np.split(flat, self._ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self._shapes, strict=True)]
