"""Engines: specs in, records out. All see the same data, weights and minibatches."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import ClassVar, Protocol

from petridish.choices import describe
from petridish.errors import UserError, nearest
from petridish.models import (
    MLP,
    AttentionOnly,
    ClsTransformer,
    FitsItself,
    InfiniteZigzag,
    MinimalAttention,
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
from petridish.training.devices import CPU, Device
from petridish.training.engines.attention_limits import attention_limit, cls_limit
from petridish.training.losses import LOSSES, CrossEntropy, Logistic
from petridish.training.native.library import is_built
from petridish.training.native.run import LOSSES as COMPILED_LOSSES
from petridish.training.numerics import pin_kernels
from petridish.training.optimisers import SGD, Schedule
from petridish.training.record import RunRecord
from petridish.training.settings import Evaluation, Training
from petridish.training.spec import RunSpec
from petridish.values import refuse_gone


class Monitor(Protocol):
    """What an engine calls every few steps: to report progress, and to learn when to stop."""

    def stopped(self) -> bool:
        """Return whether to stop; unfinished runs are discarded."""

    def stepped(self, model_steps: int) -> None:
        """Receive the number of steps just taken, summed over the runs."""


class Silent:
    """A monitor that never stops a run and reports nothing."""

    def stopped(self) -> bool:
        """Return False."""
        return False

    def stepped(self, model_steps: int) -> None:
        """Do nothing."""


class Engine(ABC):
    """A way to carry out runs. A new engine is a subclass and a line in `ENGINES`.

    All but `run` answer without importing what the engine computes with.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1  # rises when its results change; kept with every run
    on_devices: ClassVar[bool] = False  # whether it computes on accelerators too

    @property
    def module(self) -> str:
        """The module that carries out its runs; workers import it before their first run."""
        return f"petridish.training.engines.{self.name}"

    @abstractmethod
    def refusal(self, spec: RunSpec) -> str | None:
        """Return why this engine cannot serve `spec`, or None if it can."""

    def shape(self, spec: RunSpec) -> Hashable:
        """Return what runs must have in common to be carried out in one call."""
        return replace(spec, seed=0, restart=0)

    @abstractmethod
    def stack_size(self, spec: RunSpec) -> int:
        """Return how many runs of this shape one call should have."""

    def run(
        self, specs: Sequence[RunSpec], monitor: Monitor, device: Device = CPU
    ) -> Iterator[RunRecord]:
        """Carry out runs of one shape, yielding each record as soon as its run ends."""
        pin_kernels()
        train = import_module(self.module).train
        yield from train(specs, monitor, device) if self.on_devices else train(specs, monitor)


class Reference(Engine):
    """One run at a time by `nn.Module`, autograd and `torch.optim`: slow and obviously right."""

    name: ClassVar[str] = "reference"
    on_devices: ClassVar[bool] = True

    def refusal(self, spec: RunSpec) -> str | None:
        """Refuse only what is not trained by steps."""
        return _not_stepped(spec)

    def shape(self, spec: RunSpec) -> Hashable:
        """Return the same for all runs: they are carried out one after another."""
        return None

    def stack_size(self, spec: RunSpec) -> int:
        """Return 1: a stack would not be faster."""
        return 1


