"""Tables on disk: where they are found, what they hold, and how they come from OpenML.

A table is a Parquet file NAME.parquet with numerical feature columns and a column `target` of
classes. Its *digest* names its content: a subset and the whole are two tables.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, nearest

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float32]
Classes = NDArray[np.uint8]

DATA_VARIABLE = "PETRIDISH_DATA"  # environment: a folder of NAME.parquet, here or in tabular/
TARGET = "target"
BUNDLED = ("breast_cancer", "digits", "iris", "wine")  # they come with scikit-learn
MOST_CLASSES = 256
OPENML_TASK = "https://www.openml.org/api/v1/json/task/{}"
TIMEOUT = 30.0  # seconds


@dataclass(frozen=True)
class BenchmarkTable:
    """A task of the benchmark of Grinsztajn et al. 2022, OpenML suite 337 [PF Table 1].

    `features` leaves the target out; the paper's table counts it. `task` is OpenML's id.
    """

    name: str
    task: int
    rows: int
    features: int


BENCHMARK: tuple[BenchmarkTable, ...] = (
    BenchmarkTable("credit", 361055, 16_714, 10),
    BenchmarkTable("electricity", 361060, 38_474, 7),
    BenchmarkTable("covertype", 361061, 566_602, 10),
    BenchmarkTable("pol", 361062, 10_082, 26),
    BenchmarkTable("house_16H", 361063, 13_488, 16),
    BenchmarkTable("MagicTelescope", 361065, 13_376, 10),
    BenchmarkTable("bank-marketing", 361066, 10_578, 7),
    BenchmarkTable("MiniBooNE", 361068, 72_998, 50),
    BenchmarkTable("Higgs", 361069, 940_160, 24),
    BenchmarkTable("eye_movements", 361070, 7_608, 20),
    BenchmarkTable("Diabetes130US", 361273, 71_090, 7),
    BenchmarkTable("jannis", 361274, 57_580, 54),
    BenchmarkTable("default-of-credit-card-clients", 361275, 13_272, 20),
    BenchmarkTable("Bioresponse", 361276, 3_434, 419),
    BenchmarkTable("california", 361277, 20_634, 8),
    BenchmarkTable("heloc", 361278, 10_000, 22),
)
"""The 16 tasks in the order of the paper."""


@dataclass(frozen=True)
class Published:
    """A row of the paper's Table 2: test errors in percent.

    `mlp` and `forest` are the paper's best medians over 100 trials, trained on all training rows,
    on 10 % and on 1 % of them. The other fields are what it quotes of Grinsztajn et al. 2022, for
    the whole table: a tuned MLP, a tuned forest, and the best of their models with its name.
    """

    mlp: tuple[float, float, float]
    forest: tuple[float, float, float]
    tuned_mlp: float
    tuned_forest: float
    best: float
    best_model: str


def _published(*row: Any) -> Published:
    return Published(row[0:3], row[3:6], *row[6:])


TABLE_2: dict[str, Published] = {
    table.name: _published(*row)
    for table, row in zip(
        BENCHMARK,
        (
            (24.5, 27.8, 34.2, 22.0, 22.9, 24.8, 22.9, 23.6, 22.5, "GBT"),
            (18.9, 23.2, 25.1, 15.4, 18.0, 23.0, 23.6, 13.7, 12.8, "XGB"),
            (6.3, 13.7, 23.2, 19.1, 18.9, 21.4, 21.6, 17.1, 17.1, "RF"),
            (1.4, 4.2, 12.3, 2.1, 4.0, 10.0, 6.3, 1.9, 1.7, "XGB"),
            (12.7, 14.9, 20.0, 12.4, 13.9, 17.4, 12.1, 12.0, 11.1, "XGB"),
            (14.6, 16.5, 23.1, 14.8, 16.8, 21.9, 14.6, 14.5, 13.9, "FTT"),
            (20.2, 21.8, 25.9, 19.7, 21.1, 25.2, 20.9, 20.1, 19.5, "GBT"),
            (7.2, 10.0, 14.4, 7.7, 8.6, 10.5, 6.7, 7.3, 6.2, "XGB"),
            (26.1, 28.7, 33.7, 28.5, 28.7, 29.9, 31.4, 29.1, 28.6, "XGB"),
            (39.9, 43.9, 46.3, 35.8, 43.0, 47.8, 41.8, 34.8, 33.4, "XGB"),
            (39.1, 39.3, 40.7, 39.1, 39.4, 40.6, 39.5, 39.5, 39.4, "XGB"),
            (23.0, 26.1, 28.7, 22.0, 23.8, 27.2, 25.5, 22.7, 22.0, "XGB"),
            (28.7, 30.1, 33.5, 28.2, 29.2, 31.9, 28.9, 28.0, 28.0, "RF"),
            (19.5, 28.9, 37.6, 22.2, 29.2, 39.8, 23.4, 20.5, 20.5, "RF"),
            (12.2, 14.8, 20.8, 11.2, 13.8, 18.4, 12.9, 10.6, 9.7, "XGB"),
            (27.1, 28.0, 31.3, 27.8, 28.6, 31.0, 27.8, 28.1, 27.4, "ResNet"),
        ),
        strict=True,
    )
}
"""The paper's Table 2 by task."""


