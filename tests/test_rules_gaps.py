"""Rules and figures about Fourier gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.chapters.hidden.figures import gap_histograms as figures
from petridish.chapters.hidden.rules.gap_growth import GapAtStart, GapComparable, GapGrowth
from petridish.errors import UserError
from petridish.figures.style import NothingToDraw
from petridish.rules import Each, Median, Rule
from petridish.theory.hidden.fourier_gaps import majority_gap, random_gaps, reference_gap
from tests.rule_worlds import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    decided,
    most_wrong,
    run,
    table_of,
)

GROWS = Rule(GapGrowth(), Each(("task", "model")), Median(), above=1.0)  # HP-7 (G)
STARTS = Rule(GapAtStart(), Each(("task", "model")), Median(), between=(0.0, 1.0))  # HP-7 (S)
ERRORS = [0.5, 0.5, 0.46, 0.3, 0.0]  # the plateau ends at the third evaluation
Path = Callable[[np.random.Generator], Sequence[float]]


def path(
    gaps: Sequence[float], errors: Sequence[float] = ERRORS, *, seed: int = 0, **columns: Any
) -> dict[str, Any]:
    """Make a run with curves."""
    solved = 100 * (len(gaps) - 1) if errors[-1] == 0 else None
    return run(solved, seed=seed) | {
        "task": "sparse_parity(15, 4)",
        "task.n": 15,
        "task.k": 4,
        "model": "mlp(1, (), sine(4), sum)",
        "curve.step": [100 * i for i in range(len(gaps))],
        "curve.test_error": list(errors),
        "curve.fourier_gap": [float(gap) for gap in gaps],
        **columns,
    }


def world(draw: Path, *, runs: int = 20, seed: int = 0, **columns: Any) -> pl.DataFrame:
    """Draw a table of runs."""
    rng = np.random.default_rng(seed)
    return table_of([path(draw(rng), seed=i, **columns) for i in range(runs)])


def growing(rng: np.random.Generator) -> list[float]:
    """Grow threefold on the plateau, but for noise, and fall at the solution."""
    start = rng.uniform(0.01, 0.05)
    return [start, 2 * start, 3 * start * math.exp(rng.normal(0, 0.5)), 5 * start, 0.001]


def falling(rng: np.random.Generator) -> list[float]:
    """Fall on the plateau, and jump where the error falls."""
    start = rng.uniform(0.01, 0.05)
    return [start, start, 0.4 * start * math.exp(rng.normal(0, 0.5)), 30 * start, 0.001]


def wandering(rng: np.random.Generator) -> list[float]:
    """Go anywhere, from anywhere: every evaluation is drawn alike."""
    return [float(gap) for gap in np.exp(rng.normal(-4, 1, 5))]


# GapGrowth


@pytest.mark.parametrize(
    ("draw", "judgement"),
    [(growing, SUPPORTED), (falling, CONTRADICTED), (wandering, UNDECIDED)],
)
def test_growth_is_found_where_it_is(draw: Path, judgement: Any) -> None:
    """On the plateau: what the gap does afterwards decides nothing."""
    assert GROWS.judge(world(draw), 0.05).judgement is judgement


def test_the_plateau_ends_where_the_rule_says() -> None:
    """Read half-way down, the jump of the falling world counts as growth."""
    assert (
        replace(GROWS, measure=GapGrowth(until=0.25)).judge(world(falling), 0.05).judgement
        is SUPPORTED
    )


def test_growth_by_hand() -> None:
    """Seven runs whose gaps grow by 1 … 7: the median is 4; 2/2^7 ≤ 5 % leaves 1 to 7."""
    table = table_of([path([0.01, 0.5, 0.01 * r, 0.2, 0.1], seed=r) for r in range(1, 8)])
    finding = GROWS.judge(table, 0.05)

    assert finding.estimate == pytest.approx(4)
    assert (finding.low, finding.high) == pytest.approx((1, 7))
    assert finding.n == 7
    assert finding.quantity == "median of Fourier gap while the error is above 0.45 / at the start"


def test_runs_that_never_leave_chance_count() -> None:
    """Half of the runs stay at chance and lose their gap: the claim is no longer supported."""
    stuck = [path([0.01] * 4 + [1e-5], [0.5] * 5, seed=20 + i) for i in range(20)]
    table = pl.concat([world(growing), table_of(stuck)])

    assert GROWS.judge(world(growing), 0.05).judgement is SUPPORTED
    assert GROWS.judge(table, 0.05).judgement is UNDECIDED
    assert GROWS.judge(table, 0.05).n == 40


@pytest.mark.parametrize(
    ("gaps", "judgement", "estimate"),
    [
        ([-0.01, 0, 0.02, 0, 0], SUPPORTED, math.inf),
        ([0.01, 0, -0.02, 0, 0], CONTRADICTED, 0),
        ([-0.02, 0, -0.01, 0, 0], SUPPORTED, math.inf),
        ([-0.01, 0, -0.02, 0, 0], CONTRADICTED, 0),
        ([0.01, 0, 0.01, 0, 0], UNDECIDED, 1),
    ],
)
def test_gaps_without_a_ratio_have_a_place(
    gaps: list[float], judgement: Any, estimate: float
) -> None:
    """A gap that becomes positive has grown, one that becomes negative is lost."""
    finding = GROWS.judge(table_of([path(gaps, seed=i) for i in range(10)]), 0.05)

    assert (finding.judgement, finding.estimate) == (judgement, estimate)


def test_every_stratum_has_to_grow() -> None:
    """One that falls contradicts, one that wanders leaves it open; the numbers are its own."""
    other: dict[str, Any] = {"model": "mlp(10, (), relu, linear)"}
    falls, wanders = (
        GROWS.judge(pl.concat([world(growing), world(draw, **other)]), 0.05)
        for draw in (falling, wandering)
    )

    assert (falls.judgement, wanders.judgement) == (CONTRADICTED, UNDECIDED)
    assert falls.high < 1
    for finding in (falls, wanders):
        assert finding.quantity.endswith(
            "(task = sparse_parity(15, 4), model = mlp(10, (), relu, linear))"
        )


def test_no_trend_is_found_where_there_is_none() -> None:
    """200 tables of 12 runs in which every evaluation is drawn alike, and 100 of two strata."""
    tables = [world(wandering, runs=12, seed=seed) for seed in range(200)]
    two = [
        pl.concat([world(wandering, seed=seed), world(wandering, seed=~seed + 2**32, model="b")])
        for seed in range(100)
    ]

    assert decided(GROWS, tables) <= most_wrong(200)
    assert decided(GROWS, two) <= most_wrong(100)


def test_the_largest_gap_would_find_a_trend_in_nothing(seed: int) -> None:
    """Why the measure does not take it: in a world without trend it is above the first."""
    rng = np.random.default_rng(seed)
    paths = np.array([wandering(rng) for _ in range(100)])
    assert np.median(paths.max(axis=1) / paths[:, 0]) > 1.5


def test_tables_that_say_nothing_are_named() -> None:
    """Without gaps, without curves, with too few runs, with two runs of a seed."""
    nan = table_of([path([math.nan] * 5, seed=i) for i in range(9)])
    none = GROWS.judge(nan, 0.05)
    few = GROWS.judge(world(growing, runs=3), 0.05)
    bare = world(growing).with_columns(pl.lit(None, pl.List(pl.Float64)).alias("curve.fourier_gap"))

    assert (none.judgement, none.remark) == (UNDECIDED, "there are no values; 9 runs have no value")
    assert GROWS.judge(bare, 0.05).remark == "there are no values; 20 runs have no value"
    assert (few.judgement, few.high) == (UNDECIDED, math.inf)
    assert few.remark == "needs 6 seeds for an interval of 0.95 coverage, and has 3"
    with pytest.raises(UserError) as twice:
        GROWS.judge(pl.concat([world(growing), world(growing)]), 0.05)
    assert str(twice.value) == (
        "Several runs share task, model, seed. Lay them apart by the rule's layout, judge BestOf "
        "over it, or choose one value by --set."
    )


# GapComparable


def test_gaps_are_counted_by_hand() -> None:
    """Shares of gaps of at least half of majority's, the least over the cases with even k."""
    rule = GapComparable(n=9, ks=(2, 4), activations=("relu",), weights=("gaussian",), trials=200)
    finding = rule.judge(pl.DataFrame(), 0.05)
    rng = np.random.default_rng(0)
    shares = [
        np.mean(
            random_gaps("relu", "gaussian", 9, k, trials=200, rng=rng)
            >= 0.5 * float(reference_gap(9, k))
        )
        for k in (2, 4)
    ]

    assert finding.estimate == min(shares)
    assert finding.low < finding.estimate < finding.high
    assert finding.judgement is SUPPORTED
    assert (finding.n, finding.remark) == (400, "at k = 4 relu/gaussian, of 2 cases")


