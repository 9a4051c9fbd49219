"""FL-1: chains of exact steps, arms that share them, and what they show at smoke scale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from petridish.chapters.inputs.experiments import METHODS, forgetting, methods, start
from petridish.rules import Judgement
from petridish.store import Store
from petridish.sweeps import Arms, run_sweep
from petridish.sweeps.arms import arm
from petridish.tasks import Dictionary
from petridish.training import Silent, ended, load_engine, parents_of, run_key
from petridish.training.data import initial_weights, training_examples
from tests.conftest import SmokeStore

ARMS = ["network", "two step", "one step", "random features", "no structure"]
TINY = methods(
    Dictionary(8, 6, 3), m=60, width=8, steps=12, batch_size=10, seeds=2, n_test=40, rate=0.1
)


@pytest.fixture
def table(smoke_store: SmokeStore) -> pl.DataFrame:
    """Return the smoke runs."""
    return METHODS.sweep("smoke").among(Store(smoke_store("FL-1")).read(columns="all").table)


def test_every_parent_is_trained_once(tmp_path: Path) -> None:
    """Two seeds of five arms ask for 10 runs; 18 are trained.

    The 8 others are a first and a second step per seed, with structure and without. The first is
    needed by the second and by the arm «one step», the second by «network» and by «two step».
    """
    store = Store(tmp_path)
    first = run_sweep(TINY, store, executor="inline")
    again = run_sweep(TINY, store, executor="inline")

    assert (first.runs, first.done, first.parents) == (10, 18, 8)
    assert (again.done, again.skipped) == (0, 10)
    needed = [p for spec in TINY.specs() for p in parents_of(spec)]
    seconds = {run_key(p): p for p in needed if parents_of(p)}
    firsts = {
        run_key(p)
        for spec in [*seconds.values(), *TINY["one step"].specs()]
        for p in parents_of(spec)
    }
    assert (len(needed), len(seconds), len(firsts)) == (8, 4, 4)


def test_a_step_is_the_gradient_of_the_whole_sample() -> None:
    """Weights become η a_i E[y x σ'(w_i·x + b_i)], and nothing else moves."""
    run = forgetting(start(Dictionary(8, 6, 3), m=60, width=8, n_test=40), 0.5)
    w, b, a = (weight[0].astype(np.float64) for weight in initial_weights([run]))
    sample = training_examples([run], 0, 60)
    x, y = sample.x[0].astype(np.float64), 1.0 - 2.0 * sample.labels[0]
    z = x @ w.T + b
    outputs = np.clip(z, 0, 1) @ a[0]
    counted = (y * outputs < 1)[:, None] & (z > 0) & (z < 1)
    expected = 0.5 * a[0][:, None] * (counted * y[:, None]).T @ x / len(x)
    found = ended(run)

    assert np.allclose(outputs, 0)  # pairs of neurons cancel
    assert np.allclose(found["layer1.weight"], expected, rtol=1e-5, atol=1e-9)
    assert np.array_equal(found["layer1.bias"], b.astype(np.float32))
    assert np.array_equal(found["layer2.weight"], a.astype(np.float32))


def test_the_smoke_runs_show_what_they_must(table: pl.DataFrame) -> None:
    """Eight seeds per arm; frozen layers stay; two steps align neurons, one classifies nothing."""
    assert {name: sorted(arm(table, name)["seed"]) for name in ARMS} == {
        name: list(range(8)) for name in ARMS
    }
    for name in ("two step", "one step", "random features"):
        for curve in arm(table, name)["curve.direction_cosine"]:
            assert curve.n_unique() == 1
    for name in ("two step", "one step"):
        assert min(c[0] for c in arm(table, name)["curve.direction_cosine"]) > 0.95
    assert max(c[0] for c in arm(table, "random features")["curve.direction_cosine"]) < 0.6
    either = table["curve.direction_cosine either"].list.to_array(11).to_numpy()
    assert (either >= table["curve.direction_cosine"].list.to_array(11).to_numpy()).all()
    smoke = METHODS.sweep("smoke")
    assert isinstance(smoke, Arms)
    for spec, error in zip(
        smoke["one step"].specs(),
        arm(table, "one step").sort("seed")["test_error"],
        strict=True,
    ):
        labels = spec.task.draw([spec.seed], "test", 0, spec.data.n_test).labels
        constant = [labels.mean(), 1 - labels.mean()]
        assert min(abs(error - share) for share in constant) < 1e-9


def test_claims_are_judged_seed_by_seed(table: pl.DataFrame) -> None:
    """Pairs of arms at 8 seeds: 16 runs each, by the same seeds."""
    found = {verdict.claim.name: verdict for verdict in METHODS.judge(table)}
    assert {name: verdict.finding.n for name, verdict in found.items()} == {
        "F": 16,
        "2": 16,
        "S": 16,
    }
    assert {name: verdict.claim.kind for name, verdict in found.items()} == {
        "F": "paper",
        "2": "ours",
        "S": "ours",
    }
    difference = (
        arm(table, "network").sort("seed")["test_error"]
        - arm(table, "random features").sort("seed")["test_error"]
    )
    middle = sorted(difference)[3:5]  # of eight
    assert any(found["F"].finding.estimate == pytest.approx(value) for value in middle)
    assert found["F"].finding.judgement is Judgement.SUPPORTED


@pytest.mark.parametrize("name", ARMS)
def test_the_stack_trains_what_the_reference_does(name: str) -> None:
    """From the same parents, errors and losses of twelve steps agree."""
    spec = replace(next(iter(TINY[name].specs())), seed=3)
    ours, theirs = (
        next(iter(load_engine(engine).run([spec], Silent()))) for engine in ("torch", "reference")
    )
    losses = np.array([ours.curves["train_loss"], theirs.curves["train_loss"]])[:, 1:]
    assert np.allclose(losses[0], losses[1], rtol=1e-4)
    for curve in ("test_error", "direction_cosine"):
        assert np.allclose(ours.curves[curve], theirs.curves[curve], atol=1e-4)
