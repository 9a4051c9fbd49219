"""Small tables, for the tests of tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

ROWS = 40


def small_table(rows: int = ROWS) -> pl.DataFrame:
    """Return a table whose column `row` says which row it is."""
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "row": np.arange(rows, dtype=np.float32),
            "age": rng.normal(40, 9, rows),
            "same": np.full(rows, 0.1, np.float32),
            "target": ["yes" if row % 3 else "no" for row in range(rows)],
        }
    )


def small_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the table `small`, which runs find too."""
    made = tmp_path / "data"
    made.mkdir()
    small_table().write_parquet(made / "small.parquet")
    monkeypatch.setenv("PETRIDISH_DATA", str(made))
    return made


def see_no_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test see none of the user's own tables."""
    monkeypatch.delenv("PETRIDISH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
