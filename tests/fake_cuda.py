"""Steps and evaluations on fake CUDA tensors, in a process of its own.

    python -m tests.fake_cuda LIBRARY      print what went wrong in each case, as JSON

The library (`tests/native/pretended_cuda.cpp`) is loaded before PyTorch, which then believes that
there is a GPU; tensors on it have shapes and no numbers. So a step fails that mixes devices, that
asks for a number, or that uses an operator which CUDA lacks.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

if __name__ == "__main__" and len(sys.argv) > 1:
    ctypes.CDLL(sys.argv[1])

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from petridish.models import AttentionOnly
from petridish.tasks import MarkovChains
from petridish.training import CrossEntropy, Evaluation, RunSpec, Silent, load_engine
from petridish.training.device_memory import without_numbers
from petridish.training.devices import Device
from petridish.training.engines.torch import TorchStack
from petridish.training.evaluator import StackState

GPU = Device("cuda:0", host=False)
RUNS = 3
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
        self.names: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Look at an operation, and carry it out."""
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        found = func(*args, **(kwargs or {}))
        made = [each for each in tree_leaves(found) if isinstance(each, torch.Tensor)]
        name = func.overloadpacket.__name__
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
        return found


class Steps(Silent):
    """Notes how many copies there have been after each step."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.copies: list[int] = []

    def stepped(self, model_steps: int) -> None:
        """Note them."""
        self.copies.append(self.watch.copies)


def steps(spec: RunSpec) -> Watch:
    """Take three steps in one go, measure every metric, and let a run leave.

    The copies that are counted in the end are those of the last two steps.
    """
    specs = [replace(spec, seed=seed) for seed in range(RUNS)]
    with without_numbers(), Watch() as entered:
        watch: Watch = entered
        stack, noted = TorchStack(specs, GPU), Steps(watch)
        assert stack.advance(0, 3, noted) == 3
        assert {each.device.type for each in (*stack.weights, stack.recent)} == {"cuda"}
        now = StackState(stack.specs, stack.rows, stack.weights)
        for name in dict.fromkeys(metric.on for metric in spec.curve_metrics):
            metrics = [metric for metric in spec.curve_metrics if metric.on == name]
            sums, counts = stack.evaluator.sums(now, [0, 2], name, metrics, 0, 7)
            assert {sums.device.type, counts.device.type} == {"cuda"}
        stack._keep([0, 2])
        stack.advance(3, 1, Silent())
        watch.copies = noted.copies[-1] - noted.copies[0]
    return watch


def problem(spec: RunSpec, *, ours: bool) -> str:
    """Return what is wrong with a run's steps on a device, nothing if all is well."""
    bare = replace(spec.evaluation, instruments=(), weights=False)
    spec = replace(spec, evaluation=bare)
    try:
        watch = steps(spec)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    if watch.copies:
        return f"{watch.copies} copies in two steps"
    loose = [name for name in watch.names if any(part in name for part in NOT_DETERMINISTIC)]
    return f"not deterministic: {loose}" if ours and loose else ""


def faults() -> dict[str, Callable[[], str]]:
    """Return cases that must fail: what the others would look like if the watch were blind."""
    from tests.test_contracts import RUNS as CONTRACTS

    spec = CONTRACTS["parity"]

    def with_forward(change: Callable[[Any], Any]) -> str:
        kind: Any = type(spec.model)
        plain: Any = kind.forward
        kind.forward = lambda self, weights, x: change(plain(self, weights, x))
        try:
            return problem(spec, ours=True)
        finally:
            kind.forward = plain

    return {
        "a number is asked for": lambda: with_forward(lambda f: f * f.sum().item()),
        "a tensor of the host": lambda: with_forward(lambda f: f + torch.ones(f.shape)),
        "an index of the host": lambda: with_forward(lambda f: f[torch.arange(len(f))]),
        "a copy in every step": lambda: with_forward(
            lambda f: f + torch.ones(f.shape).to(f.device)
        ),
        "an operator without order": lambda: with_forward(lambda f: f.cumsum(1)),
    }


def cases() -> dict[str, tuple[RunSpec, bool]]:
    """Return the runs, and whether all that they use is this package's."""
    from tests.test_contracts import MEASURED
    from tests.test_contracts import RUNS as CONTRACTS
    from tests.test_engines import SPECS, on_group, spec_of

    # How a run starts is drawn on the host, whatever comes after it.
    found = {name: (spec, True) for name, spec in SPECS.items() if not name.startswith("init ")}
    chains = spec_of(
        task=MarkovChains(3, 6), model=AttentionOnly(4), training={"loss": CrossEntropy()}
    )
    found["chains"] = (chains, True)
    weighted = CrossEntropy((1.0, 2.0, 0.5, 1.0, 1.0, 3.0))
    found["weighted classes"] = (on_group(training={"loss": weighted}), True)
    found |= {f"contract {name}": (spec, False) for name, spec in CONTRACTS.items()}
    for run, metric in MEASURED:
        spec = CONTRACTS[run]
        evaluation = Evaluation(every=1, curves=True, metrics=(metric,))
        found[f"metric {metric} of {run}"] = (replace(spec, evaluation=evaluation), False)
    return found


def main() -> None:
    """Carry out every case that the engine does not refuse."""
    engine = load_engine("torch")
    found = {
        name: problem(spec, ours=ours)
        for name, (spec, ours) in cases().items()
        if engine.refusal(spec) is None
    }
    wrong = {name: find() for name, find in faults().items()}
    print(json.dumps({"cases": found, "faults": wrong}))


if __name__ == "__main__":
    main()
