"""One thread per piece of work, so that the number of threads changes no bit of a result."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from petridish.training.numerics import pin_kernels

pin_kernels()  # as early as can be: it counts for nothing once PyTorch has multiplied matrices


class _Threads:
    """PyTorch's number of threads, set to one while any stack computes, and restored afterwards."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._usual = 1

    @contextmanager
    def one_each(self) -> Iterator[int]:
        """Yield the number of threads that may work, each computing alone."""
        pin_kernels()
        with self._lock:
            if self._inside == 0:
                self._usual = torch.get_num_threads()
                torch.set_num_threads(1)
            self._inside += 1
        try:
            yield self._usual
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    torch.set_num_threads(self._usual)


THREADS = _Threads()  # one per process, as PyTorch's setting is
