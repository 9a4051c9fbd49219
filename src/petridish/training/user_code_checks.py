"""Checks of what users' classes return: a fault is one sentence instead of a traceback.

Shapes and types are checked once per batch of examples or per evaluation. `try_run` tries a run's
classes on a few examples, before anything is trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.choices import blamed, describe, placed
from petridish.errors import UserError
from petridish.tasks.base import Examples, Task, draw_examples
from petridish.tasks.domain import Bits, Classes, Domain, OneHot, Tokens, numbers
from petridish.tasks.labels import check_classes, warn_of_one_sample
from petridish.training.losses import MeanOfExamples
from petridish.training.numerics import with_floats
from petridish.values import has_users

if TYPE_CHECKING:
    from torch import Tensor

    from petridish.training.losses import Loss
    from petridish.training.metrics import Metric
    from petridish.training.readings import Instrument, Reading
    from petridish.training.spec import RunSpec

SEEDS, TRIED = (0, 1), 3  # runs and examples of a trial
DRAWN_AGAIN = 64  # examples of a task whose values are checked, and that are drawn again
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
                f"The metric {placed(metric)} returned the fact {name!r} {shown} for "
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
            f"The metric {placed(metric)} returned {_kind(each)} from each, for {examples} "
            f"examples of {runs} runs. Return a tensor with one number per run and example."
        )
    return each


def loss_of(loss: Loss, outputs: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of each run, as a gradient can be taken of it; for trials."""
    with blamed("loss", loss, "its call", outputs=outputs, labels=labels):
        value, again = loss(outputs, labels), loss(outputs, labels)
    if getattr(value, "shape", None) != outputs.shape[:1]:
        raise UserError(
            f"The loss {placed(loss)} returned {_kind(value)} for {len(outputs)} runs. Return a "
            "tensor with one number per run."
        )
    if isinstance(loss, MeanOfExamples):
        with blamed("loss", loss, "each", outputs=outputs, labels=labels):
            each = loss.each(outputs, labels)
        if each.shape != outputs.shape[:-1]:  # the mean of anything would be taken
            raise UserError(
                f"The loss {placed(loss)} returned {_kind(each)} from each, for outputs of shape "
                f"{tuple(outputs.shape)}. Return one number per label, shape "
                f"{tuple(outputs.shape[:-1])}."
            )
    if not value.requires_grad:
        raise UserError(
            f"The loss {placed(loss)} has no gradient by the outputs. Compute it with PyTorch's "
            "functions of the outputs, without detaching them."
        )
    if not bool(((value == again) | (value.isnan() & again.isnan())).all()):
        raise UserError(
            f"The loss {placed(loss)} returns another value for the same outputs and labels: it "
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
            f"The instrument {placed(instrument)} returned {_kind(found)} at step "
            f"{reading.step}. Return a number or a NumPy array of numbers, such as float(x) or "
            "x.numpy()."
        )
    return array


def check_weights(spec: RunSpec, drawn: Any, runs: int) -> None:
    """Refuse first values that are not those of the run's parameters."""
    name, parameters = placed(spec.init), spec.parameters
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
    """Return the type of a value in words, with the shape of an array."""
    kind = type(value).__name__
    return f"{kind} of shape {tuple(value.shape)}" if hasattr(value, "shape") else kind


# Trials


def _tasks(spec: RunSpec) -> tuple[Task, ...]:
    return (spec.task, *(held.task for held in spec.evaluation.samples))


def check_domains(spec: RunSpec) -> None:
    """Refuse a run with a task that has no domain."""
    for task in _tasks(spec):
        check_domain(task)


def try_tasks(spec: RunSpec) -> None:
    """Try the user's tasks of a run, but those that need other runs to have ended."""
    from petridish.training.chains import Needs

    for task in _tasks(spec):
        if has_users(task) and not isinstance(task, Needs):
            m = int(min(spec.data.m, 2**32))
            try_task(task, m, spec.data.n_test)
            if task is spec.task:
                warn_of_one_sample(task, m)


def try_run(spec: RunSpec) -> None:
    """Try a user's start, loss and metrics on a few examples.

    What needs other runs to have ended is not tried.
    """
    from petridish.training.chains import Needs
    from petridish.training.data import initial_weights

    every = {name: spec.task_of(name) for name in ("test", *(m.on for m in spec.metrics))}
    tasks = {name: task for name, task in every.items() if not isinstance(task, Needs)}
    if has_users(spec.init) and not isinstance(spec.init, Needs):
        drawn, again = (initial_weights([spec]) for _ in range(2))
        for parameter, values, others in zip(spec.parameters, drawn, again, strict=True):
            if not np.array_equal(values, others, equal_nan=True):
                raise UserError(
                    f"{describe(spec.init)}: {parameter.name}, drawn again for the same runs, is "
                    "another: it is drawn by random numbers that are not the run's. Draw it from "
                    "Streams(seeds, name)."
                )
    loss, count = spec.training.loss, int(min(TRIED, spec.data.m, spec.data.n_test))
    if "test" in tasks and (has_users(loss) or has_users(spec.task)):
        try_loss(loss, spec.task, spec.n_outputs, count)
    for metric in spec.metrics:
        if metric.on in tasks and (has_users(metric) or has_users(tasks[metric.on])):
            try_metric(metric, tasks[metric.on], spec.n_outputs, count)


