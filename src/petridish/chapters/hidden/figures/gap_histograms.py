"""Fourier gaps: how random neurons' are distributed, and how they change along the path of SGD."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.chapters.hidden.rules.architectures import NAMES, numeral
from petridish.figures.panels import outer_legend, panels, tiles, with_curves
from petridish.figures.style import BLUE, GREY, INK, ORANGE, caption, sample_label
from petridish.rules.columns import curve_columns, reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from petridish.theory.hidden.fourier_gaps import GapActivation, GapWeights

BITS, DEGREES, NEURONS = 15, (2, 3, 4), 1000
TAIL = 0.01  # of the neurons, counted in the last bar at either end
MOST = 10  # paths per panel, as in HP's Figure B.8
ROWS: tuple[tuple[GapActivation, str], ...] = (("relu", "ReLU"), ("sine", "sine"))
SHADES: tuple[tuple[GapWeights, str], ...] = (("uniform", BLUE), ("gaussian", ORANGE))
LABELS = {"uniform": "uniform w", "gaussian": "Gaussian w"}


@reads()
def gap_histograms(table: pl.DataFrame, title: str) -> Figure:
    """Draw the exact Fourier gaps Γ of random neurons, over majority's [HP Figs B.7, B.8 left].

    Simulated here, from fixed seeds: no run of the table takes part. Rows are activations, columns
    degrees k; the dashed line is the gap of a ReLU at weights ±1.
    """
    from petridish.theory.hidden.fourier_gaps import random_gaps, reference_gap

    size = (0.9 + 3.2 * len(DEGREES), 1.5 + 2.2 * len(ROWS))
    with panels(len(ROWS), len(DEGREES), size) as (figure, axes):
        for (i, (activation, name)), (j, k) in product(enumerate(ROWS), enumerate(DEGREES)):
            panel, reference = axes[i][j], float(reference_gap(BITS, k))
            found = {}
            for weights, _ in SHADES:
                rng = np.random.default_rng(k)
                gaps = random_gaps(activation, weights, BITS, k, trials=NEURONS, rng=rng)
                found[weights] = gaps / reference
            low, high = np.quantile(np.concatenate(list(found.values())), [TAIL, 1 - TAIL])
            edges = np.linspace(min(low, 0), max(high, 1.5), 45)
            for weights, colour in SHADES:
                _histogram(panel, found[weights], edges, colour, LABELS[weights])
            panel.axvline(1, color=INK, lw=1.1, ls="--", label="majority")
            panel.axvline(0, color=GREY, lw=0.6)
            panel.set_title(f"{name}, k = {k}", loc="left")
            if i == len(ROWS) - 1:
                panel.set_xlabel(f"Γ / Γ_majority, which is {reference:.2g}")
            if j == 0:
                panel.set_ylabel("share of neurons")
        outer_legend(figure, axes[0, 0])
        caption(
            figure,
            title,
            f"n = {BITS}, {NEURONS} neurons per histogram, every gap exact; the last bars hold "
            "what lies beyond. Γ_majority is the gap of a ReLU's gradient at weights "
            "±1.\nσ' is 1{w · x + b > 0}, or sin(w · x / √n), cos for odd k. Biases are 0; for odd "
            "k a ReLU without bias has no gap: neurons and majority have one there.",
        )
    return figure


def _histogram(panel: Any, values: Any, edges: Any, colour: str, label: str) -> None:
    inside = np.clip(values, edges[0], edges[-1] - 1e-9)
    weight = np.full(len(values), 1 / len(values))
    panel.hist(inside, edges, weights=weight, color=colour, alpha=0.22)
    panel.hist(inside, edges, weights=weight, histtype="step", color=colour, lw=1.2, label=label)


@reads(*curve_columns("test_error", "fourier_gap"))
def gap_paths(table: pl.DataFrame, title: str) -> Figure:
    """Draw Γ of every run over its steps, with majority's gap as a line [HP Fig. B.8 right].

    One panel per task and model. A dot ends the part of a path that lies before the test error
    falls below 45 %; what follows is thin.
    """
    kept = with_curves(table, "fourier_gap")
    kept = kept.filter(kept["curve.fourier_gap"].is_not_null())
    parts = kept.partition_by("task.n", "task.k", "model", as_dict=True)
    labels = "step", "Fourier gap Γ"
    with tiles(len(parts), 4, tile=(3.3, 2.6), margin=(1.2, 1.3), labels=labels) as (figure, axes):
        for panel, key in zip(axes, sorted(parts, key=str), strict=True):
            _paths(panel, key, parts[key].sort("seed"))
        outer_legend(figure, axes)
        caption(
            figure,
            title,
            f"{len(kept)} runs, at most {MOST} drawn per panel. Γ is the largest of a network's "
            "neurons. Thick up to the last evaluation at chance (test error ≥ 45 %, the dot), thin "
            "from there on. Dashed: the gap of a ReLU's gradient at weights ±1 (for odd k, where "
            "that is 0, with the least bias that matters).",
        )
    return figure


def _paths(panel: Any, key: tuple[Any, ...], runs: pl.DataFrame) -> None:
    from matplotlib.ticker import MaxNLocator

    from petridish.theory.hidden.fourier_gaps import reference_gap
    from petridish.training import read_cell

    n, k, model = key
    for run in runs.head(MOST).iter_rows(named=True):
        solved = run["outcome"] == "SOLVED"
        colour = BLUE if solved else ORANGE
        step, gap = run["curve.step"], run["curve.fourier_gap"]
        low = (i for i, error in enumerate(run["curve.test_error"]) if error < 0.45)
        end = max(next(low, len(step)), 1)
        label = "solved" if solved else "not solved"
        panel.plot(step[:end], gap[:end], color=colour, lw=1.5, alpha=0.85, label=label)
        panel.plot(step[end - 1 :], gap[end - 1 :], color=colour, lw=0.7, alpha=0.5)
        panel.plot(step[end - 1], gap[end - 1], "o", ms=3.5, color=colour)
    reference = float(reference_gap(int(n), int(k)))
    panel.axhline(reference, color=INK, lw=1.1, ls="--", label="majority")
    panel.axhline(0, color=GREY, lw=0.6)
    steps = sorted(set(runs["curve.step"].explode()))
    first, last = (steps[1], steps[-1]) if len(steps) > 1 else (1, 1)
    panel.set_xscale("symlog", linthresh=first, linscale=0.4)
    panel.set_xlim(0, 1.1 * last)
    powers = [10**power for power in range(12) if first <= 10**power <= 1.1 * last]
    panel.set_xticks([0, *powers])
    panel.set_xticklabels(["0", *map(sample_label, powers)])
    panel.set_xticks([], minor=True)
    name = numeral(read_cell(runs["cell"][0]).model, k)
    panel.set_title(f"({n}, {k}): {NAMES.get(name, model)}", loc="left", fontsize=9)
    panel.yaxis.set_major_locator(MaxNLocator(5))
