"""Training curves: train and test error of single runs over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.figures.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    NothingToDraw,
    caption,
    house_style,
    sample_label,
)
from petridish.rules.columns import curve_columns, reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MOST_CURVES = 10  # a panel, as in PF's Figure 1
DRAWN = curve_columns("train_error", "test_error", "train_squared_error", "test_squared_error")
NOTE = "Grey: training error; blue: test error, solved; orange: test error, not solved."


def _with_curves(table: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    if "curve.step" not in table.columns or table["curve.step"].null_count() == len(table):
        raise NothingToDraw(
            "These runs kept no curves. Run them with --set evaluation.curves=true to draw them."
        )
    return table.filter(pl.col("curve.step").is_not_null())


@reads(*DRAWN)
def training_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw up to ten runs a panel, one panel for each (initialisation, width, sample size).

    Grey is the training error, blue the test error of a run that is solved, orange of one that is
    not. Steps are on a logarithmic axis, as delays of any length matter.
    """
    kept = _with_curves(table)
    if "model.width" not in kept.columns:  # of a model of one's own: by its text
        kept = kept.with_columns(pl.col("model").alias("model.width"))
    by = ["task", "init", "model.width", "data.m"]
    panels = kept.partition_by(by, maintain_order=False, as_dict=True)
    keys = sorted(panels)
    several = kept["task"].n_unique() > 1
    across = min(4, len(keys))
    down = -(-len(keys) // across)
    with house_style() as make_figure:
        figure: Figure = make_figure(
            figsize=(0.8 + 2.7 * across, 1.2 + 2.1 * down), layout="constrained"
        )
        axes = figure.subplots(down, across, squeeze=False, sharey=True, sharex=True).ravel()
        for panel, key in zip(axes, keys, strict=False):
            task, init, width, m = key
            _curves(panel, panels[key])
            where = f"{task}, {init}" if several else init
            panel.set_title(f"{where}, r = {width}, m = {sample_label(float(m))}", loc="left")
        for panel in axes[len(keys) :]:
            panel.set_visible(False)
        for panel in axes[::across]:
            panel.set_ylabel("error")
        for panel in axes[max(0, len(keys) - across) : len(keys)]:
            panel.set_xlabel("step")
            panel.tick_params(labelbottom=True)
        caption(figure, title, f"{_made(kept)} {NOTE}")
    return figure


@reads(*DRAWN)
def frontier_and_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw success over (m, r), and beside it the curves of every cell in the same places.

    The composition of PF's Figure 1, a block for each initialisation, the dense one first.
    """
    kept = _with_curves(table)
    inits = sorted(
        set(kept.select("task", "init").iter_rows()), key=lambda key: (key[0], key[1] != "uniform")
    )
    widths = sorted(set(kept["model.width"]), reverse=True)  # the widest on top
    samples = sorted(set(kept["data.m"]))
    panels = kept.partition_by("task", "init", "model.width", "data.m", as_dict=True)
    with house_style() as make_figure:
        size = (3.6 + 2.05 * len(samples), 0.9 + len(inits) * (0.45 + 1.45 * len(widths)))
        figure: Figure = make_figure(figsize=size, layout="constrained")
        blocks = np.atleast_1d(figure.subfigures(len(inits), 1))  # type: ignore[arg-type] # one or more
        for block, init in zip(blocks, inits, strict=True):
            left, right = block.subfigures(1, 2, width_ratios=[1, 0.7 * len(samples)])
            _success(left.subplots(), panels, init, widths, samples)
            grid = right.subplots(
                len(widths), len(samples), squeeze=False, sharex=True, sharey=True
            )
            for (row, column), panel in np.ndenumerate(grid):
                runs = panels.get((*init, widths[row], samples[column]))
                if runs is not None:
                    _curves(panel, runs)
                if row == 0:
                    panel.set_title(f"m = {sample_label(samples[column])}", fontsize=9)
                if row == len(widths) - 1:
                    panel.set_xlabel("step")
                if column == 0:
                    panel.set_ylabel(f"r = {sample_label(widths[row])}\nerror")
        caption(figure, title, f"{_made(kept)}\nLeft: percent solved. {NOTE}")
    return figure


def _success(
    panel: Any,
    panels: dict[Any, pl.DataFrame],
    where: tuple[str, str],
    widths: list[int],
    samples: list[float],
) -> None:
    share = np.full((len(widths), len(samples)), np.nan)
    for (row, width), (column, m) in (
        (r, c) for r in enumerate(widths) for c in enumerate(samples)
    ):
        runs = panels.get((*where, width, m))
        if runs is not None:
            share[row, column] = (runs["outcome"] == "SOLVED").sum() / len(runs)
    panel.imshow(share, aspect="auto", cmap="cividis", vmin=0, vmax=1)
    for (row, column), value in np.ndenumerate(share):
        if not np.isnan(value):
            shown = "✓" if value == 1 else f"{100 * value:.0f}"
            ink = INK if value > 0.55 else "white"
            panel.text(column, row, shown, ha="center", va="center", color=ink)
    panel.set_xticks(range(len(samples)), [sample_label(m) for m in samples])
    panel.set_yticks(range(len(widths)), [sample_label(r) for r in widths])
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    panel.set_title(
        where[1] if len({key[0] for key in panels}) == 1 else ", ".join(where), loc="left"
    )
    panel.set_xlabel("sample size m")
    panel.set_ylabel("width r")


def _curves(panel: Any, runs: pl.DataFrame) -> None:
    """Draw the errors of the first runs of a cell."""
    for run in runs.sort("seed").head(MOST_CURVES).iter_rows(named=True):
        colour = BLUE if run["outcome"] == "SOLVED" else ORANGE
        # Real targets have squared errors; step 0 has no place on a logarithmic axis.
        kind = "error" if run.get("curve.test_error") else "squared_error"
        steps = run["curve.step"][1:]
        for sample, look in (("train", (GREY, 0.8, 0.7)), ("test", (colour, 1.1, 0.9))):
            values = run.get(f"curve.{sample}_{kind}")
            if values:
                panel.plot(steps, values[1:], color=look[0], lw=look[1], alpha=look[2])
    solved = (runs["outcome"] == "SOLVED").sum()
    panel.text(
        0.97,
        0.97,
        f"{solved} of {len(runs)} solved",
        transform=panel.transAxes,
        ha="right",
        va="top",
        fontsize=8,
    )
    panel.set_xscale("log")
    if "curve.test_error" in runs and runs["curve.test_error"].is_not_null().any():
        panel.set_ylim(-0.02, 0.68)


def _made(kept: pl.DataFrame) -> str:
    task = ", ".join(kept["task"].unique().sort().to_list()[:3])
    return f"{task}; {len(kept)} runs, at most {MOST_CURVES} drawn a panel."
