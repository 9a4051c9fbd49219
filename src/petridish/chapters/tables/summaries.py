"""Tables of errors and times: PF's Table 2 beside ours, means by method, seconds of a fit.

Errors are fractions in a table of runs and percent here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from petridish.chapters.tables.error_arrays import (
    SAMPLES,
    TASK,
    Errors,
    best_errors,
    errors_of,
    with_families,
)
from petridish.statistics.intervals import median_interval
from petridish.statistics.paired import average_ranks, medians
from petridish.statistics.shared_trials import size_classes

if TYPE_CHECKING:
    import polars as pl

    from petridish.chapters.tables.published import Published

FRACTIONS = {"full": 1.0, "10 %": 0.1, "1 %": 0.01}  # of the training part, nine rows in ten
TRAINING_PART = 0.9
QUOTED = "Grinsztajn"


def table_2(
    runs: pl.DataFrame, reference: Mapping[str, Published], *, within: float = 1.5
) -> pl.DataFrame:
    """Set our best MLP and best forest beside the paper's Table 2.

    Parameters
    ----------
    runs : DataFrame
        One row per run.
    reference : mapping of str to Published
        The paper's numbers by task, in its order.
    within : float
        For each fraction of a table's training rows the nearest m counts, if it is off by at most
        this factor; else there is no row.

    Returns
    -------
    table : DataFrame
        One row per fraction and task. Errors in %, the least median over trials among all
        configurations, chosen in hindsight as in the paper, with the 95 % interval of that
        configuration's median by order statistics (from six trials on; the paper's, by bootstrap,
        are narrower than 2 points); m and the largest number of trials of
        our runs. The paper's m beside ours shows where our table is only a part of theirs. The
        last columns are what it quotes of Grinsztajn et al. for whole tables.
    """
    import polars as pl

    from petridish.tasks.benchmark_tables import BENCHMARK

    errors = errors_of(runs) if len(runs) else None
    ours = dict(runs.select(TASK, "task.rows").unique().sort(TASK).iter_rows())
    theirs = {table.name: table.rows for table in BENCHMARK}
    columns = {"task": pl.String, "fraction": pl.String, "trials": pl.Int64}
    columns |= {"m": pl.Int64, "m (paper)": pl.Int64}
    for label in ("MLP", "forest"):
        columns |= {name: pl.Float64 for name in (label, f"{label} low", f"{label} high")}
        columns[f"{label} (paper)"] = pl.Float64
    columns |= {f"{label} ({QUOTED})": pl.Float64 for label in ("MLP", "forest", "best")}
    rows = []
    for place, (name, fraction) in enumerate(FRACTIONS.items()):
        for task, printed in reference.items():
            wanted = fraction * TRAINING_PART * ours.get(task, math.nan)
            cell = None if errors is None else _nearest(errors, task, wanted, within)
            if cell is None or errors is None:
                continue
            trials = int((~np.isnan(errors.error[cell])).sum(axis=1).max())
            theirs_m = round(fraction * TRAINING_PART * theirs[task])
            mlp = (*_least_median(errors, cell, "mlp"), printed.mlp[place])
            forest = (*_least_median(errors, cell, "random_forest"), printed.forest[place])
            m = int(errors.samples[cell])
            quoted = (printed.tuned_mlp, printed.tuned_forest, printed.best)
            row = (task, name, trials, m, theirs_m, *mlp, *forest)
            rows.append((*row, *(quoted if fraction == 1 else (None, None, None))))
    return pl.DataFrame(rows, schema=columns, orient="row")


def _nearest(errors: Errors, task: str, wanted: float, within: float) -> int | None:
    """Return the cell of a task whose m is nearest to the one wanted, if it is near."""
    off = {
        place: abs(math.log(m / wanted))
        for place, (other, m) in enumerate(errors.cells)
        if other == task
    }
    best = min(off, key=lambda place: off[place], default=None)
    return best if best is not None and off[best] <= math.log(within) + 1e-9 else None


def _least_median(errors: Errors, cell: int, family: str) -> list[float | None]:
    """Return a family's least median in a cell with its interval, in %; None where there is none.

    The interval is that of the configuration chosen; that it was chosen is not in it.
    """
    runs = errors.error[cell, errors.of(family)]  # (configuration, trial)
    found = medians(runs)
    if not np.isfinite(found).any():
        return [None, None, None]
    best = int(np.where(np.isfinite(found), found, np.inf).argmin())
    ends = median_interval(runs[best][~np.isnan(runs[best])], 0.95)
    return [round(100 * x, 2) if math.isfinite(x) else None for x in (float(found[best]), *ends)]


def mean_errors(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the mean test error in % of every family, by sample size, with its average rank.

    A family is represented by its best configuration at each task and m, by the median over trials
    that do not measure it (`crossed_best`). Every task weighs the same. The rank is the average
    over tasks, 1 for the least error. Blank where a family was not run in every cell of the class;
    sizes that not every task has are marked, as their means are over other tasks. Sorted by the
    mean over all cells.
    """
    import polars as pl

    best = best_errors(runs)
    columns: dict[str, list[float | None]] = {}
    classes = {**best.size_classes(), "all m": list(range(len(best.cells)))}
    count = len(best.tasks)
    for name, places in classes.items():
        there, tasks, means = best.on_tasks(places)
        label = name if len(tasks) == count else f"{name} ({len(tasks)} of {count} tasks)"
        columns[label] = [None] * len(best.families)
        columns[f"rank, {label}"] = [None] * len(best.families)
        ranks = average_ranks(means) if len(there) else ()
        for family, mean, rank in zip(there, 100 * means.mean(axis=0), ranks, strict=True):
            columns[label][family] = round(float(mean), 2)
            columns[f"rank, {label}"][family] = round(float(rank), 2)
    table = best.configurations.rename({"family": "method", "number": "configurations"})
    table = table.with_columns(pl.Series(n, v, pl.Float64) for n, v in columns.items())
    return table.sort("all m", "method", nulls_last=True)


def fit_seconds(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the median time of a fit by family, width and sample size, with the number of fits."""
    import polars as pl

    cells: list[tuple[str, float]] = sorted(set(runs.select(TASK, SAMPLES).iter_rows()))
    classes = size_classes([task for task, _ in cells], [m for _, m in cells])
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
