"""Curves around the threshold, and attention at [CLS] [TH Fig. 4.3]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from petridish.figures.panels import framed
from petridish.figures.style import BLUE, GREY, ORANGE, NothingToDraw
from petridish.rules.columns import reads
from petridish.sweeps.arms import arm_names, by_arm

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

ORDER = ("below", "at the threshold", "above", "m = 50", "m = 200")


@reads("curve.step", "curve.test_error", "curve.train_error")
def best_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw validation accuracy over steps, of each data set the start with the highest."""
    import numpy as np

    there = arm_names(table)
    arms = [name for name in ORDER if name in there]
    kept = by_arm(table, *arms)
    kept = kept.filter(kept["curve.step"].list.len() > 0)
    if not len(kept) or not arms:
        raise NothingToDraw("These runs kept no curves.")
    note = (
        "Held-out accuracy of each data set's best start (blue: above 0.99 at some time), and the "
        "training accuracy of the same start (grey); without dropout."
    )
    with framed(title, note, (2.3 * len(arms), 3.1), 1, len(arms), sharey=True) as (
        figure,
        (panels,),
    ):
        for panel, name in zip(panels, arms, strict=True):
            own = kept.filter(kept["arm"] == name)
            won = 0
            for (_,), starts in own.group_by("seed", maintain_order=True):
                accuracy = [1 - np.array(errors) for errors in starts["curve.test_error"]]
                best = int(np.argmax([line.max() for line in accuracy]))
                steps = np.array(starts["curve.step"][best])
                learned = bool(accuracy[best].max() > 0.99)
                won += learned
                within = 1 - np.array(starts["curve.train_error"][best])
                panel.plot(steps, within, color=GREY, lw=0.5, alpha=0.5, zorder=1)
                panel.plot(
                    steps, accuracy[best], color=BLUE if learned else ORANGE, lw=0.9, alpha=0.8
                )
            total = own["seed"].n_unique()
            panel.set_title(f"{name}\nm = {own['data.m'][0]:g}: {won} of {total}", fontsize=9)
            panel.set(xlabel="steps")
        panels[0].set(ylabel="accuracy", ylim=(0.4, 1.02))
    return figure


@reads("array.cls_attention_map", "curve.step")
def attention_of_cls(table: pl.DataFrame, title: str) -> Figure:
    """Draw the attention of [CLS] in one network, one mark per example and token."""
    import numpy as np

    own = by_arm(table, "one head")
    own = own.filter(own["outcome"] != "DIVERGED")
    column = "array.cls_attention_map"
    if column not in own.columns or own[column].null_count() == len(own):
        raise NothingToDraw("No run kept its attention.")
    row = own.filter(own[column].is_not_null()).sort("seed").row(0, named=True)
    readings = np.reshape(np.array(row[column]["values"], np.float64), row[column]["shape"])
    read = readings[~np.isnan(readings).all(axis=(1, 2, 3))]  # (reading, example, head, token)
    shares = read[-1].mean(axis=1)
    tokens = shares.shape[1]
    note = (
        f"Seed {row['seed']}, {len(shares)} held-out examples, one mark for each and each token; "
        "the last token is [CLS] itself. Blue: relevant bits."
    )
    support = {int(place) for place in row["task.support"] or ()}
    with framed(title, note, (7, 3.4)) as (figure, ((panel,),)):
        for place in range(tokens):
            colour = BLUE if place in support else ORANGE if place == tokens - 1 else GREY
            panel.plot(
                np.full(len(shares), place), shares[:, place], ".", color=colour, ms=3, alpha=0.4
            )
        panel.set(xlabel="token", ylabel="share of attention", ylim=(-0.02, 1.02))
    return figure
