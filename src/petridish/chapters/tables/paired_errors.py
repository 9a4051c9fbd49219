"""Errors of methods that met the same splits of the same tables, from runs to arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.choices import name_of
from petridish.errors import UserError
from petridish.models import MLP
from petridish.rules.cells import mixed
from petridish.rules.specs import with_specs
from petridish.statistics.paired import Ranking, crossed_best, rank_methods, was_made

if TYPE_CHECKING:
    import polars as pl

Places = NDArray[np.int64]
Floats = NDArray[np.float64]
TASK, SAMPLES, TRIAL = "task.dataset", "data.m", "seed"
EDGES = (100.0, 300.0, 1_000.0, 3_000.0, 10_000.0, 30_000.0, 100_000.0)


@dataclass(frozen=True)
class Errors:
    """Test errors laid out for pairing.

    Attributes
    ----------
    cells : list of (str, float)
        Task and training rows m, in order.
    configurations : DataFrame
        One row for each: its family, model, init and all of training but the number of steps, which
        may follow m.
    trials : list of int
        Seeds; the same seed is the same split for every configuration.
    error : array, shape (cell, configuration, trial)
        NaN where none was run. A diverged run errs as chance does, 1 − 1/classes.
    """

    cells: list[tuple[str, float]]
    configurations: pl.DataFrame
    trials: list[int]
    error: Floats

    @cached_property
    def tasks(self) -> list[str]:
        """Tasks, in order."""
        return sorted({task for task, _ in self.cells})

    @cached_property
    def owner(self) -> Places:
        """Place of each cell's task among the tasks."""
        return np.array([self.tasks.index(task) for task, _ in self.cells], dtype=np.int64)

    @cached_property
    def families(self) -> list[str]:
        """Families of which a configuration was run, in order."""
        return sorted(set(self.configurations["family"]))

    def of(self, family: str) -> Places:
        """Give the places of a family's configurations."""
        return np.flatnonzero((self.configurations["family"] == family).to_numpy())


def with_families(table: pl.DataFrame) -> pl.DataFrame:
    """Add to every run its family, its depth, and its error with diverged runs at chance.

    The family is the name of the model's kind. `depth` counts hidden layers, and `even` says
    whether they are all as wide as the first; both are null for what is no MLP.
    """
    import polars as pl

    classes = pl.col("task.classes") if "task.classes" in table.columns else pl.lit(2)
    known = pl.col("test_error").is_not_null() & pl.col("test_error").is_not_nan()
    runs = with_specs(
        table,
        family=lambda spec: name_of(spec.model),
        depth=lambda spec: 1 + len(spec.model.deeper) if isinstance(spec.model, MLP) else None,
        even=lambda spec: _is_even(spec.model) if isinstance(spec.model, MLP) else None,
    )
    if "model.width" not in table.columns:
        runs = runs.with_columns(pl.lit(None, pl.Int64).alias("model.width"))
    return runs.with_columns(
        pl.col("depth").cast(pl.Int64),
        pl.col("even").cast(pl.Boolean),
        error=pl.when(known).then(pl.col("test_error")).otherwise(1 - 1 / classes),
    )


def _is_even(model: MLP) -> bool:
    return all(width == model.width for width in model.deeper)


def errors_of(table: pl.DataFrame) -> Errors:
    """Lay runs out for pairing, every configuration beside the others on its splits."""
    runs = with_families(table)
    columns = ["family", "depth", "even", *_configuration(runs)]
    if clash := mixed(runs, [TASK, SAMPLES, *columns[3:]]):
        raise UserError(f"{clash[0].upper()}{clash[1:]}.")
    configurations = runs.select(columns).unique().sort(columns)
    placed = runs.join(
        configurations.with_row_index("place"), on=columns, nulls_equal=True, how="left"
    )
    cells: list[tuple[str, float]] = sorted(set(runs.select(TASK, SAMPLES).iter_rows()))
    trials: list[int] = sorted(set(runs[TRIAL]))
    places = {cell: i for i, cell in enumerate(cells)}
    cell = np.array([places[key] for key in runs.select(TASK, SAMPLES).iter_rows()], dtype=np.int64)
    trial = np.searchsorted(np.array(trials), runs[TRIAL].to_numpy())
    error = np.full((len(cells), len(configurations), len(trials)), np.nan)
    error[cell, placed["place"].to_numpy(), trial] = runs["error"].to_numpy()
    return Errors(cells, configurations, trials, error)


