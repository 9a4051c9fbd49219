"""Outcomes over any axes: a map over two, points with intervals along one, one number over none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.errors import UserError
from petridish.figures.panels import hatch, tiles
from petridish.figures.style import (
    BLUE,
    GREY,
    INK,
    NothingToDraw,
    caption,
    colours_of,
    panel_title,
    sample_label,
)
from petridish.rules.cells import ordered, sortable
from petridish.rules.columns import reads
from petridish.rules.outcome_table import (
    OutcomeTable,
    field_label,
    field_text,
    outcome_table,
    value_text,
)

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MOST_PANELS = 24
MOST_ACROSS = 6  # panels in a row where each is a value of one field
LEAST, WIDEST = 6.4, 13.0  # inches of a figure
FEW, MANY = 9, 16  # columns up to which cells print their interval, and their value
DECADES = 1.5  # from which on values stand on a logarithmic scale
LONGEST = 18  # letters of a tick


@reads()
def outcome_map(table: pl.DataFrame, title: str, **asked: Any) -> Figure:
    """Draw what came out of the runs of every setting.

    Over two fields as a map, a cell for each setting; over one as points with their 95 % intervals;
    of what else varies, every value has its panel. What is `asked` are arguments of
    `outcome_table`: `rows`, `columns`, `panels`, `colour`, `value`, `best_over`, `best`, `first`.
    """
    if asked.get("rows") is not None and asked.get("colour") is not None:
        raise UserError(
            f"rows={asked['rows']!r} and colour={asked['colour']!r} were given, and lines of "
            "several colours take the place of rows. Give one of them."
        )
    found = outcome_table(table, **asked)
    if found.frame["value"].is_nan().all():
        raise NothingToDraw(
            f"None of these runs has a value of {found.value}. Choose another by --value."
        )
    return draw_outcomes(found, title)


def draw_outcomes(table: OutcomeTable, title: str) -> Figure:
    """Draw the outcomes of a table."""
    axes = table.axes
    names, place = ordered(table.frame, axes.panels, sortable)
    shown = names[:MOST_PANELS]
    is_map = axes.rows is not None and axes.columns is not None
    width, height = _panel_size(table, is_map=is_map)
    across = min(max(1, int(WIDEST / width)), len(shown))
    last = table.frame[axes.panels[-1]].n_unique() if axes.panels else 1
    # Alike panels stand below each other: a column for each value of the last field.
    fits = last <= MOST_ACROSS and last * width <= 1.5 * WIDEST
    follows = len(axes.panels) > 1 and fits
    across = last if follows else across - (across % last if across > last else 0)
    labels = (
        field_label(axes.columns) if axes.columns else "",
        field_label(axes.rows) if is_map and axes.rows else table.label,
    )
    margin = (max(1.9, LEAST - across * width), 1.5)
    tile, shared = (width, height), {"sharex": True, "sharey": True}
    drawing = tiles(len(shown), across, tile=tile, margin=margin, labels=labels, **shared)
    with drawing as (figure, grid):
        scale = _scale(table)
        drawn: Any = None
        for number, panel in enumerate(grid):
            cells = table.frame.filter(place == number)
            drawn = (_map if is_map else _points)(panel, table, cells, scale)
            named = zip(axes.panels, shown[number], strict=True)
            parts = [f"{field_label(f)} = {field_text(v)}" for f, v in named]
            letters = int(10 * width)
            panel.set_title(panel_title(parts, letters=letters), loc="left", fontsize=9)
        if is_map and not table.alike:  # of one value there is no scale
            bar = figure.colorbar(drawn, ax=grid, shrink=0.8, pad=0.015)
            bar.set_label(table.label)
            bar.outline.set_visible(False)
        elif axes.colour is not None:
            _legend(figure, table, axes.colour)
        hidden = len(names) - len(shown)
        more = f" {hidden} more panels are not drawn; choose by --set." if hidden else ""
        caption(figure, title, f"{_note(table, is_map=is_map)}{more}")
    return figure


def _panel_size(table: OutcomeTable, *, is_map: bool) -> tuple[float, float]:
    """Return width and height of a panel in inches."""
    axes = table.axes
    across, down = (
        table.frame[name].n_unique() if name else 1 for name in (axes.columns, axes.rows)
    )
    if not is_map:
        return min(5.2, max(3.2, 0.5 * across)), 2.9
    each = 0.72 if across <= FEW else 0.46 if across <= MANY else 0.28
    high = 0.5 if down <= MANY else 0.28
    return 0.6 + min(9.0, max(2.4, each * across)), 0.7 + min(6.5, high * down)


def _scale(table: OutcomeTable) -> Any:
    """Return the norm of the values: 0 to 1 for shares, logarithmic over several decades."""
    from matplotlib.colors import LogNorm, Normalize

    if table.is_share:
        return Normalize(0, 1)
    values = table.frame["value"].to_numpy()
    finite = values[np.isfinite(values)]
    if not len(finite):
        return Normalize(0, 1)
    low, high = float(finite.min()), float(finite.max())
    if low > 0 and high / low >= 10**DECADES:
        return LogNorm(low, high)
    room = 0.05 * (high - low) or 0.5 * abs(high) or 1.0
    return Normalize(low - room, high + room)


def _map(panel: Any, table: OutcomeTable, cells: pl.DataFrame, scale: Any) -> Any:
    """Draw one panel's settings as cells, each with its value and its interval."""
    axes = table.axes
    assert axes.rows is not None, "a map has rows"
    assert axes.columns is not None, "and columns"
    # All panels have the places of all, so that they can be compared.
    across, down = (
        [value for (value,) in ordered(table.frame, (name,), sortable)[0]]
        for name in (axes.columns, axes.rows)
    )
    if not cells.schema[axes.rows].is_numeric():
        down.reverse()  # names read from top to bottom
    values = np.full((len(down), len(across)), np.nan)
    each = (_panel_size(table, is_map=True)[0] - 0.6) / len(across)
    for cell in cells.iter_rows(named=True):
        row, column = down.index(cell[axes.rows]), across.index(cell[axes.columns])
        value = cell["value"]
        values[row, column] = value if math.isfinite(value) else np.nan
        if math.isinf(value):
            hatch(panel, column, row, fc="#E8E8E8", ec="white", hatch="///")
        if len(across) <= MANY:
            dark = math.isfinite(value) and float(scale(value)) < 0.55
            _print(panel, table, cell, (column, row), ink="white" if dark else INK, inches=each)
    image = panel.imshow(values, origin="lower", aspect="auto", cmap="cividis", norm=scale)
    labels = [_tick(value) for value in across]
    every = math.ceil(len(across) / 20)
    long = max(map(len, labels)) > 11 * each  # letters per inch
    panel.set_xticks(range(0, len(across), every), labels[::every], rotation=90 if long else 0)
    every = math.ceil(len(down) / 25)
    panel.set_yticks(range(0, len(down), every), [_tick(value) for value in down][::every])
    panel.set_xlim(-0.5, len(across) - 0.5)
    panel.set_ylim(-0.5, len(down) - 0.5)
    panel.spines[:].set_visible(False)
    panel.tick_params(length=0)
    return image


