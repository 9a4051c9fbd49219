"""The memory of a stack on a device, predicted by steps without numbers.

PyTorch's fake tensors have shapes and no numbers: a step of them does everything that a step does
but compute. What they would take is counted as it is made and freed.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import lru_cache
from typing import Any

from torch import Tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from petridish.choices import place_of
from petridish.errors import UserError
from petridish.training import losses
from petridish.training.device_streams import device_streams
from petridish.training.devices import Device
from petridish.training.engines.base import Silent
from petridish.training.engines.torch import TorchStack
from petridish.training.evaluator import StackState
from petridish.training.spec import RunSpec
from petridish.values import has_users

BLOCK = 512  # bytes: an allocator of devices rounds up to a multiple
ROUNDED = 512.0  # bytes, of an allocation
NUMBERS_ASKED = (DataDependentOutputException, DynamicOutputShapeException)
FEW = (1, 3)  # runs of the stacks from which those of larger ones are reckoned


class Tracked(TorchDispatchMode):  # type: ignore[no-untyped-call] # PyTorch has no types
    """Counts the bytes of the tensors that are made and not yet freed, on one kind of device."""

    def __init__(self, kind: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # nor here
        self.kind = kind
        self.now: int = 0
        self.peak: int = 0
        self._known: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Carry out an operation, and count what it made."""
        found = func(*args, **(kwargs or {}))
        for made in tree_leaves(found):
            if isinstance(made, Tensor) and made.device.type == self.kind:
                self._count(made.untyped_storage())
        return found

    def _count(self, storage: Any) -> None:
        place = storage._cdata
        if place in self._known:
            return
        size = -(-storage.nbytes() // BLOCK) * BLOCK
        self._known.add(place)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._freed, place, size)

    def _freed(self, place: int, size: int) -> None:
        self._known.discard(place)
        self.now -= size


@contextmanager
def without_numbers() -> Iterator[None]:
    """Let PyTorch's tensors have no numbers; what is kept between steps is forgotten after it."""
    kept = (device_streams, losses.weights_on)
    for each in kept:
        each.cache_clear()
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            yield
    finally:
        for each in kept:
            each.cache_clear()


def _bare(spec: RunSpec) -> RunSpec:
    """Return a run without instruments, which read copies on the host."""
    return replace(spec, evaluation=replace(spec.evaluation, curves=False, instruments=()))


def step_bytes(specs: Sequence[RunSpec], device: Device, *, measured: bool = False) -> int:
    """Predict the bytes that a stack of runs holds at once while it takes a few steps.

    With `measured` the steps are real ones; the device must be the CPU.
    """
    bare = [_bare(spec) for spec in specs]
    with nullcontext() if measured else without_numbers(), Tracked(device.kind) as tracked:
        TorchStack(bare, device).advance(0, min(2, specs[0].training.steps), Silent())
    peak: int = tracked.peak
    return peak


@lru_cache(maxsize=256)
def asking(spec: RunSpec) -> tuple[str | None, str | None]:
    """Return the line of a user's code that asks for a number in a step, and that of a metric.

    Such as «mine.py:12»: the host must wait for the device there. None where there is no such line.
    """
    parts = (spec.training.loss, spec.model, *spec.curve_metrics)
    if not has_users(parts):
        return None, None
    spec = _bare(spec)
    in_step = in_metric = None
    with without_numbers():
        stack = TorchStack([spec], Device("cpu", host=False))
        try:
            stack.advance(0, 1, Silent())
        except NUMBERS_ASKED as error:
            in_step = _line_of(error)
        now = StackState(stack.specs, stack.rows, stack.weights)
        for metric in filter(has_users, spec.metrics):
            try:
                stack.evaluator.sums(now, [0], metric.on, [metric], 0, 1)
            except UserError as error:
                if not isinstance(error.__cause__, NUMBERS_ASKED):  # what the metric raised
                    raise
                in_metric = _line_of(error.__cause__)
    return in_step, in_metric


def _line_of(error: Exception) -> str:
    return place_of(error).removeprefix(" at ") or "a class of yours"


@lru_cache(maxsize=256)
def memory_of_stacks(spec: RunSpec) -> tuple[float, float]:
    """Return the bytes of a stack that do not depend on its runs, and those of each run.

    From two small stacks; they are the same on every device. Where a user's class asks for a number
    the stacks take real steps on the CPU.
    """
    here, measured = Device("cpu", host=False), asking(spec)[0] is not None
    few, more = (
        step_bytes([replace(spec, seed=seed) for seed in range(runs)], here, measured=measured)
        for runs in FEW
    )
    # Allocations are rounded up, so that a further run of a very small network seems to take none.
    each = max(ROUNDED, (more - few) / (FEW[1] - FEW[0]))
    return max(0.0, few - each * FEW[0]), each
