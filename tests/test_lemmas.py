"""FL-7: the two steps neuron by neuron; smoothing in closed form; what follows the steps."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from petridish.chapters.inputs.lemmas import LEMMAS, PatternStat, gradient_rows
from petridish.chapters.inputs.trainings import both_steps, forgetting, start
from petridish.errors import UserError
from petridish.models import SmoothedTruncatedReLU
from petridish.store import Store
from petridish.sweeps import Arms
from petridish.sweeps.arms import arm
from petridish.tasks import Dictionary
from petridish.theory.inputs.steps import later_movement_bound, open_probability, schedule_bound
from petridish.training import From, Movement, ended
from tests.conftest import SmokeStore


@pytest.fixture
def table(smoke_store: SmokeStore) -> pl.DataFrame:
    """Return the smoke runs."""
    return LEMMAS.sweep("smoke").among(Store(smoke_store("FL-7")).read(columns="all").table)


def test_the_numbers_of_a_run_by_hand(table: pl.DataFrame) -> None:
    """From the kept T_j, k = 3 and D = 20: γ = ¼, σ² = 5."""
    runs = arm(table, "noise k^-3/2")
    unit, noise = 0.25 / math.sqrt(5), 3**-1.5
    for step in (0, 1):
        of = {
            stat: PatternStat(step, stat).of(runs)
            for stat in ("mean", "deviation", "background", "in front")
        }
        for run, kept in enumerate(runs["array.pattern_gradient"]):
            rows = np.array(kept["values"]).reshape(kept["shape"])[step]
            low, mean, high, outside = rows[:, :4].T / unit
            beta = np.array([open_probability(b, noise) for b in rows[:, 4]])
            far = np.maximum(abs(low - beta), abs(high - beta))
            assert of["mean"][run] == pytest.approx(np.median(mean))
            assert of["deviation"][run] == pytest.approx(np.median(far))
            assert of["background"][run] == pytest.approx(np.median(outside / mean))
            assert of["in front"][run] == (low > outside).mean()
    change = PatternStat(1, "background", less=0).of(runs)
    parts = [PatternStat(step, "background").of(runs) for step in (1, 0)]
    assert np.allclose(change, parts[0] - parts[1])
    assert np.isnan(PatternStat(0, "mean").of(arm(table, "later"))).all()
    assert gradient_rows(None) is None


def test_the_smoke_runs_show_what_they_must(table: pl.DataFrame) -> None:
    """β is about ½ in the first step and 1 in the second, where no noise closes a neuron."""
    runs = arm(table, "no noise")
    assert np.allclose(PatternStat(0, "mean").of(runs), 0.5, atol=0.15)
    assert np.allclose(PatternStat(1, "mean").of(runs), 1, atol=0.1)
    assert min(curve[1] for curve in runs["curve.open_margins"]) == 1
    assert len(LEMMAS.judge(table)) == len(LEMMAS.claims) == 9
    assert len(LEMMAS.figures["gradients"](table, "").axes) == 6


def test_both_steps_in_one_run_are_two_runs() -> None:
    """The weights agree to float32's rounding, in which a run hands them on."""
    run = start(Dictionary(8, 6, 3), m=60, width=8, n_test=40)
    apart = forgetting(replace(run, init=From(forgetting(run, 0.5))), 2.0)
    together = both_steps(run, 0.5, 2.0, Movement())

    assert np.allclose(
        ended(apart)["layer1.weight"], ended(together)["layer1.weight"], rtol=1e-4, atol=1e-7
    )


@pytest.mark.parametrize("noise", [0.05, 0.3, 2.0])
def test_smoothing_is_the_mean_over_noise(noise: float) -> None:
    """By a sum over the noise; its slope is the probability that a neuron is open."""
    import torch

    z = torch.linspace(-2, 3, 41, dtype=torch.float64).requires_grad_()
    drawn = np.linspace(-8, 8, 40_001)
    weights = np.exp(-(drawn**2) / 2)
    expected = np.clip(z.detach().numpy()[:, None] + noise * drawn, 0, 1) @ weights / weights.sum()
    found = SmoothedTruncatedReLU(noise)(z)
    (slope,) = torch.autograd.grad(found.sum(), z)
    beta = [open_probability(float(b), noise) for b in z.detach()]

    assert np.allclose(found.detach().numpy(), expected, atol=1e-6)
    assert np.allclose(slope.numpy(), beta, atol=1e-12)
    assert [open_probability(b, 0.0) for b in (-0.1, 0.5, 1.0)] == [0, 1, 0]


def test_bounds_of_what_follows() -> None:
    """Lemma 24 by following its recursion; Theorem 26's loss where it says nothing."""
    a, moved, size = 0.3, 0.0, 2.0
    for _ in range(7):
        moved += 2 * 0.1 * 0.01 * size + 0.1 * a
        a += 0.1
    assert moved <= later_movement_bound(7, 0.1, 0.3, decay=0.01, weight=size)
    assert later_movement_bound(0, 0.1, 0.3) == 0
    assert schedule_bound(5, 300, 600) > 8_000
    assert schedule_bound(5, 5**15, 5**20) < 0.1


def test_a_neuron_moves_no_further_than_its_bound(table: pl.DataFrame) -> None:
    """In the run that follows two steps, neuron by neuron; inputs have a mean length below 1."""
    arms = LEMMAS.sweep("smoke")
    assert isinstance(arms, Arms)
    later = next(iter(arms["later"].specs()))
    assert isinstance(later.init, From)
    before, after = (ended(spec) for spec in (later.init.parent(later), later))
    moved = np.linalg.norm(after["layer1.weight"] - before["layer1.weight"], axis=1)
    steps, rate = later.training.steps, later.training.learning_rate
    bounds = [later_movement_bound(steps, rate, abs(float(a))) for a in before["layer2.weight"][0]]

    assert 0 < (moved / bounds).max() < 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda: SmoothedTruncatedReLU(0),
            "SmoothedTruncatedReLU: noise=0. Give a positive standard deviation, or "
            "TruncatedReLU() without noise.",
        ),
        (
            lambda: open_probability(0.1, -1),
            "open_probability: noise=-1. Give a number of at least 0.",
        ),
        (
            lambda: schedule_bound(0, 1, 1),
            "schedule_bound: k=0, neurons=1, steps=1. Give numbers of at least 1.",
        ),
        (
            lambda: later_movement_bound(-1, 0.1, 0.3),
            "later_movement_bound: steps=-1, rate=0.1, decay=0.0, weight=0.0. Give numbers of at "
            "least 0.",
        ),
    ],
)
def test_bad_input(wrong: object, message: str) -> None:
    """Whole sentences."""
    assert callable(wrong)
    with pytest.raises(UserError) as refused:
        wrong()
    assert str(refused.value) == message
