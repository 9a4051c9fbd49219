"""Errors and features of several methods over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from petridish.figures.panels import framed, with_curves
from petridish.figures.style import NothingToDraw, colours_of
from petridish.rules.columns import curve_columns, reads
from petridish.sweeps.arms import arm, arm_names

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ERROR, COSINE, COVERED = "test_error", "direction_cosine", "centre_cosine"
LABELS = {
    ERROR: "test error",
    COSINE: "largest cosine with Σ M",
    COVERED: "cosine of the worst-covered centre",
}
WITHOUT = {
    "no structure": "network",
    "kernel without structure": "tangent kernel",
    "random features without structure": "random features",
}
"""Arms that differ from another in structure alone have its colour, dashed."""
CONTROLS = ("one step, ", "one step from", "literal")


@reads(*curve_columns(ERROR, COSINE))
def arms_over_time(table: pl.DataFrame, title: str, *, only: tuple[str, ...] = ()) -> Figure:
    """Draw each method's test error, and how near a neuron is to the sum of relevant patterns.

    Thin lines are seeds, thick ones their medians; dashed, without structure in the inputs. Step 0
    is after the first steps that a method has taken on the whole sample, if it takes any. Of
    several rates the one with the lowest median error at the end is drawn. `only` names the arms,
    if not all are meant.
    """
    return _over_time(table, title, (ERROR, COSINE), only)


@reads(*curve_columns(ERROR, COVERED))
def coverage_over_time(table: pl.DataFrame, title: str) -> Figure:
    """Draw the test error, and the cosine of the worst-covered centre with its nearest neuron."""
    return _over_time(table, title, (ERROR, COVERED))


def _over_time(
    table: pl.DataFrame, title: str, curves: tuple[str, ...], only: tuple[str, ...] = ()
) -> Figure:
    table = with_curves(table, *curves)
    names = sorted(name for name in arm_names(table) if not only or name in only)
    if not names:
        raise NothingToDraw("These runs have no arms. Declare the sweep as Arms({name: Sweep(…)}).")
    controls = [name for name in names if name.startswith(CONTROLS)]
    shown = [name for name in names if name not in controls]
    rows = [shown, [*controls, *(n for n in ("one step", "two step") if n in names)]]
    rows = rows if controls and shown else [names]
    runs = [arm(table, name) for name in names]
    drawn, seeds = sum(map(len, runs)), table["seed"].n_unique()
    tasks = sorted({task for each in runs for task in each["task"].unique()})
    note = f"{'; '.join(tasks[:2])}{' …' if len(tasks) > 2 else ''}\n{drawn} runs, {seeds} "
    note += "seeds per method. Thin: seeds; thick: medians; dashed: without structure."
    size = (9.5, 1.0 + 3.3 * len(rows))
    with framed(title, note, size, len(rows), len(curves)) as (figure, axes):
        for row, arms in zip(axes, rows, strict=True):
            own = sorted({WITHOUT.get(name, name) for name in arms})
            colours = colours_of(own, in_order=False)
            for panel, curve in zip(row, curves, strict=True):
                for name in arms:
                    colour = colours[WITHOUT.get(name, name)]
                    _draw(panel, arm(table, name), curve, name, colour)
                panel.set(xlabel="step", ylabel=LABELS[curve], ylim=(-0.03, 1.03))
            row[0].legend(frameon=False, fontsize="x-small", loc="upper right")
    return figure


def _draw(panel: Axes, runs: pl.DataFrame, curve: str, name: str, colour: str) -> None:
    """Draw the seeds of one method at its best rate, and their median."""
    runs = _best_rate(runs)
    steps = runs["curve.step"][0].to_list()
    values = np.array(runs[f"curve.{curve}"].to_list(), np.float64)  # (seed, step)
    style = "--" if name in WITHOUT else "-"
    panel.plot(steps, values.T, style, color=colour, lw=0.5, alpha=0.3)
    panel.plot(steps, np.median(values, axis=0), style, color=colour, lw=1.6, label=name)


def _best_rate(runs: pl.DataFrame) -> pl.DataFrame:
    """Keep the runs of the learning rate with the lowest median error at the end."""
    import polars as pl

    rate = "training.learning_rate"
    middle = runs.group_by(rate).agg(pl.col("test_error").median()).sort("test_error", rate)
    return runs.filter(pl.col(rate) == middle[rate][0])
