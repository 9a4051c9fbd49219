"""The rule about width, tables that cannot be judged, and figures of scaling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.chapters.hidden.figures.scaling import scaling_curves, width_boxes
from petridish.chapters.hidden.rules.scaling import (
    ExponentGrowsWithK,
    ExponentWorsens,
    GrowsSlowerThanSearch,
    NoParallelSpeedup,
    UpperTailShrinks,
)
from petridish.errors import UserError
from petridish.figures.style import NothingToDraw
from tests.rule_worlds import CONTRADICTED, SUPPORTED, UNDECIDED, decided, most_wrong
from tests.scaling_worlds import Floats, Times, curves, draw_less, lognormal, widths


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw less often: error rates need many tables, not fine quantiles."""
    draw_less(monkeypatch)


# The width


def test_a_plateau_supports_random_search_contradicts() -> None:
    """Times that do not depend on r; the first of r geometric times; in between, √r is open."""

    def search(rng: np.random.Generator, cell: dict[str, Any], runs: int) -> Floats:
        hit = 1 / math.comb(cell["task.n"], 3)
        return rng.geometric(1 - (1 - hit) ** cell["model.width"], runs).astype(float)

    def root(rng: np.random.Generator, cell: dict[str, Any], runs: int) -> Floats:
        return lognormal(10_000 * cell["model.width"] ** -0.5)(rng, cell, runs)

    plateau = NoParallelSpeedup().judge(widths(lognormal(800)), 0.05)
    assert plateau.judgement is SUPPORTED
    assert abs(plateau.estimate) < 0.1
    assert NoParallelSpeedup().judge(widths(search, runs=300), 0.05).judgement is CONTRADICTED
    assert NoParallelSpeedup().judge(widths(root), 0.05).judgement is UNDECIDED


def test_the_speedup_by_hand() -> None:
    """900 steps at r = 10 and 300 at r = 1000: 3-fold, exponent log 3 / log 100; r < k is out."""
    times = {1: 20, 2: 20, 10: 900, 100: 600, 1_000: 300}
    table = widths(lambda _, cell, runs: np.full(runs, float(times[cell["model.width"]])), every=1)
    finding = NoParallelSpeedup().judge(table, 0.05)

    assert finding.estimate == pytest.approx(math.log(3) / math.log(100), abs=0.002)
    assert finding.remark.startswith("(30, 3): 3-fold from r = 10 to 1,000; (40, 3)")
    assert finding.n == 3 * 2 * 30


def test_widths_that_evaluations_or_the_budget_hide_are_no_ends() -> None:
    """Width 10 is rarely solved, 1000 at the first evaluation: the speed-up is from 30 to 100."""
    times = {3: 400.0, 10: 1e9, 30: 500.0, 100: 100.0, 1_000: 4.0}
    table = widths(
        lambda rng, cell, runs: lognormal(times[cell["model.width"]], 0.1)(rng, cell, runs),
        over=tuple(times),
    )
    remark = NoParallelSpeedup().judge(table, 0.05).remark

    assert "from r = 30 to 100;" in remark
    narrow = table.filter(pl.col("model.width") < 100)
    assert "from r = 3 to 30;" in NoParallelSpeedup().judge(narrow, 0.05).remark


def test_at_the_ceiling_the_speedup_is_rarely_decided() -> None:
    """An exponent of ½ in every task: the level is kept."""
    tables = [
        widths(
            lambda rng, cell, runs: lognormal(20_000 * cell["model.width"] ** -0.5)(
                rng, cell, runs
            ),
            over=(10, 1_000),
            runs=20,
            seed=seed,
        )
        for seed in range(150)
    ]
    assert decided(NoParallelSpeedup(), tables) <= most_wrong(150)


def tails(narrow: float, wide: float) -> Times:
    """Draw times whose spread depends on the width, medians alike."""
    return lambda rng, cell, runs: lognormal(800, narrow if cell["model.width"] < 100 else wide)(
        rng, cell, runs
    )


def test_a_lighter_tail_supports_a_heavier_contradicts() -> None:
    """The 90th percentile is 3.6 medians where narrow, 1.3 where wide; and the other way round."""
    lighter = UpperTailShrinks().judge(widths(tails(1.0, 0.2), runs=100), 0.05)

    assert lighter.judgement is SUPPORTED
    assert lighter.estimate == pytest.approx(math.exp(0.8 * 1.2816), rel=0.3)
    heavier = UpperTailShrinks().judge(widths(tails(0.2, 1.0), runs=100), 0.05)
    assert heavier.judgement is CONTRADICTED


def test_the_tail_by_hand() -> None:
    """Of 10 runs the ninth: 900 of 500 steps where narrow, 540 of 500 where wide; 5 / 3."""

    def time(rng: np.random.Generator, cell: dict[str, Any], runs: int) -> Floats:
        late = 900.0 if cell["model.width"] == 10 else 540.0
        return np.array([400.0, 410, 420, 430, 500, 510, 520, 530, late, late])

    finding = UpperTailShrinks().judge(widths(time, over=(10, 100), runs=10, every=1), 0.05)
    assert finding.estimate == pytest.approx(900 / 540, rel=0.002)
    assert "90 % / median 1.80 at r = 10, 1.08 at 100" in finding.remark


