"""Steps and evaluations on fake CUDA tensors, in a process of its own.

    python -m tests.fake_cuda LIBRARY      print what went wrong in each case, as JSON

The library (`tests/native/pretended_cuda.cpp`) is loaded before PyTorch, which then believes that
there is a GPU; tensors on it have shapes and no numbers. So a step fails that mixes devices, that
asks for a number, or that uses an operator which CUDA lacks. An evaluation fails too, unless it
asks for its numbers in `training.devices.on_host`, which here returns some of the right shape:
instruments and records read those, on the host, as they do beside a real device.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from unittest.mock import patch

if __name__ == "__main__" and len(sys.argv) > 1:
    ctypes.CDLL(sys.argv[1])

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from petridish.training import (
    Instrument,
    Reading,
    RunSpec,
    Silent,
    load_engine,
    updates,
)
from petridish.training import evaluator as evaluators
from petridish.training.device_draws import Drawn
from petridish.training.device_memory import without_numbers
from petridish.training.devices import Device, with_numbers
from petridish.training.engines import stack as stacks
from petridish.training.engines.torch import TorchStack
from petridish.training.evaluator import StackState
from petridish.training.readings import Gauges
from tests.fake_cuda_cases import cases, more_runs, with_instruments

GPU = Device("cuda:0", host=False)
ON_HOST = torch.ones(1)
RUNS = 3
READ: set[str] = set()  # the instruments that found a number in some case
# Operators that PyTorch's page on `use_deterministic_algorithms` names as having no deterministic
# form on CUDA.
NOT_DETERMINISTIC = (
    *("cumsum", "bincount", "histc", "kthvalue", "median", "scatter_reduce"),
    *("adaptive_avg_pool", "adaptive_max_pool", "avg_pool3d", "max_pool3d", "fractional_max_pool"),
    *("max_unpool", "upsample", "grid_sampler", "reflection_pad", "replication_pad"),
    *("nll_loss2d", "ctc_loss", "embedding_bag"),
)


class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call] # PyTorch has no types
    """Counts copies between the host and the device, and refuses operations across the two."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # nor here
        self.copies = 0
        self.largest = 0  # numbers in a copy to the device
        self.reading = False  # whether an instrument is at work
        self.read: set[str] = set()  # the instruments that found a number
        self.asked = False  # whether an evaluation is asking for numbers where it may
        self.to_host = 0  # copies to the host that were made elsewhere
        self.names: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Look at an operation, and carry it out."""
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        name = func.overloadpacket.__name__
        if self.reading and any(each.device.type == "cuda" for each in given):
            raise AssertionError(f"an instrument gives {name} a tensor of the device")
        found = func(*args, **(kwargs or {}))
        made = [each for each in tree_leaves(found) if isinstance(each, torch.Tensor)]
        if any(each.device.type == "cuda" for each in made):
            self.names.add(name)
        # A number of the host, such as a learning rate, goes along with the call.
        kinds = {
            each.device.type for each in (*given, *made) if each.device.type != "cpu" or each.dim()
        }
        if len(kinds) > 1:
            if name not in ("_to_copy", "copy_"):
                raise AssertionError(f"{name} takes tensors of both {' and '.join(sorted(kinds))}")
            self.copies += 1
            lies = [each.numel() for each in made if each.device.type == "cuda"]
            self.largest = max(self.largest, *lies, 0)
            self.to_host += not self.asked and all(each.device.type == "cpu" for each in made)
        return found

    def on_host(self, tensor: Tensor) -> NDArray[Any]:
        """Return positive numbers of a tensor's shape and type, in place of those it has not."""
        self.asked = True
        there = tensor.detach().cpu()
        self.asked = False
        numbers = np.random.default_rng(0).uniform(0.5, 1.5, tuple(there.shape))
        exact = numbers if there.is_floating_point() else np.ones(numbers.shape)
        return exact.astype(str(there.dtype).removeprefix("torch."))

    def second_failed(self, tensor: Tensor) -> NDArray[Any]:
        """Return what is true of every run but the second."""
        found = self.on_host(tensor)
        found[:, 1] = False
        return found


