"""What users' classes return, looked at where it is met: a fault is one sentence, and no traceback.

Shapes and types alone are looked at, once per batch of examples or per evaluation. `try_run` meets
the faults of a run's classes on a few examples, before anything is trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.choices import blamed, describe
from petridish.errors import UserError
from petridish.tasks.base import Examples, Task, check_signs, draw_examples
from petridish.tasks.domain import Classes, Domain, numbers
from petridish.values import has_users

if TYPE_CHECKING:
    from torch import Tensor

    from petridish.training.losses import Loss
    from petridish.training.metrics import Metric
    from petridish.training.readings import Instrument, Reading
    from petridish.training.spec import RunSpec

SEEDS, TRIED = (0, 1), 3  # runs and examples of a trial
NUMBERS = "biuf"  # kinds of NumPy's types


def facts_of(metric: Metric, task: Task, examples: Examples) -> dict[str, NDArray[Any]]:
    """Return what a metric asks of the examples of a sample."""
    with blamed("metric", metric, "facts", task=task, facts=examples.facts):
        found = metric.facts(task, examples)
        items = dict(found)
    for name, values in items.items():
        good = isinstance(values, np.ndarray) and values.dtype.kind in NUMBERS
        if not good or values.shape[:2] != examples.labels.shape[:2]:
            shown = f"of shape {values.shape}" if good else f"as {type(values).__name__}"
            raise UserError(
                f"The metric {describe(metric)} returned the fact {name!r} {shown} for "
                f"{examples.labels.shape[1]} examples of {len(examples.labels)} runs. Return a "
                "NumPy array of numbers, (run, example) first."
            )
    return items


def each_of(metric: Metric, outputs: Tensor, labels: Tensor, facts: Mapping[str, Tensor]) -> Tensor:
    """Return a metric's value of each example, shape (run, example)."""
    with blamed("metric", metric, "each", outputs=outputs, labels=labels, facts=facts):
        each = metric.each(outputs, labels, facts)
    if getattr(each, "shape", None) != labels.shape[:2]:
        runs, examples = labels.shape[:2]
        raise UserError(
            f"The metric {describe(metric)} returned {_kind(each)} from each, for {examples} "
            f"examples of {runs} runs. Return a tensor with one number per run and example."
        )
    return each


