"""Whole runs of the engine `reference` on fake CUDA tensors; carried out by `tests.fake_cuda`.

The oracle may ask for numbers at every step, and does so in `training.devices.on_host` alone. What
it must not do is mix devices, or ask anywhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from petridish.models.parameters import build
from petridish.training import RunSpec, Silent, load_engine
from petridish.training.device_memory import without_numbers
from petridish.training.devices import CPU, with_numbers
from petridish.training.engines import reference
from petridish.training.noise import Call, note_calls
from petridish.training.numerics import dtype_of
from tests.fake_cuda import GPU, ON_HOST, Watch, reading_on_host


class Asked(Watch):  # type: ignore[no-untyped-call] # PyTorch has no types
    """Lets the host ask its own tensors for numbers, such as the count of steps of an optimiser."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Look at an operation, and carry it out."""
        if func.overloadpacket.__name__ == "_local_scalar_dense" and args[0].device.type == "cpu":
            return 1.0 if args[0].is_floating_point() else 1
        return super().__torch_dispatch__(func, types, args, kwargs)


def on_the_device(network: nn.Module) -> nn.Module:
    """Replace a module's weights and buffers by ones on the device that have no numbers."""
    for part in network.modules():
        for name, weight in part._parameters.items():
            if weight is not None:
                fake = torch.empty(weight.shape, dtype=weight.dtype, device=GPU.name)
                part._parameters[name] = nn.Parameter(fake, requires_grad=weight.requires_grad)
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = torch.empty(buffer.shape, dtype=buffer.dtype, device=GPU.name)
    return network


def problem(spec: RunSpec, change: Callable[[Tensor], Tensor] = lambda loss: loss) -> str:
    """Return what is wrong with three steps and the evaluations; nothing if all is well.

    A `change` of the loss is made at every step: a fault that must be found.
    """
    spec = replace(spec, training=replace(spec.training, steps=3))
    build_network: Any = reference._network
    loss_of: Any = type(spec.training.loss).__call__

    def network(of: RunSpec, _: Any) -> nn.Module:
        with with_numbers():
            made: nn.Module = build_network(of, CPU)
        return on_the_device(made)

    def calls(_: nn.Module, x: Tensor) -> list[Call]:
        with with_numbers(), torch.device("cpu"):
            plain = build(spec.model, spec.domain, spec.n_outputs, spec.luck).to(dtype_of(spec))
            return note_calls(plain, torch.zeros(x.shape, dtype=x.dtype))

    try:
        with without_numbers(), Asked() as entered, reading_on_host(entered):
            watch: Asked = entered
            with (
                patch.object(reference, "_network", network),
                patch.object(reference, "note_calls", calls),
                patch.object(reference, "on_host", watch.on_host),
                patch.object(
                    type(spec.training.loss),
                    "__call__",
                    lambda rule, outputs, labels: change(loss_of(rule, outputs, labels)),
                ),
            ):
                (record,) = load_engine("reference").run([spec], Silent(), GPU)
        assert record.device == GPU.name
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    return ""


def faults() -> dict[str, str]:
    """Return what becomes of faults that must be found."""
    from tests.test_contracts import RUNS

    changes: dict[str, Callable[[Tensor], Tensor]] = {
        "a number is asked for in reference": lambda loss: loss * loss.sum().item(),
        "a tensor of the host in reference": lambda loss: loss + ON_HOST,
    }
    return {name: problem(RUNS["parity"], change) for name, change in changes.items()}
