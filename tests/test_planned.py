"""Runs that wait to be carried out: what they are, and how little memory they take."""

from __future__ import annotations

import gc
import pickle
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from petridish import MLP, Data, RunSpec, SparseParity, Square, Sweep, Training
from petridish.store import Store
from petridish.sweeps import run_sweep
from petridish.sweeps.executors.base import Executor, News, Work
from petridish.sweeps.planned import Planned
from petridish.training import run_key
from petridish.training.key_set import KeySet

BASE = RunSpec(
    task=SparseParity(11, 2),
    data=Data(m=20, n_test=20),
    model=MLP(9),
    training=Training(steps=10, target_error=None, loss=Square()),
)
SWEEP = Sweep(BASE, {"seed": range(2**64 - 3, 2**64), "model.width": (7, 33), "restart": (0, 3)})


def test_planned_runs_are_the_specs_they_were_made_of() -> None:
    """In their order, with their keys, whole and in parts, and once each."""
    specs = list(SWEEP.specs())
    runs = Planned.of([*specs, *specs[::-1]])

    assert list(runs) == specs
    assert len(runs) == 12
    assert list(runs.items()) == [(run_key(spec), spec) for spec in specs]
    assert runs[5] == specs[5]
    assert list(runs[2:7]) == specs[2:7]
    assert list(runs.at([3, 1])) == [specs[3], specs[1]]
    assert pickle.loads(pickle.dumps(runs[1:4])) == tuple(specs[1:4])
    assert sorted(count for _, count in runs[:5].counted()) == [1, 1, 1, 2]


def test_planned_runs_are_divided() -> None:
    """By keys and by what their cells are; each part keeps the order."""
    specs = list(SWEEP.specs())
    runs, some = Planned.of(specs), {run_key(spec) for spec in specs[4:9]}
    inside, outside = runs.among(some)
    kept = KeySet()
    kept.add(some)
    by_width = runs[3:].grouped(lambda spec: spec.model)

    assert list(inside) == specs[4:9]
    assert list(outside) == specs[:4] + specs[9:]
    assert [list(part) for part in runs.among(kept)] == [list(inside), list(outside)]
    assert list(inside.also([outside[:2]])) == specs[4:9] + specs[:2]
    assert {model: list(part) for model, part in by_width.items()} == {
        MLP(width): [spec for spec in specs[3:] if spec.model == MLP(width)] for width in (7, 33)
    }
    assert [len(part) for part in runs[:0].among(kept)] == [0, 0]
    assert runs[:0].grouped(lambda spec: spec.model) == {}


def test_a_set_of_keys_grows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether its keys are sorted yet or came just now; it is compared as other sets are."""
    from petridish.training import key_set

    monkeypatch.setattr(key_set, "FEW", 10)
    keys = [run_key(replace(BASE, seed=seed + place)) for place in range(100)]
    zeros = ["ab" * 8 + "00" * 8, "ab" * 9 + "00" * 7]  # bytes that NumPy does not show
    found = KeySet()
    for place, key in enumerate([*keys, *zeros]):
        assert key not in found
        found.add([key, key, *keys[: place // 2]])
        assert key in found
        assert len(found) == place + 1

    assert not found ^ {*keys, *zeros}
    assert set(found) == {*keys, *zeros}
    assert found & {keys[3], "cd" * 16} == {keys[3]}
    assert found - set(keys) == set(zeros)


class Nothing(Executor):
    """Carries nothing out, and says so."""

    jobs = 2

    def run(self, work: Work) -> None:
        """Take every batch, and forget it."""
        for batch in map(work.wanted, work.batches):
            work.report(News(done=len(batch.specs)))


def test_a_million_runs_would_take_a_hundred_megabytes(tmp_path: Path) -> None:
    """Of the command's memory at its peak, by what a run more takes: there are no other costs."""
    peaks = []
    for runs in (1_000, 5_000, 25_000):  # the first loads what is needed
        sweep = Sweep(BASE, {"model.width": (7, 33), "seed": range(runs // 2)})
        gc.collect()
        tracemalloc.start()
        try:
            done = run_sweep(sweep, Store(tmp_path / str(runs)), executor=Nothing()).done
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert done == runs

    assert (peaks[2] - peaks[1]) / 20_000 < 150  # it was 600 when each waited as a spec
