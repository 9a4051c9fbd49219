"""A table with every kind of column, for the tests of comparisons."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl


def messy(rows: int = 120, *, classes: int = 3) -> pl.DataFrame:
    """Return a table with every kind of column."""
    rng = np.random.default_rng(1)
    age = rng.normal(40, 12, rows).round(1)
    job = rng.choice(["clerk", "cook", "nurse"], rows)
    y = np.where(age > 45, 2, np.where(job == "nurse", 1, 0)) % classes
    first = datetime.date(2020, 1, 1)
    return pl.DataFrame(
        {
            "customer_id": np.arange(5000, 5000 + rows),
            "age": [None if i % 9 == 0 else float(value) for i, value in enumerate(age)],
            "job": [None if i % 11 == 0 else str(value) for i, value in enumerate(job)],
            "joined": [first + datetime.timedelta(int(i)) for i in rng.integers(0, 900, rows)],
            "member": rng.random(rows) > 0.5,
            "remark": [f"a few words, number {i}" for i in range(rows)],
            "country": ["NL"] * rows,
            "fax": [None] * rows,
            "grade": [("low", "middle", "high")[i] for i in y],
        }
    )
