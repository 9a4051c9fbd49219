"""Fields held at one value: as `--set` takes them, and as a condition in Python."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from petridish.choices import describe
from petridish.rules.outcome_table import field_label, field_text
from petridish.training import flat, read_cell

if TYPE_CHECKING:
    from petridish.explorer.run_sets import Snapshot
    from petridish.sweeps import Sweep


def setting_text(value: Any) -> str:
    """Write a value as `--set` reads it."""
    if isinstance(value, float):
        return "inf" if value == float("inf") else repr(int(value) if value.is_integer() else value)
    return "none" if value is None else str(value)


def in_order(column: pl.Series) -> list[Any]:
    """Return the values of a field in the order in which they are shown, none first."""
    values = column.unique().to_list()
    values.sort(key=lambda v: (v is not None, isinstance(v, str), v) if v is not None else (False,))
    return values


def is_settable(sweep: Sweep | None, name: str, value: Any) -> bool:
    """Return whether `--set` holds a field at a value without adding runs to a sweep.

    It does where every grid of the sweep has the field for an axis, and the value on it: a grid
    without either would be run anew.
    """
    text = setting_text(value)
    return sweep is not None and all(
        any(describe(each) == text or each == value for each in grid.axes.get(name, ()))
        for grid in sweep.grids()
    )


def condition(now: Snapshot, name: str, value: Any) -> str:
    """Write in Python which rows of a table of runs have a value of a field."""
    column = f"pl.col({name!r})"
    if value is None:
        return f"{column}.is_null()"
    if name in now.settings.columns:  # which has lists as their texts
        cells = now.settings.filter(pl.col(name).is_not_null())["cell"]
        if isinstance(flat(read_cell(str(cells[0]))).get(name), list):
            column += '.cast(pl.List(pl.String)).list.join(", ")'
    literal = 'float("inf")' if value == math.inf else repr(value)
    return f"{column} == {literal}"


def shown_field(column: pl.Series) -> dict[str, Any]:
    """Return a field with its values as they are shown."""
    return {
        "name": column.name,
        "label": field_label(column.name),
        "levels": [field_text(value) for value in in_order(column)],
    }
