"""Figures of IH-3 to IH-6: losses and distances through training, arm by arm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.chapters.induction.figures import (
    MOST_RUNS,
    legend,
    line,
    rows_of,
    runs_with,
    settings_of,
)
from petridish.chapters.induction.measures import OF_GAP, GapTime
from petridish.figures.panels import framed, runs_made
from petridish.figures.style import BLUE, GREEN, GREY, HUES, INK, ORANGE
from petridish.rules.columns import reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

COLOURS = {"uniform": GREY, "unigram": BLUE, "bigram": ORANGE, "trigram": GREEN}
NOTE = f"At most {MOST_RUNS} runs of each setting, one line per run."
MINIMAL = ("position1_share", "position2_share", "key_diagonal_share")


def level(panel: Any, runs: list[dict[str, Any]], strategy: str, colour: str) -> None:
    """Draw what a strategy loses, the mean over runs, with its name at the right end."""
    found = [run[f"curve.test_kl_of_{strategy}"] for run in runs]
    height = float(np.mean([curve[0] for curve in found if curve]))
    panel.axhline(height, color=colour, lw=0.9, dashes=(4, 2))
    at = panel.get_yaxis_transform()
    panel.text(1, height, strategy, transform=at, va="bottom", ha="right", color=colour)


@reads(
    "curve.step",
    "curve.test_kl_truth",
    *(f"curve.test_kl_{name}" for name in list(COLOURS)[:3]),
    *(f"curve.test_kl_of_{name}" for name in list(COLOURS)[1:3]),
    *(f"curve.{name}" for name in MINIMAL),
)
def minimal_model(table: pl.DataFrame, title: str) -> Figure:
    """Draw the minimal model's loss, distances, and what its weights become [TH Fig. 8.3, 8.4b]."""
    columns = ("curve.step", "curve.test_kl_truth", "curve.key_diagonal_share")
    rows = rows_of(table, columns)
    note = (
        f"{runs_made(table)}. {NOTE} Shares are above those of equal entries; of v_2 three times."
    )
    with framed(title, note, (11, 1.0 + 2.5 * len(rows)), len(rows), 3) as (figure, axes):
        for (name, runs), (loss, nearest, weights) in zip(rows, axes, strict=True):
            for run in runs:
                line(loss, run, "test_kl_truth", INK)
                for strategy in list(COLOURS)[:3]:
                    line(nearest, run, f"test_kl_{strategy}", COLOURS[strategy])
                line(weights, run, "key_diagonal_share", INK)
                scaled = 3 * np.array(run["curve.position2_share"], np.float64)
                weights.plot(run["curve.step"], scaled, color=ORANGE, lw=1.0, alpha=0.75)
            for strategy in ("unigram", "bigram"):
                level(loss, runs, strategy, COLOURS[strategy])
            loss.set_ylabel(f"{name}\nnats, last token")
            for panel in (loss, nearest):
                panel.set_ylim(bottom=0)
        for panel, text in zip(
            axes[0], ("KL(truth ‖ model)", "KL(strategy ‖ model)", "shares of weights"), strict=True
        ):
            panel.set_title(text, loc="left")
        legend(axes[0, 1], [(name, COLOURS[name]) for name in list(COLOURS)[:3]])
        legend(axes[0, 2], [("diagonal of W_k", INK), ("3 × v_2", ORANGE)])
        for panel in axes[-1]:
            panel.set_xlabel("step")
    return figure


@reads("curve.step", "curve.original_kl_truth", "curve.doubly_kl_truth", "training.batch_size")
def distributions(table: pl.DataFrame, title: str) -> Figure:
    """Draw losses against doubly stochastic sequences seen, one colour per arm [TH Fig. 8.4a]."""
    names = {"original_kl_truth": "original distribution", "doubly_kl_truth": "doubly stochastic"}
    columns = ("curve.step", *(f"curve.{name}" for name in names))
    arms = [(name, runs_with(part, columns)) for name, part in settings_of(table)]
    note = f"{runs_made(table)}. {NOTE}"
    with framed(title, note, (9, 3.9), 1, 2, sharex=True) as (figure, ((*panels,),)):
        for (_, runs), colour in zip(arms, HUES, strict=False):
            for run in runs:
                mixed = run.get("task.share") is not None
                seen = np.array(run["curve.step"]) * run["training.batch_size"] / (1 + mixed)
                for panel, name in zip(panels, names, strict=True):
                    panel.plot(seen / 1e3, run[f"curve.{name}"], color=colour, lw=1, alpha=0.7)
        legend(panels[1], [(name, colour) for (name, _), colour in zip(arms, HUES, strict=False)])
        for panel, text in zip(panels, names.values(), strict=True):
            panel.set_title(text, loc="left")
            panel.set(xlabel="thousands of doubly stochastic sequences seen")
            panel.set_ylim(bottom=0)
        panels[0].set_ylabel("KL(truth ‖ network), nats, last token")
    return figure


