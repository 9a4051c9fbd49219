"""What more data spoils, which start is best, and where one succeeds while another fails."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.chapters.pareto.rules.samples import Steadier, WidthRemoves, Worsens
from petridish.chapters.pareto.rules.starts import BestStart, SucceedsWhereFails
from petridish.rules.success import FrontierShrinks
from tests.rule_worlds import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    by_sample,
    decided,
    in_arm,
    later_with_data,
    most_wrong,
    near,
    run,
    sweep,
    table_of,
    with_chance,
)

pytestmark = pytest.mark.usefixtures("few_resamples")
BOTH = ("sparse(2)", "uniform")


def test_a_fall_by_hand() -> None:
    """All of 20 seeds succeed with 100 and 200 examples, every fourth pair of them with 400."""
    rows = [
        run(100 if m < 400 or s % 4 < 2 else None, seed=s, **{"data.m": m})
        for m in (100.0, 200.0, 400.0)
        for s in range(20)
    ]
    finding = Worsens("success").judge(table_of(rows), 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.estimate == pytest.approx(0.5)
    assert finding.n == 60
    assert finding.remark == "at sparse_parity(50, 3), uniform, 10: 100%, then 50%; 1 strata"


def test_what_never_falls_contradicts() -> None:
    """Success rises with the sample, at every width, with 50 seeds; twenty leave it open."""
    chances = {100.0: 0.0, 200.0: 1.0, 400.0: 1.0}
    many, few = (by_sample(chances, seeds=seeds) for seeds in (50, 20))

    assert Worsens("success", margin=0.3).judge(many, 0.005).judgement is CONTRADICTED
    finding = Worsens("success", margin=0.3).judge(few, 0.005)
    assert finding.judgement is UNDECIDED
    assert "it may be as much as the interval's upper end; differences from 0" in finding.remark
    assert finding.note.startswith("the fall: about ")
    assert finding.note.endswith(
        " seeds instead of 20 would exclude 0.3, if the estimate stays, and contradict the claim"
    )


def test_a_slope_is_no_valley() -> None:
    """A fall that is not made up contradicts fall and return; a valley supports it."""
    falls = by_sample({100.0: 1.0, 200.0: 1.0, 400.0: 0.0})
    rule = Worsens("success", returns=True, margin=0.3)

    assert rule.judge(falls, 0.005).judgement is CONTRADICTED
    assert Worsens("success", margin=0.3).judge(falls, 0.005).judgement is SUPPORTED
    valley = by_sample({100.0: 1.0, 200.0: 0.1, 400.0: 1.0})
    assert rule.judge(valley, 0.005).judgement is SUPPORTED


@pytest.mark.parametrize("score", ["success", "time"])
@pytest.mark.parametrize("chance", [0.5, 0.9])
def test_falls_are_rarely_seen_where_there_are_none(score: Any, chance: float) -> None:
    """Over 100 tables of 8 cells of equal luck: what was chosen is measured on other seeds."""
    tables = [
        sweep(
            lambda rng, c: near(3_000, rng) if rng.random() < chance else None,
            samples=(1.0, 2.0, 3.0, 4.0),
            seeds=20,
            seed=seed,
        )
        for seed in range(100)
    ]

    assert decided(Worsens(score), tables) <= most_wrong(100)
    assert decided(Worsens(score, returns=True), tables) <= most_wrong(100)


def test_times_that_fall_with_data_contradict() -> None:
    """And a time that grows fourfold is found to."""
    quicker = sweep(lambda rng, c: near(3e6 / c["data.m"], rng), seeds=50)
    later = Worsens("time", margin=0.5).judge(later_with_data(4, 4), 0.01)

    assert Worsens("time", margin=0.5).judge(quicker, 0.01).judgement is CONTRADICTED
    assert later.judgement is SUPPORTED
    assert later.low < 4 < later.high


def test_width_removes_a_growth_or_does_not() -> None:
    """The narrow network's time grows sixfold; the wide one's does not, or does, or neither."""
    rule = WidthRemoves("uniform", margin=0.5)
    gone, stays, none = (
        rule.judge(later_with_data(*growths, seeds=40), 0.01)
        for growths in ((6, 1), (6, 6), (1, 1))
    )

    assert (gone.judgement, stays.judgement) == (SUPPORTED, CONTRADICTED)
    assert none.judgement is UNDECIDED
    assert none.remark.endswith("so that there is nothing to remove")
    assert WidthRemoves("sparse(2)").judge(later_with_data(6, 1), 0.01).judgement is UNDECIDED


def test_the_steadier_start() -> None:
    """The dense start falls, or the sparse one does, or neither."""

    def falling(init: str) -> pl.DataFrame:
        def time(rng: np.random.Generator, cell: dict[str, Any]) -> int | None:
            worse = cell["data.m"] == 400 and cell["init"] == init
            return with_chance(0.2 if worse else 1.0, rng)

        return sweep(time, inits=BOTH, seeds=30)

    assert Steadier().judge(falling("uniform"), 0.05).judgement is SUPPORTED
    assert Steadier().judge(falling("sparse(2)"), 0.05).judgement is CONTRADICTED
    assert Steadier().judge(falling("neither"), 0.05).remark == (
        "success falls from neither start, in 2 strata"
    )


def test_the_sample_that_a_start_needs() -> None:
    """Dense needs 400 examples and sparse 100 from width 100 on; below it is the other way."""

    def time(rng: np.random.Generator, cell: dict[str, Any]) -> int | None:
        sparse = cell["init"] == "sparse(2)"
        least = 100 if sparse == (cell["model.width"] == 100) else 400
        return 100 if cell["data.m"] >= least else None

    table = sweep(time, inits=BOTH, seeds=20)
    rule = FrontierShrinks(
        "init",
        within=("task", "model.width"),
        ends=("uniform", "sparse(2)"),
        at_least={"model.width": 100},
    )
    finding = rule.judge(table, 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.estimate == pytest.approx(4)
    assert finding.quantity == "data.m at 50 % success, uniform / sparse(2)"
    below = table.filter(pl.col("model.width") == 10).with_columns(pl.lit(100).alias("model.width"))
    assert rule.judge(below, 0.05).judgement is CONTRADICTED
    alone = table.filter(pl.col("init") == "uniform")
    assert rule.judge(alone, 0.05).remark == "needs two values of init and of data.m"


@pytest.mark.parametrize("score", ["success", "time"])
def test_a_better_start_contradicts_the_best(score: Any) -> None:
    """Another start is better in the one case, as good in the other."""

    def world(best: str) -> pl.DataFrame:
        def time(rng: np.random.Generator, cell: dict[str, Any]) -> int | None:
            good = cell["init"] in (best, "sparse(3)")
            if score == "success":
                return with_chance(0.95 if good else 0.2, rng)
            return near(1_000 if good else 9_000, rng)

        return sweep(time, inits=("sparse(2)", "sparse(3)", "uniform"), seeds=20)

    better, tied = (BestStart("sparse(2)", score).judge(world(b), 0.05) for b in ("", "sparse(2)"))
    assert better.judgement is CONTRADICTED
    assert tied.judgement is UNDECIDED
    assert tied.quantity.endswith("(sparse(3))")
    alone = world("").filter(pl.col("init") == "uniform")
    assert BestStart("sparse(2)", score).judge(alone, 0.05).remark == (
        "sparse(2) was not run beside another start"
    )


def test_where_one_start_fails_and_the_other_does_not() -> None:
    """The claim is about a dense start that fails at every sample: else nothing is decided."""

    def world(dense: float) -> pl.DataFrame:
        def time(rng: np.random.Generator, cell: dict[str, Any]) -> int | None:
            return (
                100 if cell["data.m"] >= (100 if cell["init"] == "sparse(2)" else dense) else None
            )

        return in_arm(sweep(time, inits=BOTH, samples=(50.0, 100.0, 200.0), seeds=20), "n = 100")

    rule = SucceedsWhereFails(("n = 100",))
    helped = rule.judge(world(math.inf), 0.05)

    assert helped.judgement is SUPPORTED
    assert helped.remark == (
        "at sparse_parity(50, 3), r = 10, m = 100: 20 of 20 from sparse(2) and 0 of 20 from "
        "uniform; so in 4 of 6 cells; uniform fails at every m at 2 of 2 tasks and widths"
    )
    unsolved = world(math.inf).with_columns(outcome=pl.lit("OUT_OF_STEPS"))
    assert rule.judge(unsolved, 0.05).judgement is UNDECIDED  # the budget is too small for both
    widest = pl.col("model.width").max()
    alike = world(100).filter(pl.col("model.width") < widest)  # at the other width neither works
    both_fail = unsolved.filter(pl.col("model.width") == widest)
    assert rule.judge(pl.concat([alike, both_fail]), 0.05).judgement is CONTRADICTED
    for dense in (100, 200):  # as soon as the sparse one, or later
        later = rule.judge(world(dense), 0.05)
        assert later.judgement is UNDECIDED
        assert "at 0 of 2 tasks and widths: the premise is not met" in later.remark
    assert math.isnan(rule.judge(in_arm(world(200), "other"), 0.05).estimate)
