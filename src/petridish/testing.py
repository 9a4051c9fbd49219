"""The contracts as functions: give one of your own classes to the check of its kind.

Each check raises `Broken`, an `AssertionError`, with one sentence that says what was asked, what
was found and what to do; or the `UserError` with which a class itself refuses. The package's own
classes are held to the same checks.

>>> from petridish.tasks import SparseParity
>>> from petridish.testing import check_task
>>> check_task(SparseParity(10, 3))
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError
from petridish.models import FitsItself, Init, Model, Stacked
from petridish.models.parameters import build, parameters_of, read_parameters
from petridish.seeds import Streams
from petridish.tasks import (
    Bits,
    Classes,
    Domain,
    Examples,
    Finite,
    HasParts,
    HasStrategies,
    OneHot,
    Reals,
    Task,
    Tokens,
)
from petridish.training import (
    CrossEntropy,
    Data,
    Engine,
    Evaluation,
    Instrument,
    Loss,
    MeanOfExamples,
    Metric,
    RunRecord,
    RunSpec,
    Silent,
    Square,
    Training,
    load_engine,
    run_key,
    spec_text,
)
from petridish.training.data import initial_weights
from petridish.training.instruments import instrument
from petridish.values import learning, plain, read

if TYPE_CHECKING:
    from torch import Tensor

ALL_INPUTS = 4096  # a task with at most as many is looked at whole
CLOSE = 1e-4  # relative: engines may round otherwise, and a few steps let it grow
SEEDS = (3, 5)


class Broken(AssertionError):
    """A class does not keep its contract."""


def _require(kept: object, message: str) -> None:
    if not kept:
        raise Broken(message)


def _check_value(value: Any) -> None:
    """Require a frozen dataclass with a name, which comes back from its JSON."""
    kind = type(value)
    _require(
        is_dataclass(value) and kind.__dataclass_params__.frozen,
        f"{kind.__name__} is no frozen dataclass. Put @dataclass(frozen=True) above it.",
    )
    _require(
        isinstance(getattr(kind, "name", None), str),
        f"{kind.__name__} has no name. Give it such as `name: ClassVar[str] = "
        f'"{kind.__name__.lower()}"`.',
    )
    with learning(sys.modules[kind.__module__]):
        again = read(plain(value))
    if isinstance(value, Instrument):
        again = instrument(again)  # some are written by their names alone
    _require(
        again == value and hash(again) == hash(value),
        f"{describe(value)} is read back from its JSON as {again!r}. Give its fields numbers, "
        "text, None, values, or tuples of them, with type hints that say which.",
    )


# Tasks


def check_task(task: Task, *, count: int = 64) -> None:
    """Check a task: its domain, its draws, and what else it says that it can do.

    Parameters
    ----------
    task : Task
        An instance; a small one is checked sooner.
    count : int
        Examples that are drawn; fewer of a task that has fewer.
    """
    _check_value(task)
    name, domain = describe(task), task.domain
    _require(
        isinstance(domain, Domain),
        f"{name}: domain is {domain!r}. Return such as Domain(Bits(10), Classes(2)).",
    )
    count = _available(task, count)
    for purpose in ("train", "test"):
        drawn = task.draw(SEEDS, purpose, 0, count)
        _check_examples(task, drawn, count)
        _same(name, drawn, task.draw(SEEDS, purpose, 0, count), "drawn again")
        alone = task.draw(SEEDS[1:], purpose, 0, count)
        _same(name, _part(drawn, slice(1, 2), slice(None)), alone, "drawn for one run alone")
        start = count // 3
        later = task.draw(SEEDS, purpose, start, count - start)
        _same(
            name, _part(drawn, slice(None), slice(start, None)), later, "drawn from a later start"
        )
    train, test = (task.draw(SEEDS, purpose, 0, count).x for purpose in ("train", "test"))
    _require(
        count < 2 or not np.array_equal(train, test),
        f"{name}: the training and the test sample are the same inputs. Draw from "
        "Streams(seeds, purpose), which differ by purpose.",
    )
    if isinstance(task, Finite):
        _check_finite(task)
    if isinstance(task, HasStrategies):
        _check_strategies(task, task.draw(SEEDS, "test", 0, count))
    if isinstance(task, HasParts):
        parts = task.draw(SEEDS, "test", 0, count).facts.get("part")
        _require(
            parts is not None and 0 <= parts.min() <= parts.max() < len(task.parts),
            f"{name}: facts['part'] must say of every example which of the {len(task.parts)} "
            f"parts it is of, from 0 on, and is {parts!r}.",
        )


def _available(task: Task, count: int) -> int:
    while count > 1:
        try:
            for purpose in ("train", "test"):
                task.draw(SEEDS, purpose, 0, count)
        except UserError:
            count //= 2
        else:
            break
    return count


def _check_examples(task: Task, drawn: Examples, count: int) -> None:
    name, inputs = describe(task), task.domain.inputs
    _require(
        isinstance(drawn, Examples),
        f"{name}: draw returned {type(drawn).__name__}. Return Examples.",
    )
    task.domain.check_labels(drawn.labels, name)
    _require(
        drawn.labels.shape[:2] == (len(SEEDS), count),
        f"{name}: {count} examples of {len(SEEDS)} runs were asked for, and the labels have the "
        f"shape {drawn.labels.shape}. Return (run, example) first.",
    )
    shape = inputs.shape if isinstance(inputs, Reals) else (inputs.n,)
    _require(
        drawn.x.shape == (len(SEEDS), count, *shape),
        f"{name}: the inputs have the shape {drawn.x.shape}, and the domain asks for "
        f"{(len(SEEDS), count, *shape)}.",
    )
    if isinstance(inputs, Tokens):
        fits = (
            drawn.x.dtype.kind in "iu" and 0 <= drawn.x.min() <= drawn.x.max() < inputs.vocabulary
        )
        asked = f"whole numbers from 0 to {inputs.vocabulary - 1}"
    elif isinstance(inputs, Bits):
        fits, asked = np.isin(drawn.x, (-1, 1)).all(), "−1 and +1"
    elif isinstance(inputs, OneHot):
        fits = np.isin(drawn.x, (0, 1)).all() and (drawn.x.sum(axis=-1) == inputs.ones).all()
        asked = f"0 and 1, with {inputs.ones} ones in each"
    else:
        fits, asked = drawn.x.dtype.kind == "f" and np.isfinite(drawn.x).all(), "finite floats"
    _require(fits, f"{name}: the domain asks for inputs of {asked}, and draw returned others.")
    for fact, values in drawn.facts.items():
        _require(
            values.shape[:2] == (len(SEEDS), count),
            f"{name}: the fact {fact!r} has the shape {values.shape}. Return one entry per run "
            "and example.",
        )


def _part(drawn: Examples, runs: slice, examples: slice) -> Examples:
    return Examples(
        drawn.labels[runs, examples],
        dense=drawn.x[runs, examples],
        facts={name: values[runs, examples] for name, values in drawn.facts.items()},
    )


def _same(name: str, one: Examples, other: Examples, when: str) -> None:
    same = np.array_equal(one.x, other.x) and np.array_equal(one.labels, other.labels)
    same = same and all(np.array_equal(one.facts[f], other.facts[f]) for f in one.facts)
    _require(
        same,
        f"{name}: the same examples, {when}, are others. An example must depend on its run's seed "
        "and its number alone: take all randomness from Streams(seeds, purpose), and begin at "
        "`start`.",
    )


def _check_finite(task: Any) -> None:
    if task.n_possible > ALL_INPUTS:
        return
    places = np.tile(np.arange(task.n_possible), (len(SEEDS), 1))
    every = task.at(SEEDS, places)
    _check_examples(task, every, task.n_possible)
    different = len(np.unique(every.x[0].reshape(task.n_possible, -1), axis=0))
    _require(
        different == task.n_possible,
        f"{describe(task)}: n_possible={task.n_possible} inputs were asked for by `at`, and "
        f"{different} of them are different.",
    )


def _check_strategies(task: Any, drawn: Examples) -> None:
    target = task.domain.target
    expected = (*drawn.labels.shape, target.k)
    for strategy in task.strategies:
        found = task.predict(strategy, drawn)
        sums = found.shape == expected and np.allclose(found.sum(axis=-1), 1, atol=1e-5)
        _require(
            sums and found.min() >= 0,
            f"{describe(task)}: the strategy {strategy!r} must predict probabilities of shape "
            f"{expected} that add up to 1, and returned the shape {found.shape}.",
        )


# Models and their starts


def _loss_for(domain: Domain) -> Loss:
    return CrossEntropy() if isinstance(domain.target, Classes) else Square()


def short_run(task: Task, model: Model, loss: Loss | None = None, **changes: Any) -> RunSpec:
    """Return a run of a few steps with curves, on which engines can be compared."""
    loss = _loss_for(task.domain) if loss is None else loss
    count = _available(task, 40)
    training = Training(
        loss=loss,
        learning_rate=0.01,
        weight_decay=0.01,
        batch_size=min(8, count),
        steps=4,
        target_error=None,
    )
    return RunSpec(
        task=task,
        data=Data(m=count, n_test=count),
        model=model,
        training=training,
        evaluation=Evaluation(every=1, curves=True, weights=True),
        **changes,
    )


def check_model(model: Model, task: Task, *, loss: Loss | None = None) -> None:
    """Check a model on a task: its module, its parameters, its stacked form, and the engines.

    Parameters
    ----------
    loss : Loss, optional
        What it is trained by: cross entropy for classes and the square for real targets if not
        given.
    """
    _check_value(model)
    if isinstance(model, FitsItself):
        return
    spec = short_run(task, model, loss)
    spec.check()
    name = describe(model)
    module = build(model, spec.domain, spec.n_outputs)
    said = parameters_of(model, spec.domain, spec.n_outputs)
    found = read_parameters(module)
    _require(
        [(p.name, p.shape, p.trained) for p in said]
        == [(p.name, p.shape, p.trained) for p in found],
        f"{name}: parameters lists {[(p.name, p.shape) for p in said]}, and its module has "
        f"{[(p.name, p.shape) for p in found]}. List what the module has, in its order.",
    )
    if isinstance(model, Stacked):
        _check_stacked(model, spec)
    ours = {
        engine: list(load_engine(engine).run([replace(spec, seed=s) for s in SEEDS], Silent()))
        for engine in ("torch", "reference")
        if load_engine(engine).refusal(spec) is None
    }
    if len(ours) == 2:
        _agree(f"{name} in the engines torch and reference", ours["torch"], ours["reference"])


def _check_stacked(model: Any, spec: RunSpec) -> None:
    import torch

    parameters = spec.parameters
    drawn = [_numbers(f"weights {p.name}", (2, *p.shape)) for p in parameters]
    weights = [torch.from_numpy(values) for values in drawn]
    x = torch.from_numpy(np.stack([spec.task.draw([s], "test", 0, 5).x[0] for s in (0, 1)]))
    x = x.double() if x.is_floating_point() else x
    outputs = model.forward(weights, x)
    for run in (0, 1):
        module = build(model, spec.domain, spec.n_outputs).double().eval()
        named = dict(module.named_parameters())
        with torch.no_grad():
            for parameter, values in zip(parameters, weights, strict=True):
                named[parameter.name].copy_(values[run])
            alone = module(x[run])
        _require(
            _close(outputs[run].detach().numpy(), alone.numpy(), 1e-9),
            f"{describe(model)}: its stacked forward computes something else than its module. Let "
            "both compute the same, or leave the stacked form out.",
        )


def _numbers(name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return Streams([0], name).normals(0, math.prod(shape)).reshape(shape)


def check_init(init: Init, model: Model, task: Task, *, loss: Loss | None = None) -> None:
    """Check a start of a model on a task: shapes, types, and that a draw is a run's own."""
    _check_value(init)
    spec = short_run(task, model, loss, init=init)
    spec.check()
    specs = [replace(spec, seed=seed) for seed in SEEDS]
    together, alone = initial_weights(specs), initial_weights(specs[1:])
    for parameter, both, one in zip(spec.parameters, together, alone, strict=True):
        expected = (len(SEEDS), *parameter.shape)
        _require(
            both.shape == expected and both.dtype == np.float32,
            f"{describe(init)}: {parameter.name} was drawn with the shape {both.shape} and the "
            f"type {both.dtype}. Draw float32 of the shape {expected}.",
        )
        _require(
            np.array_equal(both[1], one[0]) and np.isfinite(both).all(),
            f"{describe(init)}: {parameter.name} of one run depends on the other runs, or is not "
            "finite. Draw it from Streams(seeds, name), one row per run.",
        )


