"""Instruments: what they are, what they read, and how a run reads them at its evaluations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from petridish.choices import describe
from petridish.errors import UserError, nearest
from petridish.models.base import Weights
from petridish.tasks import Examples
from petridish.training.numerics import dtype_of, with_floats
from petridish.training.user_code_checks import reading_of

if TYPE_CHECKING:
    from torch import Tensor, nn

    from petridish.training.record import Curves
    from petridish.training.spec import RunSpec

Of = TypeVar("Of")
Found = TypeVar("Found")
Instead = Mapping[str, Callable[["Tensor"], "Tensor"]]
"""What parts of a module are to put out, by name, in the place of what they do."""
Compiled = Callable[[str, "Tensor", Instead], "Tensor | None"]
"""What a part puts out on some inputs, by compiled code; None where it lacks the part."""
WHOLE = ""  # the part that is the module itself, as `named_modules` has it


@dataclass(frozen=True)
class Reading:
    """What an instrument can read of one run.

    Attributes
    ----------
    spec : RunSpec
        What the run is.
    step : int
        Steps taken.
    start, now : mapping of str to array
        The parameters by name, at the start and now, in the module's order.
    buffers : mapping of str to array
        What the module keeps beside its parameters, such as running means.
    compiled : callable, optional
        What compiled code has of the network: see `of_network`.
    """

    spec: RunSpec
    step: int
    start: Mapping[str, Weights]
    now: Mapping[str, Weights]
    buffers: Mapping[str, NDArray[Any]]
    shared: Shared
    compiled: Compiled | None = None
    kept: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def module(self) -> nn.Module:
        """The module with its parameters at this step, in evaluation mode."""
        import torch

        state = {**self.now, **self.buffers}
        tensors = {name: torch.from_numpy(np.array(value)) for name, value in state.items()}
        self.shared.module.load_state_dict(tensors, strict=False)
        return self.shared.module.eval()  # another instrument may have left it in training

    def sample(self, on: str = "test") -> Examples:
        """Return a sample of the run: "test", "train" or one of its evaluation's."""
        return self.shared.sample(on)

    def inputs(self, on: str = "test", n: int | None = None) -> Tensor:
        """Return the first `n` inputs of a sample as the module takes them."""
        import torch

        return with_floats(torch.from_numpy(self.sample(on).x[0, :n]), dtype_of(self.spec))

    def labels(self, on: str = "test", n: int | None = None) -> Tensor:
        """Return the first `n` labels of a sample."""
        import torch

        return torch.from_numpy(np.array(self.sample(on).labels[0, :n]))

    def outputs(self, on: str = "test", n: int | None = None) -> Tensor:
        """Return the module's outputs on the first `n` examples of a sample."""
        import torch

        with torch.no_grad():
            found: Tensor = self.module(self.inputs(on, n))
        return found

    def capture(self, part: str, on: str = "test", n: int = 64) -> Tensor:
        """Return what the named part of the module puts out on the first `n` examples.

        A part is a submodule, by the name that `named_modules` has for it; a model makes an
        intermediate result visible by passing it through one, such as `self.pattern = Identity()`.
        """
        return self._captured(part, on, n, {})

    def of_network(
        self, part: str, on: str = "test", n: int = 64, instead: Instead | None = None
    ) -> Tensor:
        """Return what a part of the network that is trained puts out, as `capture` does.

        Compiled code is asked where it has that part, which is quicker than the module; what was
        done to the module since does not count. The part `WHOLE` has the outputs. Other parts may
        be made to put out something else: `instead` has functions of what they do put out.
        """
        if self.compiled is not None:
            found = self.compiled(part, self.inputs(on, n), instead or {})
            if found is not None:
                return found
        return self._captured(part, on, n, instead or {})

    def _captured(self, part: str, on: str, n: int, instead: Instead) -> Tensor:
        parts = dict(self.module.named_modules())
        for name in (part, *instead):
            if name not in parts:
                known = [each for each in parts if each]
                raise UserError(
                    f"The model {describe(self.spec.model)} has no part called {name!r}. "
                    f"{nearest(name, known)}"
                )
        seen: list[Tensor] = []
        hooks = [
            parts[name].register_forward_hook(lambda _module, _given, found, put=put: put(found))
            for name, put in instead.items()
        ]
        hooks += [
            parts[part].register_forward_hook(lambda _module, _given, found: seen.append(found))
        ]
        try:
            self.outputs(on, n)
        finally:
            for hook in hooks:
                hook.remove()
        if not seen:
            raise UserError(
                f"The part {part!r} of the model {describe(self.spec.model)} was not used on the "
                f"sample {on!r}. Name another part."
            )
        return seen[-1].detach()

    def once(self, compute: Callable[[Reading], Found]) -> Found:
        """Return what a function makes of this reading; several instruments share the result."""
        return _once(self.kept, compute, self)


