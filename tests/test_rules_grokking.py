"""Finite samples where runs grok, weight decay, and depth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import polars as pl
import pytest

from petridish.chapters.hidden.figures.grokking import grokking_grid, grokking_map
from petridish.chapters.hidden.rules.grokking import (
    DecayWidens,
    GrokkingBand,
    band_rows,
    printed_decay,
)
from petridish.figures.style import NothingToDraw
from tests.rule_worlds import CONTRADICTED, SUPPORTED, UNDECIDED, most_wrong, table_of

SIZES = (100.0, 300.0, 1_000.0, 3_000.0, 10_000.0)
DECAYS = (0.0, 0.01, 0.1)
Kinds = Callable[[float, float], tuple[float, float, float]]  # at once, grokked, memorised only


def samples(
    kinds: Kinds,
    *,
    seeds: int = 15,
    seed: int = 0,
    sizes: Sequence[float] = SIZES,
    decays: Sequence[float] = DECAYS,
) -> pl.DataFrame:
    """Draw runs of a grid: what becomes of them has probabilities of (m, λ), the rest never fit."""
    rng = np.random.default_rng(seed)
    ends = ((500, 500), (500, 5_000), (500, None), (None, None))  # fitted, solved
    rows = []
    for m, decay, number in product(sizes, decays, range(seeds)):
        known = kinds(m, decay)
        fitted, solved = ends[rng.choice(4, p=[*known, 1 - sum(known)])]
        rows.append(
            {
                "task": "sparse_parity(50, 3)",
                "data.m": m,
                "training.weight_decay": decay,
                "training.learning_rate": 0.1,  # so that HP's λ is a tenth of the decay
                "evaluation.every": 100,
                "seed": number,
                "outcome": "OUT_OF_STEPS" if solved is None else "SOLVED",
                "solved_at": solved,
                "fitted_at": fitted,
            }
        )
    return table_of(rows)


def like_the_source(m: float, decay: float) -> tuple[float, float, float]:
    """Memorise below 1000 examples, or 300 with a decay of 0.01; grok there; then learn at once.

    A decay of 0.1 lets nothing be fitted.
    """
    if decay == 0.1:
        return 0.0, 0.0, 0.0
    edge = 300 if decay else 1_000
    if m < edge:
        return 0.0, 0.0, 1.0
    return (0.05, 0.9, 0.0) if m == edge else (0.98, 0.02, 0.0)


def test_runs_of_several_rates_have_no_one_decay_of_the_paper() -> None:
    """λ of HP's Eq. 5.1 is η times the decay of the runs."""
    table = samples(like_the_source, seeds=2)
    rates = table.with_columns(
        pl.when(pl.col("data.m") > 500).then(0.1).otherwise(0.5).alias("training.learning_rate")
    )

    assert printed_decay(table, 0.02) == pytest.approx(0.002)
    for rule in (GrokkingBand(), DecayWidens()):
        assert rule.judge(rates, 0.05).remark == (
            "the runs have the learning rates [0.1, 0.5]: give one of them"
        )


def test_cells_are_counted_by_hand() -> None:
    """Two of three runs grok at 300 examples; one is solved at once at 1000."""
    table = samples(
        lambda m, _: (0, 1, 0) if m == 300 else (1, 0, 0), seeds=3, sizes=SIZES[1:3], decays=(0.0,)
    )
    never = pl.Series([None], dtype=pl.Int64)
    table = table.with_columns(
        solved_at=pl.when(pl.col("seed") > 1).then(never).otherwise("solved_at"),
        outcome=pl.when(pl.col("seed") > 1).then(pl.lit("OUT_OF_STEPS")).otherwise("outcome"),
    )
    (cells,) = band_rows(table).values()

    assert [(c.m, c.runs, c.solved, c.grokked, c.at_once) for c in cells] == [
        (300, 3, 2, 2, 0),
        (1_000, 3, 2, 0, 2),
    ]


