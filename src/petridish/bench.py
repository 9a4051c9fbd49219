"""Measurements of speed: ratios within one run, because machines are noisy.

Every engine gets both cores in the same way: one process a core, one thread each, pinned. The
contenders take turns, a second or two each, several rounds; a rate is the median over the rounds,
and so is a ratio.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from petridish.models import MLP
from petridish.sweeps import Sweep, cores, run_sweep
from petridish.tasks import SparseParity
from petridish.training import Data, RunSpec, Silent, Training, load_engine

SHAPES = ((50, 10), (50, 100), (50, 1000))
CONTENDERS = ("naive", "torch")
TURN_SECONDS = 1.2


def _spec(n: int, width: int, steps: int, seed: int = 0) -> RunSpec:
    """Give a run that cannot be learned in the time, so that every run uses its whole budget."""
    return RunSpec(
        task=SparseParity(n, 20),
        data=Data(m=1000, n_test=1000),
        model=MLP(width=width),
        training=Training(steps=steps),
        seed=seed,
    )


def _naive(n: int, width: int) -> Callable[[int], int]:
    """Prepare the papers' loop: one network, nn.Linear, autograd, torch.optim; no DataLoader."""
    import torch
    from torch import nn

    from petridish.training.data import training_examples

    spec = _spec(n, width, 1)
    examples = training_examples([spec], 0, int(spec.data.m))
    x_train = torch.from_numpy(examples.x[0])
    y_train = 1 - 2 * torch.from_numpy(examples.labels[0]).float()
    network = nn.Sequential(nn.Linear(n, width), nn.ReLU(), nn.Linear(width, 1))
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, weight_decay=0.01)

    def steps(count: int) -> int:
        for _ in range(count):
            index = torch.randint(len(x_train), (32,))
            loss = torch.relu(1 - y_train[index] * network(x_train[index]).squeeze(1)).mean()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call] # PyTorch's own has no types
            optimiser.step()
        return count

    return steps


def _engine(name: str, n: int, width: int) -> Callable[[int], int]:
    """Prepare a stack of an engine; sampling, evaluation and the set-up of runs are included."""
    engine = load_engine(name)
    stack = engine.stack_size(_spec(n, width, 1))

    def steps(count: int) -> int:
        each = max(1, count // stack)
        for _ in engine.run([_spec(n, width, each, seed) for seed in range(stack)], Silent()):
            pass
        return each * stack

    return steps


def _contender(connection: Connection, core: int, name: str, n: int, width: int) -> None:
    """Serve turns in a process of its own: hear «go», take steps, answer the rate."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    import torch

    torch.set_num_threads(1)
    steps = _naive(n, width) if name == "naive" else _engine(name, n, width)
    count = 64
    while True:  # find how many steps fill a turn
        started = time.perf_counter()
        taken = steps(count)
        seconds = time.perf_counter() - started
        if seconds > TURN_SECONDS / 3:
            break
        count = int(max(2 * taken, 1))
    count = int(taken * TURN_SECONDS / seconds)
    connection.send("ready")
    while connection.recv() == "go":
        started = time.perf_counter()
        taken = steps(count)
        connection.send(taken / (time.perf_counter() - started))


def _rates(n: int, width: int, *, rounds: int) -> dict[str, list[float]]:
    """Let the contenders take turns; give each one's model-steps a second, summed over cores."""
    context = multiprocessing.get_context("spawn")
    available = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    lines: dict[str, list[Connection]] = {}
    for name in CONTENDERS:
        for core in available:
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_contender, args=(theirs, core, name, n, width), daemon=True
            )
            process.start()
            lines.setdefault(name, []).append(ours)
        for line in lines[name]:
            line.recv()
    rates: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for _ in range(rounds):
        for name in CONTENDERS:
            for line in lines[name]:
                line.send("go")
            rates[name].append(sum(line.recv() for line in lines[name]))
    for name in CONTENDERS:
        for line in lines[name]:
            line.send("stop")
    return rates


def measure_engines(*, shapes: int, rounds: int) -> list[dict[str, Any]]:
    """Measure the first `shapes` shapes; a row an engine, with its ratio to the naive loop."""
    rows = []
    for n, width in SHAPES[:shapes]:
        rates = _rates(n, width, rounds=rounds)
        for name, values in rates.items():
            ratios = [value / naive for value, naive in zip(values, rates["naive"], strict=True)]
            rows.append(
                {
                    "n": n,
                    "width": width,
                    "engine": name,
                    "model_steps_per_second": statistics.median(values),
                    "ratio_to_naive": statistics.median(ratios),
                }
            )
    return rows


def measure_runner(*, runs: int, steps: int) -> dict[str, float]:
    """Compare a whole sweep, from call to last shard, with the engines' own time in it.

    The workers' first start, in which PyTorch is imported, is a part of the overhead.
    """
    from petridish.store import Store

    sweep = Sweep(_spec(50, 100, steps), {"seed": range(runs)})
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
    }


def measure_store(*, records: int) -> dict[str, float]:
    """Fill a store with copies of real records, then open, filter and judge it."""
    import polars as pl

    from petridish.papers import find
    from petridish.store import Store

    frontier = find("PF-1")
    base = frontier.sweep("smoke")
    cells = len(base) // len(base.axes["seed"])
    sweep = replace(base, axes={**base.axes, "seed": range(-(-records // cells))})
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        run_sweep(base, store, executor="inline")
        real = store.read(curves=True).table
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


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Measure engines, runner and store; a couple of minutes, half a one with `quick`."""
    return {
        "machine": {
            "processor": _processor(),
            "cores": cores(),
            "system": platform.platform(),
            "python": platform.python_version(),
        },
        "store": measure_store(records=10_000 if quick else 100_000),
        "rows": measure_engines(shapes=2 if quick else len(SHAPES), rounds=2 if quick else 7),
        "runner": measure_runner(runs=50 if quick else 1000, steps=2000),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def table(found: dict[str, Any]) -> str:
    """Write the measurements as text."""
    machine, runner, store = found["machine"], found["runner"], found["store"]
    lines = [
        f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}",
        "",
        "      n   width  engine    model-steps/s   against naive",
    ]
    lines += [
        f"  {row['n']:>5}  {row['width']:>6}  {row['engine']:8}"
        f"  {row['model_steps_per_second']:>13,.0f}  {row['ratio_to_naive']:>12.1f}×"
        for row in found["rows"]
    ]
    lines += [
        "",
        f"runner and store: {runner['runs']} runs of {runner['steps']} steps in "
        f"{runner['wall_seconds']:.1f} s, engines {runner['engine_seconds']:.1f} s: overhead "
        f"{runner['overhead']:.1%}, the start of the workers included",
        f"store of {store['records']:,} records: opened, filtered and judged in "
        f"{store['seconds']:.2f} s; peak memory of the process {store['peak_gigabytes']:.2f} GB",
    ]
    return "\n".join(lines)