@dataclass(frozen=True, eq=False)
class Content:
    """What a table holds.

    Attributes
    ----------
    source : str
        The file, or the package that it comes with.
    columns : tuple of str
        Names of the features.
    x : array of float32, shape (row, feature)
        Features, standardised over the whole table; a constant column is 0.
    labels : array of uint8, shape (row,)
        The classes 0 … n − 1, in the order of their sorted values in the column `target`.
    digest : str
        Of the content as it was, before standardising.
    """

    source: str
    columns: tuple[str, ...]
    x: Floats
    labels: Classes
    digest: str

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.labels.max()) + 1


def content_digest(columns: Sequence[str], x: Floats, labels: Classes) -> str:
    """Name the content of a table by 16 hexadecimal digits of a hash.

    SHA-256 runs over the column names, each column's float32 values, and the labels. The digits
    taken begin at the first letter, so that no reader of a run's text takes them for a number.
    """
    running = hashlib.sha256(json.dumps(list(columns)).encode())
    for column in range(x.shape[1]):
        running.update(np.ascontiguousarray(x[:, column], dtype="<f4").tobytes())
    running.update(labels.astype("<u1").tobytes())
    found = re.search("[a-f][0-9a-f]{15}", running.hexdigest() + "a" * 16)
    assert found is not None, "the text ends in 16 letters"
    return found[0]


def standardised(x: Floats) -> Floats:
    """Centre each column and divide it by its standard deviation; a constant column becomes 0."""
    scaled = np.zeros_like(x)
    for column in range(x.shape[1]):
        values = x[:, column].astype(np.float64)
        if values.min() < values.max():
            scaled[:, column] = (values - values.mean()) / values.std()
    return scaled


def load(dataset: str, folder: Path | None = None) -> Content:
    """Read a table, once in a process.

    Parameters
    ----------
    dataset : str
        Its name: that of a file NAME.parquet, or one of `BUNDLED`.
    folder : Path, optional
        Where to look; otherwise in the folder that PETRIDISH_DATA names, then in the cache.
    """
    path = find_file(dataset, folder)
    if path is not None:
        status = path.stat()
        return _read(path, (status.st_mtime_ns, status.st_size))
    if dataset in BUNDLED:
        return _bundled(dataset)
    raise _missing(dataset, folder)


def find_file(dataset: str, folder: Path | None = None) -> Path | None:
    """Give the file of a table, or None if there is none."""
    for place in _places(folder):
        for path in (place / f"{dataset}.parquet", place / "tabular" / f"{dataset}.parquet"):
            if path.is_file():
                return path
    return None


def cache_folder() -> Path:
    """Give the folder that holds tables fetched from OpenML."""
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "petridish" / "tables"


