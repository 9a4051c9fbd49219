"""Luck: when runs succeed, and how much of it their initialisation decides [HP Fig. 5.2]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.figures.panels import corner, outer_legend, panels, span
from petridish.figures.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    NothingToDraw,
    caption,
    sample_label,
    shades,
)
from petridish.rules.columns import curve_columns, reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from petridish.chapters.hidden.rules.luck import Arrivals

Whole = NDArray[np.int64]
BINS = 60  # of a histogram up to four medians
LOG_BINS = 40  # of one on a logarithmic axis
SHOWN = 5  # initialisations whose curves are drawn
POINTS = 150  # per curve: means over neighbouring evaluations, as single ones are noisy


def time_histograms(table: pl.DataFrame, title: str) -> Figure:
    """Draw when runs succeed, one column per width, against two laws of search by guessing.

    Above on linear axes, for the start; below on logarithmic ones, for both tails, as
    frequencies for each step. Dashed is one guess per step, Geom(1 / C(n, k)); solid orange the law
    without memory that has the median of the runs.
    """
    from petridish.chapters.hidden.rules.luck import arrivals

    cells = {key: cell for key, cell in arrivals(table).items() if len(cell.times)}
    if not cells:
        raise NothingToDraw("No run was solved. Give runs more steps by --set training.steps=.")
    limits = _limits(list(cells.values()))
    several = len({task for task, _ in cells}) > 1
    with panels(2, len(cells), (2.7 + 3.4 * len(cells), 6.2)) as (figure, axes):
        for (near, tails), ((task, width), cell) in zip(axes.T, cells.items(), strict=True):
            _linear(near, cell)
            _logarithmic(tails, cell, limits)
            where = f"{task}, r = {width}" if several else f"r = {width}"
            near.set_title(where, loc="left")
            tails.set_xlabel("steps to success $t_c$")
        axes[0, 0].set_ylabel("share of runs per step, × 10⁻³")
        axes[1, 0].set_ylabel("share of runs per step")
        outer_legend(figure, axes[1, 0])
        every = " and ".join(map(str, sorted({cell.every for cell in cells.values()})))
        tasks = ", ".join(sorted({task for task, _ in cells}))
        caption(
            figure,
            title,
            f"{tasks}; {len(table):,} runs, evaluated every {every} steps; a time is the first "
            "evaluation that found a run solved. Above: up to four medians; the mark is the first "
            "run solved. Below: all runs solved, both axes logarithmic; dotted: a bin with a "
            "single run.",
        )
    return figure


def _laws(panel: Any, cell: Arrivals, steps: Any, scale: float = 1.0) -> None:
    guess = f"one guess per step:\nGeom(1 / C({cell.n}, {cell.k}))"
    laws = [(guess, 1 / math.comb(cell.n, cell.k), "--", INK)]
    if math.isfinite(cell.median):
        laws.append(("memoryless, with\nthe runs' median", math.log(2) / cell.median, "-", ORANGE))
    for label, rate, style, colour in laws:
        density = scale * rate * np.exp(-rate * steps)
        panel.plot(steps, density, style, color=colour, lw=1.4, label=label)


def _counts(cell: Arrivals, edges: Whole) -> Whole:
    """Count the runs first seen solved after one edge and up to the next."""
    upto = np.concatenate([[0], np.cumsum(cell.counts)])
    counted: Whole = np.diff(upto[np.searchsorted(cell.times, edges, side="right")])
    return counted


def _linear(panel: Any, cell: Arrivals) -> None:
    typical = cell.median if math.isfinite(cell.median) else float(cell.times[-1])
    end = min(4 * typical, max(float(cell.times[-1]), typical))
    step = cell.every * max(1, round(end / BINS / cell.every))
    edges = np.arange(0, end + step, step).astype(np.int64)
    density = 1e3 * _counts(cell, edges) / cell.runs / step
    panel.stairs(density, edges, fill=True, color=BLUE, alpha=0.45, lw=0)
    panel.stairs(density, edges, color=BLUE, lw=0.9)
    _laws(panel, cell, np.linspace(0, edges[-1], 200), 1e3)
    panel.plot(cell.ranked(1), 0, marker=6, ms=7, color=INK, clip_on=False, zorder=5)
    median = f"median {cell.median:,.0f}" if math.isfinite(cell.median) else "median unknown"
    text = f"n = {cell.runs:,}\nfirst {cell.ranked(1):,.0f}\n{median}\n{cell.unsolved:,} not solved"
    corner(panel, text, linespacing=1.35)
    panel.set_xlim(0, edges[-1])
    panel.set_ylim(bottom=0)


def _logarithmic(panel: Any, cell: Arrivals, limits: tuple[float, float, float, float]) -> None:
    left, right, bottom, top = limits
    edges, density = _log_bins(cell)
    drawn = np.maximum(edges, left)  # zero has no place on a logarithmic axis
    panel.stairs(density, drawn, baseline=bottom, fill=True, color=BLUE, alpha=0.45)
    panel.stairs(np.maximum(density, bottom), drawn, baseline=bottom, color=BLUE, label="runs")
    steps = np.geomspace(left, right, 400)
    _laws(panel, cell, steps)
    ratio = (edges[-1] / cell.every) ** (1 / (LOG_BINS - 1))
    width = np.maximum(cell.every, steps * (ratio - 1))
    panel.plot(steps, 1 / cell.runs / width, ":", color=GREY, lw=1.2, label="a single run")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(left, right)
    panel.set_ylim(bottom, top)


def _log_bins(cell: Arrivals) -> tuple[Whole, NDArray[np.float64]]:
    """Return bins of whole evaluations that grow with time, and the share of runs per step."""
    last = max(2, -(-int(cell.times[-1]) // cell.every))
    places = np.ceil(np.geomspace(1, last, LOG_BINS) - 1e-9)
    edges = cell.every * np.unique([0, *places]).astype(np.int64)
    return edges, _counts(cell, edges) / cell.runs / np.diff(edges)


def _limits(cells: Sequence[Arrivals]) -> tuple[float, float, float, float]:
    """Return common limits of the logarithmic panels: all bins, and the laws where none are."""
    bins = [_log_bins(cell) for cell in cells]
    right = float(max(edges[-1] for edges, _ in bins))
    guess = max(1 / math.comb(cell.n, cell.k) for cell in cells)
    least = min(float(density[density > 0].min()) for _, density in bins)
    most = max(float(density.max()) for _, density in bins)
    return min(cell.every for cell in cells) / 2, right, least / 3, 2 * max(most, guess)


@reads(*curve_columns("train_loss"))
def variance_curves(table: pl.DataFrame, title: str, *, width: int | None = None) -> Figure:
    """Draw the loss of a few initialisations, one colour each, and the times of all.

    Left, as far as curves were kept, up to five initialisations, from the quickest to the slowest,
    with all their seeds of SGD. Right, one column per initialisation, sorted by its median time,
    with the share of the variance of log t_c that lies between initialisations.
    """
    from petridish.statistics.intervals import censored_median

    if width is not None and len(chosen := table.filter(table["model.width"] == width)):
        table, title = chosen, f"{title}; r = {width}"
    groups = {str(key[0]): runs for key, runs in table.partition_by("init", as_dict=True).items()}
    if table["solved_at"].is_null().all():
        raise NothingToDraw("No run was solved. Give runs more steps by --set training.steps=.")
    middles = {key: censored_median(runs["solved_at"].to_list()) for key, runs in groups.items()}
    order = sorted(groups, key=lambda key: (middles[key], key))
    curves = "curve.train_loss" in table.columns and not table["curve.train_loss"].is_null().all()
    colours = {}
    if curves:
        places = np.linspace(0, len(order) - 1, min(SHOWN, len(order))).round()
        colours = {order[int(place)]: colour for place, colour in shades(places.tolist()).items()}
    size, ratios = ((10.8, 4.3), [1, 1.15]) if curves else ((6.4, 4.3), [1])
    with panels(1, len(ratios), size, width_ratios=ratios) as (figure, axes):
        if curves:
            _losses(axes[0, 0], groups, colours)
        _strip(axes[0, -1], groups, order, colours, middles)
        axes[0, -1].set_title(_explained(table), loc="left")
        each = span(map(len, groups.values()))
        note = (
            f"{', '.join(sorted(set(table['task'])))}; {len(order)} initialisations with {each} "
            "seeds of SGD each. Lines: medians; triangles: not solved within the budget."
        )
        if curves:
            note += (
                f" Left: {len(colours)} initialisations, evenly spaced by rank of their median, "
                "in their colours on the right."
            )
        caption(figure, title, note)
    return figure


def _explained(table: pl.DataFrame) -> str:
    from petridish.chapters.hidden.rules.variance import InitialisationExplains

    found = InitialisationExplains().judge(table, 0.05)
    if math.isnan(found.estimate):
        return "\n".join(wrap(found.remark, 60))
    estimate, low, high = (f"{100 * part:.0f}" for part in (found.estimate, found.low, found.high))
    return f"initialisation explains {estimate} % [{low}, {high}] of var(log $t_c$)"


def _losses(panel: Any, groups: dict[str, pl.DataFrame], colours: dict[str, Any]) -> None:
    longest = 0.0
    for key, colour in colours.items():
        for run in groups[key].sort("seed").iter_rows(named=True):
            if not run["curve.step"]:
                continue
            step = np.array(run["curve.step"][1:], np.float64)  # no loss before the first step
            loss = np.array(run["curve.train_loss"][1:], np.float64)
            chunk = max(1, -(-len(step) // POINTS))
            kept = len(step) // chunk * chunk
            mean = loss[:kept].reshape(-1, chunk).mean(axis=1)
            panel.plot(step[:kept].reshape(-1, chunk)[:, -1], mean, color=colour, lw=0.8, alpha=0.7)
            longest = max(longest, float(step[-1]))
    panel.set_xlim(0, longest)
    panel.set_ylim(bottom=0)
    panel.set_xlabel("step")
    panel.set_ylabel("training loss")
    panel.set_title("training loss, one colour per initialisation", loc="left")


def _strip(
    panel: Any,
    groups: dict[str, pl.DataFrame],
    order: list[str],
    colours: dict[str, Any],
    middles: dict[str, float],
) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    latest = 0.0
    for place, key in enumerate(order):
        colour = colours.get(key, GREY if colours else BLUE)
        runs = groups[key].sort("seed")
        solved = runs["solved_at"].drop_nulls().to_numpy()
        late = runs.filter(runs["solved_at"].is_null())["training.steps"].to_numpy()
        # Spread by rank of the seed: the same table gives the same picture.
        across = place + 0.5 * (np.arange(len(runs)) / max(1, len(runs) - 1) - 0.5)
        style = {"color": colour, "ls": "", "ms": 3.2, "alpha": 0.75, "mew": 0}
        panel.plot(across[: len(solved)], np.maximum(solved, 1), marker="o", **style)
        panel.plot(across[len(solved) :], late, marker="^", **style)
        latest = max([latest, *solved.tolist(), *late.tolist()])
        if math.isfinite(middles[key]):
            panel.plot([place - 0.4, place + 0.4], [max(middles[key], 1)] * 2, color=INK, lw=1.1)
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    panel.yaxis.set_major_formatter(lambda step, _: sample_label(step))
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.set_ylim(top=1.25 * latest)
    panel.set_xlim(-0.8, len(order) - 0.2)
    panel.set_xticks([])
    panel.set_xlabel("initialisations, by median")
    panel.set_ylabel("steps to success $t_c$")
