"""HP's finite samples, curve by curve and class by class; and what depth can learn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.chapters.hidden.rules.grokking import CELL, DECAY
from petridish.figures.curves import NOTE
from petridish.figures.heat_map import CLASS_COLOURS
from petridish.figures.panels import corner, panels, quiet, span, with_curves
from petridish.figures.style import BLUE, GREY, INK, ORANGE, NothingToDraw, caption, sample_label
from petridish.rules.columns import curve_columns, reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MOST_CURVES = 5  # per panel, as in HP's Figure B.11
SHARE = 0.2  # of the runs grok: the band of `GrokkingBand`


@reads(*curve_columns("train_error", "test_error"))
def grokking_grid(table: pl.DataFrame, title: str) -> Figure:
    """Draw training and test error over steps, one panel per sample size and weight decay.

    The composition of HP's Figure B.11: m falls from left to right, λ rises downwards, up to five
    runs per panel. A panel's corner says how many of its runs are solved, all of them counted.
    """
    kept = with_curves(table)
    rows, samples = _decays(table), _samples(table)
    drawn = kept.partition_by(CELL, as_dict=True)
    everyone = table.partition_by(CELL, as_dict=True)
    size = (max(7.5, 0.9 + 1.75 * len(samples)), 1.3 + 1.25 * len(rows))
    shape = len(rows), len(samples)
    with panels(*shape, size, sharex=True, sharey=True) as (figure, axes):
        for (row, column), panel in np.ndenumerate(axes):
            key = (*rows[row], samples[column])
            panel.set_xscale("log")
            panel.set_ylim(-0.03, 0.68)
            panel.set_yticks([0, 0.5])
            if key in drawn:
                _curves(panel, drawn[key])
            if key in everyone:
                share = (everyone[key]["outcome"] == "SOLVED").sum() / len(everyone[key])
                corner(panel, f"{100 * share:.0f} %", fontweight="bold")
            if row == 0:
                panel.set_title(f"m = {sample_label(samples[column])}", loc="left", fontsize=9)
            if row == len(rows) - 1:
                panel.set_xlabel("step")
            if column == 0:
                panel.set_ylabel(_row_name(table, rows[row], rows), fontsize=8.5)
        caption(
            figure,
            title,
            f"{_made(table)}; at most {MOST_CURVES} runs drawn per panel. Errors against steps. "
            f"{NOTE} Right corner: percent solved, of all runs.",
        )
    return figure


@reads()
def grokking_map(table: pl.DataFrame, title: str) -> Figure:
    """Draw what became of the runs at each sample size and weight decay, and where they grok.

    In the places of `grokking_grid`: m falls from left to right, λ rises downwards. A cell's bar
    has the shares of the four classes; cells in which a fifth of the runs grok have a frame, and
    their percentage.
    """
    from matplotlib.patches import Patch, Rectangle
    from matplotlib.patheffects import withStroke

    from petridish.rules.outcome_classes import CLASSES, DELAY, with_classes

    rows, samples = _decays(table), _samples(table)
    halo = [withStroke(linewidth=2.5, foreground="white", alpha=0.8)]
    counts: dict[tuple[Any, ...], dict[str, int]] = {}
    groups = with_classes(table).group_by(*CELL, "class").len()
    for *place, name, number in groups.iter_rows():
        counts.setdefault(tuple(place), {})[name] = number
    size = (max(7.5, 3.0 + 0.72 * len(samples)), 1.5 + 0.52 * len(rows))
    with panels(1, 1, size) as (figure, axes):
        panel = axes[0, 0]
        for row, key in enumerate(rows):
            for column, m in enumerate(samples):
                cell = counts.get((*key, m), {})
                made, left = sum(cell.values()), column - 0.46
                for name, colour in zip(CLASSES, CLASS_COLOURS, strict=True):
                    if number := cell.get(name, 0):
                        width = 0.92 * number / made
                        panel.add_patch(Rectangle((left, row - 0.4), width, 0.8, fc=colour, lw=0))
                        left += width
                grokking = cell.get(CLASSES[1], 0)
                if made and grokking >= SHARE * made:
                    box = (column - 0.47, row - 0.42)
                    frame = Rectangle(box, 0.94, 0.84, fill=False, ec=INK, lw=1.8, zorder=3)
                    panel.add_patch(frame)
                    text = f"{100 * grokking / made:.0f} %"
                    centred: Any = {"ha": "center", "va": "center", "fontsize": 8, "zorder": 4}
                    panel.text(column, row, text, path_effects=halo, **centred)
        panel.set_xlim(-0.55, len(samples) - 0.45)
        panel.set_ylim(len(rows) - 0.45, -0.55)
        panel.set_xticks(range(len(samples)), [sample_label(m) for m in samples])
        panel.set_yticks(range(len(rows)), [_row_name(table, key, rows) for key in rows])
        panel.set_xlabel("sample size m")
        quiet(panel)
        colours = zip(CLASSES, CLASS_COLOURS, strict=True)
        handles = [Patch(fc=colour, label=name) for name, colour in colours]
        figure.legend(handles=handles, loc="outside right center", frameon=False)
        caption(
            figure,
            title,
            f"{_made(table)}. Grokked: solved at least {DELAY:g} times later than the sample was "
            f"fitted; framed where {SHARE:.0%} of the runs or more do.",
        )
    return figure


def depth_table(table: pl.DataFrame, title: str) -> Figure:
    """Draw the success of deep squares by number of layers and k, end to end and greedy.

    The line is the degree 2^(L−1) that L layers of squares can reach [HP App. B.3.7].
    """
    from petridish.chapters.hidden.rules.depth import with_depth

    runs = with_depth(table)
    if runs.is_empty():
        raise NothingToDraw(
            "There are no runs of networks of squares. Give models such as "
            "mlp(2, (1,), power(2), linear)."
        )
    layers, ks = sorted(set(runs["depth"])), sorted(set(runs["task.k"]))
    models = {
        depth: " / ".join(sorted(set(runs.filter(runs["depth"] == depth)["model"])))
        for depth in layers
    }
    sides = [
        (name, runs.filter(runs["greedy"] == greedy))
        for name, greedy in (("end to end", False), ("greedy, layer by layer", True))
    ]
    size = (max(7.5, 2.4 + 2 * (0.3 + 0.62 * len(ks))), 2.0 + 0.62 * len(layers))
    with panels(1, 2, size, sharey=True) as (figure, axes):
        for panel, (name, part) in zip(axes[0], sides, strict=True):
            image = _depths(panel, part, layers, ks)
            panel.set_title(name, loc="left")
            panel.set_xlabel("bits of the parity, k")
            if part.is_empty():
                panel.text(0.5, 0.5, "not run", transform=panel.transAxes, ha="center", color=GREY)
        axes[0, 0].set_yticks(range(len(layers)), [f"L = {depth}" for depth in layers])
        bar = figure.colorbar(image, ax=axes, shrink=0.9, pad=0.015)
        bar.set_label("share solved")
        bar.outline.set_visible(False)
        named = "; ".join(f"L = {depth}: {models[depth]}" for depth in layers)
        caption(
            figure,
            title,
            f"{_tasks(table)}; {len(runs):,} runs; at most {max(runs['training.steps']):,} steps. "
            "Percent solved (✓ all) over the mean test error. Orange: the degree 2^(L−1) that L "
            f"layers can reach. {named}.",
        )
    return figure


def _depths(panel: Any, runs: pl.DataFrame, layers: list[int], ks: list[int]) -> Any:
    share, error = (np.full((len(layers), len(ks)), np.nan) for _ in range(2))
    for (depth, k), part in runs.partition_by("depth", "task.k", as_dict=True).items():
        place = layers.index(depth), ks.index(k)
        share[place], error[place] = part["solved"].mean(), part["test_error"].mean()
    image = panel.imshow(share, aspect="auto", cmap="cividis", vmin=0, vmax=1)
    for (row, column), value in np.ndenumerate(share):
        if math.isnan(value):
            continue
        ink = INK if value > 0.55 else "white"
        text = "✓" if value == 1 else f"{100 * value:.0f}"
        panel.text(column, row - 0.1, text, ha="center", va="center", color=ink)
        small = f"{error[row, column]:.2f}"
        panel.text(column, row + 0.28, small, ha="center", va="center", color=ink, fontsize=6.5)
    # A staircase: left of it k is at most 2^(L−1); out of sight where every k is.
    within = [sum(k <= 2 ** (depth - 1) for k in ks) for depth in layers]
    steps = [number - 0.5 + (number == len(ks)) for number in within]
    x = [step for step in steps for _ in range(2)]
    y = [row + side for row in range(len(layers)) for side in (-0.5, 0.5)]
    panel.plot(x, y, color="white", lw=3.2, zorder=3, solid_joinstyle="miter")
    panel.plot(x, y, color=ORANGE, lw=1.8, zorder=4, solid_joinstyle="miter")
    panel.set_xlim(-0.5, len(ks) - 0.5)
    panel.set_ylim(len(layers) - 0.5, -0.5)
    panel.set_xticks(range(len(ks)), [str(k) for k in ks])
    quiet(panel)
    return image


def _decays(table: pl.DataFrame) -> list[tuple[str, float]]:
    if table.is_empty():
        raise NothingToDraw("There are no runs to draw. Run the sweep first.")
    return sorted(set(table.select("task", DECAY).iter_rows()))


def _samples(table: pl.DataFrame) -> list[float]:
    return sorted(set(table["data.m"]), reverse=True)


def _row_name(table: pl.DataFrame, key: tuple[str, float], rows: list[tuple[str, float]]) -> str:
    from petridish.chapters.hidden.rules.grokking import printed_decay

    task, decay = key
    several = len({name for name, _ in rows}) > 1
    text = f"λ = {printed_decay(table, decay):g}"
    return f"{task}\n{text}" if several else text


def _curves(panel: Any, runs: pl.DataFrame) -> None:
    for run in runs.sort("seed").head(MOST_CURVES).iter_rows(named=True):
        steps, train, test = (  # step 0 has no place on a logarithmic axis
            run[f"curve.{name}"][1:] for name in ("step", "train_error", "test_error")
        )
        panel.plot(steps, train, color=GREY, lw=0.7, alpha=0.7)
        colour = BLUE if run["outcome"] == "SOLVED" else ORANGE
        panel.plot(steps, test, color=colour, lw=0.95, alpha=0.9)


def _tasks(table: pl.DataFrame) -> str:
    tasks = sorted(set(table["task"]))
    if len(tasks) < 4:
        return ", ".join(tasks)
    sizes = ", ".join(map(str, sorted(set(table["task.n"]))))
    return f"{len(tasks)} parities, n = {sizes}"


def _made(table: pl.DataFrame) -> str:
    each = span(table.group_by(CELL).len()["len"])
    steps = max(table["training.steps"])
    return (
        f"{_tasks(table)}; {len(table):,} runs, {each} per cell; at most {steps:,} steps; λ as in "
        "HP's Eq. 5.1, η times the runs' weight decay"
    )
