"""Success and time against the sparsity of the first layer's start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.figures.panels import framed, outer_legend
from petridish.figures.style import sample_label, shades

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


def sparsity_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw success (left) and median time (right) against s; the dense start as broken lines."""
    import polars as pl

    cells = table.sort("task", "model.width", "data.m").partition_by(
        "task", "model.width", "data.m", as_dict=True
    )
    colours = shades([float(i) for i in range(len(cells))]).values()
    several = table["task"].n_unique() > 1
    note = (
        f"{', '.join(sorted(set(table['task'])))}; {len(table)} runs. Bars: 95 % intervals. "
        "Broken lines: the dense start (uniform).\n"
        "No mark on the right: more than half of the runs were not solved."
    )
    with framed(title, note, (10.5, 4.2), 1, 2, sharex=True) as (figure, ((left, right),)):
        for ((task, width, m), runs), colour in zip(cells.items(), colours, strict=False):
            label = f"r = {sample_label(width)}, m = {sample_label(m)}"
            label = f"{task}, {label}" if several else label
            dense = pl.col("init") == "uniform"
            _curve(left, right, runs.filter(~dense), colour, label)
            _dense(left, right, runs.filter(dense), colour)
        values = sorted(set(table["init.s"].drop_nulls()))
        for panel in (left, right):
            panel.set(xscale="log", xlabel="nonzero first weights per neuron, s")
            panel.set_xticks(values, [str(s) for s in values])
            panel.set_xticks([], minor=True)
        left.set(ylabel="share of runs that succeed", ylim=(-0.03, 1.03))
        right.set(ylabel="median steps to success", yscale="log")
        outer_legend(figure, left)
    return figure


def _estimates(runs: pl.DataFrame) -> tuple[float, float, float, float, float, float]:
    """Return success and median time, each with its interval."""
    from petridish.statistics.intervals import bootstrap_median, censored_median, wilson_interval

    times = runs["solved_at"].to_list()
    solved = sum(time is not None for time in times)
    low, high = (float(end) for end in wilson_interval(solved, len(times)))
    early, late = bootstrap_median(times, rng=np.random.default_rng(0))
    return solved / len(times), low, high, censored_median(times), early, late


def _curve(left: Any, right: Any, runs: pl.DataFrame, colour: Any, label: str) -> None:
    parts = runs.partition_by("init.s", as_dict=True)
    if not parts:
        return
    s = np.array(sorted(key[0] for key in parts), np.float64)
    found = np.array([_estimates(parts[key]) for key in sorted(parts)])
    share, low, high, middle, early, late = found.T
    look: dict[str, Any] = {"color": colour, "marker": "o", "ms": 4, "lw": 1.3, "elinewidth": 0.8}
    left.errorbar(s, share, [share - low, high - share], label=label, **look)
    late = np.minimum(late, float(runs["training.steps"][0]))  # beyond the budget is not known
    known = np.isfinite(middle)
    s, middle, early, late = s[known], middle[known], early[known], late[known]
    right.errorbar(s, middle, [middle - early, np.maximum(late - middle, 0)], **look)


def _dense(left: Any, right: Any, runs: pl.DataFrame, colour: Any) -> None:
    if runs.is_empty():
        return
    share, _, _, middle, _, _ = _estimates(runs)
    for panel, level in ((left, share), (right, middle)):
        if np.isfinite(level):
            panel.axhline(level, color=colour, lw=1, ls="--", alpha=0.8)
