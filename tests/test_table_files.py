"""Tables in files: how they are found, the benchmark, OpenML."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import numpy as np
import polars as pl
import pytest

from petridish.chapters.tables.published import TABLE_2
from petridish.errors import UserError
from petridish.tasks.benchmark_tables import BENCHMARK
from petridish.tasks.openml import fetch_table
from petridish.tasks.table import Table, find_table, find_tables
from petridish.tasks.table_files import load
from tests.domains import reals
from tests.small_tables import ROWS, see_no_tables, small_folder, small_table


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test see the user's own tables."""
    see_no_tables(tmp_path, monkeypatch)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the table `small`, which runs find too."""
    return small_folder(tmp_path, monkeypatch)


# How it is found


def test_a_table_describes_itself(folder: Path) -> None:
    """Rows, features without the target, and classes are read off the file."""
    task = find_table("small")

    assert task == Table("small", ROWS, 3, load("small").digest)
    assert task.domain == reals(3)
    assert (task.n_test_rows, task.n_train_rows) == (4, 36)


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
    """Each row stands under its task; fewer rows make an MLP no better."""
    assert [*TABLE_2] == [table.name for table in BENCHMARK]
    pol = TABLE_2["pol"]
    assert (pol.mlp, pol.forest) == ((1.4, 4.2, 12.3), (2.1, 4.0, 10.0))
    assert (pol.tuned_mlp, pol.tuned_forest, pol.best, pol.best_model) == (6.3, 1.9, 1.7, "XGB")
    for row in TABLE_2.values():
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
    noted = path.with_suffix(".sha256").read_text(encoding="utf-8")
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
