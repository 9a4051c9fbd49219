"""Engines: specs in, records out. All see the same data, weights and minibatches."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Protocol

from petridish.choices import describe
from petridish.errors import UserError, nearest
from petridish.models import (
    MLP,
    FitsItself,
    InfiniteZigzag,
    Oscillating,
    PolyNet,
    Power,
    ReLU,
    Sine,
    Stacked,
    Zigzag,
)
from petridish.tasks import SparseParity, Table
from petridish.tasks.base import OnSupport
from petridish.training.losses import Correlation, CrossEntropy, Hinge, Logistic, Square
from petridish.training.native import is_built
from petridish.training.numerics import pin_kernels
from petridish.training.optimisers import SGD, Schedule
from petridish.training.record import RunRecord
from petridish.training.settings import Evaluation, Training
from petridish.training.spec import RunSpec
from petridish.values import find_gone


class Monitor(Protocol):
    """How an engine speaks with whoever runs it, every few steps."""

    def stopped(self) -> bool:
        """Say whether to stop; the runs in flight are given up."""

    def stepped(self, model_steps: int) -> None:
        """Hear how many steps were taken, summed over the runs."""


class Silent:
    """A monitor that never stops a run and says nothing."""

    def stopped(self) -> bool:
        """Never."""
        return False

    def stepped(self, model_steps: int) -> None:
        """Ignore it."""


class Engine(Protocol):
    """A way to carry out runs. A new engine is a class with these names and a line in `ENGINES`.

    All but `run` answer without importing what the engine computes with.
    """

    name: ClassVar[str]
    module: ClassVar[str]  # what a worker imports before its first run
    version: ClassVar[int]  # rises when its results change; kept with every run

    def refusal(self, spec: RunSpec) -> str | None:
        """Say why this engine cannot serve `spec`, or None if it can."""

    def shape(self, spec: RunSpec) -> Hashable:
        """Give what two runs must share to be given in one call."""

    def stack_size(self, spec: RunSpec) -> int:
        """Say how many runs of this shape are best given in one call."""

    def run(self, specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
        """Carry out runs of one shape, giving each record as soon as the run ends."""


class Reference:
    """One run at a time by `nn.Module`, autograd and `torch.optim`: slow and obviously right."""

    name: ClassVar[str] = "reference"
    module: ClassVar[str] = "petridish.training.engines.reference"
    version: ClassVar[int] = 1

    def refusal(self, spec: RunSpec) -> str | None:
        """Refuse only what is not trained by steps."""
        return _not_stepped(spec)

    def shape(self, spec: RunSpec) -> Hashable:
        """Any runs may come in one call: they are carried out one after another."""
        return None

    def stack_size(self, spec: RunSpec) -> int:
        """One: a stack brings nothing here."""
        return 1

    def run(self, specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
        """Carry out the runs one after another."""
        pin_kernels()
        from petridish.training.engines.reference import train

        yield from train(specs, monitor)


class Torch:
    """Many runs of one shape stacked in one tensor, in one thread of the CPU."""

    name: ClassVar[str] = "torch"
    module: ClassVar[str] = "petridish.training.engines.torch"
    version: ClassVar[int] = 1

    def refusal(self, spec: RunSpec) -> str | None:
        """Refuse what is not trained by steps, and modules that cannot be stacked."""
        if reason := _not_stepped(spec):
            return reason
        if isinstance(spec.model, Stacked):
            return None
        from petridish.training.networks import stacking_problem

        problem = stacking_problem(spec.model, spec.task, spec.n_outputs)
        return problem and f"{problem}. The engine {Reference.name} can."

    def shape(self, spec: RunSpec) -> Hashable:
        """Return all but seed, restart, rate, decay, start, sample size, noise and support."""
        training = spec.training
        return (
            (type(spec.task), spec.domain),
            spec.parameters,
            spec.model,
            spec.data.online,
            spec.data.n_test,
            training.loss,
            training.optimiser,
            training.schedule,
            (training.batch_size, spec.examples_a_step),
            (training.batches, training.batches == "epochs" and spec.data.m),
            training.steps,
            (training.target_error, training.stop, training.clip),
            (training.penalty, training.precision),
            spec.evaluation,
        )

    def stack_size(self, spec: RunSpec) -> int:
        """Fill the cache: enough runs to hide the cost of a call, no more than the core holds.

        A run that fills it is carried out by itself.
        """
        weights = sum(parameter.size for parameter in spec.parameters)
        if isinstance(spec.model, Stacked):
            each = sum(parameter.fan_out for parameter in spec.parameters)
        else:
            from petridish.training.networks import numbers_per_example

            each = numbers_per_example(spec.model, spec.task, spec.n_outputs)
        activations = spec.examples_a_step * each
        if activations > 250_000:  # a second run would take what this one has in the cache
            return 1
        return max(1, min(256, 128_000 // weights, 4_000_000 // activations))

    def run(self, specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
        """Carry out the runs together."""
        pin_kernels()
        from petridish.training.engines.torch import train

        yield from train(specs, monitor)


class Native:
    """Two-layer networks and polynets on ±1 inputs by SGD, each run whole inside compiled code."""

    name: ClassVar[str] = "native"
    module: ClassVar[str] = "petridish.training.engines.native"
    version: ClassVar[int] = 1

    def refusal(self, spec: RunSpec) -> str | None:
        """Refuse what the compiled code was not written for, naming the engine that was."""
        if not is_built():
            return f"it was not built when petridish was installed. The engine {Torch.name} can."
        reason = self._limit(spec)
        return reason and f"{reason}. The engine {Torch.name} can."

    def _limit(self, spec: RunSpec) -> str | None:
        task, model, training = spec.task, spec.model, spec.training
        if not _is_two_layer(model):
            return (
                "it trains two-layer networks of this package's activations, and polynets, and the "
                f"model is {describe(model)}"
            )
        if not (isinstance(task, OnSupport) and _is_standard(task)):
            return f"it knows functions of a few of n uniform bits, and the task is {task.name}"
        if task.n > MAX_INPUTS:
            return f"it takes up to {MAX_INPUTS} inputs, and the task has n={task.n}"
        if spec.data.online and spec.data.skip:
            return f"online it begins with the first example, and data.skip={spec.data.skip}"
        if spec.data.online and not is_parity(task) and task.n_relevant > MAX_TABLE:
            return (
                f"online it takes functions of up to {MAX_TABLE} bits other than parities, and "
                f"the task has {task.n_relevant}"
            )
        if type(training.loss) not in (Hinge, Square, Logistic, Correlation):
            return f"it has no loss {training.loss.name}"
        if training.optimiser != SGD():
            return f"it has plain SGD alone, and the optimiser is {describe(training.optimiser)}"
        if reason := _plainer(training):
            return reason
        if training.batches != "replacement":
            return "it draws minibatches with replacement, and this run goes through epochs"
        if training.batch_size is None:
            return "it takes minibatches, and this run takes the whole sample at every step"
        if training.batch_size > MAX_BATCH:
            return (
                f"it takes batches of up to {MAX_BATCH}, and the batch size is "
                f"{training.batch_size}"
            )
        if reason := _more_to_measure(spec):
            return reason
        parts = spec.rates()
        if any(keep != 1 for part in parts for keep in part.keep):
            return "it keeps the old weights in every update, and the schedule forgets some"
        shrinking = max(r * d for p in parts for r, d in zip(p.rate, p.decay, strict=True))
        if shrinking > MAX_SHRINKING:
            return (
                f"it takes learning rate × weight decay up to {MAX_SHRINKING}, and here it is "
                f"{shrinking:g}"
            )
        return None

    def shape(self, spec: RunSpec) -> Hashable:
        """Give all but seed and restart: such runs are drawn together."""
        return replace(spec, seed=0, restart=0)

    def stack_size(self, spec: RunSpec) -> int:
        """Give some seconds of work if no run ends early: enough to draw together, few to wait."""
        blocks = -(-spec.examples_a_step // 32)
        step_seconds = 1e-6 + 1e-9 * blocks * sum(p.size for p in spec.parameters)
        return max(1, min(512, int(STACK_SECONDS / (spec.training.steps * step_seconds))))

    def run(self, specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
        """Carry out the runs one after another."""
        from petridish.training.engines.native import train

        yield from train(specs, monitor)


class Wide:
    """ReLU networks on tables, one run after another, at the speed of their matrix products."""

    name: ClassVar[str] = "wide"
    module: ClassVar[str] = "petridish.training.engines.wide"
    version: ClassVar[int] = 1

    def refusal(self, spec: RunSpec) -> str | None:
        """Refuse what it was not written for, naming the engine that was."""
        reason = self._limit(spec)
        return reason and f"{reason}. The engine {Torch.name} can."

    def _limit(self, spec: RunSpec) -> str | None:
        task, model, training = spec.task, spec.model, spec.training
        if type(task) is not Table:
            return f"it trains on tables, and the task is {task.name}"
        if type(model) is not MLP or model.activation != ReLU() or model.output != "affine":
            return (
                f"it trains ReLU networks with an output layer, and the model is {describe(model)}"
            )
        if training.loss not in (Logistic(), CrossEntropy()):
            return f"it has no loss {describe(training.loss)}"
        if spec.stop is not None or spec.evaluation != Evaluation(
            every=spec.evaluation.every, fitted_error=None
        ):
            return "it measures a run at its end only, and this run is to be watched"
        if reason := _plainer(training):
            return reason
        if training.schedule != Schedule():
            return "it has one rate for the whole run, and this run has a schedule"
        return None

    def shape(self, spec: RunSpec) -> Hashable:
        """Give all but seed and restart: such runs cost the same."""
        return replace(spec, seed=0, restart=0)

    def stack_size(self, spec: RunSpec) -> int:
        """Give some seconds of work."""
        operations = 6.0 * spec.examples_a_step * sum(p.size for p in spec.parameters)
        seconds = spec.training.steps * (1e-3 + operations / 5e10)
        return max(1, min(64, int(STACK_SECONDS / seconds)))

    def run(self, specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
        """Carry out the runs one after another."""
        pin_kernels()
        from petridish.training.engines.wide import train

        yield from train(specs, monitor)


class Fit:
    """Models that fit themselves, such as forests: one `fit_predict` a run."""

    name: ClassVar[str] = "fit"
    module: ClassVar[str] = "petridish.training.engines.fit"
    version: ClassVar[int] = 1

    def refusal(self, spec: RunSpec) -> str | None:
        """Refuse networks, which are trained by steps."""
        if isinstance(spec.model, FitsItself):
            return None
        return (
            f"it asks a model to fit itself, and {describe(spec.model)} is trained by steps. "
            f"The engine {Torch.name} can."
        )

    def shape(self, spec: RunSpec) -> Hashable:
        """Give all but seed and restart: such runs cost the same."""
        return replace(spec, seed=0, restart=0)

    def stack_size(self, spec: RunSpec) -> int:
        """Give a few: each may take a second."""
        return 5

    def run(self, specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
        """Carry out the runs one after another."""
        pin_kernels()
        from petridish.training.engines.fit import train

        yield from train(specs, monitor)


def _plainer(training: Training) -> str | None:
    """Say what the engines with a backward pass by hand lack of autograd's."""
    if training.penalty.strength:
        return f"it has no penalty, and this run has {describe(training.penalty)}"
    if training.precision != "float32":
        return f"it computes in float32, and this run in {training.precision}"
    if training.clip is not None:
        return f"it does not clip gradients, and this run has clip={training.clip:g}"
    return None


