"""HP's robust space as tables: success, time and growth, by architecture and batch size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.architectures import NAMES, in_order, with_architectures
from petridish.figures.panels import panels, quiet, span
from petridish.figures.style import GREY, INK, ORANGE, NothingToDraw, caption, sample_label

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
BATCH, INIT, LOSS = "training.batch_size", "init", "training.loss"
SHARE = 0.2  # what the paper asks of every combination
INITS = ("xavier", "uniform")  # the paper's «uniform» is Xavier's
CELL = 0.34  # inches


def robust_table(table: pl.DataFrame, title: str) -> Figure:
    """Draw success and time at the best learning rate, by architecture, k and batch size.

    The composition of HP's Figures B.4 (above: percent converged) and B.3 (below: 10th percentile
    of the time to converge), for the largest n, hinge loss and uniform initialisation.
    """
    from matplotlib.colors import LogNorm

    runs, init, loss = _standard(_named(table))
    n = int(runs["task.n"].max())  # type: ignore[arg-type] # a whole column
    runs = runs.filter(runs["task.n"] == n)
    rows, ks, batches = _axes(runs)
    cells = _best(runs)
    share = {k: _laid(cells, "share", rows, k, batches) for k in ks}
    time = {k: _laid(cells, "time", rows, k, batches) for k in ks}
    budget = int(runs["training.steps"].max())  # type: ignore[arg-type] # a whole column
    known = [t for part in time.values() for t in part.ravel() if math.isfinite(t)]
    slow = LogNorm(min([*known, budget / 10]), budget)
    across = len(ks) * (0.25 + CELL * len(batches))
    size = (max(7.5, 3.6 + across), 2.1 + 2 * (0.45 + 0.235 * len(rows)))
    with panels(2, len(ks), size, sharex=True, sharey=True) as (figure, axes):
        for column, k in enumerate(ks):
            above, below = axes[:, column]
            percent = _heat(above, share[k], _percent, "cividis", vmin=0, vmax=1)
            steps = _heat(below, time[k], _steps, "viridis_r", norm=slow)
            for panel, text in ((above, "converged"), (below, "time, 10th percentile")):
                panel.set_title(f"k = {k}: {text}" if column == 0 else f"k = {k}", loc="left")
            below.set_xlabel("batch size B")
        for panel in axes.ravel():
            panel.set_yticks(range(len(rows)), [_long(name) for name in rows], fontsize=7.5)
            panel.set_xticks(range(len(batches)), map(str, batches), fontsize=6.5)
            robust = sum(not name.startswith("(*") for name in rows)
            panel.axhline(robust - 0.5, color="white", lw=2.5)  # the less robust ones below
        _bar(figure, percent, axes[0], "share converged")
        _bar(figure, steps, axes[1], "steps")
        caption(
            figure,
            title,
            f"n = {n}, {loss} loss, {init} initialisation; {_made(runs)}; at most {budget:,} "
            f"steps. Every cell has its own best of {_rates(runs)}: the most often converged above "
            "(✓ all; orange: less than 20 %), the quickest below (–: less than a tenth converge).",
        )
    return figure


def robust_combinations(table: pl.DataFrame, title: str) -> Figure:
    """Draw success at the best learning rate for every initialisation and loss.

    Small multiples of the upper half of `robust_table`, at the largest n; a cross marks what stays
    below 20 %.
    """
    runs = _named(table)
    n = _most_crossed(runs)
    runs = runs.filter(runs["task.n"] == n)
    rows, ks, batches = _axes(runs)
    inits = sorted(set(runs[INIT]), key=lambda name: (name not in INITS, name))
    losses = sorted(set(runs[LOSS]), key=lambda name: (name != "hinge", name))
    cells = _best(runs)
    across = 3.4 + len(losses) * (0.3 + 0.105 * len(ks) * (len(batches) + 0.8))
    size = (max(7.5, across), 1.6 + len(inits) * (0.4 + 0.165 * len(rows)))
    with panels(len(inits), len(losses), size, sharex=True, sharey=True) as (figure, axes):
        figure.set_layout_engine("constrained", wspace=0.05)  # more than between two k
        gap = np.full((len(rows), 1), np.nan)
        for (row, column), panel in np.ndenumerate(axes):
            part = cells.filter((cells[INIT] == inits[row]) & (cells[LOSS] == losses[column]))
            parts = [_laid(part, "share", rows, k, batches) for k in ks]
            share = np.hstack([piece for each in parts for piece in (each, gap)][:-1])
            image = panel.imshow(share, aspect="auto", cmap="cividis", vmin=0, vmax=1)
            for y, x in np.argwhere(share < SHARE):
                panel.plot(x, y, "x", ms=3.2, mew=0.9, color=ORANGE)
            reach, made = int((share >= SHARE).sum()), int((~np.isnan(share)).sum())
            panel.set_title(f"{inits[row]}, {losses[column]}", loc="left", fontsize=9)
            panel.set_title(f"{reach} of {made}", loc="right", fontsize=8, fontweight="normal")
            quiet(panel)
            panel.set_yticks(range(len(rows)), rows, fontsize=6.5)
            panel.set_xticks(*_grouped(ks, batches), fontsize=6.5)
            if row == len(inits) - 1:
                panel.set_xlabel("batch size B, for each k", fontsize=8)
        _bar(figure, image, axes, "share converged")
        caption(
            figure,
            title,
            f"n = {n}; {_made(runs)}; at most {max(runs['training.steps']):,} steps. Every cell "
            f"has its own best of {_rates(runs)}. Crosses, and the count: cells below 20 %, and "
            "those that reach it. Batch sizes from left to right: "
            f"{', '.join(map(str, batches))}.",
        )
    return figure


def alpha_table(table: pl.DataFrame, title: str) -> Figure:
    """Draw the exponents of t ≤ c (n − 9)^α by architecture and k, coloured by α [HP Fig. B.5]."""
    from petridish.chapters.hidden.rules.exponents import ScalingTable, exhaustive_alpha, scalings

    runs, init, loss = _standard(_named(table))
    batches = sorted(set(runs[BATCH]))
    size = min(batches, key=lambda batch: abs(math.log(batch / 32)))
    smallest = int(runs["task.n"].min())  # type: ignore[arg-type] # a whole column
    entries = scalings(runs.filter(runs[BATCH] == size), smallest - 1)
    if not entries:
        raise NothingToDraw(
            "Growth needs two values of n, but these runs have one. Run the sweep to its end."
        )
    sizes = sorted(set(runs["task.n"]))
    rows = in_order({entry.architecture for entry in entries})
    ks = sorted({entry.k for entry in entries})
    alpha = np.full((len(rows), len(ks)), np.nan)
    texts = {}
    for entry in entries:
        place = rows.index(entry.architecture), ks.index(entry.k)
        alpha[place] = entry.alpha if math.isfinite(entry.alpha) else np.nan
        interval = f"[{_bound(entry.low(0.025))}, {_bound(entry.high(0.025))}]"
        texts[place] = (f"{entry.alpha:.2f}", f"{interval}  c = {_steps(entry.c)}")
    with panels(1, 1, (3.9 + 1.55 * len(ks), 1.9 + 0.36 * len(rows))) as (figure, axes):
        panel, top = axes[0, 0], max(2.0, float(np.nanmax(alpha, initial=0.0)))
        image = panel.imshow(alpha, aspect="auto", cmap="viridis_r", vmin=0, vmax=top)
        for (row, column), value in np.ndenumerate(alpha):
            style: Any = {"ha": "center", "va": "center"}
            if math.isnan(value):
                panel.text(column, row, "–", color=GREY, **style)
                continue
            style["color"] = "white" if value > 0.55 * top else INK
            large, small = texts[row, column]
            panel.text(column, row - 0.14, large, fontsize=9, **style)
            panel.text(column, row + 0.26, small, fontsize=5.8, **style)
        limits = [exhaustive_alpha(k, sizes, smallest - 1) for k in ks]
        labels = [f"k = {k}\n({limit:.2f})" for k, limit in zip(ks, limits, strict=True)]
        panel.set_xticks(range(len(ks)), labels)
        panel.set_yticks(range(len(rows)), [_long(name) for name in rows])
        quiet(panel)
        _bar(figure, image, panel, f"exponent α of n − {smallest - 1}")
        each = f"{span(entry.seeds for entry in entries)} seeds"
        if min(entry.seeds for entry in entries) < ScalingTable().fewest:
            each += ", too few: the intervals are too narrow"
        caption(
            figure,
            title,
            f"10th percentile of the time at the best of {_rates(runs)}: the least α with t ≤ "
            f"c (n − {smallest - 1})^α for n = {', '.join(map(str, sizes))}, where c is the time "
            f"at n = {smallest}. Small: 95 % interval, seeds drawn anew ({each}). B = {size},"
            f" {loss}, {init}. –: less than a tenth converge for some n. Below each k: the α of "
            "the number of candidates C(n, k).",
        )
    return figure


def _named(table: pl.DataFrame) -> pl.DataFrame:
    if table.is_empty():
        raise NothingToDraw("There are no runs to draw. Run the sweep first.")
    return with_architectures(table)


def _standard(runs: pl.DataFrame) -> tuple[pl.DataFrame, str, str]:
    """Keep the initialisation and the loss of the paper's figures, or the first there are."""
    init = min(set(runs[INIT]), key=lambda name: (name not in INITS, name != INITS[0], name))
    loss = min(set(runs[LOSS]), key=lambda name: (name != "hinge", name))
    return runs.filter((runs[INIT] == init) & (runs[LOSS] == loss)), init, loss


