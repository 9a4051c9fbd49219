"""Settings of the floating-point libraries under which a run does not depend on its stack."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, dtype

    from petridish.training.devices import Device
    from petridish.training.spec import RunSpec


def pin_kernels() -> None:
    """Ask the linear-algebra library for one order of summation, wherever a matrix lies in memory.

    Without it MKL chooses a kernel by a matrix's alignment, and a run's rounding would depend on
    its place in the stack. It reads the setting at its first call in the process: call this before.
    """
    os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")


def dtype_of(spec: RunSpec) -> dtype:
    """Return the type of the numbers that a run computes with."""
    import torch

    found: dtype = getattr(torch, spec.training.precision)
    return found


def with_floats(numbers: Tensor, kind: dtype) -> Tensor:
    """Return real numbers in another precision; whole ones, such as tokens, unchanged."""
    return numbers.to(kind) if numbers.is_floating_point() else numbers


@contextmanager
def settled(device: Device | None = None) -> Iterator[None]:
    """Compute with one thread and without denormal numbers; the caller's settings come back.

    A run that fails decays like (1 − ηλ)^t; once its weights are denormal, each operation on them
    costs a hundred times more. An accelerator computes as `exact` says.
    """
    pin_kernels()
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        with nullcontext() if device is None or device.host else exact():
            yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)


@contextmanager
def exact() -> Iterator[None]:
    """Let an accelerator compute products in whole float32, and sums in one order.

    NVIDIA's TF32 would round the factors of a product to 11 bits. An operator that PyTorch has in
    no deterministic form runs as it is, with PyTorch's warning: without `warn_only` a convolution
    network with adaptive pooling could not be trained.
    """
    # cuBLAS reads it when it starts; without it its sums depend on how streams meet.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    import torch

    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = (products.allow_tf32, convolutions.allow_tf32, convolutions.benchmark)
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    memory: Any = torch.utils.deterministic  # its setting is no attribute that mypy sees
    filled = memory.fill_uninitialized_memory
    products.allow_tf32 = convolutions.allow_tf32 = convolutions.benchmark = False
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    memory.fill_uninitialized_memory = False  # nothing reads it before a write
    try:
        yield
    finally:
        products.allow_tf32, convolutions.allow_tf32, convolutions.benchmark = before
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        memory.fill_uninitialized_memory = filled
