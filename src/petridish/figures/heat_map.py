"""Success over the plane of sample size and width, and what became of the runs there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.choices import name_of
from petridish.figures.panels import hatch, runs_made, span
from petridish.figures.style import INK, caption, house_style, sample_label
from petridish.models import Uniform
from petridish.training import read_cell
from petridish.values import Gone

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from petridish.rules.cells import Grid

LINE = "#D55E00"
CLASS_COLOURS = ("#0072B2", "#56B4E9", "#E69F00", "#BBBBBB")  # in the order of CLASSES


@dataclass(frozen=True)
class _Layout:
    """Where each (task, init) is drawn, as in PF's Figure 4: n down, init and k across."""

    rows: list[Any]
    columns: list[Any]
    places: dict[tuple[str, str], tuple[int, int]]


def panel_layout(table: pl.DataFrame) -> _Layout:
    """Lay out the tasks and inits of a table: the order in which maps and text list them."""
    parity = {"task.n", "task.k"} <= set(table.columns) and not table["task.k"].has_nulls()
    rows, columns = set(), set()
    keys = {}
    names = ["task", "init", *(["task.n", "task.k"] if parity else [])]
    distinct = table.unique(names, keep="first").select(*names, "cell")
    for task, init, *size, cell in distinct.iter_rows():
        row = (size[0],) if parity else (task,)
        start = read_cell(cell).init
        # The dense start first, then sparse(4) before sparse(16).
        column = (start != Uniform(), name_of(start), tuple(_numbers(start)), *size[1:])
        rows.add(row)
        columns.add(column)
        keys[task, init] = (row, column)
    ordered_rows, ordered_columns = sorted(rows), sorted(columns)
    places = {
        key: (ordered_rows.index(row), ordered_columns.index(column))
        for key, (row, column) in keys.items()
    }
    return _Layout(ordered_rows, ordered_columns, places)


def _numbers(value: Any) -> Iterator[float]:
    """Yield the numbers among a choice's arguments, and theirs."""
    if isinstance(value, Gone):
        for _, part in value.parts:
            yield from _numbers(part)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _numbers(getattr(value, field.name))
    elif isinstance(value, int | float):
        yield value


def _draw(
    table: pl.DataFrame,
    title: str,
    note: str,
    fill: Callable[[Any, int, Grid], Any],
    line: str = LINE,
) -> tuple[Figure, Any]:
    """Lay out one panel for each (task, init) and let `fill` draw its cells.

    Returns the figure and what the last call of `fill` gave.
    """
    from petridish.rules.cells import grid

    counts = grid(table, rows="model.width", columns="data.m", strata=["task", "init"])
    layout = panel_layout(table)
    n_rows, n_columns = len(counts.rows), len(counts.columns)
    down, across = len(layout.rows), len(layout.columns)
    with house_style() as make_figure:
        width = max(8.5, 1.9 + across * (0.9 + 0.46 * n_columns))
        height = 1.45 + down * (0.75 + 0.42 * n_rows)
        figure: Figure = make_figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
        drawn: Any = None
        for panel in axes.ravel():
            panel.set_visible(False)
        for stratum, (task, init) in enumerate(counts.strata):
            row, column = layout.places[task, init]
            panel = axes[row][column]
            panel.set_visible(True)
            drawn = fill(panel, stratum, counts)
            runs, solved = counts.runs[stratum], counts.solved[stratum]
            success = np.where(runs > 0, solved / np.maximum(runs, 1), np.nan)
            _frontier_line(panel, success, line)
            panel.set_title(init if len(layout.places) == across else f"{task}, {init}", loc="left")
            panel.set_xticks(range(n_columns), [sample_label(m) for m in counts.columns])
            panel.set_yticks(range(n_rows), [sample_label(r) for r in counts.rows])
            panel.set_xlim(-0.5, n_columns - 0.5)
            panel.set_ylim(-0.5, n_rows - 0.5)
            panel.spines[:].set_visible(False)
            panel.tick_params(length=0)
        for panel in axes[-1]:
            panel.set_xlabel("sample size m")
        for row_of_panels in axes:
            row_of_panels[0].set_ylabel("width r")
        caption(figure, title, f"{_made(table, counts)}\n{note}")
    return figure, (axes, drawn)


