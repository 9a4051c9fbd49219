"""Memory is estimated from a spec, before anything is drawn or built."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

from petridish.cli.main import run_command
from petridish.models import MLP
from petridish.sweeps.batches import check_all, cut
from petridish.tasks import Classes, Domain, Reals, SparseParity
from petridish.tasks.dictionary import Dictionary
from petridish.training import Adam, Data, Evaluation, Held, RunSpec, Training
from petridish.training.memory import check_memory, in_words, n_weights, total_memory
from tests.faults import refused

SMALL = RunSpec(task=SparseParity(50, 3), data=Data(m=100, n_test=100), model=MLP(10))


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let there be 16 GB, or as much as a test asks for."""

    def let_there_be(n_bytes: float) -> None:
        for room in ("training.memory", "sweeps.batches"):
            monkeypatch.setattr(f"petridish.{room}.total_memory", lambda: n_bytes)

    let_there_be(16e9)
    return let_there_be


HUGE = {
    "width": (
        replace(SMALL, model=MLP(10**9)),
        "This run needs about 832 GB of memory, 832 GB of it for the weights of mlp(1000000000) on "
        "sparse_parity(50, 3), and there is 16 GB. Give a smaller model, or a task with fewer "
        "inputs.",
    ),
    "n": (
        replace(SMALL, task=SparseParity(10**9, 3)),
        "This run needs about 326 GB of memory, 160 GB of it for the weights of mlp(10) on "
        "sparse_parity(1000000000, 3), and there is 16 GB. Give a smaller model, or a task with "
        "fewer inputs.",
    ),
    "m": (
        replace(SMALL, data=Data(m=4e9)),
        "This run needs about 72 GB of memory, 72 GB of it for the training sample, and there is "
        "16 GB. Lower data.m.",
    ),
    "n_test": (
        replace(SMALL, data=Data(n_test=10**13)),
        "This run needs about 90 TB of memory, 90 TB of it for the held-out sample, and there is "
        "16 GB. Lower data.n_test.",
    ),
    "batch": (
        replace(SMALL, training=Training(batch_size=10**9)),
        "This run needs about 240 GB of memory, 240 GB of it for one step's batch, and there is "
        "16 GB. Lower training.batch_size.",
    ),
    "whole sample": (
        replace(SMALL, data=Data(m=10**9), training=Training(batch_size=None)),
        "This run needs about 258 GB of memory, 240 GB of it for one step's batch, and there is "
        "16 GB. Give training.batch_size.",
    ),
    "another sample": (
        replace(SMALL, evaluation=Evaluation(samples=(Held("far", SparseParity(50, 3), 10**10),))),
        "This run needs about 90 GB of memory, 90 GB of it for the sample 'far', and there is "
        "16 GB. Lower its n in evaluation.samples.",
    ),
}


@pytest.mark.parametrize("what", HUGE)
def test_a_run_that_cannot_fit_is_refused(what: str) -> None:
    """At once: nothing is drawn."""
    spec, sentence = HUGE[what]

    assert refused(lambda: cut([spec], engine="auto", jobs=1)) == sentence


def test_the_command_line_says_so_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And ends with code 2."""
    options = ["--scale", "smoke", "--set", "r=1e9", "--store", str(tmp_path)]

    assert run_command(["run", "PF-1", *options]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("petridish: This run needs about ")
    assert line.endswith("and there is 16 GB. Give a smaller model, or a task with fewer inputs.")


def test_every_size_of_a_sweep_is_checked() -> None:
    """Also where the first run of a grid is small."""
    large = replace(SMALL, data=Data(m=4e9, n_test=100))

    assert refused(lambda: cut([SMALL, large], engine="torch", jobs=1)) == HUGE["m"][1]
    assert refused(check_all, [SMALL, large]) == HUGE["m"][1]
    assert len(check_all([SMALL, large], here=False)) == 2  # a plan, on a smaller machine


@dataclass(frozen=True)
class Layer:
    """One layer as a module."""

    name: ClassVar[str] = "layer"
    width: int
    numbers: bool = False

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Return the layer, after a look at its numbers if they are asked for."""
        first = nn.Linear(domain.n_inputs, self.width)
        if self.numbers:
            first.bias.detach().sum().item()
        return nn.Sequential(first, nn.Linear(self.width, 1))


def test_a_module_is_counted_without_being_made() -> None:
    """As far as it can be built without numbers; what cannot is known when it is built."""
    domain = Domain(Reals((50,)), Classes(2))

    assert n_weights(Layer(10**9), domain, 1) == 52 * 10**9 + 1
    assert n_weights(Layer(10, numbers=True), domain, 1) == 0
    assert torch.ones(1).device.type == "cpu"
    assert refused(replace(SMALL, model=Layer(10**9)).check) == (
        "This run needs about 832 GB of memory, 832 GB of it for the weights of layer(1000000000) "
        "on sparse_parity(50, 3), and there is 16 GB. Give a smaller model, or a task with fewer "
        "inputs."
    )


def test_an_estimate_by_hand() -> None:
    """Samples, the training sample with a copy, weights with the memory of Adam, and one batch."""
    spec = RunSpec(
        task=Dictionary(20, 10, 3),
        data=Data(m=1000, n_test=100),
        model=MLP(8),
        training=Training(optimiser=Adam(), precision="float64", batch_size=10),
    )
    weights = 8 * 20 + 8 + 8 + 1
    example = 4 * 20 + 1

    assert check_memory(spec) == 4 * 8 * weights + (2 * 1000 + 100) * example + 8 * 10 * 20
    assert total_memory() > 0
    assert [in_words(n) for n in (1500, 2.5e9, 3e15)] == ["1.5 kB", "2.5 GB", "3,000 TB"]


def test_runs_that_fit_alone_are_stacked_as_memory_allows(memory: Any) -> None:
    """Smaller stacks with less memory, down to single runs."""
    specs = [replace(SMALL, data=Data(m=10**6), seed=seed) for seed in range(32)]
    each = check_memory(specs[0])

    def sizes() -> list[int]:
        return [len(batch.specs) for batch in cut(specs, engine="torch", jobs=2)]

    assert sizes() == [16, 16]
    memory(2 * 3 * 4.5 * each)
    assert sizes() == [4] * 8
    memory(2.5 * each)
    assert sizes() == [1] * 32


def test_workers_that_do_not_fit_beside_each_other(memory: Any) -> None:
    """Before they begin, with the number that does."""
    specs = [replace(SMALL, data=Data(m=10**9), seed=seed) for seed in range(8)]
    memory(40e9)

    assert refused(lambda: cut(specs, engine="torch", jobs=4)) == (
        "4 runs at a time need about 72 GB of memory, and there is 40 GB. Give --jobs 2."
    )
    assert len(cut(specs, engine="torch", jobs=2)) == 8