def loss_of(loss: Loss, outputs: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of each run, as a gradient can be taken of it; for trials."""
    with blamed("loss", loss, "its call", outputs=outputs, labels=labels):
        value, again = loss(outputs, labels), loss(outputs, labels)
    if getattr(value, "shape", None) != outputs.shape[:1]:
        raise UserError(
            f"The loss {describe(loss)} returned {_kind(value)} for {len(outputs)} runs. Return a "
            "tensor with one number per run."
        )
    if not value.requires_grad:
        raise UserError(
            f"The loss {describe(loss)} has no gradient by the outputs. Compute it with PyTorch's "
            "functions of the outputs, without detaching them."
        )
    if not bool(((value == again) | (value.isnan() & again.isnan())).all()):
        raise UserError(
            f"The loss {describe(loss)} returns another value for the same outputs and labels: it "
            "draws random numbers that are not the run's. Leave them out."
        )
    return value


def reading_of(instrument: Instrument, reading: Reading) -> NDArray[Any]:
    """Return what an instrument reads, a number as an array without axes."""
    with blamed("instrument", instrument, "read", step=reading.step):
        found: Any = instrument.read(reading)
    # PyTorch's tensors may share the weights of the run, which goes on.
    good = isinstance(found, int | float | np.generic | np.ndarray)
    array = np.asarray(found) if good else np.empty(0, object)
    if array.dtype.kind not in NUMBERS:
        raise UserError(
            f"The instrument {describe(instrument)} returned {_kind(found)} at step "
            f"{reading.step}. Return a number or a NumPy array of numbers, such as float(x) or "
            "x.numpy()."
        )
    return array


def check_weights(spec: RunSpec, drawn: Any, runs: int) -> None:
    """Refuse first values that are not those of the run's parameters."""
    name, parameters = describe(spec.init), spec.parameters
    if not isinstance(drawn, list | tuple) or len(drawn) != len(parameters):
        shown = f"{len(drawn)} arrays" if isinstance(drawn, list | tuple) else _kind(drawn)
        raise UserError(
            f"The start {name} drew {shown} for {len(parameters)} parameters. Return a list with "
            "one array per parameter."
        )
    for parameter, values in zip(parameters, drawn, strict=True):
        expected = (runs, *parameter.shape)
        good = isinstance(values, np.ndarray) and values.dtype.kind in NUMBERS
        if not good or values.shape != expected:
            raise UserError(
                f"The start {name} drew {_kind(values)} for {parameter.name}. Return float32 of "
                f"the shape {expected}."
            )


def _kind(value: Any) -> str:
    """Say what a value is: of an array, its shape."""
    kind = type(value).__name__
    return f"{kind} of shape {tuple(value.shape)}" if hasattr(value, "shape") else kind


# Trials


def try_run(spec: RunSpec) -> None:
    """Meet the faults of a user's task, start, loss and metrics on a few examples.

    What needs runs that have not ended yet is not tried.
    """
    from petridish.training.chains import Needs
    from petridish.training.data import initial_weights

    every = {name: spec.task_of(name) for name in ("test", *(m.on for m in spec.metrics))}
    tasks = {name: task for name, task in every.items() if not isinstance(task, Needs)}
    for task in tasks.values():
        if has_users(task):
            try_task(task, int(min(spec.data.m, 2**32)))
    if has_users(spec.init) and not isinstance(spec.init, Needs):
        initial_weights([spec])
    loss, count = spec.training.loss, int(min(TRIED, spec.data.m, spec.data.n_test))
    if "test" in tasks and (has_users(loss) or has_users(spec.task)):
        try_loss(loss, spec.task, spec.n_outputs, count)
    for metric in spec.metrics:
        if metric.on in tasks and (has_users(metric) or has_users(tasks[metric.on])):
            try_metric(metric, tasks[metric.on], spec.n_outputs, count)


@lru_cache(maxsize=256)
def try_task(task: Task, m: int) -> None:
    """Draw a few examples, and more where their labels look like ±1."""
    for purpose in ("train", "test"):
        draw_examples(task, SEEDS, purpose, 0, min(TRIED, m))
    check_signs(task, m)


@lru_cache(maxsize=256)
def try_loss(loss: Loss, task: Task, n_outputs: int, count: int) -> None:
    """Compute the loss of a few examples."""
    examples = draw_examples(task, SEEDS, "train", 0, count)
    outputs = trial_outputs(task.domain, n_outputs, examples.labels.shape[:2])
    loss_of(loss, outputs.requires_grad_(), _labels(examples))


@lru_cache(maxsize=256)
def try_metric(metric: Metric, task: Task, n_outputs: int, count: int) -> None:
    """Measure a few examples."""
    import torch

    examples = draw_examples(task, SEEDS, "test", 0, count)
    asked = facts_of(metric, task, examples).items()
    facts = {name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in asked}
    outputs = trial_outputs(task.domain, n_outputs, examples.labels.shape[:2])
    each_of(metric, outputs, _labels(examples), facts)


def _labels(examples: Examples) -> Tensor:
    import torch

    labels = torch.from_numpy(numbers(examples.labels))
    return labels.float() if labels.is_floating_point() else labels


def trial_outputs(domain: Domain, n_outputs: int, shape: Sequence[int]) -> Tensor:
    """Return some outputs of examples of the shape (run, example)."""
    import torch

    positions = domain.target.shape if isinstance(domain.target, Classes) else ()
    size = (*shape, *positions, n_outputs)
    return torch.linspace(-1, 1, int(np.prod(size))).reshape(size)
