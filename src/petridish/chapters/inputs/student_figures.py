"""Students over time by parts of their mixture, and losses against width [FL Figs. 22 to 26]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.chapters.inputs.student_rules import INJECTED, LOSS, ORIGINAL
from petridish.figures.panels import framed
from petridish.figures.style import BLUE, GREY, INK, ORANGE, NothingToDraw
from petridish.rules.columns import curve_columns, reads
from petridish.sweeps.arms import arm, arm_names

if TYPE_CHECKING:
    import polars as pl

PARTS = {
    ORIGINAL: ("original part", BLUE),
    INJECTED: ("injected part", ORANGE),
    "test_error": ("whole", GREY),
}


@reads(*curve_columns(*PARTS, "largest_class_injected"))
def errors_by_part(table: pl.DataFrame, title: str) -> Any:
    """Draw the errors of each arm's students on the parts of their mixture, over steps.

    Thin lines are seeds, thick ones medians. Dotted: the error of a constant on the injected part.
    """
    column = f"curve.{ORIGINAL}"
    kept = table.filter(table["curve.step"].is_not_null()) if column in table.columns else table[:0]
    names = arm_names(kept)
    if not names:
        raise NothingToDraw("No student kept its curves. Run the experiment as declared.")
    across = min(3, len(names))
    down = -(-len(names) // across)
    note = (
        f"{len(kept)} runs, {kept['seed'].n_unique()} seeds. Labels are the teacher's. Thin: "
        "seeds; thick: medians; dotted: what a constant answer errs on the injected part."
    )
    size = (1.0 + 2.9 * across, 1.3 + 2.5 * down)
    with framed(title, note, size, down, across, sharey=True) as (figure, axes):
        for panel, name in zip(axes.ravel(), names, strict=False):
            runs = arm(kept, name)
            steps = runs["curve.step"][0].to_list()
            for curve, (label, colour) in PARTS.items():
                there = runs.filter(runs[f"curve.{curve}"].list.len() == len(steps))
                if there.is_empty():
                    continue
                values = np.array(there[f"curve.{curve}"].to_list(), np.float64)
                panel.plot(steps, values.T, color=colour, lw=0.4, alpha=0.3)
                panel.plot(steps, np.median(values, axis=0), color=colour, lw=1.6, label=label)
            shares = runs["curve.largest_class_injected"].list.last().drop_nulls().drop_nans()
            if len(shares):
                panel.axhline(1 - float(shares.median()), color=INK, lw=0.9, ls=":")  # type: ignore[arg-type]
            panel.set_title(name, loc="left", fontsize=9)
            panel.set(xlabel="step", ylim=(-0.02, 1.0))
        for panel in axes.ravel()[len(names) :]:
            panel.set_visible(False)
        for panel in axes[:, 0]:
            panel.set_ylabel("test error")
        axes[0, 0].legend(frameon=False, fontsize="x-small", loc="upper right")
    return figure


@reads()
def loss_by_width(table: pl.DataFrame, title: str, *, arms: tuple[str, ...]) -> Any:
    """Draw the held-out loss against the width: U-curves, and their second descent."""
    names = [name for name in arms if name in arm_names(table)]
    if not names or f"final.{LOSS}" not in table.columns:
        raise NothingToDraw("No run measured its loss. Run the experiment as declared.")
    note = (
        f"{table['seed'].n_unique()} seeds. Grey: seeds; blue: medians. Students of the right "
        "panels have learned normal inputs, 98 % of their sample."
    )
    size = (1.0 + 2.9 * len(names), 4.0)
    with framed(title, note, size, 1, len(names)) as (figure, axes):
        for panel, name in zip(axes[0], names, strict=True):
            runs = arm(table, name).sort("seed", "model.width")
            widths = sorted(set(runs["model.width"]))
            for _, of_seed in runs.group_by("seed"):
                own = of_seed.sort("model.width")
                panel.plot(own["model.width"], own[f"final.{LOSS}"], color=GREY, lw=0.5, alpha=0.5)
            middle = [
                float(
                    np.nanmedian(runs.filter(runs["model.width"] == w)[f"final.{LOSS}"].to_numpy())
                )
                for w in widths
            ]
            panel.plot(widths, middle, "o-", color=BLUE, lw=1.6, ms=4)
            panel.set(xscale="log", ylim=(0, None), xlabel="width of the network")
            shown = widths[:: -(-len(widths) // 6)]
            panel.set_xticks(shown, [f"{width}" for width in shown])
            panel.minorticks_off()
            panel.set_title(name, loc="left", fontsize=9)
        axes[0, 0].set_ylabel("held-out cross-entropy")
    return figure
