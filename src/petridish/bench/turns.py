"""Rivals take turns in pinned processes; so do measurements of what the cores can do at best."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from petridish.bench.rivals import Rival, Shape, rivals
from petridish.training.native.library import is_built, peak_flops

Prepare = Callable[[], Callable[[], float]]
"""Returns a function that measures one rate; both run in the measuring process."""

MakeSteps = Callable[[], Callable[[int], int]]
"""Returns a function that takes about as many steps as it is told, and returns how many."""


def _serve(connection: Connection, core: int, prepare: Prepare) -> None:
    """Answer every «go» with one measured rate, in a process of its own on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    os.environ["OMP_NUM_THREADS"] = "1"  # of PyTorch, if the rival imports it
    measure = prepare()
    connection.send("ready")
    while connection.recv() == "go":
        connection.send(measure())


def take_turns(measured: Mapping[str, Prepare], *, rounds: int) -> dict[str, list[float]]:
    """Return the rates of each in each round, summed over cores; one is measured at a time."""
    context = multiprocessing.get_context("spawn")
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    lines: dict[str, list[Connection]] = {name: [] for name in measured}
    processes = []
    for name, prepare in measured.items():
        for core in cores:
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, core, prepare), daemon=True)
            process.start()
            theirs.close()  # so that the end of a process is noticed, and not waited for
            processes.append(process)
            lines[name].append(ours)
        for line in lines[name]:
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
        process.join()  # a process on its way out would slow down the next measurement
    return rates


def _model_steps(rival: Rival, shape: Shape, turn: float) -> Callable[[], float]:
    return rate_of_steps(rival.prepare(shape), turn)


def rate_of_steps(
    steps: Callable[[int], int], turn: float, clock: Callable[[], float] = time.perf_counter
) -> Callable[[], float]:
    """Return a function that measures steps per second over about `turn` seconds of a clock.

    `steps` takes about as many steps as it is told, and returns how many.
    """

    def timed(count: int) -> tuple[int, float]:
        started = clock()
        return steps(count), clock() - started

    count, (taken, seconds) = 4, timed(4)
    while seconds <= turn:  # find how many steps fill a turn
        count = int(max(2 * taken, 1))
        taken, seconds = timed(count)

    def measure() -> float:
        taken, seconds = timed(count)
        return taken / seconds

    return measure


def measure_engines(shapes: Sequence[Shape], *, rounds: int, turn: float) -> list[dict[str, Any]]:
    """Measure every rival at every shape; one row each, with its ratios to the loop and to JAX."""
    rows = []
    for shape in shapes:
        prepared: dict[str, Prepare] = {
            rival.key: partial(_model_steps, rival, shape, turn) for rival in rivals(shape)
        }
        rates = take_turns(prepared, rounds=rounds)
        for name, values in rates.items():
            rate = statistics.median(values)
            per_step = shape.batch * (shape.n + 1) * shape.width / 1e9
            rows.append(
                {
                    **shape._asdict(),
                    "engine": name,
                    "model_steps_per_second": rate,
                    "ratio_to_naive": _ratio(values, rates["naive"]),
                    "ratio_to_jax": _ratio(values, rates["jax"]) if "jax" in rates else None,
                    # What a step needs forward alone, and what PyTorch computes in one.
                    "forward_gigaflops": rate * 2 * per_step,
                    "dense_gigaflops": rate * 4 * per_step,
                }
            )
    return rows


def _ratios(ours: list[float], theirs: list[float]) -> list[float]:
    return [one / other for one, other in zip(ours, theirs, strict=True)]


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(_ratios(ours, theirs))


def rates_against_eager(
    eager: MakeSteps, native: MakeSteps, *, rounds: int, turn: float
) -> dict[str, Any]:
    """Return the rates of both, their ratio, and its spread over the rounds.

    Without the compiled engine all but the rate of `eager` is None.
    """
    makers = {"eager": eager} | ({"native": native} if is_built() else {})
    rates = take_turns(
        {name: partial(_processor_rate, maker, turn) for name, maker in makers.items()},
        rounds=rounds,
    )
    row: dict[str, Any] = {"eager": statistics.median(rates["eager"])}
    if "native" not in rates:
        return row | {"native": None, "ratio": None, "spread": None}
    ratios = _ratios(rates["native"], rates["eager"])
    return row | {
        "native": statistics.median(rates["native"]),
        "ratio": statistics.median(ratios),
        "spread": [min(ratios), max(ratios)],
    }


def _processor_rate(maker: MakeSteps, turn: float) -> Callable[[], float]:
    # Of one thread's processor time: what else runs on the machine disturbs it less.
    return rate_of_steps(maker(), turn, time.process_time)


def native_columns(row: Mapping[str, Any], shape: str) -> str:
    """Return the compiled rate, formatted by `shape`, with its ratio; nothing where it is None."""
    if row["ratio"] is None:
        return ""
    low, high = row["spread"]
    return f"  {row['native']:{shape}}  {row['ratio']:>5.0f}× [{low:.0f}, {high:.0f}]"


def _matrix_products() -> Callable[[], float]:
    import torch

    left = torch.randn(1024, 1024)

    def measure() -> float:
        started = time.perf_counter()
        for _ in range(4):
            left @ left
        return 4 * 2 * 1024**3 / (time.perf_counter() - started)

    return measure


def _multiply_adds() -> Callable[[], float]:
    return peak_flops


def measure_limits(*, rounds: int) -> dict[str, float]:
    """Measure what the cores do at best together, in GFLOP/s: in registers, and by sgemm."""
    measured: dict[str, Prepare] = {"fma": _multiply_adds} if is_built() else {}
    rates = take_turns(measured | {"sgemm": _matrix_products}, rounds=rounds)
    return {f"{kind}_gigaflops": statistics.median(sums) / 1e9 for kind, sums in rates.items()}