def test_the_sources_band_is_found() -> None:
    """Too few, a band, plenty; the remark says where."""
    finding = GrokkingBand().judge(samples(like_the_source), 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.low > 0.2
    assert finding.estimate > 0.7
    assert finding.n == 5 * 3 * 15
    assert "0 of 15 solved at m = 100" in finding.remark
    assert "20% or more grok from m = " in finding.remark


def test_nobody_groks_contradicts() -> None:
    """Runs that generalise without delay wherever they do; with five seeds it is open."""

    def at_once(m: float, decay: float) -> tuple[float, float, float]:
        return (1.0, 0.0, 0.0) if m > 500 else (0.0, 0.0, 1.0)

    assert GrokkingBand().judge(samples(at_once), 0.05).judgement is CONTRADICTED
    assert GrokkingBand().judge(samples(at_once, seeds=5), 0.05).judgement is UNDECIDED


def test_a_band_has_two_edges() -> None:
    """Grokking up to the largest sample, from the smallest on, or before optimisation fails: open.

    The last: nothing groks at the largest sample, because nothing is learned there.
    """
    never = (0.0, 0.0, 1.0)
    grok, at_once, unfit = (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for row in (
        (never, never, grok, grok, grok),
        (grok, grok, grok, at_once, at_once),
        (never, grok, grok, grok, unfit),
        (never, never, never, never, grok),
    ):
        table = samples(lambda m, _, row=row: row[SIZES.index(m)])  # type: ignore[misc] # as drawn
        assert GrokkingBand().judge(table, 0.05).judgement is UNDECIDED


def test_a_share_that_is_just_rare_is_seldom_a_band() -> None:
    """Exactly 20 % grok at every inner size and decay, none elsewhere: the claim just fails."""

    def kinds(m: float, decay: float) -> tuple[float, float, float]:
        if m == SIZES[0]:
            return 0.0, 0.0, 1.0
        return (1.0, 0.0, 0.0) if m == SIZES[-1] else (0.0, 0.2, 0.8)

    tables = 40
    found = [GrokkingBand().judge(samples(kinds, seed=s), 0.05).judgement for s in range(tables)]

    assert found.count(SUPPORTED) <= most_wrong(tables)
    assert found.count(CONTRADICTED) <= most_wrong(tables)


def test_what_a_band_needs() -> None:
    """Three sizes, and runs that say when they fitted; online there is nothing to fit."""
    two = samples(like_the_source, sizes=SIZES[:2])
    assert "three sample sizes" in GrokkingBand().judge(two, 0.05).remark
    unfitted = samples(lambda *_: (0, 0, 0))
    assert "no run was asked when" in GrokkingBand().judge(unfitted, 0.05).remark
    table = samples(like_the_source)
    online = table.filter(pl.col("data.m") == 1_000).with_columns(pl.lit(math.inf).alias("data.m"))
    assert GrokkingBand().judge(pl.concat([table, online]), 0.05) == GrokkingBand().judge(
        table, 0.05
    )
    assert "several runs share" in GrokkingBand().judge(pl.concat([table, table]), 0.05).remark


# Weight decay


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw 1000 posterior frontiers instead of 8000."""
    monkeypatch.setattr("petridish.chapters.hidden.rules.grokking.DRAWS", 1_000)


def edges(least: dict[float, float], *, top: float = 1.0, slip: float = 0.02) -> Kinds:
    """Solve at once from `least[λ]` examples on, and a few by luck."""

    def kinds(m: float, decay: float) -> tuple[float, float, float]:
        return (top - slip if m >= least[decay] else slip), 0.0, 0.0

    return kinds


def test_decay_widens_by_hand() -> None:
    """From 1000 to 300 examples is a ratio of 10/3; with λ = 0.1 nothing is learned."""
    finding = DecayWidens().judge(samples(like_the_source), 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.estimate == pytest.approx(10 / 3)
    assert finding.low > 1
    assert finding.remark.startswith(
        "best λ = 0.001; smallest m 1000 at 0, 300 at 0.001, above 10000 at 0.01; at m = 10000, "
    )
    assert finding.remark.endswith("of 15 are solved with it and 0 of 15 with λ = 0.01")


def test_decay_that_only_harms_contradicts() -> None:
    """Every decay asks for more examples than none does."""
    table = samples(edges({0.0: 300, 0.01: 1_000, 0.1: 10_000}))

    assert DecayWidens().judge(table, 0.05).judgement is CONTRADICTED


def test_decay_that_changes_nothing_contradicts() -> None:
    """At the grid's resolution: no decay wins a step of it."""
    table = samples(edges(dict.fromkeys(DECAYS, 1_000)))
    finding = DecayWidens().judge(table, 0.05)

    assert finding.judgement is CONTRADICTED
    assert finding.estimate == 1


def test_without_a_collapse_it_is_open() -> None:
    """The largest decay that was run still learns: nobody saw optimisation fail."""
    finding = DecayWidens().judge(samples(edges({0.0: 3_000, 0.01: 1_000, 0.1: 300})), 0.05)

    assert finding.judgement is UNDECIDED
    assert finding.estimate == pytest.approx(3)


def test_chance_is_seldom_a_wider_range() -> None:
    """Success of just a half at the edge, whatever the decay, but for the largest, which fails."""

    def kinds(m: float, decay: float) -> tuple[float, float, float]:
        rise = {100.0: 0.1, 300.0: 0.3, 1_000.0: 0.5, 3_000.0: 0.8, 10_000.0: 1.0}
        return (0.0 if decay == 1.0 else rise[m]), 0.0, 0.0

    tables = 40
    wrong = sum(
        DecayWidens()
        .judge(samples(kinds, seed=s, seeds=20, decays=(0.0, 0.001, 0.01, 1.0)), 0.05)
        .judgement
        is SUPPORTED
        for s in range(tables)
    )

    assert wrong <= most_wrong(tables)


def test_what_decay_needs() -> None:
    """Three decays, two sizes, whole cells, and no runs that stand for each other."""
    table = samples(like_the_source)
    two = table.filter(pl.col("training.weight_decay") < 0.1)
    assert "three weight decays" in DecayWidens().judge(two, 0.05).remark
    assert "several runs share" in DecayWidens().judge(pl.concat([table, table]), 0.05).remark
    hole = table.filter((pl.col("data.m") < 1_000) | (pl.col("training.weight_decay") > 0))
    assert "run it to its end" in DecayWidens().judge(hole, 0.05).remark


# Figures


def test_the_grid_has_a_panel_a_cell() -> None:
    """Samples fall to the right, λ rises downwards; five runs drawn, all counted."""
    table = samples(like_the_source, seeds=8).with_columns(
        pl.lit([0, 100, 200]).alias("curve.step"),
        pl.lit([0.5, 0.1, 0.0]).alias("curve.train_error"),
        pl.lit([0.5, 0.5, 0.1]).alias("curve.test_error"),
        pl.lit(10_000).alias("training.steps"),
    )
    figure = grokking_grid(table, "Title")

    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title for title in titles if title] == [
        f"m = {m}" for m in ("10k", "3k", "1k", "300", "100")
    ]
    assert [axes.get_ylabel() for axes in figure.axes[::5]] == ["λ = 0", "λ = 0.001", "λ = 0.01"]
    assert {len(axes.lines) for axes in figure.axes} == {10}  # five training, five test errors
    assert figure.axes[0].texts[0].get_text() == "100 %"
    assert figure.axes[-1].texts[0].get_text() == "0 %"
    with pytest.raises(NothingToDraw, match="kept no curves"):
        grokking_grid(table.drop("curve.step"), "Title")


def test_the_map_frames_the_band() -> None:
    """Cells in which a fifth of the runs grok are framed, and say how many do."""
    table = samples(like_the_source).with_columns(pl.lit(10_000).alias("training.steps"))
    (panel,) = grokking_map(table, "Title").axes

    assert len(panel.texts) == 2  # 1000 examples without decay, 300 with
    places = sorted(text.get_position() for text in panel.texts)
    assert places == [(2, 0), (3, 1)]
    with pytest.raises(NothingToDraw, match="There are no runs to draw"):
        grokking_map(table.head(0), "Title")
