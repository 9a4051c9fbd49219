"""Times against laws without memory: no run gets lucky, and some take very long."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, binomtest

from petridish.chapters.hidden.figures.luck import time_histograms
from petridish.chapters.hidden.rules.luck import (
    Arrivals,
    HeavyUpperTail,
    NoEarlyConvergence,
    arrivals,
    guessing,
    memoryless,
)
from petridish.figures.style import NothingToDraw
from petridish.statistics.intervals import exact_interval
from tests.rule_worlds import CONTRADICTED, SUPPORTED, UNDECIDED, decided, most_wrong

Floats = NDArray[np.float64]
BUDGET = 100_000


def seen(
    times: dict[int, Floats], *, every: int = 10, budget: int = BUDGET, n: int = 20
) -> pl.DataFrame:
    """Make the runs of some widths, solved at these times, as evaluations find them."""
    parts = []
    for width, exact in times.items():
        seen_at = every * np.ceil(np.maximum(exact, 1e-9) / every)
        solved = seen_at <= budget
        found = [int(t) if ok else None for t, ok in zip(seen_at, solved, strict=True)]
        parts.append(
            pl.DataFrame(
                {
                    "seed": range(len(exact)),
                    "outcome": np.where(solved, "SOLVED", "OUT_OF_STEPS"),
                    "solved_at": pl.Series(found, dtype=pl.Int64),
                }
            ).with_columns(
                pl.lit(f"sparse_parity({n}, 3)").alias("task"),
                pl.lit(n).alias("task.n"),
                pl.lit(3).alias("task.k"),
                pl.lit(width).alias("model.width"),
                pl.lit(budget).alias("training.steps"),
                pl.lit(every).alias("evaluation.every"),
            )
        )
    return pl.concat(parts)


def lognormal(median: float, sigma: float, runs: int, seed: int) -> Floats:
    """Draw times around a median."""
    return median * np.exp(sigma * np.random.default_rng(seed).standard_normal(runs))


def without_memory(median: float, runs: int, seed: int) -> Floats:
    """Draw times of a search by guessing, whole steps."""
    p = -math.expm1(-math.log(2) / median)
    return np.random.default_rng(seed).geometric(p, runs).astype(np.float64)


@pytest.mark.parametrize(("hits", "runs"), [(0, 50), (3, 50), (50, 50), (13, 10_000)])
def test_the_exact_interval_is_scipys(hits: int, runs: int) -> None:
    """Clopper and Pearson's, at both ends and between."""
    expected = binomtest(hits, runs).proportion_ci(0.9, method="exact")

    assert exact_interval(hits, runs, coverage=0.9) == pytest.approx(tuple(expected))


def test_no_hit_in_a_million_runs() -> None:
    """The bound that its docstring gives: 1 − 0.025^(1/10^6)."""
    low, high = exact_interval(0, 1_000_000)

    assert low == 0
    assert high == pytest.approx(1 - 0.025 ** (1 / 1_000_000))
    assert high == pytest.approx(3.7e-6, rel=0.01)


def test_the_laws_by_hand() -> None:
    """Half is over at the median; guessing misses (1 − 1/C) of the time at every step."""
    assert memoryless(700, 700) == pytest.approx(0.5)
    assert memoryless(70, 700) == pytest.approx(0.067, abs=5e-4)
    assert guessing(1, 20, 3) == pytest.approx(1 / 1140)
    assert guessing(30, 20, 3) == pytest.approx(1 - (1139 / 1140) ** 30)


def test_arrivals_by_hand() -> None:
    """Two at 10, one at 30, one not solved: later than all, and in no median."""
    table = seen({5: np.array([25.0, 3.0, 1e9, 10.0])})
    (cell,) = arrivals(table).values()

    assert cell.times.tolist() == [10, 30]
    assert cell.counts.tolist() == [2, 1]
    assert (cell.runs, cell.unsolved, cell.every, cell.budget) == (4, 1, 10, BUDGET)
    assert [cell.ranked(rank) for rank in (1, 2, 3, 4)] == [10, 10, 30, math.inf]
    assert [cell.solved_by(step) for step in (9, 10, 29, 30, 1e9)] == [0, 2, 2, 3, 3]
    assert cell.median == 10


@pytest.mark.parametrize("runs", [1, 5, 6, 20, 101])
def test_the_medians_interval_leaves_out_as_many_ranks_as_it_may(runs: int) -> None:
    """The outermost ranks between which the median lies with 95 %, by the binomial's table."""
    every = np.arange(1, runs + 1)
    cell = Arrivals(every, np.ones_like(every), 0, 1, 1000, 20, 3)
    ranks = [rank for rank in every if binom.cdf(rank - 1, runs, 0.5) <= 0.025]
    expected = (max(ranks), runs + 1 - max(ranks)) if ranks else (0, math.inf)

    assert cell.median_interval(0.95) == expected


