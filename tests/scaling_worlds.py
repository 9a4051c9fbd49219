"""Invented runs, for the tests of the rules about scaling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from tests.cell_tables import with_cells

Floats = NDArray[np.float64]
Times = Callable[[np.random.Generator, dict[str, Any], int], Floats]
SIZES = (10, 14, 18, 22, 26, 30)


def lognormal(median: float, spread: float = 0.5) -> Times:
    """Draw times around a median."""
    return lambda rng, _, runs: median * np.exp(spread * rng.standard_normal(runs))


def table_of(
    cells: Sequence[dict[str, Any]],
    time: Times,
    *,
    runs: int = 30,
    seed: int = 0,
    every: int = 10,
    budget: int = 100_000,
) -> pl.DataFrame:
    """Draw the runs of all cells, found solved at the first evaluation after their time."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {"solved_at": [], "seed": []}
    for cell in cells:
        looked = every * np.ceil(time(rng, cell, runs) / every)
        columns["solved_at"] += [int(t) if t <= budget else None for t in looked]
        columns["seed"] += range(runs)
        for name, value in cell.items():
            columns.setdefault(name, []).extend([value] * runs)
    table = pl.DataFrame(columns, schema_overrides={"solved_at": pl.Int64}).with_columns(
        pl.lit(budget).alias("training.steps"), pl.lit(every).alias("evaluation.every")
    )
    return with_cells(table)


def curves(
    exponent: Callable[[int, float], float] | float,
    *,
    models: Sequence[str] = ("mlp(10, (), relu, linear)",),
    degrees: Sequence[int] = (2, 3),
    sizes: Sequence[int] = SIZES,
    **settings: Any,
) -> pl.DataFrame:
    """Draw scaling curves that pass through 200 at n = 10, with an exponent of (k, n)."""

    def time(rng: np.random.Generator, cell: dict[str, Any], runs: int) -> Floats:
        k, n = cell["task.k"], cell["task.n"]
        power = exponent(k, n) if callable(exponent) else exponent
        return lognormal(200 * (n / 10) ** power)(rng, cell, runs)

    cells = [
        {"model": model.replace("K", str(k)), "task.k": k, "task.n": n}
        for model in models
        for k in degrees
        for n in sizes
    ]
    return table_of(cells, time, **settings)


def widths(
    time: Times, *, over: Sequence[int] = (1, 2, 10, 100, 1_000), **settings: Any
) -> pl.DataFrame:
    """Draw runs over widths, on three tasks."""
    cells = [{"task.n": n, "task.k": 3, "model.width": r} for n in (30, 40, 50) for r in over]
    return table_of(cells, time, **settings)


def draw_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the rules about scaling draw 500 times where they draw more."""
    monkeypatch.setattr("petridish.statistics.power_laws.RESAMPLES", 500)
