"""The record of a run: how it ended, and its measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.training.spec import RunSpec


class Outcome(Enum):
    """How a run ended; a diverged run is a result, stored and counted like any other."""

    SOLVED = "Test error reached the target."
    OUT_OF_STEPS = "The step budget ended first; a larger training.steps goes further."
    DIVERGED = "The loss is no longer finite; a lower training.learning_rate may help."


@dataclass(frozen=True)
class Curves:
    """A run at each of its evaluations; empty where the spec asks for none.

    `values` has one list per curve, by its name: `train_loss` is the mean over the minibatches
    since the last evaluation, NaN at step 0; `train_error` is NaN online, where there is no
    training sample to measure; metrics and instruments have their own names. An instrument that was
    not read at an evaluation has NaN there. `arrays` has the readings of instruments that return
    arrays, without gaps.
    """

    step: list[int] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)
    arrays: dict[str, list[NDArray[Any]]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> list[float]:
        """Return a curve."""
        return self.values[name]

    def append(self, name: str, value: float | NDArray[Any]) -> None:
        """Add the next number of a curve, or the next array."""
        if isinstance(value, np.ndarray) and value.ndim:
            self.values.pop(name, None)  # the NaNs of evaluations before its first reading
            self.arrays.setdefault(name, []).append(np.array(value, np.float64))
        else:
            self.values.setdefault(name, []).append(float(value))

    def skip(self, name: str) -> None:
        """Note that an instrument was not read: NaN, if it returns numbers."""
        if name not in self.arrays:
            self.values.setdefault(name, []).append(math.nan)


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One finished run; averages over runs are taken later.

    Attributes
    ----------
    fitted_at : int or None
        Step of the first evaluation that found the training sample fitted; None online.
    steps : int
        Steps taken, to success, divergence or the end of the budget.
    train_loss : float
        Mean minibatch loss since the evaluation before the last; NaN if no step was taken.
    seconds : float
        The run's share of its engine's time.
    weights : list of list of float, optional
        The parameters at the end, each row by row, where the spec asks for them and the run did not
        diverge; then what else the module keeps, such as running means.
    weights_of : list of (name, shape), optional
        The name and shape of each.
    final : mapping of str to float
        Every metric at the end, by the name of its curve; empty for a diverged run.
    reached : mapping of str to int or None
        The first evaluation at which each threshold of the evaluation held, by its name.
    device : str
        Where it computed: `cpu`, `cuda:0`, `mps`.
    """

    spec: RunSpec
    outcome: Outcome
    steps: int
    train_loss: float
    seconds: float
    engine: str
    fitted_at: int | None
    curves: Curves = field(default_factory=Curves)
    weights: list[list[float]] | None = None
    weights_of: list[tuple[str, tuple[int, ...]]] | None = None
    final: dict[str, float] = field(default_factory=dict)
    reached: dict[str, int | None] = field(default_factory=dict)
    device: str = "cpu"

    @property
    def solved_at(self) -> int | None:
        """Step of the evaluation that found the run solved."""
        return self.steps if self.outcome is Outcome.SOLVED else None

    @property
    def test_error(self) -> float:
        """Error on the held-out sample at the end; NaN if diverged, or without classes."""
        return self.final.get("test_error", math.nan)


Named = dict[str, NDArray[Any]]


def kept_weights(spec: RunSpec, weights: Sequence[NDArray[Any]], buffers: Named) -> dict[str, Any]:
    """Return the parameters and buffers as a record keeps them, in float32; nothing if not asked.

    `weights` are in the order of the spec's parameters.
    """
    if not spec.evaluation.weights:
        return {}
    named = dict(zip((p.name for p in spec.parameters), weights, strict=True)) | buffers
    return {
        "weights": [array.astype(np.float32).ravel().tolist() for array in named.values()],
        "weights_of": [(name, array.shape) for name, array in named.items()],
    }
