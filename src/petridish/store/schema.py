"""Records as a table: one row per run, one column per spec field.

The column `cell` has the run's spec without its seed, as JSON: `read_cell` makes the object of it.
The columns of spec fields are made from the objects of the distinct cells. Shards have them too,
for readers such as DuckDB and R; petridish does not read them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from petridish.store.provenance import provenance
from petridish.training import ENGINES, RunRecord, cell_text, flat, run_key
from petridish.training.data import sample_attempts

FIXED: dict[str, Any] = {
    "key": pl.String,
    "outcome": pl.String,
    "solved_at": pl.Int64,
    "fitted_at": pl.Int64,
    "steps": pl.Int64,
    "test_error": pl.Float64,
    "train_loss": pl.Float64,
    "seconds": pl.Float64,
    "engine": pl.String,
    "engine_version": pl.Int64,
    "device": pl.String,
    "version": pl.String,
    "commit": pl.String,
    "clean": pl.Boolean,
    "cell": pl.Categorical,
}
# Up to 2^64 − 1; an Int64 where all are smaller.
SEED: dict[str, Any] = {"restart": pl.Int128, "seed": pl.Int128}
NAMED: dict[str, Any] = {
    "curve.step": pl.List(pl.Int64),
    "weights": pl.List(pl.List(pl.Float32)),
    "weights.of": pl.List(pl.Struct({"name": pl.String, "shape": pl.List(pl.Int64)})),
}
"""The types of columns whose prefix does not determine them."""
PREFIXED: dict[str, Any] = {
    "curve": pl.List(pl.Float64),
    "array": pl.Struct({"shape": pl.List(pl.Int64), "values": pl.List(pl.Float64)}),
    "final": pl.Float64,
    "reached": pl.Int64,
    "drawn": pl.Int64,
}
Columns = Collection[str] | Literal["all"]
"""Which columns of curves, arrays and weights are meant."""


def to_table(records: Sequence[RunRecord]) -> pl.DataFrame:
    """Lay records out as a table, in the order given."""
    specs = {cell_text(record.spec): record.spec for record in records}
    rows = [_row(record) for record in records]
    known = FIXED | SEED
    others = {name: kind_of(name) for row in rows for name in row if name not in known}
    measured = {name: kind for name, kind in others.items() if not is_kept(name)}
    ends = pl.DataFrame(rows, schema=known | measured | others)
    return with_fields(ends, {cell: flat(spec) for cell, spec in specs.items()})


def kind_of(name: str) -> Any:
    """Return the type of a column that only some runs have."""
    return NAMED[name] if name in NAMED else PREFIXED[name.partition(".")[0]]


def _row(record: RunRecord) -> dict[str, Any]:
    curves = record.curves
    return {
        "key": run_key(record.spec),
        "outcome": record.outcome.name,
        "solved_at": record.solved_at,
        "fitted_at": record.fitted_at,
        "steps": record.steps,
        "test_error": record.test_error,
        "train_loss": record.train_loss,
        "seconds": record.seconds,
        "engine": record.engine,
        "engine_version": ENGINES[record.engine].version,
        "device": record.device,
        **provenance(),
        "cell": cell_text(record.spec),
        "restart": record.spec.restart,
        "seed": record.spec.seed,
        **({"drawn.attempts": sample_attempts(record.spec)} if record.spec.data.accept else {}),
        **{f"final.{name}": value for name, value in record.final.items() if name != "test_error"},
        **{f"reached.{name}": step for name, step in record.reached.items()},
        **({"curve.step": curves.step} if curves.step else {}),
        **{f"curve.{name}": values for name, values in curves.values.items()},
        **{f"array.{name}": _array(readings) for name, readings in curves.arrays.items()},
        **_weights(record),
    }


def _weights(record: RunRecord) -> dict[str, Any]:
    if record.weights is None:
        return {}
    named = [{"name": name, "shape": list(shape)} for name, shape in record.weights_of or ()]
    return {"weights": record.weights, **({"weights.of": named} if named else {})}


def _array(readings: Sequence[NDArray[Any]]) -> dict[str, Any]:
    """Return the readings of an instrument as one array, the reading first."""
    stacked = np.stack(readings)
    return {"shape": list(stacked.shape), "values": stacked.ravel().tolist()}


def with_fields(ends: pl.DataFrame, cells: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """Add the columns of spec fields, given those of every cell; curves and weights stay last."""
    fields = cell_fields(cells)
    whole = ends.join(fields, on="cell", how="left", maintain_order="left")
    first = [name for name in FIXED if name in ends.columns]
    last = [name for name in ends.columns if name not in FIXED and name not in SEED]
    seeds = [pl.col(name).cast(_smallest(whole[name])) for name in SEED]
    return whole.select(*first, *fields.drop("cell").columns, *seeds, *last)


def _smallest(numbers: pl.Series) -> Any:
    largest: Any = numbers.max()
    return pl.Int64 if largest is None or largest < 2**63 else pl.UInt64


def cell_fields(cells: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """Return a table with one row per cell: its text, and a column for every field of it."""
    names = dict.fromkeys(name for fields in cells.values() for name in fields if name not in SEED)
    texts = pl.Series("cell", list(cells), dtype=pl.Categorical)
    columns = [_column(name, [row.get(name) for row in cells.values()]) for name in names]
    return pl.DataFrame([texts, *columns])


def _column(name: str, values: list[Any]) -> pl.Series:
    """Make a column; of text if cells have values of several types, such as a number and a list."""
    if len({_kind(kind) for kind in set(map(type, values)) - {type(None)}}) > 1:
        return pl.Series(name, [None if v is None else str(v) for v in values], dtype=pl.String)
    return pl.Series(name, values, strict=False)


def _kind(kind: type) -> str:
    number = issubclass(kind, int | float) and not issubclass(kind, bool)
    return "number" if number else kind.__name__


def is_kept(name: str) -> bool:
    """Return whether a column holds curves, arrays or weights: large, and seldom asked for."""
    return name.startswith(("curve.", "array.", "weights"))


def is_measured(name: str) -> bool:
    """Return whether a column holds a number of the run: a metric, a threshold's step, attempts."""
    return name.startswith(("final.", "reached.", "drawn."))