def test_a_percentile_beyond_the_budget_gives_way_to_a_lower_one() -> None:
    """With a quarter of the narrow runs unsolved, the tail is measured where it is known."""

    def time(rng: np.random.Generator, cell: dict[str, Any], runs: int) -> Floats:
        times = tails(0.8, 0.2)(rng, cell, runs)
        lost = rng.random(runs) < (0.25 if cell["model.width"] == 10 else 0.0)
        return np.where(lost, 1e9, times)

    finding = UpperTailShrinks().judge(widths(time, runs=400), 0.05)
    assert finding.judgement is SUPPORTED
    assert "(30, 3): 60 % / median" in finding.remark
    never = widths(lambda rng, cell, runs: np.where(np.arange(runs) % 2, 1e9, 500.0), runs=40)
    assert UpperTailShrinks().judge(never, 0.05).judgement is UNDECIDED


@pytest.mark.parametrize("lost", [0.0, 0.08])
def test_equal_tails_are_rarely_told_apart(lost: float) -> None:
    """The same spread at all widths, all solved or not: the level is kept."""

    def time(rng: np.random.Generator, cell: dict[str, Any], runs: int) -> Floats:
        times = rng.exponential(900, runs) + 100
        return np.where(rng.random(runs) < lost, 1e9, times)

    tables = [widths(time, over=(10, 100), runs=40, seed=seed) for seed in range(150)]
    assert decided(UpperTailShrinks(), tables) <= most_wrong(150)


# Tables that cannot be judged


RULES = (
    GrowsSlowerThanSearch(),
    ExponentGrowsWithK(),
    ExponentWorsens(("(i)",)),
    NoParallelSpeedup(),
    UpperTailShrinks(),
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_what_cannot_be_judged_is_undecided(rule: Any) -> None:
    """No runs, two runs per cell, nothing solved, or runs that share a seed: nothing is claimed."""
    table = (
        curves(2.0).with_columns(pl.lit(10).alias("model.width"))
        if rule in RULES[:2]
        else widths(lognormal(800)).with_columns(pl.lit("polynet(3)").alias("model"))
    )
    unsolved = table.with_columns(pl.lit(None, pl.Int64).alias("solved_at"))
    twice = pl.concat(
        [table, table.with_columns(pl.lit(0.3).alias("training.learning_rate"))], how="diagonal"
    )

    for poor in (table.head(0), table.filter(pl.col("seed") < 2), unsolved, twice):
        finding = rule.judge(poor, 0.05)
        assert finding.judgement is UNDECIDED
        assert math.isnan(finding.estimate)
        assert finding.remark
    assert "several runs share" in rule.judge(twice, 0.05).remark


def test_figures_refuse_runs_that_share_a_cell_and_a_seed() -> None:
    """Two learning rates in one cell would stand for each other."""
    table = curves(2.0)
    with pytest.raises(
        UserError, match=r"^Several runs share architecture, task\.k, task\.n, seed"
    ):
        scaling_curves(pl.concat([table, table]), "title")


# Figures


def test_scaling_curves_show_exponents_and_where_they_halt() -> None:
    """A panel an architecture, a legend with exponents, an open mark beyond the budget."""
    table = curves(
        lambda k, _: 2.0 if k == 2 else 6.0,
        models=("polynet(K)", "mlp(10, (), relu, linear)"),
        runs=100,
        budget=3_000,
    )
    figure = scaling_curves(table, "title")
    first, second = figure.axes
    legend = first.get_legend()

    assert first.get_title(loc="left") == "(i): ReLU MLP, r = 10"
    assert second.get_title(loc="left") == "(xv): PolyNet"
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels[0].startswith("k = 2: $n^{2.")
    assert labels[1] == "k = 3: –"
    marks = [line for line in first.lines if line.get_marker() == "^"]
    assert [float(mark.get_xdata()[0]) for mark in marks] == [18.0]  # type: ignore[arg-type, index]
    figure.draw_without_rendering()


def test_width_boxes_show_what_was_not_solved() -> None:
    """One panel per task; the number of unsolved runs above the box, where there are any."""

    def time(rng: np.random.Generator, cell: dict[str, Any], runs: int) -> Floats:
        lost = {1: 30, 2: 18, 10: 3}.get(cell["model.width"], 0)
        return np.where(np.arange(runs) < lost, 1e9, lognormal(800)(rng, cell, runs))

    figure = width_boxes(widths(time), "title")

    assert [panel.get_title(loc="left") for panel in figure.axes] == [
        f"n = {n}, k = 3" for n in (30, 40, 50)
    ]
    assert [text.get_text() for text in figure.axes[0].texts] == ["30", "18", "3"]
    figure.draw_without_rendering()


def test_random_search_is_expected_by_hand() -> None:
    """C(4, 2) = 6 subsets: 6 draws alone, 36 / 11 for two; never less than one draw."""
    from petridish.chapters.hidden.figures.scaling import random_search

    expected = random_search(4, 2, np.array([1.0, 2.0, 1e6]))
    assert expected.tolist() == pytest.approx([6, 36 / 11, 1])
    assert random_search(3, 3, np.array([1.0])).tolist() == [1.0]


def test_without_runs_there_is_nothing_to_draw() -> None:
    """An empty table is refused with what to do."""
    with pytest.raises(
        NothingToDraw, match=r"^No run has a value of task\.n\. Run the sweep first"
    ):
        scaling_curves(curves(2.0).head(0), "title")
