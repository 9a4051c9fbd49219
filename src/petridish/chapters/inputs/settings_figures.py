"""Errors of several methods over time, under several settings side by side [FL Figs. 9, 11, 13]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.chapters.inputs.figures import ERROR, WITHOUT
from petridish.figures.panels import framed, with_curves
from petridish.figures.style import INK, NothingToDraw, colours_of
from petridish.rules.columns import curve_columns, reads
from petridish.sweeps.arms import arm, arm_names
from petridish.tasks import Dictionary
from petridish.training import read_cell

if TYPE_CHECKING:
    import polars as pl

METHODS = ("network", "random features", "tangent kernel")


@reads(*curve_columns(ERROR))
def settings_over_time(table: pl.DataFrame, title: str, *, settings: tuple[str, ...]) -> Any:
    """Draw the test error of network, kernel and random features, one panel per setting.

    Thin lines are seeds, thick ones medians; dashed, without structure; dotted, the error of a
    constant answer.
    """
    table = with_curves(table, ERROR)
    names = arm_names(table)
    shown = [name for name in settings if any(each.startswith(f"{name}: ") for each in names)]
    if not shown:
        raise NothingToDraw("No run of these settings kept its curves. Run it as declared.")
    colours = colours_of(list(METHODS), in_order=False)
    note = (
        f"{table['seed'].n_unique()} seeds per method. Thin: seeds; thick: medians; dashed: "
        "without structure; dotted: a constant answer. Step 0 of the network is after both steps."
    )
    with framed(title, note, (1.2 + 4.2 * len(shown), 4.4), 1, len(shown), sharey=True) as (
        figure,
        axes,
    ):
        for panel, setting in zip(axes[0], shown, strict=True):
            for method in (*METHODS, *WITHOUT):
                name = f"{setting}: {method}"
                if name not in names:
                    continue
                runs = arm(table, name)
                steps = runs["curve.step"][0].to_list()
                values = np.array(runs[f"curve.{ERROR}"].to_list(), np.float64)  # (seed, step)
                style = "--" if method in WITHOUT else "-"
                colour = colours[WITHOUT.get(method, method)]
                panel.plot(steps, values.T, style, color=colour, lw=0.4, alpha=0.3)
                panel.plot(
                    steps, np.median(values, axis=0), style, color=colour, lw=1.6, label=method
                )
            task = read_cell(arm(table, f"{setting}: network")["cell"][0]).task
            assert isinstance(task, Dictionary), "of this chapter"
            panel.axhline((1 - abs(task.mean_label)) / 2, color=INK, lw=0.9, ls=":")
            panel.set(xlabel="step", ylim=(-0.02, 0.8))
            panel.set_title(setting, loc="left", fontsize=9)
        axes[0, 0].set_ylabel("test error")
        axes[0, -1].legend(frameon=False, fontsize="x-small", loc="upper right")
    return figure
