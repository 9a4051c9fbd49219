"""Success of trials against the size of their sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from petridish.chapters.variables.trials import success_by_sample
from petridish.figures.panels import framed
from petridish.figures.style import GREY, sample_label, shades
from petridish.rules.columns import reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


@reads()
def success_of_trials(table: pl.DataFrame, title: str) -> Figure:
    """Draw the share of trials that succeed against m, one line for each T.

    Bars are 95 % intervals (Wilson's). A search does not try every size; the number of
    trials at each size is written beside its mark.
    """
    from petridish.statistics.intervals import wilson_interval

    cells = success_by_sample(table)
    lengths = sorted(set(cells["task.n"]))
    colours = shades(lengths)
    note = (
        f"{cells['trials'].sum()} trials, {len(table)} runs. A trial succeeds if one of its "
        "restarts does. Bars: 95 % intervals; small numbers: trials. Dotted: 80 %."
    )
    with framed(title, note, (7, 4.4)) as (figure, ((panel,),)):
        for place, length in enumerate(lengths):
            own = cells.filter(cells["task.n"] == length)
            m, n, solved = (own[name].to_numpy() for name in ("data.m", "trials", "solved"))
            m = m * 1.012**place  # beside each other, so that no bar hides another
            low, high = wilson_interval(solved, n)
            share = solved / n
            bars = [(share - low).clip(0), (high - share).clip(0)]
            look = {"color": colours[length], "marker": "o", "ms": 4, "lw": 1.3, "capsize": 2}
            panel.errorbar(m, share, bars, label=f"T = {length}", **look)
            for x, y, number in zip(m, share, n, strict=True):
                panel.annotate(
                    str(number), (x, y), (4, 4), textcoords="offset points", fontsize=7, color=GREY
                )
        panel.axhline(0.8, color=GREY, lw=0.7, ls=":")
        panel.set(ylim=(-0.03, 1.06), ylabel="share of trials that succeed")
        panel.set(xscale="log", xlabel="sample size m")
        sizes = sorted(set(cells["data.m"]))
        panel.set_xticks(sizes, [sample_label(m) for m in sizes])
        panel.xaxis.set_minor_formatter("")
        panel.legend(frameon=False)
    return figure