def _places(folder: Path | None) -> list[Path]:
    named = os.environ.get(DATA_VARIABLE)
    given = folder if folder is not None else Path(named) if named else None
    if given is not None and not given.is_dir():
        origin = "" if folder is not None else f", which {DATA_VARIABLE} names"
        raise UserError(
            f"There is no folder {given}{origin}. Give a directory that holds NAME.parquet files."
        )
    if folder is not None:
        return [folder]
    return [given, cache_folder()] if given is not None else [cache_folder()]


def _missing(dataset: str, folder: Path | None) -> UserError:
    places = _places(folder)
    looked = " or ".join(str(place) for place in places)
    if dataset in {table.name for table in BENCHMARK}:
        return UserError(
            f"The table {dataset} is not in {looked}. Let {DATA_VARIABLE} (or --data of `petridish "
            f"tabular bench`) name a directory that holds {dataset}.parquet, or fetch it from "
            f"OpenML with `petridish tabular fetch {dataset}`."
        )
    folders = [part for place in places for part in (place, place / "tabular")]
    there = {path.stem for part in folders for path in part.glob("*.parquet")}
    known = there | {table.name for table in BENCHMARK} | {*BUNDLED}
    return UserError(f"There is no table called {dataset!r} in {looked}. {nearest(dataset, known)}")


@lru_cache(maxsize=16)
def _read(path: Path, stamp: tuple[int, int]) -> Content:  # the stamp notices a changed file
    import polars as pl

    _check_hash(path)
    try:
        table = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UserError(
            f"{path} cannot be read as Parquet ({str(error).splitlines()[0]}). Give a whole "
            "Parquet file."
        ) from error
    return _content(str(path), *_columns(table, path))


def _columns(table: pl.DataFrame, path: Path) -> tuple[tuple[str, ...], Floats, NDArray[Any]]:
    if TARGET not in table.columns:
        raise UserError(
            f"{path} has no column {TARGET!r}. Call the column that holds the classes {TARGET}."
        )
    import polars as pl

    features = table.drop(TARGET)
    for name, dtype in features.schema.items():
        if not (dtype.is_numeric() or dtype == pl.Boolean):
            raise UserError(
                f"The column {name!r} of {path} is of the type {dtype}, not a number. Encode it as "
                "numbers or leave it out."
            )
    target = table[TARGET]
    if target.null_count() or (target.dtype.is_float() and target.is_nan().any()):
        raise UserError(
            f"{path} has rows without a class in {TARGET!r}. Fill in or leave out those rows."
        )
    x = np.empty((table.height, features.width), np.float32)
    for place, name in enumerate(features.columns):
        x[:, place] = features[name].cast(pl.Float32).to_numpy()
    return tuple(features.columns), x, target.to_numpy()


def _content(source: str, columns: tuple[str, ...], x: Floats, target: NDArray[Any]) -> Content:
    """Check a table and bring it to the form that runs see."""
    bad = [name for place, name in enumerate(columns) if not np.isfinite(x[:, place]).all()]
    if bad:
        raise UserError(
            f"The column {bad[0]!r} of {source} has values that are missing or not finite. Fill "
            "them in or leave out those rows."
        )
    values, codes = np.unique(target, return_inverse=True)
    if not 2 <= len(values) <= MOST_CLASSES:
        raise UserError(
            f"The column {TARGET!r} of {source} has {len(values)} different values. Give from 2 to "
            f"{MOST_CLASSES} classes."
        )
    if not columns:
        raise UserError(f"{source} has no column but {TARGET!r}. Give at least one feature.")
    labels = codes.astype(np.uint8)
    scaled = standardised(x)
    scaled.flags.writeable = labels.flags.writeable = False  # shared by all runs of the process
    return Content(source, columns, scaled, labels, content_digest(columns, x, labels))


