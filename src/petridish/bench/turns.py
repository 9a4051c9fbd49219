"""Letting contenders take turns, in pinned processes, and measuring what the cores can do."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from petridish.bench.rivals import BATCH, Contender, contenders
from petridish.training.native import is_built, peak_flops


def _serve(
    connection: Connection, core: int, contender: Contender, shape: tuple[int, int], turn: float
) -> None:
    """Serve turns in a process of its own: hear «go», take steps, answer the rate."""
    _pin(core)
    steps = contender.prepare(*shape)
    count = 64
    while True:  # find how many steps fill a turn
        started = time.perf_counter()
        taken = steps(count)
        seconds = time.perf_counter() - started
        if seconds > turn:
            break
        count = int(max(2 * taken, 1))
    connection.send("ready")
    while connection.recv() == "go":
        started = time.perf_counter()
        taken = steps(count)
        connection.send(taken / (time.perf_counter() - started))


def _pin(core: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    import torch

    torch.set_num_threads(1)


def _all_cores() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]


def _rates(shape: tuple[int, int], *, rounds: int, turn: float) -> dict[str, list[float]]:
    """Let the contenders take turns; give each one's model-steps a second, summed over cores."""
    context = multiprocessing.get_context("spawn")
    lines: dict[str, list[Connection]] = {}
    processes = []
    for contender in contenders(*shape):
        for core in _all_cores():
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(theirs, core, contender, shape, turn), daemon=True
            )
            process.start()
            processes.append(process)
            lines.setdefault(contender.key, []).append(ours)
        for line in lines[contender.key]:
            line.recv()
    rates: dict[str, list[float]] = {name: [] for name in lines}
    for _ in range(rounds):
        for name, of_cores in lines.items():
            for line in of_cores:
                line.send("go")
            rates[name].append(sum(line.recv() for line in of_cores))
    for of_cores in lines.values():
        for line in of_cores:
            line.send("stop")
    for process in processes:
        process.join()  # a process on its way out would slow whoever is measured next
    return rates


def measure_engines(
    shapes: Sequence[tuple[int, int]], *, rounds: int, turn: float
) -> list[dict[str, Any]]:
    """Measure every contender at every shape; a row each, with its ratio to the naive loop."""
    rows = []
    for n, width in shapes:
        rates = _rates((n, width), rounds=rounds, turn=turn)
        for name, values in rates.items():
            ratios = [value / naive for value, naive in zip(values, rates["naive"], strict=True)]
            rate = statistics.median(values)
            rows.append(
                {
                    "n": n,
                    "width": width,
                    "engine": name,
                    "model_steps_per_second": rate,
                    "ratio_to_naive": statistics.median(ratios),
                    # What a step needs forward alone, and what PyTorch computes in one.
                    "forward_gigaflops": rate * 2 * BATCH * (n + 1) * width / 1e9,
                    "dense_gigaflops": rate * 4 * BATCH * (n + 1) * width / 1e9,
                }
            )
    return rows


def _limit(connection: Connection, core: int, kind: str) -> None:
    _pin(core)
    import torch

    left = torch.randn(1024, 1024)

    def product() -> float:
        started = time.perf_counter()
        for _ in range(4):
            left @ left
        return 4 * 2 * 1024**3 / (time.perf_counter() - started)

    measure = product if kind == "sgemm" else peak_flops
    connection.send("ready")
    while connection.recv() == "go":
        connection.send(measure())


def measure_limits(*, rounds: int) -> dict[str, float]:
    """Measure what the cores do at best together, in GFLOP/s: in registers, and by sgemm."""
    context = multiprocessing.get_context("spawn")
    found = {}
    for kind in ("fma", "sgemm") if is_built() else ("sgemm",):
        lines, processes = [], []
        for core in _all_cores():
            ours, theirs = context.Pipe()
            processes.append(context.Process(target=_limit, args=(theirs, core, kind), daemon=True))
            processes[-1].start()
            lines.append(ours)
        for line in lines:
            line.recv()
        sums = []
        for _ in range(rounds):
            for line in lines:
                line.send("go")
            sums.append(sum(line.recv() for line in lines))
        for line in lines:
            line.send("stop")
        for process in processes:
            process.join()
        found[f"{kind}_gigaflops"] = statistics.median(sums) / 1e9
    return found