def _more_to_measure(spec: RunSpec) -> str | None:
    """Say what the native engine does not measure."""
    evaluation = spec.evaluation
    if spec.training.stop is not None:
        return "it stops at an error on the held-out sample, and this run has another stop rule"
    if evaluation.metrics or evaluation.reached or evaluation.samples:
        return "it measures errors, and this run asks for more"
    if evaluation.at:
        return "it evaluates every so many steps, and this run names further steps"
    return None


def _not_stepped(spec: RunSpec) -> str | None:
    if isinstance(spec.model, FitsItself):
        return f"{describe(spec.model)} fits itself. The engine {Fit.name} can."
    return None


MAX_INPUTS, MAX_BATCH, MAX_TABLE, MAX_SHRINKING = 4096, 1024, 16, 0.99
MAX_DEGREE = 30  # of an oscillating polynomial: 16 coefficients
COMPILED = (ReLU, Power, Zigzag, InfiniteZigzag, Oscillating, Sine)


def _is_two_layer(model: object) -> bool:
    if type(model) is PolyNet:
        return True
    if type(model) is not MLP or model.deeper or type(model.activation) not in COMPILED:
        return False
    return not (isinstance(model.activation, Oscillating) and model.activation.k > MAX_DEGREE)


STACK_SECONDS = 10.0  # if no run ends early: most do, and a batch has its price too


