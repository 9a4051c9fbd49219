"""FL-1: chains of exact steps, arms that share them, and what they show at smoke scale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from petridish.chapters.inputs.centres import CENTRES
from petridish.chapters.inputs.experiments import METHODS, methods
from petridish.chapters.inputs.interval_labels import INTERVALS
from petridish.chapters.inputs.methods import Sizes
from petridish.chapters.inputs.rules import (
    AboveLinear,
    BesideConstant,
    CosineGap,
    CoverageAboveChance,
    FromChance,
)
from petridish.chapters.inputs.trainings import forgetting, start
from petridish.rules import Judgement
from petridish.store import Store
from petridish.sweeps import Arms, run_sweep
from petridish.sweeps.arms import arm
from petridish.tasks import Dictionary
from petridish.theory.inputs.coverage import random_coverage
from petridish.training import Silent, ended, load_engine, parents_of, run_key
from petridish.training.data import initial_weights, training_examples
from tests.conftest import SmokeStore

TINY = methods(
    Sizes(
        d=8, patterns=6, k=3, m=60, width=8, steps=12, batch_size=10, rate=0.1, n_test=40, seeds=2
    )
)


@pytest.fixture
def table(smoke_store: SmokeStore) -> pl.DataFrame:
    """Return the smoke runs."""
    return METHODS.sweep("smoke").among(Store(smoke_store("FL-1")).read(columns="all").table)


def test_every_parent_is_trained_once(tmp_path: Path) -> None:
    """Two seeds of twelve arms, two of them at three rates, ask for 32 runs; 48 are trained.

    The others are eight steps per seed: a first and a second with structure and without, a second
    at the paper's own rate, and the first steps of three controls. The arms «network» and «two
    step» share both steps, «one step» has the first.
    """
    store = Store(tmp_path)
    first = run_sweep(TINY, store, executor="inline")
    again = run_sweep(TINY, store, executor="inline")

    assert (first.runs, first.done, first.parents) == (32, 48, 16)
    assert (again.done, again.skipped) == (0, 32)
    parents = {
        name: {run_key(p) for spec in TINY[name].specs() for p in parents_of(spec)}
        for name in ("network", "two step", "one step")
    }
    assert parents["network"] == parents["two step"]
    grand = {
        run_key(p) for s in TINY["network"].specs() for q in parents_of(s) for p in parents_of(q)
    }
    assert grand == parents["one step"]


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


def in_patterns(weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return rows of weights in the coordinates of a dictionary, and the length of the rest."""
    along = weights @ columns
    rest = np.linalg.norm(weights - along @ columns.T, axis=1, keepdims=True)
    return np.hstack([along, rest])


def test_patterns_as_coordinates_train_as_inputs_do() -> None:
    """From the same weights, 30 steps of everything agree with those in x, and so do cosines."""
    task = Dictionary(20, 6, 3)
    there = replace(task, space="patterns")
    spec = start(task, m=200, width=8, n_test=40)
    w, b, a = (torch.from_numpy(v[0].astype(np.float64)) for v in initial_weights([spec]))
    columns = task.dictionary(0)
    ours = torch.from_numpy(in_patterns(w.numpy(), columns))

    def trained(first: torch.Tensor, which: Dictionary) -> np.ndarray:
        sample = which.draw([0], "train", 0, 200)
        x = torch.from_numpy(sample.x[0].astype(np.float64))
        y = torch.from_numpy(1.0 - 2.0 * sample.labels[0])
        weights = [first.clone(), b.clone(), a.clone()]
        for _ in range(30):
            weights = [v.detach().requires_grad_() for v in weights]
            h = (x @ weights[0].mT + weights[1]).clamp(0, 1)
            loss = (1 - y * (h @ weights[2][0])).relu().mean()
            slopes = torch.autograd.grad(loss, weights)
            weights = [0.99 * v - 0.05 * g for v, g in zip(weights, slopes, strict=True)]
        return weights[0].detach().numpy()

    in_x, in_phi = trained(w, task), trained(ours, there)
    assert not np.allclose(in_x, w.numpy() * 0.99**30, atol=1e-3)
    assert np.allclose(in_patterns(in_x, columns), in_phi, atol=1e-5)
    wide = task.directions([0])[0].sum(axis=0)
    narrow = there.directions([0])[0].sum(axis=0)
    cosines = [
        rows @ target / np.linalg.norm(rows, axis=1) / np.linalg.norm(target)
        for rows, target in ((in_x, wide), (in_phi, narrow))
    ]
    assert np.allclose(cosines[0], cosines[1], atol=1e-6)


def test_the_start_has_the_length_of_d_inputs() -> None:
    """‖w‖² of 4000 neurons has the mean d σ_w² and the variance 2d σ_w⁴, within five errors."""
    task = Dictionary(500, 10, 5, space="patterns")
    run = start(task, m=10, width=8_000, n_test=10)
    rows = initial_weights([run])[0][0, :4_000].astype(np.float64)
    lengths = (rows**2).sum(axis=1) * 25  # σ_w = 1/5

    assert abs(lengths.mean() - 500) < 5 * np.sqrt(1000 / 4000)
    assert lengths.var() == pytest.approx(1000, rel=5 * np.sqrt(2 / 4000))


