"""Filters of a residual network as points, at the start and after some epochs [FL Fig. 20]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.inputs.plane_figures import in_the_plane
from petridish.figures.panels import framed
from petridish.figures.style import BLUE, INK, ORANGE, NothingToDraw
from petridish.rules.columns import reads
from petridish.training import FilterWeights, read_cell
from petridish.training.weight_probes import clusters_of, unit_rows

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
STAGES = tuple(f"layer{stage}.1.conv2.weight" for stage in range(1, 5))
"""The last filters of each of the four stages."""
COLUMNS = tuple(f"array.filter_weights {stage}" for stage in STAGES)


def readings_of(kept: Any) -> Floats | None:
    """Return kept filters, shape (reading, filter, fan-in); None if a run kept none."""
    if kept is None or kept["values"] is None:
        return None
    return np.reshape(np.array(kept["values"], np.float64), kept["shape"])


def cluster_cosines(rows: Floats) -> tuple[tuple[float, float], float]:
    """Return the mean cosines of two clusters' filters with their centres, and of the centres.

    The clusters are those of k-means on directions, the centre of each its mean direction.
    """
    unit = unit_rows(rows)
    labels = clusters_of(unit, 2)
    centres = [unit[labels == label].mean(axis=0) for label in (0, 1)]
    centres = [centre / np.linalg.norm(centre) for centre in centres]
    own = [float((unit[labels == label] @ centres[label]).mean()) for label in (0, 1)]
    return (own[0], own[1]), float(centres[0] @ centres[1])


@reads("curve.step", *COLUMNS)
def filters_in_the_plane(table: pl.DataFrame, title: str) -> Any:
    """Draw the last filters of the four stages, in the colours of their clusters at the end."""
    there = [name for name in COLUMNS if name in table.columns]
    runs = table.filter(table[COLUMNS[0]].is_not_null()) if len(there) == len(COLUMNS) else None
    if runs is None or runs.is_empty():
        raise NothingToDraw("No run kept the filters of all stages. Run it as declared.")
    run = runs.sort("seed").row(0, named=True)
    note = (
        "One run. Multidimensional scaling of the distances 1 − cosine between filters, in the "
        "colours of two clusters by k-means at the end. The numbers are the mean cosines with the "
        "own centre, and the cosine between the centres, of these clusters."
    )
    with framed(title, note, (10.0, 12.5), len(COLUMNS), 3) as (figure, axes):
        for row, column, stage in zip(axes, COLUMNS, STAGES, strict=True):
            readings = readings_of(run[column])
            assert readings is not None, "of this run"
            labels = clusters_of(unit_rows(readings[-1]), 2)
            for panel, rows, step in zip(row, readings, _steps(run, stage), strict=True):
                unit = unit_rows(rows)
                points = in_the_plane(unit)
                for label, colour in ((0, ORANGE), (1, BLUE)):
                    panel.scatter(*points[labels == label].T, s=18, color=colour, alpha=0.7, lw=0)
                reach = 1.15 * max(float(np.abs(points).max(initial=0)), 1e-9)
                panel.set(xticks=[], yticks=[], aspect="equal")
                panel.set(xlim=(-reach, reach), ylim=(-reach, reach))
                spent = f"step {step:,}" if step else "start"
                panel.set_title(f"{stage.partition('.')[0]}: {spent}", loc="left", fontsize=8.5)
            (first, second), between = cluster_cosines(readings[-1])
            said = f"{first:.2f}, {second:.2f}; {between:.2f}"
            row[-1].set_title(said, loc="right", fontsize=8.5, color=INK)
    return figure


def _steps(run: dict[str, Any], stage: str) -> tuple[int, ...]:
    gauges = read_cell(run["cell"]).evaluation.gauges
    kept = next(each for each in gauges if isinstance(each, FilterWeights) and each.of == stage)
    assert kept.at is not None, "as declared"
    return kept.at
