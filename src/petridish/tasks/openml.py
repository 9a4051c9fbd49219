"""Tables of the benchmark from OpenML, put where `table_files` finds them."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, nearest
from petridish.tasks.benchmark_tables import BENCHMARK
from petridish.tasks.table_files import (
    TARGET,
    Classes,
    Floats,
    cache_folder,
    checked_content,
    hash_file,
)

OPENML_TASK = "https://www.openml.org/api/v1/json/task/{}"
TIMEOUT = 30.0  # seconds


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
    content = checked_content(
        f"OpenML's {dataset}", columns, x, target
    )  # refuses what no run could use
    return _keep(dataset, columns, x, content.labels, cache or cache_folder())


def _download(task: int) -> tuple[tuple[str, ...], Floats, NDArray[Any]]:
    """Ask OpenML which data set and target a task has, and get them."""
    import urllib.request  # slow to import

    from sklearn.datasets import fetch_openml

    with urllib.request.urlopen(OPENML_TASK.format(task), timeout=TIMEOUT) as answer:
        inputs = json.load(answer)["task"]["input"]
    source = next((part["data_set"] for part in inputs if part["name"] == "source_data"), None)
    if source is None:
        raise LookupError(f"the task {task} names no data set")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning for each retry
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
    noted.replace(hash_file(path))
    part.replace(path)
    return path
