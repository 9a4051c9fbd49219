"""Lottery tickets: the parents, their tickets, and random neurons, panel by panel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from petridish.figures.style import BLUE, GREY, ORANGE, caption, house_style, sample_label
from petridish.rules.columns import curve_columns, reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MOST = 40  # curves a panel


@reads(*curve_columns("test_error"))
def ticket_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw test error over steps: wide networks, their tickets rewound, random neurons."""
    import polars as pl
    from matplotlib.ticker import MaxNLocator

    wide = pl.col("model.width") == pl.col("model.width").max()
    kinds = [
        ("wide networks", pl.col("init.chosen").is_null() & wide),
        ("their largest neurons, rewound", pl.col("init.chosen") == "largest"),
        ("random neurons", pl.col("init.chosen") == "random"),
        ("fresh narrow networks", pl.col("init.chosen").is_null() & ~wide),
    ]
    panels = [(name, table.filter(choice)) for name, choice in kinds]
    panels = [(name, runs) for name, runs in panels if len(runs)]
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(1.0 + 3.4 * len(panels), 4.0), layout="constrained")
        axes = figure.subplots(1, len(panels), squeeze=False, sharey=True, sharex=True)[0]
        for panel, (name, runs) in zip(axes, panels, strict=True):
            # A few of every parent, so that no ticket hides the others.
            drawn = (
                runs.with_columns(turn=pl.int_range(pl.len()).over("init.seed"))
                .sort("turn", "init.seed")
                .head(MOST)
            )
            for run in drawn.iter_rows(named=True):
                solved = run["outcome"] == "SOLVED"
                panel.plot(
                    run["curve.step"],
                    run["curve.test_error"],
                    color=BLUE if solved else ORANGE,
                    lw=0.9,
                    alpha=0.75 if solved else 0.45,
                )
            solved = int((runs["outcome"] == "SOLVED").sum())
            neurons = runs["model.width"][0]
            panel.set_title(f"{name} (r = {neurons})", loc="left", fontsize=9.5)
            panel.text(
                0.97,
                0.97,
                f"{solved} of {len(runs)} solved",
                transform=panel.transAxes,
                ha="right",
                va="top",
            )
            panel.set_ylim(0, 0.6)
            panel.set_xlabel("step")
            panel.axhline(0.1, color=GREY, lw=0.6, ls=":")
            panel.xaxis.set_major_locator(MaxNLocator(5))
            panel.xaxis.set_major_formatter(lambda step, _: sample_label(step))
        axes[0].set_ylabel("test error")
        caption(
            figure,
            title,
            f"{', '.join(sorted(set(table['task'])))}, online; {len(table)} runs, at most {MOST} "
            "drawn a panel. Blue: solved (test error ≤ 10 %); orange: not.",
        )
    return figure
