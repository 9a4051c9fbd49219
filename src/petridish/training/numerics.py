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

    convolutions = torch.backends.cudnn
    before = convolutions.benchmark
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    memory: Any = torch.utils.deterministic  # its setting is no attribute that mypy sees
    filled = memory.fill_uninitialized_memory
    convolutions.benchmark = False
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    memory.fill_uninitialized_memory = False  # nothing reads it before a write
    try:
        with _whole_float32():
            yield
    finally:
        convolutions.benchmark = before
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        memory.fill_uninitialized_memory = filled


@contextmanager
def _whole_float32() -> Iterator[None]:
    """Switch TF32 off by PyTorch's older and newer switches; a caller may have set either.

    Where they disagree PyTorch refuses to read the older ones, and some kernels refuse to run.
    """
    import torch

    places: Any = torch.backends
    products, convolutions = places.cuda.matmul, places.cudnn
    older = _older_switches()
    newer: list[Any] = []
    if hasattr(places, "fp32_precision"):
        newer = [places, convolutions, products, convolutions.conv, convolutions.rnn]
    in_force, own = [place.fp32_precision for place in newer], []
    for place in newer:  # the outer first: an inner one that is "none" follows it
        own.append(place.fp32_precision)
        place.fp32_precision = "none"
    products.allow_tf32 = convolutions.allow_tf32 = False
    for place in newer[2:]:
        place.fp32_precision = "ieee"
    try:
        yield
    finally:
        # These set the newer ones too.
        torch.set_float32_matmul_precision(older[0])
        convolutions.allow_tf32 = older[1]
        for place, value, before in zip(newer, own, in_force, strict=True):
            place.fp32_precision = value
            if place.fp32_precision != before:  # a default gives way to an outer switch once
                place.fp32_precision = before


def _older_switches() -> tuple[str, bool]:
    """Return PyTorch's older switches of matrix products and of convolutions.

    One that cannot be read is the opposite of the newer one.
    """
    import torch

    places: Any = torch.backends
    try:
        products = torch.get_float32_matmul_precision()
    except RuntimeError:
        products = "highest" if places.cuda.matmul.fp32_precision == "tf32" else "high"
    try:
        convolutions = bool(places.cudnn.allow_tf32)
    except RuntimeError:
        convolutions = places.cudnn.conv.fp32_precision != "tf32"
    return products, convolutions
