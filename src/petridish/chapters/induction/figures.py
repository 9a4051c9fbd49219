"""Figures of IH: losses, distances to strategies and attention through training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.figures.panels import framed, runs_made
from petridish.figures.style import BLUE, GREY, INK, ORANGE, NothingToDraw
from petridish.rules.columns import reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MOST_RUNS = 10  # drawn, as in the paper's Figure E.3
STRATEGIES = {"uniform": GREY, "unigram": BLUE, "bigram": ORANGE}
LOSSES = {"test": ("in distribution", INK), "iid": ("iid tokens", BLUE)}
LOSSES["doubly"] = ("doubly stochastic", ORANGE)
ATTENTION = "attention1_back1"
NAMES = (
    *(f"{sample}_kl_truth" for sample in LOSSES),
    *(f"test_kl_{strategy}" for strategy in STRATEGIES),
    *("test_kl_of_unigram", "test_kl_of_bigram", ATTENTION),
)
MAPS = ("attention1_map", "attention2_map")


def _runs(table: pl.DataFrame, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the first runs that kept these columns."""
    kept = table.drop_nulls(columns) if {*columns} <= {*table.columns} else table.clear()
    if kept.is_empty():
        raise NothingToDraw(
            "These runs kept no curves of strategies and attention: draw those of IH-1."
        )
    return kept.sort("seed").head(MOST_RUNS).to_dicts()


@reads("curve.step", *(f"curve.{name}" for name in NAMES))
def phases(table: pl.DataFrame, title: str) -> Figure:
    """Draw losses on three samples, distances to strategies, and attention [TH Fig. 8.3, E.6]."""
    runs = _runs(table, ("curve.step", *(f"curve.{name}" for name in NAMES)))
    note = "One line per run. Horizontal: what the two strategies lose in distribution."
    note = f"{runs_made(table)}, {len(runs)} drawn. {note}"
    with framed(title, note, (11, 3.9), 1, 3, sharex=True) as (
        figure,
        ((loss, nearest, attention),),
    ):
        for run in runs:
            for sample, (_, colour) in LOSSES.items():
                _line(loss, run, f"{sample}_kl_truth", colour)
            for strategy, colour in STRATEGIES.items():
                _line(nearest, run, f"test_kl_{strategy}", colour)
            _line(attention, run, ATTENTION, INK)
        for strategy, dashes in (("unigram", (4, 2)), ("bigram", (1, 1.5))):
            level = float(np.mean([run[f"curve.test_kl_of_{strategy}"][0] for run in runs]))
            loss.axhline(level, color=INK, lw=0.9, dashes=dashes)
            across = loss.get_yaxis_transform()
            loss.text(1, level, strategy, transform=across, va="bottom", ha="right")
        _legend(loss, [(label, colour) for label, colour in LOSSES.values()])
        _legend(nearest, list(STRATEGIES.items()))
        loss.set_title("KL(truth ‖ network)", loc="left")
        nearest.set_title("KL(strategy ‖ network)", loc="left")
        attention.set_title("first layer on the previous token", loc="left")
        attention.set(xlabel="step", ylabel="attention above chance", ylim=(-0.05, 1.02))
        for panel in (loss, nearest):
            panel.set(xlabel="step", ylabel="KL at the last token, nats")
            panel.set_ylim(bottom=0)
    return figure


def _line(panel: Any, run: dict[str, Any], name: str, colour: str) -> None:
    panel.plot(run["curve.step"], run[f"curve.{name}"], color=colour, lw=1.0, alpha=0.75)


def _legend(panel: Any, entries: list[tuple[str, str]]) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=colour, label=label) for label, colour in entries]
    panel.legend(handles=lines, frameon=False, fontsize=8, loc="upper right")


@reads("curve.step", *(f"array.{name}" for name in MAPS))
def attention_maps(table: pl.DataFrame, title: str) -> Figure:
    """Draw where one run attends at some steps, for one input [TH Fig. 8.2, E.5]."""
    columns = tuple(f"array.{name}" for name in MAPS)
    runs = _runs(table, ("curve.step", *columns))
    steps, kept = runs[0]["curve.step"], [runs[0][column] for column in columns]
    maps = [np.reshape(m["values"], m["shape"]) for m in kept]  # (reading, position, token)
    shown = np.unique(np.linspace(0, len(steps) - 1, 5).round().astype(int))
    length = maps[0].shape[-1]
    note = f"Seed {runs[0]['seed']}; the last {length} positions of one held-out sequence."
    note = f"{runs_made(table)}, 1 drawn. {note}"
    size, shared = (2.1 * len(shown) + 1, 5.2), {"sharex": True, "sharey": True}
    with framed(title, note, size, 2, len(shown), **shared) as (figure, axes):
        for row, readings in zip(axes, maps, strict=True):
            top = readings[shown].max()  # the second layer spreads over many tokens
            for panel, place in zip(row, shown, strict=True):
                image = panel.imshow(readings[place], cmap="cividis", vmin=0, vmax=top)
                panel.tick_params(length=0, labelbottom=False, labelleft=False)
            figure.colorbar(image, ax=row, shrink=0.8, label="share of attention")
        for (above, below), place in zip(axes.T, shown, strict=True):
            above.set_title(f"step {steps[place]}", loc="left")
            below.set_xlabel("token")
        for number, row in enumerate(axes, start=1):
            row[0].set_ylabel(f"layer {number}\nposition")
    return figure
