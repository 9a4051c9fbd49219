"""Success over the plane of sample size and width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.figures.style import INK, caption, house_style, sample_label

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


def success_heat_map(table: pl.DataFrame, title: str) -> Figure:
    """Draw the share of runs that succeed over (m, r), initialisations side by side.

    A cell prints its percentage, small where its 95 % interval holds ½ (undecided), and a tick
    where all runs succeed. The line is the frontier: the smallest m at which half of them do.
    """
    from petridish.analysis.cells import grid
    from petridish.analysis.estimate import wilson_interval
    from petridish.analysis.frontier import frontier_index

    counts = grid(table, rows="model.width", columns="data.m", strata=["task", "init"])
    tasks = list(dict.fromkeys(task for task, _ in counts.strata))
    inits = sorted({init for _, init in counts.strata}, key=lambda init: (init != "uniform", init))
    n_rows, n_columns = len(counts.rows), len(counts.columns)
    with house_style() as make_figure:
        width = 1.9 + len(inits) * (0.9 + 0.46 * n_columns)
        height = 1.35 + len(tasks) * (0.75 + 0.42 * n_rows)
        figure: Figure = make_figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(len(tasks), len(inits), squeeze=False, sharex=True, sharey=True)
        image: Any = None
        for (task, init), solved, runs in zip(
            counts.strata, counts.solved, counts.runs, strict=True
        ):
            panel = axes[tasks.index(task)][inits.index(init)]
            success = np.where(runs > 0, solved / np.maximum(runs, 1), np.nan)
            image = panel.imshow(
                success, origin="lower", aspect="auto", cmap="cividis", vmin=0, vmax=1
            )
            low, high = wilson_interval(solved, runs)
            for row, column in np.argwhere(runs > 0):
                share = success[row, column]
                unsure = low[row, column] < 0.5 < high[row, column]
                panel.text(
                    column,
                    row,
                    "✓" if share == 1 else f"{100 * share:.0f}",
                    ha="center",
                    va="center",
                    fontsize=7 if unsure else 9,
                    fontstyle="italic" if unsure else "normal",
                    color=INK if share > 0.55 else "white",
                )
            _frontier_line(panel, frontier_index(np.nan_to_num(success)), n_columns)
            panel.set_title(init if len(tasks) == 1 else f"{task}, {init}", loc="left")
            panel.set_xticks(range(n_columns), [sample_label(m) for m in counts.columns])
            panel.set_yticks(range(n_rows), [sample_label(r) for r in counts.rows])
            panel.spines[:].set_visible(False)
            panel.tick_params(length=0)
        for panel in axes[-1]:
            panel.set_xlabel("sample size m")
        for row_of_panels in axes:
            row_of_panels[0].set_ylabel("width r")
        bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.015)
        bar.set_label("share of runs that succeed")
        bar.outline.set_visible(False)
        caption(figure, title, _note(table, counts.runs))
    return figure


def _frontier_line(panel: Any, index: np.ndarray[Any, Any], n_columns: int) -> None:
    """Draw the frontier as a staircase on the left edge of the first cell that reaches ½."""
    for row, first in enumerate(index):
        panel.plot([first - 0.5] * 2, [row - 0.5, row + 0.5], color="white", lw=3.2, zorder=3)
        panel.plot([first - 0.5] * 2, [row - 0.5, row + 0.5], color="#D55E00", lw=1.8, zorder=4)
        if row:
            ends = [index[row - 1] - 0.5, first - 0.5]
            panel.plot(ends, [row - 0.5] * 2, color="white", lw=3.2, zorder=3)
            panel.plot(ends, [row - 0.5] * 2, color="#D55E00", lw=1.8, zorder=4)
    panel.set_xlim(-0.5, n_columns - 0.5)


def _note(table: pl.DataFrame, runs: np.ndarray[Any, Any]) -> str:
    made = runs[runs > 0]
    each = f"{made.min()}" if made.min() == made.max() else f"{made.min()} to {made.max()}"
    steps = "/".join(str(step) for step in table["training.steps"].unique().sort())
    task = ", ".join(table["task"].unique().sort().to_list()[:3])
    return (
        f"{task}; {len(table)} runs, n = {each} a cell; at most {steps} steps. "
        "Percent solved, ✓ all; small italics: the 95 % interval holds ½.\n"
        "Orange: the frontier, the smallest m at which half of the runs succeed."
    )
