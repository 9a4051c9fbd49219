"""Medians as they are usual, and what tables and verdicts say of the runs that they are made of."""

from __future__ import annotations

import math

import pytest

from petridish.rules.layouts import Each
from petridish.rules.measures import AtEnd, BestOf, SolvedAt
from petridish.rules.outcome_remarks import reads_end, rule_reads_end
from petridish.rules.outcome_table import outcome_table
from petridish.rules.outcome_text import outcome_text
from petridish.rules.rule import Rule
from petridish.statistics.estimators import Median
from petridish.training import RunSpec
from tests.outcome_worlds import End, half_solved, world

SEEDS = {"seed": range(8)}


def test_the_median_of_two_runs_is_between_them() -> None:
    """It was the lower of the two middle values, the minimum of two runs: every error flattered."""
    errors = (0.272, 0.144)
    runs = world({"model.width": (10, 20), "seed": range(2)}, lambda s: {"error": errors[s.seed]})
    table = outcome_table(runs, value="test_error")

    assert table.frame["value"].to_list() == pytest.approx([0.208, 0.208])
    assert table.remarks[1:] == ()  # but that all settings are alike


def test_the_best_rate_is_that_of_the_usual_median() -> None:
    """Two runs per half: the lower one alone would choose the rate of luck."""

    def end(spec: RunSpec) -> End:
        lucky = spec.training.learning_rate == 1.0
        return {"error": (0.01 if spec.seed < 2 else 0.5) if lucky else 0.2}

    runs = world({"training.learning_rate": (0.1, 1.0), "seed": range(4)}, end)
    assert outcome_table(runs, value="test_error", best_over="lr").frame["chosen"][0] == "0.1"


def test_a_median_between_a_run_that_ended_and_one_that_did_not_is_said() -> None:
    """There is no mean of 100 steps and ∞; the remark says which of the two is shown."""
    runs = world({"model.width": (10, 20), "seed": range(2)}, half_solved)
    table = outcome_table(runs, value="time")

    assert table.frame["value"].to_list() == [100, 100]
    assert table.remarks[1:] == (
        "In 2 of 2 settings one of the two middle runs was not solved: the median is the other.",
    )
    runs = world(SEEDS, lambda s: {"error": math.nan if s.seed % 2 else 0.2})
    assert outcome_table(runs, value="test_error").remarks[0] == (
        "In 1 of 1 settings one of the two middle runs is infinite: the median is the other."
    )


def test_values_at_the_end_of_runs_that_stopped_at_success_are_said_to_be_of_other_steps() -> None:
    """A comparison of such values turned round where all runs took all their steps."""
    runs = world({"model.width": (10, 20), **SEEDS}, half_solved)
    said = (
        "8 of 16 runs stopped once they were solved, after 100 steps: values at the end are of "
        "different steps. Set training.target_error=none to compare at equal steps."
    )

    assert outcome_table(runs, value="test_error").remarks[-1] == said
    assert outcome_table(runs, value="norm").remarks[-1] == said
    assert said in outcome_text(outcome_table(runs, value="test_error"))
    assert said not in outcome_table(runs, value="time").remarks
    assert outcome_table(runs, value="solved").remarks == ()
    all_solved = world(SEEDS, lambda _: {"solved_at": 100})
    assert outcome_table(all_solved, value="test_error").remarks == ()  # at equal steps
    rule = Rule(AtEnd("test_error"), Each(("model.width",)), Median(), below=0.2)
    late = Rule(SolvedAt(), Each(("model.width",)), Median(), below=500)
    bests = [BestOf(AtEnd("test_error"), "least", over="restart"), AtEnd("steps")]
    assert [rule_reads_end(r) for r in (rule, late)] == [True, False]
    assert [reads_end(measure) for measure in bests] == [True, False]
