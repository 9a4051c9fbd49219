"""Estimates, tests and verdicts: formulas against libraries, brute force and cases by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.rules.cells import Grid, grid
from petridish.rules.claims import Claim, Judgement, Verdict
from petridish.rules.frontier import frontier_draws, frontier_index, sample_sizes
from petridish.rules.success import Beats, FrontierShrinks, NeverDecreases
from petridish.statistics.intervals import (
    bootstrap_median,
    censored_median,
    lower_median,
    mean_difference,
    wilson_interval,
)
from petridish.statistics.trend import decrease_test, holm, trend_test


@given(runs=st.integers(1, 200), data=st.data(), level=st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_agrees_with_scipy(runs: int, data: st.DataObject, level: float) -> None:
    """Two implementations of one formula."""
    from scipy.stats import binomtest

    solved = data.draw(st.integers(0, runs))
    low, high = wilson_interval(solved, runs, coverage=level)
    theirs = binomtest(solved, runs).proportion_ci(level, method="wilson")

    assert float(low) == pytest.approx(theirs.low, abs=1e-12)
    assert float(high) == pytest.approx(theirs.high, abs=1e-12)
    assert 0 <= low <= solved / runs <= high <= 1


def test_wilson_without_runs_knows_nothing() -> None:
    """The interval is everything; arrays are taken entry by entry."""
    low, high = wilson_interval(np.array([0, 0, 10]), np.array([0, 10, 10]))

    assert low.tolist()[:2] == [0.0, 0.0]
    assert (high[0], high[2]) == (1.0, 1.0)


def test_wilson_covers_as_often_as_it_says() -> None:
    """Exact coverage, averaged over p, is within 1 % of nominal for 10, 13 and 50 runs."""
    from scipy.stats import binom

    for runs in (10, 13, 50):
        low, high = wilson_interval(np.arange(runs + 1), np.full(runs + 1, runs))
        truths = np.linspace(0.01, 0.99, 197)
        weights = binom.pmf(np.arange(runs + 1)[:, None], runs, truths)
        covered = (low[:, None] <= truths) & (truths <= high[:, None])
        assert abs((weights * covered).sum(axis=0).mean() - 0.95) < 0.01


def outcomes(
    rng: np.random.Generator, probability: Any, seeds: int, *, shared: float
) -> np.ndarray[Any, Any]:
    """Draw outcomes of cells with the given probabilities, shape (*cells, seed).

    Each cell's runs have its probability; `shared` is the correlation, through a common normal
    luck of the seed, between the hidden scores of the cells of one seed.
    """
    from scipy.special import ndtri

    chance = np.asarray(probability)[..., None]
    own = rng.standard_normal((*chance.shape[:-1], seeds))
    luck = rng.standard_normal(seeds)
    score = math.sqrt(shared) * luck + math.sqrt(1 - shared) * own
    solved: np.ndarray[Any, Any] = (score < ndtri(chance)).astype(np.float64)
    return solved


@pytest.mark.parametrize("shared", [0.0, 0.5])
def test_mean_differences_cover_as_often_as_they_say(shared: float) -> None:
    """Over 1000 grids of 16 cells with 13 seeds: 95 % ± 4.5 standard errors, or more.

    Also where the cells of one seed share its luck, as they do. An interval that is too wide is
    allowed, one that is too narrow is not.
    """
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.02, 0.98, (2, 16))
    covered = 0
    for _ in range(1000):
        better, worse = outcomes(rng, chance, 13, shared=shared)
        _, low, high = mean_difference(better, worse)
        covered += int(low <= np.mean(chance[0] - chance[1]) <= high)
    assert covered / 1000 > 0.95 - 4.5 * math.sqrt(0.95 * 0.05 / 1000)


def test_a_mean_difference_by_hand() -> None:
    """Two cells, four seeds: the estimate is 3/8; all seeds agreeing still leaves an interval."""
    better = np.array([[1.0, 1, 1, 0], [1, 1, 0, 0]])
    worse = np.array([[0.0, 0, 1, 0], [0, 1, 0, 0]])
    estimate, low, high = mean_difference(better, worse)
    each = (better - worse).mean(axis=0)
    student = 3.182446 * each.std(ddof=1) / 2  # the 97.5 % point for 3 degrees of freedom

    assert estimate == pytest.approx(3 / 8)
    assert low <= estimate - student + 1e-6
    assert estimate + student > 1.0 == high  # no difference of probabilities lies beyond
    _, low, high = mean_difference(np.ones((3, 4)), np.zeros((3, 4)))
    assert 0.3 < low < 0.9  # 4 of 4 against 0 of 4, three times
    assert high == 1.0
    assert mean_difference(np.ones((3, 1)), np.zeros((3, 1))) == (1.0, -1.0, 1.0)


def test_medians_with_runs_that_never_ended() -> None:
    """Such runs count as later than all others.

    Of two middle values the mean is taken, or the one that is known; rules take the lower one.
    """
    assert censored_median([3, 1, None]) == 3
    assert censored_median([3, None, None]) == math.inf
    assert censored_median([1, 2, 3, None]) == 2.5
    assert censored_median([1, None]) == 1
    assert censored_median([1, 2, 4, None]) == 3
    assert censored_median([0.25, 0.75]) == 0.5
    assert censored_median([1, None, None, None]) == math.inf
    assert math.isnan(censored_median([]))
    assert lower_median([1, 2, 4, None]) == 2
    assert lower_median([1, None]) == 1
    assert math.isnan(lower_median([]))


def test_bootstrap_bounds_the_median() -> None:
    """The interval holds the median's truth as often as it says: 400 samples of 31, 4.5 σ."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        low, high = bootstrap_median(rng.exponential(size=31).tolist(), resamples=400, rng=rng)
        covered += low <= math.log(2) <= high
    assert abs(covered / 400 - 0.95) < 4.5 * math.sqrt(0.95 * 0.05 / 400)
    low, high = bootstrap_median([1.0, 2.0, None, None], rng=rng)
    assert low == 1.0
    assert high == math.inf


