"""Adaptive allocation: where seeds go, and that what is said of them stays true."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.models import MLP
from petridish.rules.cells import Grid
from petridish.rules.frontier import replayed_frontiers
from petridish.statistics.intervals import anytime_interval, mean_difference, wilson_interval
from petridish.statistics.trend import trend_test
from petridish.store import Store
from petridish.sweeps import AtHalf, Sweep, run_sweep
from petridish.sweeps.adaptive import evaluated_at, first_seeds, is_settled, seeds_wanted
from petridish.sweeps.allocation import replay
from petridish.sweeps.runner import outcomes
from petridish.tasks import SparseParity
from petridish.training import Data, RunSpec, Training


def test_seven_equal_outcomes_settle_a_cell() -> None:
    """By hand: C(2n, n) / 2^n is 27 for n = 7 and 14 for n = 6, and 1/level is 20."""
    assert [is_settled(0, n) for n in (6, 7)] == [False, True]
    assert [is_settled(n, n) for n in (6, 7)] == [False, True]
    assert not is_settled(25, 50)
    assert evaluated_at(50) == [7, 11, 17, 26, 39, 50]
    assert evaluated_at(10) == [7, 10]
    assert evaluated_at(5) == [5]


@given(st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_cell_is_settled_when_its_interval_excludes_a_half(counts: tuple[int, int]) -> None:
    """The rule that allocates and the interval that is reported are one."""
    solved, runs = counts
    low, high = anytime_interval(solved, runs)

    assert is_settled(solved, runs) == bool(low > 0.5 or high < 0.5)
    share = solved / runs if runs else 0.5
    assert 0 <= low <= share <= high <= 1


def test_the_anytime_interval_is_wider_than_the_fixed_one() -> None:
    """It pays for evaluating often; with no run at all it says nothing."""
    for runs in (5, 10, 50, 1000):
        solved = np.arange(runs + 1)
        low, high = anytime_interval(solved, np.full(runs + 1, runs))
        fixed_low, fixed_high = wilson_interval(solved, np.full(runs + 1, runs))
        assert np.all(high - low > fixed_high - fixed_low)
        assert np.allclose(low, 1 - high[::-1])
    low, high = anytime_interval(0, 0)
    assert (float(low), float(high)) == (0.0, 1.0)


@pytest.mark.parametrize("success", [0.02, 0.1, 0.3, 0.45, 0.5, 0.6, 0.9, 1.0])
def test_estimates_stay_honest_under_sequential_stopping(success: float) -> None:
    """Stopped by the rule, the 95 % interval misses the truth in at most 5 % of 20 000 cells.

    A test at true coverage 95 % fails with probability below 1e-6 (the slack is 5 deviations).
    """
    rng = np.random.default_rng(1)
    outcome = (rng.random((20_000, 50)) < success).astype(np.float64)
    made = first_seeds(outcome)
    runs = made.sum(axis=1)
    solved = (outcome * made).sum(axis=1)
    low, high = anytime_interval(solved, runs)

    missed = np.mean((low > success) | (high < success))
    assert missed <= 0.05 + 5 * np.sqrt(0.05 * 0.95 / 20_000)
    wrong_side = {True: low > 0.5, False: high < 0.5}[success <= 0.5]
    assert np.mean(wrong_side) <= 0.05


def stopped(chance: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw outcomes of 8 cells on two sides, runs of one seed being alike, stopped when clear."""
    alike = rng.random(50) < 0.3  # seeds whose runs all share one draw
    draws = np.where(alike, rng.random(50), rng.random((2, 8, 50)))
    outcome = (draws < chance).astype(np.float64)
    kept = np.where(first_seeds(outcome), outcome, np.nan)
    return kept[0], kept[1]


@pytest.mark.parametrize("chance", [0.2, 0.5, 0.8])
def test_comparisons_keep_their_level_under_stopping(chance: float) -> None:
    """Of 300 comparisons of equal sides at 5 %, no more than 31 find a difference.

    At a true rate of 5 % more than that have probability below 1e-4; and the trend along three
    equal conditions is found no more often.
    """
    rng = np.random.default_rng(4)
    differ = rise = 0
    for _ in range(300):
        _, low, high = mean_difference(*stopped(chance, rng))
        differ += low > 0 or high < 0
        three = np.stack([stopped(chance, rng)[0] for _ in range(3)], axis=1)
        rise += trend_test(three, np.arange(3.0)) < 0.05

    assert differ <= 31
    assert rise <= 31


