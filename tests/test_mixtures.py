"""Mixtures of data, width, time and luck: formulas by hand and by brute force, and the command."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.rules.mixtures import COVERAGE, FEWEST, budgets, mixtures, restarts_needed
from petridish.training import cell_text, read_cell
from tests.mixture_tables import Times, cell, resources

# Restarts


def test_restarts_by_hand() -> None:
    """A fair coin needs 4 tosses for 90 % and exactly 2 for 75 %; what never succeeds, forever."""
    assert restarts_needed(0.5, 0.9) == 4
    assert restarts_needed(0.5, 0.75) == 2
    assert restarts_needed(0.9, 0.9) == restarts_needed(1.0, 0.9) == 1
    assert restarts_needed(0.0, 0.9) == math.inf


@given(st.floats(1e-9, 1), st.floats(1e-6, 1 - 1e-6))
def test_restarts_are_the_fewest_that_suffice(success: float, target: float) -> None:
    """All R runs fail with probability (1 − q)^R: at most 1 − p, and with R − 1 runs more."""
    restarts = restarts_needed(success, target)

    assert restarts == int(restarts) >= 1
    if success < 1:
        assert math.exp(restarts * math.log1p(-success)) <= (1 - target) * (1 + 1e-6)
        if restarts > 1:
            assert math.exp((restarts - 1) * math.log1p(-success)) > (1 - target) * (1 - 1e-6)


@given(st.integers(1, 19), st.integers(1, 19))
def test_restarts_agree_with_counting(success: int, target: int) -> None:
    """In twentieths, by exact arithmetic: count until (20 − q)^R · 20 ≤ (20 − p) · 20^R."""
    counted = next(
        runs
        for runs in itertools.count(1)
        if (20 - success) ** runs * 20 <= (20 - target) * 20**runs
    )

    assert restarts_needed(success / 20, target / 20) == counted


@given(st.integers(1, 99), st.integers(1, 4))
def test_rounding_does_not_add_a_restart(percent: int, runs: int) -> None:
    """Where R runs reach the target exactly, R is the answer, though logarithms are rounded."""
    success = percent / 100

    assert restarts_needed(success, 1 - (1 - success) ** runs) <= runs


@pytest.mark.parametrize("success", [1e-12, 1e-300])
def test_hopeless_cells_need_a_number_of_restarts_too(success: float) -> None:
    """The smaller the probability the more restarts, up to infinity, without an error."""
    assert restarts_needed(success, 0.9) > 1e11


def test_certainty_takes_forever() -> None:
    """No number of runs that may fail reaches probability 1."""
    assert restarts_needed(0.5, 1.0) == math.inf


# Budgets


def test_budgets_by_hand() -> None:
    """1000 steps looked at every 100: 707, 500, 353, 250, 176 rounded down to looks."""
    assert budgets(1000, 100) == [1000, 700, 500, 300, 200, 100]
    assert budgets(100, 100) == [100]
    assert budgets(50, 100) == [50]
    assert budgets(150, 100) == [150, 100]


@given(st.integers(1, 100_000), st.integers(1, 1_000))
def test_budgets_are_looks_and_each_is_smaller_than_the_one_before(steps: int, every: int) -> None:
    """From the whole budget down to the first look; what is solved is only known at looks."""
    found = budgets(steps, every)

    assert found[0] == steps
    assert found[-1] == min(steps, every)
    assert all(budget % every == 0 for budget in found[1:])
    assert all(smaller < larger for larger, smaller in itertools.pairwise(found)), found


def random_table(rng: np.random.Generator) -> pl.DataFrame:
    """Draw cells of two inits, widths and sample sizes with times on a coarse grid."""
    parts = [
        cell(
            [
                int(time) if time <= 1_000 else None
                for time in 100 * rng.integers(0, rng.integers(2, 25), size=rng.integers(1, 20))
            ],
            **{"init": init, "data.m": m, "model.width": width},
        )
        for init in ("uniform", "sparse(2)")
        for m in (100.0, 200.0, math.inf)
        for width in (10, 20)
    ]
    return pl.concat(parts)


def dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Return whether one takes no more of anything than the other, and less of something."""
    no_more = all(a <= b for a, b in zip(one, other, strict=True))
    return no_more and any(a < b for a, b in zip(one, other, strict=True))


def test_one_cell_by_hand() -> None:
    """Five of ten runs solved at 300, five at 500: half by 300 steps, all by 500."""
    found = mixtures(cell([300] * 5 + [500] * 5), target=0.9)

    assert [(o.steps, o.success, o.restarts, o.compute) for o in found] == [
        (500, 1.0, 1.0, 5_000.0),
        (300, 0.5, 4.0, 12_000.0),
    ]
    assert [o.best for o in found] == [True, False]
    assert {o.runs for o in found} == {10}
    # ½ C(10, 2) · 0.9 / (100 · 12): at this m, width × steps × restarts cannot be less
    assert found[0].bound == pytest.approx(22.5 * 0.9 / 1200)


def test_what_has_no_width_or_nothing_to_solve_is_said() -> None:
    """The first was «a fault of petridish itself», the second asked for other settings."""
    runs = cell([300] * 5)
    with pytest.raises(UserError) as error:
        mixtures(runs.drop("model.width"), target=0.9)
    assert str(error.value) == (
        "A frontier weighs data, width, steps and restarts, and runs of the model mlp "
        "have no model.width. Compare them by `petridish figure`, or give the model a field "
        "`width`."
    )
    spec = read_cell(runs["cell"][0])
    endless = runs.with_columns(
        cell=pl.lit(cell_text(replace(spec, training=replace(spec.training, target_error=None))))
    )
    with pytest.raises(UserError) as error:
        mixtures(endless, target=0.9)
    assert str(error.value) == (
        "A frontier weighs what it takes to solve a task, and these runs have no stop rule by "
        "which one would be solved. Set training.stop, such as Below(SquaredError(), 0.1)."
    )


