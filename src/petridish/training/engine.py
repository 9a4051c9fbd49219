"""Engines: specs in, records out. All see the same data, weights and minibatches."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar, Protocol

from petridish.naming import UserError, nearest
from petridish.training.numerics import pin_kernels
from petridish.training.record import RunRecord
from petridish.training.spec import RunSpec


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

    def refusal(self, spec: RunSpec) -> str | None:
        """Refuse nothing."""
        return None

    def shape(self, spec: RunSpec) -> Hashable:
        """Any runs may come in one call: they are carried out one after another."""
        return None

    def stack_size(self, spec: RunSpec) -> int:
        """One: a stack brings nothing here."""
        return 1

    def run(self, specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
        """Carry out the runs one after another."""
        pin_kernels()
        from petridish.training.reference import train

        yield from train(specs, monitor)


class Torch:
    """Many runs of one shape stacked in one tensor, in one thread of the CPU."""

    name: ClassVar[str] = "torch"

    def refusal(self, spec: RunSpec) -> str | None:
        """Refuse nothing: every model works here."""
        return None

    def shape(self, spec: RunSpec) -> Hashable:
        """Give all but seed, rate, decay, initialisation, sample size, noise and support."""
        training = spec.training
        return (
            type(spec.task),
            spec.parameters,
            spec.model,
            spec.data.online,
            spec.data.n_test,
            training.loss,
            training.optimiser,
            training.schedule,
            training.batch_size,
            training.steps,
            training.target_error,
            spec.evaluation,
        )

    def stack_size(self, spec: RunSpec) -> int:
        """Fill the cache: enough runs to hide the cost of a call, no more than the core holds."""
        weights = sum(parameter.size for parameter in spec.parameters)
        return max(2, min(256, 128_000 // weights))

    def run(self, specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
        """Carry out the runs together."""
        pin_kernels()
        from petridish.training.stacked import train

        yield from train(specs, monitor)


ENGINES: dict[str, Engine] = {engine.name: engine for engine in (Torch(), Reference())}
"""Every engine, the fastest first: of those that do not refuse a run, the first serves it."""


def load_engine(name: str) -> Engine:
    """Give the engine called `name`."""
    if name not in ENGINES:
        raise UserError(f"There is no engine called {name!r}. {nearest(name, ENGINES)}")
    return ENGINES[name]


def choose_engine(spec: RunSpec, name: str = "auto") -> Engine:
    """Give the engine asked for, or the fastest that serves `spec`."""
    if name == "auto":
        return next(engine for engine in ENGINES.values() if engine.refusal(spec) is None)
    engine = load_engine(name)
    if refusal := engine.refusal(spec):
        raise UserError(f"The engine {name} cannot serve this run: {refusal}")
    return engine
