"""Rules and figures about how the time to success scales with n and with the width."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.chapters.hidden.rules.scaling import (
    ExponentGrowsWithK,
    ExponentWorsens,
    GrowsSlowerThanSearch,
    cells_of,
)
from petridish.statistics.intervals import lower_median
from petridish.statistics.power_laws import Cell, PowerLaw, fit_power_law
from tests.cell_tables import with_cells
from tests.rule_worlds import CONTRADICTED, SUPPORTED, UNDECIDED, decided, most_wrong
from tests.scaling_worlds import SIZES, curves, draw_less


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw less often: error rates need many tables, not fine quantiles."""
    draw_less(monkeypatch)


def bent(below: float, above: float, at: int = 18) -> Callable[[int, float], float]:
    """Return the exponent that makes a curve of two slopes that meet at `at`."""

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
    """Architectures as in the paper, n from the smallest, unsolved last, the smallest budget."""
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
    """The median is the lower one, but for less than an evaluation; known if half are solved."""
    rng = np.random.default_rng(seed)
    for runs in range(1, 40):
        times = 10 * rng.integers(1, 9, runs).astype(float)
        times[rng.random(runs) < 0.4] = math.inf
        expected = lower_median([None if math.isinf(t) else float(t) for t in times])
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
    """Of 150 power laws, the 95 % intervals miss hardly more than 5 %, at coarse steps too."""
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


def test_a_power_law_over_a_known_one() -> None:
    """20 n² steps over n² / 2 are 40, whatever n."""
    cells = [Cell(n, np.full(9, 20.0 * n**2), 1, 10**9) for n in (10.0, 20.0, 40.0)]
    law = fit_power_law(cells, over=lambda n: n**2 / 2)

    assert law is not None
    assert law.exponent == pytest.approx(0, abs=0.002)
    assert law.factor == pytest.approx(40, rel=0.01)


# Against exhaustive search


def search(k: int, n: float) -> float:
    """Return the exponent that makes a curve grow as C(n, k) does."""
    if n == 10:
        return 0.0
    return math.log(math.comb(int(n), k) / math.comb(10, k)) / math.log(n / 10)


def test_slower_than_search_supports_faster_contradicts() -> None:
    """n^(0.6 k) for all is slower than C(n, k); n^4.2 at k = 3 is faster; C(n, k) is open."""
    rule = GrowsSlowerThanSearch()
    slow = rule.judge(curves(lambda k, _: 0.6 * k), 0.05)
    fast = rule.judge(curves(lambda k, _: 4.2 if k == 3 else 0.6 * k), 0.05)
    open_ = rule.judge(curves(search), 0.05)

    assert slow.judgement is SUPPORTED
    assert slow.low < slow.estimate < slow.high < 0
    assert slow.remark.startswith("at (i), k = 2. exponents of t_c: (i), k = 2 to n = 30: 1.")
    assert fast.judgement is CONTRADICTED
    assert fast.remark.startswith("at (i), k = 3.")
    assert fast.estimate == pytest.approx(4.2 - 3.2, abs=0.3)
    assert open_.judgement is UNDECIDED


def test_growth_like_search_is_rarely_decided() -> None:
    """C(n, k) in all strata: the level is kept, for few runs and with a budget that cuts."""
    tables = [curves(search, runs=15, seed=seed, budget=4_000) for seed in range(150)]

    assert decided(GrowsSlowerThanSearch(), tables) <= most_wrong(150)


def test_a_curve_is_followed_as_far_as_search_could_be_seen() -> None:
    """From 200 steps C(n, 3) passes 2500 at n = 22: larger n could only show slow growth."""
    finding = GrowsSlowerThanSearch().judge(curves(0.5, degrees=(3,), runs=300, budget=2_500), 0.05)

    assert finding.judgement is SUPPORTED
    assert "k = 3 to n = 18: 0." in finding.remark


def test_a_median_beyond_the_budget_speaks_against_slow_growth() -> None:
    """n^9 at k = 3 leaves the budget where C(n, 3) does not; and with too little of it, nothing.

    Were only known medians asked, the fastest growth would be left out.
    """

    def power(k: int, _: float) -> float:
        return 9.0 if k == 3 else 1.0

    halted = GrowsSlowerThanSearch().judge(curves(power, runs=100, budget=2_500), 0.05)
    short = GrowsSlowerThanSearch().judge(curves(lambda *_: 0.5, runs=100, budget=900), 0.05)

    assert halted.judgement is CONTRADICTED
    assert halted.remark.endswith(". beyond the budget, where C(n, k) is not: (i), k = 3")
    assert short.judgement is UNDECIDED
    assert short.remark.endswith(". not judged, a median or the budget is missing: (i), k = 3")


def test_larger_n_are_not_small_ones() -> None:
    """Steep growth beyond n = 40 says nothing about the power law up to there."""
    table = curves(bent(1.0, 5.0, at=40), sizes=(10, 20, 30, 40, 60, 80))

    assert GrowsSlowerThanSearch().judge(table, 0.05).judgement is SUPPORTED
    assert ExponentGrowsWithK().judge(table, 0.05).n == 2 * 4 * 30


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
    both = [GrowsSlowerThanSearch().judge(table, 0.05).estimate for table in (whole, cut)]
    assert both[0] == pytest.approx(both[1], abs=0.02)