@lru_cache(maxsize=256)
def try_task(task: Task, m: int, n_test: int) -> None:
    """Draw examples, check their values, and draw them again; more if labels look wrong."""
    for purpose, count in (("train", m), ("test", n_test)):
        draw_examples(
            task, SEEDS, purpose, 0, min(TRIED, count)
        )  # a wrong shape is shown with few examples
        check_draws(task, SEEDS, purpose, min(DRAWN_AGAIN, count))
    check_classes(task, m)


def check_domain(task: Task) -> None:
    """Refuse a task without a domain."""
    with blamed("task", task, "domain"):
        domain = task.domain
    if not isinstance(domain, Domain):
        raise UserError(
            f"The task {placed(task)} has the domain {domain!r}. Return such as "
            "Domain(Bits(10), Classes(2))."
        )


def check_draws(task: Task, seeds: Sequence[int], purpose: str, count: int) -> Examples:
    """Refuse inputs that are not of the domain, and draws that depend on more than seed and place.

    The same examples are drawn again, for one run alone, and from a later start.
    """
    drawn = draw_examples(task, seeds, purpose, 0, count)
    check_inputs(task, drawn)
    again = draw_examples(task, seeds, purpose, 0, count)
    _check_same(task, drawn, again, "drawn again")
    alone = draw_examples(task, seeds[1:], purpose, 0, count)
    _check_same(task, _part(drawn, slice(1, None), slice(None)), alone, "drawn for one run alone")
    start = count // 3
    later = draw_examples(task, seeds, purpose, start, count - start)
    rest = _part(drawn, slice(None), slice(start, None))
    _check_same(task, rest, later, "drawn from a later start")
    return drawn


def check_inputs(task: Task, drawn: Examples) -> None:
    """Refuse inputs with other values than the domain says; `draw_examples` checks shapes."""
    inputs = task.domain.inputs
    if isinstance(inputs, Tokens):
        fits = 0 <= drawn.x.min() <= drawn.x.max() < inputs.vocabulary
        asked = f"whole numbers from 0 to {inputs.vocabulary - 1}"
    elif isinstance(inputs, Bits):
        fits, asked = np.isin(drawn.x, (-1, 1)).all(), "−1 and +1"
    elif isinstance(inputs, OneHot):
        fits = np.isin(drawn.x, (0, 1)).all() and (drawn.x.sum(axis=-1) == inputs.ones).all()
        asked = f"0 and 1, with {inputs.ones} ones in each"
    else:
        fits, asked = np.isfinite(drawn.x).all(), "finite floats"
    if not fits:
        raise UserError(
            f"The task {placed(task)} drew inputs that its domain does not have: it asks for "
            f"{asked}. Return such inputs from draw, or state another domain."
        )


def _part(drawn: Examples, runs: slice, examples: slice) -> Examples:
    return Examples(
        drawn.labels[runs, examples],
        dense=drawn.x[runs, examples],
        facts={name: values[runs, examples] for name, values in drawn.facts.items()},
    )


def _check_same(task: Task, one: Examples, other: Examples, when: str) -> None:
    name = f"The task {placed(task)}: the same examples, {when},"
    if one.facts.keys() != other.facts.keys():
        raise UserError(
            f"{name} have the facts {sorted(other.facts)}, and had {sorted(one.facts)}. Return the "
            "same facts for every sample."
        )
    pairs = [(one.x, other.x), (one.labels, other.labels)]
    pairs += [(values, other.facts[fact]) for fact, values in one.facts.items()]
    if not all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs):
        raise UserError(
            f"{name} are others. An example must depend on its run's seed and its number alone: "
            "take all randomness from Streams(seeds, purpose), and begin at `start`."
        )


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

    return with_floats(torch.from_numpy(numbers(examples.labels)), torch.float32)


def trial_outputs(domain: Domain, n_outputs: int, shape: Sequence[int]) -> Tensor:
    """Return some outputs of examples of the shape (run, example)."""
    import torch

    size = (*shape, *output_shape(domain, n_outputs))
    return torch.linspace(-1, 1, int(np.prod(size))).reshape(size)


def output_shape(domain: Domain, n_outputs: int) -> tuple[int, ...]:
    """Return the shape of a model's outputs for one example, ([position,] output)."""
    positions = domain.target.shape if isinstance(domain.target, Classes) else ()
    return (*positions, n_outputs)
