"""Data against compute: what one can be traded for the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from petridish.figures.style import GREY, INK, caption, house_style, sample_label, shades

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from petridish.rules.mixtures import Mixture

NEAR = 1e3  # compute over the bound, up to which the bound is drawn
MARKS = {"uniform": "o", "sparse(2)": "D"}


def mixture_front(options: Sequence[Mixture], title: str, *, target: float) -> Figure:
    """Draw compute against data, one panel per task: colour is width, the number restarts.

    The line joins the mixtures on the front; bars are the intervals of their compute. Proposition 3
    leaves no room below the grey line; where that lies far below all points, words say how far.
    """
    tasks = list(dict.fromkeys(option.task for option in options))
    widths = sorted({option.width for option in options})
    with house_style() as make_figure:
        across = min(3, len(tasks))
        down = math.ceil(len(tasks) / across)
        figure: Figure = make_figure(
            figsize=(2.2 + 5.2 * across, 1.0 + 3.9 * down), layout="constrained"
        )
        panels = figure.subplots(down, across, squeeze=False).ravel()
        colours = shades(widths)
        for panel, task in zip(panels, tasks, strict=False):
            _panel(panel, [o for o in options if o.task == task], colours)
            panel.set_title(task, loc="left")
        for panel in panels[len(tasks) :]:
            panel.set_visible(False)
        marks = [("o", "uniform"), ("D", "sparse(2)"), ("s", "another initialisation")]
        used = {MARKS.get(option.init, "s") for option in options}
        handles = [_key(colours[width], "o", f"r = {sample_label(width)}") for width in widths]
        handles += [_key(GREY, mark, name) for mark, name in marks if mark in used]
        figure.legend(handles=handles, loc="outside right center", frameon=False)
        caption(
            figure,
            title,
            f"Each point reaches success {target:g}; numbers beside it: restarts, if more than 1. "
            "Filled and joined: no other takes\nless data and no more compute; pale: best of its "
            "m, r, T and restarts otherwise. Bars: 95 % intervals of compute.\n"
            "Grey: Proposition 3, which leaves no room below its bound (τ² = 1/m, no logarithms).",
        )
    return figure


def _key(colour: Any, mark: str, label: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, marker=mark, ls="", label=label)


def _panel(panel: Any, options: Sequence[Mixture], colours: dict[float, Any]) -> None:
    finite = [option.m for option in options if math.isfinite(option.m)]
    last = 3 * max(finite, default=1.0)  # where ∞ is drawn

    def place(m: float) -> float:
        return m if math.isfinite(m) else last

    for option in options:
        look = {"color": colours[option.width], "marker": MARKS.get(option.init, "s"), "ls": ""}
        if not option.best:
            panel.plot(place(option.m), option.compute, ms=3.5, alpha=0.55, mew=0, zorder=2, **look)
            continue
        low, high = option.compute_interval
        panel.plot(place(option.m), option.compute, ms=7, mec=INK, mew=0.6, zorder=4, **look)
        if math.isfinite(high):
            panel.plot([place(option.m)] * 2, [low, high], color=INK, lw=0.9, zorder=3)
        if option.restarts > 1:
            panel.annotate(
                f"{option.restarts:.0f}",
                (place(option.m), option.compute),
                textcoords="offset points",
                xytext=(6, 4),
                fontsize=8,
            )
    front = [option for option in options if option.best]
    panel.plot([place(o.m) for o in front], [o.compute for o in front], color=INK, lw=0.8, zorder=1)
    bound = [(o.m, o.bound) for o in options if math.isfinite(o.bound) and math.isfinite(o.m)]
    panel.set_xscale("log")
    panel.set_yscale("log")
    if bound:
        m, least = zip(*sorted(set(bound)), strict=True)
        gap = min(option.compute / option.bound for option in options if option.bound > 0)
        if gap < NEAR:
            panel.plot(m, least, color=GREY, lw=1.2)
            panel.fill_between(m, least, min(least) / 3, color=GREY, alpha=0.18, lw=0)
            panel.set_ylim(bottom=min(least) / 3)
        else:  # decades of nothing would leave no room for the points
            panel.text(
                0.02,
                0.02,
                f"Proposition 3's bound: {math.floor(math.log10(gap))} decades below or more",
                transform=panel.transAxes,
                color=GREY,
                fontsize=8,
            )
    sizes = sorted({place(option.m) for option in options})
    panel.set_xticks(sizes, [sample_label(m if m != last else math.inf) for m in sizes])
    panel.set_xticks([], minor=True)
    panel.tick_params(axis="x", rotation=90 if len(sizes) > 9 else 0)
    panel.set_xlabel("sample size m")
    panel.set_ylabel("compute: width × steps × restarts")