def test_signs_are_majority_itself() -> None:
    """With probability 1 they reach all of its gap, and nothing beyond it."""
    for share, estimate, judgement in ((1.0, 1.0, SUPPORTED), (1.01, 0.0, CONTRADICTED)):
        rule = GapComparable(
            n=11, ks=(2, 4), activations=("relu",), weights=("sign",), trials=300, share=share
        )
        finding = rule.judge(pl.DataFrame(), 0.05)
        assert (finding.estimate, finding.judgement) == (estimate, judgement)


def test_comparable_gaps_are_undecided_with_few_neurons() -> None:
    """Four draws, and a bar near the truth."""
    rule = GapComparable(
        n=9, ks=(2,), activations=("relu",), weights=("gaussian",), trials=4, negligible=0.8
    )
    assert rule.judge(pl.DataFrame(), 0.05).judgement is UNDECIDED


def test_odd_degrees_are_told_and_decide_nothing() -> None:
    """However rare their gaps are; alone they leave the claim open."""
    rule = GapComparable(n=9, ks=(2, 3), activations=("relu",), weights=("sign",), trials=50)
    both = rule.judge(pl.DataFrame(), 0.05)
    alone = GapComparable(n=9, ks=(3,), trials=5).judge(pl.DataFrame(), 0.05)

    assert (both.judgement, both.estimate) == (SUPPORTED, 1)
    assert "; against a majority with a bias: k = 3 relu/sign" in both.remark
    assert (alone.judgement, alone.remark) == (
        UNDECIDED,
        "majority has a gap for even k alone: name one",
    )


