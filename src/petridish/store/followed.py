"""A store that is followed: the ends of its runs in memory, and what came since.

Only the columns of how runs ended are read, from each shard once. Curves, arrays and weights stay
on disk until they are asked for. Shards are not compared with their digests, which would read every
byte: `petridish store check` does that.
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Any

import polars as pl

from petridish.errors import UserError
from petridish.store.files import Shard, StoreError, open_unchecked
from petridish.store.schema import FIXED, SEED, cell_fields
from petridish.training import RunSpec, flat_cells, read_cell

LEFT_OUT = ("key", "engine", "engine_version", "version", "commit", "clean")
ENDS = tuple(name for name in FIXED if name not in LEFT_OUT)
PLACE = {"shard": pl.UInt32, "row": pl.UInt32}  # where a run is kept
RUN = ["cell", "restart", "seed"]
READERS = 4  # shards that are read at once


class Moved(UserError):
    """The shards of these runs are gone: compacted or removed since."""


class FollowedStore:
    """The runs of a folder, read again only where shards have come or gone.

    Attributes
    ----------
    ends : DataFrame
        One row per run: its cell, restart and seed, how it ended, and where it is kept.
    problems : tuple of str
        A sentence about each file, and each cell, that could not be read.
    version : int
        Rises when runs come or go.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.version = 0
        self.problems: tuple[str, ...] = ()
        self._lock = RLock()
        self._shards: list[Shard] = []  # by number; also those that are gone
        self._numbers: dict[Path, int] = {}
        self._bad: dict[Path, tuple[float, str]] = {}
        self._unread: dict[str, str] = {}  # cells, and why they cannot be read
        self._doubled: set[int] = set()  # shards with runs that another one holds too
        self._fields: dict[str, dict[str, Any]] = {}
        self.ends = pl.DataFrame(
            schema={name: FIXED[name] for name in ENDS} | dict.fromkeys(SEED, pl.Int64) | PLACE
        )
        self.names: frozenset[str] = frozenset()  # of all columns that some shard has

    def refresh(self) -> int:
        """Read what came since, and return the version."""
        with self._lock:
            paths = self._listed()
            came = [p for p in paths if p not in self._numbers and self._is_new(p)]
            gone = [path for path in self._numbers if path not in paths]
            known = {path: why for path, (_, why) in self._bad.items() if path in paths}
            self._bad = {path: kept for path, kept in self._bad.items() if path in known}
            parts = self._read_all(came)
            if parts or gone:
                left = [self._numbers.pop(path) for path in gone]
                if gone and self._doubled:
                    # Runs that one of the others holds too were left out of it.
                    again = [path for path, n in self._numbers.items() if n in self._doubled]
                    left += [self._numbers.pop(path) for path in again]
                    parts = [*self._read_all(again), *parts]
                    self._doubled.clear()
                stay = self.ends.filter(~pl.col("shard").is_in(left)) if left else self.ends
                self.ends = self._joined(stay, parts)
                self._learn_cells(parts)
                self.names = frozenset(
                    name for n in self._numbers.values() for name in self._shards[n].names
                )
                self.version += 1
            self.problems = (
                *(() if self.folder.is_dir() else (f"The store {self.folder} is not there.",)),
                *(why for _, why in self._bad.values()),
                *dict.fromkeys(self._unread.values()),
            )
            return self.version

    def _listed(self) -> dict[Path, None]:
        try:
            found = sorted(path for path in self.folder.iterdir() if path.suffix == ".parquet")
        except OSError:
            return {}
        return dict.fromkeys(found)

    def _is_new(self, path: Path) -> bool:
        """Return whether a file was not found to be torn, as it is now, before."""
        try:
            return path not in self._bad or self._bad[path][0] != path.lstat().st_mtime
        except OSError:
            return False

    def _read_all(self, paths: list[Path]) -> list[pl.DataFrame]:
        """Read how the runs of some shards ended; a sentence is kept about those that are torn."""
        with ThreadPoolExecutor(READERS) as readers:
            found = list(readers.map(_read_ends, paths))
        parts = []
        for path, read in zip(paths, found, strict=True):
            if isinstance(read, str):
                with suppress(OSError):
                    self._bad[path] = path.lstat().st_mtime, read
            elif read is not None:
                shard, ends = read
                self._bad.pop(path, None)
                number = self._numbers[path] = len(self._shards)
                self._shards.append(shard)
                parts.append(ends.with_columns(shard=pl.lit(number, pl.UInt32)))
        return parts

    def _joined(self, stay: pl.DataFrame, parts: list[pl.DataFrame]) -> pl.DataFrame:
        """Put runs together; of a run that is kept twice the first row counts."""
        whole = [stay, *parts]
        if any(part.schema[name] == pl.Int128 for part in whole for name in SEED):
            whole = [part.with_columns(pl.col(n).cast(pl.Int128) for n in SEED) for part in whole]
        came = pl.concat(whole[1:], how="diagonal_relaxed", rechunk=True) if parts else stay.clear()
        # Equal runs have equal hashes: without equal hashes no run is doubled.
        single = came.select(pl.struct(RUN).hash()).to_series().n_unique() == len(came)
        if not single or not whole[0].join(came, on=RUN, how="semi").is_empty():
            rest = came.unique(RUN, keep="first", maintain_order=True)
            rest = rest.join(whole[0], on=RUN, how="anti", maintain_order="left")
            doubled = came.join(rest, on=["shard", "row"], how="anti")
            self._doubled.update(doubled["shard"].unique())
            came = rest
        return pl.concat([whole[0], came], how="diagonal_relaxed")

    def _learn_cells(self, parts: list[pl.DataFrame]) -> None:
        found = {cell for part in parts for cell in part["cell"].unique().cast(pl.String)}
        specs: dict[str, RunSpec] = {}
        for cell in sorted(found - self._fields.keys() - self._unread.keys()):
            try:
                specs[cell] = read_cell(cell)
            except UserError as error:
                self._unread[cell] = f"Some runs cannot be shown. {error}"
        self._fields |= dict(zip(specs, flat_cells(specs.values()), strict=True))

    def fields(self, cells: Collection[str]) -> pl.DataFrame:
        """Return one row per cell that can be read: its text, and a column for each field."""
        with self._lock:
            return cell_fields({c: self._fields[c] for c in cells if c in self._fields})

    def read(self, runs: pl.DataFrame, columns: Collection[str] | None = None) -> pl.DataFrame:
        """Return columns of some rows of `ends`, in their order; all that are kept by default.

        A column that a shard does not have is null.
        """
        parts = []
        wanted = runs.select("shard", "row").with_row_index("at")
        for (number,), places in wanted.group_by("shard", maintain_order=True):
            shard = self._shards[int(number)]
            names = [n for n in shard.names if columns is None or n in columns]
            try:
                found = shard.columns(*names)[places["row"]]
            except (OSError, pl.exceptions.PolarsError) as error:
                if shard.path.exists():
                    raise StoreError(
                        f"The shard {shard.path} cannot be read any more: {error}. "
                        "`petridish store check` says what is wrong with it."
                    ) from error
                raise Moved(
                    f"The runs of {shard.path} are kept elsewhere since, or were removed. "
                    "Load the page again."
                ) from error
            parts.append(found.with_columns(places["at"]))
        if not parts:
            return pl.DataFrame()
        return pl.concat(parts, how="diagonal_relaxed").sort("at").drop("at")


def _read_ends(path: Path) -> tuple[Shard, pl.DataFrame] | str | None:
    """Read how the runs of a shard ended; return a sentence if it is torn, None if it is gone."""
    try:
        shard = open_unchecked(path)
        ends = shard.ends((), ENDS)
    except FileNotFoundError:  # compacted just now
        return None
    except StoreError as error:
        return str(error)
    except (pl.exceptions.PolarsError, OSError) as error:
        return f"The shard {path} cannot be read and was skipped: {error}"
    largest: list[Any] = [ends[name].max() or 0 for name in SEED]
    small = [pl.col(n).cast(pl.Int64) for n, m in zip(SEED, largest, strict=True) if m < 2**63]
    return shard, ends.with_columns(*small, row=pl.int_range(pl.len(), dtype=PLACE["row"]))
