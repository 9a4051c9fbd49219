"""A store: a directory of immutable Parquet shards.

A shard is written aside, flushed, then renamed, so that a reader sees the whole file or none, and
many writers need no lock. Its name is `<time>-<digest>.parquet`: shards sort by age, and a file
whose bytes do not match its digest is torn. A key that occurs twice is harmless: the first wins.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from petridish.errors import UserError
from petridish.store.columns import (
    FIXED,
    SEED,
    Columns,
    is_kept,
    is_measured,
    to_table,
    with_fields,
)
from petridish.store.weights import WeightFiles
from petridish.training import RunRecord, flat, read_cell
from petridish.values import find_gone

SCHEMA = 3  # rises when shards come to be written in another way
_SHARD = re.compile(r"^[0-9a-f]{16}-([0-9a-f]{16})\.parquet$")
_SCHEMA_KEY = "petridish.schema"


class StoreError(UserError):
    """The store cannot be read or written as it is."""


@dataclass(frozen=True)
class Reading:
    """What a store holds: one row per key, and a sentence about each file that was passed over."""

    table: pl.DataFrame
    problems: tuple[str, ...] = ()


class Store:
    """The runs kept in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.weights = WeightFiles(folder)
        self._seen: set[Path] = set()  # shards whose keys are known
        self._keys: set[str] = set()
        self._endings = pl.DataFrame(schema={"key": pl.String, "outcome": pl.String})

    def prepare(self) -> None:
        """Make the folder, and refuse one that cannot be written, before anything is trained."""
        if self.folder.exists() and not self.folder.is_dir():
            raise StoreError(f"The store {self.folder} is a file. Give a folder by --store.")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise StoreError(
                f"The store {self.folder} cannot be written: {error.strerror}. "
                "Give a folder that can, by --store."
            ) from error

    def shards(self) -> list[Path]:
        """List the shards, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted(path for path in self.folder.iterdir() if path.suffix == ".parquet")

    def write(self, records: Sequence[RunRecord]) -> Path:
        """Keep records as one new shard."""
        return self.write_table(to_table(records))

    def write_table(self, table: pl.DataFrame) -> Path:
        """Keep rows as one new shard: aside, flushed, then renamed."""
        buffer = io.BytesIO()
        table.cast({pl.Categorical: pl.String}).write_parquet(
            buffer, metadata={_SCHEMA_KEY: str(SCHEMA)}
        )
        content = buffer.getvalue()
        name = f"{time.time_ns():016x}-{_digest(content)}.parquet"
        path, part = self.folder / name, self.folder / f".{name}.part"
        try:
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            cure = "Make room, then give" if self.folder.is_dir() else "Someone removed it; give"
            raise StoreError(
                f"The store {self.folder} takes no more: {error.strerror}. The last {len(table)} "
                f"runs were not kept, all earlier ones were. {cure} the same command again to go "
                "on."
            ) from error
        return path

    def read(self, *, columns: Columns = ()) -> Reading:
        """Read every shard; a torn or foreign file is passed over, and named.

        Of the columns of curves, arrays and weights, those named by `columns` are decoded.
        """
        tables: list[pl.DataFrame] = []
        problems: list[str] = []
        fields: dict[str, dict[str, Any]] = {}
        for shard in self._shards(self.shards(), problems):
            ends = shard.ends(columns)
            tables.append(ends)
            fields |= shard.fields(cell for cell in ends["cell"].unique() if cell not in fields)
        if not tables:
            return Reading(with_fields(pl.DataFrame(schema=FIXED | SEED), {}), tuple(problems))
        whole = pl.concat(tables, how="diagonal_relaxed")
        unique = whole.unique(subset="key", keep="first", maintain_order=True)
        return Reading(with_fields(unique, fields), tuple(problems))

    def endings(self) -> pl.DataFrame:
        """Return key and outcome of all runs, reading only the shards that came since."""
        fresh = [path for path in self.shards() if path not in self._seen]
        self._seen.update(fresh)
        found = [shard.columns("key", "outcome") for shard in self._shards(fresh, [])]
        self._keys.update(*(table["key"] for table in found))
        self._endings = pl.concat([self._endings, *found])
        return self._endings

    def keys(self) -> set[str]:
        """Return the keys of all runs, reading only the shards that came since this was asked."""
        self.endings()
        return self._keys

    def _shards(self, paths: Sequence[Path], problems: list[str]) -> Iterator[_Shard]:
        """Open shards; a sentence about each that cannot be read is added to `problems`."""
        for path in paths:
            try:
                shard = _open(path)
            except _Unreadable as problem:
                problems.append(str(problem))
                continue
            if shard is not None:
                yield shard


@dataclass(frozen=True)
class _Shard:
    """A whole shard in memory, of which only the columns that are asked for are decoded."""

    path: Path
    content: bytes
    names: tuple[str, ...]

    def columns(self, *names: str) -> pl.DataFrame:
        """Decode some columns."""
        return pl.read_parquet(io.BytesIO(self.content), columns=list(names))

    def ends(self, columns: Columns) -> pl.DataFrame:
        """Decode what a run became, its cell and its seed, and what is asked for of the rest."""
        # Shards of schema 2 have the whole spec of each run instead of its cell.
        wanted = {*FIXED, *SEED, *(() if "cell" in self.names else ("spec",))}
        wanted |= set(filter(is_measured, self.names))
        wanted |= {
            name
            for name in self.names
            if is_kept(name) and (columns == "all" or name.removesuffix(".of") in columns)
        }
        names = [name for name in self.names if name in wanted]
        table = self.columns(*names)
        if "restart" not in self.names:  # of before there were any
            table = table.with_columns(restart=pl.lit(0))
        table = table.with_columns(pl.col(name).cast(kind) for name, kind in SEED.items())
        if "engine_version" not in self.names:
            table = table.with_columns(engine_version=pl.lit(1, pl.Int64))  # the first of each
        if "cell" not in self.names:
            end = pl.concat_str(pl.lit(', "seed": '), pl.col("seed").cast(pl.String), pl.lit("}"))
            cell = pl.col("spec").str.strip_suffix(end) + "}"
            table = table.with_columns(cell=cell).drop("spec")
        return table.with_columns(pl.col("cell").cast(pl.Categorical))

    def fields(self, cells: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the columns of cells, from their objects; of a class that is gone, as stored."""
        found = {}
        gone = []
        for cell in cells:
            try:
                spec = read_cell(cell)
            except UserError as error:
                raise StoreError(f"The shard {self.path} cannot be read. {error}") from error
            found[cell] = flat(spec)
            if find_gone(spec):
                gone.append(cell)
        if gone:
            others = {*FIXED, *SEED, "spec", *filter(is_kept, self.names)}
            others |= set(filter(is_measured, self.names))
            own = [name for name in self.names if name not in others]
            rows = pl.concat([self.ends(()), self.columns(*own)], how="horizontal")
            rows = rows.filter(pl.col("cell").is_in(gone)).unique("cell", keep="first")
            for cell, row in zip(rows["cell"], rows.select(own).to_dicts(), strict=True):
                found[cell] = {name: value for name, value in row.items() if value is not None}
        return found


class _Unreadable(Exception):
    """A file that is not a whole shard; its text is the sentence for the user."""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _open(path: Path) -> _Shard | None:
    """Read the bytes of a shard and check them; None if a compaction has just removed it."""
    named = _SHARD.match(path.name)
    if named is None:
        raise _Unreadable(
            f"{path} is not a shard of petridish and was passed over. Move it out of the store."
        )
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _Unreadable(
            f"The shard {path} cannot be read ({error.strerror}) and was passed over. "
            "Make it readable."
        ) from error
    if _digest(content) != named.group(1):
        raise _Unreadable(
            f"The shard {path} is torn ({len(content)} bytes) and was passed over; its runs count "
            "as not done. `petridish store compact` sets it aside."
        )
    schema = int(pl.read_parquet_metadata(io.BytesIO(content))[_SCHEMA_KEY])
    if schema > SCHEMA:
        raise StoreError(
            f"The shard {path} has schema {schema}, written by a newer petridish; this one reads "
            f"up to schema {SCHEMA}. Upgrade petridish or give another --store."
        )
    return _Shard(path, content, tuple(pl.read_parquet_schema(io.BytesIO(content))))
