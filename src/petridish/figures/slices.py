"""Slices through the plane of sample size and width: success, and time to success."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.figures.style import INK, caption, house_style, log_ticks, sample_label, shades

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


def success_slices(table: pl.DataFrame, title: str) -> Figure:
    """Draw where the runs lie, their success and their time against m; dense above sparse.

    Bands are 95 % intervals: Wilson's for success, bootstrap for the median time. A median beyond
    the budget, where more than half of the runs were not solved, is an open mark at the top.
    """
    rows = sorted(
        set(table.select("task", "init").iter_rows()), key=lambda key: (key[0], key[1] != "uniform")
    )
    several = table["task"].n_unique() > 1
    widths = sorted(set(table["model.width"]))
    colours = shades(widths)
    budget = int(table["training.steps"].max())  # type: ignore[arg-type] # a whole column
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(12.5, 1.3 + 3.0 * len(rows)), layout="constrained")
        axes = figure.subplots(len(rows), 3, squeeze=False, sharex="col")
        for row, (task, init) in zip(axes, rows, strict=True):
            runs = table.filter((table["task"] == task) & (table["init"] == init))
            _places(row[0], runs, colours)
            row[0].set_title(f"{task}, {init}" if several else init, loc="left")
            for width in widths:
                cells = _cells(runs.filter(runs["model.width"] == width))
                _success(row[1], cells, colours[width])
                _times(row[2], cells, colours[width], budget)
            row[1].set_ylim(-0.03, 1.03)
            row[2].set_yscale("log")
            row[2].set_ylim(top=budget * 2.2)
            for panel, label in zip(
                row,
                ("width r", "share of runs that succeed", "median steps to success"),
                strict=True,
            ):
                panel.set_ylabel(label)
        for panel in axes[-1]:
            panel.set_xlabel("sample size m")
        handles = [
            axes[0][1].plot(
                [], [], color=colours[width], marker="o", ms=4, label=f"r = {sample_label(width)}"
            )[0]
            for width in widths
        ]
        figure.legend(handles=handles, loc="outside right center", frameon=False)
        seeds = sorted(set(table.group_by("task", "init", "model.width", "data.m").len()["len"]))
        each = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
        caption(
            figure,
            title,
            f"{', '.join(sorted(set(table['task'])))}; {len(table)} runs, n = {each} per cell; "
            f"at most {budget:,} steps. Bands: 95 % intervals. Left: the cells, filled by their "
            "success.\n"
            "Open marks at the top: more than half of the runs were not solved.",
        )
    return figure


def _cells(runs: pl.DataFrame) -> list[tuple[float, list[float | None]]]:
    """Return each sample size with its runs' times to success."""
    parts = runs.partition_by("data.m", as_dict=True)
    return [(float(key[0]), parts[key]["solved_at"].to_list()) for key in sorted(parts)]


def place(m: float, sizes: list[float]) -> float:
    """Return the place of a sample size on a logarithmic axis; ∞ stands beyond the last."""
    return (
        m if math.isfinite(m) else 3 * max([size for size in sizes if math.isfinite(size)] or [1])
    )


def size_axis(panel: Any, sizes: list[float]) -> None:
    """Label a logarithmic axis of sample sizes by a few round ones, and ∞."""
    panel.set_xscale("log")
    finite = [size for size in sizes if math.isfinite(size)]
    ticks, labels = log_ticks(min(finite), max(finite))
    if len(finite) < len(sizes):
        ticks, labels = [*ticks, place(math.inf, sizes)], [*labels, "∞"]
    panel.set_xticks(ticks, labels)
    panel.xaxis.set_minor_formatter("")  # over less than a decade Matplotlib would label these too


def _places(panel: Any, runs: pl.DataFrame, colours: dict[float, Any]) -> None:
    sizes = sorted(set(runs["data.m"]))
    for cell in runs.partition_by("model.width", "data.m"):
        width, m = cell["model.width"][0], cell["data.m"][0]
        share = (cell["outcome"] == "SOLVED").sum() / len(cell)
        for size, strength in ((46, 0.15), (46 * share, 1.0)):
            x = place(m, sizes)
            panel.scatter(x, width, s=size, color=colours[width], alpha=strength, lw=0)
    panel.set_yscale("log")
    panel.margins(y=0.15)
    size_axis(panel, sizes)


def _success(panel: Any, cells: list[tuple[float, list[float | None]]], colour: Any) -> None:
    from petridish.statistics.intervals import wilson_interval

    sizes = [m for m, _ in cells]
    x = [place(m, sizes) for m in sizes]
    runs = np.array([len(times) for _, times in cells])
    solved = np.array([sum(time is not None for time in times) for _, times in cells])
    low, high = wilson_interval(solved, runs)
    panel.plot(x, solved / runs, color=colour, marker="o", ms=3.5, lw=1.3)
    panel.fill_between(x, low, high, color=colour, alpha=0.13, lw=0)
    size_axis(panel, sizes)


def _times(
    panel: Any, cells: list[tuple[float, list[float | None]]], colour: Any, budget: int
) -> None:
    from petridish.statistics.intervals import bootstrap_median, censored_median

    sizes = [m for m, _ in cells]
    rng = np.random.default_rng(0)
    rows = []
    for m, times in cells:
        middle = censored_median(times)
        if not math.isfinite(middle):
            panel.plot(place(m, sizes), budget * 1.6, "o", ms=4, mfc="white", mec=colour)
            continue
        low, high = bootstrap_median(times, rng=rng)
        rows.append((place(m, sizes), middle, low, min(high, budget)))
    if rows:
        x, middle_line, low_line, high_line = zip(*rows, strict=True)
        panel.plot(x, middle_line, color=colour, marker="o", ms=3.5, lw=1.3)
        panel.fill_between(x, low_line, high_line, color=colour, alpha=0.13, lw=0)
    panel.axhline(budget, color=INK, lw=0.6, ls=":")
    size_axis(panel, sizes)
