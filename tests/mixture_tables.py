"""Tables of runs, for the tests of mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from petridish.rules.mixtures import Mixture
from tests.cell_tables import with_cells

Times = Sequence[int | None]


def cell(times: Times, **columns: Any) -> pl.DataFrame:
    """Make the runs of a cell, by the steps at which they were solved."""
    values: dict[str, Any] = {
        "task": "sparse_parity(10, 2)",
        "task.n": 10,
        "task.k": 2,
        "init": "uniform",
        "data.m": 100.0,
        "model.width": 10,
        "training.steps": 1_000,
        "evaluation.every": 100,
    }
    rows = [
        {
            **values,
            **columns,
            "seed": seed,
            "outcome": "OUT_OF_STEPS" if time is None else "SOLVED",
            "solved_at": time,
        }
        for seed, time in enumerate(times)
    ]
    types = {"solved_at": pl.Int64}
    return with_cells(pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None))


def resources(option: Mixture) -> tuple[float, ...]:
    """Return the four resources that a mixture takes."""
    return option.m, option.width, option.steps, option.restarts