# Losses, metrics, instruments


def _labels(domain: Domain, count: int) -> Tensor:
    import torch

    target = domain.target
    drawn: NDArray[Any]
    if isinstance(target, Classes):
        drawn = Streams(SEEDS, "labels").integers(target.k, 0, count * math.prod(target.shape))
    else:
        drawn = Streams(SEEDS, "labels").normals(0, count * math.prod(target.shape))
    return torch.from_numpy(drawn.reshape(len(SEEDS), count, *target.shape))


def check_loss(loss: Loss, domain: Domain) -> None:
    """Check a loss on a domain: one finite number per run, its own, from the labels that count."""
    import torch

    _check_value(loss)
    name, n_outputs = describe(loss), loss.n_outputs(domain)
    labels = _labels(domain, 6)
    positions = domain.target.shape if isinstance(domain.target, Classes) else ()
    shape = (len(SEEDS), 6, *positions, n_outputs)
    outputs = torch.from_numpy(_numbers("outputs", shape)).requires_grad_()
    value = loss(outputs, labels)
    _require(
        value.shape == (len(SEEDS),),
        f"{name}: the loss of {len(SEEDS)} runs has the shape {tuple(value.shape)}. Return one "
        "number per run.",
    )
    (gradient,) = torch.autograd.grad(value[0], outputs)
    _require(
        bool(value.isfinite().all() and gradient.isfinite().all()),
        f"{name}: the loss or its gradient is not finite at outputs of usual size.",
    )
    _require(
        not gradient[1].any(),
        f"{name}: the loss of one run depends on the outputs of another. Take no means over "
        "axis 0.",
    )
    if isinstance(domain.target, Classes):
        some = labels.clone()
        some[:, 0] = -1
        moved = outputs.detach().clone()
        moved[:, 0] += 1
        _require(
            _close(loss(outputs, some).detach().numpy(), loss(moved, some).numpy(), 1e-12),
            f"{name}: outputs at an example without a label (−1) change the loss. Leave such "
            "examples out, as MeanOfExamples does.",
        )
    if isinstance(loss, MeanOfExamples):
        _require(
            loss.each(outputs, labels).shape == labels.shape[: 2 + len(positions)],
            f"{name}: each must return one number per label.",
        )


