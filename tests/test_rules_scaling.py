"""Rules and figures about how the time to success scales with n and with the width."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from petridish.analysis import censored_median
from petridish.analysis.scaling import (
    Cell,
    Elbow,
    NoParallelSpeedup,
    PowerLaw,
    ScalesAsPowerOfN,
    UpperTailShrinks,
    cells_of,
    find_break,
    fit_power_law,
)
from petridish.figures.scaling import scaling_curves, width_boxes
from petridish.figures.style import NothingToDraw
from petridish.naming import UserError
from tests.rule_worlds import CONTRADICTED, SUPPORTED, UNDECIDED, decided, most_wrong

Floats = NDArray[np.float64]
Times = Callable[[np.random.Generator, dict[str, Any], int], Floats]
SIZES = (10, 14, 18, 22, 26, 30)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw less often: error rates need many tables, not fine quantiles."""
    monkeypatch.setattr("petridish.analysis.scaling.NULL_DRAWS", 500)
    monkeypatch.setattr("petridish.analysis.scaling.RESAMPLES", 500)


def lognormal(median: float, spread: float = 0.5) -> Times:
    """Draw times around a median."""
    return lambda rng, _, runs: median * np.exp(spread * rng.standard_normal(runs))


def table_of(
    cells: Sequence[dict[str, Any]],
    time: Times,
    *,
    runs: int = 30,
    seed: int = 0,
    every: int = 10,
    budget: int = 100_000,
) -> pl.DataFrame:
    """Draw the runs of all cells, found solved at the first look after their time."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {"solved_at": [], "seed": []}
    for cell in cells:
        looked = every * np.ceil(time(rng, cell, runs) / every)
        columns["solved_at"] += [int(t) if t <= budget else None for t in looked]
        columns["seed"] += range(runs)
        for name, value in cell.items():
            columns.setdefault(name, []).extend([value] * runs)
    return pl.DataFrame(columns, schema_overrides={"solved_at": pl.Int64}).with_columns(
        pl.lit(budget).alias("training.steps"), pl.lit(every).alias("evaluation.every")
    )


def curves(
    exponent: Callable[[int, float], float] | float,
    *,
    models: Sequence[str] = ("mlp(10, (), relu, linear)",),
    degrees: Sequence[int] = (2, 3),
    sizes: Sequence[int] = SIZES,
    **settings: Any,
) -> pl.DataFrame:
    """Draw scaling curves that pass through 200 at n = 10, with an exponent of (k, n)."""

    def time(rng: np.random.Generator, cell: dict[str, Any], runs: int) -> Floats:
        k, n = cell["task.k"], cell["task.n"]
        power = exponent(k, n) if callable(exponent) else exponent
        return lognormal(200 * (n / 10) ** power)(rng, cell, runs)

    cells = [
        {"model": model.replace("K", str(k)), "task.k": k, "task.n": n}
        for model in models
        for k in degrees
        for n in sizes
    ]
    return table_of(cells, time, **settings)


def bent(below: float, above: float, at: int = 18) -> Callable[[int, float], float]:
    """Give the exponent that makes a curve of two slopes that meet at `at`."""

    def power(_: int, n: float) -> float:
        if n <= at:
            return below
        return (below * math.log(at / 10) + above * math.log(n / at)) / math.log(n / 10)

    return power


def widths(
    time: Times, *, over: Sequence[int] = (1, 2, 10, 100, 1_000), **settings: Any
) -> pl.DataFrame:
    """Draw runs over widths, on three tasks."""
    cells = [{"task.n": n, "task.k": 3, "model.width": r} for n in (30, 40, 50) for r in over]
    return table_of(cells, time, **settings)


def cell_of(times: Sequence[float], *, every: int = 10) -> Cell:
    """Make a cell by hand."""
    return Cell(10.0, np.sort(np.array(times, np.float64)), every, 100_000)


# Cells and their medians


def test_cells_are_gathered_by_hand() -> None:
    """Architectures as in the source, n from the smallest, unsolved last, the smallest budget."""
    rows = [
        {"model": model, "task.k": 2, "task.n": n, "seed": seed, "solved_at": at}
        | {"training.steps": budget, "evaluation.every": 10}
        for model, n, seed, at, budget in (
            ("polynet(2)", 10, 0, 30, 100),
            ("mlp(100, (), relu, linear)", 20, 0, 90, 100),
            ("mlp(100, (), relu, linear)", 20, 1, None, 100),
            ("mlp(100, (), relu, linear)", 20, 2, 70, 80),
            ("mlp(100, (), relu, linear)", 10, 0, 50, 100),
        )
    ]
    strata = cells_of(pl.DataFrame(rows), along="task.n", within=("architecture", "task.k"))

    assert list(strata) == [("(ii)", 2), ("(xv)", 2)]
    assert [cell.at for cell in strata["(ii)", 2]] == [10, 20]
    assert strata["(ii)", 2][1].times.tolist() == [70, math.inf, math.inf]
    assert strata["(ii)", 2][1].budget == 80


def test_looks_are_spread_by_hand() -> None:
    """Two runs found at 10 and one at 20: at 2.5, 7.5 and 15, in the middle of what is known."""
    assert cell_of([10, 10, 20, math.inf]).spread.tolist() == [2.5, 7.5, 15, math.inf]
    assert cell_of([0, 10]).spread.tolist() == [0.5, 5]


def test_quantiles_are_the_censored_ones(seed: int) -> None:
    """The median is the censored median, but for less than one look; known if half are solved."""
    rng = np.random.default_rng(seed)
    for runs in range(1, 40):
        times = 10 * rng.integers(1, 9, runs).astype(float)
        times[rng.random(runs) < 0.4] = math.inf
        expected = censored_median([None if math.isinf(t) else float(t) for t in times])
        found = cell_of(list(times)).quantile()
        assert found == expected or expected - 10 < found < expected
    tenth = cell_of([10.0] * 9 + [math.inf])
    assert math.isfinite(tenth.quantile(0.9))
    assert math.isinf(tenth.quantile(0.91))


def test_intervals_are_those_of_redrawn_runs(seed: int) -> None:
    """The exact percentiles of the bootstrap are those that brute force finds."""
    rng = np.random.default_rng(seed)
    cell = cell_of(list(10 * rng.integers(1, 500, 41)), every=1)
    drawn = np.sort(rng.choice(cell.spread, (20_000, 41)), axis=1)
    for share, rank in ((0.5, 21), (0.9, 37)):
        low, high = cell.interval(share, level=0.8)
        brute = np.quantile(drawn[:, rank - 1], [0.1, 0.9], method="inverted_cdf")
        ranks = np.searchsorted(cell.spread, [low, high, *brute])
        assert abs(ranks[:2] - ranks[2:]).max() <= 1


def test_quantiles_are_redrawn_together(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Median and 90th percentile of the same redrawn runs: means and correlation of brute force."""
    monkeypatch.setattr("petridish.analysis.scaling.RESAMPLES", 20_000)
    rng = np.random.default_rng(seed)
    cell = cell_of(list(rng.exponential(1_000, 30)), every=1)
    found = cell.redrawn([0.5, 0.9], rng)
    brute = np.sort(rng.choice(cell.spread, (20_000, 30)), axis=1)[:, [14, 26]]

    assert found.mean(axis=0) == pytest.approx(brute.mean(axis=0), rel=0.02)
    assert np.cov(found.T) == pytest.approx(np.cov(brute.T), rel=0.1)


