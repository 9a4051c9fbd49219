"""Tables on disk: where they are found, and what they hold.

A table is a Parquet file NAME.parquet with numerical feature columns and a column `target` of
classes. Its *digest* names its content: a subset and the whole are two tables.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, first_line, nearest
from petridish.tasks.benchmark_tables import BENCHMARK

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float32]
Classes = NDArray[np.uint8]

DATA_VARIABLE = "PETRIDISH_DATA"  # environment: a folder of NAME.parquet, here or in tabular/
TARGET = "target"
BUNDLED = ("breast_cancer", "digits", "iris", "wine")  # they come with scikit-learn
MOST_CLASSES = 256


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
    taken begin at the first letter, so that they are never read as a number.
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
    """Read a table, once per process.

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
    """Return the file of a table, or None if there is none."""
    for place in _places(folder):
        for path in (place / f"{dataset}.parquet", place / "tabular" / f"{dataset}.parquet"):
            if path.is_file():
                return path
    return None


def cache_folder() -> Path:
    """Return the folder that holds tables fetched from OpenML."""
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
            f"{path} cannot be read as Parquet ({first_line(error)}). Give a whole Parquet file."
        ) from error
    return checked_content(str(path), *_columns(table, path))


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


def checked_content(
    source: str, columns: tuple[str, ...], x: Floats, target: NDArray[Any]
) -> Content:
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
    return checked_content(
        f"scikit-learn's {dataset}", columns, loaded.data.astype("f4"), loaded.target
    )


def hash_file(path: Path) -> Path:
    """Return the file that notes the hash of a fetched table."""
    return path.with_suffix(".sha256")


def _check_hash(path: Path) -> None:
    """Compare a file with the hash noted when it was fetched, where one was."""
    noted = hash_file(path)
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
