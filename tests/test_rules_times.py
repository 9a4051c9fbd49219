"""Rules about the time to success."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.rules.times import Quicker, SlowAtTheEdge, solved_times
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


def test_two_starts_are_compared_within_bounds() -> None:
    """Dense takes twice as long from width 100 on, and a third as long below."""

    def time(rng: np.random.Generator, cell: dict[str, Any]) -> int:
        slow = 2 if cell["model.width"] == 100 else 1 / 3
        return round(600 * (slow if cell["init"] == "uniform" else 1))

    table = sweep(time, inits=("sparse(2)", "uniform"))
    starts, within = ("uniform", "sparse(2)"), ("task", "data.m", "model.width")
    wide = Quicker("init", within, ends=starts, at_least={"model.width": 100})
    narrow = Quicker("init", within, ends=starts[::-1], at_most={"model.width": 10})

    for rule, ratio in ((wide, 2.0), (narrow, 3.0)):
        finding = rule.judge(table, 0.05)
        assert finding.judgement is SUPPORTED
        assert finding.estimate == pytest.approx(ratio)
    assert wide.judge(table, 0.05).quantity == "median time, uniform / sparse(2)"
    assert wide.judge(table, 0.05).remark == "from uniform to sparse(2), 3 of 3 strata known"
    turned = replace(wide, ends=starts[::-1]).judge(table, 0.05)
    assert turned.judgement is CONTRADICTED
    missing = replace(wide, ends=("uniform", "sparse(9)")).judge(table, 0.05)
    assert missing.remark == "needs runs with init = uniform and = sparse(9)"


QUICK = ("init",)
SETTINGS = ("a", "b", "c", "d", "e", "f")


@pytest.mark.parametrize(
    ("rule", "times", "estimate"),
    [
        (
            Quicker(within=("task", "data.m"), best_over=QUICK),
            {(10, "a"): 400, (10, "b"): 800, (100, "a"): 900, (100, "b"): 100},
            4.0,
        ),
        (
            SlowAtTheEdge("model.width", ("task", "data.m"), best_over=QUICK),
            {(10, "a"): None, (10, "b"): 900, (100, "a"): 300, (100, "b"): 1_200},
            3.0,
        ),
    ],
    ids=["quicker", "edge"],
)
def test_every_cell_is_taken_at_its_best_setting(
    rule: Any, times: dict[tuple[int, str], int | None], estimate: float
) -> None:
    """The worse settings of a cell say nothing; without `best_over` runs are not pooled."""
    table = table_of(
        [
            run(time, seed=seed, init=init, **{"model.width": width, "training.steps": 9_000})
            for (width, init), time in times.items()
            for seed in range(20)
        ]
    )
    finding = rule.judge(table, 0.05)
    assert finding.judgement is SUPPORTED
    assert finding.estimate == pytest.approx(estimate)
    assert finding.quantity.endswith(", at the best init")
    pooled = replace(rule, best_over=()).judge(table, 0.05)
    assert pooled.judgement is UNDECIDED
    assert pooled.remark.startswith("several runs share model.width, task, data.m, seed and differ")


@pytest.mark.parametrize(
    "rule",
    [
        Quicker(within=("task", "data.m"), best_over=QUICK),
        SlowAtTheEdge("model.width", ("task", "data.m"), best_over=QUICK),
    ],
    ids=lambda rule: type(rule).__name__,
)
def test_the_best_of_many_settings_is_not_flattered(rule: Any) -> None:
    """60 tables in which nothing matters, with six settings at one width and one at the other."""
    tables = []
    for seed in range(60):
        table = sweep(nothing_matters, samples=(100.0,), inits=SETTINGS, seeds=12, seed=seed)
        kept = table.filter((pl.col("model.width") == 10) | (pl.col("init") == "a"))
        tables.append(kept.with_columns(pl.lit(90_000).alias("training.steps")))

    assert decided(rule, tables) <= most_wrong(60)
    assert not any(math.isnan(rule.judge(table, 0.05).estimate) for table in tables)
