"""The runs of a record, as the explorer reads those of a store."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from petridish.publish.records import read_record
from petridish.store.followed import ENDS, PLACE
from petridish.store.schema import SEED, cell_fields, is_measured
from petridish.training import flat, read_cell


class KeptRuns(Protocol):
    """Where runs are kept: what the explorer asks of a store or a record."""

    @property
    def ends(self) -> pl.DataFrame:
        """One row per run: cell, restart and seed, how it ended, and where it is kept."""

    @property
    def names(self) -> frozenset[str]:
        """All columns that some run has."""

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence about everything that could not be read."""

    def refresh(self) -> int:
        """Read what came since, and return a number that rises when runs come or go."""

    def fields(self, cells: Collection[str]) -> pl.DataFrame:
        """Return one row per cell: its text, and a column for each field of its spec."""

    def read(self, runs: pl.DataFrame, columns: Collection[str] | None = None) -> pl.DataFrame:
        """Return columns of some rows of `ends`, in their order; all that are kept by default."""


class RecordRuns:
    """The runs of one record, which does not change."""

    problems: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def table(self) -> pl.DataFrame:
        """The whole record; the column `cell` has texts."""
        return read_record(self.folder).drop("arms", strict=False)

    @cached_property
    def ends(self) -> pl.DataFrame:
        """How the runs ended, and the row of each."""
        names = [n for n in self.table.columns if n in (*ENDS, *SEED) or is_measured(n)]
        place = {"shard": pl.lit(0, PLACE["shard"]), "row": pl.int_range(pl.len(), dtype=pl.UInt32)}
        return self.table.select(names).with_columns(**place)

    @property
    def names(self) -> frozenset[str]:
        """All columns of the record."""
        return frozenset(self.table.columns)

    def refresh(self) -> int:
        """Return the only version there is."""
        return 0

    def fields(self, cells: Collection[str]) -> pl.DataFrame:
        """Return one row per cell: its text, and a column for each field of its spec."""
        return cell_fields({cell: flat(read_cell(cell)) for cell in cells})

    def read(self, runs: pl.DataFrame, columns: Collection[str] | None = None) -> pl.DataFrame:
        """Return columns of some rows."""
        names = [n for n in self.table.columns if columns is None or n in columns]
        found: pl.DataFrame = self.table.select(names)[runs["row"]]
        return found


def json_ready(value: Any) -> Any:
    """Return a value as JSON can hold it: NaN is null, an infinity the text "inf" or "-inf"."""
    if isinstance(value, float):
        if value != value:
            return None
        return value if abs(value) != float("inf") else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {str(name): json_ready(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(part) for part in value]
    if isinstance(value, pl.Series):
        return json_ready(value.to_list())
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**53:
        return str(value)  # a script's numbers end there
    return value
