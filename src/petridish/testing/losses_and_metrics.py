"""The contracts of losses, metrics and instruments."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.seeds import Streams
from petridish.tasks import (
    Classes,
    Domain,
)
from petridish.tasks.base import draw_examples
from petridish.training import (
    Instrument,
    Loss,
    MeanOfExamples,
    Metric,
    ReadsUnlabelled,
    RunSpec,
    Silent,
    load_engine,
)
from petridish.training.user_code_checks import each_of, facts_of, loss_of, output_shape

if TYPE_CHECKING:
    from torch import Tensor

from petridish.testing.base import (
    CLOSE,
    SEEDS,
    agree,
    available,
    check_value,
    close,
    curves_of,
    demand,
    in_words,
    numbers_of,
)


def _labels(domain: Domain, count: int) -> Tensor:
    import torch

    target = domain.target
    drawn: NDArray[Any]
    if isinstance(target, Classes):
        drawn = Streams(SEEDS, "labels").integers(target.k, 0, count * math.prod(target.shape))
    else:
        drawn = Streams(SEEDS, "labels").normals(0, count * math.prod(target.shape))
    return torch.from_numpy(drawn.reshape(len(SEEDS), count, *target.shape))


@in_words
def check_loss(loss: Loss, domain: Domain) -> None:
    """Check a loss on a domain: one finite number per run, its own, from the labels that count."""
    import torch

    check_value(loss)
    name, n_outputs = describe(loss), loss.n_outputs(domain)
    labels = _labels(domain, 6)
    shape = (len(SEEDS), 6, *output_shape(domain, n_outputs))
    outputs = torch.from_numpy(numbers_of("outputs", shape)).requires_grad_()
    value = loss_of(loss, outputs, labels)
    (gradient,) = torch.autograd.grad(value[0], outputs)
    demand(
        bool(value.isfinite().all() and gradient.isfinite().all()),
        f"{name}: the loss or its gradient is not finite at outputs of usual size.",
    )
    demand(
        not gradient[1].any(),
        f"{name}: the loss of one run depends on the outputs of another. Take no means over "
        "axis 0.",
    )
    if isinstance(domain.target, Classes) and not isinstance(loss, ReadsUnlabelled):
        some = labels.clone()
        some[:, 0] = -1
        moved = outputs.detach().clone()
        moved[:, 0] += 1
        demand(
            close(loss(outputs, some).detach().numpy(), loss(moved, some).numpy(), 1e-12),
            f"{name}: outputs at an example without a label (−1) change the loss. Leave such "
            "examples out, as MeanOfExamples does.",
        )
    if isinstance(loss, MeanOfExamples):
        demand(
            loss.each(outputs, labels).shape == shape[:-1],
            f"{name}: each must return one number per label.",
        )


@in_words
def check_metric(metric: Metric, spec: RunSpec) -> None:
    """Check a metric in a run: its shape, that examples are apart, and that engines agree."""
    check_value(metric)
    spec = replace(
        spec,
        evaluation=replace(
            spec.evaluation, every=1, curves=True, metrics=(*spec.evaluation.metrics, metric)
        ),
    )
    spec.check()
    name = describe(metric)
    _check_each(metric, spec)
    specs = [replace(spec, seed=seed) for seed in SEEDS]
    found = [list(load_engine(engine).run(specs, Silent())) for engine in _engines(spec)]
    if len(found) == 2:
        agree(f"the metric {name} in the engines torch and reference", *found)


def _engines(spec: RunSpec) -> list[str]:
    """Return the engines that carry out a run: a module that cannot be stacked has one alone."""
    return [name for name in ("torch", "reference") if load_engine(name).refusal(spec) is None]


def _check_each(metric: Metric, spec: RunSpec) -> None:
    import torch

    from petridish.tasks.domain import numbers

    task, domain, name = spec.task_of(metric.on), spec.domain, describe(metric)
    count = available(task, 6)
    drawn = draw_examples(task, SEEDS, "test", 0, count)
    labels = torch.from_numpy(numbers(drawn.labels))
    asked = facts_of(metric, task, drawn).items()
    facts = {key: torch.from_numpy(np.array(values)) for key, values in asked}
    shape = (len(SEEDS), count, *output_shape(domain, spec.n_outputs))
    outputs = torch.from_numpy(numbers_of("outputs", shape)).float()
    each = each_of(metric, outputs, labels, facts)
    one = {key: values[:1, :1] for key, values in facts.items()}
    first = each_of(metric, outputs[:1, :1], labels[:1, :1], one)
    demand(
        close(each[:1, :1].numpy(), first.numpy(), CLOSE),
        f"{name}: the value of an example depends on the others. What is no mean over examples is "
        "an instrument.",
    )
    if metric.counts(domain):
        known = each[~each.isnan()]
        demand(
            bool(((known == 0) | (known == 1)).all()),
            f"{name}: counts says that every example counts 0 or 1, and each returned others.",
        )


@in_words
def check_instrument(given: Instrument, spec: RunSpec) -> None:
    """Check an instrument in a run: read twice it is the same, and in both engines alike."""
    check_value(given)
    evaluation = replace(spec.evaluation, every=1, curves=True, instruments=(given,))
    spec = replace(spec, evaluation=evaluation)
    spec.check()
    name = describe(given)
    engines = _engines(spec)
    once, again, *others = (
        list(load_engine(engine).run([spec], Silent())) for engine in (engines[0], *engines)
    )
    demand(
        curves_of(once[0]).keys() == curves_of(again[0]).keys()
        and all(
            np.array_equal(a, b, equal_nan=True)
            for a, b in zip(curves_of(once[0]).values(), curves_of(again[0]).values(), strict=True)
        ),
        f"{name}: a run that is made again reads something else. Take random numbers from "
        "Streams([reading.spec.seed], name).",
    )
    for other in others:
        agree(f"the instrument {name} in the engines torch and reference", once, other)
