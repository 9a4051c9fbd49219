"""Learning from noisy labels: the rule, and its figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from petridish.chapters.hidden.figures.hidden_progress import noise_curves
from petridish.chapters.hidden.rules.noisy import ConvergesUnderNoise
from tests.rule_worlds import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    decided,
    most_wrong,
    run,
    table_of,
)
from tests.test_rules_progress import knowing, texts, titles, world

BUDGET, EVERY = 2_000, 25
STEPS = np.arange(0, BUDGET + 1, EVERY)
Signal = Callable[[np.random.Generator, int, float], np.ndarray]


def noisy(
    probability: Callable[[float, int], float],
    *,
    levels: Sequence[float] = (0.0, 0.2, 0.49),
    batches: Sequence[int] = (1, 32),
    seeds: int = 12,
    seed: int = 0,
) -> pl.DataFrame:
    """Draw runs at several noise levels and batch sizes, each cell with its luck."""
    rng = np.random.default_rng(seed)
    rows = []
    for p in levels:
        for batch in batches:
            for s in range(seeds):
                solved = rng.random() < probability(p, batch)
                rows.append(
                    run(
                        100 if solved else None,
                        seed=s,
                        **{
                            "data.label_noise": p,
                            "training.batch_size": batch,
                            "training.steps": 5_000,
                            "test_error": 0.0 if solved else 0.37,
                        },
                    )
                )
    return table_of(rows)


def test_one_batch_size_a_noise_level_is_enough() -> None:
    """Small batches that fail at high noise do not matter where large ones succeed."""
    finding = ConvergesUnderNoise().judge(noisy(lambda p, b: float(p < 0.4 or b > 1)), 0.05)

    assert finding.judgement is SUPPORTED
    assert finding.estimate == 1
    assert finding.low > 0.5
    assert finding.n == 72


def test_a_level_at_which_nothing_is_solved_contradicts() -> None:
    """The level is named, with the budget and how far its runs came."""
    finding = ConvergesUnderNoise().judge(noisy(lambda p, _: float(p < 0.4)), 0.05)

    assert finding.judgement is CONTRADICTED
    assert finding.estimate == 0
    assert finding.high < 0.5
    assert "p = 0.49 not solved: at most 5,000 steps, smallest test error 0.370" in finding.remark


def test_noise_in_between_is_open() -> None:
    """Half of the runs solved, or too few runs, decide nothing."""
    rule = ConvergesUnderNoise()
    half = noisy(lambda p, _: 0.5 if p > 0.4 else 1.0)
    few = noisy(lambda p, _: 1.0, seeds=4)

    assert rule.judge(half, 0.05).judgement is UNDECIDED
    assert rule.judge(few, 0.05).judgement is UNDECIDED
    assert rule.judge(noisy(lambda p, _: 1.0, levels=(0.5,)), 0.05).n == 0


def test_the_best_of_many_batch_sizes_keeps_its_level() -> None:
    """Six batch sizes at even odds: one of them looks good too seldom to be believed."""
    tables = [
        noisy(lambda p, _: 0.5, levels=(0.4,), batches=(1, 2, 4, 8, 16, 32), seeds=10, seed=seed)
        for seed in range(200)
    ]

    assert decided(ConvergesUnderNoise(), tables) <= most_wrong(200)


def test_noise_has_a_grid_of_panels() -> None:
    """A row a batch size, a column a p."""
    rows = [
        falling | {"data.label_noise": p, "training.batch_size": batch}
        for p in (0.0, 0.2, 0.49)
        for batch in (1, 32)
        for falling in world(knowing, seeds=3)
        .filter(pl.col("data.label_noise") == 0)
        .iter_rows(named=True)
    ]
    figure = noise_curves(table_of(rows), "Noise")

    assert titles(figure) == ["p = 0", "p = 0.2", "p = 0.49"]
    assert texts(figure) == ["3 of 3 solved"] * 6