def check_metric(metric: Metric, spec: RunSpec) -> None:
    """Check a metric in a run: its shape, that examples are apart, and that engines agree."""
    _check_value(metric)
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
    torch, reference = (list(load_engine(e).run(specs, Silent())) for e in ("torch", "reference"))
    _agree(f"the metric {name} in the engines torch and reference", torch, reference)


def _check_each(metric: Metric, spec: RunSpec) -> None:
    import torch

    from petridish.tasks.domain import numbers

    task, domain, name = spec.task_of(metric.on), spec.domain, describe(metric)
    count = _available(task, 6)
    drawn = task.draw(SEEDS, "test", 0, count)
    labels = torch.from_numpy(numbers(drawn.labels))
    facts = {key: torch.from_numpy(np.array(v)) for key, v in metric.facts(task, drawn).items()}
    positions = domain.target.shape if isinstance(domain.target, Classes) else ()
    shape = (len(SEEDS), count, *positions, spec.n_outputs)
    outputs = torch.from_numpy(_numbers("outputs", shape)).float()
    each = metric.each(outputs, labels, facts)
    _require(
        each.shape == (len(SEEDS), count),
        f"{name}: each returned the shape {tuple(each.shape)} for {len(SEEDS)} runs of {count} "
        "examples. Return one number per run and example.",
    )
    first = metric.each(outputs[:1, :1], labels[:1, :1], {k: v[:1, :1] for k, v in facts.items()})
    _require(
        _close(each[:1, :1].numpy(), first.numpy(), CLOSE),
        f"{name}: the value of an example depends on the others. What is no mean over examples is "
        "an instrument.",
    )
    if metric.counts(domain):
        known = each[~each.isnan()]
        _require(
            bool(((known == 0) | (known == 1)).all()),
            f"{name}: counts says that every example counts 0 or 1, and each returned others.",
        )


