"""Success of trials against the size of their sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from petridish.chapters.variables.trials import success_by_sample
from petridish.figures.panels import framed
from petridish.figures.style import BLUE, GREEN, GREY, INK, ORANGE, sample_label, shades
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
            found_low, found = known.found[place]
            if found_low != found:
                at = found if found_low == 0 else found_low
                panel.annotate(
                    "",
                    (length, at * (0.85 if found_low == 0 else 1.15)),
                    (length, at),
                    arrowprops={"arrowstyle": "->", "color": BLUE},
                )
                found = at
            top = high if np.isfinite(high) else found
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
        panel.set_ylim(bottom=0)
        panel.set_xticks(lengths, [f"{length:g}" for length in lengths])
        panel.xaxis.set_minor_formatter("")
        panel.legend(frameon=False, loc="lower right")
    return figure
