"""From runs to cells: the runs that differ in their seed alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.sweeps.sweep import SHORT

if TYPE_CHECKING:
    import polars as pl

RESTART = "restart"


@dataclass(frozen=True)
class Grid:
    """Outcomes over two conditions, one grid for each stratum.

    The seed is kept as an axis: runs at one seed share their support and their data, so that it is
    seeds, not cells, that are independent.

    Attributes
    ----------
    strata : list of tuple
        Values of the columns that tell the strata apart.
    rows, columns, seeds : list
        Values of the two conditions and the seeds, in order.
    outcome : array, shape (stratum, row, column, seed)
        1 for a solved run, 0 for another, NaN where none was run.
    """

    strata: list[tuple[Any, ...]]
    rows: list[Any]
    columns: list[Any]
    seeds: list[int]
    outcome: NDArray[np.float64]

    @cached_property
    def runs(self) -> NDArray[np.int64]:
        """Runs made, shape (stratum, row, column)."""
        runs: NDArray[np.int64] = (~np.isnan(self.outcome)).sum(axis=-1)
        return runs

    @cached_property
    def solved(self) -> NDArray[np.int64]:
        """Runs that solved the task, shape (stratum, row, column)."""
        solved: NDArray[np.int64] = np.nansum(self.outcome, axis=-1).astype(np.int64)
        return solved

    def complete(self) -> Grid:
        """Keep the strata of which every cell has two runs or more."""
        full = np.flatnonzero(np.all(self.runs > 1, axis=(1, 2)))
        strata = [self.strata[place] for place in full]
        return Grid(strata, self.rows, self.columns, self.seeds, self.outcome[full])

    def of_rows(self, rows: Sequence[Any]) -> Grid:
        """Keep some rows, in the order given."""
        places = [self.rows.index(row) for row in rows]
        return Grid(self.strata, list(rows), self.columns, self.seeds, self.outcome[:, places])


def mixed(table: pl.DataFrame, conditions: Sequence[str]) -> str:
    """Return what is wrong where runs share conditions and a seed; "" where none do.

    Such runs differ in something that is not asked for, and would stand for each other.
    """
    columns = list(dict.fromkeys([*conditions, "seed"]))
    if table.select(columns).is_unique().all():
        return ""
    said = f"several runs share {', '.join(columns)}"
    found = differing(table, columns)
    # The text of a choice says less than the number of it that varies.
    varied = [name for name in found if not any(each.startswith(f"{name}.") for each in found)]
    if not varied:
        return f"{said}: the sweep varies something else too; choose one value of it by --set"
    short = {path: name for name, path in SHORT.items()}.get(varied[0], varied[0])
    return (
        f"{said} and differ in {', '.join(varied)}: choose one value by --set {short}=… "
        f"(in Python settings={{{short!r}: […]}})"
    )


def differing(table: pl.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return the fields in which runs differ that share some columns; none where no runs do."""
    import polars as pl

    double = table.filter(table.select(columns).is_duplicated())
    if double.is_empty():
        return []
    alike = double.filter(
        pl.all_horizontal(pl.col(name).eq_missing(double[name][0]) for name in columns)
    )
    fields = [
        name
        for name in alike.columns
        if name == RESTART or name.startswith(("task", "data", "model", "init", "training"))
    ]
    return [name for name in fields if alike[name].n_unique() > 1]


def grid(table: pl.DataFrame, *, rows: str, columns: str, strata: Sequence[str]) -> Grid:
    """Lay runs out as one grid per stratum."""
    if clash := mixed(table, [*strata, rows, columns]):
        raise UserError(f"{clash[0].upper()}{clash[1:]}.")
    axes = [ordered(table, names) for names in (strata, (rows,), (columns,), ("seed",))]
    outcome = np.full([len(values) for values, _ in axes], np.nan)
    outcome[tuple(places for _, places in axes)] = (table["outcome"] == "SOLVED").to_numpy()
    conditions = [[value for (value,) in values] for values, _ in axes[1:]]
    return Grid(axes[0][0], conditions[0], conditions[1], conditions[2], outcome)


def within_bounds(
    table: pl.DataFrame, at_least: Mapping[str, float], at_most: Mapping[str, float] | None = None
) -> pl.DataFrame:
    """Keep the runs whose columns lie within bounds, such as {"model.width": 100}."""
    import polars as pl

    for column, least in at_least.items():
        table = table.filter(pl.col(column) >= least)
    for column, most in (at_most or {}).items():
        table = table.filter(pl.col(column) <= most)
    return table


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return one value or several as a tuple."""
    several = isinstance(value, tuple | list | range | set | frozenset | np.ndarray)
    return tuple(value) if several else (value,)


def having(table: pl.DataFrame, column: str, values: Any) -> pl.DataFrame:
    """Keep the runs that have one of some values, or the only one, in a column: 20 is 20.0."""
    import polars as pl

    wanted, found = as_tuple(values), table[column].unique()
    kept = [value for value in found.to_list() if value in wanted]
    return table.filter(pl.col(column).is_in(pl.Series(kept, dtype=found.dtype).implode()))


class WithinStrata:
    """A rule whose fields `within` and `best_over` may be given as one name."""

    def __post_init__(self) -> None:
        for name in ("within", "best_over"):
            object.__setattr__(self, name, as_tuple(getattr(self, name)))


def ordered(
    table: pl.DataFrame,
    columns: Sequence[str],
    key: Callable[[tuple[Any, ...]], Any] | None = None,
) -> tuple[list[tuple[Any, ...]], NDArray[np.int64]]:
    """Return the distinct values of some columns, sorted, and the place of each row among them."""
    import polars as pl

    if not columns:
        return [()], np.zeros(len(table), np.int64)
    distinct = table.select(columns).unique(maintain_order=True)
    found = list(distinct.iter_rows())
    order = sorted(range(len(found)), key=lambda i: found[i] if key is None else key(found[i]))
    places = np.empty(len(found), np.int64)
    places[order] = np.arange(len(found))
    named = distinct.with_columns(pl.Series("place of a row", places))
    rows = table.select(columns).join(
        named, on=list(columns), how="left", nulls_equal=True, maintain_order="left"
    )
    return [found[i] for i in order], rows["place of a row"].to_numpy()


def sortable(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a key by which values of several kinds can be sorted, those that are None first."""
    return tuple(("", 0) if part is None else (str(type(part)), part) for part in key)


def split(places: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield every place that occurs, with the rows that have it; nothing of no rows."""
    if not len(places):
        return
    order = np.argsort(places, kind="stable")
    found, starts = np.unique(places[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, starts[1:]), strict=True)


def compared(
    table: pl.DataFrame, *, along: str, within: Sequence[str]
) -> tuple[list[Any], NDArray[np.float64]]:
    """Lay runs out for a comparison along one condition at fixed others.

    Returns the values of `along` and the outcomes, shape (stratum, condition, seed), NaN where no
    run was made: the strata that have two runs or more at every value. There may be none.
    """
    import polars as pl

    if not within:
        if clash := mixed(table, [along]):
            raise UserError(f"{clash[0].upper()}{clash[1:]}.")
        table, within = table.with_columns(pl.lit(0).alias("all")), ("all",)
    *strata, last = within
    whole = grid(table, rows=along, columns=last, strata=strata)
    shape = (-1, len(whole.rows), len(whole.seeds))
    outcome = np.moveaxis(whole.outcome, 2, 1).reshape(shape)
    full = np.all((~np.isnan(outcome)).sum(axis=2) > 1, axis=1)
    return whole.rows, outcome[full]
