"""Bounds, solvers and SGD in one picture; Theorem 4's algorithm; recovery by one truncated step."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.figures.panels import framed, outer_legend
from petridish.figures.style import BLUE, GREY, INK, ORANGE, NothingToDraw, shades

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

SOLVERS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("exhaustive", {}, "exhaustive search"),
    ("decoder", {}, "maximum correlation"),
    ("regression", {}, "sparse regression"),
    ("elimination", {"max_free": 0}, "Gaussian elimination"),
    ("elimination", {"max_free": 16}, "elimination, kernel searched"),
    ("guessing", {}, "random guessing"),
)
MARKS = "sDP^vX"
TRIALS = 20
TARGET = 0.5
SAMPLE_ARMS = ("sample along s", "sample along n", "sample, s in proportion to n")


def over_sparse_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw the success of Theorem 4's algorithm against width (left) and against m (right).

    One line per (n, s) that an arm sweeps.
    """
    import polars as pl

    from petridish.sweeps.arms import by_arm

    parts = {
        "model.width": by_arm(table, "width along s", "width along n"),
        "data.m": by_arm(table, *SAMPLE_ARMS),
    }
    if all(runs.is_empty() for runs in parts.values()):
        raise NothingToDraw("There are no runs of Theorem 4's algorithm. Run `petridish run PF-7`.")
    note = (
        "Theorem 4's algorithm, k = 2: share of runs with a held-out hinge loss of at most ½. "
        "Left: an ample sample. Right: widths with eight pairs of good neurons on average."
    )
    labels = {"model.width": "width r", "data.m": "examples m"}
    with framed(title, note, (11.0, 4.3), 1, 2, sharey=True) as (figure, (axes,)):
        for panel, (column, runs) in zip(axes, parts.items(), strict=True):
            cells = runs.drop("arm").unique(["task.n", "init.s", column, "seed"])
            shares = (
                cells.group_by("task.n", "init.s", column)
                .agg(share=(pl.col("outcome") == "SOLVED").mean())
                .sort("task.n", "init.s", column)
            )
            lines = shares.partition_by("task.n", "init.s", maintain_order=True, as_dict=True)
            colours = shades([float(place) for place in range(len(lines))]).values()
            for ((n, s), line), colour in zip(lines.items(), colours, strict=False):
                look = {"color": colour, "label": f"n = {n}, s = {s}"}
                panel.plot(line[column], line["share"], "o-", ms=3, lw=1.1, **look)
            panel.set(xscale="log", xlabel=labels[column])
            panel.axhline(TARGET, color=GREY, lw=0.6, ls=":")
            panel.legend(fontsize=7)
        axes[0].set_ylabel("share of runs that succeed")
    return figure


def bounds_and_solvers(table: pl.DataFrame, title: str) -> Figure:
    """Draw what SGD needed, what classical solvers need, and the lower bounds.

    One panel per task: sample size against operations. SGD's points are the front of its mixtures
    that reach success ½; solvers are run here, on parities of the same n and k.
    """
    from petridish.models import OverSparse
    from petridish.rules.mixtures import mixtures
    from petridish.rules.specs import where
    from petridish.tasks import SparseParity

    runs = where(
        table,
        lambda spec: isinstance(spec.task, SparseParity) and not isinstance(spec.init, OverSparse),
    )
    sizes = sorted(set(runs.select("task.n", "task.k").iter_rows()))
    front = [option for option in mixtures(runs, target=TARGET) if option.best]
    note = (
        f"Every point succeeds in half of the cases. SGD: parameters × steps × restarts, the unit "
        f"of Proposition 3, of the best mixtures among {len(runs)} runs; each is a mean over a "
        f"batch of 32.\nSolvers: 64-bit word operations at the smallest m that suffices, {TRIALS} "
        "parities each. Elimination is no statistical query algorithm: noise defeats it."
    )
    across = max(1, len(sizes))
    size = (2.9 + 5.4 * across, 4.9)
    with framed(title, note, size, 1, across) as (figure, (axes,)):
        for panel, (n, k) in zip(axes, sizes, strict=False):
            here = [o for o in front if o.task == f"sparse_parity({n}, {k})"]
            _bounds(panel, n, k)
            _solvers(panel, n, k)
            _sgd(panel, [(o.m, o.compute * (n + 2)) for o in here])
            panel.set_title(f"(n, k) = ({n}, {k})", loc="left")
            panel.set(xscale="log", yscale="log", xlabel="examples m", ylabel="operations")
            panel.set_xlim(left=2)
            panel.set_ylim(bottom=0.5)
        outer_legend(figure, axes[0])
    return figure