def _configuration(runs: pl.DataFrame) -> list[str]:
    """Name the columns that tell configurations apart; a choice's own fields are in its text."""
    import polars as pl

    kinds = runs.schema
    own = [
        name
        for name in runs.columns
        if name.startswith(("model.", "training."))
        and name.count(".") == 1
        and name != "training.steps"
        and not isinstance(kinds[name], pl.List)
    ]
    return ["model", *(name for name in ("init",) if name in kinds), *own]


@dataclass(frozen=True)
class BestErrors:
    """The errors of every family's best configuration, chosen on trials that do not measure it.

    Attributes
    ----------
    families : list of str
    configurations : list of int
        How many each family had to choose from, in the cell where they were most.
    cells : list of (str, float)
        Task and m.
    error : array, shape (family, cell, trial)
        See `crossed_best`; NaN where the family was not run.
    """

    families: list[str]
    configurations: list[int]
    cells: list[tuple[str, float]]
    error: Floats

    def on_tasks(self, places: Sequence[int]) -> tuple[list[int], list[str], Floats]:
        """Compare the families that were run in all of some cells.

        Gives their places, the tasks, and the mean errors, shape (task, family): over the trials
        that all of them have in a cell (each over its own where they share none), then over the
        cells of the task.
        """
        part = self.error[:, list(places)]
        there = np.flatnonzero(was_made(part).all(axis=1))
        tasks = sorted({self.cells[place][0] for place in places})
        if not len(there):
            return [], tasks, np.empty((len(tasks), 0))
        missing = np.any(np.isnan(part[there]), axis=0)  # (cell, trial)
        apart = np.all(missing, axis=1, keepdims=True)
        means = np.nanmean(np.where(missing & ~apart, np.nan, part[there]), axis=2)
        of = np.array([self.cells[place][0] for place in places])
        on = np.array([means[:, of == task].mean(axis=1) for task in tasks])
        return there.tolist(), tasks, on


def best_errors(runs: pl.DataFrame) -> BestErrors:
    """Give every family's best errors in every cell."""
    errors = errors_of(runs)
    best, counts = [], []
    for family in errors.families:
        part = errors.error[:, errors.of(family)]
        best.append(crossed_best(part))
        counts.append(int(was_made(part).sum(axis=1).max()))
    return BestErrors(errors.families, counts, errors.cells, np.array(best))


def whole_classes(cells: Sequence[tuple[str, float]]) -> dict[str, list[int]]:
    """Give the classes of `size_classes` in which every task occurs.

    Means over other tasks at every size would tell of the tasks, not of the size.
    """
    tasks = {task for task, _ in cells}
    return {
        label: places
        for label, places in size_classes(cells).items()
        if {cells[place][0] for place in places} == tasks
    }


def size_classes(cells: Sequence[tuple[str, float]]) -> dict[str, list[int]]:
    """Group cells by their m, in order.

    Each m is a class of its own where more than half of the tasks have it; else the edges are 100,
    300, 1000, 3000 … rows.
    """
    tasks = {task for task, _ in cells}
    samples = sorted({m for _, m in cells})
    if all(2 * sum(other == m for _, other in cells) > len(tasks) for m in samples):
        return {
            f"m = {m:g}": [place for place, (_, other) in enumerate(cells) if other == m]
            for m in samples
        }
    bounds = [0.0, *EDGES, math.inf]
    classes = {}
    for low, high in pairwise(bounds):
        inside = [place for place, (_, m) in enumerate(cells) if low < m <= high]
        if inside:
            label = f"{low:g} < m ≤ {high:g}" if low and high < math.inf else ""
            classes[label or (f"m > {low:g}" if low else f"m ≤ {high:g}")] = inside
    return classes


def ranking(runs: pl.DataFrame, *, level: float = 0.05) -> Ranking | None:
    """Rank the families that were run in every cell, over tasks; None for less than two of them.

    Needs two tasks. Families and their errors are those of `mean_errors`.
    """
    best = best_errors(runs)
    there, tasks, means = best.on_tasks(range(len(best.cells)))
    if len(there) < 2 or len(tasks) < 2:
        return None
    return rank_methods(means, [best.families[place] for place in there], level=level)
