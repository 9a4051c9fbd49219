"""A store: a directory of immutable Parquet shards.

A shard is written aside, flushed, then renamed, so that a reader sees the whole file or none, and
many writers need no lock. Its name is `<time>-<digest>.parquet`: shards sort by age, and a file
whose bytes do not match its digest is torn. A key that occurs twice is harmless: the first wins.

Shards may be merged while others read and write: a shard is removed only by who has put its rows in
a newer one, and no name is ever used twice. So every row is in some shard at any moment.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl

from petridish.errors import UserError
from petridish.store.schema import (
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
from petridish.training.key_set import KeySet
from petridish.values import find_gone

SCHEMA = 3  # of shards; rises when their layout changes
_SHARD = re.compile(r"^[0-9a-f]{16}-([0-9a-f]{16})\.parquet$")
_SCHEMA_KEY = "petridish.schema"


class StoreError(UserError):
    """The store cannot be read or written."""


@dataclass(frozen=True)
class StoreContents:
    """What a store holds: one row per key, and a sentence about each file that was skipped."""

    table: pl.DataFrame
    problems: tuple[str, ...] = ()


class Store:
    """The store of finished runs: a folder of Parquet shards."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.weights = WeightFiles(self.folder)
        self._known: set[Path] = set()  # shards whose keys are known
        self._keys = KeySet()
        self._seen: set[Path] = set()  # shards whose endings are known
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
        """Keep rows as one new shard."""
        try:
            return self._put(table, time.time_ns())
        except OSError as error:
            cure = "Make room, then give" if self.folder.is_dir() else "Someone removed it; give"
            raise StoreError(
                f"The store {self.folder} takes no more: {error.strerror}. The last {len(table)} "
                f"runs were not kept, all earlier ones were. {cure} the same command again to go "
                "on."
            ) from error

    def _put(self, table: pl.DataFrame, age: int, **notes: str) -> Path:
        """Write a shard aside, flush it, then rename it; `notes` are kept with it."""
        buffer = io.BytesIO()
        table.cast({pl.Categorical: pl.String}).write_parquet(
            buffer, metadata={_SCHEMA_KEY: str(SCHEMA), **notes}
        )
        content = buffer.getvalue()
        name = f"{age:016x}-{_digest(content)}.parquet"
        path, part = self.folder / name, self.folder / f".{name}.part"
        try:
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError:
            with suppress(OSError):
                part.unlink()
            raise
        return path

    def merge(self, paths: Sequence[Path]) -> dict[Path, str]:
        """Make one shard of several, given oldest first, and remove those.

        It is as old as the oldest of them: of a repeated key the same row is the first as before.
        Others may read, write and merge meanwhile, and a crash leaves repeated keys at worst.
        Shards that cannot be read stay; a sentence about each is returned.
        """
        problems: dict[Path, str] = {}
        tables: dict[Path, pl.DataFrame] = {}
        whole = _read_shards(_open_all(paths, problems), "all", tables)
        if tables:
            age = int(min(tables).name.partition("-")[0], 16)
            try:
                # A name of its own, even if others write the same rows at this moment.
                self._put(whole, age, **{"petridish.merged": uuid4().hex})
                _flush_folder(self.folder)
            except OSError as error:
                raise StoreError(
                    f"The store {self.folder} cannot be compacted: {error.strerror}. It is as it "
                    "was. A compacted store is written before the old files are removed: make room "
                    "for it."
                ) from error
            for path in tables:
                path.unlink(missing_ok=True)
        return problems

    def read(self, *, columns: Columns = ()) -> StoreContents:
        """Read every shard; a torn or foreign file is skipped, and named.

        Of the columns of curves, arrays and weights, those named by `columns` are decoded.
        """
        problems: dict[Path, str] = {}
        table = _read_shards(self._fresh(set(), problems), columns, {})
        return StoreContents(table, tuple(problems.values()))

    def endings(self) -> pl.DataFrame:
        """Return key and outcome of all runs, reading only the shards that came since."""
        found = [shard.columns("key", "outcome") for shard in self._fresh(self._seen, {})]
        if found:
            whole = pl.concat([self._endings, *found])
            self._endings = whole.unique("key", keep="first", maintain_order=True)
        return self._endings

    def keys(self) -> KeySet:
        """Return the keys of all runs, reading only the shards that came since this was asked."""
        for shard in self._fresh(self._known, {}):
            self._keys.add(shard.columns("key")["key"])
        return self._keys

    def _fresh(self, seen: set[Path], problems: dict[Path, str]) -> Iterator[Shard]:
        """Open the shards that are not in `seen`, and add them to it.

        The folder is listed until it is found twice as it was: the rows of a shard that is gone
        before it could be read are in one that came since.
        """
        listed = None
        while (paths := self.shards()) != listed:
            listed = paths
            fresh = [path for path in paths if path not in seen]
            seen.update(fresh)
            yield from _open_all(fresh, problems)