def test_nobody_gets_lucky() -> None:
    """None of 5000 runs per width before a tenth of the median: supported, with the numbers."""
    table = seen({r: lognormal(t, 0.4, 5_000, r) for r, t in ((10, 900), (30, 600), (100, 400))})
    finding = NoEarlyConvergence().judge(table, 0.05)

    assert finding.judgement is SUPPORTED
    assert (finding.estimate, finding.low, finding.n) == (0, 0, 15_000)
    assert 0 < finding.high < 0.1
    assert "sparse_parity(20, 3), r = 100: 0 of 5000 runs by step 40" in finding.remark


def test_the_ratio_by_hand() -> None:
    """5 of 1000 runs by the tenth of a median of 1000, seen at evaluations: 0.5 % over 6.73 %."""
    times = np.concatenate([np.full(5, 93.0), np.full(496, 999.0), np.linspace(1001, 3000, 499)])
    finding = NoEarlyConvergence().judge(seen({10: times}), 0.05)
    law = 1 - 2 ** (-100 / 995)  # the median may lie anywhere between 990 and 1000

    assert finding.estimate == pytest.approx(0.005 / law)
    assert finding.low < finding.estimate < finding.high
    assert finding.judgement is UNDECIDED
    assert "5 of 1000 runs by step 100 (memoryless 6.73%, one guess a step 8.40%)" in finding.remark


def test_many_lucky_runs_contradict() -> None:
    """In one width of two, a fifth of the runs come before a tenth of the median."""
    table = seen({10: lognormal(900, 3, 2_000, 0), 100: lognormal(900, 0.3, 2_000, 1)})
    finding = NoEarlyConvergence().judge(table, 0.05)

    assert finding.judgement is CONTRADICTED
    assert finding.estimate == pytest.approx(NormalDist().cdf(math.log(0.1) / 3) / 0.067, rel=0.1)


def test_slower_than_guessing_is_not_unlucky() -> None:
    """Memoryless at a median of 5000 has far less early mass than Geom(1/1140): undecided still."""
    finding = NoEarlyConvergence().judge(seen({10: without_memory(5_000, 4_000, 0)}), 0.05)

    assert finding.judgement is UNDECIDED
    assert finding.estimate == pytest.approx(1, abs=0.2)


def test_quicker_than_guessing_needs_more_runs() -> None:
    """At a median of 100, guessing too has little mass by step 10: both laws must be undercut."""
    judged = [
        NoEarlyConvergence().judge(seen({10: lognormal(100, 0.3, runs, 0)}), 0.05).judgement
        for runs in (1_000, 10_000)
    ]

    assert judged == [UNDECIDED, SUPPORTED]


NULLS = [
    (median, rule) for median, rule in product((60, 700), (NoEarlyConvergence(), HeavyUpperTail()))
]


@pytest.mark.parametrize(("median", "rule"), NULLS)
def test_runs_without_memory_decide_nothing(
    median: int, rule: NoEarlyConvergence | HeavyUpperTail
) -> None:
    """Guessing is wrongly judged in no more tables than the level, at coarse evaluations too.

    100 tables of two widths with 1000 runs each, at 5 %.
    """
    tables = [
        seen({r: without_memory(median, 1_000, 1_000 * s + r) for r in (10, 30)})
        for s in range(100)
    ]

    assert decided(rule, tables) <= most_wrong(100)


def test_a_tenth_of_the_law_is_not_called_less() -> None:
    """Where the early share is exactly a tenth of the memoryless law's, support is rare."""
    early = 0.1 * (1 - 2**-0.1)
    shift = NormalDist().inv_cdf((0.5 - early) / (1 - early))
    tables = []
    for s in range(100):
        rng = np.random.default_rng(s)
        later = 995 * np.exp(0.3 * (rng.standard_normal(5_000) - shift))
        tables.append(seen({10: np.where(rng.random(5_000) < early, 50.0, later)}))

    assert decided(NoEarlyConvergence(), tables) <= most_wrong(100)


@pytest.mark.parametrize(("sigma", "judgement"), [(1.5, SUPPORTED), (0.3, CONTRADICTED)])
def test_the_upper_tail(sigma: float, judgement: object) -> None:
    """A log-normal of sd σ is later than 3 medians with probability Φ(−ln 3 / σ)."""
    table = seen({r: lognormal(600, sigma, 5_000, r) for r in (10, 30)}, budget=10**7)
    finding = HeavyUpperTail().judge(table, 0.05)

    assert finding.judgement is judgement
    expected = NormalDist().cdf(-math.log(3) / sigma) / 2**-3
    assert finding.estimate == pytest.approx(expected, rel=0.1, abs=2e-3)
    assert finding.low <= finding.estimate <= finding.high


def test_runs_not_solved_are_late_but_no_later_than_the_budget_says() -> None:
    """They are beyond 3 medians if the budget is; if it is not, nothing is known of them."""
    times = lognormal(600, 1.5, 4_000, 0)
    long, short = (
        HeavyUpperTail().judge(seen({10: times}, budget=steps), 0.05) for steps in (2_000, 1_500)
    )

    assert long.judgement is SUPPORTED
    assert short.judgement is UNDECIDED
    assert "the budget of 1500 steps ends before 3 medians" in short.remark


