"""Records as a table: one row a run, one column a spec field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from petridish.store.provenance import provenance
from petridish.training import (
    INSTRUMENTS,
    Data,
    Evaluation,
    RunRecord,
    Training,
    flat,
    flatten,
    run_key,
    spec_text,
)
from petridish.values import LATER

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
    "version": pl.String,
    "commit": pl.String,
    "clean": pl.Boolean,
    "spec": pl.String,
}
CURVES: dict[str, Any] = {
    "curve.step": pl.List(pl.Int64),
    "curve.train_loss": pl.List(pl.Float64),
    "curve.train_error": pl.List(pl.Float64),
    "curve.test_error": pl.List(pl.Float64),
    **{f"curve.{name}": pl.List(pl.Float64) for name in INSTRUMENTS},
    "weights": pl.List(pl.List(pl.Float32)),
    "weights.of": pl.List(pl.Struct({"name": pl.String, "shape": pl.List(pl.Int64)})),
}
"""What only some runs keep, and few readers ask for."""
ARRAY = pl.Struct({"shape": pl.List(pl.Int64), "values": pl.List(pl.Float64)})


def is_roomy(name: str) -> bool:
    """Return whether a column is long and seldom asked for: a curve, an array, weights."""
    return name.startswith(("curve.", "array.", "weights"))


def came_later() -> dict[str, Any]:
    """Give the columns that specs gained after runs were stored, with what those runs did."""
    columns: dict[str, Any] = {}
    for name, part in (("data", Data()), ("training", Training()), ("evaluation", Evaluation())):
        for each in fields(part):
            if each.metadata == LATER:
                flatten(f"{name}.{each.name}", each.default, columns)
    return {name: value for name, value in columns.items() if value is not None and value != []}


def to_table(records: Sequence[RunRecord]) -> pl.DataFrame:
    """Lay records out as a table, in the order given."""
    rows = [_row(record) for record in records]
    known = FIXED | CURVES
    others = {name: _type(name) for row in rows for name in row if name not in known}
    short = {name: kind for name, kind in others.items() if not is_roomy(name)}
    return pl.DataFrame(rows, schema=FIXED | short | CURVES | others, infer_schema_length=None)


def _type(name: str) -> Any:
    """Return the type of a column that is known by its prefix; of others their values tell."""
    kinds = {"curve": pl.List(pl.Float64), "array": ARRAY, "final": pl.Float64}
    return kinds.get(name.partition(".")[0], pl.Int64 if name.startswith("reached.") else None)


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
        **provenance(),
        "spec": spec_text(record.spec),
        **flat(record.spec),
        **{f"final.{name}": value for name, value in record.final.items() if name != "test_error"},
        **{f"reached.{name}": step for name, step in record.reached.items()},
        "curve.step": curves.step or None,
        **{f"curve.{name}": values for name, values in curves.values.items()},
        **{f"array.{name}": _array(readings) for name, readings in curves.arrays.items()},
        "weights": record.weights,
        "weights.of": record.weights_of
        and [{"name": name, "shape": list(shape)} for name, shape in record.weights_of],
    }


def _array(readings: Sequence[NDArray[Any]]) -> dict[str, Any]:
    """Return the readings of an instrument as one array, the reading first."""
    stacked = np.stack(readings)
    return {"shape": list(stacked.shape), "values": stacked.ravel().tolist()}