def is_parity(task: object) -> bool:
    """Whether a task is this package's parity, and no subclass with a rule of its own."""
    return type(task) is SparseParity


def _is_standard(task: OnSupport) -> bool:
    """Whether a task draws and labels as this package's own do, so that C++ can do it too."""
    kind = type(task)
    labels = (OnSupport.label, SparseParity.label)
    plain = kind.draw is OnSupport.draw and kind.supports is OnSupport.supports
    return plain and kind.label in labels and (kind.label is labels[0] or kind is SparseParity)


ENGINES: dict[str, Engine] = {
    engine.name: engine for engine in (Native(), Wide(), Torch(), Reference(), Fit())
}
"""Every engine, the fastest first: of those that do not refuse a run, the first serves it."""


def load_engine(name: str) -> Engine:
    """Give the engine called `name`."""
    if name not in ENGINES:
        raise UserError(f"There is no engine called {name!r}. {nearest(name, ENGINES)}")
    return ENGINES[name]


def choose_engine(spec: RunSpec, name: str = "auto") -> Engine:
    """Give the engine asked for, or the fastest that serves `spec`."""
    if gone := find_gone(spec):
        raise UserError(gone.refusal)
    if name == "auto":
        if not is_built():
            warnings.warn(
                "The native engine was not built; the engine torch takes its place and is many "
                "times slower. Install a C++ compiler and install petridish again.",
                stacklevel=1,  # one place, whoever asks: shown once
            )
        return next(engine for engine in ENGINES.values() if engine.refusal(spec) is None)
    engine = load_engine(name)
    if refusal := engine.refusal(spec):
        raise UserError(f"The engine {name} cannot serve this run: {refusal}")
    return engine
