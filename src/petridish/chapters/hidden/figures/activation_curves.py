"""HP's activations as curves [HP Fig. B.14], and how often the networks of HP-14 succeed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from petridish.figures.panels import panels
from petridish.figures.style import BLUE, GREY, INK, NothingToDraw, caption, shades
from petridish.rules.columns import reads

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl
    from matplotlib.figure import Figure

    from petridish.models.activations import Activation

DEGREES = (2, 3, 4)


@reads()
def activation_shapes(table: pl.DataFrame, title: str) -> Figure:
    """Draw every activation over z, one curve per k, with the points that make it a parity.

    The composition of HP's Figure B.14; no run takes part.
    """
    import torch

    from petridish.models.activations import (
        InfiniteZigzag,
        Oscillating,
        Power,
        ReLU,
        Sine,
        Zigzag,
    )

    kinds: dict[str, Callable[[int], Activation]] = {
        "ReLU": lambda k: ReLU(),
        "z^k": Power,
        "k-zigzag": Zigzag,
        "oscillating polynomial": Oscillating,
        "∞-zigzag": InfiniteZigzag,
        "sinusoid": Sine,
    }
    z = torch.linspace(-6, 6, 601, dtype=torch.float64)
    colours = shades(DEGREES)
    with panels(2, 3, (10.5, 5.4), sharex=True) as (figure, axes):
        for panel, (name, make) in zip(axes.ravel(), kinds.items(), strict=True):
            for k in DEGREES[:1] if name == "ReLU" else DEGREES:
                colour = INK if name == "ReLU" else colours[k]
                panel.plot(z, make(k)(z), color=colour, lw=1.4)
                if name not in ("ReLU", "z^k"):
                    points = torch.arange(-k, k + 1, 2, dtype=torch.float64)
                    panel.plot(points, make(k)(points), "o", ms=3.5, color=colour)
            panel.set_title(name, loc="left")
            panel.set_ylim((-0.3, 3.0) if name == "ReLU" else (-3.0, 3.0))
            panel.axhline(0, color=GREY, lw=0.5)
        for panel in axes[-1]:
            panel.set_xlabel("z")
        handles = [axes[0][1].plot([], [], color=colours[k], label=f"k = {k}")[0] for k in DEGREES]
        figure.legend(handles=handles, loc="outside right center", frameon=False)
        caption(
            figure,
            title,
            "Dots: the sums of k signs, at which an activation is their product. Drawn from the "
            "models; no run takes part.",
        )
    return figure


@reads()
def finding_rows(table: pl.DataFrame, title: str) -> Figure:
    """Draw the share of runs solved in every cell, arm by arm, with 95 % intervals."""
    import numpy as np
    import polars as pl

    from petridish.statistics.intervals import wilson_interval
    from petridish.sweeps import by_arm

    if table.is_empty():
        raise NothingToDraw("There are no runs to draw. Run the sweep first.")
    by = ["arm", "task", "model", "training.loss", "training.batch_size", "training.learning_rate"]
    cells = (
        by_arm(table)
        .group_by(by)
        .agg(runs=pl.len(), solved=(pl.col("outcome") == "SOLVED").sum())
        .sort(by)
    )
    solved, runs = cells["solved"].to_numpy(), cells["runs"].to_numpy()
    low, high = wilson_interval(solved, runs)
    share = solved / runs
    with panels(1, 1, (9.5, 1.6 + 0.17 * len(cells))) as (figure, axes):
        panel, rows = axes[0, 0], np.arange(len(cells))
        bars = [np.maximum(share - low, 0), np.maximum(high - share, 0)]
        panel.errorbar(share, rows, xerr=bars, fmt="o", ms=3, lw=0.8, color=BLUE)
        names = [
            f"{arm}: {task}, {model}, {loss}, B = {batch}, η = {rate:g}"
            for arm, task, model, loss, batch, rate in cells.select(by).iter_rows()
        ]
        panel.set_yticks(rows, names, fontsize=5.5)
        panel.set_ylim(len(cells) - 0.5, -0.5)
        panel.set_xlim(-0.03, 1.03)
        panel.set_xlabel("share of runs solved")
        caption(
            figure, title, f"{len(table):,} runs; bars: 95 % intervals (Wilson's), of each cell."
        )
    return figure