@dataclass(frozen=True)
class Shard:
    """A shard of which only the columns that are asked for are decoded.

    Without its bytes in memory it is read from its file, unchecked.
    """

    path: Path
    content: bytes | None
    names: tuple[str, ...]

    def columns(self, *names: str) -> pl.DataFrame:
        """Decode some columns."""
        source = self.path if self.content is None else io.BytesIO(self.content)
        return pl.read_parquet(source, columns=list(names))

    def ends(self, columns: Columns, fixed: Collection[str] = tuple(FIXED)) -> pl.DataFrame:
        """Decode outcome, cell and seed of each run, and the other columns that are asked for.

        Of the columns that every run has, those of `fixed`.
        """
        # Shards of schema 2 have the whole spec of each run instead of its cell.
        wanted = {*fixed, *SEED, *(() if "cell" in self.names else ("spec",))}
        wanted |= set(filter(is_measured, self.names))
        wanted |= {
            name
            for name in self.names
            if is_kept(name) and (columns == "all" or name.removesuffix(".of") in columns)
        }
        names = [name for name in self.names if name in wanted]
        table = self.columns(*names)
        if "restart" not in self.names:  # written before there were restarts
            table = table.with_columns(restart=pl.lit(0))
        table = table.with_columns(pl.col(name).cast(kind) for name, kind in SEED.items())
        if "engine_version" in fixed and "engine_version" not in self.names:
            table = table.with_columns(
                engine_version=pl.lit(1, pl.Int64)
            )  # written before engines had versions
        if "device" not in self.names:  # written when all runs took the CPU
            table = table.with_columns(device=pl.lit("cpu"))
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


def _read_shards(
    shards: Iterable[Shard], columns: Columns, tables: dict[Path, pl.DataFrame]
) -> pl.DataFrame:
    """Return one row per key; what each shard holds is added to `tables`."""
    fields: dict[str, dict[str, Any]] = {}
    for shard in shards:
        tables[shard.path] = ends = shard.ends(columns)
        fields |= shard.fields(cell for cell in ends["cell"].unique() if cell not in fields)
    if not tables:
        return with_fields(pl.DataFrame(schema=FIXED | SEED), {})
    whole = pl.concat([tables[path] for path in sorted(tables)], how="diagonal_relaxed")
    return with_fields(whole.unique(subset="key", keep="first", maintain_order=True), fields)


class _Unreadable(Exception):
    """A file that is not a whole shard; its text is the sentence for the user."""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _flush_folder(folder: Path) -> None:
    """Put the names of files on disk, so that a new one is there before old ones go."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _open_all(paths: Iterable[Path], problems: dict[Path, str]) -> Iterator[Shard]:
    """Open shards; a sentence about each that cannot be read is added to `problems`."""
    for path in paths:
        try:
            shard = _open(path)
        except _Unreadable as problem:
            problems[path] = str(problem)
            continue
        if shard is not None:
            yield shard


def _open(path: Path) -> Shard | None:
    """Read the bytes of a shard and check them; None if a compaction has just removed it."""
    named = _SHARD.match(path.name)
    if named is None:
        raise _Unreadable(
            f"{path} is not a shard of petridish and was skipped. Move it out of the store."
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ESTALE):  # the latter on network file systems
            return None
        raise _Unreadable(
            f"The shard {path} cannot be read ({error.strerror}) and was skipped. Make it readable."
        ) from error
    if _digest(content) != named.group(1):
        raise _Unreadable(
            f"The shard {path} is torn ({len(content)} bytes) and was skipped; its runs count "
            "as not done. `petridish store compact` sets it aside."
        )
    _check_schema(path, pl.read_parquet_metadata(io.BytesIO(content)))
    return Shard(path, content, tuple(pl.read_parquet_schema(io.BytesIO(content))))


def _check_schema(path: Path, notes: Mapping[str, str]) -> None:
    schema = int(notes[_SCHEMA_KEY])
    if schema > SCHEMA:
        raise StoreError(
            f"The shard {path} has schema {schema}, written by a newer petridish; this one reads "
            f"up to schema {SCHEMA}. Upgrade petridish or give another --store."
        )


def open_unchecked(path: Path) -> Shard:
    """Open a shard by its footer alone; its bytes are not compared with its name.

    A sentence about a file that is no whole shard is raised as a `StoreError`.
    """
    if _SHARD.match(path.name) is None:
        raise StoreError(
            f"{path} is not a shard of petridish and was skipped. Move it out of the store."
        )
    try:
        if not path.resolve(strict=True).is_relative_to(path.parent.resolve()):
            raise StoreError(
                f"{path} is a link that leads out of the store and was skipped. Remove it."
            )
        _check_schema(path, pl.read_parquet_metadata(path))
        return Shard(path, None, tuple(pl.read_parquet_schema(path)))
    except FileNotFoundError:
        raise
    except (OSError, KeyError, ValueError, pl.exceptions.PolarsError) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(
            f"The shard {path} is torn and was skipped; its runs count as not done. "
            "`petridish store compact` sets it aside."
        ) from error