class Steps(Silent):
    """Notes how many copies there have been after each step."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.copies: list[int] = []

    def stepped(self, model_steps: int) -> None:
        """Note them."""
        self.copies.append(self.watch.copies)


@contextmanager
def reading_on_host(watch: Watch) -> Iterator[None]:
    """Let instruments read numbers of the host, and nothing of the device."""
    read: Any = Gauges.read

    def with_those(*given: Any) -> None:
        watch.reading = True
        with with_numbers():  # what an instrument makes of them lies on the host
            read(*given)
        watch.reading = False

    with patch.object(Gauges, "read", with_those):
        yield


@contextmanager
def asking(watch: Watch) -> Iterator[None]:
    """Let evaluations have numbers of the host where they ask for them, and instruments read."""
    with (
        patch.object(stacks, "on_host", watch.on_host),
        patch.object(evaluators, "on_host", watch.on_host),
        reading_on_host(watch),
    ):
        yield


def steps(spec: RunSpec) -> Watch:
    """Take three steps in one go, measure every metric, let a run diverge, and end the others.

    The copies that are counted in the end are those of the last two steps.
    """
    specs = [replace(spec, seed=seed) for seed in range(RUNS)]
    with without_numbers(), Watch() as entered, asking(entered):
        watch: Watch = entered
        stack, noted = TorchStack(specs, GPU), Steps(watch)
        watch.largest = 0
        assert stack.advance(0, 3, noted) == 3
        if not spec.data.online and watch.largest >= 3 * RUNS * spec.examples_per_step:
            raise AssertionError(f"{watch.largest} numbers are copied for three steps")
        assert not list(stack.drop_diverged(0))
        assert {each.device.type for each in (*stack.weights, stack.recent)} == {"cuda"}
        now = StackState(stack.specs, stack.rows, stack.weights)
        for name in dict.fromkeys(metric.on for metric in spec.curve_metrics):
            metrics = [metric for metric in spec.curve_metrics if metric.on == name]
            sums, counts = stack.evaluator.sums(now, [0, 2], name, metrics, 0, 7)
            assert {sums.device.type, counts.device.type} == {"cuda"}
        with (
            patch.object(stacks, "holds", lambda _, usual: not usual),
            patch.object(stacks, "on_host", watch.second_failed),
        ):
            (diverged,) = stack.drop_diverged(0)
        assert (diverged.spec.seed, diverged.steps) == (1, 1)
        stack.advance(3, 1, Silent())
        ended = list(stack.evaluate(4))
        if stack.specs:
            ended += stack.evaluate(spec.training.steps)
        assert [record.spec.seed for record in ended] == [0, 2]
        for each in spec.evaluation.gauges:
            curves = ended[0].curves
            found: Any = curves.arrays.get(each.label) or curves.values[each.label]
            if np.isfinite(found[-1]).any():
                watch.read.add(each.name)
        watch.copies = noted.copies[-1] - noted.copies[0]
    return watch


def problem(spec: RunSpec, *, ours: bool) -> str:
    """Return what is wrong with a run's steps on a device, nothing if all is well."""
    try:
        watch = steps(spec)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    if watch.copies:
        return f"{watch.copies} copies in two steps"
    if watch.to_host:
        return f"{watch.to_host} copies to the host at an evaluation, beside those of on_host"
    READ.update(watch.read)
    loose = [name for name in watch.names if any(part in name for part in NOT_DETERMINISTIC)]
    return f"not deterministic: {loose}" if ours and loose else ""


@dataclass(frozen=True)
class OfTheStack(Instrument):
    """What no instrument may be: one that reads the outputs where the stack lies."""

    name: ClassVar[str] = "of_the_stack"
    outputs: ClassVar[list[Tensor]] = []

    def read(self, reading: Reading) -> float:
        """Return their sum."""
        return float((self.outputs[-1] + torch.ones(1)).sum())


def faults() -> dict[str, Callable[[], str]]:
    """Return cases that must fail: what the others would look like if the watch were blind."""
    from tests.test_contracts import RUNS as CONTRACTS

    spec = CONTRACTS["parity"]

    def noted(outputs: Tensor) -> Tensor:
        OfTheStack.outputs.append(outputs)
        return outputs

    def with_forward(change: Callable[[Any], Any], spec: RunSpec = spec) -> str:
        kind: Any = type(spec.model)
        plain: Any = kind.forward
        kind.forward = lambda self, weights, x: change(plain(self, weights, x))
        try:
            return problem(spec, ours=True)
        finally:
            kind.forward = plain

    def with_a_change(room: Any, name: str, change: Callable[..., Any], spec: RunSpec) -> str:
        plain: Any = getattr(room, name)
        with patch.object(room, name, lambda *given: plain(*(change(*given) or given))):
            return problem(spec, ours=True)

    def drawn_here(drawn: Drawn, rows: Any, first: Any, step: int, steps: int) -> None:
        drawn.device.take(torch.zeros(len(rows), steps, drawn.batch))

    runs = more_runs()
    clip = runs["clip"]
    return {
        "a number is asked for to clip": lambda: with_a_change(
            updates,
            "clipped",
            lambda gradients, _: gradients[0].norm().item() is None or None,
            clip,
        ),
        "an array of the device": lambda: with_a_change(
            stacks.Stack,
            "drop_diverged",
            lambda stack, _: stack.recent.numpy() is None or None,
            spec,
        ),
        "all losses are copied": lambda: with_a_change(
            stacks.Stack, "drop_diverged", lambda stack, _: stack.recent.cpu() is None or None, spec
        ),
        "a tensor of the host in a module": lambda: with_a_change(
            nn.Linear, "forward", lambda part, x: (part, x + ON_HOST), runs["bare head"]
        ),
        "minibatches of the host": lambda: with_a_change(Drawn, "places", drawn_here, spec),
        "a number is asked for": lambda: with_forward(lambda f: f * f.sum().item()),
        "a tensor of the host": lambda: with_forward(lambda f: f + torch.ones(f.shape)),
        "an index of the host": lambda: with_forward(lambda f: f[torch.arange(len(f))]),
        "a copy in every step": lambda: with_forward(
            lambda f: f + torch.ones(f.shape).to(f.device)
        ),
        "an operator without order": lambda: with_forward(lambda f: f.cumsum(1)),
        "a copy in an evaluation": lambda: with_forward(
            lambda f: f if torch.is_grad_enabled() else f.cpu().to(f.device)
        ),
        "a reading on the device": lambda: with_forward(
            noted, with_instruments(spec, OfTheStack())
        ),
    }


def main() -> None:
    """Carry out every case that the engine does not refuse, then the same by `reference`."""
    from tests import fake_reference

    engine, oracle = load_engine("torch"), load_engine("reference")
    given = cases()
    found = {
        name: problem(spec, ours=ours)
        for name, (spec, ours) in given.items()
        if engine.refusal(spec) is None
    }
    whole = {
        name: fake_reference.problem(spec)
        for name, (spec, _) in given.items()
        if oracle.refusal(spec) is None
    }
    wrong = {name: find() for name, find in faults().items()} | fake_reference.faults()
    said = {"cases": found, "reference": whole, "faults": wrong, "read": sorted(READ)}
    print(json.dumps(said))


if __name__ == "__main__":
    main()
