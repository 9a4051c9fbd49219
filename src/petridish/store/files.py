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
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from petridish.errors import UserError
from petridish.store.columns import FIXED, came_later, is_roomy, to_table
from petridish.training import SCHEMA, RunRecord

_SHARD = re.compile(r"^[0-9a-f]{16}-([0-9a-f]{16})\.parquet$")
_SCHEMA_KEY = "petridish.schema"


class StoreError(UserError):
    """The store cannot be read or written as it is."""


@dataclass(frozen=True)
class Reading:
    """What a store holds: one row a key, and a sentence about each file that was passed over."""

    table: pl.DataFrame
    problems: tuple[str, ...] = ()


class Store:
    """The runs kept in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: set[Path] = set()  # shards whose keys are known
        self._keys: set[str] = set()

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
        table.write_parquet(buffer, metadata={_SCHEMA_KEY: str(SCHEMA)})
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

    def read(self, *, curves: bool = False) -> Reading:
        """Read every shard; a torn or foreign file is passed over, and named."""
        shards = self.shards()
        return self._read(shards, curves=curves)

    def _read(self, shards: Sequence[Path], *, curves: bool) -> Reading:
        tables, problems = [], []
        for path in shards:
            try:
                table = _read_shard(path)
            except _Unreadable as problem:
                problems.append(str(problem))
                continue
            if table is not None:
                roomy = [] if curves else [name for name in table.columns if is_roomy(name)]
                tables.append(table.drop(roomy))
        if not tables:
            return Reading(pl.DataFrame(schema=FIXED), tuple(problems))
        whole = pl.concat(_reconciled(tables), how="diagonal_relaxed")
        later = {name: value for name, value in came_later().items() if name in whole.columns}
        whole = whole.with_columns(pl.col(name).fill_null(value) for name, value in later.items())
        unique = whole.unique(subset="key", keep="first", maintain_order=True)
        return Reading(unique, tuple(problems))

    def keys(self) -> set[str]:
        """Give the keys of all runs, reading only the shards that came since this was asked."""
        fresh = [path for path in self.shards() if path not in self._seen]
        self._seen.update(fresh)
        self._keys |= set(self._read(fresh, curves=False).table["key"])
        return self._keys


def _reconciled(tables: list[pl.DataFrame]) -> list[pl.DataFrame]:
    """Turn a column to text where shards hold it in types that do not go together.

    Two classes of users may give one field name two meanings: a number here, a list there.
    """
    kinds: dict[str, set[str]] = {}
    for table in tables:
        for name, dtype in table.schema.items():
            kind = "number" if dtype.is_numeric() else str(dtype.base_type())
            kinds.setdefault(name, set()).add(kind)
    mixed = {name for name, found in kinds.items() if len(found - {"Null"}) > 1}
    return [table.with_columns(_as_text(table, mixed)) if mixed else table for table in tables]


def _as_text(table: pl.DataFrame, names: set[str]) -> list[pl.Series]:
    return [
        pl.Series(
            name,
            [None if value is None else str(value) for value in table[name].to_list()],
            dtype=pl.String,
        )
        for name in table.columns
        if name in names
    ]


class _Unreadable(Exception):
    """A file that is not a whole shard; its text is the sentence for the user."""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _read_shard(path: Path) -> pl.DataFrame | None:
    """Read one shard; None if a compaction has just removed it."""
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
    return pl.read_parquet(io.BytesIO(content))