def _print(
    panel: Any,
    table: OutcomeTable,
    cell: dict[str, Any],
    place: tuple[int, int],
    *,
    ink: str,
    inches: float,
) -> None:
    """Print a setting's value into its cell, below it the interval and what else is to be said."""
    column, row = place
    value, low, high = cell["value"], cell["low"], cell["high"]
    shown = "✓" if table.is_share and value == 1 else value_text(table, value)
    lines = []
    if inches > 0.5 and low is not None and math.isfinite(low):
        ends = [value_text(table, end, digits=2) for end in (low, high)]
        lines.append(f"≥ {ends[0]}" if math.isinf(high) else "–".join(ends))
    lines += [f"{cell['diverged']} div."] if cell["diverged"] else []
    lines += [f"at {cell['chosen']}"] if cell["chosen"] is not None else []
    text = {"ha": "center", "color": ink, "zorder": 4}
    fits = 100 * inches  # points of size by letters that fill a cell
    size = min(9.0, fits / max(1, len(shown)))
    panel.text(column, row + 0.16 * bool(lines), shown, fontsize=size, va="center", **text)
    if lines:
        size = max(4.0, min(6.5 if len(lines) < 3 else 5.0, fits / max(map(len, lines))))
        small = {"fontsize": size, "linespacing": 1.05, "alpha": 0.85}
        panel.text(column, row - 0.05, "\n".join(lines), va="top", **small, **text)


