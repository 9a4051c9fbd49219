"""Random numbers inside a module: dropout masks and noise come from the run's own streams.

A first pass in training mode notes every call for random numbers, in order. Those of call c at step
t are then drawn and passed in, so that a module is a pure function of its inputs. The layout is
part of the contract, since other engines draw the same bits: call c has the stream "module/<c>";
a mask takes one 16-bit lane per entry, four to a word, lowest first, and keeps the entries whose
lane is at least round(65536 p); uniform and normal numbers take one word each. Step t begins at
word t times the words that the call takes of a full batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from petridish.errors import UserError
from petridish.seeds import Streams
from petridish.training.device_streams import device_streams
from petridish.training.devices import CPU, Device

LANES = 4  # 16-bit lanes per word


@dataclass(frozen=True)
class Call:
    """A call for random numbers: shape in one run, and of a mask the share that is dropped."""

    kind: Literal["mask", "uniform", "normal"]
    shape: tuple[int, ...]
    rate: float = 0.0

    @property
    def words(self) -> int:
        """The number of words that it takes."""
        size = math.prod(self.shape)
        return -(-size // LANES) if self.kind == "mask" else size

    @property
    def drop_below(self) -> int:
        """The bound of a mask: lanes below it are dropped."""
        return round(65536 * self.rate)

    @property
    def share_kept(self) -> float:
        """The share by which the entries that a mask keeps are divided."""
        return max(1 - self.rate, 2.0**-16)


# The arguments are those of PyTorch's functions, by name or by place.
def _dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,  # noqa: FBT001, FBT002 - PyTorch's own
    *_: Any,
    **__: Any,
) -> Call | None:
    return Call("mask", tuple(input.shape), p) if training and p > 0 else None


def _channels(input: Tensor, *given: Any, **named: Any) -> Call | None:
    whole = _dropout(input, *given, **named)
    return whole and replace(whole, shape=(*input.shape[:2], *[1] * (input.dim() - 2)))


def _uniform(input: Tensor, **_: Any) -> Call:
    return Call("uniform", tuple(input.shape))


def _normal(input: Tensor, **_: Any) -> Call:
    return Call("normal", tuple(input.shape))


SERVED: dict[Any, Callable[..., Call | None]] = {
    functional.dropout: _dropout,
    functional.dropout1d: _channels,
    functional.dropout2d: _channels,
    functional.dropout3d: _channels,
    torch.rand_like: _uniform,
    torch.randn_like: _normal,
}


class Given(TorchFunctionMode):
    """Replace a module's random numbers by those given; if none are given, record the calls."""

    def __init__(self, numbers: Sequence[Tensor] | None = None) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.numbers: Iterator[Tensor] | None = None if numbers is None else iter(numbers)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Answer a call for random numbers; other calls are unchanged."""
        kwargs = kwargs or {}
        if func in SERVED:
            call = SERVED[func](*args, **kwargs)
            given = args[0] if args else kwargs["input"]
            if call is None:
                return given
            self.calls.append(call)
            if self.numbers is None:
                return given if call.kind == "mask" else torch.zeros_like(given)
            found = next(self.numbers)
            return given * found.to(given.dtype) if call.kind == "mask" else found.to(given.dtype)
        if self.numbers is not None:
            return func(*args, **kwargs)
        before = torch.get_rng_state()
        found = func(*args, **kwargs)
        if not torch.equal(before, torch.get_rng_state()):
            torch.set_rng_state(before)
            name = getattr(func, "__name__", str(func))
            raise UserError(
                f"The module calls {name}, which draws random numbers of its own: the run could "
                "not be made again. Use nn.Dropout, torch.rand_like or torch.randn_like, or set "
                "its dropout to 0."
            )
        return found


def note_calls(module: nn.Module, x: Tensor) -> list[Call]:
    """Return the calls for random numbers that a module in training mode makes on a full batch.

    What the pass changes of the module, such as running means, is set back.
    """
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    module.train()
    with torch.no_grad(), Given() as noted:
        module(x)
    with torch.no_grad():
        for name, buffer in module.named_buffers():
            buffer.copy_(before[name])
    return list(noted.calls)


def draw_numbers(
    calls: Sequence[Call],
    seeds: Sequence[int],
    step: int,
    *,
    full: int,
    examples: int,
    device: Device = CPU,
) -> list[Tensor]:
    """Draw the numbers of one step, each (run, *shape).

    The calls were noted on a batch of `full` examples; a shorter one takes the first rows.
    """
    found = []
    for place, call in enumerate(calls):
        name = f"module/{place}"
        drawn = (
            _on_host(call, seeds, name, step)
            if device.host
            else _on(device, call, seeds, name, step)
        )
        numbers = drawn.view(len(seeds), *call.shape)
        short = examples < full and call.shape[:1] == (full,)
        found.append(numbers[:, :examples] if short else numbers)
    return found


def _on_host(call: Call, seeds: Sequence[int], name: str, step: int) -> Tensor:
    """Draw the numbers of one call by NumPy, shape (run, number)."""
    streams, size = Streams(seeds, name), math.prod(call.shape)
    first = step * call.words
    if call.kind == "mask":
        words = streams.words(first, call.words)
        lanes = words.astype("<u8").view("<u2")[:, :size]
        kept = lanes >= call.drop_below
        return torch.from_numpy(kept.astype(np.float32) / np.float32(call.share_kept))
    draw = streams.uniforms if call.kind == "uniform" else streams.normals
    return torch.from_numpy(draw(first, size).astype(np.float32))


def _on(device: Device, call: Call, seeds: Sequence[int], name: str, step: int) -> Tensor:
    """Draw the same numbers by the device itself."""
    if call.kind == "normal" and device.kind == "mps":  # which has no float64
        return device.take(_on_host(call, seeds, name, step))
    streams, size = device_streams(tuple(seeds), name, device), math.prod(call.shape)
    first = step * call.words
    if call.kind == "mask":
        kept = streams.lanes(first, size) >= call.drop_below
        return kept.float() / float(np.float32(call.share_kept))
    draw = streams.uniforms if call.kind == "uniform" else streams.normals
    return draw(first, size)
