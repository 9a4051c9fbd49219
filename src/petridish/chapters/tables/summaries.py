"""Tables of errors and times: PF's Table 2 beside ours, means by method, seconds of a fit.

Errors are fractions in a table of runs and percent here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from petridish.chapters.tables.paired_errors import (
    SAMPLES,
    TASK,
    Errors,
    best_errors,
    errors_of,
    size_classes,
    with_families,
)
from petridish.chapters.tables.rules import FOREST, MLP
from petridish.statistics.paired import average_ranks, medians

if TYPE_CHECKING:
    import polars as pl

    from petridish.tasks.table_files import Published

FRACTIONS = {"full": 1.0, "10 %": 0.1, "1 %": 0.01}  # of the training part, nine rows in ten
TRAINING_PART = 0.9


def table_2(
    runs: pl.DataFrame, reference: Mapping[str, Published], *, within: float = 1.5
) -> pl.DataFrame:
    """Set our best MLP and best forest beside the source's Table 2.

    Parameters
    ----------
    runs : DataFrame
        One row a run.
    reference : mapping of str to Published
        The source's numbers by task, in its order.
    within : float
        Of each fraction of a table's training rows the nearest m counts, if it is off by this
        factor at most; where there is none, there is no row.

    Returns
    -------
    table : DataFrame
        One row a fraction and task. Errors in %, the least median over trials among all
        configurations, chosen in hindsight as in the source; m and the largest number of trials of
        our runs. The source's m beside ours says where our table is but a part of its own.
    """
    import polars as pl

    from petridish.tasks.table_files import BENCHMARK

    errors = errors_of(runs) if len(runs) else None
    ours = dict(runs.select(TASK, "task.rows").unique().sort(TASK).iter_rows())
    theirs = {table.name: table.rows for table in BENCHMARK}
    columns = {"task": pl.String, "fraction": pl.String, "trials": pl.Int64}
    columns |= {"m": pl.Int64, "m (paper)": pl.Int64}
    for label in ("MLP", "forest"):
        columns |= {label: pl.Float64, f"{label} (paper)": pl.Float64}
    rows = []
    for place, (name, fraction) in enumerate(FRACTIONS.items()):
        for task, printed in reference.items():
            wanted = fraction * TRAINING_PART * ours.get(task, math.nan)
            cell = None if errors is None else _nearest(errors, task, wanted, within)
            if cell is None or errors is None:
                continue
            found = _least_medians(errors, cell)
            rows.append(
                {
                    "task": task,
                    "fraction": name,
                    "trials": int(found["trials"]),
                    "m": int(found["m"]),
                    "m (paper)": round(fraction * TRAINING_PART * theirs[task]),
                    "MLP": found.get(MLP),
                    "MLP (paper)": printed.mlp[place],
                    "forest": found.get(FOREST),
                    "forest (paper)": printed.forest[place],
                }
            )
    return pl.DataFrame(rows, schema=columns)


def _nearest(errors: Errors, task: str, wanted: float, within: float) -> int | None:
    """Give the cell of a task whose m is nearest to the one wanted, if it is near."""
    off = {
        place: abs(math.log(m / wanted))
        for place, (other, m) in enumerate(errors.cells)
        if other == task
    }
    best = min(off, key=lambda place: off[place], default=None)
    return best if best is not None and off[best] <= math.log(within) + 1e-9 else None


def _least_medians(errors: Errors, cell: int) -> dict[str, float]:
    """Give a cell's m, its trials, and each family's least median in %."""
    error = errors.error[cell]
    found = {"m": errors.cells[cell][1], "trials": float((~np.isnan(error)).sum(axis=1).max())}
    for family in errors.families:
        least = float(medians(error[errors.of(family)]).min())
        if math.isfinite(least):
            found[family] = round(100 * least, 2)
    return found


def mean_errors(runs: pl.DataFrame) -> pl.DataFrame:
    """Give the mean test error in % of every family, by sample size, with its average rank.

    A family is represented by its best configuration at each task and m, by the median over trials
    that do not measure it (`crossed_best`). Every task weighs the same. The rank is the average
    over tasks, 1 for the least error. Blank where a family was not run in every cell of the class;
    sizes that not every task has are marked, as their means are over other tasks. Sorted by the
    mean over all cells.
    """
    import polars as pl

    best = best_errors(runs)
    columns: dict[str, list[float | None]] = {}
    classes = {**size_classes(best.cells), "all m": list(range(len(best.cells)))}
    count = len({task for task, _ in best.cells})
    for name, places in classes.items():
        there, tasks, means = best.on_tasks(places)
        label = name if len(tasks) == count else f"{name} ({len(tasks)} of {count} tasks)"
        columns[label] = [None] * len(best.families)
        columns[f"rank, {label}"] = [None] * len(best.families)
        ranks = average_ranks(means) if there else ()
        for family, mean, rank in zip(there, 100 * means.mean(axis=0), ranks, strict=True):
            columns[label][family] = round(float(mean), 2)
            columns[f"rank, {label}"][family] = round(float(rank), 2)
    table = pl.DataFrame(
        {"method": best.families, "configurations": best.configurations, **columns},
        schema_overrides=dict.fromkeys(columns, pl.Float64),
    )
    return table.sort("all m", "method", nulls_last=True)


def fit_seconds(runs: pl.DataFrame) -> pl.DataFrame:
    """Give the median time of a fit by family, width and sample size, with the number of fits."""
    import polars as pl

    cells: list[tuple[str, float]] = sorted(set(runs.select(TASK, SAMPLES).iter_rows()))
    classes = size_classes(cells)
    label = {cells[place]: name for name, places in classes.items() for place in places}
    names = [label[cell] for cell in runs.select(TASK, SAMPLES).iter_rows()]
    return (
        with_families(runs)
        .with_columns(pl.Series("size", names, dtype=pl.Enum(list(classes))))
        .group_by("family", "model.width", "size")
        .agg(fits=pl.len().cast(pl.Int64), seconds=pl.col("seconds").median().round(4))
        .sort("family", "model.width", "size")
        .with_columns(pl.col("size").cast(pl.String))
        .rename({"family": "method", "model.width": "width", "size": "training rows"})
    )