def test_half_of_the_runs_must_be_solved_for_sure() -> None:
    """A median whose interval leaves the budget has no error, and no place in a fit."""
    assert math.isfinite(cell_of([10.0 * i for i in range(1, 20)]).log_error())
    assert math.isinf(cell_of([10.0] * 6 + [math.inf] * 5).log_error())


# The power law


def test_a_power_law_is_found_again() -> None:
    """20 n² steps without noise, looked at in every step: exponent 2, factor 20."""
    cells = [Cell(n, np.full(9, 20.0 * n**2), 1, 10**9) for n in (10.0, 20.0, 40.0)]
    law = fit_power_law(cells)

    assert isinstance(law, PowerLaw)
    assert law.exponent == pytest.approx(2, abs=0.002)
    assert law(20) == pytest.approx(8_000, rel=0.002)
    assert fit_power_law(cells[:2]) is None


def test_the_error_of_an_exponent_is_that_of_redrawn_runs(seed: int) -> None:
    """Redrawing runs and fitting again spreads the exponent as its error says, or a little less."""
    rng = np.random.default_rng(seed)
    cells = [
        Cell(n, np.sort(n**2 * np.exp(0.5 * rng.standard_normal(200))), 1, 10**9)
        for n in (10.0, 15.0, 20.0, 30.0, 40.0)
    ]
    law = fit_power_law(cells)
    assert law is not None
    again = []
    for _ in range(150):
        redrawn = [Cell(c.at, np.sort(rng.choice(c.times, 200)), 1, 10**9) for c in cells]
        fitted = fit_power_law(redrawn)
        assert fitted is not None
        again.append(fitted.exponent)
    assert 0.8 * np.std(again) < law.error < 2 * np.std(again)


