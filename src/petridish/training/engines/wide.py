"""The wide engine: one run after another, each by `Members` with a single member."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from petridish.tasks.domain import numbers
from petridish.training.data import batch_indices, initial_weights, test_examples, training_examples
from petridish.training.engines.base import Monitor, Wide
from petridish.training.losses import CrossEntropy
from petridish.training.members import Members
from petridish.training.metrics import Error
from petridish.training.numerics import settled
from petridish.training.record import Outcome, RunRecord
from petridish.training.screen import CHUNK
from petridish.training.spec import RunSpec


def train(specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
    """Carry out the runs one after another, until the monitor stops them."""
    for spec in specs:
        with settled():
            record = _run(spec, monitor)
        if record is None:
            return
        yield record


def _run(spec: RunSpec, monitor: Monitor) -> RunRecord | None:
    started = time.perf_counter()
    training = spec.training
    sample = training_examples([spec], 0, int(spec.data.m))
    x, target = torch.from_numpy(sample.x[0]), _targets(spec, torch.from_numpy(sample.labels[0]))
    member = Members(
        initial_weights([spec]),
        loss="cross_entropy" if isinstance(training.loss, CrossEntropy) else "logistic",
        optimiser=training.optimiser,
    )
    since, losses = 0, 0.0  # of the steps since the evaluation before the last
    outcome = Outcome.OUT_OF_STEPS
    for step in range(training.steps):
        if monitor.stopped():
            return None
        rows = torch.from_numpy(batch_indices([spec], step, 1)[0, 0])
        loss = member.step(
            x[rows], target[rows], rate=training.learning_rate, decay=training.weight_decay
        ).item()
        monitor.stepped(1)
        if not math.isfinite(loss):
            outcome = Outcome.DIVERGED
            break
        if step % spec.evaluation.every == 0:
            since, losses = 0, 0.0
        since, losses = since + 1, losses + loss
    diverged = outcome is Outcome.DIVERGED
    return RunRecord(
        spec=spec,
        outcome=outcome,
        fitted_at=None,
        steps=step + 1,
        train_loss=math.nan if diverged else losses / since,
        seconds=time.perf_counter() - started,
        engine=Wide.name,
        final={} if diverged else {"test_error": _test_error(spec, member)},
    )


def _targets(spec: RunSpec, labels: Tensor) -> Tensor:
    """Return the probability of y = +1, which is class 0, or of each class."""
    if isinstance(spec.training.loss, CrossEntropy):
        return torch.nn.functional.one_hot(labels.long(), spec.domain.n_classes).float()
    return 1 - labels.float().unsqueeze(1)


def _test_error(spec: RunSpec, member: Members) -> float:
    held_out = test_examples([spec])
    x, labels = torch.from_numpy(held_out.x[0]), torch.from_numpy(numbers(held_out.labels[0]))
    wrong = 0
    for start in range(0, len(x), CHUNK):
        outputs = member.outputs(x[start : start + CHUNK])  # (1, example, output)
        wrong += int(Error().each(outputs, labels[None, start : start + CHUNK], {}).sum())
    return wrong / len(x)