def _once(kept: dict[Any, Any], compute: Callable[[Of], Found], of: Of) -> Found:
    if compute not in kept:
        kept[compute] = compute(of)
    found: Found = kept[compute]
    return found


class Shared:
    """What all readings of one run share: its module and its samples, made when first asked for."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        self._samples: dict[str, Examples] = {}
        self._kept: dict[Any, Any] = {}
        self._kept_of: dict[str, dict[Any, Any]] = defaultdict(dict)  # by the sample's name

    @cached_property
    def module(self) -> nn.Module:
        """A module of the run's model, in evaluation mode and in the run's precision."""
        from petridish.models.parameters import build

        spec = self.spec
        module = build(spec.model, spec.domain, spec.n_outputs, spec.luck)
        return module.to(dtype_of(spec)).eval()

    def sample(self, on: str) -> Examples:
        """Draw a sample once."""
        from petridish.training.data import sample_examples

        if on not in self._samples:
            self._samples[on] = sample_examples([self.spec], on)
        return self._samples[on]

    def once(self, compute: Callable[[RunSpec], Found]) -> Found:
        """Return what a function makes of the run's spec, computed once per run."""
        return _once(self._kept, compute, self.spec)

    def of_sample(self, compute: Callable[[Examples], Found], on: str) -> Found:
        """Return what a function makes of a sample, computed once per run."""
        return _once(self._kept_of[on], compute, self.sample(on))


class Instrument(ABC):
    """A number or a small array that is read from a run, at every evaluation or at its own steps.

    A new instrument is a frozen dataclass that inherits from this class, with a `name` and the
    method `read`. A mean over the examples of a sample is a `Metric`: engines measure those faster.
    """

    name: ClassVar[str]
    at: tuple[int, ...] | None = None
    """The steps at which it is read, if not at every evaluation; a field of this name sets them."""

    @property
    def label(self) -> str:
        """The name of its curve, or array."""
        return self.name

    def check(self, spec: RunSpec) -> None:  # noqa: B027 - most instruments fit every run
        """Refuse a run that it cannot read."""

    @abstractmethod
    def read(self, reading: Reading) -> float | NDArray[Any]:
        """Return a number, or an array of the same shape at every reading."""


def _read_only(weight: Weights) -> Weights:
    """Return a view that an instrument cannot write to: the run goes on with the array itself."""
    view = np.asarray(weight).view()
    view.flags.writeable = False
    return view


class Gauges:
    """The instruments of a run, with its first weights and the shapes of their readings."""

    def __init__(self, spec: RunSpec, start: Sequence[Weights]) -> None:
        self.spec = spec
        self.instruments = spec.evaluation.gauges
        if self.instruments:
            self.names = [parameter.name for parameter in spec.parameters]
            self.start = {
                name: np.array(weight) for name, weight in zip(self.names, start, strict=True)
            }
            self.shared = Shared(spec)
            self.shapes: dict[str, tuple[int, ...]] = {}

    def read(
        self,
        step: int,
        now: Sequence[Weights],
        into: Curves,
        buffers: Mapping[str, NDArray[Any]] | None = None,
        compiled: Compiled | None = None,
    ) -> None:
        """Append one reading of every instrument that is read at this step."""
        named = {name: _read_only(weight) for name, weight in zip(self.names, now, strict=True)}
        reading = Reading(self.spec, step, self.start, named, buffers or {}, self.shared, compiled)
        for each in self.instruments:
            if each.at is not None and step not in each.at:
                into.skip(each.label)
                continue
            found = reading_of(each, reading)
            before = self.shapes.setdefault(each.label, found.shape)
            if found.shape != before:
                raise UserError(
                    f"The instrument {describe(each)} returned {_shaped(found.shape)} at step "
                    f"{step}, after {_shaped(before)}. Return the same shape at every reading."
                )
            into.append(each.label, found)


def _shaped(shape: tuple[int, ...]) -> str:
    return f"an array of shape {shape}" if shape else "a number"