def success_heat_map(table: pl.DataFrame, title: str) -> Figure:
    """Draw the share of runs that succeed over (m, r), one panel for each task and initialisation.

    A cell prints its percentage, or a tick where all runs succeed, and below it its 95 % interval;
    it is hatched where the interval holds ½: undecided. The line is the frontier, the smallest m at
    which half of the runs succeed.
    """
    from petridish.statistics.intervals import anytime_interval, wilson_interval

    runs_made = table.group_by("task", "init", "model.width", "data.m").len()["len"]
    adaptive = runs_made.n_unique() > 1
    interval = anytime_interval if adaptive else wilson_interval

    def fill(panel: Any, stratum: int, counts: Grid) -> Any:
        solved, runs = counts.solved[stratum], counts.runs[stratum]
        success = np.where(runs > 0, solved / np.maximum(runs, 1), np.nan)
        image = panel.imshow(success, origin="lower", aspect="auto", cmap="cividis", vmin=0, vmax=1)
        low, high = interval(solved, runs)
        for row, column in np.argwhere(runs > 0):
            share = success[row, column]
            ends = (low[row, column], high[row, column])
            ink = INK if share > 0.55 else "white"
            text = {"ha": "center", "va": "center", "color": ink}
            shown = "✓" if share == 1 else f"{100 * share:.0f}"
            panel.text(column, row + 0.14, shown, fontsize=9, **text)
            between = f"{100 * ends[0]:.0f}–{100 * ends[1]:.0f}"
            panel.text(column, row - 0.27, between, fontsize=5.4, alpha=0.85, **text)
            if ends[0] < 0.5 < ends[1]:
                hatch(panel, column, row, fill=False, ec=ink, hatch="////", alpha=0.35)
        return image

    kind = "anytime-valid, as cells have unequal n" if adaptive else "Wilson's"
    note = (
        f"Percent solved, ✓ all; small: 95 % interval ({kind}); hatched: it holds ½. "
        "Orange: the frontier, the smallest m at which half of the runs succeed, "
        "where a row crosses it."
    )
    solved = table["outcome"] == "SOLVED"
    if solved.all() or not solved.any():
        note += f" All cells are alike: {100 if solved.all() else 0} % solved."
    figure, (axes, image) = _draw(table, title, note, fill)
    with house_style():
        bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.015)
        bar.set_label("share of runs that succeed")
        bar.outline.set_visible(False)
    return figure


def class_map(table: pl.DataFrame, title: str) -> Figure:
    """Draw what became of the runs of each cell: four classes, as shares of the cell's width."""
    from petridish.rules.outcome_classes import CLASSES, DELAY, with_classes

    sorted_runs = with_classes(table)
    names = ["task", "init", "model.width", "data.m", "class"]
    numbers = {tuple(key): n for *key, n in sorted_runs.group_by(names).len().iter_rows()}

    def fill(panel: Any, stratum: int, counts: Grid) -> Any:
        from matplotlib.patches import Rectangle

        for row, width in enumerate(counts.rows):
            for column, m in enumerate(counts.columns):
                made = counts.runs[stratum, row, column]
                left = column - 0.46
                for name, colour in zip(CLASSES, CLASS_COLOURS, strict=True):
                    n = numbers.get((*counts.strata[stratum], width, m, name), 0)
                    if n:
                        size = 0.92 * n / made
                        panel.add_patch(Rectangle((left, row - 0.42), size, 0.84, fc=colour, lw=0))
                        left += size
        return None

    fitted = " / ".join(f"{e:.0%}" for e in sorted(set(table["evaluation.fitted_error"])) if e)
    solved = " / ".join(f"{e:.0%}" for e in sorted(set(table["training.target_error"])) if e)
    note = (
        f"Fitted: training error ≤ {fitted}; solved: test error ≤ {solved}; grokked: solved at "
        f"least {DELAY:g} times later than fitted. Online (∞) there is no sample to fit. Black: "
        "the frontier, the smallest m at which half of the runs succeed, where a row crosses it."
    )
    figure, _ = _draw(table, title, note, fill, INK)
    with house_style():
        from matplotlib.patches import Patch

        handles = [
            Patch(fc=colour, label=name)
            for name, colour in zip(CLASSES, CLASS_COLOURS, strict=True)
        ]
        figure.legend(handles=handles, loc="outside right center", frameon=False)
    return figure


def _frontier_line(panel: Any, success: np.ndarray[Any, Any], colour: str) -> None:
    """Draw the frontier as a staircase on the left edge of the first cell that reaches ½.

    A row that does not cross ½ has none: its frontier is not on this grid.
    """
    from petridish.rules.frontier import frontier_index

    index = frontier_index(success)
    crosses = [
        first < success.shape[-1] and bool((success[row, :first] < 0.5).any())
        for row, first in enumerate(index)
    ]
    for row, first in enumerate(index):
        if not crosses[row]:
            continue
        lines = [([first - 0.5] * 2, [row - 0.5, row + 0.5])]
        if row and crosses[row - 1]:
            lines.append(([index[row - 1] - 0.5, first - 0.5], [row - 0.5] * 2))
        for x, y in lines:
            # At the edge of the grid half of a clipped line would be cut off.
            panel.plot(x, y, color="white", lw=3.6, zorder=3, clip_on=False)
            panel.plot(x, y, color=colour, lw=2.0, zorder=4, clip_on=False)


def _made(table: pl.DataFrame, counts: Grid) -> str:
    made = counts.runs[counts.runs > 0]
    steps = "/".join(f"{step:,}" for step in table["training.steps"].unique().sort())
    return f"{runs_made(table)}, n = {span(made)} per cell; at most {steps} steps."