def _tick(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return sample_label(value)
    text = field_text(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _points(panel: Any, table: OutcomeTable, cells: pl.DataFrame, scale: Any) -> None:
    """Draw one panel's settings as points with their intervals along the columns."""
    from matplotlib.colors import LogNorm

    axes = table.axes
    across = (
        [value for (value,) in ordered(table.frame, (axes.columns,), sortable)[0]]
        if axes.columns
        else ["all runs"]
    )
    x_of, log = _places(panel, across)
    lines: list[tuple[Any, Any, pl.DataFrame]] = [(None, BLUE, cells)]
    if axes.colour is not None:
        parts = cells.partition_by(axes.colour, as_dict=True)
        lines = [
            (value, colour, parts[(value,)])
            for value, colour in _colours(table, axes.colour).items()
            if (value,) in parts
        ]
    top, censored = _ceiling(table), False
    for number, (_, colour, part) in enumerate(lines):
        shift = number - (len(lines) - 1) / 2  # beside each other, so that bars do not overlap
        at = [across.index(v) for v in part[axes.columns]] if axes.columns else [0]
        x = np.array([x_of[place] for place in at], np.float64)
        span = max(x_of) - min(x_of) or 1.0
        x = x * (max(x_of) / min(x_of)) ** (0.008 * shift) if log else x + 0.008 * span * shift
        value, low, high = (part[name].to_numpy() for name in ("value", "low", "high"))
        finite = np.isfinite(value)
        joined = axes.columns is not None and part.schema[axes.columns].is_numeric()
        panel.plot(x[finite], value[finite], color=colour, lw=1.2 if joined else 0, zorder=2)
        ends = finite & np.isfinite(low)
        panel.vlines(
            x[ends], low[ends], np.minimum(high, top)[ends], color=colour, lw=1.4, alpha=0.55
        )
        panel.plot(x[finite], value[finite], "o", ms=5, color=colour, mec="white", mew=0.6)
        beyond = value == np.inf
        panel.plot(x[beyond], np.full(beyond.sum(), top), "^", ms=6, mfc="white", mec=colour)
        censored |= table.value == "time" and bool(beyond.any())
    if censored:
        label = f"≥ {value_text(table, top)}"
        style = {"ha": "left", "va": "bottom", "fontsize": 8, "color": GREY}
        panel.annotate(label, (0, top), xycoords=("axes fraction", "data"), **style)
    if table.is_share:
        panel.set_ylim(-0.04, 1.04)
        panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    elif isinstance(scale, LogNorm):
        panel.set_yscale("log")
    panel.grid(axis="y", color=GREY, alpha=0.2, lw=0.6)


def _ceiling(table: OutcomeTable) -> float:
    """Return where a value is drawn that is infinite: above all others, or at the budget."""
    if table.value == "time" and table.budget:
        return float(table.budget)
    ends = table.frame.select("value", "low", "high").to_numpy()
    finite = ends[np.isfinite(ends)]
    return float(1.15 * finite.max()) if len(finite) else 1.0


def _is_log(values: Sequence[Any]) -> bool:
    """Return whether values are positive numbers over more than a decade."""
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    finite = [float(v) for v in numbers if math.isfinite(v)]
    return (
        len(numbers) == len(values)
        and len(finite) > 1
        and min(finite) > 0
        and (max(finite) / min(finite) >= 10)
    )


def _places(panel: Any, values: list[Any]) -> tuple[list[float], bool]:
    """Put values along an axis: numbers where they belong, ∞ beyond the last, names in a row.

    Return their places, and whether the axis is logarithmic.
    """
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    log = _is_log(values)
    if not numeric or len(values) < 2:
        labels = [_tick(value) for value in values]
        long = max(map(len, labels)) > 6 and len(values) > 2
        panel.set_xticks(range(len(values)), labels, rotation=30 if long else 0)
        for label in panel.get_xticklabels():
            label.set_ha("right" if long else "center")
        panel.set_xlim(-0.6, len(values) - 0.4)
        return [float(place) for place in range(len(values))], False
    finite = [float(v) for v in values if math.isfinite(v)]
    step = finite[-1] / finite[-2] if log else finite[-1] - finite[-2] if len(finite) > 1 else 1.0
    beyond = finite[-1] * step if log else finite[-1] + step
    places = [float(v) if math.isfinite(v) else beyond for v in values]
    if log:
        panel.set_xscale("log")
        panel.xaxis.set_minor_formatter("")
    every = max(1, math.ceil(len(values) / 8))
    panel.set_xticks(places[::every], [_tick(v) for v in values[::every]])
    panel.set_xticks([], minor=True)
    return places, log


def _colours(table: OutcomeTable, field: str) -> dict[Any, Any]:
    """Return every value of the colours' field its colour: shades for numbers, hues for names."""
    values = [value for (value,) in ordered(table.frame, (field,), sortable)[0]]
    return colours_of(values, in_order=table.frame.schema[field].is_numeric())


def _legend(figure: Any, table: OutcomeTable, field: str) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker="o", ms=4, label=_tick(value))
        for value, colour in _colours(table, field).items()
    ]
    title = field_label(field)
    figure.legend(handles=handles, title=title, loc="outside right upper", frameon=False)


def _note(table: OutcomeTable, *, is_map: bool) -> str:
    """Return a sentence on what is drawn, and of how many runs."""
    made = table.frame["n"]
    # Of few runs a median has no interval.
    printed = table.frame["low"].is_finite().any() and (
        not is_map or table.frame[table.axes.columns or ""].n_unique() <= FEW
    )
    kind = "Wilson's" if made.n_unique() == 1 else "anytime-valid, as settings have unequal n"
    small = f"{'small' if is_map else 'bars'}: 95 % interval"
    parts = [f"{made.sum()} runs, n = {table.n_each} per setting."]
    if table.is_share:
        shown = "Percent of runs solved, ✓ all" if is_map else "Share of runs solved"
        parts.append(f"{shown}{f'; {small} ({kind})' if printed else ''}.")
    else:
        shown = f"{table.label[0].upper()}{table.label[1:]}"
        parts.append(f"{shown}{f'; {small}' if printed else ''}.")
        if table.frame["value"].is_infinite().any():
            mark = "Hatched" if is_map else "Open triangles"
            what = "were not solved within the budget" if table.value == "time" else "diverged"
            parts.append(f"{mark}: more than half of the runs {what}.")
    return " ".join([*parts, *table.remarks])
