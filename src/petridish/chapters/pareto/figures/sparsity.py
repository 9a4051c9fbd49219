"""Success and time against the sparsity of the first layer's start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.figures.style import caption, house_style, sample_label, shades

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


def sparsity_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw success (left) and median time (right) against s; the dense start as broken lines."""
    sparse = table.filter(table["init"] != "uniform")
    cells = sorted(set(table.select("task", "model.width", "data.m").iter_rows()))
    several = table["task"].n_unique() > 1
    colours = shades([float(i) for i in range(len(cells))])
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(10.5, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2, sharex=True)
        for i, (task, width, m) in enumerate(cells):
            here = (
                (table["task"] == task) & (table["model.width"] == width) & (table["data.m"] == m)
            )
            label = f"r = {sample_label(width)}, m = {sample_label(m)}"
            label = f"{task}, {label}" if several else label
            _curve(
                left,
                right,
                sparse.filter(here.filter(table["init"] != "uniform")),
                colours[float(i)],
                label,
            )
            _dense(
                left, right, table.filter(here & (table["init"] == "uniform")), colours[float(i)]
            )
        values = sorted(set(sparse["init.s"]))
        for panel in (left, right):
            panel.set_xscale("log")
            panel.set_xticks(values, [str(s) for s in values])
            panel.set_xticks([], minor=True)
            panel.set_xlabel("nonzero first weights a neuron, s")
        left.set_ylabel("share of runs that succeed")
        left.set_ylim(-0.03, 1.03)
        right.set_ylabel("median steps to success")
        right.set_yscale("log")
        figure.legend(*left.get_legend_handles_labels(), loc="outside right center", frameon=False)
        caption(
            figure,
            title,
            f"{', '.join(sorted(set(table['task'])))}; {len(table)} runs. Bars: 95 % intervals. "
            "Broken lines: the dense start (uniform).\n"
            "No mark on the right: more than half of the runs were not solved.",
        )
    return figure


def _estimates(runs: pl.DataFrame) -> tuple[float, float, float, float, float, float]:
    """Give success and median time, each with its interval."""
    from petridish.statistics.estimate import bootstrap_median, censored_median, wilson_interval

    times = runs["solved_at"].to_list()
    solved = sum(time is not None for time in times)
    low, high = (float(end) for end in wilson_interval(solved, len(times)))
    early, late = bootstrap_median(times, rng=np.random.default_rng(0))
    return solved / len(times), low, high, censored_median(times), early, late


def _curve(left: Any, right: Any, runs: pl.DataFrame, colour: Any, label: str) -> None:
    parts = runs.partition_by("init.s", as_dict=True)
    keys = sorted(parts)
    if not keys:
        return
    s = np.array([key[0] for key in keys], np.float64)
    found = np.array([_estimates(parts[key]) for key in keys])
    share, low, high, middle, early, late = found.T
    left.errorbar(
        s,
        share,
        [share - low, high - share],
        color=colour,
        marker="o",
        ms=4,
        lw=1.3,
        elinewidth=0.8,
        label=label,
    )
    known = np.isfinite(middle)
    s, middle, early, late = s[known], middle[known], early[known], late[known]
    late = np.minimum(late, float(runs["training.steps"][0]))  # beyond the budget is not known
    bars = [middle - early, np.maximum(late - middle, 0)]
    right.errorbar(s, middle, bars, color=colour, marker="o", ms=4, lw=1.3, elinewidth=0.8)


def _dense(left: Any, right: Any, runs: pl.DataFrame, colour: Any) -> None:
    if runs.is_empty():
        return
    share, _, _, middle, _, _ = _estimates(runs)
    left.axhline(share, color=colour, lw=1, ls="--", alpha=0.8)
    if np.isfinite(middle):
        right.axhline(middle, color=colour, lw=1, ls="--", alpha=0.8)