def _axes(runs: pl.DataFrame) -> tuple[list[str], list[int], list[int]]:
    rows = in_order(set(runs["architecture"]))
    return rows, sorted(set(runs["task.k"])), sorted(set(runs[BATCH]))


def _best(runs: pl.DataFrame) -> pl.DataFrame:
    """Compute the share converged and the time of each combination, each at its own best rate."""
    import polars as pl

    time = pl.col("solved_at").cast(pl.Float64).fill_null(math.inf).clip(1)
    keys = ["architecture", "task.k", BATCH, INIT, LOSS]
    return (
        runs.group_by(*keys, "training.learning_rate")
        .agg(
            share=(pl.col("outcome") == "SOLVED").mean(),
            time=time.sort().get(((pl.len() - 1) // 10).cast(pl.Int64)),
        )
        .group_by(keys)
        .agg(pl.col("share").max(), pl.col("time").min())
    )


def _most_crossed(runs: pl.DataFrame) -> int:
    """Return the n at which most combinations of start, loss and batch size were run."""
    made = runs.unique(["task.n", INIT, LOSS, BATCH]).group_by("task.n").len()
    return int(made.sort("len", "task.n")["task.n"][-1])


def _laid(
    cells: pl.DataFrame, value: str, rows: Sequence[str], k: int, batches: Sequence[int]
) -> Floats:
    """Lay one value out, architecture by batch size; NaN where nothing was run."""
    laid = np.full((len(rows), len(batches)), np.nan)
    part = cells.filter(cells["task.k"] == k)
    for name, batch, number in part.select("architecture", BATCH, value).iter_rows():
        laid[rows.index(name), batches.index(batch)] = number
    return laid


def _heat(panel: Any, values: Floats, text: Callable[[float], str], cmap: str, **scale: Any) -> Any:
    """Draw a table of numbers on colours; what is below the paper's share in orange."""
    shown = np.where(np.isfinite(values), values, np.nan)
    image = panel.imshow(shown, aspect="auto", cmap=cmap, **scale)
    success = "vmax" in scale
    for (row, column), value in np.ndenumerate(values):
        if math.isnan(value):
            continue
        level = 1.0 if math.isinf(value) else float(image.norm(value))
        dark = level < 0.55 if success else level > 0.5
        ink = "white" if dark and math.isfinite(value) else INK
        low = success and value < SHARE
        font = {"color": "#FFB07C", "fontweight": "bold"} if low else {"color": ink}
        panel.text(column, row, text(value), ha="center", va="center", fontsize=6.5, **font)
    quiet(panel)
    return image


def _bar(figure: Figure, image: Any, axes: Any, text: str) -> None:
    bar = figure.colorbar(image, ax=axes, shrink=0.85, pad=0.012, aspect=30)
    bar.set_label(text)
    bar.outline.set_visible(False)


def _long(name: str) -> str:
    return f"{NAMES[name]}  {name}" if name in NAMES else name


def _percent(share: float) -> str:
    return "✓" if share == 1 else f"{100 * share:.0f}"


def _steps(time: float) -> str:
    """Write a number of steps with two digits: 1234 is 1.2k."""
    if not math.isfinite(time):
        return "–"
    digits = max(0, math.floor(math.log10(max(time, 1))) - 1)
    return sample_label(round(time, -digits))


def _bound(number: float) -> str:
    return f"{number:.2f}" if math.isfinite(number) else ("−∞" if number < 0 else "∞")


def _grouped(ks: Sequence[int], batches: Sequence[int]) -> tuple[list[float], list[str]]:
    """Label groups of columns with a gap of one between them: first batch size, k, last."""
    ticks: list[tuple[float, str]] = []
    for group, k in enumerate(ks):
        first = group * (len(batches) + 1)
        last = first + len(batches) - 1
        if last - first > 1:
            ticks += [(first, str(batches[0])), (last, str(batches[-1]))]
        ticks.append(((first + last) / 2, f"k = {k}"))
    return [place for place, _ in ticks], [text for _, text in ticks]


def _rates(runs: pl.DataFrame) -> str:
    rates = sorted(set(runs["training.learning_rate"]))
    return f"η = {', '.join(f'{rate:g}' for rate in rates)}"


def _made(runs: pl.DataFrame) -> str:
    keys = ["architecture", "task", BATCH, INIT, LOSS, "training.learning_rate"]
    each = span(runs.group_by(keys).len()["len"])
    return f"{len(runs):,} runs, {each} for each rate"
