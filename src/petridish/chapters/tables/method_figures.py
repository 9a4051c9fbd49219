"""Methods compared over tables: mean errors over m, and average ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.chapters.tables.error_arrays import Errors, best_errors, ranking, with_families
from petridish.chapters.tables.figures import checked
from petridish.figures.panels import framed
from petridish.figures.slices import size_axis
from petridish.figures.style import BLUE, GREY, INK, ORANGE, NothingToDraw, caption, house_style
from petridish.statistics.paired import Ranking, mean_over_tasks

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

LEVEL = 0.05
FOREST = "random_forest"
FAMILIES = {  # a family has one name, one colour and one mark in all figures
    "mlp": ("MLP", BLUE, "o"),
    "random_forest": ("random forest", ORANGE, "s"),
    "sparse_mlp": ("SparseMLP", INK, "D"),
    "hist_gradient_boosting": ("HistGradientBoosting", "#009E73", "^"),
    "xgboost": ("XGBoost", "#56B4E9", "v"),
    "lightgbm": ("LightGBM", "#CC79A7", "<"),
    "realmlp": ("RealMLP", "#6A3D9A", "P"),
    "tabm": ("TabM", "#7F5539", "X"),
    "logistic_regression": ("logistic regression", GREY, "h"),
}
OTHERS = (("#B22222", "*"), ("#4B5320", "d"), ("#2F4F8F", "p"), ("#8B008B", "8"))


def method_errors(table: pl.DataFrame, title: str) -> Figure:
    """Draw every family's mean test error over m, and how it differs from one of them.

    A family is represented by its best configuration at each task and m, chosen on trials that do
    not measure it. Right: the difference to the random forest (or the first family), paired, with
    95 % intervals over tasks. Only sizes that all tasks have are drawn, and only families that were
    run there.
    """
    best = best_errors(checked(table))
    if len(best.families) < 2:
        raise NothingToDraw(
            f"Methods are compared by two families or more, but all runs are {best.families[0]}. "
            "Run another one too."
        )
    if not best.whole_classes():
        raise NothingToDraw(
            "Methods are compared at sample sizes that all tasks share, but these tasks share "
            "none. Run the sweep to its end."
        )
    rival = FOREST if FOREST in best.families else best.families[0]
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(12.0, 4.9))
        figure.set_layout_engine("constrained", wspace=0.06)
        left, right = figure.subplots(1, 2)
        drawn = _methods(left, right, best, rival)
        for panel, label in (
            (left, "mean test error, %"),
            (right, f"difference to {_name(rival)}, percentage points"),
        ):
            size_axis(panel, sorted(set(best.samples)))
            panel.set(xlabel="training rows m", ylabel=label)
            panel.grid(visible=True, axis="y", color=GREY, lw=0.4, alpha=0.3)
        left.set_title("mean over tasks", loc="left")
        right.set_title(f"paired with {_name(rival)}: lower is better", loc="left")
        figure.legend(handles=[*drawn.values()], loc="outside right center", frameon=False)
        absent = [name for name in best.families if name not in drawn]
        caption(
            figure,
            title,
            f"{len(best.tasks)} tasks; {len(table):,} runs. Of each family the best configuration "
            "at each task and m, by the median over trials that do not measure it. Error bars: 95 "
            f"% intervals over tasks. A diverged run counts as chance.{_absent(absent)}",
        )
    return figure


def _methods(left: Any, right: Any, best: Errors, rival: str) -> dict[str, Any]:
    """Draw the means, and the differences to a rival; return a handle for each family drawn."""
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in best.families}
    bars: dict[str, list[tuple[float, float, float]]] = {name: [] for name in best.families}
    for places in best.whole_classes().values():
        there, _, means = best.on_tasks(places)
        x = math.exp(np.log(best.samples[places]).mean())
        names = [best.families[place] for place in there]
        for name, column in zip(names, 100 * means.T, strict=True):
            lines[name].append((x, float(column.mean())))
            if rival in names and name != rival:
                found = mean_over_tasks(column - 100 * means[:, names.index(rival)])
                bars[name].append((x, found.estimate, found.high - found.estimate))
    order = sorted((name for name in lines if lines[name]), key=lambda name: lines[name][-1][1])
    right.axhline(0, color=FAMILIES[FOREST][1] if rival == FOREST else INK, lw=1.5)
    handles = {}
    shown = [name for name in order if bars[name]]
    for name in order:
        colour, mark = _look(name, best.families)
        strong = {"lw": 2.4 if name == "sparse_mlp" else 1.4, "zorder": 3}
        x, y = np.array(lines[name]).T
        (handles[name],) = left.plot(
            x, y, color=colour, marker=mark, ms=5, label=_name(name), **strong
        )
        if name in shown:  # side by side, so that bars do not hide each other
            aside = 1.018 ** (2 * shown.index(name) - len(shown) + 1)
            x, middle, half = np.array(bars[name]).T
            half = np.where(np.isfinite(half), half, 0.0)
            right.errorbar(
                x * aside, middle, half, color=colour, marker=mark, ms=5, elinewidth=0.9, **strong
            )
    return handles


def critical_difference(table: pl.DataFrame, title: str) -> Figure:
    """Draw the families' average ranks over tasks; bars join those that do not differ.

    The diagram of Demšar (2006). Bars: no two of the methods below differ by Wilcoxon's signed-rank
    test over tasks, corrected by Holm, at 5 %. The ruler is Nemenyi's critical difference.
    """
    found = ranking(checked(table), level=LEVEL)
    if found is None:
        raise NothingToDraw(
            "Ranks need two families that were run on all of two tasks or more. Run the sweep to "
            "its end."
        )
    count = len(found.methods)
    bars = found.alike(LEVEL)
    levels = _levels(bars)
    below = 0.3 + 0.2 * (1 + max(levels, default=-1))  # where the names begin
    depth = below + 0.33 * (-(-count // 2) - 1) + 0.15
    families = sorted(set(with_families(table)["family"]))
    absent = [name for name in families if name not in found.methods]
    test = "Friedman's test" if count > 2 else "Wilcoxon's test"
    note = (
        f"Average rank of the mean error over {found.tasks} tasks, 1 is best; {test}: "
        f"p = {found.p:.2g}. Bars join methods of which no two differ (Wilcoxon's signed-rank "
        f"test over tasks, Holm, {LEVEL:.0%}). Grey: Nemenyi's critical difference. "
        f"{len(table):,} runs.{_absent(absent)}"
    )
    with framed(title, note, (8.5, 1.9 + depth)) as (figure, ((panel,),)):
        panel.set_xlim(1 - 0.42 * (count - 1) - 0.1, count + 0.42 * (count - 1) + 0.1)
        panel.set_ylim(-depth, 0.75)
        panel.axis("off")
        _ruler(panel, count, found.critical)
        for (first, last), level in zip(bars, levels, strict=True):
            reach = [found.ranks[first] - 0.03, found.ranks[last] + 0.03]
            panel.plot(reach, [-0.16 - 0.2 * level] * 2, color=INK, lw=3.2, solid_capstyle="round")
        _ranked(panel, found, below, families)
    return figure


def _ruler(panel: Any, count: int, critical: float) -> None:
    """Draw the axis of ranks, and the critical difference above it."""
    panel.plot([1, count], [0, 0], color=INK, lw=1)
    for rank in range(1, count + 1):
        panel.plot([rank, rank], [0, 0.09], color=INK, lw=1)
        panel.text(rank, 0.14, str(rank), ha="center", va="bottom", fontsize=8)
    panel.plot([1, 1 + critical], [0.58, 0.58], color=GREY, lw=2, solid_capstyle="butt")
    text = f"critical difference {critical:.2f}"
    x = 1 + critical + 0.03 * (count - 1)
    panel.text(x, 0.58, text, va="center", fontsize=8, color=GREY)


def _ranked(panel: Any, found: Ranking, below: float, families: Sequence[str]) -> None:
    """Draw a line from every rank to its method's name: the better half to the left."""
    last = len(found.methods) - 1
    for place, (name, rank) in enumerate(zip(found.methods, found.ranks, strict=True)):
        left = place <= last / 2
        y = -below - 0.33 * (place if left else last - place)
        edge = 1 - 0.06 * last if left else 1 + 1.06 * last
        colour = _look(name, families)[0]
        panel.plot([rank, rank, edge], [0, y, y], color=colour, lw=1.2)
        panel.plot(rank, 0, "o", color=colour, ms=4.5, clip_on=False, zorder=4)
        text = f"{_name(name)}  {rank:.2f}" if left else f"{rank:.2f}  {_name(name)}"
        x = edge - 0.02 * last if left else edge + 0.02 * last
        panel.text(x, y, text, ha="right" if left else "left", va="center")


def _levels(bars: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each bar the highest level at which it meets no other."""
    ends: list[int] = []  # the last method of the last bar at each level
    levels = []
    for first, last in bars:
        level = next((i for i, end in enumerate(ends) if end < first), len(ends))
        ends[level : level + 1] = [last]
        levels.append(level)
    return levels


def _absent(families: Sequence[str]) -> str:
    """Return a sentence on the families that could not be compared."""
    return f" Not run on all tasks: {', '.join(map(_name, families))}." if families else ""


def _name(family: str) -> str:
    return FAMILIES[family][0] if family in FAMILIES else family


def _look(family: str, families: Sequence[str]) -> tuple[str, str]:
    """Return a family's colour and mark; an unknown one has its own."""
    if family in FAMILIES:
        return FAMILIES[family][1:]
    unknown = sorted(name for name in families if name not in FAMILIES)
    return OTHERS[unknown.index(family) % len(OTHERS)]
