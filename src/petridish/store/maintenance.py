"""Maintenance of a store: check, compact, export."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from filelock import SoftFileLease

from petridish.errors import UserError, nearest
from petridish.store.files import Store, StoreError
from petridish.store.schema import is_kept

STALE_SECONDS = 3600  # a part file older than this was left by a process that died
MANY_SHARDS = 100  # by so many there may be fewer before any are merged
SMALL_BYTES = 2**20  # of a shard that is merged
MERGED_BYTES = 2**26  # of what is merged into one shard, at most


@dataclass(frozen=True)
class Health:
    """What `check` found."""

    shards: int
    runs: int
    problems: tuple[str, ...]
    left_out: tuple[str, ...] = ()  # columns that the format of an export cannot hold


def check(store: Store) -> Health:
    """Read every shard and verify its digest; read every file of weights."""
    reading = store.read()
    problems = (*reading.problems, *store.weights.problems())
    return Health(len(store.shards()), len(reading.table), problems)


def compact(store: Store) -> Health:
    """Merge all shards into one, dropping repeated keys; set torn and foreign files aside.

    Files that are no shards move to the folder `aside`.
    """
    store.prepare()
    problems = store.merge(store.shards())
    for path in problems:
        (store.folder / "aside").mkdir(exist_ok=True)
        with suppress(FileNotFoundError):  # another command did the same just now
            path.replace(store.folder / "aside" / path.name)
    for part in store.folder.glob(".*.part"):
        with suppress(FileNotFoundError):  # its writer may rename it just now
            if time.time() - part.stat().st_mtime > STALE_SECONDS:
                part.unlink()
    return Health(len(store.shards()), len(store.keys()), tuple(problems.values()))


def tidy(store: Store) -> None:
    """Merge small shards where there are many: each takes about a millisecond to read.

    Large ones stay as they are, so that a store that grows is not written again and again. What
    cannot be merged, such as runs of a newer petridish, stays too.
    """
    with suppress(OSError, StoreError):
        if sum(len(group) - 1 for group in _small_groups(store)) < MANY_SHARDS:
            return
        # Two at once would lose nothing, and do the work twice.
        with SoftFileLease(store.folder / ".tidy.lock").acquire(blocking=False):
            for group in _small_groups(store):
                store.merge(group)


def _small_groups(store: Store) -> list[list[Path]]:
    """Return the small shards that follow each other in age, cut where a group grows large."""
    groups: list[list[Path]] = [[]]
    total = 0
    for path in store.shards():
        size = path.stat().st_size
        if size >= SMALL_BYTES or total + size > MERGED_BYTES:
            groups.append([])
            total = 0
        if size < SMALL_BYTES:
            groups[-1].append(path)
            total += size
    return [group for group in groups if len(group) > 1]


def export(store: Store, out: Path) -> Health:
    """Write all runs to one file, in the format of its ending."""
    writers = {".parquet": _write_parquet, ".csv": _write_csv, ".jsonl": _write_jsonl}
    if out.suffix not in writers:
        raise UserError(
            f"{out} ends in {out.suffix!r}, which is no known format. "
            f"{nearest(out.suffix, writers)}"
        )
    reading = store.read(columns="all")
    table = reading.table.cast({pl.Categorical: pl.String})
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        writers[out.suffix](table, out)
    except OSError as error:
        raise UserError(
            f"{out} cannot be written: {error.strerror or error}. Give another --out."
        ) from error
    kept = tuple(filter(is_kept, table.columns)) if out.suffix == ".csv" else ()
    return Health(len(store.shards()), len(reading.table), reading.problems, kept)


def _write_parquet(table: pl.DataFrame, out: Path) -> None:
    table.write_parquet(out)


def _write_csv(table: pl.DataFrame, out: Path) -> None:
    flat = table.drop([name for name in table.columns if is_kept(name)])  # one field, one number
    lists = [name for name, kind in flat.schema.items() if isinstance(kind, pl.List)]
    flat.with_columns(
        pl.col(name).cast(pl.List(pl.String)).list.join(" ") for name in lists
    ).write_csv(out)


def _write_jsonl(table: pl.DataFrame, out: Path) -> None:
    table.write_ndjson(out)
