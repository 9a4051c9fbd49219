"""One setting of the floating-point libraries under which a run's result is its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


def pin_kernels() -> None:
    """Ask the linear-algebra library for one order of summation, wherever a matrix lies in memory.

    Without it MKL chooses a kernel by a matrix's alignment, and a run's rounding would depend on
    its place in the stack. It reads the setting at its first call in the process: call this before.
    """
    os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")


@contextmanager
def settled() -> Iterator[None]:
    """Compute with one thread and without denormal numbers; the caller's settings come back.

    A run that fails decays like (1 − ηλ)^t; once its weights are denormal, each operation on them
    costs a hundred times more.
    """
    pin_kernels()
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)