def test_the_trend_test_by_hand() -> None:
    """One stratum of 0/1 and 1/1: T = ½, Var = ¼·½·2 = ¼, t = 1 with one degree: p = ¼."""
    p = trend_test(np.array([[[0.0], [1.0]]]), np.array([0.0, 1.0]))

    assert p == pytest.approx(0.25)
    assert trend_test(np.zeros((3, 2, 9)), np.array([0.0, 1.0])) == 0.5
    rising = np.array([[[0.0, 0, 0, 1], [0, 0, 1, 1], [1, 1, 1, 1]]] * 5)
    assert trend_test(rising, np.arange(3.0)) < 0.05
    assert trend_test(rising[:, ::-1], np.arange(3.0)) > 0.95


@pytest.mark.parametrize("shared", [0.0, 0.5])
def test_the_trend_test_keeps_its_level(shared: float) -> None:
    """Without a trend it rejects at 1.67 % no more often than that (4.5 σ over 3000 grids)."""
    rng = np.random.default_rng(0)
    chance = np.broadcast_to(rng.uniform(0.02, 0.98, (16, 1)), (16, 5))
    level = 0.05 / 3
    rejected = sum(
        trend_test(outcomes(rng, chance, 13, shared=shared), np.arange(5.0)) < level
        for _ in range(3000)
    )
    assert rejected / 3000 < level + 4.5 * math.sqrt(level / 3000)


@given(n1=st.integers(1, 12), n2=st.integers(1, 12), data=st.data())
def test_the_decrease_test_is_fishers(n1: int, n2: int, data: st.DataObject) -> None:
    """One-sided, as SciPy computes it."""
    from scipy.stats import fisher_exact

    s1, s2 = data.draw(st.integers(0, n1)), data.draw(st.integers(0, n2))
    theirs = fisher_exact([[s2, n2 - s2], [s1, n1 - s1]], alternative="less").pvalue

    assert decrease_test((s1, n1), (s2, n2)) == pytest.approx(theirs, abs=1e-9)


