"""Records as a table: one row a run, one column a spec field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import polars as pl

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
}
"""What only some runs keep, and few readers ask for."""


def came_later() -> dict[str, Any]:
    """Give the columns that specs gained after runs were stored, with what those runs did."""
    columns: dict[str, Any] = {}
    for name, part in (("data", Data()), ("training", Training()), ("evaluation", Evaluation())):
        for each in fields(part):
            if each.metadata == LATER:
                flatten(f"{name}.{each.name}", each.default, columns)
    return columns


def to_table(records: Sequence[RunRecord]) -> pl.DataFrame:
    """Lay records out as a table, in the order given."""
    rows = [_row(record) for record in records]
    spec_columns = {name: None for row in rows for name in row if name not in FIXED | CURVES}
    schema = FIXED | spec_columns | CURVES
    return pl.DataFrame(rows, schema=schema, infer_schema_length=None)


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
        "curve.step": curves.step or None,
        "curve.train_loss": curves.train_loss or None,
        "curve.train_error": curves.train_error or None,
        "curve.test_error": curves.test_error or None,
        **{f"curve.{name}": curves.instruments.get(name) for name in INSTRUMENTS},
        "weights": record.weights,
    }
