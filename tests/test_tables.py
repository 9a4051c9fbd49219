"""Tables: what a run draws of them, how they are found, and how they come from OpenML."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.choices import describe, parse
from petridish.errors import UserError
from petridish.sweeps.sweep import OFFERED
from petridish.tasks import Task
from petridish.tasks import table_files as tables
from petridish.tasks.table import Table, find_table
from petridish.tasks.table_files import content_digest, load
from petridish.training import ONLINE, Data
from tests.small_tables import ROWS, see_no_tables, small_folder, small_table

SEEDS = st.integers(0, 2**64 - 1)


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test see the user's own tables."""
    see_no_tables(tmp_path, monkeypatch)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the table `small`, which runs find too."""
    return small_folder(tmp_path, monkeypatch)


def rows_of(examples: Any, rows: int) -> list[list[int]]:
    """Return which rows were drawn, by undoing the standardisation of the column `row`."""
    numbers = np.arange(rows)
    raw = examples.x[..., 0] * numbers.std() + numbers.mean()
    assert np.allclose(raw, raw.round(), atol=1e-3)
    return [[int(row) for row in run] for run in raw.round()]


# What a run draws


@given(rows=st.integers(10, 400), seed=SEEDS)
def test_train_and_test_rows_are_all_rows_once(
    tmp_path_factory: pytest.TempPathFactory, rows: int, seed: int
) -> None:
    """A tenth of the rows, rounded down, is the test sample; the others are training rows."""
    made = tmp_path_factory.mktemp("data")
    small_table(rows).write_parquet(made / "any.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PETRIDISH_DATA", str(made))
        task = find_table("any")
        test = rows_of(task.draw([seed], "test", 0, task.n_test_rows), rows)[0]
        train = rows_of(task.draw([seed], "train", 0, task.n_train_rows), rows)[0]

    assert len(test) == rows // 10
    assert sorted(test + train) == [*range(rows)]


@given(seeds=st.lists(SEEDS, min_size=1, max_size=4, unique=True), start=st.integers(0, 30))
def test_a_runs_rows_depend_on_its_own_seed_alone(seeds: list[int], start: int) -> None:
    """Other runs, their order and the range drawn do not matter: a larger sample only adds rows."""
    task = find_table("wine")
    whole = task.draw(seeds, "train", 0, 40)
    for run, seed in enumerate(seeds):
        alone = task.draw([seed], "train", start, 5)

        assert np.array_equal(alone.x[0], whole.x[run, start : start + 5])
        assert np.array_equal(alone.labels[0], whole.labels[run, start : start + 5])


def test_each_trial_has_a_split_of_its_own() -> None:
    """Of 20 seeds no two have the same test sample, and rows come into it equally often.

    A row is in the test sample of a seed with probability 1/10: over 2000 seeds the count has mean
    200 and deviation 13.4, and 40 rows stay within 5 deviations but for one time in 40,000.
    """
    seeds = range(2000)
    table = small_table()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "find_file", lambda *_: None)
        patch.setattr(tables, "BUNDLED", ("small",))
        patch.setattr(tables, "_bundled", lambda _: _as_content(table))
        task = find_table("small")
        drawn = rows_of(task.draw(seeds, "test", 0, task.n_test_rows), ROWS)
    counts = np.bincount(np.ravel(drawn), minlength=ROWS)

    assert len({tuple(sorted(rows)) for rows in drawn[:20]}) == 20
    assert np.abs(counts - 200).max() < 5 * np.sqrt(2000 * 0.1 * 0.9)


def _as_content(table: pl.DataFrame) -> tables.Content:
    return tables.checked_content("a table", *tables._columns(table, Path("a table")))


def test_rows_keep_their_labels(folder: Path, seed: int) -> None:
    """A row's class comes with it: no is 0, yes is 1, as sorted."""
    task = find_table("small")
    drawn = task.draw([seed, seed + 1], "train", 0, 30)

    for rows, labels in zip(rows_of(drawn, ROWS), drawn.labels, strict=True):
        assert labels.tolist() == [int(row % 3 > 0) for row in rows]


def test_inputs_are_standardised_over_the_whole_table(folder: Path) -> None:
    """Every feature has mean 0 and deviation 1, a constant one is 0; by hand for two columns."""
    x = load("small").x
    age = small_table()["age"].to_numpy().astype(np.float32).astype(np.float64)

    assert x.dtype == np.float32
    assert np.allclose(x.mean(axis=0), 0, atol=1e-6)
    assert np.allclose(x.std(axis=0), [1, 1, 0], atol=1e-6)
    assert np.allclose(x[:, 1], (age - age.mean()) / age.std(), atol=1e-6)
    assert np.all(x[:, 2] == 0)