@pytest.mark.parametrize("runs", [20, 200])
def test_intervals_of_exponents_cover(runs: int) -> None:
    """Of 150 power laws, the 95 % intervals miss hardly more than 5 %, looks of 10 steps or not."""
    z, missed = NormalDist().inv_cdf(0.975), 0
    for seed in range(150):
        (cells,) = cells_of(
            curves(2.0, degrees=(3,), runs=runs, seed=seed),
            along="task.n",
            within=("architecture", "task.k"),
        ).values()
        law = fit_power_law(cells)
        assert law is not None
        missed += abs(law.exponent - 2) > z * law.error
    assert missed <= most_wrong(150)


def test_small_exponents_support_large_ones_contradict() -> None:
    """α = 0.6 for all is below exhaustive search; 1.4 for one k is above; about 1 is open."""
    small = ScalesAsPowerOfN().judge(curves(lambda k, _: 0.6 * k), 0.05)
    large = ScalesAsPowerOfN().judge(curves(lambda k, _: 1.4 * k if k == 3 else 0.6 * k), 0.05)
    open_ = ScalesAsPowerOfN().judge(curves(lambda k, _: float(k)), 0.05)

    assert small.judgement is SUPPORTED
    assert small.estimate == pytest.approx(0.6, abs=0.1)
    assert small.low < small.estimate < small.high < 1
    assert large.judgement is CONTRADICTED
    assert open_.judgement is UNDECIDED


def test_as_slow_as_exhaustive_search_is_rarely_decided() -> None:
    """α = 1 in all strata: the level is kept, for few runs and with medians beyond the budget."""
    tables = [
        curves(lambda k, _: float(k), runs=15, seed=seed, budget=2_500) for seed in range(150)
    ]
    assert decided(ScalesAsPowerOfN(), tables) <= most_wrong(150)


def test_the_remark_is_a_table_of_exponents() -> None:
    """Strata in order, with a dash where fewer than three medians are known."""
    table = curves(
        lambda k, _: 0.5 * k if k < 5 else 9.0,
        models=("polynet(K)", "mlp(10, (), relu, linear)"),
        degrees=(2, 5),
        runs=400,
        budget=4_000,
        sizes=(10, 20, 30, 40),
    )
    finding = ScalesAsPowerOfN().judge(table, 0.05)

    assert finding.remark.startswith("mean α 0.5")
    assert "2 of 4 strata have three known medians" in finding.remark
    (first, second) = finding.remark.partition("α: ")[2].split("; ")
    assert first.startswith("(i) 0.5")
    assert first.endswith(", – (k = 2, 5)")
    assert second.startswith("(xv) 0.5")
    assert finding.n == 2 * 4 * 400


def test_budgets_may_differ_between_cells() -> None:
    """A smaller budget at larger n leaves the exponent as it was, while medians are within it."""
    whole = curves(2.0, degrees=(2,), runs=400)
    cut = whole.with_columns(
        pl.when(pl.col("task.n") > 20).then(3_000).otherwise(100_000).alias("training.steps")
    ).with_columns(
        pl.when(pl.col("solved_at") <= pl.col("training.steps"))
        .then("solved_at")
        .alias("solved_at")
    )
    assert cut["solved_at"].null_count() > 50
    both = [ScalesAsPowerOfN().judge(table, 0.05).estimate for table in (whole, cut)]
    assert both[0] == pytest.approx(both[1], abs=0.02)


# The elbow