@reads(
    "curve.step",
    "curve.test_kl_truth",
    *(f"curve.test_kl_{name}" for name in COLOURS),
    *(f"curve.test_kl_of_{name}" for name in list(COLOURS)[1:]),
)
def stages(table: pl.DataFrame, title: str) -> Figure:
    """Draw the loss and the distances to four strategies, one row per arm [TH Fig. 8.5]."""
    columns = ("curve.step", "curve.test_kl_truth", "curve.test_kl_trigram")
    rows = [(name, runs_with(part, columns)) for name, part in settings_of(table)]
    note = f"{runs_made(table)}. {NOTE}"
    with framed(title, note, (9, 1.0 + 2.5 * len(rows)), len(rows), 2) as (figure, axes):
        for (name, runs), (loss, nearest) in zip(rows, axes, strict=True):
            for run in runs:
                line(loss, run, "test_kl_truth", INK)
                for strategy, colour in COLOURS.items():
                    line(nearest, run, f"test_kl_{strategy}", colour)
            for strategy in list(COLOURS)[1:]:
                level(loss, runs, strategy, COLOURS[strategy])
            loss.set_ylabel(f"{name}\nnats, last token")
            for panel in (loss, nearest):
                panel.set_ylim(bottom=0)
        axes[0, 0].set_title("KL(truth ‖ network)", loc="left")
        axes[0, 1].set_title("KL(strategy ‖ network)", loc="left")
        legend(axes[0, 1], list(COLOURS.items()))
        for panel in axes[-1]:
            panel.set_xlabel("step")
    return figure


@reads(
    "curve.step",
    "curve.test_kl_truth",
    *(f"curve.test_kl_of_{name}" for name in list(COLOURS)[1:3]),
)
def losses_of_arms(table: pl.DataFrame, title: str) -> Figure:
    """Draw the loss of every arm beside those of unigrams and bigrams [TH Fig. E.8]."""
    columns = ("curve.step", "curve.test_kl_truth")
    arms = [(name, runs_with(part, columns)) for name, part in settings_of(table)]
    note = f"{runs_made(table)}. {NOTE}"
    size = (2.3 * len(arms) + 1.0, 3.4)
    with framed(title, note, size, 1, len(arms), sharey=True) as (figure, ((*panels,),)):
        for (name, runs), panel in zip(arms, panels, strict=True):
            for run in runs:
                line(panel, run, "test_kl_truth", INK)
            for strategy in ("unigram", "bigram"):
                level(panel, runs, strategy, COLOURS[strategy])
            panel.set_title(name, loc="left")
            panel.set_xlabel("step")
            panel.set_ylim(bottom=0)
        panels[0].set_ylabel("KL(truth ‖ network), nats, last token")
    return figure


SIZES = {
    "states": "task.k",
    "length": "task.length",
    "dimension": "model.d",
    "heads": "model.heads",
    "rate": "training.learning_rate",
}


@reads(*OF_GAP, *SIZES.values(), "init")
def drop_times(table: pl.DataFrame, title: str) -> Figure:
    """Draw the time of the second drop against each size, and of each start; one dot per run."""
    from petridish.sweeps.arms import by_arm

    apart = by_arm(table)
    note = f"{runs_made(table)}; one dot per run, lines through medians, τ in steps. Runs without a"
    note += " second drop are left out."
    with framed(title, note, (10.5, 6), 2, 3) as (figure, axes):
        for panel, (arm, column) in zip(axes.ravel(), SIZES.items(), strict=False):
            part = apart.filter(apart["arm"] == arm)
            x = part[column].cast(float).to_numpy()
            _times(panel, x, GapTime(0.5).of(part), arm, xscale="log")
            panel.set_xlabel(arm)
        part = apart.filter(apart["arm"] == "starts")
        names, times = part["init"].to_numpy(), GapTime(0.5).of(part)
        order = sorted(set(names), key=lambda name: (np.median(times[names == name]), name))
        panel = axes[-1, -1]
        places = np.array([order.index(name) for name in names], float)
        _times(panel, places, times, "starts", xscale="linear")
        panel.set_xlabel("initial weights, by their median")
        axes[0, 0].set_ylabel("second drop, τ")
        axes[1, 0].set_ylabel("second drop, τ")
    return figure


def _times(panel: Any, x: Any, times: Any, name: str, *, xscale: str) -> None:
    """Draw times of runs over a field, and a line through the medians."""
    there = np.isfinite(times)
    panel.set_title(name, loc="left")
    if not there.any():  # a logarithmic axis needs a number
        panel.set(xticks=[], yticks=[])
        what = "no second drop" if len(times) else "no runs"
        panel.text(0.5, 0.5, what, transform=panel.transAxes, ha="center", color=INK)
        return
    panel.set(xscale=xscale, yscale="log")
    panel.plot(x[there], times[there], "o", color=BLUE, ms=3, alpha=0.5)
    known = np.unique(x[there])
    if xscale == "log":
        panel.set_xticks(known, [f"{value:g}" for value in known])
        panel.set_xticks([], minor=True)
    middle = [float(np.median(times[there & (x == value)])) for value in known]
    panel.plot(known, middle, color=INK, lw=1)
