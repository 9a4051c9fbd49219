"""Rules that hold theorems against measurements."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from petridish.chapters.pareto.rules.theorems import (
    AboveTheBound,
    GrowsNoFaster,
    KeptSigns,
    RecoverySlope,
    SubnetworkAgrees,
)
from petridish.statistics.intervals import anytime_interval
from petridish.theory.pareto.recovery import recovery_slope
from tests.rule_worlds import (
    CONTRADICTED,
    LEAST_DATA,
    LEAST_WIDTH,
    SUPPORTED,
    UNDECIDED,
    decided,
    in_arm,
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
    assert finding.n == 10
    assert finding.remark == (
        "over 1 cells; least at sparse_parity(50, 3), uniform, m = 100, r = 10; by task "
        "sparse_parity(50, 3) 4.1e+03"
    )


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
    assert all_cells.remark.startswith("over 2 cells; least at sparse_parity(50, 3), uniform, m = ")
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


def test_exponents_by_hand() -> None:
    """The least m is 25 s and the least width 512 / s, between two values of the grid."""
    sizes = (25.0, 50.0, 100.0, 200.0, 400.0, 800.0)
    data = LEAST_DATA.judge(
        in_arm(over_sparse(lambda s, _, m: float(m >= 25 * s), widths=(8,), samples=sizes)), 0.05
    )
    widths = (8, 16, 32, 64, 128, 256)
    width = LEAST_WIDTH.judge(
        in_arm(over_sparse(lambda s, r, _: float(r >= 512 / s), widths=widths, samples=(50.0,))),
        0.05,
    )

    assert data.estimate == pytest.approx(1)
    assert data.remark == (
        "least data.m by init.s 4: 70.7, 8: 141, 16: 283; the bound's exponent is 1"
    )
    assert width.estimate == pytest.approx(-1)
    assert width.remark == (
        "least model.width by init.s 4: 90.5, 8: 45.3, 16: 22.6; the bound's exponent is -1"
    )


def test_what_grows_faster_contradicts() -> None:
    """M like s², or a width that does not fall; where all suffices or nothing, it is open."""
    sizes = (50.0, 100.0, 200.0, 400.0, 800.0, 1_600.0, 3_200.0)
    data = over_sparse(lambda s, _, m: float(m >= 6 * s**2), widths=(8,), samples=sizes, seeds=20)
    width = over_sparse(lambda s, r, _: float(r >= 30), widths=(8, 16, 32, 64), samples=(50.0,))
    beyond = over_sparse(lambda s, _, m: float(s < 16 and m >= 100), widths=(8,))

    assert LEAST_DATA.judge(in_arm(data), 0.05).judgement is CONTRADICTED
    assert LEAST_WIDTH.judge(in_arm(width), 0.05).judgement is CONTRADICTED
    finding = LEAST_DATA.judge(in_arm(beyond), 0.05)
    assert finding.judgement is UNDECIDED
    assert "; the grid does not bracket it at 16; " in finding.remark


def test_a_logarithm_of_the_bound_is_taken_off() -> None:
    """M like n log n has the exponent 1 once it is divided by log n."""
    sizes = tuple(float(round(20 * 1.05**i)) for i in range(70))
    rows = [
        run(100 if m >= n * math.log(n) else None, seed=s, **{"task.n": n, "data.m": m})
        | {"task": f"sparse_parity({n}, 3)"}
        for n in (10, 30, 90)
        for m in sizes
        for s in range(3)
    ]
    table = in_arm(table_of(rows))
    plain, per_log = (
        GrowsNoFaster("all", "task.n", "data.m", exponent=1, per_log=log).judge(table, 0.05)
        for log in (False, True)
    )

    assert per_log.estimate == pytest.approx(1, abs=0.03)
    assert plain.estimate == pytest.approx(1.3, abs=0.05)
    assert per_log.quantity == "exponent of the least data.m, over log n along task.n"


def test_runs_of_two_tasks_are_not_mixed_up() -> None:
    """Whichever task's runs come first, nothing is judged."""
    one = in_arm(over_sparse(lambda s, r, m: float(m >= 20 * s)))
    two = in_arm(over_sparse(lambda s, r, m: 1.0)).with_columns(task=pl.lit("sparse_parity(60, 3)"))
    findings = [LEAST_DATA.judge(pl.concat(order), 0.05) for order in ((one, two), (two, one))]

    assert repr(findings[0]) == repr(findings[1])  # as text, in which NaN equals NaN
    assert findings[0].judgement is UNDECIDED


