"""What came out of some runs, over any of the fields that vary: tables in, numbers out.

One row per setting; runs of different settings are never put together. What no axis was asked for
becomes a panel of its own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, require
from petridish.rules.cells import ordered, sortable
from petridish.rules.measures import Measure, Solved, SolvedAt
from petridish.rules.outcome_remarks import (
    diverged,
    half_known,
    reads_end,
    stopped_apart,
    without_value,
)
from petridish.rules.outcome_values import answered, check_solvable, measure_of, usual_value
from petridish.rules.specs import specs_of
from petridish.rules.tuning import Best, best_by, tuned, without_field
from petridish.rules.varying import ARM, as_axis, full_name, varying
from petridish.statistics.intervals import anytime_interval, grouped_medians, wilson_interval
from petridish.statistics.known import Known
from petridish.sweeps import by_arm

if TYPE_CHECKING:
    import polars as pl

COVERAGE = 0.95
ALL_OR_NONE = "Times, because every setting was solved by all or by none of its runs."
AXIS_LABELS = {"data.m": "sample size m", "model.width": "width r"}


@dataclass(frozen=True)
class OutcomeAxes:
    """Where each varying field goes: rows or colours, columns, and panels for the rest."""

    rows: str | None = None
    columns: str | None = None
    panels: tuple[str, ...] = ()
    colour: str | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """All of them, panels first."""
        return (*self.panels, *(f for f in (self.rows or self.colour, self.columns) if f))


@dataclass(frozen=True)
class OutcomeTable:
    """The outcomes of every setting.

    Attributes
    ----------
    axes : OutcomeAxes
        The fields that tell the settings apart, and where each is shown.
    value : str
        What `value` of a setting is: "solved", "time", or the name of a metric or instrument.
    label : str
        The same in words.
    frame : DataFrame
        One row per setting: its fields, `n` runs, those `solved` and `diverged`, the `value` with
        its interval `low` to `high` (null of too few runs), and `chosen`, what was best of the
        fields tuned over.
    budget : int
        The most steps of a run; a time beyond it is infinite.
    """

    axes: OutcomeAxes
    value: str
    label: str
    frame: pl.DataFrame
    budget: int
    remarks: tuple[str, ...] = ()

    @property
    def n_each(self) -> str:
        """The number of runs of a setting: one, or from the least to the most."""
        made = sorted(set(self.frame["n"].to_list()))
        return f"{made[0]}" if len(made) == 1 else f"{made[0]} to {made[-1]}"

    @property
    def alike(self) -> str:
        """The value that all settings share, in words; "" where they differ, or agree by luck."""
        values = self.frame["value"]
        if len(values) < 2 or values.n_unique() > 1 or values.is_nan().any():
            return ""
        if self.is_share and values[0] not in (0.0, 1.0):
            return ""
        said = value_text(self, values[0])
        what = f"{said} % of runs solved" if self.is_share else f"{self.label} {said}"
        return f"All {len(values)} settings are alike: {what}"

    @property
    def is_share(self) -> bool:
        """Whether the values are shares of runs solved."""
        return self.value == "solved"


def outcome_table(
    runs: pl.DataFrame,
    *,
    rows: str | None = None,
    columns: str | None = None,
    panels: Sequence[str] | str = (),
    colour: str | None = None,
    value: str | None = None,
    best_over: Sequence[str] | str = (),
    best: Best | None = None,
    first: Sequence[str] = (),
) -> OutcomeTable:
    """Compute what came out of the runs of every setting.

    Parameters
    ----------
    runs : DataFrame
        A table of runs, such as `Sweep.among` returns.
    rows, columns, panels, colour : str, or for panels several
        Fields by their path or short name (`m`, `r`, `lr`); what varies and is not named gets the
        place that is left. With `colour` there are lines of several colours instead of rows.
    value : str, optional
        "solved": the share of runs solved, with Wilson's interval. "time": the median steps to
        success, where a run that was not solved counts as later than all others; "grokking_delay":
        that over the step at which it had fitted. Else the median of a metric, a threshold or an
        instrument at the end; one that diverged is the largest. Left out, see `usual_value`.
    best_over : str or several, optional
        Fields of which the best value is taken, chosen on one half of the seeds and measured on the
        other (`tuned`). Arms of which some have no such field are laid apart.
    best : "least" or "most", optional
        Which end of the value is the better one; left out, the most solved and the least of all
        else, as of an error, a loss or a time. A metric that is better when larger needs "most".
    first : sequence of str
        The fields of most interest, such as the axes of a sweep in their order.
    """
    require(best in (None, *get_args(Best)), f"best={best!r} was given. Give 'least' or 'most'.")
    table = by_arm(runs) if "arms" in runs.columns else runs
    called = partial(full_name, known=table.columns, first=first)
    over, apart = ([called(name) for name in _several(names)] for names in (best_over, panels))
    rows, columns, colour = (called(name) if name else None for name in (rows, columns, colour))
    named = [*(name for name in (rows, columns, colour) if name), *apart]
    doubled = {name for name in (*named, *over) if [*named, *over].count(name) > 1}
    if doubled:
        raise UserError(f"The axis {min(doubled)} is asked for twice. Give each place its own.")
    if table.is_empty():
        raise UserError("There are no runs to show. Run the sweep first.")
    fields = varying(runs, first, asked=(*named, *over))
    fields = [name for name in fields if name not in over]
    if ARM in table.columns and ARM not in fields and without_field(table, over, fields):
        fields.append(ARM)
    table = table.with_columns(as_axis(table[name]) for name in {*fields, *named})
    axes = place_axes(
        fields,
        numeric={name for name in fields if table.schema[name].is_numeric()},
        rows=rows,
        columns=columns,
        panels=apart,
        colour=colour,
    )
    remarks = []
    if value is None:
        value = usual_value(table, axes.fields)
        if value == "time":
            remarks.append(ALL_OR_NONE)
    specs = specs_of(table).values()
    check_solvable(value, specs)
    measure = measure_of(value, answered(table.columns, specs))
    chosen: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    if over:
        best = best or best_by(measure)
        at_best = tuned(table, measure, over=over, within=axes.fields, best=best)
        table, chosen = at_best.table, at_best.chosen
        what = f"{best} {'solved' if value == 'solved' else f'median {measure.label}'}"
        at = f"At the best {' and '.join(map(field_label, over))} ({what})"
        remarks.append(f"{at}, chosen on the other half of the seeds.")
    frame, unclear = _cells(table, axes, measure, chosen)
    remarks += unclear
    restarts = table["restart"].n_unique() if "restart" in table.columns else 1
    if restarts > 1:
        remarks.append(f"Every seed was restarted: {restarts} runs of it share their data.")
    if reads_end(measure):
        remarks += stopped_apart(table)
    for line in diverged(table):
        worst = " They count as larger than all others." if value not in ("solved", "time") else ""
        remarks.append(line + worst)
    budget = int(table["training.steps"].max() or 0) if "training.steps" in table.columns else 0  # type: ignore[arg-type] # a whole column
    label = "share of runs solved" if value == "solved" else f"median {measure.label}"
    found = OutcomeTable(axes, value, label, frame, budget, tuple(remarks))
    return replace(found, remarks=(f"{alike}.", *remarks)) if (alike := found.alike) else found


def _several(names: Sequence[str] | str) -> list[str]:
    """Return names given as a list, or as one text with commas."""
    parts = names.split(",") if isinstance(names, str) else names
    return [name for name in parts if name.strip()]


def place_axes(
    fields: Sequence[str],
    *,
    numeric: Collection[str],
    rows: str | None = None,
    columns: str | None = None,
    panels: Sequence[str] = (),
    colour: str | None = None,
) -> OutcomeAxes:
    """Place every field as asked for; else width in rows, m in columns, numbers first.

    A single axis goes across.
    """
    given = (rows, columns, colour, *panels)
    left = [name for name in fields if name not in given]

    def take(*preferred: list[str]) -> str | None:
        found = next((names[0] for names in preferred if names), None)
        if found is not None:
            left.remove(found)
        return found

    numbers = [name for name in left if name in numeric]
    if columns is None:
        inner = [name for name in reversed(numbers) if name != "model.width"]
        columns = take([name for name in left if name == "data.m"], inner, numbers, left)
    if rows is None and colour is None:
        numbers = [name for name in left if name in numeric]
        rows = take([name for name in left if name == "model.width"], numbers, left)
    if columns is None:  # a single axis is drawn across
        rows, columns = None, rows
    return OutcomeAxes(rows, columns, (*panels, *left), colour)


def _cells(
    table: pl.DataFrame,
    axes: OutcomeAxes,
    measure: Measure,
    chosen: dict[tuple[Any, ...], list[tuple[Any, ...]]],
) -> tuple[pl.DataFrame, list[str]]:
    import polars as pl

    measure.check(table)
    known = measure.known(table)
    settings, setting = ordered(table, axes.fields, sortable)
    numbers = pl.DataFrame(summaries(known, table["outcome"], setting, len(settings))).with_columns(
        pl.Series("chosen", [_choices(chosen[s]) if chosen else None for s in settings], pl.String)
    )
    names = pl.DataFrame(
        [
            pl.Series(name, [key[at] for key in settings], dtype=table.schema[name])
            for at, name in enumerate(axes.fields)
        ]
    )
    frame = pl.concat([names, numbers], how="horizontal") if axes.fields else numbers
    if not isinstance(measure, Solved):
        said = half_known(known, setting, unsolved=isinstance(measure, SolvedAt))
        return frame, [*said, *without_value(known, measure.label)]
    value, low, high = shares(frame["solved"].to_numpy(), frame["n"].to_numpy())
    ends = {"low": pl.Series(low), "high": pl.Series(high)}
    return frame.with_columns(pl.Series("value", value), **ends), []


def summaries(
    known: Known, outcomes: pl.Series, settings: NDArray[np.int64], count: int
) -> dict[str, Any]:
    """Return the columns `n`, `solved`, `diverged`, `value`, `low` and `high` of every setting.

    The value is the median of what is known of its runs; an interval of too few runs is null.
    """
    import polars as pl

    value, low, high = grouped_medians(known, settings, count, coverage=COVERAGE)
    numbers = {
        name: np.bincount(settings[(outcomes == word).to_numpy()], minlength=count)
        for name, word in (("solved", "SOLVED"), ("diverged", "DIVERGED"))
    }
    ends = {"low": pl.Series(low).fill_nan(None), "high": pl.Series(high).fill_nan(None)}
    return {"n": np.bincount(settings, minlength=count), **numbers, "value": value, **ends}


def shares(
    solved: NDArray[np.int64], runs: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the shares of runs solved, with intervals.

    Wilson's; or, where settings differ in their number of runs, those that hold whenever seeds
    stopped coming: cells of unequal n may have been stopped when they were clear.
    """
    interval = wilson_interval if len(np.unique(runs)) <= 1 else anytime_interval
    low, high = interval(solved, runs, coverage=COVERAGE)
    return solved / np.maximum(runs, 1), low, high


def _choices(options: list[tuple[Any, ...]]) -> str:
    """Write what the two halves of the seeds chose, once where they agree."""
    return " / ".join(", ".join(map(field_text, each)) for each in dict.fromkeys(options))


def field_text(value: Any) -> str:
    """Write a value of a field."""
    if value is None:
        return "none"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return "∞" if math.isinf(value) else f"{value:g}"


def field_label(field: str) -> str:
    """Write the name of a field: the last part of its path, a letter of the papers beside it."""
    return AXIS_LABELS.get(field, field.rpartition(".")[2].replace("_", " "))


def value_text(table: OutcomeTable, value: float, *, digits: int = 3) -> str:
    """Write a value: a share in percent, a time in steps, a metric by some digits."""
    if math.isnan(value):
        return "–"
    if table.is_share:
        return f"{100 * value:.0f}"
    if math.isinf(value):
        return f"> {_steps(table.budget)}" if table.value == "time" else "∞"
    return _steps(value) if table.value == "time" else f"{value:.{digits}g}"


def _steps(value: float) -> str:
    return f"{value / 1000:.3g}k" if value >= 10_000 else f"{value:.0f}"
