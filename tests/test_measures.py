"""Measures: one number per run, against plain loops over the runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.rules import (
    AtEnd,
    BestOf,
    Field,
    InOrder,
    Measure,
    Over,
    ReachedAt,
    Solved,
    SolvedAt,
    TimeTo,
)

INF, NAN = math.inf, math.nan
CURVE = pl.List(pl.Float64)
heights = st.sampled_from([0.0, 0.1, 0.2, 0.5, NAN])
curves = st.lists(heights, min_size=0, max_size=6)


def curve_table(runs: list[list[list[float]] | None]) -> pl.DataFrame:
    """Make a table of runs with the curves a, b, … at the steps 0, 10, 20, …; None kept none."""
    count = max((len(run) for run in runs if run), default=2)
    columns: dict[str, Any] = {
        "curve.step": pl.Series(
            [None if run is None else [10 * i for i in range(len(run[0]))] for run in runs],
            dtype=pl.List(pl.Int64),
        )
    }
    for place in range(count):
        values = [None if run is None else run[place] for run in runs]
        columns[f"curve.{'abc'[place]}"] = pl.Series(values, dtype=CURVE)
    return pl.DataFrame(columns)


def same(found: Any, wanted: list[float]) -> bool:
    """Compare arrays in which NaN equals NaN."""
    return np.array_equal(found, np.array(wanted, np.float64), equal_nan=True)


@given(st.lists(st.none() | curves.map(lambda curve: [curve]), min_size=1, max_size=5))
def test_a_time_is_the_first_evaluation_on_the_asked_side(runs: list[Any]) -> None:
    """Looked for evaluation by evaluation; beyond the last one where there is none."""
    table = curve_table([run or None for run in runs])

    for measure in (TimeTo("a", below=0.1), TimeTo("a", above=0.2)):
        below = measure.below
        wanted, least = [], []
        for run in runs:
            curve = run[0] if run else []
            there = [v <= 0.1 if below is not None else v >= 0.2 for v in curve]
            first = next((max(10.0 * i, 1.0) for i, hit in enumerate(there) if hit), INF)
            wanted.append(first if curve else NAN)
            least.append(min(first, max(10.0 * (len(curve) - 1), 1.0)) if curve else NAN)
        assert same(measure.of(table), wanted)
        assert same(measure.known(table).low, least)
        assert same(measure.known(table).high, wanted)


@given(
    st.lists(
        st.none() | st.lists(st.tuples(heights, heights, heights), min_size=1, max_size=6),
        min_size=1,
        max_size=5,
    )
)
def test_curves_are_lowest_in_order(runs: list[list[tuple[float, float, float]] | None]) -> None:
    """Evaluation by evaluation: which is lowest, and when each is for the first time."""
    table = curve_table(
        [None if run is None else [list(c) for c in zip(*run, strict=True)] for run in runs]
    )
    found = InOrder(("a", "b", "c")).of(table) if table.width == 4 else None

    wanted = []
    for run in runs:
        firsts = [INF] * 3
        for step, values in enumerate(run or []):
            if not all(math.isnan(v) for v in values):
                lowest = min(range(3), key=lambda i: INF if math.isnan(values[i]) else values[i])
                firsts[lowest] = min(firsts[lowest], step)
        seen = [first for first in firsts if first < INF]
        wanted.append(float(firsts[0] < firsts[1] < firsts[2] < INF) if seen else NAN)
    assert found is None or same(found, wanted)


def ends_table() -> pl.DataFrame:
    """Make a table of three runs: one solved at once, one out of steps, one diverged."""
    return pl.DataFrame(
        {
            "outcome": ["SOLVED", "OUT_OF_STEPS", "DIVERGED"],
            "solved_at": [0, None, None],
            "steps": [0, 500, 20],
            "training.steps": [500, 500, 500],
            "test_error": [0.0, 0.4, NAN],
            "final.test_mine": [1.5, 2.5, None],
            "reached.early": pl.Series([None, 30, None], dtype=pl.Int64),
            "model.width": [10, None, 30],
            "task": ["a", "b", "c"],
            "seed": [0, 1, 2],
        }
    )


def test_measures_of_how_a_run_ended_by_hand() -> None:
    """Solved at step 0 counts as solved at step 1; a diverged run is worse than all others."""
    table = ends_table()

    assert same(Solved().of(table), [1, 0, 0])
    assert same(SolvedAt().of(table), [1, INF, INF])
    assert same(SolvedAt().known(table).low, [1, 500, 500])
    assert same(ReachedAt("early").of(table), [INF, 30, INF])
    assert same(ReachedAt("early").known(table).low, [1, 30, 20])
    assert same(AtEnd("test_error").of(table), [0, 0.4, INF])
    assert same(AtEnd("test_mine", diverged=-INF).of(table), [1.5, 2.5, -INF])
    assert same(AtEnd("test_mine", diverged=NAN).of(table), [1.5, 2.5, NAN])
    assert same(Field("model.width").of(table), [10, NAN, 30])
    assert same(BestOf(SolvedAt(), "least").of(table), [1, INF, INF])
    assert same(BestOf(SolvedAt(), "least").known(table).low, [1, 500, 500])


def test_a_ratio_within_a_run_by_hand() -> None:
    """Reached over not reached is known to be small; of neither reached nothing is known."""
    table = pl.DataFrame(
        {
            "solved_at": [20, None, 30, None],
            "training.steps": [100] * 4,
            "reached.early": pl.Series([10, 40, None, None], dtype=pl.Int64),
            "steps": [20, 100, 30, 100],
        }
    )
    measure = Over(SolvedAt(), ReachedAt("early"))

    assert same(measure.of(table), [2, INF, 0, NAN])
    assert same(measure.known(table).low, [2, 2.5, 0, 0])
    assert same(measure.known(table).high, [2, INF, 1, INF])
    with pytest.raises(UserError) as refusal:
        Over(Field("loss"), Field("loss")).known(pl.DataFrame({"loss": [-0.5, 1.0]}))
    assert str(refusal.value) == (
        "A ratio was asked for of «(loss) / (loss)», of which one value is -0.5. Give numbers of "
        "at least 0, or a difference."
    )


def test_measures_say_what_they_read_in_words() -> None:
    """Their columns, each once, and a label."""
    time = TimeTo("test_kl_bigram", below=0.05)
    seen = {
        Solved(): (("outcome",), "success"),
        SolvedAt(): (("solved_at", "training.steps"), "steps until solved"),
        ReachedAt("x"): (("reached.x", "steps"), "steps until x"),
        AtEnd("test_mine"): (("outcome", "final.test_mine"), "test_mine at the end"),
        AtEnd("test_error"): (("outcome", "test_error"), "test_error at the end"),
        time: (("curve.step", "curve.test_kl_bigram"), "steps until test_kl_bigram ≤ 0.05"),
        TimeTo("b", above=0.5): (("curve.step", "curve.b"), "steps until b ≥ 0.5"),
        InOrder(("a", "b")): (("curve.step", "curve.a", "curve.b"), "a → b in this order"),
        Field("model.width"): (("model.width",), "model.width"),
        Over(time, SolvedAt()): (
            ("curve.step", "curve.test_kl_bigram", "solved_at", "training.steps"),
            "(steps until test_kl_bigram ≤ 0.05) / (steps until solved)",
        ),
        BestOf(Solved(), best="most"): (("outcome",), "most success over restart"),
        BestOf(AtEnd("steps"), "least", over="data.m"): (
            ("outcome", "steps", "data.m"),
            "least steps at the end over data.m",
        ),
    }
    assert {measure: (measure.columns, measure.label) for measure in seen} == seen


def test_mistakes_are_named() -> None:
    """Two sides or none, a column that is not there, text for a number."""
    table = ends_table()
    mistakes: dict[str, Callable[[], object]] = {
        "TimeTo: below=None and above=None. Give one of them.": lambda: TimeTo("a"),
        "TimeTo: below=1 and above=2. Give one of them.": lambda: TimeTo("a", below=1, above=2),
        "There is no column 'final.test_mime' among these runs, which the measure «test_mime at "
        "the end» reads. Did you mean final.test_mine?": lambda: AtEnd("test_mime").check(table),
        "Field: task holds String, and a measure is a number. Give the path of a number.": lambda: (
            Field("task").of(table)
        ),
    }
    for message, mistake in mistakes.items():
        with pytest.raises(UserError) as refusal:
            mistake()
        assert str(refusal.value) == message


def test_an_own_measure_is_one_short_class() -> None:
    """Columns, a label, and a number per run; what is known of it follows."""

    @dataclass(frozen=True)
    class Examples(Measure):
        columns = ("steps", "training.batch_size")
        label = "examples seen"

        def of(self, table: pl.DataFrame) -> Any:
            return (table["steps"] * table["training.batch_size"]).cast(float).to_numpy()

    table = pl.DataFrame({"steps": [10, 20], "training.batch_size": [32, 32]})
    assert same(Examples().of(table), [320, 640])
    assert Examples().known(table).exact.all()