def test_an_elbow_is_found_where_it_is() -> None:
    """Slope 1.5 up to n = 18 and 4 beyond: supported, with the place and about both slopes."""
    finding = Elbow().judge(curves(bent(1.5, 4.0), degrees=(3,), runs=300), 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.estimate == pytest.approx(2.5, abs=0.5)
    assert 0 < finding.low < 2.5 < finding.high
    assert "(i), k = 3: n^1." in finding.remark
    assert "to n = 18, " in finding.remark


def test_flattening_contradicts_and_both_leave_it_open() -> None:
    """A slope that falls is the opposite; one stratum with each decides nothing."""
    falls = curves(bent(4.0, 1.5), degrees=(3,), runs=300)
    mixed = curves(lambda k, n: bent(1.5, 4.0)(k, n) if k == 2 else bent(4.0, 1.5)(k, n), runs=300)
    both = Elbow().judge(mixed, 0.05)

    assert Elbow().judge(falls, 0.05).judgement is CONTRADICTED
    assert Elbow().judge(falls, 0.05).high < 0
    assert both.judgement is UNDECIDED
    assert "1 have a significant increase and 1 a decrease" in both.remark


@pytest.mark.parametrize(
    ("runs", "median", "budget"), [(20, 200, 10**6), (20, 200, 1_500), (200, 30, 10**6)]
)
def test_a_straight_line_rarely_breaks(runs: int, median: int, budget: int) -> None:
    """Power laws with few runs, with medians beyond the budget, with times of a few looks."""
    wrong = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        cells = []
        for n in SIZES:
            times = median * (n / 10) ** 2 * rng.gamma(3, 1 / 3, runs)
            looked = 10 * np.ceil(times / 10)
            looked[looked > budget] = math.inf
            cells.append(Cell(float(n), np.sort(looked), 10, budget))
        found = find_break(cells, level=0.05)
        wrong += found is not None and found.p < 0.05
    assert wrong <= most_wrong(400)


def test_the_search_over_strata_is_paid_for() -> None:
    """Four strata, all straight: hardly more than 5 % of the tables are said to break."""
    tables = [
        curves(lambda k, _: 0.7 * k, degrees=(2, 3, 4, 5), runs=12, seed=seed)
        for seed in range(100)
    ]
    assert decided(Elbow(), tables) <= most_wrong(100)


def test_looks_alone_make_no_elbow() -> None:
    """Times rounded up to looks would bend the curve, were they taken as they are."""
    rng = np.random.default_rng(0)
    times = [12 * (n / 10) ** 1.2 * rng.gamma(4, 0.25, 4_000) for n in SIZES]
    looked = [np.sort(10 * np.ceil(t / 10)) for t in times]
    spread = [Cell(float(n), t, 10, 10**6) for n, t in zip(SIZES, looked, strict=True)]
    plain = [Cell(float(n), t, 1, 10**6) for n, t in zip(SIZES, looked, strict=True)]
    found, raw = (find_break(cells, level=0.05) for cells in (spread, plain))

    assert found is not None
    assert raw is not None
    assert found.p > 0.05 > raw.p


def test_three_medians_have_no_elbow() -> None:
    """With fewer than four known medians nothing is said."""
    finding = Elbow().judge(curves(2.0, sizes=(10, 20, 30)), 0.05)

    assert finding.judgement is UNDECIDED
    assert finding.remark == "no stratum has four known medians"


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


def test_widths_that_the_looks_or_the_budget_hide_are_no_ends() -> None:
    """Width 10 is rarely solved and 1000 at the first look: the speed-up is from 30 to 100."""
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


RULES = (ScalesAsPowerOfN(), Elbow(), NoParallelSpeedup(), UpperTailShrinks())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_what_cannot_be_judged_is_undecided(rule: Any) -> None:
    """No runs, two runs a cell, nothing solved, or runs that share a seed: nothing is claimed."""
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
    """A panel a task; the number of unsolved runs above the box, where there are any."""

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
    from petridish.figures.scaling import random_search

    expected = random_search(4, 2, np.array([1.0, 2.0, 1e6]))
    assert expected.tolist() == pytest.approx([6, 36 / 11, 1])
    assert random_search(3, 3, np.array([1.0])).tolist() == [1.0]


def test_without_runs_there_is_nothing_to_draw() -> None:
    """An empty table is refused with what to do."""
    with pytest.raises(
        NothingToDraw, match=r"^No run has a value of task\.n\. Run the sweep first"
    ):
        scaling_curves(curves(2.0).head(0), "title")