@lru_cache(maxsize=len(BUNDLED))
def _bundled(dataset: str) -> Content:
    from sklearn import datasets

    loaded = getattr(datasets, f"load_{dataset}")()
    columns = tuple(str(name) for name in loaded.feature_names)
    return _content(f"scikit-learn's {dataset}", columns, loaded.data.astype("f4"), loaded.target)


def _hash_file(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _check_hash(path: Path) -> None:
    """Compare a file with the hash noted when it was fetched, where one was."""
    noted = _hash_file(path)
    if not noted.is_file():
        return
    expected = noted.read_text().split()[0]
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != expected:
        raise UserError(
            f"{path} has the SHA-256 {found[:16]}…, but {noted.name} beside it says "
            f"{expected[:16]}…: the file was damaged or changed. Delete both and fetch the table "
            "again."
        )


def fetch_table(dataset: str, cache: Path | None = None) -> Path:
    """Fetch a table of the benchmark from OpenML into the cache, and note its SHA-256.

    Parameters
    ----------
    dataset : str
        A name of `BENCHMARK`.
    cache : Path, optional
        The folder to write NAME.parquet and NAME.sha256 to; otherwise `cache_folder()`.

    Returns
    -------
    path : Path
        The Parquet file.
    """
    known = {table.name: table for table in BENCHMARK}
    if dataset not in known:
        raise UserError(
            f"There is no table called {dataset!r} in the benchmark. {nearest(dataset, known)}"
        )
    try:
        columns, x, target = _download(known[dataset].task)
    except ImportError as error:
        raise UserError(
            f"Fetching {dataset} from OpenML needs pandas. Run pip install 'petridish[tabular]'."
        ) from error
    except (OSError, ValueError, LookupError) as error:  # no connection, or no usable answer
        raise UserError(
            f"The table {dataset} could not be fetched from OpenML ({error}). Check the "
            f"connection, or give a directory that holds {dataset}.parquet with --data."
        ) from error
    expected = known[dataset].rows, known[dataset].features
    if x.shape != expected:
        raise UserError(
            f"OpenML gave {x.shape[0]} rows and {x.shape[1]} features for {dataset}, but the "
            f"benchmark's table has {expected[0]} and {expected[1]}. Give a directory that holds "
            f"{dataset}.parquet with --data."
        )
    content = _content(f"OpenML's {dataset}", columns, x, target)  # refuses what no run could use
    return _keep(dataset, columns, x, content.labels, cache or cache_folder())


def _download(task: int) -> tuple[tuple[str, ...], Floats, NDArray[Any]]:
    """Ask OpenML which data set and target a task has, and get them."""
    import urllib.request  # it brings the whole of HTTP and TLS along

    from sklearn.datasets import fetch_openml

    with urllib.request.urlopen(OPENML_TASK.format(task), timeout=TIMEOUT) as answer:
        inputs = json.load(answer)["task"]["input"]
    source = next((part["data_set"] for part in inputs if part["name"] == "source_data"), None)
    if source is None:
        raise LookupError(f"the task {task} names no data set")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns before each new try
        got = fetch_openml(
            data_id=int(source["data_set_id"]),
            target_column=source["target_feature"],
            as_frame=False,
            cache=False,
        )
    columns = tuple(str(name) for name in got.feature_names)
    return columns, got.data.astype(np.float32), np.asarray(got.target).astype(str)


def _keep(dataset: str, columns: tuple[str, ...], x: Floats, labels: Classes, folder: Path) -> Path:
    """Write a table and its hash aside, then put them in place: a reader sees whole files."""
    import polars as pl

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{dataset}.parquet"
    part = folder / f"{dataset}.{os.getpid()}.part"
    table = {name: x[:, place] for place, name in enumerate(columns)} | {TARGET: labels}
    pl.DataFrame(table).write_parquet(part)
    noted = part.with_suffix(".hash")
    noted.write_text(f"{hashlib.sha256(part.read_bytes()).hexdigest()}  {path.name}\n")
    noted.replace(_hash_file(path))
    part.replace(path)
    return path
