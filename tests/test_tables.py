"""Tables: what a run draws of them, how they are found, and how they come from OpenML."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.naming import UserError, describe, parse_choice
from petridish.tasks import tables
from petridish.tasks.tables import BENCHMARK, TABLE_2, content_digest, fetch_table, load
from petridish.tasks.tabular import Table, find_table, find_tables
from petridish.training import ONLINE, Data

ROWS = 40
SEEDS = st.integers(0, 2**64 - 1)


def small_table(rows: int = ROWS) -> pl.DataFrame:
    """Give a table whose column `row` says which row it is."""
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "row": np.arange(rows, dtype=np.float32),
            "age": rng.normal(40, 9, rows),
            "same": np.full(rows, 0.1, np.float32),
            "target": ["yes" if row % 3 else "no" for row in range(rows)],
        }
    )


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test see the user's own tables."""
    monkeypatch.delenv("PETRIDISH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder with the table `small`, which runs find too."""
    made = tmp_path / "data"
    made.mkdir()
    small_table().write_parquet(made / "small.parquet")
    monkeypatch.setenv("PETRIDISH_DATA", str(made))
    return made


def rows_of(examples: Any, rows: int) -> list[list[int]]:
    """Say which rows were drawn, by undoing the standardisation of the column `row`."""
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
    return tables._content("a table", *tables._columns(table, Path("a table")))


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

    assert parse_choice(describe(task), "task", {"task": {Table.name: Table}}) == task


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
            "Table: digest='1234'. Give the 16 hexadecimal digits that find_table gives.",
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


# How it is found


def test_a_table_describes_itself(folder: Path) -> None:
    """Rows, features without the target, and classes are read off the file."""
    task = find_table("small")

    assert task == Table("small", ROWS, 3, load("small").digest)
    assert (task.n_inputs, task.n_classes, task.n_test_rows, task.n_train_rows) == (3, 2, 4, 36)


def test_tables_of_the_benchmark_come_in_its_order(tmp_path: Path) -> None:
    """Others in the folder are left alone, and a subfolder `tabular` will do."""
    (tmp_path / "tabular").mkdir()
    for name in ("pol", "credit", "other"):
        small_table().write_parquet(tmp_path / "tabular" / f"{name}.parquet")

    assert [task.dataset for task in find_tables(tmp_path)] == ["credit", "pol"]
    assert find_tables() == []


def test_the_variable_comes_before_the_cache(folder: Path, tmp_path: Path) -> None:
    """A table that the named folder lacks is looked for in the cache."""
    cache = tmp_path / "cache" / "petridish" / "tables"
    cache.mkdir(parents=True)
    small_table(20).write_parquet(cache / "small.parquet")
    small_table(30).write_parquet(cache / "pol.parquet")

    assert find_table("small").rows == ROWS
    assert find_table("pol").rows == 30
    assert find_table("small", cache).rows == 20


@pytest.mark.parametrize(
    ("name", "rows", "features", "classes"),
    [
        ("breast_cancer", 569, 30, 2),
        ("wine", 178, 13, 3),
        ("digits", 1797, 64, 10),
        ("iris", 150, 4, 3),
    ],
)
def test_tables_of_scikit_learn_need_no_file(
    name: str, rows: int, features: int, classes: int
) -> None:
    """They are found by name, anywhere."""
    task = find_table(name)

    assert (task.rows, task.features, task.classes) == (rows, features, classes)
    assert task.draw([0], "train", 0, 5).x.shape == (1, 5, features)


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    """The message names where it was looked for, and the nearest name or the ways to get it."""
    small_table().write_parquet(tmp_path / "mine.parquet")
    cache = tmp_path / "cache" / "petridish" / "tables"

    for name, folder, sentence in (
        ("mien", tmp_path, f"There is no table called 'mien' in {tmp_path}. Did you mean mine?"),
        ("Credit", None, f"There is no table called 'Credit' in {cache}. Did you mean credit?"),
        (
            "heloc",
            None,
            f"The table heloc is not in {cache}. Let PETRIDISH_DATA (or --data of `petridish "
            "tabular bench`) name a directory that holds heloc.parquet, or fetch it from OpenML "
            "with `petridish tabular fetch heloc`.",
        ),
    ):
        with pytest.raises(UserError) as error:
            find_table(name, folder)
        assert str(error.value) == sentence


def test_a_folder_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong folder is not taken for an empty one."""
    gone = tmp_path / "gone"
    with pytest.raises(UserError) as error:
        find_tables(gone)
    assert str(error.value) == (
        f"There is no folder {gone}. Give a directory that holds NAME.parquet files."
    )
    monkeypatch.setenv("PETRIDISH_DATA", str(gone))
    with pytest.raises(UserError) as error:
        find_table("wine")
    assert str(error.value) == (
        f"There is no folder {gone}, which PETRIDISH_DATA names. Give a directory that holds "
        "NAME.parquet files."
    )


Change = Callable[[pl.DataFrame], pl.DataFrame]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda t: t.rename({"target": "y"}),
            "{path} has no column 'target'. Call the column that holds the classes target.",
        ),
        (
            lambda t: t.with_columns(age=pl.lit("old")),
            "The column 'age' of {path} is of the type String, not a number. Encode it as numbers "
            "or leave it out.",
        ),
        (
            lambda t: t.with_columns(age=pl.when(pl.col("row") > 3).then(pl.col("age"))),
            "The column 'age' of {path} has values that are missing or not finite. Fill them in or "
            "leave out those rows.",
        ),
        (
            lambda t: t.with_columns(age=pl.lit(1e300)),
            "The column 'age' of {path} has values that are missing or not finite. Fill them in or "
            "leave out those rows.",
        ),
        (
            lambda t: t.with_columns(target=pl.when(pl.col("row") > 3).then(pl.col("target"))),
            "{path} has rows without a class in 'target'. Fill in or leave out those rows.",
        ),
        (
            lambda t: t.with_columns(target=pl.lit("yes")),
            "The column 'target' of {path} has 1 different values. Give from 2 to 256 classes.",
        ),
        (
            lambda t: t.select("target"),
            "{path} has no column but 'target'. Give at least one feature.",
        ),
        (
            lambda t: t.head(9),
            "{path} has 9 rows. Give a table of at least 10 rows.",
        ),
    ],
)
def test_a_table_that_no_run_could_use(folder: Path, change: Change, sentence: str) -> None:
    """The message names the file and the column, and says what to do."""
    path = folder / "bad.parquet"
    change(small_table()).write_parquet(path)

    with pytest.raises(UserError) as error:
        find_table("bad")
    assert str(error.value) == sentence.format(path=path)


def test_a_file_that_is_no_table(folder: Path) -> None:
    """A torn file is named."""
    path = folder / "torn.parquet"
    path.write_bytes((folder / "small.parquet").read_bytes()[:200])

    with pytest.raises(UserError) as error:
        find_table("torn")
    assert str(error.value).startswith(f"{path} cannot be read as Parquet (")
    assert str(error.value).endswith("). Give a whole Parquet file.")


# The benchmark


def test_the_benchmark_is_the_papers_table_1() -> None:
    """16 tasks; the paper's counts of features include the target, and here it is left out."""
    paper = (
        *((11, 16714), (8, 38474), (11, 566602), (27, 10082), (17, 13488), (11, 13376)),
        *((8, 10578), (51, 72998), (25, 940160), (21, 7608), (8, 71090), (55, 57580)),
        *((21, 13272), (420, 3434), (9, 20634), (23, 10000)),
    )

    assert [(table.features + 1, table.rows) for table in BENCHMARK] == [*paper]
    assert [table.task for table in BENCHMARK] == sorted({table.task for table in BENCHMARK})


def test_table_2_by_task() -> None:
    """Each row stands under its task; the best published model is no worse than the other two."""
    assert [*TABLE_2] == [table.name for table in BENCHMARK]
    pol = TABLE_2["pol"]
    assert (pol.mlp, pol.forest) == ((1.4, 4.2, 12.3), (2.1, 4.0, 10.0))
    assert (pol.tuned_mlp, pol.tuned_forest, pol.best, pol.best_model) == (6.3, 1.9, 1.7, "XGB")
    assert TABLE_2["heloc"].best_model == "ResNet"
    for row in TABLE_2.values():
        assert row.best <= min(row.tuned_mlp, row.tuned_forest)
        assert row.mlp == tuple(sorted(row.mlp))


# OpenML


class FakeOpenML:
    """OpenML's answers for the task 361278, and what was asked of it."""

    def __init__(self, rows: int = 10_000, features: int = 22) -> None:
        self.asked: list[Any] = []
        rng = np.random.default_rng(0)
        self.data = SimpleNamespace(
            data=rng.normal(size=(rows, features)),
            target=np.array(["1", "0"] * (rows // 2), dtype=object),
            feature_names=[f"f{place}" for place in range(features)],
        )

    def urlopen(self, url: str, *, timeout: float) -> io.BytesIO:
        """Answer as OpenML's task interface does."""
        self.asked.append(url)
        source = {"data_set_id": "45026", "target_feature": "RiskPerformance"}
        inputs = [{"name": "cost_matrix"}, {"name": "source_data", "data_set": source}]
        return io.BytesIO(json.dumps({"task": {"task_id": "361278", "input": inputs}}).encode())

    def fetch_openml(self, **arguments: Any) -> SimpleNamespace:
        """Answer as scikit-learn does."""
        self.asked.append(arguments)
        return self.data


def use(fake: FakeOpenML, patch: pytest.MonkeyPatch) -> None:
    """Put the fake in the place of the network."""
    patch.setattr("urllib.request.urlopen", fake.urlopen)
    patch.setattr("sklearn.datasets.fetch_openml", fake.fetch_openml)


def test_a_table_is_fetched_by_its_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task says which data set and which target; the file and its hash go to the cache."""
    fake = FakeOpenML()
    use(fake, monkeypatch)
    path = fetch_table("heloc")

    assert fake.asked == [
        "https://www.openml.org/api/v1/json/task/361278",
        {"data_id": 45026, "target_column": "RiskPerformance", "as_frame": False, "cache": False},
    ]
    assert path == tmp_path / "cache" / "petridish" / "tables" / "heloc.parquet"
    assert sorted(file.name for file in path.parent.iterdir()) == ["heloc.parquet", "heloc.sha256"]
    noted = path.with_suffix(".sha256").read_text()
    assert noted == f"{hashlib.sha256(path.read_bytes()).hexdigest()}  heloc.parquet\n"
    (task,) = find_tables()
    assert (task.dataset, task.rows, task.features, task.classes) == ("heloc", 10_000, 22, 2)
    content = load("heloc")
    assert content.labels[:4].tolist() == [1, 0, 1, 0]
    raw = pl.read_parquet(path).drop("target").to_numpy()
    assert np.array_equal(raw, fake.data.data.astype(np.float32))


def test_a_damaged_file_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not the one fetched is refused, though it is a table."""
    use(FakeOpenML(), monkeypatch)
    path = fetch_table("heloc", tmp_path)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    small_table().write_parquet(path)
    now = hashlib.sha256(path.read_bytes()).hexdigest()

    with pytest.raises(UserError) as error:
        find_table("heloc", tmp_path)
    assert str(error.value) == (
        f"{path} has the SHA-256 {now[:16]}…, but heloc.sha256 beside it says {before[:16]}…: the "
        "file was damaged or changed. Delete both and fetch the table again."
    )


def test_no_connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One sentence says what to do instead, and nothing is left behind."""

    def urlopen(url: str, *, timeout: float) -> None:
        raise URLError("no route to host")

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    with pytest.raises(UserError) as error:
        fetch_table("credit", tmp_path / "tables")
    assert str(error.value) == (
        "The table credit could not be fetched from OpenML (<urlopen error no route to host>). "
        "Check the connection, or give a directory that holds credit.parquet with --data."
    )
    assert not (tmp_path / "tables").exists()


def test_an_answer_of_another_kind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A task without a data set, and a page that is no JSON, are no table."""
    for answer, reason in (
        (b'{"task": {"input": []}}', "the task 361055 names no data set"),
        (b"<html>", "Expecting value: line 1 column 1 (char 0)"),
        (b"{}", "'task'"),
    ):
        monkeypatch.setattr("urllib.request.urlopen", lambda *_, a=answer, **__: io.BytesIO(a))
        with pytest.raises(UserError) as error:
            fetch_table("credit", tmp_path)
        assert str(error.value) == (
            f"The table credit could not be fetched from OpenML ({reason}). Check the connection, "
            "or give a directory that holds credit.parquet with --data."
        )


def test_another_table_than_the_benchmarks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A version of another size is refused, and not kept."""
    use(FakeOpenML(rows=100), monkeypatch)
    with pytest.raises(UserError) as error:
        fetch_table("heloc", tmp_path)
    assert str(error.value) == (
        "OpenML gave 100 rows and 22 features for heloc, but the benchmark's table has 10000 and "
        "22. Give a directory that holds heloc.parquet with --data."
    )
    assert [*tmp_path.iterdir()] == []


def test_a_table_outside_the_benchmark_is_not_fetched() -> None:
    """The nearest name is offered."""
    with pytest.raises(UserError) as error:
        fetch_table("higgs")
    assert str(error.value) == (
        "There is no table called 'higgs' in the benchmark. Did you mean Higgs?"
    )
