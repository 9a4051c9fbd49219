"""What a stack takes of a device's memory: predicted, or measured where it cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from petridish.models import MLP
from petridish.tasks import SparseParity
from petridish.training import Data, RunSpec, Silent
from petridish.training.device_memory import Tracked, memory_of_stacks, step_bytes
from petridish.training.engines.torch import TorchStack
from tests.own_parts import RampLoss
from tests.test_contracts import RUNS
from tests.test_devices import HERE, SMALL


def test_memory_is_measured_where_it_cannot_be_predicted() -> None:
    """By steps on the CPU: about what the same loss takes that asks for nothing."""
    measured, predicted = (
        memory_of_stacks(replace(SMALL, training=replace(SMALL.training, loss=RampLoss(asks=asks))))
        for asks in (True, False)
    )

    assert measured == pytest.approx(predicted, rel=0.2)


def test_no_weights_are_drawn_to_predict_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have shapes alone: a network of two gigabytes is predicted at once."""
    monkeypatch.setattr(
        "petridish.training.engines.stack.initial_weights", lambda _: pytest.fail("drawn")
    )
    _, each = memory_of_stacks(replace(SMALL, model=MLP(50_000, deeper=(10_000,))))

    assert each > 2e9


def test_the_smallest_network_takes_some_memory() -> None:
    """Rounded allocations of one and of three runs are equal; a stack is not endless for that."""
    tiny = replace(
        SMALL,
        task=SparseParity(4, 1),
        data=Data(m=4, n_test=4),
        model=MLP(1),
        training=replace(SMALL.training, batch_size=1),
    )

    assert memory_of_stacks(tiny)[1] >= 512


@pytest.mark.parametrize("spec", [SMALL, RUNS["waves"], RUNS["images"]], ids=lambda s: s.task.name)
def test_memory_is_predicted_without_numbers(spec: RunSpec) -> None:
    """A fake run of a stack of nine counts what the real one takes; so do two smaller ones."""
    nine = [replace(spec, seed=seed) for seed in range(9)]
    bare = replace(spec.evaluation, curves=False, instruments=())
    with Tracked("cpu") as real:
        stack = TorchStack([replace(each, evaluation=bare) for each in nine], HERE)
        stack.advance(0, 2, Silent())
    fixed, each = memory_of_stacks(spec)

    assert step_bytes(nine, HERE) == pytest.approx(real.peak, rel=0.1)
    assert fixed + 9 * each == pytest.approx(real.peak, rel=0.15)


def test_what_is_counted_is_what_the_allocator_gives() -> None:
    """PyTorch's own profile of the CPU's memory, beside ours."""
    spec = replace(SMALL, model=MLP(400), training=replace(SMALL.training, batch_size=64))
    stack = TorchStack([replace(spec, seed=seed) for seed in range(4)], HERE)
    stack.advance(0, 1, Silent())
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        stack.advance(1, 1, Silent())
    with Tracked("cpu") as ours:
        stack.advance(2, 1, Silent())
    now, peak = 0, 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            peak = max(peak, now)

    assert ours.peak == pytest.approx(peak, rel=0.1)