# Exponents by k


def test_exponents_that_grow_with_k_and_that_fall() -> None:
    """0.6 k grows by 0.6 per bit; where one architecture's falls, it does not; equal ones are open.

    The remark lists the exponents, architectures in order.
    """
    rule, both = ExponentGrowsWithK(), ("polynet(K)", "mlp(10, (), relu, linear)")
    grows = rule.judge(curves(lambda k, _: 0.6 * k, models=both, degrees=(2, 3, 4)), 0.05)
    falls = rule.judge(curves(lambda k, _: 3 - 0.6 * k, degrees=(2, 3, 4)), 0.05)
    flat = rule.judge(curves(1.5, models=both, degrees=(2, 3, 4)), 0.05)

    assert grows.judgement is SUPPORTED
    assert grows.low < 0.6 < grows.high
    assert grows.n == 2 * 3 * 6 * 30
    assert grows.remark.startswith("2 of 2 architectures agree; exponents: (i) 1.")
    assert falls.judgement is CONTRADICTED
    assert falls.high < 0
    assert flat.judgement is UNDECIDED


def test_equal_exponents_are_rarely_said_to_fall() -> None:
    """All architectures alike in k: hardly more than 5 % of the tables contradict."""
    names = (
        "mlp(10, (), relu, linear)",
        "mlp(100, (), relu, linear)",
        "mlp(1000, (), relu, linear)",
    )
    found = [
        ExponentGrowsWithK().judge(curves(1.5, models=names, runs=15, seed=seed), 0.05)
        for seed in range(100)
    ]
    assert sum(f.judgement is not UNDECIDED for f in found) <= most_wrong(100)


def test_one_k_has_no_slope() -> None:
    """Nothing is said about k by one of them."""
    finding = ExponentGrowsWithK().judge(curves(2.0, degrees=(2,)), 0.05)

    assert finding.judgement is UNDECIDED
    assert finding.remark == "no architecture has the exponents of two k"


# Larger n

WIDER = (10, 20, 30, 40, 60, 80, 120)


def test_an_exponent_that_worsens_and_one_that_falls() -> None:
    """Slope 1 up to n = 40 and 2 beyond; the reverse; and a stratum of each, which contradicts."""
    rule = ExponentWorsens(("(i)",))
    rises = rule.judge(curves(bent(1.0, 2.0, at=40), sizes=WIDER, runs=100), 0.05)
    falls = rule.judge(curves(bent(2.0, 1.0, at=40), sizes=WIDER, runs=100), 0.05)
    mixed = curves(
        lambda k, n: (bent(1.0, 2.0, at=40) if k == 2 else bent(2.0, 1.0, at=40))(k, n),
        sizes=WIDER,
        runs=100,
    )

    assert rises.judgement is SUPPORTED
    assert rises.low < 1 < rises.high
    assert rises.remark.startswith("(i), k = 2: n^")
    assert " from n = 40 to 120; (i), k = 3: n^" in rises.remark
    assert falls.judgement is CONTRADICTED
    assert rule.judge(mixed, 0.05).judgement is CONTRADICTED


def test_a_straight_line_rarely_bends() -> None:
    """Power laws with few runs, in three strata: hardly more than 5 % of the tables decide."""
    tables = [
        curves(lambda k, _: 0.7 * k, sizes=WIDER, degrees=(2, 3, 4), runs=12, seed=seed)
        for seed in range(100)
    ]
    assert decided(ExponentWorsens(("(i)",)), tables) <= most_wrong(100)


def test_evaluations_alone_bend_no_line() -> None:
    """Times rounded up to evaluations would bend the curve, were they taken as they are."""
    rng = np.random.default_rng(0)
    found: list[Any] = []
    raw: list[Any] = []
    for sizes in (WIDER[:4], WIDER[4:]):
        times = [12 * (n / 10) ** 1.2 * rng.gamma(4, 0.25, 4_000) for n in sizes]
        looked = [np.sort(10 * np.ceil(t / 10)) for t in times]
        for law, every in ((found, 10), (raw, 1)):
            cells = [Cell(float(n), t, every, 10**6) for n, t in zip(sizes, looked, strict=True)]
            law.append(fit_power_law(cells))

    for (small, large), bent in ((found, False), (raw, True)):
        more = large.exponent - small.exponent
        assert (more > 2 * math.hypot(small.error, large.error)) == bent


def test_small_n_alone_have_no_elbow() -> None:
    """Three medians beyond n = 40 are needed."""
    finding = ExponentWorsens(("(i)",)).judge(curves(2.0, sizes=(*SIZES, 50, 60)), 0.05)

    assert finding.judgement is UNDECIDED
    assert finding.remark == "no stratum has three known medians beyond n = 40"
