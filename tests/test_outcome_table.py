"""What varies is shown over any axes, and runs of different settings are never put together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from petridish.errors import UserError
from petridish.figures.outcome_map import draw_outcomes
from petridish.models import MLP, Sparse, Uniform
from petridish.publish.records import read_record
from petridish.rules.outcome_table import outcome_table
from petridish.rules.outcome_text import outcome_text
from petridish.rules.varying import full_name, varying
from petridish.statistics.estimators import Estimate
from petridish.store.schema import to_table
from petridish.sweeps import Arms, Sweep, log_range
from petridish.training import Below, RunSpec, SquaredError
from tests.outcome_worlds import BASE, RATES, by_rate, ended, half_solved, world

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
