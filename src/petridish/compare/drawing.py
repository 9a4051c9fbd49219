"""Learning curves, times and importances of one table, in the house style."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.compare.methods import FOREST, GUESS, MLP, SHUFFLED_COLUMNS, SHUFFLED_ROWS
from petridish.compare.ranking import ErrorFormat, errors_at, interval_of, ranked_methods
from petridish.figures.style import BLUE, GREY, INK, ORANGE, caption, house_style, sample_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from petridish.compare.comparison import Comparison
    from petridish.compare.describe import Floats

COLOURS = {
    MLP: ORANGE,
    FOREST: BLUE,
    "HistGradientBoosting": "#009E73",  # Okabe & Ito's, as the others
    "LightGBM": "#56B4E9",
    "XGBoost": "#CC79A7",
    "linear model": INK,
    GUESS: GREY,
}
MARKS = {MLP: "o", FOREST: "s", "HistGradientBoosting": "^", "LightGBM": "v", "XGBoost": "D"}
MOST_BARS = 15


def learning_curves(comparison: Comparison, title: str) -> Figure:
    """Draw mean test error, with intervals, and seconds of a fit over training rows."""
    measure = ErrorFormat.of(comparison)
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(11, 4.6), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.7, 1))
        apart = 0.012 * math.log(comparison.sizes[-1] / comparison.sizes[0]) or 0.01
        for place, name in enumerate(comparison.methods):
            _curve(left, comparison, name, (place - 2.5) * apart, measure.scale)
            if name != GUESS:
                _times(right, comparison, name)
        _guess(left, comparison, measure)
        left.set_ylabel(f"mean {measure.error}" + (", %" if measure.classified else ""))
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, frameon=False, fontsize=8.5, loc="outside right upper")
        right.set_yscale("log")
        right.set_ylabel("seconds of a fit, on one core")
        right.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        for panel in (left, right):
            _size_axis(panel, comparison.sizes)
        caption(
            figure,
            _plain(title),
            f"{comparison.repeats} repeats, tested on {comparison.test:,} rows apart. Bars: 95 % "
            "intervals of the mean over re-drawn parts (corrected resampled t); the pairing of the "
            "methods, which the ranking uses, makes differences surer than bars suggest.",
        )
    return figure


def _size_axis(panel: Any, sizes: tuple[int, ...]) -> None:
    from matplotlib.ticker import NullLocator

    panel.set_xscale("log")
    panel.set_xticks(sizes, [sample_label(size) for size in sizes])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xlabel("training rows")


def _curve(panel: Any, comparison: Comparison, name: str, shift: float, scale: float) -> None:
    if name == GUESS:
        return
    sizes = [size for size in comparison.sizes if name in ranked_methods(comparison, size)]
    if not sizes:
        return
    found = scale * np.array(
        [interval_of(comparison, errors_at(comparison, name, size)) for size in sizes]
    )
    x = np.array(sizes) * math.e**shift  # side by side, so that bars do not cover each other
    ends = np.maximum(0, [found[:, 0] - np.maximum(0, found[:, 1]), found[:, 2] - found[:, 0]])
    bold = name == MLP
    panel.errorbar(
        x,
        found[:, 0],
        yerr=ends,
        color=COLOURS[name],
        marker=MARKS.get(name, "."),
        markersize=6 if bold else 4,
        lw=2.2 if bold else 1.1,
        elinewidth=0.9 if bold else 0.6,
        capsize=0,
        zorder=3 if bold else 2,
        label=name,
    )


def _guess(panel: Any, comparison: Comparison, measure: ErrorFormat) -> None:
    """Draw a constant guess, and end the axis near the methods: it may be far above them."""
    levels = [
        measure.scale * errors_at(comparison, GUESS, size).mean() for size in comparison.sizes
    ]
    means = [
        measure.scale * errors_at(comparison, name, size).mean()
        for size in comparison.sizes
        for name in ranked_methods(comparison, size)
    ]
    spread = (max(means) - min(means) if means else 0) or 0.1 * max(levels) or 1.0
    top = max(means, default=max(levels)) + 0.3 * spread
    label = GUESS
    if levels[-1] > top:
        label += f"\n({measure.write(levels[-1] / measure.scale)}, above)"
    panel.plot(comparison.sizes, levels, color=GREY, ls=":", lw=1.2, label=label)
    panel.set_ylim(max(0.0, min(means, default=0.0) - 0.3 * spread), top)


def _times(panel: Any, comparison: Comparison, name: str) -> None:
    seconds = [np.mean([fit.seconds for fit in comparison.at(name, s)]) for s in comparison.sizes]
    panel.plot(
        comparison.sizes,
        seconds,
        color=COLOURS[name],
        marker=MARKS.get(name, "."),
        markersize=6 if name == MLP else 4,
        lw=2.2 if name == MLP else 1.1,
    )


def importances(comparison: Comparison) -> dict[str, Floats]:
    """Return the importance of each column at the largest size, by method that has any."""
    found = {}
    for name in (MLP, FOREST):
        fits = comparison.at(name, comparison.sizes[-1])
        known = [fit.importance for fit in fits if fit.importance is not None]
        if known:
            found[name] = np.mean(known, axis=0)
    return found


def importance_bars(comparison: Comparison, title: str) -> Figure | None:
    """Draw what network and forest make of the columns, side by side; None if neither says."""
    found = importances(comparison)
    if not found:
        return None
    names = np.array(comparison.examples.names)
    places = np.mean([_places(values) for values in found.values()], axis=0)
    order = np.argsort(places, kind="stable")[:MOST_BARS][::-1]
    measure = ErrorFormat.of(comparison)
    labels = {
        MLP: "share of the movement of first-layer weights, %",
        FOREST: f"rise of the {measure.error} when shuffled"
        + (", points" if measure.classified else ""),
    }
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(11, 1.5 + 0.24 * len(order)), layout="constrained")
        panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
        for panel, (name, values) in zip(panels, found.items(), strict=True):
            scale = 100 if name == MLP else measure.scale
            panel.barh(range(len(order)), scale * values[order], color=COLOURS[name], height=0.7)
            panel.set_title(name, loc="left")
            panel.set_xlabel(labels[name])
            panel.axvline(0, color=INK, lw=0.8)
        panels[0].set_yticks(range(len(order)), [_clipped(name) for name in names[order]])
        hidden = len(names) - len(order)
        caption(
            figure,
            title,
            f"With {comparison.sizes[-1]:,} training rows. The network's: mean of "
            f"{comparison.repeats} repeats; the forest's: one repeat, at most {SHUFFLED_ROWS:,} "
            f"test rows, at most {SHUFFLED_COLUMNS} columns."
            + (f" {hidden} columns further down are not drawn." if hidden else ""),
        )
    return figure


def _places(values: Floats) -> Floats:
    """Rank columns, the most important first; what was not tried comes last."""
    order = np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")
    places = np.empty(len(values))
    places[order] = np.arange(len(values))
    return places


def _clipped(name: str, length: int = 28) -> str:
    return _plain(name if len(name) <= length else name[: length - 1] + "…")


def _plain(text: str) -> str:
    """Escape what matplotlib would read as mathematics."""
    return text.replace("$", r"\$")
