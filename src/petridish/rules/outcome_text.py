"""Outcomes as text for a terminal: a table for every panel, one line per setting, or one number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from petridish.rules.cells import ordered, sortable
from petridish.rules.outcome_table import OutcomeTable, field_label, field_text, value_text
from petridish.text_columns import in_columns

if TYPE_CHECKING:
    import polars as pl

WIDEST = 100  # letters of a line up to which cells carry their intervals
LONGEST = 26  # letters of a value
MOST_PANELS = 40


def outcome_text(table: OutcomeTable) -> str:
    """Return every setting with its outcome, as text."""
    axes = table.axes
    panels, place = ordered(table.frame, axes.panels, sortable)
    lines = []
    for number, panel in enumerate(panels[:MOST_PANELS]):
        lines += _panel(table, table.frame.filter(place == number), _named(axes.panels, panel))
        lines.append("")
    if len(panels) > MOST_PANELS:
        lines.append(
            f"{len(panels) - MOST_PANELS} more tables are not shown; choose some by --set."
        )
    return "\n".join([*lines, *table.remarks]).rstrip() + "\n"


def _named(fields: tuple[str, ...], values: tuple[Any, ...]) -> str:
    named = zip(fields, values, strict=True)
    return ", ".join(f"{field_label(field)} = {field_text(value)}" for field, value in named)


def _panel(table: OutcomeTable, cells: pl.DataFrame, name: str) -> list[str]:
    axes = table.axes
    rows = axes.rows or axes.colour
    shown = "percent of runs solved" if table.is_share else table.label
    by = " and ".join(field_label(field) for field in (rows, axes.columns) if field)
    head = f"{name}: {shown}" if name else f"{shown[0].upper()}{shown[1:]}"
    head += f", by {by}" if by else ""
    if rows is None or axes.columns is None:
        return [head, *_list(table, cells, rows or axes.columns)]
    return [head, *_matrix(table, cells, rows, axes.columns)]


def _list(table: OutcomeTable, cells: pl.DataFrame, field: str | None) -> list[str]:
    """Write one line per setting."""
    names = [_cut(field_text(value)) for value in cells[field]] if field else ["all runs"]
    columns = {
        field_label(field) if field else "": names,
        "solved %" if table.is_share else "median": [value_text(table, v) for v in cells["value"]],
        "95 % interval": [_interval(table, *ends) for ends in cells["low", "high"].iter_rows()],
        "n": [str(n) for n in cells["n"]],
    }
    if not table.is_share and cells["solved"].sum():
        columns["solved"] = [str(n) for n in cells["solved"]]
    if cells["diverged"].sum():
        columns["diverged"] = [str(n) for n in cells["diverged"]]
    if cells["chosen"].is_not_null().any():
        columns["best at"] = cells["chosen"].to_list()
    rows = [tuple(columns), *zip(*columns.values(), strict=True)]
    return [f"  {line}" for line in in_columns(rows)]


def _matrix(table: OutcomeTable, cells: pl.DataFrame, rows: str, columns: str) -> list[str]:
    """Write a table of values, with their intervals where there is room."""
    (across, column), (down, row) = (ordered(cells, (name,), sortable) for name in (columns, rows))
    found = dict(
        zip(zip(row.tolist(), column.tolist(), strict=True), cells.to_dicts(), strict=True)
    )
    heads = [f"{field_label(rows)} \\ {field_label(columns)}"]
    heads += [_cut(field_text(value)) for (value,) in across]
    # The largest number on top, as on a map.
    order = range(len(down))[:: -1 if cells.schema[rows].is_numeric() else 1]
    for intervals in (True, False):
        texts = [
            [_cell(table, found.get((r, c)), intervals=intervals) for c in range(len(across))]
            for r in order
        ]
        names = [_cut(field_text(down[r][0])) for r in order]
        lines = in_columns([heads, *([n, *row] for n, row in zip(names, texts, strict=True))])
        if max(map(len, lines)) <= WIDEST:
            break
    bracketed = intervals and any("[" in text for row in texts for text in row)
    what = "; in brackets 95 % intervals" if bracketed else ""
    remark = f"n = {table.n_each} runs per setting{what}"
    return [f"  {line}" for line in (*lines, remark)]


def _cell(table: OutcomeTable, cell: dict[str, Any] | None, *, intervals: bool) -> str:
    if cell is None:
        return "–"
    parts = [value_text(table, cell["value"])]
    if intervals:
        parts.append(_interval(table, cell["low"], cell["high"]))
    if cell["diverged"]:
        parts.append(f"({cell['diverged']} div.)")
    if cell["chosen"] is not None:
        parts.append(f"at {cell['chosen']}")
    return " ".join(part for part in parts if part)


def _interval(table: OutcomeTable, low: float | None, high: float | None) -> str:
    """Write an interval; nothing where there are too few runs for one."""
    if low is None or high is None or math.isinf(low):
        return ""
    if table.value == "time" and math.isinf(high):
        return f"[≥ {value_text(table, low)}]"  # as on a map
    return f"[{value_text(table, low)}, {value_text(table, high)}]"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
