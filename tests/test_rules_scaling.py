"""Rules and figures about how the time to success scales with n and with the width."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest

from petridish.chapters.hidden.rules.scaling import Elbow, ScalesAsPowerOfN, cells_of
from petridish.statistics.estimate import censored_median
from petridish.statistics.power_laws import Cell, PowerLaw, find_break, fit_power_law
from tests.cell_tables import with_cells
from tests.rule_worlds import CONTRADICTED, SUPPORTED, UNDECIDED, decided, most_wrong
from tests.scaling_worlds import SIZES, curves, draw_less


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw less often: error rates need many tables, not fine quantiles."""
    draw_less(monkeypatch)


def bent(below: float, above: float, at: int = 18) -> Callable[[int, float], float]:
    """Give the exponent that makes a curve of two slopes that meet at `at`."""

    def power(_: int, n: float) -> float:
        if n <= at:
            return below
        return (below * math.log(at / 10) + above * math.log(n / at)) / math.log(n / 10)

    return power


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
    table = with_cells(pl.DataFrame(rows))
    strata = cells_of(table, along="task.n", within=("architecture", "task.k"))

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
        low, high = cell.interval(share, coverage=0.8)
        brute = np.quantile(drawn[:, rank - 1], [0.1, 0.9], method="inverted_cdf")
        ranks = np.searchsorted(cell.spread, [low, high, *brute])
        assert abs(ranks[:2] - ranks[2:]).max() <= 1


def test_quantiles_are_redrawn_together(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Median and 90th percentile of the same redrawn runs: means and correlation of brute force."""
    monkeypatch.setattr("petridish.statistics.power_laws.RESAMPLES", 20_000)
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