def _bounds(panel: Any, n: int, k: int) -> None:
    from petridish.theory.lower_bounds import sq_bound, statistical_limit

    m = np.geomspace(1, max(2.0, sq_bound(n, k) * TARGET), 200)  # beyond, one operation is allowed
    least = sq_bound(n, k) * TARGET / m
    label = "Proposition 3: no SGD below"
    panel.fill_between(m, least, 0.5, color=GREY, alpha=0.18, lw=0, label=label)
    limit = statistical_limit(n, k)
    panel.axvspan(1, limit, color=ORANGE, alpha=0.12, lw=0)
    panel.axvline(limit, color=ORANGE, lw=1.2, label=f"statistical limit, log₂ C({n}, {k})")
    panel.axhline(math.comb(n, k), color=INK, lw=0.7, ls=":", label=f"C({n}, {k}) candidates")


def _solvers(panel: Any, n: int, k: int) -> None:
    from petridish.theory.pareto.solvers import sample_cost

    colours = shades([float(i) for i in range(len(SOLVERS))])
    for i, (name, options, label) in enumerate(SOLVERS):
        rng = np.random.default_rng(i)
        found = sample_cost(name, n, k, trials=TRIALS, rng=rng, largest=16 * n, **options)
        if (cost := found.at_m50) is not None:
            look = {"color": colours[float(i)], "ms": 8, "mec": INK, "mew": 0.6}
            panel.plot(cost.m, max(cost.operations, 1), MARKS[i], label=label, **look)


def _sgd(panel: Any, points: list[tuple[float, float]]) -> None:
    if not points:
        none = "no cell in which 5 runs of SGD succeed"
        panel.text(0.97, 0.5, none, ha="right", transform=panel.transAxes, color=BLUE)
        return
    last = 3 * max([m for m, _ in points if math.isfinite(m)] or [1e6])
    m, operations = zip(*[(min(m, last), cost) for m, cost in points], strict=True)
    label = "SGD, the front of its mixtures"
    panel.plot(m, operations, "o-", color=BLUE, ms=5, lw=1.2, label=label)


@cache
def _recovered(n: int, k: int, s: int, sizes: tuple[int, ...], trials: int) -> NDArray[np.float64]:
    """Return the share of samples that find S; no run takes part, so a process draws them once."""
    from petridish.theory.pareto.recovery import recovery_curve

    return recovery_curve(n, k, s, sizes, trials, np.random.default_rng(n))


def recovery_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw how often one truncated gradient step finds S, against m, for several n [PF Thm 5]."""
    from petridish.theory.pareto.recovery import predicted_recovery
    from petridish.theory.pareto.under_sparse import UnderSparse

    trials, values = 20, (11, 21, 41, 81)
    cases = [(4, 2), (6, 4)]
    colours = shades([float(n) for n in values])
    note = (
        f"One truncated step of a neuron whose s ones lie in S; {trials} samples per point. "
        "Lines: the gradient's entries taken for independent normals."
    )
    with framed(title, note, (10.5, 4.3), 1, len(cases), sharey=True) as (figure, (axes,)):
        for panel, (k, s) in zip(axes, cases, strict=True):
            for n in values:
                recipe = UnderSparse(n=n, k=k, s=s)
                m = [int(size) for size in np.unique(np.logspace(2.3, 5, 15).astype(int))]
                shares = _recovered(n, k, s, tuple(m), trials)
                expected = [predicted_recovery(recipe, size) for size in m]
                panel.plot(m, shares, "o", ms=4, color=colours[float(n)], label=f"n = {n}")
                panel.plot(m, expected, color=colours[float(n)], lw=1.1)
            panel.set(xscale="log", xlabel="examples m")
            panel.set_title(f"k = {k}, s = {s}", loc="left")
        axes[0].set_ylabel("share of samples that find S")
        outer_legend(figure, axes[0])
    return figure
