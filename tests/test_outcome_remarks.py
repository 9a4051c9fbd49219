"""Medians as they are usual, and what tables and verdicts say of the runs that they are made of."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from petridish.errors import UserError
from petridish.models import MLP
from petridish.rules.declared import check_rule
from petridish.rules.layouts import Each
from petridish.rules.measures import AtEnd, BestOf, SolvedAt
from petridish.rules.outcome_remarks import reads_end, rule_reads_end
from petridish.rules.outcome_table import outcome_table
from petridish.rules.outcome_text import outcome_text
from petridish.rules.rule import Rule
from petridish.statistics.estimators import Median
from petridish.store.schema import to_table
from petridish.sweeps import Sweep
from petridish.testing import short_run
from petridish.training import RunSpec
from tests.outcome_worlds import End, ended, half_solved, world
from tests.own_parts import Waves

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


def test_real_targets_have_no_share_of_errors() -> None:
    """Its column is NaN there, and was offered as a value, shown as dashes, with no word."""
    base = short_run(Waves(), MLP(4))
    made = [
        replace(ended(spec, error=0.2), final={"test_squared_error": 0.2, "test_own": math.nan})
        for spec in Sweep(base, SEEDS).specs()
    ]
    runs = to_table(made)
    with pytest.raises(UserError) as error:
        outcome_table(runs, value="test_error")
    assert str(error.value) == (
        "'test_error' was asked for, and the targets of these runs are real numbers, of which none "
        "is right or wrong. Give such as 'test_squared_error'."
    )
    with pytest.raises(UserError) as error:
        outcome_table(runs, value="zzz")
    assert "test_error" not in str(error.value)
    rule = Rule(AtEnd("test_error"), Each(), Median(), below=0.2)
    with pytest.raises(UserError, match="There is no column 'test_error' among the runs of this"):
        check_rule(rule, Sweep(base, SEEDS))
    assert outcome_table(runs, value="test_own").remarks[-1] == (
        "8 of 8 runs have no value of test_own at the end: it is NaN, or was not measured."
    )
