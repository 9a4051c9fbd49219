"""What a user gives a rule: whole numbers for a column of floats, one name for several, a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.errors import UserError
from petridish.rules import (
    AtEnd,
    Beats,
    BestOrTied,
    Each,
    FrontierShrinks,
    Mean,
    Measure,
    NeverDecreases,
    PairedBySeed,
    Quicker,
    RatioOfMedians,
    Rule,
    Share,
    Sides,
    SlowAtTheEdge,
    Solved,
)
from tests.outcome_worlds import half_solved, world

RUNS = world({"data.m": (20, 50), "seed": range(4)}, half_solved)


@pytest.mark.parametrize("only", [20, 20.0, (20,), [20], range(20, 50), {20}, np.array([20])])
def test_a_column_of_floats_is_asked_for_whole_numbers(only: Any) -> None:
    """The sample size may be infinite, so that its column has floats."""
    rule = Rule(Solved(), Each(only={"data.m": only}), Share(), above=0.5)
    assert rule.judge(RUNS, 0.05).n == 4


@pytest.mark.parametrize(
    "rule",
    [
        Rule(Solved(), PairedBySeed(20, 50, along="data.m"), Mean(), above=0.0),
        Rule(Solved(), Sides(20, 50, along="data.m"), RatioOfMedians(), above=0.0),
        Beats("data.m", 20, 50, ("task",)),  # type: ignore[arg-type] # a number
        BestOrTied("data.m", 20, ("task",)),  # type: ignore[arg-type] # a number
    ],
    ids=lambda rule: type(getattr(rule, "layout", rule)).__name__,
)
def test_two_sample_sizes_are_compared(rule: Any) -> None:
    """All eight runs are behind it."""
    assert rule.judge(RUNS, 0.05).n == 8


@pytest.mark.parametrize(
    "rule", [FrontierShrinks, NeverDecreases, Quicker, SlowAtTheEdge, Beats, BestOrTied]
)
def test_one_name_stands_for_a_tuple_of_one(rule: Any) -> None:
    """A text is no sequence of letters."""
    given = {Beats: ("data.m", "a", "b"), BestOrTied: ("data.m", "a")}.get(rule, ())
    whole = rule(*given, within=("data.m",), best_over=("training.learning_rate",))
    assert rule(*given, within="data.m", best_over="training.learning_rate") == whole


@dataclass(frozen=True)
class TooShort(Measure):
    """Forgets runs."""

    columns = ("test_error",)
    label = "error of two runs"

    def of(self, table: pl.DataFrame) -> Any:
        """Return too little."""
        return table["test_error"].to_numpy()[:2]


def test_a_measure_has_one_number_per_run() -> None:
    """The message says what came back."""
    with pytest.raises(UserError) as error:
        Rule(TooShort(), Each(("data.m",)), Mean(), above=0.5).judge(RUNS, 0.05)
    assert str(error.value) == (
        "The measure «error of two runs» returned values of shape (2,) for 8 runs. Return one "
        "number per run."
    )


def test_a_ratio_of_too_few_seeds_has_no_interval() -> None:
    """From 0 to ∞ is none."""
    rule = Rule(AtEnd("test_error"), Sides(20, 50, along="data.m"), RatioOfMedians(), above=0.0)
    finding = rule.judge(RUNS, 0.05)
    assert finding.numbers().endswith(", no interval yet")
    assert finding.remark == "needs 6 seeds for an interval of 0.95 coverage, and has 4"