def test_too_few_successes_offer_nothing() -> None:
    """Four successes are too few to guess luck from, five are enough."""
    assert FEWEST == 5
    assert mixtures(cell([100] * 4 + [None] * 6), target=0.9) == []
    assert len(mixtures(cell([100] * 5 + [None] * 6), target=0.9)) == 1
    assert mixtures(cell([None] * 9), target=0.9) == []
    assert mixtures(cell([100] * 9).clear(), target=0.9) == []


def test_a_diverged_run_counts_as_failed() -> None:
    """It was made, and it was not solved."""
    diverged = cell([100] * 5 + [None] * 5).with_columns(
        outcome=pl.when(pl.col("solved_at").is_null())
        .then(pl.lit("DIVERGED"))
        .otherwise(pl.col("outcome"))
    )

    assert [(o.success, o.runs) for o in mixtures(diverged, target=0.9)] == [(0.5, 10)]


@pytest.mark.parametrize("draw", range(8))
def test_what_is_kept_is_what_nothing_dominates(draw: int) -> None:
    """Every cell at every budget, compared by a plain double loop."""
    table = random_table(np.random.default_rng(draw))
    offers = set()
    for (m, width, _), runs in table.group_by("data.m", "model.width", "init"):
        times = runs["solved_at"].to_list()
        for budget in budgets(1_000, 100):
            solved = sum(time is not None and time <= budget for time in times)
            if solved >= FEWEST:
                luck = restarts_needed(solved / len(times), 0.9)
                offers.add((float(str(m)), int(str(width)), budget, luck))
    expected = {o for o in offers if not any(dominates(other, o) for other in offers)}
    found = mixtures(table, target=0.9)

    assert sorted(resources(o) for o in found) == sorted(expected)
    for option in found:
        assert 1 - (1 - option.success) ** option.restarts >= 0.9 - 1e-9
        assert option.low <= option.success <= option.high
        assert option.restarts_low <= option.restarts <= option.restarts_high


@pytest.mark.parametrize("draw", range(4))
def test_every_point_of_the_front_is_marked_once(draw: int) -> None:
    """The front of data and compute is complete, and of equal points one is on it."""
    found = mixtures(random_table(np.random.default_rng(draw)), target=0.9)
    points = {(o.m, o.compute) for o in found}
    front = sorted(p for p in points if not any(dominates(other, p) for other in points))

    assert sorted((o.m, o.compute) for o in found if o.best) == front


@pytest.mark.parametrize("draw", range(4))
def test_the_order_of_rows_changes_no_resources(draw: int) -> None:
    """Runs come back from a store in any order, and from any seeds."""
    table = random_table(np.random.default_rng(draw))
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=draw).with_columns(
        seed=pl.col("seed") + 1_000
    )

    assert [resources(o) for o in mixtures(shuffled, target=0.9)] == [
        resources(o) for o in mixtures(table, target=0.9)
    ]


def test_of_equally_costly_mixtures_the_same_one_is_shown_in_any_order() -> None:
    """Two inits that need one run each: which of them is named does not depend on the rows."""
    surer = cell([100] * 20, init="uniform")
    luckier = cell([100] * 19 + [None], init="sparse(2)")
    one_way = mixtures(pl.concat([surer, luckier]), target=0.9)
    other_way = mixtures(pl.concat([luckier, surer]), target=0.9)

    assert one_way == other_way


def test_runs_of_different_budgets_are_different_cells() -> None:
    """A run of 1000 steps says nothing about what 4000 would have done."""
    short = cell([900] * 5 + [None] * 5)
    long = cell([900] * 5 + [3_000] * 5, **{"training.steps": 4_000})
    one_way = mixtures(pl.concat([short, long]), target=0.9)
    other_way = mixtures(pl.concat([long, short]), target=0.9)

    assert [resources(o) for o in one_way] == [resources(o) for o in other_way]
    assert max(o.success for o in one_way) == 1.0


def test_tasks_do_not_compete() -> None:
    """An easy task dominates no mixture of a hard one, and each has its own front."""
    easy = cell([100] * 9)
    hard = cell([1_000] * 9, **{"task": "sparse_parity(10, 5)", "task.k": 5})
    found = mixtures(pl.concat([easy, hard]), target=0.9)

    assert [(o.task, o.steps, o.best) for o in found] == [
        ("sparse_parity(10, 2)", 100, True),
        ("sparse_parity(10, 5)", 1_000, True),
    ]


def test_intervals_hold_at_once_for_all_budgets() -> None:
    """Over 80 cells, at most 5 % (and luck of 1e-4) miss the truth at any budget shown."""
    from scipy.stats import binom

    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(80):
        drawn = rng.exponential(700, size=20)
        times: Times = [math.ceil(t / 100) * 100 if t <= 1_000 else None for t in drawn]
        found = mixtures(cell(times), target=0.9)
        missed += any(not o.low <= 1 - math.exp(-o.steps / 700) <= o.high for o in found)
    assert missed <= binom.isf(1e-4, 80, 1 - COVERAGE)


def test_one_budget_has_the_plain_anytime_interval() -> None:
    """With a single look there is nothing to correct for."""
    from petridish.statistics.intervals import anytime_interval

    (only,) = mixtures(cell([100] * 7 + [None] * 3, **{"training.steps": 100}), target=0.9)
    low, high = anytime_interval(7, 10, coverage=COVERAGE)

    assert (only.low, only.high) == (float(low), float(high))
    assert only.compute_interval == (1000 * only.restarts_low, 1000 * only.restarts_high)
    assert only.restarts_high == restarts_needed(float(low), 0.9)