def check_instrument(given: Instrument, spec: RunSpec) -> None:
    """Check an instrument in a run: read twice it is the same, and in both engines alike."""
    _check_value(given)
    evaluation = replace(spec.evaluation, every=1, curves=True, instruments=(given,))
    spec = replace(spec, evaluation=evaluation)
    spec.check()
    name = describe(given)
    torch, again, reference = (
        list(load_engine(engine).run([spec], Silent()))
        for engine in ("torch", "torch", "reference")
    )
    _require(
        _curves(torch[0]).keys() == _curves(again[0]).keys()
        and all(
            np.array_equal(a, b, equal_nan=True)
            for a, b in zip(_curves(torch[0]).values(), _curves(again[0]).values(), strict=True)
        ),
        f"{name}: a run that is made again reads something else. Take random numbers from "
        "Streams([reading.spec.seed], name).",
    )
    _agree(f"the instrument {name} in the engines torch and reference", torch, reference)


# Engines


def check_engine(engine: Engine, spec: RunSpec, *, seeds: Sequence[int] = (0, 1, 2)) -> None:
    """Check an engine on a run: what it computes is what `reference` does, however runs come."""
    if reason := engine.refusal(spec):
        raise Broken(f"The engine {engine.name} refuses this run: {reason}")
    specs = [replace(spec, seed=seed) for seed in seeds]
    _require(
        len({engine.shape(each) for each in specs}) == 1,
        f"The engine {engine.name} gives runs that differ in their seed alone different shapes.",
    )
    together = _in_order(engine.run(specs, Silent()), specs)
    alone = [next(iter(engine.run([each], Silent()))) for each in specs]
    for one, other in zip(together, alone, strict=True):
        _require(
            _text(one) == _text(other),
            f"The engine {engine.name}: the run {run_key(one.spec)} has another record in a stack "
            "of several than alone.",
        )
    if engine.name == "fit":
        return
    theirs = list(load_engine("reference").run(specs, Silent()))
    _agree(f"the engine {engine.name} and the engine reference", together, theirs)


