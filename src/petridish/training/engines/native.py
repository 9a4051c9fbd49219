"""The native engine: each run from its first step to its last inside compiled code.

Python draws samples and initial weights, for many runs at a time; C++ draws minibatches and fresh
examples, from the same streams. A call returns every few hundredths of a second, so that progress
can be reported and the run can be stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np

from petridish.models import MLP, AttentionOnly, ClsTransformer, MinimalAttention, PolyNet
from petridish.models.activations import oscillating_coefficients
from petridish.models.base import Weights
from petridish.seeds import n_words, name_key
from petridish.tasks.base import OnSupport
from petridish.training.data import initial_weights, test_examples, training_examples
from petridish.training.engines.base import Monitor, Native, is_parity
from petridish.training.native.run import (
    EvaluationPlan,
    Labelling,
    NativeRates,
    NativeRun,
    NeuronKind,
    PackedExamples,
    RunArguments,
    Status,
)
from petridish.training.readings import Gauges
from petridish.training.record import Curves, Outcome, RunRecord, kept_weights
from petridish.training.screen import allowed_errors, stages
from petridish.training.spec import RunSpec

CALL_SECONDS = 0.04  # between two chances to stop
MOST_WORK = 10**9  # per call: calls that pause at evaluations are always short
DRAWN_BYTES = 32e6  # samples and weights held for runs to come

_OUTCOMES = {
    Status.SOLVED: Outcome.SOLVED,
    Status.OUT_OF_STEPS: Outcome.OUT_OF_STEPS,
    Status.HOPELESS: Outcome.OUT_OF_STEPS,
    Status.DIVERGED: Outcome.DIVERGED,
}


def train(specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
    """Carry out runs that differ in their seeds and restarts alone, one after another."""
    if isinstance(specs[0].model, AttentionOnly | ClsTransformer | MinimalAttention):
        from petridish.training.engines.native_attention import train as train_attention

        yield from train_attention(specs, monitor)
        return
    pace = Pace()
    together = _drawn_together(specs[0])
    for start in range(0, len(specs), together):
        started = time.perf_counter()
        some = specs[start : start + together]
        prepared = prepare(some)
        share = (time.perf_counter() - started) / len(some)
        for spec, arguments in zip(some, prepared, strict=True):
            record = _run(spec, arguments, monitor, pace, share)
            if record is None:
                return
            yield record


def _drawn_together(spec: RunSpec) -> int:
    data, parameters = spec.data, spec.parameters
    examples = data.n_test + (0 if data.online else int(data.m))
    n_bytes = 8 * n_words(spec.domain.n_inputs) * examples + 4 * sum(p.size for p in parameters)
    return max(1, min(64, int(DRAWN_BYTES / n_bytes)))


def prepare(specs: Sequence[RunSpec], *, certify: bool = True) -> list[RunArguments]:
    """Draw what runs that differ in their seeds and restarts alone begin with."""
    spec, training = specs[0], specs[0].training
    weights = initial_weights(specs)
    test = test_examples(specs)
    assert test.packed is not None, "the engine refuses tasks without packed inputs"
    train = [_labelling(spec) for spec in specs] if spec.data.online else _samples(specs)
    evaluation, data = spec.evaluation, spec.data
    plan = EvaluationPlan(
        evaluation.every,
        evaluation.curves,
        _stages(data.n_test, training.target_error),
        () if data.online else _stages(int(data.m), evaluation.fitted_error),
    )
    keys = (name_key("batches"), name_key("train"), name_key("noise"))
    return [
        RunArguments(
            n=spec.domain.n_inputs,
            batch_size=spec.examples_per_step,
            steps=training.steps,
            loss=training.loss.name,
            # Fresh examples depend on the seed, minibatches of a sample on the restart too.
            seed=each.seed if each.data.online else each.luck,
            keys=keys,
            train=train[run],
            test=PackedExamples(test.packed[run], test.labels[run]),
            plan=plan,
            rates=rates(spec),
            weights=_four([_plain(weight[run]) for weight in weights]),
            certify=certify,
            neurons=neurons(spec),
        )
        for run, each in enumerate(specs)
    ]


def _plain(weight: Weights) -> Weights:
    return np.ascontiguousarray(weight, np.float32)


def _four(weights: list[Weights]) -> list[Weights]:
    """Return W, b, v, β; a model without an output layer has v = 1 and β = 0."""
    width = len(weights[0])
    implied = [np.ones((1, width), np.float32), np.zeros(1, np.float32)]
    return [*weights, *implied[len(weights) - 2 :]]


def neurons(spec: RunSpec) -> NeuronKind:
    """Return what the model's neurons compute, as the library takes it."""
    model = spec.model
    if isinstance(model, PolyNet):
        return NeuronKind(output="product", k=model.k)
    assert isinstance(model, MLP), "the engine refuses other models"
    activation = model.activation
    k = getattr(activation, "k", 0)
    return NeuronKind(
        activation.name,
        "ones" if model.output == "sum" else "weights",
        k,
        getattr(activation, "scale", 1.0),
        oscillating_coefficients(k) if activation.name == "oscillating" else (),
    )