def test_more_rows_than_there_are(folder: Path) -> None:
    """The message says how many there are."""
    task = find_table("small")

    with pytest.raises(UserError) as error:
        task.draw([0], "train", 30, 7)
    assert str(error.value) == (
        "The table small has 36 train rows, and 37 were asked for. Ask for at most 36."
    )
    with pytest.raises(UserError) as error:
        task.draw([0], "test", 0, 5)
    assert str(error.value) == (
        "The table small has 4 test rows, and 5 were asked for. Ask for at most 4."
    )


def test_data_that_a_table_cannot_give() -> None:
    """Too many rows and fresh rows are refused; all the rows, and noisy labels, are not."""
    task = Table("credit", 16_714, 10, "a" * 16)
    task.check_data(Data(m=15_043, n_test=1671, label_noise=0.1))

    for data, sentence in (
        (
            Data(m=15_044, n_test=1671),
            "The table credit has 15043 training rows, and data.m=15044 were asked for. Give "
            "data.m of at most 15043.",
        ),
        (
            Data(m=100, n_test=1672),
            "The table credit has 1671 test rows, a tenth of its 16714, and data.n_test=1672 were "
            "asked for. Give data.n_test of at most 1671.",
        ),
        (
            Data(m=ONLINE, n_test=1671),
            "The table credit has 15043 training rows, and data.m=inf asks for fresh ones at each "
            "step. Give data.m of at most 15043.",
        ),
    ):
        with pytest.raises(UserError) as error:
            task.check_data(data)
        assert str(error.value) == sentence


@given(seed=st.integers(0, 10**6))
def test_a_table_is_read_back_from_its_text(seed: int) -> None:
    """Whatever the content, its digest is never mistaken for a number."""
    x = np.random.default_rng(seed).normal(size=(3, 1)).astype(np.float32)
    digest = content_digest(["a"], x, np.zeros(3, np.uint8))
    task = Table("bank-marketing", 10_578, 7, digest)

    assert parse(describe(task), "task", Task, OFFERED) == task


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"dataset": "a,b"},
            "Table: dataset='a,b'. Give a name that begins with a letter and has letters, digits, "
            "'_', '-' and '.' alone.",
        ),
        ({"rows": 9}, "Table: rows=9. Give a whole number of at least 10."),
        ({"features": 0}, "Table: features=0. Give a whole number of at least 1."),
        ({"classes": 1}, "Table: classes=1. Give a whole number of at least 2."),
        ({"classes": 257}, "Table: classes=257. Give at most 256."),
        (
            {"digest": "1234"},
            "Table: digest='1234'. Give the 16 hexadecimal digits that find_table finds.",
        ),
    ],
)
def test_a_table_that_cannot_be(change: dict[str, Any], sentence: str) -> None:
    """The message says what was given and what to give."""
    with pytest.raises(UserError) as error:
        replace(Table("small", 40, 3, "a" * 16), **change)
    assert str(error.value) == sentence


# Its digest


@given(data=st.data())
def test_the_digest_changes_with_any_cell(data: st.DataObject) -> None:
    """So does a label, a column's name, and the order of rows or columns."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    x, y = rng.normal(size=(6, 3)).astype(np.float32), rng.integers(0, 2, 6).astype(np.uint8)
    columns = ["a", "b", "c"]
    row, column = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 2))
    other_x, other_y, other_columns = x.copy(), y.copy(), [*columns]
    other_x[row, column] = np.nextafter(x[row, column], np.float32(np.inf))
    other_y[row] ^= 1
    other_columns[column] = "d"
    digest = content_digest(columns, x, y)

    assert content_digest(columns, x.copy(order="F"), y.astype(np.int64)) == digest
    for other in (
        content_digest(columns, other_x, y),
        content_digest(columns, x, other_y),
        content_digest(other_columns, x, y),
        content_digest(columns, x[::-1], y),
        content_digest(columns[::-1], x[:, ::-1], y),
    ):
        assert other != digest


def test_the_digest_of_a_table_by_hand() -> None:
    """SHA-256 over names, columns and labels, from its first letter on."""
    x = np.array([[1, 2], [3, 4]], np.float32)
    text = b'["u", "v"]' + np.array([1, 3, 2, 4], "<f4").tobytes() + bytes([0, 1])
    digits = hashlib.sha256(text).hexdigest()
    first = next(place for place, digit in enumerate(digits) if digit in "abcdef")

    assert content_digest(["u", "v"], x, np.array([0, 1])) == digits[first : first + 16]


def test_a_changed_file_is_another_table(folder: Path) -> None:
    """A run of the earlier table refuses the file, and says what to do."""
    task = find_table("small")
    small_table(50).write_parquet(folder / "small.parquet")
    now = find_table("small")

    assert (now.rows, now.digest != task.digest) == (50, True)
    with pytest.raises(UserError) as error:
        task.draw([0], "train", 0, 1)
    assert str(error.value) == (
        f"{folder / 'small.parquet'} has the digest {now.digest}, but this run is of the table "
        f"small with the digest {task.digest}. Give the folder that holds that table with --data "
        "or PETRIDISH_DATA, or declare the runs anew with this one."
    )
