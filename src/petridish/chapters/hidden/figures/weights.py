"""The path of every single weight of a first layer [HP Figs 5.3 left and centre, B.9]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.figures.panels import panels, with_curves
from petridish.figures.style import GREEN, GREY, INK, ORANGE, NothingToDraw, caption, shades
from petridish.rules.columns import curve_columns, reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

WEIGHTS = "array.first_layer_weights"


@reads(*curve_columns("train_loss", "test_error", "first_layer_movement"), WEIGHTS)
def weight_trajectories(table: pl.DataFrame, title: str) -> Figure:
    """Draw loss and error, every weight, and ρ over the steps of one run of each configuration.

    Of each configuration the run with the median time to success. Weights of relevant inputs have
    the colour of their neuron, the others are grey.
    """
    from petridish.chapters.hidden.figures.hidden_progress import steps_axis
    from petridish.chapters.hidden.rules.plateaus import configurations, full_name

    kept = with_curves(table)
    if WEIGHTS not in kept.columns or kept[WEIGHTS].is_null().all():
        raise NothingToDraw("No run kept its weights. Add the instrument first_layer_weights.")
    parts = configurations(kept.filter(kept[WEIGHTS].is_not_null()))
    with panels(3, len(parts), (1.3 + 3.1 * len(parts), 6.6)) as (figure, axes):
        for column, (key, runs) in zip(axes.T, parts.items(), strict=True):
            _, architecture, batch, rate = key
            column[0].set_title(
                f"{full_name(architecture)}\nB = {batch}, η = {rate:g}", loc="left", fontsize=9
            )
            _one(column, _median_run(runs))
            for panel in column:
                steps_axis(panel)
            column[-1].set_xlabel("step")
        axes[0, 0].legend(loc="lower left", frameon=False, fontsize=8, handlelength=1.2)
        for panel, label in zip(axes[:, 0], ("loss, error", "weights", "ρ"), strict=True):
            panel.set_ylabel(label)
        caption(
            figure,
            title,
            f"{', '.join(sorted(set(kept['task'])))}; {len(kept)} runs, 1 drawn per column, the "
            "one with the median time to success. Weights of relevant inputs in the colour of "
            "their neuron, of irrelevant ones grey. ρ = ‖w_t − w_0‖_∞ of the first layer.",
        )
    return figure


def _median_run(runs: pl.DataFrame) -> dict[str, Any]:
    solved = runs.filter(runs["solved_at"].is_not_null()).sort("solved_at", "seed")
    chosen = solved if len(solved) else runs
    found: dict[str, Any] = chosen.row((len(chosen) - 1) // 2, named=True)
    return found


def _one(column: Any, run: dict[str, Any]) -> None:
    above, middle, below = column
    steps = run["curve.step"]
    above.plot(steps, run["curve.train_loss"], color=INK, lw=0.8, alpha=0.8, label="loss")
    above.plot(steps, run["curve.test_error"], color=ORANGE, lw=1.6, label="test error")
    above.set_ylim(bottom=-0.03)
    paths = np.reshape(run[WEIGHTS]["values"], run[WEIGHTS]["shape"])  # (reading, neuron, input)
    k = run["task.k"]
    middle.plot(steps, paths[:, :, k:].reshape(len(paths), -1), color=GREY, lw=0.4, alpha=0.5)
    for neuron, colour in enumerate(shades(range(paths.shape[1])).values()):
        middle.plot(steps, paths[:, neuron, :k], color=colour, lw=1.2)
    below.plot(steps, run["curve.first_layer_movement"], color=GREEN, lw=1.4)
    below.set_ylim(bottom=0)
    for panel in column:
        panel.set_xlim(0, steps[-1])