def _samples(specs: Sequence[RunSpec]) -> list[PackedExamples | Labelling]:
    drawn = training_examples(specs, 0, int(specs[0].data.m))
    assert drawn.packed is not None, "the engine refuses tasks without packed inputs"
    return [PackedExamples(drawn.packed[run], drawn.labels[run]) for run in range(len(specs))]


def _labelling(spec: RunSpec) -> Labelling:
    """Return the rule by which fresh examples are labelled, as the task states it."""
    task = spec.task
    assert isinstance(task, OnSupport), "the engine refuses other tasks"
    support = task.supports([spec.seed])[0]
    noise_below = math.ceil(spec.data.label_noise * 2**53)
    if is_parity(task):
        mask = np.zeros(n_words(task.n), np.uint64)
        for bit in support.tolist():
            mask[bit // 64] |= np.uint64(1) << np.uint64(bit % 64)
        return Labelling(support, mask=mask, noise_below=noise_below)
    settings = np.arange(2**task.n_relevant)[:, None] >> np.arange(task.n_relevant) & 1
    table = task.evaluate(settings.astype(np.uint8))
    return Labelling(support, table=table.astype(np.uint8), noise_below=noise_below)


def _stages(n_examples: int, error: float | None) -> list[tuple[int, int, int]]:
    if error is None:
        return []
    found = stages(n_examples, allowed_errors(n_examples, error))
    return [(stage.start, stage.stop, stage.limit) for stage in found]


def rates(spec: RunSpec) -> list[NativeRates]:
    """Return the rates and decays of W, b, v, β for each piece of the schedule."""
    nothing = (0.0,) * (4 - len(spec.parameters))
    return [
        NativeRates(part.start, (*part.rate, *nothing), (*part.decay, *nothing))  # type: ignore[arg-type] # four of each
        for part in spec.rates()
    ]


class Pace:
    """How much work a call is given, adjusted to how long calls take."""

    def __init__(self) -> None:
        self.work = 20_000

    def adjust(self, seconds: float) -> None:
        """Move towards `CALL_SECONDS` per call, by no more than a factor of two."""
        factor = CALL_SECONDS / max(seconds, 1e-9)
        self.work = max(1, min(MOST_WORK, int(self.work * min(2.0, max(0.5, factor)))))


def _run(
    spec: RunSpec, arguments: RunArguments, monitor: Monitor, pace: Pace, seconds: float
) -> RunRecord | None:
    started = time.perf_counter()
    with NativeRun(arguments) as run:
        status, step = Status.RUNNING, 0
        begun = arguments.weights[: len(spec.parameters)]
        gauges = Gauges(spec, begun)
        readings = Curves()
        while status is Status.RUNNING:
            if monitor.stopped():
                return None
            called = time.perf_counter()
            status = run.advance(pace.work, pause_at_evaluations=bool(gauges.instruments))
            if status is Status.RUNNING:  # a run's last call is shorter
                pace.adjust(time.perf_counter() - called)
            state = run.state
            if gauges.instruments and state.n_evaluations > len(readings.step):
                gauges.read(state.step, run.weights()[: len(spec.parameters)], readings)
                readings.step.append(state.step)
            monitor.stepped(state.step - step)
            step = state.step
        outcome = _OUTCOMES[status]
        curves = _curves(spec, run, readings)
        weights = kept_weights(spec, run.weights()[: len(spec.parameters)], {})
    diverged = outcome is Outcome.DIVERGED
    return RunRecord(
        spec=spec,
        outcome=outcome,
        fitted_at=state.fitted_at if state.fitted_at >= 0 else None,
        steps=step,
        train_loss=math.nan if diverged else state.train_loss,
        curves=curves,
        seconds=seconds + time.perf_counter() - started,
        engine=Native.name,
        final={} if diverged else {"test_error": state.test_wrong / spec.data.n_test},
        **({} if diverged else weights),
    )


def _curves(spec: RunSpec, run: NativeRun, readings: Curves) -> Curves:
    if not spec.evaluation.curves:
        return Curves()
    found, data = run.curves(), spec.data
    train_wrong = found.train_wrong.tolist()
    errors = {
        "train_loss": found.train_loss.tolist(),
        "train_error": [math.nan if data.online else wrong / data.m for wrong in train_wrong],
        "test_error": [wrong / data.n_test for wrong in found.test_wrong.tolist()],
    }
    return Curves(found.step.tolist(), errors | readings.values, readings.arrays)
