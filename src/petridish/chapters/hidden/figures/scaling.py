"""How the time to success scales: with the task's size n, and with the width r."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.chapters.hidden.rules.architectures import NAMES
from petridish.chapters.hidden.rules.scaling import CURVES, TASKS, cells_of
from petridish.errors import UserError
from petridish.figures.panels import span, tiles
from petridish.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    NothingToDraw,
    caption,
    sample_label,
    shades,
)
from petridish.statistics.power_laws import Cell, fit_power_law

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


def scaling_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw the median time to success over n, one panel per architecture, one colour per k.

    The composition of HP's Figures 5.1 (right) and B.6. Bands are 95 % bootstrap intervals. A curve
    halts where more than half of the runs were not solved within the budget, at an open mark. The
    legend gives the exponent of the power law fitted to the medians that are known, a dotted line.
    """
    strata = _strata(table, "task.n", CURVES)
    names = list(dict.fromkeys(name for name, _ in strata))
    colours = shades(sorted({k for _, k in strata}))
    sizes = sorted({cell.at for cells in strata.values() for cell in cells})
    grid: Any = {"tile": (3.5, 3.0), "margin": (0.7, 1.2), "sharex": True, "sharey": True}
    labels = "input size n", "median steps to success"
    with tiles(len(names), 3, labels=labels, **grid) as (figure, axes):
        for panel, name in zip(axes, names, strict=True):
            for (other, k), cells in strata.items():
                if other == name:
                    _curve(panel, cells, colours[k], k, height=list(colours).index(k))
            readable = f": {NAMES[name]}" if name in NAMES else ""
            panel.set_title(f"{name}{readable}", loc="left")
            panel.legend(
                frameon=False, fontsize=8, handlelength=1.2, loc="lower right", ncols=2, borderpad=0
            )
            panel.set_xscale("log")
            panel.set_yscale("log")
            _few_ticks(panel.xaxis, sizes)
            panel.grid(visible=True, color=GREY, lw=0.4, alpha=0.3)
        low, high = axes[0].get_ylim()
        axes[0].set_ylim(low / (high / low) ** 0.2, high)  # room for legends below the curves
        cells = [cell for group in strata.values() for cell in group]
        caption(
            figure,
            title,
            f"{_made(table, cells)} Bands: 95 % bootstrap intervals. Dotted: fitted power laws, "
            "their exponents in the legends. Open marks: more than half of the runs were not "
            "solved within the budget.",
        )
    return figure


def _curve(panel: Any, cells: Sequence[Cell], colour: Any, k: int, *, height: int) -> None:
    """Draw one curve; open marks of different `height` do not hide each other."""
    known = [cell for cell in cells if math.isfinite(cell.quantile())]
    law = fit_power_law(cells)
    label = f"k = {k}: $n^{{{law.exponent:.1f}}}$" if law else f"k = {k}: –"
    n = [cell.at for cell in known]
    medians = [cell.quantile() for cell in known]
    panel.plot(n, medians, color=colour, marker="o", ms=2.5, lw=1.2, label=label)
    ends = np.array([cell.interval() for cell in known]).reshape(-1, 2)
    budgets = np.array([cell.budget for cell in known])
    top = np.minimum(ends[:, 1], budgets)
    panel.fill_between(n, ends[:, 0], top, color=colour, alpha=0.2, lw=0)
    if law and len(n) > 1:
        reach = np.geomspace(n[0], n[-1], 2)
        panel.plot(reach, [law(size) for size in reach], color=colour, lw=0.9, ls=":")
    beyond = [cell for cell in cells if not math.isfinite(cell.quantile())]
    later = [cell for cell in beyond if not n or cell.at > n[0]][:1] or beyond[:1]
    for cell in later:
        above = cell.budget * 1.25**height
        panel.plot(cell.at, above, marker="^", ms=5, mfc="white", mec=colour, ls="")