def test_a_cell_at_one_half_gets_its_full_seeds() -> None:
    """At ½ at least 95 % of cells are never called settled; far from it seven seeds do."""
    rng = np.random.default_rng(2)
    undecided = first_seeds((rng.random((5_000, 50)) < 0.5).astype(np.float64)).all(axis=1)
    clear = first_seeds(np.ones((1, 50))).sum()

    assert undecided.mean() > 0.95 - 5 * np.sqrt(0.05 * 0.95 / 5_000)
    assert clear == 7


def test_later_seeds_play_no_part() -> None:
    """What is stored beyond the evaluation that settles a cell changes nothing."""
    settled = [True] * 7 + [None] * 43
    more = [True] * 7 + [False] * 43
    gap = [True, None] + [True] * 48

    assert seeds_wanted(settled) == seeds_wanted(more) == 7
    assert seeds_wanted(gap) == 7
    assert seeds_wanted([True, False] * 25) == 50


def grid_of(success: list[list[float]], seeds: int, rng: np.random.Generator) -> Grid:
    """Draw a grid with these success probabilities, one stratum."""
    shape = (1, len(success), len(success[0]), seeds)
    outcome = (rng.random(shape) < np.array(success)[None, :, :, None]).astype(np.float64)
    return Grid([()], list(range(shape[1])), list(range(shape[2])), list(range(seeds)), outcome)


def test_a_frontier_that_goes_back_is_found_too() -> None:
    """No monotonicity is assumed: success that rises, falls and rises again comes out as it is."""
    counts = grid_of([[0.0, 1.0, 0.0, 0.0, 1.0]] * 4, 50, np.random.default_rng(3))
    whole, part = replayed_frontiers(counts)

    assert whole.tolist() == part.tolist() == [[1] * 4]
    assert first_seeds(counts.outcome).sum() == 4 * 5 * 7


TINY = Sweep(
    RunSpec(
        task=SparseParity(8, 2),
        data=Data(m=200, n_test=200),
        model=MLP(16),
        training=Training(steps=300),
    ),
    {"data.m": (5, 300), "seed": range(20)},
)


def test_an_adaptive_run_stops_at_settled_cells(tmp_path: Path) -> None:
    """A hopeless and a sure cell take seven seeds each; a second call finds nothing to do."""
    store = Store(tmp_path)
    first = run_sweep(TINY, store, executor="inline", adaptive=True)
    table = store.read().table
    again = run_sweep(TINY, store, executor="inline", adaptive=True)
    spent = replay(TINY, table, AtHalf().search(TINY))

    assert (first.runs, first.done, first.skipped) == (40, 14, 0)
    assert table.group_by("data.m").len().sort("data.m")["len"].to_list() == [7, 7]
    assert (again.done, again.skipped) == (0, 14)
    assert AtHalf().search(TINY).settled(outcomes(table)) == 2
    assert spent is not None
    assert (spent.runs, spent.all_runs, spent.estimated) == (14, 40, 26)
    assert spent.model_steps == table["steps"].sum()
    assert spent.share == pytest.approx(7 / 20, rel=0.01)
    assert replay(TINY, table.filter(pl.col("seed") < 5), AtHalf().search(TINY)) is None


def test_what_nothing_solves_gets_no_seeds(tmp_path: Path) -> None:
    """Seven runs of each setting would be unsolved, and the setting called settled."""
    partly = replace(
        TINY,
        also=(Sweep(replace(TINY.base, training=Training(target_error=None)), {"seed": range(9)}),),
    )
    message = (
        "Adaptive allocation gives seeds where it is unclear on which side of ½ success lies, and "
        "1 of the 3 settings have no stop rule by which a run would be solved. Leave --adaptive "
        "out, or set training.stop."
    )
    for wrong in (
        lambda: run_sweep(partly, Store(tmp_path), executor="inline", adaptive=True),
        lambda: replace(partly, allocate=AtHalf()),
    ):
        with pytest.raises(UserError) as error:
            wrong()
        assert str(error.value) == message
    assert not list(tmp_path.iterdir())


def test_a_full_run_after_an_adaptive_one_trains_the_rest(tmp_path: Path) -> None:
    """Adaptive runs are ordinary runs: the keys are the same."""
    store = Store(tmp_path)
    run_sweep(TINY, store, executor="inline", adaptive=True)
    rest = run_sweep(TINY, store, executor="inline")

    assert (rest.done, rest.skipped) == (26, 14)