class Torch(Engine):
    """Many runs of one shape stacked in one tensor: in one thread of the CPU, or on a device."""

    name: ClassVar[str] = "torch"
    on_devices: ClassVar[bool] = True

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
            (training.batch_size, spec.examples_per_step),
            (training.batches, training.batches == "epochs" and spec.data.m),
            training.steps,
            (training.target_error, training.stop, training.clip),
            (training.penalty, training.precision),
            spec.evaluation,
        )

    def stack_size(self, spec: RunSpec) -> int:
        """Return so many that the cost of a call is small, and that they fit into the cache.

        A run that fills it is carried out by itself.
        """
        weights = sum(parameter.size for parameter in spec.parameters)
        if isinstance(spec.model, Stacked):
            each = sum(parameter.fan_out for parameter in spec.parameters)
        else:
            from petridish.training.networks import numbers_per_example

            each = numbers_per_example(spec.model, spec.task, spec.n_outputs)
        activations = spec.examples_per_step * each
        if activations > 250_000:  # a second run would push this one out of the cache
            return 1
        return max(1, min(256, 128_000 // weights, 4_000_000 // activations))


class Native(Engine):
    """Two-layer networks and polynets on ±1 inputs, and three transformers: in C++."""

    name: ClassVar[str] = "native"
    version: ClassVar[int] = 2  # two-layer networks: sums by tables, forward too

    def refusal(self, spec: RunSpec) -> str | None:
        """Refuse what the compiled code was not written for, naming the engine that was."""
        if not is_built():
            return f"it was not built when petridish was installed. The engine {Torch.name} can."
        reason = self._limit(spec)
        return reason and f"{reason}. The engine {Torch.name} can."

    def _limit(self, spec: RunSpec) -> str | None:
        task, model, training = spec.task, spec.model, spec.training
        if type(model) in (AttentionOnly, MinimalAttention):
            return attention_limit(spec)
        if type(model) is ClsTransformer:
            return cls_limit(spec)
        if not _is_two_layer(model):
            return (
                "it trains two-layer networks of this package's activations, polynets, "
                "transformers of attention alone, the minimal one and blocks with [CLS], and the "
                "model is "
                f"{describe(model)}"
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
        if type(training.loss) is not LOSSES.get(training.loss.name) or (
            training.loss.name not in COMPILED_LOSSES
        ):
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

    def stack_size(self, spec: RunSpec) -> int:
        """Return so many that they take some seconds if no run ends early."""
        if isinstance(spec.model, AttentionOnly):
            return 1  # each takes a minute or more
        if isinstance(spec.model, MinimalAttention):
            pairs = spec.training.steps * spec.examples_per_step * spec.domain.n_inputs**2
            return max(1, min(64, int(STACK_SECONDS / (1.5e-10 * pairs))))
        if isinstance(spec.model, ClsTransformer):
            tokens = spec.training.steps * spec.examples_per_step * (spec.domain.n_inputs + 1)
            return max(1, min(64, int(STACK_SECONDS / (2e-7 * tokens))))
        blocks = -(-spec.examples_per_step // 32)
        step_seconds = 1e-6 + 1e-9 * blocks * sum(p.size for p in spec.parameters)
        return max(1, min(512, int(STACK_SECONDS / (spec.training.steps * step_seconds))))


class Wide(Engine):
    """ReLU networks on tables, one run after another, at the speed of their matrix products."""

    name: ClassVar[str] = "wide"

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

    def stack_size(self, spec: RunSpec) -> int:
        """Return so many that they take some seconds."""
        operations = 6.0 * spec.examples_per_step * sum(p.size for p in spec.parameters)
        seconds = spec.training.steps * (1e-3 + operations / 5e10)
        return max(1, min(64, int(STACK_SECONDS / seconds)))


class Fit(Engine):
    """Models that fit themselves, such as forests: one `fit_predict` per run."""

    name: ClassVar[str] = "fit"

    def refusal(self, spec: RunSpec) -> str | None:
        """Refuse networks, which are trained by steps."""
        if isinstance(spec.model, FitsItself):
            return None
        return (
            f"it asks a model to fit itself, and {describe(spec.model)} is trained by steps. "
            f"The engine {Torch.name} can."
        )

    def stack_size(self, spec: RunSpec) -> int:
        """Return a few: each may take a second."""
        return 5


def _plainer(training: Training) -> str | None:
    """Return what engines with a hand-written backward pass lack, or None."""
    if training.penalty.strength:
        return f"it has no penalty, and this run has {describe(training.penalty)}"
    if training.precision != "float32":
        return f"it computes in float32, and this run in {training.precision}"
    if training.clip is not None:
        return f"it does not clip gradients, and this run has clip={training.clip:g}"
    return None


def _more_to_measure(spec: RunSpec) -> str | None:
    """Return what the native engine does not measure, or None."""
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


STACK_SECONDS = 10.0  # of a batch in which no run ends early; most do


def is_parity(task: object) -> bool:
    """Return whether a task is this package's parity, and no subclass with its own rule."""
    return type(task) is SparseParity


def _is_standard(task: OnSupport) -> bool:
    """Return whether a task draws and labels as this package's own do, as C++ can."""
    kind = type(task)
    labels = (OnSupport.label, SparseParity.label)
    plain = kind.draw is OnSupport.draw and kind.supports is OnSupport.supports
    return plain and kind.label in labels and (kind.label is labels[0] or kind is SparseParity)


ENGINES: dict[str, Engine] = {
    engine.name: engine for engine in (Native(), Wide(), Torch(), Reference(), Fit())
}
"""Every engine, the fastest first: of those that do not refuse a run, the first serves it."""


def load_engine(name: str) -> Engine:
    """Return the engine called `name`."""
    if name not in ENGINES:
        raise UserError(f"There is no engine called {name!r}. {nearest(name, ENGINES)}")
    return ENGINES[name]


def choose_engine(spec: RunSpec, name: str = "auto") -> Engine:
    """Return the engine `name`, or the fastest that serves `spec`."""
    refuse_gone(spec)
    if name == "auto":
        if not is_built():
            warnings.warn(
                "The native engine was not built; the engine torch takes its place and is many "
                "times slower. Install a C++ compiler and install petridish again.",
                stacklevel=1,  # always this line, so that it is shown once
            )
        return next(engine for engine in ENGINES.values() if engine.refusal(spec) is None)
    engine = load_engine(name)
    if refusal := engine.refusal(spec):
        raise UserError(f"The engine {name} cannot serve this run: {refusal}")
    return engine