@pytest.mark.parametrize("seeds", [2, 10])
def test_exponents_keep_their_level(seeds: int) -> None:
    """30 tables in which m grows like s itself: it is rarely found to grow faster or slower."""
    rule = GrowsNoFaster("all", "init.s", "data.m", exponent=1, tolerance=0.0)
    tables = [
        in_arm(
            over_sparse(
                lambda s, _, m: 1 / (1 + (20 * s / m) ** 2),
                sparsities=(4, 8, 16),
                widths=(8,),
                samples=tuple(10.0 * 2**i for i in range(9)),
                seeds=seeds,
                seed=seed,
            )
        )
        for seed in range(30)
    ]

    assert decided(rule, tables) <= most_wrong(30)


def test_a_single_size_decides_no_exponent() -> None:
    """One sample size, and an arm without runs."""
    table = in_arm(over_sparse(lambda s, r, m: 1.0, samples=(100.0,), widths=(8,)))

    assert LEAST_DATA.judge(table, 0.05).remark == (
        "needs two values of data.m, two seeds in each cell"
    )
    other = in_arm(sweep(nothing_matters), "other")
    assert LEAST_DATA.judge(other, 0.05).remark == "needs two values of init.s"


def test_recovery_is_simulated_in_small() -> None:
    """Two sizes and few trials: the claim is k − s − 1 = 1, and no run takes part."""
    wide, strict = (
        RecoverySlope(k=4, s=2, n_values=(11, 21), trials=10, tolerance=tolerance).judge(
            pl.DataFrame(), 0.05
        )
        for tolerance in (50.0, -50.0)
    )

    assert (wide.judgement, strict.judgement) == (SUPPORTED, CONTRADICTED)
    assert wide.estimate == strict.estimate
    assert wide.low <= wide.estimate <= wide.high
    assert wide.n == 20
    assert wide.remark.startswith("claimed 1; without the logarithm ")
    assert wide.remark.endswith("; n = 11, 21")


def test_the_logarithm_shifts_the_exponent_by_its_own() -> None:
    """The whole set is what is found: the slope of `recovery_slope`, less that of log n."""
    rule = RecoverySlope(k=4, s=2, n_values=(11, 21), trials=10)
    found = recovery_slope(
        (11, 21), 4, 2, trials=10, rng=np.random.default_rng(0), found="set", coverage=0.95
    )
    own = math.log(math.log(21) / math.log(11)) / math.log(21 / 11)

    assert rule.judge(pl.DataFrame(), 0.05).estimate == pytest.approx(found.slope - own)


def test_signs_that_are_kept_suffice_for_some_sparsities_alone() -> None:
    """(4, 2) and (6, 4) have a subnetwork beyond ½, (6, 2) has none: the theorem says all do."""
    fails = KeptSigns(((4, 2), (6, 2), (6, 4))).judge(pl.DataFrame(), 0.05)
    holds = KeptSigns(((4, 2), (6, 4))).judge(pl.DataFrame(), 0.05)

    assert (fails.judgement, holds.judgement) == (CONTRADICTED, SUPPORTED)
    assert fails.estimate == pytest.approx(0.423, abs=0.001)
    assert fails.remark == "(k, s) = (4, 2): 0.77, (k, s) = (6, 2): 0.42, (k, s) = (6, 4): 0.85"


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