def test_comparable_gaps_keep_their_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gaps that reach the bar with exactly the negligible probability: 200 seeds, three cases."""
    seeds = iter(range(10_000))

    def drawn(*_: Any, trials: int, **__: Any) -> Any:
        return (np.random.default_rng(next(seeds)).random(trials) < 0.05).astype(float)

    monkeypatch.setattr("petridish.theory.hidden.fourier_gaps.random_gaps", drawn)
    rule = GapComparable(n=9, ks=(2, 4, 6), activations=("relu",), weights=("sign",), trials=400)
    # Supported needs all three cases above the bar, contradicted one below.
    assert decided(rule, [pl.DataFrame()] * 200) <= most_wrong(200)


# Figures


def test_histograms_are_drawn_without_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A panel for every activation and k, each with majority's line at 1."""
    monkeypatch.setattr(figures, "NEURONS", 30)
    monkeypatch.setattr(figures, "BITS", 9)
    figure = figures.gap_histograms(pl.DataFrame(), "Title")
    titles = [axes.get_title(loc="left") for axes in figure.axes]

    assert titles == [f"{name}, k = {k}" for name in ("ReLU", "sine") for k in (2, 3, 4)]
    for axes in figure.axes:
        dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
        assert [line.get_label() for line in dashed] == ["majority"]
    assert figure.get_suptitle() == "Title"
    assert "n = 9, 30 neurons per histogram" in figure.get_supxlabel()


def test_paths_are_drawn_a_panel_a_model() -> None:
    """Ten runs at most; majority's gap is the dashed line; odd k has one as well."""
    other: dict[str, Any] = {
        "task": "sparse_parity(15, 3)",
        "task.k": 3,
        "model": "mlp(10, (), relu, linear)",
    }
    table = pl.concat([world(growing), world(wandering, runs=4, **other)])
    figure = figures.gap_paths(table, "Title")

    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "(15, 3): ReLU MLP, r = 10",
        "(15, 4): sinusoidal, no 2nd layer",
    ]
    for axes, k, runs in zip(figure.axes, (3, 4), (4, 10), strict=True):
        (dashed,) = [line for line in axes.lines if line.get_linestyle() == "--"]
        assert dashed.get_ydata()[0] == float(reference_gap(15, k))  # type: ignore[index] # a list
        assert sum(line.get_marker() == "o" for line in axes.lines) == runs
    with pytest.raises(NothingToDraw) as refusal:
        figures.gap_paths(table.drop("curve.fourier_gap"), "Title")
    assert str(refusal.value) == (
        "These runs did not record fourier_gap: name it in evaluation.instruments."
    )


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(0.5, SUPPORTED), (1.0, UNDECIDED), (1.6, CONTRADICTED), (-0.4, CONTRADICTED)],
)
def test_the_first_gap_beside_majority(share: float, verdict: Any) -> None:
    """Between 0 and majority's own, above it, below 0, and around it."""
    majority = float(majority_gap(9, 2))
    rng = np.random.default_rng(0)
    rows = [
        path([share * majority * (1 + 0.2 * rng.standard_normal()), 0.1, 0.1, 0.2, 0.3], seed=s)
        | {"task": "sparse_parity(9, 2)", "task.n": 9, "task.k": 2}
        for s in range(20)
    ]
    found = STARTS.judge(table_of(rows), 0.05)

    assert found.judgement is verdict
    assert found.estimate == pytest.approx(share, abs=0.15)


def test_a_run_without_a_gap_has_no_first_one() -> None:
    """A run that kept no such curve, and one of odd k, where majority has none."""
    rows = [
        run(100) | {"task.n": 9, "task.k": k, "curve.fourier_gap": gaps}
        for k, gaps in ((2, None), (3, [0.1]))
    ]

    assert np.isnan(GapAtStart().of(pl.DataFrame(rows))).all()