def test_the_tail_from_the_median_on_knows_no_start() -> None:
    """A wait of 1000 steps and then no memory: less than 1/8 beyond 3 medians, but 1/16 there."""
    finding = HeavyUpperTail().judge(seen({10: 1_000 + without_memory(500, 50_000, 0)}), 0.05)

    assert finding.judgement is CONTRADICTED
    shape = float(finding.remark.split("from the median on ")[1].split("%")[0])
    assert shape == pytest.approx(6.25, abs=0.4)


POOR: dict[str, tuple[Callable[[], pl.DataFrame], str]] = {
    "no runs": (lambda: seen({10: lognormal(600, 0.3, 10, 0)}).clear(), "no runs"),
    "few runs": (lambda: seen({10: lognormal(600, 0.3, 4, 0)}), "too few runs to bound the median"),
    "unsolved": (
        lambda: seen({10: lognormal(600, 0.3, 99, 0)}, budget=300),
        "more than half of the runs are not solved",
    ),
    "twice": (
        lambda: pl.concat([seen({10: lognormal(600, 0.3, 9, 0)})] * 2),
        "several runs share task, model.width, seed",
    ),
}


@pytest.mark.parametrize("name", POOR)
@pytest.mark.parametrize("rule", [NoEarlyConvergence(), HeavyUpperTail()])
def test_where_nothing_can_be_said_nothing_is(
    name: str, rule: NoEarlyConvergence | HeavyUpperTail
) -> None:
    """Undecided, with a remark that says why."""
    table, remark = POOR[name]
    finding = rule.judge(table(), 0.05)

    assert finding.judgement is UNDECIDED
    assert math.isnan(finding.estimate)
    assert remark in finding.remark


def test_coarse_evaluations_cannot_see_the_start() -> None:
    """Evaluations every 500 steps say nothing about the first tenth of 600."""
    finding = NoEarlyConvergence().judge(seen({10: lognormal(600, 0.3, 999, 0)}, every=500), 0.05)

    assert finding.judgement is UNDECIDED
    assert "evaluations every 500 steps are too coarse for a median of 1000" in finding.remark


def test_one_width_without_a_median_blocks_the_claim() -> None:
    """The claim is about every width: what cannot be judged is not taken for granted."""
    table = seen({10: lognormal(1e6, 0.3, 5_000, 0), 100: lognormal(600, 0.3, 5_000, 1)})
    finding = NoEarlyConvergence().judge(table, 0.05)

    assert finding.judgement is UNDECIDED
    assert finding.estimate == 0
    assert "r = 10: more than half of the runs are not solved" in finding.remark


@pytest.mark.parametrize("rule", [NoEarlyConvergence(), HeavyUpperTail()])
def test_the_order_of_runs_does_not_matter(rule: NoEarlyConvergence | HeavyUpperTail) -> None:
    """Runs come back from a store in any order."""
    table = seen({r: lognormal(600, 1, 500, r) for r in (10, 30)})

    assert rule.judge(table, 0.05) == rule.judge(table.sample(fraction=1.0, shuffle=True), 0.05)


def histogram_texts(times: dict[int, Floats], **options: int) -> Sequence[str]:
    """Draw, and give the text in the panels of the first row."""
    figure = time_histograms(seen(times, **options), "Title")
    return [text.get_text() for panel in figure.axes for text in panel.texts]


def test_the_histogram_says_what_it_shows() -> None:
    """One column per width, with its n, its first and its median; the shares add up to the runs."""
    times = {r: lognormal(600, 0.4, 400, r) for r in (10, 30)}
    figure = time_histograms(seen(times), "Title")

    assert [panel.get_title(loc="left") for panel in figure.axes[:2]] == ["r = 10", "r = 30"]
    first, median = (10 * math.ceil(np.sort(times[10])[rank] / 10) for rank in (0, 199))
    expected = f"n = 400\nfirst {first:,}\nmedian {median:,}\n0 not solved"
    assert figure.axes[0].texts[0].get_text() == expected
    for panel in figure.axes[2:]:
        shares, edges, _ = panel.patches[0].get_data()  # type: ignore[attr-defined] # a StepPatch
        steps = np.diff(np.where(edges == 5, 0, edges))  # the first bin begins at 0
        assert (shares * steps).sum() == pytest.approx(1)
    assert "800 runs, evaluated every 10 steps" in figure.get_supxlabel()


def test_a_histogram_with_most_runs_unsolved() -> None:
    """There is no median then, and no law that could have it; the runs solved are drawn."""
    (text,) = histogram_texts({10: lognormal(600, 0.4, 50, 0)}, budget=500)

    assert "median unknown" in text


def test_without_success_there_is_no_histogram() -> None:
    """The error says what to change."""
    with pytest.raises(NothingToDraw, match=r"No run was solved\. Give runs more steps"):
        histogram_texts({10: lognormal(600, 0.4, 50, 0)}, budget=10)
