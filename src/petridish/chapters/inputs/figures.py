"""Errors and features of several methods over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from petridish.figures.style import NothingToDraw, caption, house_style
from petridish.rules.columns import curve_columns, reads
from petridish.sweeps.arms import arm, arm_names

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

PANELS = {"test_error": "test error", "direction_cosine": "largest cosine with Σ M"}

SAFE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
"""Colours that the colour-blind can tell apart [Okabe & Ito 2008]."""


@reads(*curve_columns(*PANELS))
def arms_over_time(table: pl.DataFrame, title: str) -> Figure:
    """Draw each method's test error, and how near a neuron is to the sum of relevant patterns.

    Thin lines are seeds, thick ones their medians. Step 0 is after the first steps that a method
    has taken on the whole sample, if it takes any.
    """
    names = sorted(arm_names(table))
    if not names or "curve.direction_cosine" not in table.columns:
        raise NothingToDraw("These runs have no arms, or kept no cosines.")
    colours = dict(zip(names, SAFE, strict=False))
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(9.5, 4.2), layout="constrained")
        panels = figure.subplots(1, len(PANELS))
        for panel, (curve, label) in zip(panels, PANELS.items(), strict=True):
            for name in names:
                runs = arm(table, name)
                steps = runs["curve.step"][0].to_list()
                values = np.array(runs[f"curve.{curve}"].to_list(), np.float64)  # (seed, step)
                panel.plot(steps, values.T, color=colours[name], lw=0.5, alpha=0.35)
                middle = np.median(values, axis=0)
                panel.plot(steps, middle, color=colours[name], lw=1.6, label=name)
            panel.set_xlabel("step")
            panel.set_ylabel(label)
            panel.set_ylim(-0.03, 1.03)
        panels[0].legend(frameon=False)
        tasks, seeds = ", ".join(sorted(set(table["task"]))), table["seed"].n_unique()
        note = f"{tasks}; {len(table)} runs, {seeds} seeds per method."
        caption(figure, title, f"{note} Thin: seeds; thick: medians.")
    return figure
