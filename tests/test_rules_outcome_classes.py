"""What became of a run by two thresholds, and grokking."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from petridish.rules.outcome_classes import Groks, with_classes
from petridish.statistics.intervals import wilson_interval
from tests.rule_worlds import (
    CONTRADICTED,
    UNDECIDED,
    curve,
    curves_of,
    decided,
    most_wrong,
    nothing_matters,
    run,
    sweep,
    table_of,
)

pytestmark = pytest.mark.usefixtures("few_resamples")


def test_classes_by_hand() -> None:
    """Every combination of fitted and solved, with a look every 100 steps.

    A run that is solved at 1000 was not at 900; one fitted from the start counts as fitted at 1.
    """
    rows = [
        (run(500, fitted_at=500), "solved at once"),
        (run(1_000, fitted_at=500), "solved at once"),
        (run(1_100, fitted_at=500), "grokked"),
        (run(100, fitted_at=0), "solved at once"),
        (run(200, fitted_at=0), "grokked"),
        (run(0, fitted_at=0), "solved at once"),
        (run(500), "solved at once"),
        (run(500, **{"data.m": math.inf}), "solved at once"),
        (run(None, fitted_at=500), "memorised only"),
        (run(None, fitted_at=500, outcome="DIVERGED"), "memorised only"),
        (run(None), "never fitted"),
        (run(None, outcome="DIVERGED"), "never fitted"),
    ]
    runs = table_of([row for row, _ in rows]).with_columns(pl.lit(100).alias("evaluation.every"))
    table = with_classes(runs)

    assert table["class"].to_list() == [name for _, name in rows]


def test_grokking_by_hand() -> None:
    """Delays of 2, 3 and 4, less one look of 0.1, have the median 2.9.

    Runs that learn at once do not count in it.
    """
    table = pl.concat([curves_of([2, 3, 4] * 4), curves_of([1.0] * 5)])
    finding = Groks().judge(table, 0.05)

    assert finding.estimate == 2.9
    assert finding.n == 17
    assert finding.remark == (
        "12 of 17 solved runs were at chance when they had fitted; the longest delay is 4"
    )


def test_runs_that_never_grok_contradict_in_numbers() -> None:
    """None of 20 is too few, none of 200 is rare: as Wilson's interval says."""
    assert Groks().judge(curves_of([1.0] * 20), 0.05).judgement is UNDECIDED
    assert Groks().judge(curves_of([1.0] * 200), 0.05).judgement is CONTRADICTED
    assert wilson_interval(0, 20)[1] > 0.05 > wilson_interval(0, 200)[1]


def test_short_delays_are_undecided() -> None:
    """Runs that are half a look late have not grokked, nor do they show that none does."""
    assert Groks().judge(curves_of([1.3] * 100), 0.05).judgement is UNDECIDED


@pytest.mark.parametrize("runs", [2, 3, 10])
def test_grokking_keeps_its_level(runs: int) -> None:
    """Delays of 1.5 and 2.5 at even odds: the median is not above 2, say 95 % of 200 tables."""
    rng = np.random.default_rng(0)
    tables = [curves_of(rng.choice([1.5, 2.5], size=runs).tolist()) for _ in range(200)]

    assert decided(Groks(), tables) <= most_wrong(200)


def test_what_one_seed_does_at_six_widths_counts_once() -> None:
    """Runs of one seed share their data: 60 runs of 10 seeds say no more than 10 runs.

    As above, a seed's delay is 1.5 or 2.5 at even odds, whatever the width.
    """
    rng = np.random.default_rng(0)
    tables = []
    for _ in range(100):
        ratios = rng.choice([1.5, 2.5], size=10).tolist()
        widths = [10, 20, 30, 40, 50, 60]
        tables.append(
            pl.concat(
                [curves_of(ratios).with_columns(pl.lit(w).alias("model.width")) for w in widths]
            )
        )

    assert decided(Groks(), tables) <= most_wrong(100)


def test_one_look_is_no_delay() -> None:
    """Fitted between looks 0 and 1 and generalising between 1 and 2: maybe in the same step.

    Fitted at 450 steps and at chance until 550, with a look every 500: a ratio of 1.2.
    """
    table = table_of([curve(450, 550, every=500) | {"seed": s} for s in range(20)])

    assert Groks().judge(table, 0.05).judgement is UNDECIDED


def test_grokking_needs_curves_and_a_sample() -> None:
    """Without curves, online, and unsolved, there is nothing to see."""
    plain = curves_of([3.0] * 9)
    online = plain.with_columns(
        pl.col("curve.train_error").list.eval(pl.element() * math.nan), data_m=math.inf
    )

    assert Groks().judge(sweep(nothing_matters), 0.05).remark == "these runs kept no curves"
    for table in (online, plain.with_columns(outcome=pl.lit("OUT_OF_STEPS"))):
        assert Groks().judge(table, 0.05).remark == "no run was solved from a sample"


def test_a_lax_target_does_not_stop_the_rule() -> None:
    """A run may be solved by its target error and still be at what the rule calls chance."""
    lax = curve(500, 10**9) | {"outcome": "SOLVED"}

    assert Groks().judge(table_of([lax] * 3), 0.05).judgement is UNDECIDED