def test_holm_by_hand() -> None:
    """0.01, 0.02, 0.04 become 0.03, 0.04, 0.04."""
    assert holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([]) == []


def test_frontiers_by_hand() -> None:
    """The first column that reaches one half; beyond the grid where none does."""
    success = np.array([[0.1, 0.5, 0.2], [0.0, 0.2, 0.4], [0.9, 0.0, 1.0]])

    assert frontier_index(success).tolist() == [1, 3, 0]
    assert sample_sizes([100, 200, 600]).tolist() == [100, 200, 600, 1800]
    assert sample_sizes([100, 300, math.inf]).tolist() == [100, 300, 900, 900]


WIDTHS, SAMPLES = (10, 100, 1000), (100.0, 200.0, 400.0, 800.0)


def runs_of(probability: Any, *, seeds: int = 20, seed: int = 0) -> pl.DataFrame:
    """Make a table of runs whose success has the given probability of (init, width, m)."""
    rng = np.random.default_rng(seed)
    rows = [
        {
            "task": "t",
            "init": init,
            "model.width": width,
            "data.m": m,
            "seed": s,
            "outcome": "SOLVED" if rng.uniform() < probability(init, width, m) else "OUT_OF_STEPS",
        }
        for init in ("uniform", "sparse(2)")
        for width in WIDTHS
        for m in SAMPLES
        for s in range(seeds)
    ]
    return pl.DataFrame(rows)


def rising(init: str, width: int, m: float) -> float:
    """Wider nets and sparse starts need less data."""
    return float(m * math.sqrt(width) * (2 if init == "sparse(2)" else 1) > 5000)


def falling(init: str, width: int, m: float) -> float:
    """Wider nets and sparse starts need more."""
    return float(m / math.sqrt(width) / (2 if init == "sparse(2)" else 1) > 12)


def level(init: str, width: int, m: float) -> float:
    """Width and start do not matter."""
    return float(np.clip(m / 800, 0, 1))


