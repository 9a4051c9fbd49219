"""The memory of a run, estimated from its spec before anything is drawn or built."""

from __future__ import annotations

import math
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from petridish.choices import describe
from petridish.errors import UserError
from petridish.models import FitsItself, Model, Stacked
from petridish.seeds import n_words
from petridish.tasks.domain import Bits, Classes, Domain, OneHot, Reals
from petridish.training.optimisers import SGD

if TYPE_CHECKING:
    from petridish.training.spec import RunSpec

LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
IN_BLOCKS = 1024  # examples of a batch, up to which the native engine computes it piece by piece
DRAWN = 16  # bytes of a number while it is drawn: a random word, and a float64
COPIES = 2  # of a training sample while it is drawn: 17 and 33 bytes per example of 8 and 100 bits
IN_USE = 3  # a run in a stack uses up to this multiple: copies, what is drawn, activations


@lru_cache(maxsize=1)
def total_memory() -> float:
    """Return the bytes of memory that this process may use; ∞ if the system does not tell."""
    found = [math.inf]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in map(Path, LIMITS):  # of a container
        if path.is_file() and (text := path.read_text().strip()).isdigit():
            found.append(int(text))
    return min(found)


def fits(spec: RunSpec) -> bool:
    """Return whether a run fits into memory, about."""
    return sum(memory_parts(spec).values()) <= total_memory()


def check_memory(spec: RunSpec, there: float | None = None) -> float:
    """Return the bytes that a run needs, about; refuse one that needs more than there are.

    `there` are the bytes of the worker that will carry it out; this machine's if not given.
    """
    parts, there = memory_parts(spec), total_memory() if there is None else there
    total = sum(parts.values())
    if total > there:
        most = max(parts.values())
        too_large = (part for part in parts.items() if part[1] > there or part[1] == most)
        (what, remedy), most = next(too_large)
        raise UserError(
            f"This run needs about {in_words(total)} of memory, {in_words(most)} of it for "
            f"{what}, and there is {in_words(there)}. {remedy}"
        )
    return total


def memory_parts(spec: RunSpec) -> dict[tuple[str, str], float]:
    """Return the bytes of each part of a run, by what it is and how to lower it."""
    data, training, domain = spec.data, spec.training, spec.domain
    number = 8 if training.precision == "float64" else 4
    parts: dict[tuple[str, str], float] = {}
    if not isinstance(spec.model, FitsItself):
        optimiser = training.optimiser
        copies = 2 + ((optimiser.momentum > 0) if isinstance(optimiser, SGD) else 2)
        weights = f"the weights of {describe(spec.model)} on {describe(spec.task)}"
        parts[weights, "Give a smaller model, or a task with fewer inputs."] = max(
            number * copies, DRAWN
        ) * n_weights(spec.model, domain, spec.n_outputs)
        values = domain.n_inputs
        if isinstance(spec.model, Stacked) and spec.examples_per_step > IN_BLOCKS:
            values += max(parameter.fan_out for parameter in spec.parameters)
        batch = "Lower training.batch_size." if training.batch_size else "Give training.batch_size."
        parts["one step's batch", batch] = float(number * spec.examples_per_step * values)
    example = _input_bytes(domain) + _label_bytes(domain)
    parts["the held-out sample", "Lower data.n_test."] = float(data.n_test * example)
    if not data.online:
        parts["the training sample", "Lower data.m."] = data.m * COPIES * example
    for held in spec.evaluation.samples:
        what = f"the sample {held.name!r}", "Lower its n in evaluation.samples."
        parts[what] = float(held.n * (_input_bytes(held.task.domain) + _label_bytes(domain)))
    return parts


@lru_cache(maxsize=256)
def n_weights(model: Model, domain: Domain, n_outputs: int) -> float:
    """Count the weights of a model; a module's on PyTorch's device that holds no numbers.

    0 of a module that cannot be built there: its weights are not known before it is.
    """
    if isinstance(model, Stacked):
        return float(sum(parameter.size for parameter in model.parameters(domain, n_outputs)))
    import torch

    try:
        with torch.device("meta"):
            return float(sum(p.numel() for p in model.build(domain, n_outputs).parameters()))
    except Exception:  # a real fault is reported when it is built
        return 0.0


def _input_bytes(domain: Domain) -> int:
    """Return the bytes of an input as a sample keeps it."""
    inputs = domain.inputs
    if isinstance(inputs, Bits):
        return 8 * n_words(inputs.n)
    if isinstance(inputs, OneHot):
        return 8 * inputs.ones
    return (4 if isinstance(inputs, Reals) else 8) * inputs.n


def _label_bytes(domain: Domain) -> int:
    size = math.prod(domain.target.shape)
    return size if isinstance(domain.target, Classes) else 4 * size


def in_words(n_bytes: float) -> str:
    """Write a number of bytes, such as 1.5 GB."""
    for unit in ("kB", "MB", "GB", "TB"):
        n_bytes /= 1000
        if n_bytes < 1000 or unit == "TB":
            break
    return f"{n_bytes:.3g} {unit}" if n_bytes < 1000 else f"{n_bytes:,.0f} {unit}"
