"""Figures of IH-3: weights of the minimal model, and its first two steps beside the exact ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.induction.figures import rows_of, runs_with
from petridish.chapters.induction.measures import OF_GAP, gaps_of
from petridish.figures.panels import framed, runs_made
from petridish.figures.style import GREEN, INK, ORANGE
from petridish.rules.columns import reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
ARRAYS = ("array.key_matrix", "array.attention1_positions")
BEGUN = 0.75  # gaps above bigrams: the model has begun to use them


def _kept(run: dict[str, Any], column: str) -> Floats:
    return np.reshape(run[column]["values"], run[column]["shape"])


def matrix(panel: Any, values: Floats) -> None:
    """Draw W_k as a heat map, with its numbers if it is small."""
    panel.imshow(values, cmap="cividis", vmin=min(0.0, values.min()))
    panel.set(xticks=range(len(values)), yticks=range(len(values)))
    panel.set(xlabel="token x_s", ylabel="token x_p")
    middle = (min(0.0, values.min()) + values.max()) / 2
    if len(values) <= 4:
        for row, entries in enumerate(values):
            for column, entry in enumerate(entries):
                colour = "white" if entry < middle else "black"
                panel.text(column, row, f"{entry:.3g}", ha="center", va="center", color=colour)


@reads(*OF_GAP, *ARRAYS)
def minimal_weights(table: pl.DataFrame, title: str) -> Figure:
    """Draw W_k and v of one run early, when bigrams begin, and in the end [TH Fig. 8.4b]."""
    _, (run, *_) = rows_of(table, (*OF_GAP, *ARRAYS))[0]
    keys, positions = (_kept(run, column) for column in ARRAYS)
    ((steps, gaps),) = gaps_of(table.filter(table["key"] == run["key"]).head(1))
    begun = np.flatnonzero(gaps[2:] <= BEGUN) + 2
    shown = (1, int(begun[0]) if len(begun) else len(gaps) - 1, len(gaps) - 1)
    note = f"{runs_made(table)}, 1 drawn: seed {run['seed']}. The middle one: the first evaluation "
    note += f"after the second at which the loss is at most {BEGUN:g} gaps above that of bigrams."
    with framed(title, note, (9.5, 5.6), 2, len(shown)) as (figure, axes):
        for place, (above, below) in zip(shown, axes.T, strict=True):
            matrix(above, keys[place])
            above.set_title(f"W_k, step {steps[place]:.0f}", loc="left")
            v = positions[place]
            faces = [ORANGE if back % 2 else "white" for back in range(len(v))]
            below.bar(range(len(v)), v, color=faces, edgecolor=ORANGE, lw=1)
            below.set_title("v", loc="left")
            below.set_xlabel("tokens back")
    return figure


@reads("curve.step", "training.learning_rate", *ARRAYS)
def first_steps(table: pl.DataFrame, title: str) -> Figure:
    """Draw two steps on the margin loss beside the exact ones [TH Fig. E.1, E.2]."""
    import polars as pl

    from petridish.theory.induction.population_gradients import (
        constant_start,
        coupling,
        flat_chains,
        from_diagonal,
        step,
    )

    lemma = table.filter(pl.col("training.loss").str.starts_with("multi_margin"))
    run = runs_with(lemma, ("curve.step", *ARRAYS))[0]
    keys, positions = (_kept(run, column) for column in ARRAYS)  # (step, …)
    t, rate = positions.shape[1], run["training.learning_rate"]
    tensor = coupling(t, flat_chains())
    exact = [constant_start(t, float(positions[0, 0]))]
    for _ in range(2):
        exact.append(step(exact[-1], tensor, rate))
    note = (
        f"{runs_made(lemma)}, 1 drawn: seed {run['seed']}, {run['training.batch_size']} sequences "
    )
    note += f"a step, η = {rate:g}, t = {t}. Lines: exact expectations. Even j are filled."
    j = np.arange(1, t + 1)
    first = slice(0, min(t, 24))
    with framed(title, note, (11, 5.8), 2, 2) as (figure, ((key, one), (two, diagonal))):
        matrix(key, keys[1])
        value = exact[1].key
        text = f"W_k after one step; exact {value[0, 0]:.3g} and {value[0, 1]:.3g}"
        key.set_title(text, loc="left")
        one.plot(j, positions[1], "o", color=ORANGE, ms=3)
        one.plot(j, exact[1].positions, color=INK, lw=1)
        one.set_title("v after one step", loc="left")
        bars = positions[2, first] - positions[1, first]
        faces = [ORANGE if place % 2 == 0 else "white" for place in j[first]]
        two.bar(j[first], bars / rate, color=faces, edgecolor=ORANGE, lw=1)
        moved = (exact[2].positions - exact[1].positions) / rate
        two.plot(j[first], moved[first], color=INK, lw=1)
        two.set_title("gradient of v at the second step", loc="left")
        h = from_diagonal(tensor)[first]
        share = (value[0, 0] - value[0, 1]) * h
        diagonal.bar(
            j[first],
            share,
            color=[GREEN if p % 2 == 0 else "white" for p in j[first]],
            edgecolor=GREEN,
            lw=1,
        )
        diagonal.set_title("of it, what comes from the diagonal of W_k (exact)", loc="left")
        for panel in (one, two, diagonal):
            panel.set_xlabel("j (1: the token itself)")
    return figure
