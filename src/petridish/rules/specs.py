"""From a table of runs to the objects behind it: rules and figures ask specs, never their text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from petridish.training import RunSpec, read_cell

if TYPE_CHECKING:
    import polars as pl


def specs_of(table: pl.DataFrame) -> dict[str, RunSpec]:
    """Return the spec of every cell of a table, with seed 0, by the text in its column `cell`."""
    return {cell: read_cell(cell) for cell in table["cell"].unique(maintain_order=True)}


def with_specs(table: pl.DataFrame, **columns: Callable[[RunSpec], Any]) -> pl.DataFrame:
    """Add columns that are computed from the runs' specs; a column of that name is replaced.

    ``with_specs(table, depth=lambda spec: 1 + len(spec.model.deeper))`` asks each cell once.
    """
    import polars as pl

    specs = specs_of(table)
    found = pl.DataFrame(
        [
            pl.Series("cell", list(specs), dtype=pl.Categorical),
            *(
                pl.Series(name, [compute(spec) for spec in specs.values()], strict=False)
                for name, compute in columns.items()
            ),
        ]
    )
    bare = table.drop(columns, strict=False)
    return bare.join(found, on="cell", how="left", maintain_order="left")


def where(table: pl.DataFrame, holds: Callable[[RunSpec], bool]) -> pl.DataFrame:
    """Keep the runs whose spec is as asked for."""
    import polars as pl

    kept = [cell for cell, spec in specs_of(table).items() if holds(spec)]
    return table.filter(pl.col("cell").is_in(pl.Series(kept, dtype=pl.Categorical).implode()))