def _in_order(records: Any, specs: Sequence[RunSpec]) -> list[RunRecord]:
    by_text = {spec_text(record.spec): record for record in records}
    return [by_text[spec_text(spec)] for spec in specs]


def _text(record: RunRecord) -> str:
    return repr(replace(record, seconds=0.0))


def _curves(record: RunRecord) -> dict[str, NDArray[Any]]:
    """Return every number of a record, by name."""
    numbers: dict[str, NDArray[Any]] = {
        name: np.array(values) for name, values in record.curves.values.items()
    }
    numbers |= {f"array {name}": np.stack(v) for name, v in record.curves.arrays.items()}
    numbers |= {f"final {name}": np.array(value) for name, value in record.final.items()}
    if record.weights is not None and record.weights_of is not None:
        named = zip(record.weights_of, record.weights, strict=True)
        numbers |= {f"weights {name}": np.array(values) for (name, _), values in named}
    return numbers


def _agree(what: str, ours: Sequence[RunRecord], theirs: Sequence[RunRecord]) -> None:
    by_seed = {record.spec.seed: record for record in theirs}
    for record in ours:
        other = by_seed[record.spec.seed]
        one, two = _curves(record), _curves(other)
        _require(
            (record.outcome, record.steps, record.curves.step, one.keys())
            == (other.outcome, other.steps, other.curves.step, two.keys()),
            f"{what}: seed {record.spec.seed} ends as {record.outcome.name} after {record.steps} "
            f"steps here and as {other.outcome.name} after {other.steps} there, or keeps other "
            f"curves.",
        )
        for name, numbers in one.items():
            _require(
                _close(numbers, two[name], CLOSE),
                f"{what}: {name} of seed {record.spec.seed} is {_shown(numbers)} here and "
                f"{_shown(two[name])} there.",
            )


def _shown(numbers: NDArray[Any]) -> str:
    flat = np.ravel(numbers)
    return np.array2string(flat[:4], precision=6) + (" …" if flat.size > 4 else "")


def _close(one: NDArray[Any], other: NDArray[Any], tolerance: float) -> bool:
    if one.shape != other.shape:
        return False
    finite = np.isfinite(other)
    size = float(np.abs(other[finite]).max(initial=0.0))
    return bool(
        np.array_equal(np.isnan(one), np.isnan(other))
        and np.allclose(
            one, other, rtol=tolerance, atol=tolerance * max(size, 1e-3), equal_nan=True
        )
    )
