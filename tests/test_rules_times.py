"""Rules about the time to success."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest

from petridish.rules.times import Quicker, SlowAtTheEdge, Valley, solved_times
from tests.rule_worlds import (
    CONTRADICTED,
    RULES,
    SUPPORTED,
    UNDECIDED,
    decided,
    most_wrong,
    near,
    nothing_matters,
    run,
    sweep,
    table_of,
    with_chance,
)

pytestmark = pytest.mark.usefixtures("few_resamples")


def test_times_are_laid_out_by_hand() -> None:
    """Infinite where unsolved, NaN where not run, and solved before the first step is one step."""
    rows = [
        run(300, seed=4, **{"model.width": 10}),
        run(None, seed=2, **{"model.width": 10}),
        run(0, seed=2, **{"model.width": 20}),
        run(500, seed=4, init="sparse(2)", **{"model.width": 20, "init.s": 2}),
    ]
    strata, widths, times = solved_times(
        table_of(rows), along="model.width", within=("init", "init.s")
    )

    assert sorted(strata, key=str) == [("sparse(2)", 2), ("uniform", None)]
    assert widths == [10, 20]
    dense, sparse = (times[strata.index(key)] for key in (("uniform", None), ("sparse(2)", 2)))
    assert dense.tolist()[0] == [math.inf, 300]
    assert dense[1, 0] == 1
    assert np.isnan(dense[1, 1])
    assert np.isnan(sparse).tolist() == [[True, True], [True, False]]


def test_quicker_by_hand() -> None:
    """4 times as long in one stratum and 9 times in another: 6 in the geometric mean."""
    times = {(10, 100.0): 400, (10, 200.0): 900, (100, 100.0): 100, (100, 200.0): 100}
    finding = Quicker().judge(
        sweep(lambda _, c: times[c["model.width"], c["data.m"]], samples=(100.0, 200.0)), 0.05
    )

    assert finding.estimate == pytest.approx(6)
    assert finding.judgement is SUPPORTED
    assert finding.remark == "from 10 to 100, 2 of 2 strata known"
    assert finding.n == 40


def test_a_median_beyond_the_budget_is_not_guessed() -> None:
    """A stratum in which less than half of the narrow nets succeed is left out, and counted."""

    def time(rng: np.random.Generator, cell: dict[str, Any]) -> int | None:
        if cell["model.width"] == 10 and cell["data.m"] == 100:
            return None
        return 800 if cell["model.width"] == 10 else 100

    finding = Quicker().judge(sweep(time), 0.05)
    assert finding.estimate == pytest.approx(8)
    assert finding.remark == "from 10 to 100, 2 of 3 strata known"


def test_what_is_said_of_a_median_is_true() -> None:
    """Half succeed at both ends, though on different seeds: the remark does not deny it."""
    rows = [
        run(100 if (s < 5) == (width == 10) else None, seed=s, **{"model.width": width})
        for width in (10, 100)
        for s in range(10)
    ]
    finding = Quicker().judge(table_of(rows), 0.05)

    assert finding.judgement is UNDECIDED
    assert finding.remark != "in no stratum do half of the runs succeed at both ends"


def test_no_run_overwrites_another() -> None:
    """Two runs of one cell and seed, of other budgets: whichever comes first, one verdict."""
    falls = sweep(lambda _, c: 9_000 // c["model.width"])
    rises = sweep(lambda _, c: 9 * c["model.width"])
    short, long = (
        table.with_columns(pl.lit(steps).alias("training.steps"))
        for table, steps in ((falls, 1_000), (rises, 4_000))
    )
    judgements = [
        Quicker().judge(pl.concat(order), 0.05).judgement
        for order in ((short, long), (long, short))
    ]

    assert judgements[0] is judgements[1]


def test_wider_and_slower_contradicts() -> None:
    """The opposite of the claim; and more data making runs slower, for the edge."""
    slower = sweep(lambda rng, c: near(100 * c["model.width"] ** 0.5, rng))
    later = sweep(lambda rng, c: near(10 * c["data.m"], rng))

    assert Quicker().judge(slower, 0.05).judgement is CONTRADICTED
    assert SlowAtTheEdge().judge(later, 0.05).judgement is CONTRADICTED


def test_the_edge_by_hand() -> None:
    """Infeasible at 100, 900 steps at 200, 300 and 600 beyond: 3 times the best."""
    times: dict[float, int | None] = {100.0: None, 200.0: 900, 400.0: 300, 800.0: 600}
    finding = SlowAtTheEdge().judge(
        sweep(lambda _, c: times[c["data.m"]], samples=(100.0, 200.0, 400.0, 800.0)), 0.05
    )

    assert finding.estimate == pytest.approx(3)
    assert (finding.low, finding.high) == pytest.approx((3, 3))
    online = sweep(lambda _, c: 300 if c["data.m"] == math.inf else 900, samples=(9.0, math.inf))
    assert SlowAtTheEdge().judge(online, 0.05).estimate == pytest.approx(3)


def test_strata_that_lack_an_end_are_left_out() -> None:
    """Narrow nets were not run with the smallest sample: the others are compared."""
    rule, table = RULES["quicker"]
    part = table().filter((pl.col("model.width") > 10) | (pl.col("data.m") > 100))

    assert rule.judge(part, 0.05).n == 2 * 2 * 10
    assert rule.judge(part, 0.05).judgement is SUPPORTED


@pytest.mark.parametrize("seeds", [2, 3, 12])
def test_quicker_keeps_its_level(seeds: int) -> None:
    """60 tables in which width does not matter, also of few seeds: one stratum, level 5 %."""
    tables = [
        sweep(nothing_matters, samples=(100.0,), seeds=seeds, seed=seed) for seed in range(60)
    ]

    assert decided(Quicker(), tables) <= most_wrong(60)


@pytest.mark.parametrize("samples", [2, 12])
def test_the_edge_keeps_its_level(samples: int) -> None:
    """30 tables in which the sample size does not matter: the best of many is best by luck."""
    sizes = [100.0 * 2**i for i in range(samples)]
    tables = [sweep(nothing_matters, samples=sizes, seeds=12, seed=seed) for seed in range(30)]

    assert decided(SlowAtTheEdge(), tables) <= most_wrong(30)


@pytest.mark.parametrize("score", ["success", "time"])
@pytest.mark.parametrize("chance", [0.5, 0.9])
def test_valleys_are_rarely_seen_where_there_are_none(
    score: Literal["success", "time"], chance: float
) -> None:
    """Over 20 tables of 8 cells, 5 % find one by luck."""
    tables = [
        sweep(
            lambda rng, c: near(3_000, rng) if rng.random() < chance else None,
            samples=(1.0, 2.0, 3.0, 4.0),
            seed=seed,
        )
        for seed in range(20)
    ]

    assert decided(Valley(score), tables) <= most_wrong(20)


@pytest.mark.parametrize("score", ["success", "time"])
def test_a_slope_is_no_valley(score: Literal["success", "time"]) -> None:
    """What only falls, or only rises, or rises before it falls, is undecided."""
    rises = {100.0: 0.0, 200.0: 0.5, 400.0: 1.0}
    falls = {100.0: 1.0, 200.0: 0.5, 400.0: 0.0}
    for chance in (rises, falls, {100.0: 0.0, 200.0: 1.0, 400.0: 0.0}):
        height = {m: 1 - p if score == "time" else p for m, p in chance.items()}
        table = sweep(lambda rng, c, h=height: with_chance(h[c["data.m"]], rng), seeds=20)  # type: ignore[misc]
        finding = Valley(score).judge(table, 0.05)
        assert finding.judgement is UNDECIDED
        assert finding.remark.endswith("none after the other")


def test_a_valley_by_hand() -> None:
    """90 %, none, then 75 % solved: it is 75 points deep, at the width where it is."""
    solved = {100.0: 18, 200.0: 0, 400.0: 15}
    rows = [
        run(
            100 if s < (solved[m] if width == 10 else 20) else None,
            seed=s,
            **{"model.width": width, "data.m": m},
        )
        for width in (10, 100)
        for m in solved
        for s in range(20)
    ]
    finding = Valley("success").judge(table_of(rows), 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.estimate == pytest.approx(0.75)
    assert finding.remark == (
        "at sparse_parity(50, 3), uniform, 10: 90% with data.m = 100, 0% with 200, 75% with 400"
    )


def test_equal_times_are_no_valley() -> None:
    """Every run solved at the first look: ranks all tie, and nothing is said."""
    finding = Valley("time").judge(sweep(lambda _, c: 100), 0.05)

    assert finding.judgement is UNDECIDED
    assert math.isnan(finding.estimate)
    assert finding.n == 60


@pytest.mark.parametrize("solved", [50, 24])
def test_a_valley_between_cells_that_fail_has_a_depth(solved: int) -> None:
    """Never, sometimes, never: the remark names no infinite time, and no estimate is NaN."""
    table = table_of(
        [
            run(100 if m == 200 and s < solved else None, seed=s, **{"data.m": m})
            for m in (100.0, 200.0, 400.0)
            for s in range(50)
        ]
    )
    finding = Valley("time").judge(table, 0.05)

    assert not math.isnan(finding.estimate)
    assert "inf steps" not in finding.remark
