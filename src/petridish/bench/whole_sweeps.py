"""Measuring whole sweeps and large stores."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from petridish.bench.rivals import TYPICAL, spec_of, with_evaluations
from petridish.sweeps import Sweep, cores, run_sweep


def measure_runner(*, runs: int, steps: int, kernel_rate: float) -> dict[str, float]:
    """Compare a whole sweep, from call to last shard, with the engine's steps alone.

    The sweep includes sampling, evaluations on 10,000 held-out examples every 100 steps, storing
    and the start of the workers; the kernel's rate includes none of them. `overhead` is the share
    of time outside the engines.
    """
    from petridish.store import Store

    n, width, _ = TYPICAL
    base = with_evaluations(spec_of(n, width, steps))
    sweep = Sweep(base, {"seed": range(runs)})
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        wall = _wall(lambda: run_sweep(sweep, store))
        engine = float(store.read().table["seconds"].sum()) / cores()
    return {
        "runs": runs,
        "steps": steps,
        "wall_seconds": wall,
        "engine_seconds": engine,
        "overhead": wall / engine - 1,
        "share_of_kernel_rate": runs * steps / wall / kernel_rate,
    }


def measure_store(*, records: int) -> dict[str, float]:
    """Fill a store with copies of real records, then open, filter and judge it."""
    import polars as pl

    from petridish.chapters import find
    from petridish.store import Store

    frontier = find("PF-1")
    base = frontier.sweep("smoke")
    cells = len(base) // len(base.axes["seed"])
    sweep = replace(base, axes={**base.axes, "seed": range(-(-records // cells))})
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        run_sweep(base, store, executor="inline")
        real = store.read(columns="all").table
        for path in store.shards():
            path.unlink()
        copies = -(-records // len(real))
        per_shard = 1000
        whole = pl.concat(
            real.with_columns(
                (pl.col("seed") + 4 * copy).alias("seed"),
                (pl.col("key").str.slice(0, 24) + f"{copy:08x}").alias("key"),
            )
            for copy in range(copies)
        ).head(records)
        for start in range(0, records, per_shard):
            store.write_table(whole.slice(start, per_shard))
        taken = _wall(lambda: frontier.judge(sweep.among(Store(Path(folder)).read().table)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"records": records, "seconds": taken, "peak_gigabytes": peak}


def _wall(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
