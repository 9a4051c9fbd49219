"""The engine `fit`: models of other libraries, each fitted whole in one call.

Such a model (`FitsItself`) has a method `fit_predict` where others build a module. Its run takes
one step, whatever the spec says of training, and is judged on the held-out sample as others are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np

from petridish.choices import blamed, describe
from petridish.errors import UserError
from petridish.models import FitsItself
from petridish.training.data import test_examples, training_examples
from petridish.training.engines.base import Fit, Monitor
from petridish.training.record import Outcome, RunRecord
from petridish.training.spec import RunSpec


def train(specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
    """Carry out the runs one after another, until the monitor stops them."""
    for spec in specs:
        if monitor.stopped():
            return
        record = _run(spec)
        monitor.stepped(1)
        yield record


def _run(spec: RunSpec) -> RunRecord:
    model = spec.model
    assert isinstance(model, FitsItself), "the engine refuses other models"
    train = training_examples([spec], 0, int(spec.data.m))
    test = test_examples([spec])
    started = time.perf_counter()
    with blamed("model", model, "fit_predict", x=train.x[0], y=train.labels[0], x_test=test.x[0]):
        predicted = model.fit_predict(
            train.x[0], train.labels[0], test.x[0], seed=spec.luck, n_classes=spec.domain.n_classes
        )
    if np.shape(predicted) != test.labels[0].shape:
        raise UserError(
            f"The model {describe(model)} predicted classes of shape {np.shape(predicted)} for "
            f"{len(test.labels[0])} examples. Return one class per example from fit_predict."
        )
    seconds = time.perf_counter() - started
    return RunRecord(
        spec=spec,
        outcome=Outcome.OUT_OF_STEPS,
        fitted_at=None,
        steps=1,
        train_loss=math.nan,
        seconds=seconds,
        engine=Fit.name,
        final={"test_error": float(np.mean(predicted != test.labels[0]))},
    )
