"""From runs to cells: the runs that differ in their seed alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

SOLVED = (pl.col("outcome") == "SOLVED").sum().alias("solved")


def cells(table: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Count runs and solved runs for each setting of the columns `by`, in their order."""
    return table.group_by(by).agg(pl.len().alias("runs"), SOLVED).sort(by)


@dataclass(frozen=True)
class Grid:
    """Counts over two conditions, one grid for each stratum.

    Attributes
    ----------
    strata : list of tuple
        Values of the columns that tell the strata apart.
    rows, columns : list
        Values of the two conditions, in order.
    solved, runs : array, shape (stratum, row, column)
        Runs that solved the task, and runs made; 0 where there are none.
    """

    strata: list[tuple[Any, ...]]
    rows: list[Any]
    columns: list[Any]
    solved: NDArray[np.int64]
    runs: NDArray[np.int64]


def grid(table: pl.DataFrame, *, rows: str, columns: str, strata: Sequence[str]) -> Grid:
    """Lay cells out as one grid a stratum."""
    counted = cells(table, [*strata, rows, columns])
    keys = list(counted.select(strata).unique(maintain_order=True).iter_rows()) if strata else [()]
    row_values = counted[rows].unique().sort().to_list()
    column_values = counted[columns].unique().sort().to_list()
    shape = (len(keys), len(row_values), len(column_values))
    solved, runs = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for entry in counted.iter_rows(named=True):
        place = (
            keys.index(tuple(entry[name] for name in strata)),
            row_values.index(entry[rows]),
            column_values.index(entry[columns]),
        )
        solved[place], runs[place] = entry["solved"], entry["runs"]
    return Grid(keys, row_values, column_values, solved, runs)