def width_boxes(table: pl.DataFrame, title: str) -> Figure:
    """Draw the times to success over the width r, one box per cell and one panel per task.

    The composition of HP's Figure B.10. Boxes are quartiles, whiskers reach to the last run within
    1.5 times the box's height, crosses are the soonest and the latest run. A run that was not
    solved counts as later than all others; their number stands above the box. Networks too narrow
    for the parity (r < k) are orange. Green is the expected time of r independent copies of random
    search, 1 / (1 − (1 − 1 / C(n, k))^r) draws, which is C(n, k) / r until it comes near 1.
    """
    strata = _strata(table, "model.width", TASKS)
    latest = max(cell.budget for cells in strata.values() for cell in cells)
    # One below the other: narrow widths, 1, 2, 3 … 10, need the whole length of the axis.
    grid: Any = {"tile": (9.5, 2.5), "margin": (0.0, 1.1), "sharex": True, "sharey": True}
    labels = "width r", "steps to success"
    with tiles(len(strata), 1, labels=labels, **grid) as (figure, axes):
        soonest = math.inf
        for panel, ((n, k), cells) in zip(axes, strata.items(), strict=True):
            for cell in cells:
                _box(panel, cell, ORANGE if cell.at < k else BLUE)
                soonest = min(soonest, float(cell.times[0]))
            widths = np.geomspace(cells[0].at, cells[-1].at, 200)
            panel.plot(np.log10(widths), random_search(n, k, widths), color=GREEN, ls="--", lw=1.2)
            panel.set_title(f"n = {n}, k = {k}", loc="left")
            panel.set_yscale("log")
            top = math.log10(cells[-1].at)
            ticks = range(math.floor(top) + 1)
            panel.set_xticks(ticks, [sample_label(10**tick) for tick in ticks])
            panel.grid(visible=True, axis="y", color=GREY, lw=0.4, alpha=0.3)
        bottom = max(1.0, soonest if math.isfinite(soonest) else 1.0) / 3
        axes[0].set_ylim(bottom, latest * 2)
        cells = [cell for group in strata.values() for cell in group]
        caption(
            figure,
            title,
            f"{_made(table, cells)} Boxes: quartiles; whiskers: 1.5 times their height; ×: soonest "
            "and latest run. Numbers above: runs not solved. Orange: r < k, with another "
            "aim. Green: expected time of r copies of random search.",
        )
    return figure


def random_search(n: int, k: int, widths: Any) -> Any:
    """Return the expected number of draws until one of r searchers names the support."""
    missed = np.log1p(-1 / math.comb(n, k)) if math.comb(n, k) > 1 else -math.inf
    return -1 / np.expm1(widths * missed)


def _box(panel: Any, cell: Cell, colour: str) -> None:
    place, half, times = math.log10(cell.at), 0.02, cell.times
    quartiles = [float(times[math.ceil(share * len(times)) - 1]) for share in (0.25, 0.5, 0.75)]
    known = times[: cell.solved]
    if cell.solved < len(times):
        style: Any = {"ha": "center", "va": "bottom", "fontsize": 6, "rotation": 90}
        unsolved = str(len(times) - cell.solved)
        panel.text(place, cell.budget * 1.15, unsolved, color=colour, **style)
    if not len(known):
        return
    low, _, high = (min(value, cell.budget) for value in quartiles)
    panel.fill_between(
        [place - half, place + half], low, high, facecolor=colour, alpha=0.25, edgecolor=colour
    )
    if math.isfinite(quartiles[1]):
        panel.hlines(quartiles[1], place - half, place + half, color=colour, lw=1.6)
    reach = 1.5 * (quartiles[2] - quartiles[0])
    if math.isfinite(reach):
        panel.vlines(place, known[known >= low - reach][0], low, color=colour, lw=0.9)
        panel.vlines(place, high, known[known <= high + reach][-1], color=colour, lw=0.9)
    panel.plot([place] * 2, known[[0, -1]], ls="", marker="x", ms=3, mew=0.7, color=colour)


def _strata(table: pl.DataFrame, along: str, within: Sequence[str]) -> dict[Any, list[Cell]]:
    """Gather the runs into cells, or say that there are none."""
    table = table.filter(table[along].is_not_null())
    if not len(table):
        raise NothingToDraw(f"No run has a value of {along}. Run the sweep first.")
    try:
        return cells_of(table, along=along, within=within)
    except UserError as clash:
        raise UserError(f"{str(clash)[0].upper()}{str(clash)[1:]}.") from clash


def _few_ticks(axis: Any, values: Sequence[float]) -> None:
    """Label a logarithmic axis that spans less than two decades by round values."""
    from matplotlib.ticker import NullLocator

    low, high = values[0], values[-1]
    step = 10 if high <= 60 else 20 if high <= 120 else 50
    ticks = [low, *(tick for tick in range(step, int(high) + 1, step) if tick > 1.15 * low)]
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_minor_locator(NullLocator())


def _made(table: pl.DataFrame, cells: Sequence[Cell]) -> str:
    """Return how much was run, as text."""
    each, upto = span(len(cell.times) for cell in cells), span(cell.budget for cell in cells)
    return f"{len(table):,} runs, {each} per cell; at most {upto} steps."
