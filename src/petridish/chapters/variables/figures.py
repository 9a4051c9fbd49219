"""Success of trials against the size of their sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from petridish.chapters.variables.trials import success_by_sample
from petridish.figures.panels import framed, tiles
from petridish.figures.style import BLUE, GREEN, GREY, INK, ORANGE, caption, sample_label
from petridish.rules.columns import reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


@reads()
def success_of_trials(table: pl.DataFrame, title: str) -> Figure:
    """Draw the share of trials that succeed against m, one panel for each T.

    Bars are 95 % intervals (Wilson's). A search does not try every size; the number of
    trials at each size is written beside its mark.
    """
    from petridish.statistics.intervals import wilson_interval

    cells = success_by_sample(table)
    lengths = sorted(set(cells["task.n"]))
    note = (
        f"{cells['trials'].sum()} trials, {len(table)} runs. A trial succeeds if one of its "
        "restarts does. Bars: 95 % intervals; small numbers: trials. Dotted: 80 %."
    )
    labels = ("sample size m", "share that succeeds")
    with tiles(
        len(lengths), 4, tile=(2.2, 1.7), margin=(0.3, 0.9), labels=labels, sharex=True, sharey=True
    ) as (figure, every):
        for length, panel in zip(lengths, every, strict=True):
            own = cells.filter(cells["task.n"] == length)
            m, n, solved = (own[name].to_numpy() for name in ("data.m", "trials", "solved"))
            low, high = wilson_interval(solved, n)
            share = solved / n
            bars = [(share - low).clip(0), (high - share).clip(0)]
            panel.errorbar(m, share, bars, color=BLUE, marker="o", ms=4, lw=1.1, capsize=2)
            for x, y, number in zip(m, share, n, strict=True):
                panel.annotate(
                    str(number), (x, y), (4, -9), textcoords="offset points", fontsize=7, color=GREY
                )
            panel.axhline(0.8, color=GREY, lw=0.7, ls=":")
            panel.set(ylim=(-0.15, 1.08), xscale="log")
            panel.margins(x=0.08)
            panel.set_title(f"T = {length}", fontsize=9)
        sizes = cells["data.m"].to_numpy()
        ticks = [m for m in (10, 20, 30, 50, 70, 100, 200) if sizes.min() <= m <= sizes.max()]
        every[0].set_xticks(ticks, [sample_label(m) for m in ticks])
        every[0].xaxis.set_minor_formatter("")
        caption(figure, title, note)
    return figure


@reads()
def growth(table: pl.DataFrame, title: str) -> Figure:
    """Draw the least sample that suffices against T, beside what classical learners need."""
    import numpy as np

    from petridish.chapters.variables.classical import sizes_beside
    from petridish.chapters.variables.sample_thresholds import thresholds_of

    known = thresholds_of(table)
    lengths = known.lengths
    note = (
        f"{known.trials} trials, {len(table)} runs. Bars: 95 % intervals of the sample with which "
        "80 % of trials succeed; an arrow: outside of what was tried. Samples that several ANDs "
        "explain are drawn anew: what that asks for is the line of exhaustive search. Classical "
        "learners: 60 samples for each size."
    )
    with framed(title, note, (7, 4.6)) as (figure, ((panel,),)):
        for place, length in enumerate(lengths):
            low, high = known.interval(place, 0.05)
            tried = table.filter(table["task.n"] == length)["data.m"].to_numpy()
            first, last = float(tried.min()), float(tried.max())
            found = float(np.clip(known.found[place, 1], first, last))
            for end, edge, beyond in ((low, first, 0.85), (high, last, 1.15)):
                if end == 0 or not np.isfinite(end):
                    panel.annotate(
                        "",
                        (length, edge * beyond),
                        (length, edge),
                        arrowprops={"arrowstyle": "->", "color": BLUE},
                    )
            low = low or first
            top = high if np.isfinite(high) else last
            panel.errorbar(
                length,
                found,
                [[found - low], [max(top - found, 0)]],
                color=BLUE,
                marker="o",
                ms=5,
                capsize=3,
                label="transformer, best of the starts" if place == 0 else None,
            )
        beside = sizes_beside(tuple(int(length) for length in lengths))
        for (name, sizes), (colour, style) in zip(
            beside.items(), ((GREY, ":"), (GREEN, "-"), (ORANGE, "--")), strict=True
        ):
            panel.plot(lengths, sizes, color=colour, ls=style, marker=".", label=name)
        if lengths.max() >= 300 >= lengths.min():
            panel.plot(300, 70, "x", color=INK, ms=8, label="about 70 at T = 300 [TH §4.6]")
        panel.set(xscale="log", xlabel="bits T", ylabel="sample size m")
        panel.set_ylim(0, 1.3 * panel.get_ylim()[1])  # room for the legend
        panel.set_xticks(lengths, [f"{length:g}" for length in lengths])
        panel.xaxis.set_minor_formatter("")
        panel.legend(frameon=False, loc="upper left", ncols=2, fontsize=8)
    return figure
