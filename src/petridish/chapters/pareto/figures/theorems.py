"""Bounds, classical solvers and SGD in one picture; recovery by one truncated step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.figures.style import BLUE, GREY, INK, ORANGE, caption, house_style, shades

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


def bounds_and_solvers(table: pl.DataFrame, title: str) -> Figure:
    """Draw what SGD needed, what classical solvers need, and what no algorithm can do without.

    One panel a task: sample size against operations. SGD's points are the front of its mixtures
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
    with house_style() as make_figure:
        figure: Figure = make_figure(
            figsize=(2.9 + 5.4 * max(1, len(sizes)), 4.9), layout="constrained"
        )
        axes = figure.subplots(1, max(1, len(sizes)), squeeze=False)[0]
        for panel, (n, k) in zip(axes, sizes, strict=False):
            here = [o for o in front if o.task == f"sparse_parity({n}, {k})"]
            _bounds(panel, n, k)
            _solvers(panel, n, k)
            _sgd(panel, [(o.m, o.compute * (n + 2)) for o in here])
            panel.set_title(f"(n, k) = ({n}, {k})", loc="left")
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_xlim(left=2)
            panel.set_ylim(bottom=0.5)
            panel.set_xlabel("examples m")
            panel.set_ylabel("operations")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center", frameon=False)
        caption(
            figure,
            title,
            f"Every point succeeds in half of the cases. SGD: parameters × steps × restarts, the "
            f"unit of Proposition 3, of the best mixtures among {len(runs)} runs; each is a mean "
            f"over a batch of 32.\nSolvers: 64-bit word operations at the "
            f"smallest m that suffices, {TRIALS} parities each. Elimination is no statistical "
            "query algorithm: noise defeats it.",
        )
    return figure


def _bounds(panel: Any, n: int, k: int) -> None:
    from petridish.theory import sq_bound, statistical_limit

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
        cost = sample_cost(
            name, n, k, trials=TRIALS, rng=np.random.default_rng(i), largest=16 * n, **options
        ).at_m50
        if cost is not None:
            panel.plot(
                cost.m,
                max(cost.operations, 1),
                MARKS[i],
                ms=8,
                color=colours[float(i)],
                mec=INK,
                mew=0.6,
                label=label,
            )


def _sgd(panel: Any, points: list[tuple[float, float]]) -> None:
    if not points:
        panel.text(
            0.97,
            0.5,
            "no cell in which 5 runs of SGD succeed",
            ha="right",
            transform=panel.transAxes,
            color=BLUE,
        )
        return
    last = 3 * max([m for m, _ in points if math.isfinite(m)] or [1e6])
    m, operations = zip(*[(min(m, last), cost) for m, cost in points], strict=True)
    panel.plot(
        m, operations, "o-", color=BLUE, ms=5, lw=1.2, label="SGD, the front of its mixtures"
    )


def recovery_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw how often one truncated gradient step finds S, against m, for several n [PF Thm 5]."""
    from petridish.theory import UnderSparse, predicted_recovery, recovery_curve

    trials, values = 20, (11, 21, 41, 81)
    cases = [(4, 2), (6, 4)]
    colours = shades([float(n) for n in values])
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(10.5, 4.3), layout="constrained")
        axes = figure.subplots(1, len(cases), sharey=True)
        for panel, (k, s) in zip(axes, cases, strict=True):
            for n in values:
                recipe = UnderSparse(n=n, k=k, s=s)
                m = [int(size) for size in np.unique(np.logspace(2.3, 5, 15).astype(int))]
                rng = np.random.default_rng(n)
                panel.plot(
                    m,
                    recovery_curve(n, k, s, m, trials, rng),
                    "o",
                    ms=4,
                    color=colours[float(n)],
                    label=f"n = {n}",
                )
                expected = [predicted_recovery(recipe, size) for size in m]
                panel.plot(m, expected, color=colours[float(n)], lw=1.1)
            panel.set_xscale("log")
            panel.set_title(f"k = {k}, s = {s}", loc="left")
            panel.set_xlabel("examples m")
        axes[0].set_ylabel("share of samples that find S")
        figure.legend(
            *axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False
        )
        caption(
            figure,
            title,
            f"One truncated step of a neuron whose s ones lie in S; {trials} samples a point. "
            "Lines: the gradient's entries taken for independent normals.",
        )
    return figure
