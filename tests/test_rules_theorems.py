"""Rules that hold theorems against measurements."""

from __future__ import annotations

import math

import polars as pl
import pytest

from petridish.chapters.pareto.rules.theorems import AboveTheBound, RecoverySlope, SubnetworkAgrees
from petridish.statistics.estimate import anytime_interval
from tests.rule_worlds import (
    CONTRADICTED,
    LEAST_DATA,
    LEAST_WIDTH,
    SUPPORTED,
    UNDECIDED,
    decided,
    most_wrong,
    nothing_matters,
    over_sparse,
    run,
    sweep,
    table_of,
)

pytestmark = pytest.mark.usefixtures("few_resamples")


def test_the_bound_by_hand() -> None:
    """One cell, 9 of 10 solved at 700 steps: (10 · 52 + 1) · 700 · 100 / 0.9 over ½ C(50, 3)."""
    table = table_of([run(700 if s else None, seed=s) for s in range(10)])
    low, high = anytime_interval(9, 10)
    product = 521 * 700 * 100 / 9_800
    finding = AboveTheBound().judge(table, 0.05)

    assert finding.estimate == pytest.approx(product / 0.9)
    assert (finding.low, finding.high) == pytest.approx((product / high, product / low))
    assert finding.judgement is SUPPORTED
    assert (finding.n, finding.remark) == (10, "over 1 cells")


def test_the_least_cell_counts() -> None:
    """Cells that fail, online cells and other tasks are passed over."""
    cheap = [run(100, seed=s) for s in range(5)]
    others = [
        *(run(500, seed=s, **{"model.width": 20}) for s in range(5)),
        *(run(1 if s < 2 else None, seed=s, **{"model.width": 1}) for s in range(5)),
        *(run(1, seed=s, **{"data.m": math.inf}) for s in range(5)),
        *(run(1, seed=s, task="sparse_majority(50, 3)") for s in range(5)),
    ]
    one, all_cells = (AboveTheBound().judge(table_of(r), 0.05) for r in (cheap, cheap + others))

    assert all_cells.estimate == pytest.approx(one.estimate)
    assert all_cells.remark == "over 2 cells"
    online = AboveTheBound().judge(table_of(others[10:15]), 0.05)
    assert online.remark == "no offline cell succeeds in half of its runs"


def test_a_success_below_the_bound_contradicts() -> None:
    """Twenty runs of a tiny net that find one of 10⁹ sets at once, from ten examples."""
    columns = {"task.n": 50, "task.k": 9, "task": "sparse_parity(50, 9)", "data.m": 10.0}
    table = table_of([run(1, seed=s, **columns) for s in range(20)])

    assert AboveTheBound().judge(table, 0.05).judgement is CONTRADICTED


def test_steps_and_success_belong_together() -> None:
    """Half solved at 100 steps, all at 1000: at neither time is the bound of ½ C(50, 5) broken.

    At 100 steps the success is ½ and the product 1.4 times the bound; at 1000 it is 7 times.
    """
    columns = {"task": "sparse_parity(50, 5)", "task.k": 5, "data.m": 140.0, "model.width": 1}
    table = table_of([run(100 if s < 10 else 1_000, seed=s, **columns) for s in range(20)])

    assert AboveTheBound().judge(table, 0.05).judgement is not CONTRADICTED


def test_slopes_by_hand() -> None:
    """The least m is 20 s, the least width 512 / s: slopes 1 and −1, read at the largest other."""
    data = LEAST_DATA.judge(
        over_sparse(lambda s, r, m: float(m >= 25 * s and r == 64), samples=(100.0, 200.0, 400.0)),
        0.05,
    )
    width = LEAST_WIDTH.judge(
        over_sparse(
            lambda s, r, m: float(r >= 512 / s and m == 400), widths=(8, 16, 32, 64, 128, 256)
        ),
        0.05,
    )

    assert data.estimate == pytest.approx(1)
    assert data.remark == "s = 4: 100, s = 8: 200, s = 16: 400; the bound's exponent is 1"
    assert width.estimate == pytest.approx(-1)
    assert width.remark == "s = 4: 128, s = 8: 64, s = 16: 32"
    assert (data.judgement, width.judgement) == (SUPPORTED, SUPPORTED)