RULES: dict[str, Any] = {
    "frontier": FrontierShrinks(),
    "width": NeverDecreases(),
    "sparse": Beats("init", "sparse(2)", "uniform"),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize(
    ("truth", "verdict"),
    [
        (rising, Judgement.SUPPORTED),
        (falling, Judgement.CONTRADICTED),
        (level, Judgement.UNDECIDED),
    ],
)
def test_rules_find_what_is_there(name: str, truth: Any, verdict: Judgement) -> None:
    """A world where the claim holds, one where its opposite holds, and one where nothing does."""
    finding = RULES[name].judge(runs_of(truth), 0.05 / 3)

    assert finding.judgement is verdict
    assert finding.low <= finding.estimate <= finding.high
    assert finding.n == 480


@pytest.mark.parametrize("name", RULES)
def test_rules_rarely_decide_where_there_is_nothing(name: str) -> None:
    """In 60 worlds without an effect, a rule at 5 % decides at most 9 times.

    A false decision has probability at most 0.05 in each; 10 or more of 60 would come with
    probability 1e-3 or less.
    """
    decided = sum(
        RULES[name].judge(runs_of(level, seeds=8, seed=seed), 0.05).judgement
        is not Judgement.UNDECIDED
        for seed in range(60)
    )
    assert decided <= 9


def test_one_step_that_lowers_success_contradicts() -> None:
    """A rise overall does not excuse a significant fall between neighbours."""

    def dip(init: str, width: int, m: float) -> float:
        return {10: 0.8, 100: 0.0, 1000: 1.0}[width]

    finding = NeverDecreases().judge(runs_of(dip), 0.05)
    assert finding.judgement is Judgement.CONTRADICTED
    assert finding.estimate > 0.1
    assert "8 of 16 single steps lower success significantly" in finding.remark
    grown = FrontierShrinks().judge(runs_of(dip), 0.05)
    assert grown.judgement is Judgement.CONTRADICTED
    assert "the frontier grows from model.width 10 to 100 at uniform" in grown.remark


def test_a_small_fall_everywhere_is_not_called_never() -> None:
    """A fall of 0.25 at the last step, too small to see in one stratum, is never supported."""

    def late_fall(init: str, width: int, m: float) -> float:
        return {10: 0.2, 100: 0.75, 1000: 0.5}[width]

    verdicts = [
        NeverDecreases().judge(runs_of(late_fall, seeds=12, seed=seed), 0.05 / 3).judgement
        for seed in range(20)
    ]
    assert Judgement.SUPPORTED not in verdicts
    assert verdicts.count(Judgement.CONTRADICTED) >= 5


def test_cells_without_runs_decide_nothing() -> None:
    """One failed run at the widest is no evidence; where cells have fewer seeds, all runs count."""
    table = runs_of(level)
    few = table.filter(
        (pl.col("model.width") < 1000) | ((pl.col("seed") == 0) & (pl.col("data.m") == 100))
    )
    finding = FrontierShrinks().judge(few, 0.05)
    assert finding.judgement is Judgement.UNDECIDED
    assert finding.remark == "no stratum has two runs in every cell: run it to its end"
    partial = table.filter((pl.col("model.width") < 1000) | (pl.col("seed") < 7))
    for rule in RULES.values():
        assert rule.judge(partial, 0.05).n == len(partial)


def test_one_cells_posterior_is_jeffreys() -> None:
    """Seeds weighed by Exp(1), plus Gamma(½) on both sides: Beta(s + ½, n − s + ½), by its mean.

    The share of draws at or above ½ is the posterior's probability within 4.5 standard errors.
    """
    from scipy.special import betainc

    outcome = np.array([1.0] * 4 + [0.0] * 6).reshape(1, 1, 1, 10)
    counts = Grid([()], [1], [1], list(range(10)), outcome)
    drawn = frontier_draws(counts, draws=20_000, rng=np.random.default_rng(0))
    truth = 1 - betainc(4.5, 6.5, 0.5)

    assert abs((drawn == 0).mean() - truth) < 4.5 * math.sqrt(truth * (1 - truth) / 20_000)


@pytest.mark.parametrize("name", RULES)
def test_rules_without_enough_to_go_on_are_undecided(name: str) -> None:
    """One width, one sample size and one start: nothing to compare, and JSON holds no NaN."""
    table = runs_of(level).filter(
        (pl.col("model.width") == 10) & (pl.col("data.m") == 100) & (pl.col("init") == "uniform")
    )
    finding = RULES[name].judge(table, 0.05)
    verdict = Verdict(Claim("x", "text", "source", RULES[name]), finding, 0.05)

    assert finding.judgement is Judgement.UNDECIDED
    assert finding.remark
    assert verdict.as_json()["estimate"] is None
    assert verdict.as_json()["verdict"] == "undecided"


def test_large_widths_only() -> None:
    """`at_least` leaves the narrow nets out."""
    rule = Beats("init", "sparse(2)", "uniform", at_least={"model.width": 100})

    assert rule.judge(runs_of(rising), 0.05).n == 320
    narrow = runs_of(rising).filter(pl.col("model.width") < 100)
    assert rule.judge(narrow, 0.05).remark == (
        "no cell with model.width ≥ 100 was run with both values of init"
    )


def test_grids_count() -> None:
    """Every run in its place; a missing cell has no runs."""
    table = runs_of(rising).filter((pl.col("model.width") < 1000) | (pl.col("data.m") < 800))
    counts = grid(table, rows="model.width", columns="data.m", strata=["init"])

    assert counts.strata == [("sparse(2)",), ("uniform",)]
    assert counts.rows == list(WIDTHS)
    assert counts.runs[:, 2, 3].tolist() == [0, 0]
    assert counts.runs.sum() == len(table)
    assert counts.solved.sum() == (table["outcome"] == "SOLVED").sum()
    assert counts.complete().strata == []
