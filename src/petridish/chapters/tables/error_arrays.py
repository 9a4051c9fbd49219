"""From runs on tables to arrays of errors: methods beside each other on the same splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.choices import name_of
from petridish.errors import UserError
from petridish.models import MLP
from petridish.rules.cells import mixed, ordered
from petridish.rules.specs import with_specs
from petridish.statistics.paired import Ranking, crossed_best, rank_methods, was_made
from petridish.statistics.shared_trials import means_of_shared_trials, size_classes, whole_classes

if TYPE_CHECKING:
    import polars as pl

Places = NDArray[np.int64]
Floats = NDArray[np.float64]
TASK, SAMPLES, TRIAL = "task.dataset", "data.m", "seed"


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
    error : array, shape (cell, configuration, trial)
        NaN where none was run. A diverged run errs as chance does, 1 − 1/classes. A trial is a
        seed, the same split for every configuration.
    """

    cells: list[tuple[str, float]]
    configurations: pl.DataFrame
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
    def samples(self) -> Floats:
        """Training rows m of each cell."""
        return np.array([m for _, m in self.cells], dtype=np.float64)

    @cached_property
    def families(self) -> list[str]:
        """Families of which a configuration was run, in order."""
        return sorted(set(self.configurations["family"]))

    def of(self, family: str) -> Places:
        """Return the places of a family's configurations."""
        return np.flatnonzero((self.configurations["family"] == family).to_numpy())

    def size_classes(self) -> dict[str, list[int]]:
        """Group the cells by their m."""
        return size_classes(self.owner.tolist(), self.samples.tolist())

    def whole_classes(self) -> dict[str, list[int]]:
        """Group the cells by their m, and keep the groups in which every task occurs."""
        return whole_classes(self.owner.tolist(), self.samples.tolist())

    def on_tasks(self, places: Sequence[int]) -> tuple[Places, list[str], Floats]:
        """Compare the configurations that were run in all cells of `places`.

        Returns their places, the tasks, and the mean errors, shape (task, configuration).
        """
        cells = list(places)
        there, means = means_of_shared_trials(self.error[cells], self.owner[cells])
        return there, sorted({self.cells[place][0] for place in cells}), means


def with_families(table: pl.DataFrame) -> pl.DataFrame:
    """Add to every run its family, its depth, and its error with diverged runs at chance.

    The family is the name of the model's kind. `depth` counts hidden layers, and `even` says
    whether they are all as wide as the first; both are null for other models.
    """
    import polars as pl

    classes = pl.col("task.classes") if "task.classes" in table.columns else pl.lit(2)
    known = pl.col("test_error").is_not_null() & pl.col("test_error").is_not_nan()
    runs = with_specs(
        table,
        family=lambda spec: name_of(spec.model),
        depth=lambda spec: 1 + len(spec.model.deeper) if isinstance(spec.model, MLP) else None,
        even=lambda spec: (
            {*spec.model.deeper} <= {spec.model.width} if isinstance(spec.model, MLP) else None
        ),
    )
    if "model.width" not in table.columns:
        runs = runs.with_columns(pl.lit(None, pl.Int64).alias("model.width"))
    return runs.with_columns(
        pl.col("depth").cast(pl.Int64),
        pl.col("even").cast(pl.Boolean),
        error=pl.when(known).then(pl.col("test_error")).otherwise(1 - 1 / classes),
    )


def errors_of(table: pl.DataFrame) -> Errors:
    """Lay runs out for pairing, every configuration beside the others on its splits."""
    runs = with_families(table)
    own = _configuration(runs)
    if clash := mixed(runs, [TASK, SAMPLES, *own]):
        raise UserError(f"{clash[0].upper()}{clash[1:]}.")
    columns = ["family", "depth", "even", *own]
    configurations = runs.select(columns).unique().sort(columns)
    place = runs.join(
        configurations.with_row_index("place"), on=columns, nulls_equal=True, how="left"
    )["place"].to_numpy()
    cells, cell = ordered(runs, (TASK, SAMPLES))
    trials, trial = ordered(runs, (TRIAL,))
    error = np.full((len(cells), len(configurations), len(trials)), np.nan)
    error[cell, place, trial] = runs["error"].to_numpy()
    return Errors([(task, m) for task, m in cells], configurations, error)


def _configuration(runs: pl.DataFrame) -> list[str]:
    """Name the columns that tell configurations apart; a choice's own fields are in its text."""
    import polars as pl

    own = [
        name
        for name, kind in runs.schema.items()
        if name.startswith(("model.", "training."))
        and name.count(".") == 1
        and name != "training.steps"
        and not isinstance(kind, pl.List)
    ]
    return ["model", *(name for name in ("init",) if name in runs.columns), *own]


def even_mlps(table: pl.DataFrame) -> Errors | None:
    """Lay out the MLPs of one width throughout; None where there is none."""
    import polars as pl

    runs = with_families(table).filter((pl.col("family") == "mlp") & pl.col("even"))
    return errors_of(runs) if len(runs) else None


def best_errors(runs: pl.DataFrame) -> Errors:
    """Return the errors of every family's best configuration, chosen on other trials.

    Here a configuration is a family; `number` is how many it had to choose from, in the cell with
    the most.
    """
    import polars as pl

    errors = errors_of(runs)
    parts = [errors.error[:, errors.of(family)] for family in errors.families]
    number = [int(was_made(part).sum(axis=1).max()) for part in parts]
    families = pl.DataFrame({"family": errors.families, "number": number})
    return Errors(errors.cells, families, np.stack([crossed_best(part) for part in parts], axis=1))


def ranking(runs: pl.DataFrame, *, level: float = 0.05) -> Ranking | None:
    """Rank the families that were run in every cell, over tasks.

    None for fewer than two families or tasks. Families and their errors are those of `mean_errors`.
    """
    best = best_errors(runs)
    there, tasks, means = best.on_tasks(range(len(best.cells)))
    if len(there) < 2 or len(tasks) < 2:
        return None
    return rank_methods(means, [best.families[place] for place in there], level=level)
