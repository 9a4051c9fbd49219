"""Engines: specs in, records out. All see the same data, weights and minibatches."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from importlib import import_module
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
    """A way to carry out runs. A new engine is a class with these names and a line in `ENGINES`."""

    name: ClassVar[str]

    def refusal(self, spec: RunSpec) -> str | None:
        """Say why this engine cannot serve `spec`, or None if it can."""

    def shape(self, spec: RunSpec) -> Hashable:
        """Give what two runs must share to be given in one call."""

    def stack_size(self, spec: RunSpec) -> int:
        """Say how many runs of this shape are best given in one call."""

    def run(self, specs: Sequence[RunSpec], monitor: Monitor) -> Iterator[RunRecord]:
        """Carry out runs of one shape, giving each record as soon as the run ends."""


ENGINES: dict[str, str] = {
    "reference": "petridish.training.reference:Reference",
    "torch": "petridish.training.stacked:Stacked",
}
PREFERENCE = ("torch", "reference")  # the fastest first; the first that does not refuse serves


def load_engine(name: str) -> Engine:
    """Give the engine called `name`; its libraries are imported only now."""
    if name not in ENGINES:
        raise UserError(f"There is no engine called {name!r}. {nearest(name, ENGINES)}")
    pin_kernels()
    module, _, attribute = ENGINES[name].partition(":")
    make: Callable[[], Engine] = getattr(import_module(module), attribute)
    return make()


def choose_engine(spec: RunSpec, name: str = "auto") -> Engine:
    """Give the engine asked for, or the fastest that serves `spec`."""
    if name != "auto":
        engine = load_engine(name)
        if refusal := engine.refusal(spec):
            raise UserError(f"The engine {name} cannot serve this run: {refusal}")
        return engine
    engines = (load_engine(candidate) for candidate in PREFERENCE)
    return next(engine for engine in engines if engine.refusal(spec) is None)