def test_the_smoke_runs_show_what_they_must(table: pl.DataFrame) -> None:
    """Frozen layers stay; two steps align neurons, one step classifies nothing."""
    for name in ("two step", "one step", "random features"):
        for curve in arm(table, name)["curve.direction_cosine"]:
            assert curve.n_unique() == 1
    for name in ("two step", "one step"):
        assert min(c[0] for c in arm(table, name)["curve.direction_cosine"]) > 0.95
    assert max(c[0] for c in arm(table, "random features")["curve.direction_cosine"]) < 0.6
    kept = table.filter(pl.col("curve.direction_cosine either").list.len() == 11)
    either, plus = (
        kept[f"curve.direction_cosine{end}"].list.to_array(11).to_numpy() for end in (" either", "")
    )
    there = ~np.isnan(plus)  # a tangent kernel starts with weights of 0
    assert (either[there] >= plus[there]).all()
    probes = {
        name: [c[0] for c in arm(table, name)["curve.linear_probe"]]
        for name in ("one step", "two step")
    }
    assert max(probes["two step"]) < 0.02 < min(probes["one step"])
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
    """Eight seeds are too few for the level that fourteen claims share; estimates are by seed."""
    found = {verdict.claim.name: verdict for verdict in METHODS.judge(table)}
    kinds = {
        kind: "".join(n for n, v in found.items() if v.claim.kind == kind)
        for kind in ("paper", "ours")
    }
    assert kinds == {"paper": "FKP1AM", "ours": "2SLCRZDT"}
    assert {v.finding.judgement for v in found.values()} == {Judgement.UNDECIDED}
    difference = (
        arm(table, "network").sort("seed")["test_error"]
        - arm(table, "no structure").sort("seed")["test_error"]
    )
    middle = sorted(difference)[3:5]  # of eight
    assert any(found["S"].finding.estimate == pytest.approx(value) for value in middle)
    assert found["F"].finding.estimate < -0.15
    assert abs(found["C"].finding.estimate) < 0.005


def test_measures_of_the_chapter(table: pl.DataFrame) -> None:
    """By hand from the runs of one arm: k = 3, ρ = ½, n = 2000 and D = 20."""
    runs = arm(table, "two step")
    error = runs["test_error"].to_numpy()
    cosine = np.array([curve[-1] for curve in runs["curve.direction_cosine"]])
    formula = (1 + 17 / 4 / (2_000 * 3 / 16)) ** -0.5

    assert np.allclose(AboveLinear().of(runs), error - 0.125)
    assert np.allclose(FromChance().of(runs), np.abs(error - 0.5))
    assert np.allclose(CosineGap().of(runs), cosine - formula)
    assert np.allclose(BesideConstant().of(runs), 2 * error)
    assert np.isnan(CosineGap().of(arm(table, "no structure"))).all()


def test_coverage_is_held_to_random_directions(smoke_store: SmokeStore) -> None:
    """As many as the neurons, 60, in the span of the cube; there is none of hidden labels."""
    runs = CENTRES.sweep("smoke").among(Store(smoke_store("FL-4")).read(columns="all").table)
    cube = arm(runs, "cube, d = 100, k = 5")
    last = np.array([curve[-1] for curve in cube["curve.centre_cosine"]])
    chance = np.quantile(random_coverage(60, 5, 500), 0.99)

    assert np.allclose(CoverageAboveChance().of(cube), last - chance)
    assert np.isnan(CoverageAboveChance().of(arm(runs, "hidden labels"))).all()
    assert [verdict.finding.n for verdict in CENTRES.judge(runs)] == [12, 4, 4]


def test_intervals_are_held_to_a_constant(smoke_store: SmokeStore) -> None:
    """Without structure 6 to 8 of 9 patterns at ½ are rare: C(9, 6) + C(9, 7) + C(9, 8) in 512."""
    runs = INTERVALS.sweep("smoke").among(Store(smoke_store("FL-2")).read(columns="all").table)
    bare = arm(runs, "no structure")

    assert np.allclose(BesideConstant().of(bare), bare["test_error"] / (129 / 512))
    assert {verdict.claim.name for verdict in INTERVALS.judge(runs)} == {*"PKF1S"}
    assert len(INTERVALS.tables["methods"](runs)) == 12


def test_the_table_of_methods(table: pl.DataFrame) -> None:
    """A row per method and rate, of all seeds, with accuracies."""
    found = METHODS.tables["methods"](table)
    assert len(found) == 16
    assert set(found["runs"]) == {8}
    network = found.row(by_predicate=pl.col("arm") == "network", named=True)
    assert network["test"] == pytest.approx(
        1 - arm(table, "network")["test_error"].to_numpy().mean()
    )
    assert network["best"] is None


@pytest.mark.parametrize("name", list(TINY.arms))
def test_the_stack_trains_what_the_reference_does(name: str) -> None:
    """From the same parents, losses of twelve steps agree, and errors to one of 40 examples.

    An output within rounding of 0 has either sign: that of step 0 is 0, where neurons cancel.
    """
    spec = replace(next(iter(TINY[name].specs())), seed=3)
    ours, theirs = (
        next(iter(load_engine(engine).run([spec], Silent()))) for engine in ("torch", "reference")
    )
    losses = np.array([ours.curves["train_loss"], theirs.curves["train_loss"]])[:, 1:]
    assert np.allclose(losses[0], losses[1], rtol=1e-4)
    for curve, apart in (("test_error", 1.001 / 40), ("direction_cosine", 1e-4)):
        here, there = (each.curves[curve][1:] for each in (ours, theirs))
        assert np.allclose(here, there, rtol=0, atol=apart)
