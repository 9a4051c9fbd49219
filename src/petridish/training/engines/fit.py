"""The engine `fit`: models of other libraries, each fitted whole in one call.

Such a model has a method `fit_predict` where others have parameters and a `forward`. Its run takes
one step, whatever the spec says of training, and is judged on the held-out sample as others are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from petridish.training.data import test_examples, training_examples
from petridish.training.engines.base import Fit, Monitor
from petridish.training.record import Curves, Outcome, RunRecord
from petridish.training.spec import RunSpec


class Fittable(Protocol):
    """A model that is fitted whole."""

    name: ClassVar[str]

    def fit_predict(
        self,
        x: NDArray[np.float32],
        y: NDArray[Any],
        x_test: NDArray[np.float32],
        *,
        seed: int,
        n_classes: int,
    ) -> NDArray[Any]:
        """Fit the classes `y` of `x`, and give those of `x_test`; in one thread, the same twice."""


def train(specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
    """Carry out the runs one after another, until the monitor stops them."""
    for spec in specs:
        if monitor.stopped():
            return
        record = _run(spec)
        monitor.stepped(1)
        yield record


def _run(spec: RunSpec) -> RunRecord:
    model = cast("Fittable", spec.model)
    train = training_examples([spec], 0, int(spec.data.m))
    test = test_examples([spec])
    started = time.perf_counter()
    predicted = model.fit_predict(
        train.x[0], train.labels[0], test.x[0], seed=spec.seed, n_classes=spec.task.n_classes
    )
    seconds = time.perf_counter() - started
    return RunRecord(
        spec=spec,
        outcome=Outcome.OUT_OF_STEPS,
        solved_at=None,
        fitted_at=None,
        steps=1,
        test_error=float(np.mean(predicted != test.labels[0])),
        train_loss=math.nan,
        curves=Curves(),
        seconds=seconds,
        engine=Fit.name,
    )
