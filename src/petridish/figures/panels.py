"""What figures of many panels share: how they are set up, labelled and annotated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.figures.style import NothingToDraw, caption, house_style
from petridish.rules.columns import NO_CURVES, missing_curves

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


@contextmanager
def panels(
    down: int, across: int, size: tuple[float, float], **shared: Any
) -> Iterator[tuple[Figure, Any]]:
    """Yield a figure in the house style and its panels, shape (down, across)."""
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=size, layout="constrained")
        yield figure, figure.subplots(down, across, squeeze=False, **shared)


@contextmanager
def framed(
    title: str, note: str, size: tuple[float, float], down: int = 1, across: int = 1, **shared: Any
) -> Iterator[tuple[Figure, Any]]:
    """Yield what `panels` does, and write a title above and a note below."""
    with panels(down, across, size, **shared) as (figure, axes):
        yield figure, axes
        caption(figure, title, note)


@contextmanager
def tiles(
    count: int,
    most_across: int,
    *,
    tile: tuple[float, float],
    margin: tuple[float, float],
    labels: tuple[str, str],
    **shared: Any,
) -> Iterator[tuple[Figure, Any]]:
    """Yield a figure and its `count` panels in rows, `labels` below and beside the outer ones."""
    across = min(most_across, count)
    down = -(-count // across)
    size = (margin[0] + tile[0] * across, margin[1] + tile[1] * down)
    with panels(down, across, size, **shared) as (figure, axes):
        every = axes.ravel()
        for panel in every[count:]:
            panel.set_visible(False)
        for panel in every[:count:across]:
            panel.set_ylabel(labels[1])
        for panel in every[max(0, count - across) : count]:
            panel.set_xlabel(labels[0])
            panel.tick_params(labelbottom=True)
        yield figure, every[:count]


def with_curves(table: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Keep the runs that have curves; refuses a table without any, or without those named."""
    if missing := missing_curves(table, *names):
        remedy = " Run them with --set evaluation.curves=true to draw them."
        raise NothingToDraw(
            f"{missing[0].upper()}{missing[1:]}.{remedy if missing == NO_CURVES else ''}"
        )
    return table.filter(table["curve.step"].is_not_null())


def corner(panel: Any, text: str, *, top: bool = True, right: bool = True, **style: Any) -> None:
    """Write a text into a corner of a panel."""
    panel.text(
        0.97 if right else 0.03,
        0.97 if top else 0.05,
        text,
        transform=panel.transAxes,
        ha="right" if right else "left",
        va="top" if top else "bottom",
        **{"fontsize": 8, **style},
    )


def hatch(panel: Any, column: int, row: int, **style: Any) -> None:
    """Hatch a cell of a map, by the style of a `matplotlib.patches.Rectangle`."""
    from matplotlib.patches import Rectangle

    panel.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, lw=0, zorder=2, **style))


def runs_made(table: pl.DataFrame) -> str:
    """Return the tasks of a table and the number of its runs, for a caption."""
    tasks = table["task"].unique().sort().to_list()
    named = ", ".join(tasks) if len(tasks) < 4 else f"{len(tasks)} tasks"
    return f"{named}; {len(table):,} runs"


def span(values: Iterable[float]) -> str:
    """Write the range of some numbers: «5» where all are equal, else «5 to 8»."""
    found = sorted(values)
    return f"{found[0]:,}" if found[0] == found[-1] else f"{found[0]:,} to {found[-1]:,}"


def outer_legend(figure: Figure, axes: Any) -> None:
    """Put one legend beside the panels, with every label of theirs once."""
    found: dict[str, Any] = {}
    for panel in np.ravel(axes):
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(list(found.values()), list(found), loc="outside right center", frameon=False)


def quiet(panel: Any) -> None:
    """Draw no axes and no ticks, as beside a table of colours."""
    panel.spines[:].set_visible(False)
    panel.tick_params(length=0)
