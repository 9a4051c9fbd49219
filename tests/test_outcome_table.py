"""What varies is shown over any axes, and runs of different settings are never put together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.errors import UserError
from petridish.figures.outcome_map import draw_outcomes
from petridish.models import MLP, PolyNet, Sparse, Uniform
from petridish.publish.records import read_record
from petridish.rules.outcome_table import outcome_table
from petridish.rules.outcome_text import outcome_text
from petridish.rules.varying import full_name, varying
from petridish.statistics.estimators import Estimate
from petridish.store.schema import to_table
from petridish.sweeps import Arms, Sweep, log_range
from petridish.training import Below, RunSpec, SquaredError
from tests.outcome_worlds import BASE, RATES, End, ended, half_solved, world

SEEDS = {"seed": range(8)}
RECORDS = Path(__file__).parents[1] / "records"


# What varies


@pytest.mark.parametrize(
    ("axes", "found"),
    [
        ({}, []),
        ({"model.width": (10, 20)}, ["model.width"]),
        ({"init": (Uniform(), Sparse(2))}, ["init"]),
        ({"init": (Sparse(2), Sparse(4))}, ["init"]),
        ({"model": (MLP(10), MLP(20))}, ["model"]),
        ({"training.batch_size": (None, 8)}, ["training.batch_size"]),
        (
            {"training.learning_rate": RATES, "data.m": (100, 200)},
            ["training.learning_rate", "data.m"],
        ),
    ],
)
def test_what_varies_is_told_by_as_few_fields_as_needed(
    axes: dict[str, Any], found: list[str]
) -> None:
    """The text of a choice is left out where one of its numbers says as much; seeds are luck."""
    sweep = Sweep(BASE, {**axes, "seed": range(2)})

    assert varying(sweep) == found
    assert sorted(varying(world(sweep.axes, half_solved), found)) == sorted(found)  # type: ignore[arg-type] # read-only


def test_a_field_of_one_arm_alone_does_not_stand_for_the_others() -> None:
    """An arm without such a field was the row «none» of it."""
    sparse = Sweep(replace(BASE, init=Sparse(2)), {"init.s": (2, 4), "seed": range(2)})
    both = Arms({"sparse": sparse, "dense": Sweep(BASE, {"seed": range(2)})})
    assert varying(both) == ["init"]
    assert varying(both, asked=("init.s",)) == ["init.s"]


def test_a_table_alone_says_what_varies() -> None:
    """Numbers before the text that has them; a field that goes with another is left out."""
    parts = [
        Sweep(BASE, {"data.m": (m,), "training.steps": (4 * m,), "model.width": (10, 20)})
        for m in (100, 200)
    ]
    whole = Sweep(parts[0].base, parts[0].axes, also=(parts[1],))

    assert varying(whole) == ["data.m", "model.width"]


def test_arms_are_told_apart_by_their_names() -> None:
    """The name stands for all that the arms differ in."""
    arms = Arms(
        {
            "dense": Sweep(BASE, {"model.width": (10, 20)}),
            "sparse": Sweep(BASE, {"init": (Sparse(2),), "model.width": (10, 20)}),
        }
    )
    runs = pl.concat(
        [world(dict(part.axes), half_solved, base=part.base) for part in arms.parts()],
        how="diagonal_relaxed",
    )

    assert varying(arms.among(runs)) == ["arm", "model.width"]
    assert outcome_table(arms.among(runs)).axes.fields == ("arm", "model.width")


# Tables


def test_a_third_axis_becomes_panels_and_nothing_is_pooled() -> None:
    """Width down, m across, a panel per rate: one row per setting, each with its own runs."""
    axes = {"model.width": (10, 20), "data.m": (100, 200), "training.learning_rate": RATES, **SEEDS}
    table = outcome_table(world(axes, half_solved))

    assert (table.axes.rows, table.axes.columns) == ("model.width", "data.m")
    assert table.axes.panels == ("training.learning_rate",)
    assert len(table.frame) == 12
    assert set(table.frame["n"]) == {8}
    assert set(table.frame["value"]) == {0.5}


def test_the_places_asked_for_are_taken_and_the_rest_goes_to_panels() -> None:
    """Short names are those of `--set`; lines of several colours take the place of rows."""
    axes = {"model.width": (10, 20), "data.m": (100, 200), "training.learning_rate": RATES, **SEEDS}
    runs = world(axes, half_solved)

    chosen = outcome_table(runs, rows="lr", columns="r").axes
    assert (chosen.rows, chosen.columns, chosen.panels) == (
        "training.learning_rate",
        "model.width",
        ("data.m",),
    )
    lines = outcome_table(runs, colour="m").axes
    assert (lines.rows, lines.colour, lines.columns) == (None, "data.m", "training.learning_rate")
    assert lines.panels == ("model.width",)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            {"rows": "lrr"},
            "There is no axis called 'lrr' among these runs. Did you mean lr?",
        ),
        (
            {"rows": "lr", "columns": "training.learning_rate"},
            "The axis training.learning_rate is asked for twice. Give each place its own.",
        ),
        (
            {"value": "test_eror"},
            "There is no value called 'test_eror'. Did you mean test_error?",
        ),
        (
            {"best_over": "lr"},
            "The best training.learning_rate is chosen on one half of the seeds and measured on "
            "the other, and these runs have 1 seed. Run two seeds or more.",
        ),
        (
            {"best_over": "seed"},
            "The best seed was asked for, and the best of some settings is chosen on one half of "
            "the seeds and measured on the other. Give an axis such as training.learning_rate.",
        ),
    ],
)
def test_mistakes_are_named(choice: dict[str, Any], message: str) -> None:
    """What was wrong, and what to write instead."""
    runs = world({"training.learning_rate": RATES}, half_solved)
    with pytest.raises(UserError) as error:
        outcome_table(runs, **choice)

    assert str(error.value) == message


def by_rate(spec: RunSpec) -> End:
    """Be slow at a low rate, quick at a middle one, and diverge at a high one."""
    rate = spec.training.learning_rate
    if rate == 1.0:
        return {"error": math.nan}
    return {"solved_at": 100 if rate == 0.1 else 300, "error": rate / 10}


def test_diverged_runs_are_counted_and_count_as_the_largest() -> None:
    """Of a metric their median is ∞, of a time beyond the budget."""
    runs = world({"training.learning_rate": RATES, **SEEDS}, by_rate)
    table = outcome_table(runs, value="test_error")

    assert table.frame["diverged"].to_list() == [0, 0, 8]
    assert table.frame["value"].to_list() == [0.001, 0.01, math.inf]
    assert table.remarks[1:] == ("8 of 24 runs diverged. They count as larger than all others.",)
    assert table.remarks[0].startswith("16 of 24 runs stopped once they were solved, after 100 to")
    late = outcome_text(outcome_table(runs, value="time"))
    assert "> 400" in late
    assert "[≥ 400]" in late  # it was [400, > 400], and all that is known is that it is later


def test_all_or_none_solved_shows_times_and_nothing_solved_the_metric() -> None:
    """0 % and 100 % everywhere would be the only information otherwise."""
    runs = world({"training.learning_rate": RATES, **SEEDS}, by_rate)
    failed = world(SEEDS, lambda spec: {"error": 0.3})

    assert outcome_table(runs).value == "time"
    assert outcome_table(runs).frame["value"].to_list() == [300, 100, math.inf]
    assert (
        "Times, because every setting was solved by all or by none"
        in outcome_table(runs).remarks[0]
    )
    assert outcome_table(failed).value == "test_error"
    assert outcome_table(world(SEEDS, half_solved)).value == "solved"


def test_an_instrument_at_the_end_is_a_value() -> None:
    """The last reading of its curve."""
    table = outcome_table(world({"model.width": (10, 20), **SEEDS}, half_solved), value="norm")

    assert table.frame["value"].to_list() == [100, 200]
    assert table.label == "median norm at the end"


def test_the_text_has_every_setting() -> None:
    """A line per setting along one axis, a table over two, one number over none."""
    one = outcome_text(outcome_table(world({"init": (Uniform(), Sparse(2)), **SEEDS}, half_solved)))
    two = {"model.width": (10, 20), "training.learning_rate": RATES, **SEEDS}

    assert one.splitlines() == [
        "Percent of runs solved, by init",
        "       init  solved %  95 % interval  n",
        "  sparse(2)        50       [22, 78]  8",
        "    uniform        50       [22, 78]  8",
    ]
    assert outcome_text(outcome_table(world(two, half_solved))).splitlines() == [
        "Percent of runs solved, by width r and learning rate",
        "  width r \\ learning rate         0.01          0.1            1",
        "                       20  50 [22, 78]  50 [22, 78]  50 [22, 78]",
        "                       10  50 [22, 78]  50 [22, 78]  50 [22, 78]",
        "  n = 8 runs per setting; in brackets 95 % intervals",
    ]
    assert "all runs        50       [22, 78]  8" in outcome_text(
        outcome_table(world(SEEDS, half_solved))
    )


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        ("FE-4-laptop", {"data.m", "model.width"}),
        ("PF-6-momentum", {"task.dataset", "data.m", "model.width", "init"}),
        ("PF-6-optimisers", {"data.m", "model.deeper", "training.optimiser"}),
    ],
)
def test_real_runs_of_any_axes_are_shown_without_pooling(record: str, fields: set[str]) -> None:
    """Lists, names and numbers; as many settings as there are distinct specs."""
    (folder,) = RECORDS.glob(f"*-{record}")
    runs = read_record(folder)
    table = outcome_table(runs)

    assert set(table.axes.fields) == fields
    assert len(table.frame) == runs["cell"].n_unique()
    assert table.frame["n"].sum() == len(runs)
    assert len(outcome_text(table).splitlines()) > 2


def test_an_axis_is_called_by_the_last_part_of_its_path() -> None:
    """Where one has it; else all that do are named, or the axes that vary and a few more."""
    runs = world({"model.width": (10, 20), "training.learning_rate": RATES, **SEEDS}, half_solved)
    table = outcome_table(runs, rows="learning_rate", columns="width")

    assert (table.axes.rows, table.axes.columns) == ("training.learning_rate", "model.width")
    known = ("model.depth", "task.depth", "key", "commit")
    with pytest.raises(UserError) as error:
        full_name("depth", known)
    assert str(error.value) == (
        "There is no axis called 'depth' among these runs. Give one of model.depth, task.depth."
    )
    with pytest.raises(UserError) as error:
        full_name("xyzzy", known, ["task.depth"])
    assert str(error.value) == (
        "There is no axis called 'xyzzy' among these runs. Known: task.depth, model.depth."
    )
    with pytest.raises(UserError, match=r"Known: model\.width, .* and \d+ more\.$") as error:
        outcome_table(runs, rows="xyzzy", first=("model.width",))
    assert str(error.value).count(",") == 11


def test_of_real_targets_the_metric_is_shown_also_where_a_run_is_solved() -> None:
    """A share of 0 in nearly every setting says nothing of the error."""
    training = replace(BASE.training, target_error=None, stop=Below(SquaredError(), 0.1))
    sweep = Sweep(replace(BASE, training=training), {"model.width": (10, 20), **SEEDS})

    def shown(solved: Callable[[RunSpec], bool]) -> str:
        runs = [ended(s, solved_at=100 if solved(s) else None) for s in sweep.specs()]
        return outcome_table(
            to_table([replace(run, final={"test_squared_error": 0.4}) for run in runs])
        ).value

    assert shown(lambda spec: spec.seed == 0) == "test_squared_error"
    assert shown(lambda _: False) == "test_squared_error"
    assert shown(lambda _: True) == "time"


def test_of_too_few_runs_there_is_no_interval() -> None:
    """Null in the frame, nothing in the text, and an estimate says so."""
    runs = world({"model.width": (10, 20), "seed": range(2)}, lambda _: {})
    table = outcome_table(runs, value="test_error")

    assert table.frame.select("value", "low", "high").rows() == [(0.3, None, None)] * 2
    assert "inf" not in outcome_text(table)
    assert draw_outcomes(table, "title").axes
    assert Estimate(0.0, -math.inf, math.inf).text == "0, no interval yet"


# Tuned comparisons


def test_the_best_rate_is_chosen_on_other_seeds_than_those_that_measure_it() -> None:
    """Rates that differ by luck alone gain nothing from being many.

    200 seeds, 16 rates, a success of ½ everywhere. The best rate in hindsight looks like 0.58 or
    more (16 shares of standard error 0.035, the largest of them 1.8 above); the tuned share is
    unbiased, and misses 0.5 by more than 0.1 with probability 0.5 %.
    """
    rng = np.random.default_rng(0)
    axes = {"training.learning_rate": log_range(1e-3, 1, 16), "seed": range(200)}
    runs = world(axes, lambda _: {"solved_at": 100} if rng.random() < 0.5 else {})
    hindsight = outcome_table(runs).frame["value"].max()
    tuned = outcome_table(runs, best_over="lr")

    assert isinstance(hindsight, float)
    assert hindsight > 0.55
    assert abs(tuned.frame["value"][0] - 0.5) < 0.1
    assert tuned.frame["n"].to_list() == [200]
    assert tuned.remarks == (
        "At the best learning rate (most solved), chosen on the other half of the seeds.",
    )


def test_the_best_width_is_not_of_two_models() -> None:
    """An arm without the field is laid apart; without arms the two are refused, never one cell."""
    product = replace(BASE, model=PolyNet(2))
    both = Arms(
        {
            "mlp": Sweep(BASE, {"model.width": (5, 10), **SEEDS}),
            "product": Sweep(product, SEEDS),
        }
    )
    runs = to_table([ended(spec, **half_solved(spec)) for spec in both.specs()])
    table = outcome_table(both.among(runs), best_over="model.width")

    assert table.axes.fields == ("arm",)
    assert table.frame["n"].to_list() == [8, 8]
    assert table.frame["chosen"].to_list()[1] == "none"
    with pytest.raises(UserError) as refused:
        outcome_table(runs, best_over="model.width")
    assert str(refused.value) == (
        "Some of these runs have no model.width, and the best over it would take them for one more "
        "of its values. Lay them apart by model, or by their arm where there are arms."
    )


@pytest.mark.parametrize(("value", "best"), [("time", "0.1"), ("test_error", "0.01")])
def test_what_is_best_depends_on_the_value(value: str, best: str) -> None:
    """The least time or error; the rate that was chosen is told."""
    runs = world({"training.learning_rate": RATES, **SEEDS}, by_rate)
    table = outcome_table(runs, value=value, best_over=("training.learning_rate",))

    assert table.frame["chosen"].to_list() == [best]
    assert table.frame["n"].to_list() == [8]


def test_rates_that_solve_all_are_told_apart_by_time_then_error_then_the_middle() -> None:
    """The share solved is 1 at every rate; the smallest rate is not taken for that."""
    rates = (0.001, 0.01, 0.1, 1.0, 10.0)
    times = dict(zip(rates, (300, 200, 200, 100, 200), strict=True))
    errors = dict(zip(rates, (0.1, 0.1, 0.3, 0.3, 0.01), strict=True))

    def chosen(end: Callable[[RunSpec], End]) -> list[str]:
        runs = world({"training.learning_rate": rates, **SEEDS}, end)
        return outcome_table(runs, value="solved", best_over="lr").frame["chosen"].to_list()

    def rate(spec: RunSpec) -> float:
        return spec.training.learning_rate

    assert chosen(lambda spec: {"solved_at": times[rate(spec)]}) == ["1"]
    assert chosen(lambda spec: {"solved_at": 100, "error": errors[rate(spec)]}) == ["10"]
    assert chosen(lambda _: {"solved_at": 100}) == ["0.1"]
    assert chosen(lambda _: {}) == ["0.1"]


def test_a_metric_that_is_better_when_larger_is_asked_for_by_most() -> None:
    """The remark says which end was taken for the best."""
    runs = world({"training.learning_rate": RATES, **SEEDS}, by_rate)
    most = outcome_table(runs, value="test_error", best_over="lr", best="most")
    least = outcome_table(runs, value="test_error", best_over="lr")

    assert least.frame["chosen"].to_list() != most.frame["chosen"].to_list()
    assert least.remarks[0] == (
        "At the best learning rate (least median test_error at the end), chosen on the other half "
        "of the seeds."
    )
    assert "(most median test_error at the end)" in most.remarks[0]
    with pytest.raises(UserError, match=r"^best='more' was given\. Give 'least' or 'most'\.$"):
        outcome_table(runs, best_over="lr", best="more")  # type: ignore[arg-type] # on purpose


# Values of axes


def test_a_logarithmic_range_is_rounded() -> None:
    """The same values on every machine, as they enter keys."""
    assert log_range(1e-3, 1, 7) == (0.001, 0.00316, 0.01, 0.0316, 0.1, 0.316, 1.0)
    assert log_range(10, 1000, 3) == (10, 100, 1000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, 3), "log_range: from 0 to 1 was given. Give two positive numbers."),
        (("a", 1, 3), "log_range: from 'a' to 1 was given. Give two positive numbers."),
        ((1, 10, 1), "log_range: 1 values were asked for. Give a whole number from 2 on."),
        ((1, 10, 2.5), "log_range: 2.5 values were asked for. Give a whole number from 2 on."),
        (
            (1, 1.001, 5),
            "log_range: 5 values from 1 to 1.001 are not 5 different ones at 3 digits. Give "
            "fewer, or ends further apart.",
        ),
    ],
)
def test_a_range_that_is_none_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    """What was given, and what to give."""
    with pytest.raises(UserError) as error:
        log_range(*arguments)

    assert str(error.value) == message
