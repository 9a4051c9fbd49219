"""Where the engines `torch` and `reference` compute: the CPU, or an accelerator of PyTorch.

An accelerator's name is PyTorch's: `cuda:0` (NVIDIA, and AMD in the builds for ROCm) or `mps`
(Apple). Where a run computes is no part of its key; its record says it.
"""

from __future__ import annotations

import math
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from petridish.choices import describe
from petridish.errors import UserError
from petridish.training.memory import total_memory

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

NAMES = ("auto", "cpu", "cuda", "cuda:1", "mps")  # such as these
_KNOWN = re.compile(r"cpu|mps|cuda(:\d+)?")
_FULL = re.compile(r"out of memory|(BLAS|DNN)_STATUS_ALLOC_FAILED")


@dataclass(frozen=True)
class Device:
    """Where a stack of runs lies.

    Attributes
    ----------
    name : str
        As PyTorch calls it: `cpu`, `cuda:0`, `mps`.
    host : bool
        Whether NumPy draws what the steps need, beside PyTorch, in the order and the pieces that
        make a run's rounding independent of its stack. An accelerator draws for itself. Tests
        take its way on the CPU: ``Device("cpu", host=False)``.
    """

    name: str = "cpu"
    host: bool = True

    @property
    def kind(self) -> str:
        """The name without a number."""
        return self.name.partition(":")[0]

    @property
    def sums(self) -> torch.dtype:
        """The type in which many numbers are added up; Apple's devices have no float64."""
        import torch

        return torch.float32 if self.kind == "mps" else torch.float64

    def take(self, tensor: Tensor) -> Tensor:
        """Return a tensor as it lies on this device; unchanged if it is there."""
        if self.kind == "mps" and tensor.is_floating_point():
            tensor = tensor.float()  # it has nothing wider
        return tensor.to(self.name)

    def free_memory(self) -> float:
        """Return the bytes that may still be used; on the CPU all that there are."""
        import torch

        if self.kind == "cuda":
            return float(torch.cuda.mem_get_info(self.name)[0])
        if self.kind == "mps":
            used = torch.mps.driver_allocated_memory()
            return float(torch.mps.recommended_max_memory() - used)
        return total_memory()

    def synchronise(self) -> None:
        """Wait until all that was asked of the device is done."""
        import torch

        if self.kind == "cuda":
            torch.cuda.synchronize(self.name)
        elif self.kind == "mps":
            torch.mps.synchronize()

    def release(self) -> None:
        """Return memory that nothing uses any more to the device."""
        import torch

        if self.kind == "cuda":
            torch.cuda.empty_cache()
        elif self.kind == "mps":
            torch.mps.empty_cache()

    def describe(self) -> str:
        """Return its name and what it is, such as `cuda:0 (NVIDIA L4)`."""
        import torch

        if self.kind != "cuda":
            return self.name
        return f"{self.name} ({torch.cuda.get_device_name(self.name)})"


CPU = Device()


@lru_cache(maxsize=8)
def find_device(name: str) -> Device:
    """Return the device of a name; refuse one that is unknown or not there.

    `auto` is no device: `sweeps.placement` chooses one for every run.
    """
    if not isinstance(name, str) or not _KNOWN.fullmatch(name):
        raise UserError(f"There is no device called {name!r}. Give one of {', '.join(NAMES)}.")
    if name == "cpu":
        return CPU
    import torch

    if name == "mps":
        if not torch.backends.mps.is_available():
            raise UserError(
                "--device mps was given, and PyTorch finds no such device: it needs a Mac with "
                "Apple's own processor. Give --device cpu."
            )
        return Device("mps", host=False)
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    number = int(name.partition(":")[2] or 0)
    if number < there:
        return Device(f"cuda:{number}", host=False)
    if there:
        raise UserError(
            f"--device {name} was given, and PyTorch sees {there} such devices, the last of them "
            f"cuda:{there - 1}. Give one of these; CUDA_VISIBLE_DEVICES says which are seen."
        )
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        raise UserError(
            f"--device {name} was given, and PyTorch {torch.__version__} was built for the CPU "
            "alone. Install a build for your GPU (pytorch.org/get-started), or give --device cpu."
        )
    raise UserError(
        f"--device {name} was given, and PyTorch {torch.__version__} sees no GPU. See whether its "
        "driver is installed and what CUDA_VISIBLE_DEVICES hides, or give --device cpu."
    )


def accelerator() -> Device | None:
    """Return the first accelerator that PyTorch sees, if there is one."""
    import torch

    if torch.cuda.is_available():
        return find_device("cuda")
    return find_device("mps") if torch.backends.mps.is_available() else None


def accelerator_called(name: str) -> Device:
    """Return the accelerator of a name, with `auto` the first; refuse where there is none."""
    found = accelerator() if name == "auto" else find_device(name)
    if found is None or found.host:
        raise UserError(
            f"--device {name} was given, and an accelerator was asked for. PyTorch sees none here: "
            "name one that there is, such as cuda or mps."
        )
    return found


def is_full(error: BaseException) -> bool:
    """Return whether an error says that a device's memory does not suffice."""
    import torch

    # Apple's devices raise a plain RuntimeError; so do NVIDIA's libraries of products.
    return isinstance(error, torch.cuda.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and _FULL.search(str(error)) is not None
    )


def does_not_fit(model: object, task: object, device: Device) -> UserError:
    """Return the refusal of a run that needs more memory than a device has."""
    return UserError(
        f"A run of {describe(model)} on {describe(task)} does not fit into the memory of "
        f"{device.name}. Give --device cpu, a smaller batch size or a smaller model."
    )


def with_numbers() -> AbstractContextManager[object]:
    """Let tensors have numbers for a while, also where memory is being predicted."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    found: AbstractContextManager[object] = unset_fake_temporarily()
    return found


def holds(flag: Tensor, *, usual: bool) -> bool:
    """Return a flag's value: the host waits for the device here, and nowhere else between steps.

    Tensors without numbers, by which memory is predicted, have the usual value.
    """
    return usual if has_no_numbers(flag) else bool(flag)


def has_no_numbers(tensor: Tensor) -> bool:
    """Return whether a tensor is a shape alone: PyTorch's fake tensors."""
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(tensor, FakeTensor)


def on_host(tensor: Tensor) -> NDArray[Any]:
    """Return a tensor as an array of the host: what an evaluation needs of a device comes here.

    The weights and buffers that instruments read, those that a record keeps, and sums of metrics;
    and all numbers that the engine `reference` asks for.
    """
    found: NDArray[Any] = tensor.detach().cpu().numpy()
    return found


def is_on_host(tensor: Tensor) -> bool:
    """Return whether the numbers of a tensor can be looked at without waiting for a device."""
    import torch

    return tensor.is_cpu and type(tensor) is torch.Tensor  # fake ones are of a class of their own


def power_of_two(number: float) -> int:
    """Return the largest power of two that is at most `number`, 1 if there is none."""
    return 1 << math.floor(math.log2(max(number, 1)))