def test_slopes_of_the_other_sign_contradict() -> None:
    """Less data and more width with more ones a neuron; flat frontiers say nothing."""
    data = over_sparse(lambda s, r, m: float(m >= 1_600 / s))
    width = over_sparse(lambda s, r, m: float(r >= 6 * s), widths=(8, 64, 512))
    flat = over_sparse(lambda s, r, m: float(m >= 200 and r >= 64))

    assert LEAST_DATA.judge(data, 0.05).judgement is CONTRADICTED
    assert LEAST_WIDTH.judge(width, 0.05).judgement is CONTRADICTED
    for rule in (LEAST_DATA, LEAST_WIDTH):
        assert rule.judge(flat, 0.05).judgement is UNDECIDED
        assert rule.judge(flat, 0.05).estimate == 0


def test_what_nothing_suffices_for_is_one_step_beyond_the_grid() -> None:
    """Grid to 400 by factors of 2: where all fails, 800."""
    finding = LEAST_DATA.judge(over_sparse(lambda s, r, m: float(s < 16)), 0.05)

    assert finding.remark.startswith("s = 4: 50, s = 8: 50, s = 16: 800;")


@pytest.mark.parametrize("most", [4, 8])
def test_an_online_column_has_a_place_on_the_axis(most: int) -> None:
    """Where only endless data suffices, or nothing does, the slope is a number."""
    table = over_sparse(
        lambda s, r, m: float(m == math.inf and s == 8) if s > most / 2 else float(m >= 100),
        samples=(50.0, 100.0, 200.0, math.inf),
    )
    finding = LEAST_DATA.judge(table, 0.05)

    assert math.isfinite(finding.estimate)


def test_slopes_of_two_tasks_are_not_mixed_up() -> None:
    """Whichever task's runs come first, the finding is the same."""
    one = over_sparse(lambda s, r, m: float(m >= 20 * s))
    two = over_sparse(lambda s, r, m: 1.0).with_columns(task=pl.lit("sparse_parity(60, 3)"))
    findings = [LEAST_DATA.judge(pl.concat(order), 0.05) for order in ((one, two), (two, one))]

    assert repr(findings[0]) == repr(findings[1])  # as text, in which NaN equals NaN


@pytest.mark.parametrize("seeds", [2, 10])
def test_slopes_keep_their_level(seeds: int) -> None:
    """30 tables in which s does not matter, also of two seeds."""
    tables = [
        over_sparse(
            lambda s, r, m: 1 / (1 + (150 / m) ** 2),
            sparsities=(4, 8, 16, 32),
            widths=(8,),
            seeds=seeds,
            seed=seed,
        )
        for seed in range(30)
    ]

    assert decided(LEAST_DATA, tables) <= most_wrong(30)


def test_a_missing_cell_decides_no_slope() -> None:
    """One s was not run with the largest width: there is no seed that all have."""
    table = over_sparse(lambda s, r, m: float(m >= 20 * s))
    part = table.filter((pl.col("init.s") < 16) | (pl.col("data.m") < 400))
    finding = LEAST_DATA.judge(part, 0.05)

    assert finding.judgement is UNDECIDED
    assert finding.remark == "needs two values of init.s and data.m, two seeds"
    assert LEAST_DATA.judge(sweep(nothing_matters), 0.05).remark == (
        "no run starts from over_sparse"
    )


def test_recovery_is_simulated_in_small() -> None:
    """Two sizes and few trials: the claim is k − s − 1 = 1, and no run takes part."""
    wide, strict = (
        RecoverySlope(k=4, s=2, n_values=(11, 21), trials=10, tolerance=tolerance).judge(
            pl.DataFrame(), 0.05
        )
        for tolerance in (50.0, 0.0)
    )

    assert (wide.judgement, strict.judgement is SUPPORTED) == (SUPPORTED, False)
    assert wide.estimate == strict.estimate
    assert wide.low <= wide.estimate <= wide.high
    assert wide.n == 20
    assert wide.remark.startswith("claimed 1, expected at these n ")
    assert wide.remark.endswith("; n = 11, 21")


def test_a_subnetwork_is_simulated_in_small() -> None:
    """Many examples find the parity, a handful does not."""
    many, few = (
        SubnetworkAgrees(n=9, k=4, s=2, m=m, trials=6).judge(pl.DataFrame(), 0.05)
        for m in (20_000, 2)
    )

    assert many.judgement is SUPPORTED
    assert few.judgement is not SUPPORTED
    assert many.low <= many.estimate <= many.high
    assert (many.n, many.remark) == (6, "m = 20,000")
