"""Training curves: train and test error of single runs over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from petridish.figures.style import BLUE, GREY, ORANGE, caption, house_style, sample_label
from petridish.naming import UserError

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MOST_CURVES = 10  # a panel, as in PF's Figure 1


def training_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw up to ten runs a panel, one panel for each (initialisation, width, sample size).

    Grey is the training error, blue the test error of a run that is solved, orange of one that is
    not. Steps are on a logarithmic axis, as delays of any length matter.
    """
    import polars as pl

    if "curve.step" not in table.columns or table["curve.step"].null_count() == len(table):
        raise UserError(
            "These runs kept no curves. Run them with --set evaluation.curves=true to draw them."
        )
    kept = table.filter(pl.col("curve.step").is_not_null())
    by = ["init", "model.width", "data.m"]
    panels = kept.partition_by(by, maintain_order=False, as_dict=True)
    keys = sorted(panels, key=lambda key: (str(key[0]), key[1], key[2]))
    across = min(4, len(keys))
    down = -(-len(keys) // across)
    with house_style() as make_figure:
        figure: Figure = make_figure(
            figsize=(0.8 + 2.7 * across, 1.2 + 2.1 * down), layout="constrained"
        )
        axes = figure.subplots(down, across, squeeze=False, sharey=True, sharex=True).ravel()
        for panel, key in zip(axes, keys, strict=False):
            runs = panels[key].sort("seed")
            for run in runs.head(MOST_CURVES).iter_rows(named=True):
                colour = BLUE if run["outcome"] == "SOLVED" else ORANGE
                steps, train, test = (  # step 0 has no place on a logarithmic axis
                    run[f"curve.{name}"][1:] for name in ("step", "train_error", "test_error")
                )
                panel.plot(steps, train, color=GREY, lw=0.8, alpha=0.7)
                panel.plot(steps, test, color=colour, lw=1.1, alpha=0.9)
            solved = (runs["outcome"] == "SOLVED").sum()
            init, width, m = key
            panel.set_title(f"{init}, r = {width}, m = {sample_label(float(m))}", loc="left")
            panel.text(0.03, 0.05, f"{solved} of {len(runs)} solved", transform=panel.transAxes)
            panel.set_xscale("log")
            panel.set_ylim(-0.02, 0.6)
        for panel in axes[len(keys) :]:
            panel.set_visible(False)
        for panel in axes[::across]:
            panel.set_ylabel("error")
        for panel in axes[max(0, len(keys) - across) : len(keys)]:
            panel.set_xlabel("step")
            panel.tick_params(labelbottom=True)
        task = ", ".join(kept["task"].unique().sort().to_list()[:3])
        caption(
            figure,
            title,
            f"{task}; {len(kept)} runs, at most {MOST_CURVES} drawn a panel. "
            "Grey: training error; blue: test error, solved; orange: test error, not solved.",
        )
    return figure
