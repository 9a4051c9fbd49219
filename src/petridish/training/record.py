"""How a run ended, and what is kept of it."""

from __future__ import annotations

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

    `train_loss` is the mean over the minibatches since the last evaluation, NaN at step 0;
    `train_error` is NaN online, where there is no training sample to measure. `instruments` has a
    list for each instrument asked for.
    """

    step: list[int] = field(default_factory=list)
    train_loss: list[float] = field(default_factory=list)
    train_error: list[float] = field(default_factory=list)
    test_error: list[float] = field(default_factory=list)
    instruments: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One finished run, raw: averages are taken later.

    Attributes
    ----------
    solved_at : int or None
        Step of the evaluation that found the run solved.
    fitted_at : int or None
        Step of the first evaluation that found the training sample fitted; None online.
    steps : int
        Steps taken, to success, divergence or the end of the budget.
    test_error : float
        Error on the whole held-out sample at the end; NaN for a diverged run.
    train_loss : float
        Mean minibatch loss since the evaluation before the last; NaN if no step was taken.
    seconds : float
        The run's share of its engine's time.
    weights : list of list of float, optional
        The parameters at the end, each row by row, where the spec asks for them and the run did not
        diverge.
    """

    spec: RunSpec
    outcome: Outcome
    solved_at: int | None
    fitted_at: int | None
    steps: int
    test_error: float
    train_loss: float
    curves: Curves
    seconds: float
    engine: str
    weights: list[list[float]] | None = None


def kept_weights(spec: RunSpec, weights: Sequence[NDArray[Any]]) -> list[list[float]] | None:
    """Give the parameters as a record keeps them, in float32; None if it is not asked to."""
    if not spec.evaluation.weights:
        return None
    return [weight.astype(np.float32).ravel().tolist() for weight in weights]
