"""Deep squares: what L layers learn end to end, and what no layer learns alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.chapters.hidden.figures.grokking import depth_table
from petridish.chapters.hidden.rules.depth import (
    DepthDecides,
    GreedyStaysAtChance,
    depth,
    with_depth,
)
from petridish.choices import describe
from petridish.figures.style import NothingToDraw
from petridish.models import MLP, PolyNet
from petridish.models.activations import Power
from petridish.values import Gone
from tests.cell_tables import with_cells
from tests.rule_worlds import CONTRADICTED, SUPPORTED, UNDECIDED, most_wrong, table_of

SQUARES = {2: MLP(10, (), Power(2), "linear"), 3: MLP(2, (1,), Power(2), "linear")}
SQUARES[4] = MLP(10, (10, 1), Power(2), "linear")
Ends = Callable[[int, int, bool], tuple[float, float]]  # chance to be solved, else test error


def deep(
    ends: Ends,
    *,
    seeds: int = 10,
    seed: int = 0,
    depths: Sequence[int] = (2, 3, 4),
    k_values: Sequence[int] = (1, 2, 3, 4, 5, 6, 7, 8),
) -> pl.DataFrame:
    """Draw runs of deep squares, end to end and greedy; their ends depend on (L, k, greedy)."""
    rng = np.random.default_rng(seed)
    rows = []
    for layers, k, n, greedy, number in product(
        depths, k_values, (10, 20, 30), (False, True), range(seeds)
    ):
        chance, error = ends(layers, k, greedy)
        solved = rng.random() < chance
        rows.append(
            {
                "model": describe(SQUARES[layers]),
                "task": f"sparse_parity({n}, {k})",
                "task.n": n,
                "task.k": k,
                "init": "greedy(uniform)" if greedy else "uniform",
                "seed": number,
                "outcome": "SOLVED" if solved else "OUT_OF_STEPS",
                "test_error": 0.0 if solved else error + 0.01 * rng.standard_normal(),
            }
        )
    return table_of(rows)


def as_claimed(layers: int, k: int, greedy: bool) -> tuple[float, float]:  # noqa: FBT001 - an axis
    """Solve k ≤ 2^(L−1) end to end, and k ≤ 2 greedily."""
    return float(k <= (2 if greedy else 2 ** (layers - 1))), 0.5


def test_depth_counts_layers() -> None:
    """L counts the hidden layers and the output; other activations have no degree of 2^(L−1)."""
    assert [depth(model) for model in SQUARES.values()] == [2, 3, 4]
    assert depth(MLP(10, (10, 1), Power(2))) == 4
    for other in (MLP(10), MLP(10, (), Power(3), "linear"), PolyNet(2), Gone("MLP", ())):
        assert depth(other) is None


def test_a_diverged_run_is_at_chance() -> None:
    """It has no test error, and counts as ½; models without squares are left out."""
    table = deep(as_claimed, seeds=1, depths=(3,), k_values=(3,))
    table = table.with_columns(test_error=pl.lit(math.nan))
    other = with_cells(table.with_columns(model=pl.lit("mlp(10)")))

    assert with_depth(pl.concat([table, other]))["test_error"].to_list() == [0.5] * len(table)
    assert with_depth(table.head(0)).is_empty()


def test_depth_decides_as_claimed() -> None:
    """All listed pairs solved, none beyond; greedy runs have no part in it."""
    finding = DepthDecides().judge(deep(as_claimed), 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.estimate == finding.high == 1
    assert finding.n == (4 + 8 + 6 + 4) * 30
    assert "beyond 2^(L−1), at most 0% solved" in finding.remark


@pytest.mark.parametrize(
    ("layers", "k", "chance", "named"),
    [(4, 6, 0.1, "not solved: L = 4, k = 6"), (3, 5, 0.9, "solved beyond 2^(L−1): L = 3, k = 5")],
)
def test_one_pair_contradicts_depth(layers: int, k: int, chance: float, named: str) -> None:
    """A listed pair that is not solved, or one beyond that is."""

    def ends(a: int, b: int, greedy: bool) -> tuple[float, float]:  # noqa: FBT001 - an axis
        return (chance, 0.5) if (a, b) == (layers, k) else as_claimed(a, b, greedy)

    finding = DepthDecides().judge(deep(ends), 0.05)
    assert finding.judgement is CONTRADICTED
    assert finding.remark.endswith(named)


def test_depth_is_open_where_runs_lack_or_resemble() -> None:
    """A listed pair not run, nothing beyond, or a failure that is better than chance."""

    def resembling(layers: int, k: int, greedy: bool) -> tuple[float, float]:  # noqa: FBT001
        return as_claimed(layers, k, greedy)[0], 0.3

    lacking = DepthDecides().judge(deep(as_claimed, depths=(2, 3)), 0.05)
    assert lacking.judgement is UNDECIDED
    assert "not run: L = 4, k = 1; L = 4, k = 2" in lacking.remark
    inner = deep(as_claimed).filter(
        ~pl.col("model").is_in([describe(SQUARES[2])]) & (pl.col("task.k") < 5)
        | (pl.col("model") == describe(SQUARES[4]))
    )
    assert DepthDecides().judge(inner, 0.05).judgement is UNDECIDED
    finding = DepthDecides().judge(deep(resembling), 0.05)
    assert finding.judgement is UNDECIDED
    assert "the least mean error is 0.30" in finding.remark
    shallow = deep(as_claimed, depths=(2,))
    assert DepthDecides().judge(shallow, 0.05).remark.startswith("no run of an MLP of squares")


def test_depth_keeps_its_level_at_the_edge() -> None:
    """One listed pair that is solved half of the time neither slips through nor contradicts."""

    def ends(layers: int, k: int, greedy: bool) -> tuple[float, float]:  # noqa: FBT001 - an axis
        return (0.5, 0.5) if (layers, k) == (4, 6) else as_claimed(layers, k, greedy)

    tables = 30
    found = [DepthDecides().judge(deep(ends, seed=s), 0.05).judgement for s in range(tables)]
    assert found.count(SUPPORTED) <= most_wrong(tables)
    assert found.count(CONTRADICTED) <= most_wrong(tables)


def test_greedy_training_stays_at_chance() -> None:
    """Only k > 2 counts, only what was trained both ways, and only what depth allows."""
    finding = GreedyStaysAtChance().judge(deep(as_claimed), 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.estimate == pytest.approx(0.5, abs=0.02)
    assert finding.n == 2 * (2 + 6) * 30
    assert "0 of 240 greedy runs solved; end to end at least 100%" in finding.remark


def test_greedy_training_that_learns_contradicts() -> None:
    """One pair with a mean error of 0.2 is enough; errors around 0.4 are open."""

    def with_error(error: float) -> Ends:
        def ends(layers: int, k: int, greedy: bool) -> tuple[float, float]:  # noqa: FBT001
            special = greedy and (layers, k) == (4, 3)
            return (0.0, error) if special else as_claimed(layers, k, greedy)

        return ends

    assert GreedyStaysAtChance().judge(deep(with_error(0.2)), 0.05).judgement is CONTRADICTED
    tables = 30
    found = [
        GreedyStaysAtChance().judge(deep(with_error(0.4), seed=s), 0.05).judgement
        for s in range(tables)
    ]
    assert found.count(SUPPORTED) <= most_wrong(tables)
    assert found.count(CONTRADICTED) <= most_wrong(tables)


def test_greedy_training_needs_its_equal() -> None:
    """Where end-to-end training fails as well, or was not run, nothing is shown."""

    def both_fail(layers: int, k: int, greedy: bool) -> tuple[float, float]:  # noqa: FBT001
        return 0.0, 0.5

    assert GreedyStaysAtChance().judge(deep(both_fail), 0.05).judgement is UNDECIDED
    alone = deep(as_claimed).filter(pl.col("init") == "uniform")
    assert GreedyStaysAtChance().judge(alone, 0.05).remark == (
        "no model and task with k > 2 was trained both ways"
    )
    table: Any = deep(as_claimed, seeds=2)
    twice = GreedyStaysAtChance().judge(pl.concat([table, table]), 0.05)
    assert "several runs share" in twice.remark


def test_the_depth_table_prints_both_ways_of_training() -> None:
    """Success over error; the same places end to end and greedy, which may not have been run."""
    table = deep(as_claimed, seeds=2).with_columns(pl.lit(20_000).alias("training.steps"))
    whole, greedy = depth_table(table, "Title").axes[:2]

    shown = [text.get_text() for text in whole.texts]
    assert (shown.count("✓"), shown.count("0")) == (2 + 4 + 8, 6 + 4)
    assert [text.get_text() for text in greedy.texts].count("✓") == 2 * 3
    alone = depth_table(table.filter(pl.col("init") == "uniform"), "Title")
    assert [text.get_text() for text in alone.axes[1].texts] == ["not run"]
    with pytest.raises(NothingToDraw, match="no runs of networks of squares"):
        depth_table(with_cells(table.with_columns(model=pl.lit("mlp(10)"))), "Title")
