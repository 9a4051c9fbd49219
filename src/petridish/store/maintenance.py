"""Looking after a store: check, compact, export."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from petridish.errors import UserError, nearest
from petridish.store.columns import is_kept
from petridish.store.files import Store

STALE_SECONDS = 3600  # a part file older than this was left by a process that died


@dataclass(frozen=True)
class Health:
    """What `check` found."""

    shards: int
    runs: int
    problems: tuple[str, ...]


def check(store: Store) -> Health:
    """Read every shard and verify its digest."""
    reading = store.read()
    return Health(len(store.shards()), len(reading.table), reading.problems)


def compact(store: Store) -> Health:
    """Merge all shards into one, dropping repeated keys; set torn and foreign files aside.

    The new shard is whole on disk before the old ones go, so that a crash in between leaves
    repeated keys at worst. Files that are no shards move to the folder `aside`.
    """
    store.prepare()
    before = store.shards()
    reading = store.read(columns="all")
    kept = store.write_table(reading.table) if len(reading.table) else None
    for path in before:
        if any(str(path) in problem for problem in reading.problems):
            (store.folder / "aside").mkdir(exist_ok=True)
            path.replace(store.folder / "aside" / path.name)
        elif path != kept:
            path.unlink(missing_ok=True)
    for part in store.folder.glob(".*.part"):
        with suppress(FileNotFoundError):  # its writer may rename it just now
            if time.time() - part.stat().st_mtime > STALE_SECONDS:
                part.unlink()
    return Health(len(store.shards()), len(reading.table), reading.problems)


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
    return Health(len(store.shards()), len(reading.table), reading.problems)


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
