"""Measurements of speed: ratios within one run, because machines are noisy.

Every contender gets all cores in the same way: one process a core, one thread each, pinned. They
take turns, about a second each, several rounds; a rate is the median over the rounds, and so is a
ratio. Steps are timed without looks at the held-out sample; what looks cost has its own line.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import platform
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from petridish.models import MLP
from petridish.native import ISA_VARIABLE, chosen_set, instruction_sets, is_built, peak_flops
from petridish.sweeps import Sweep, cores, run_sweep
from petridish.tasks import SparseParity
from petridish.training import ONLINE, Data, Evaluation, RunSpec, Silent, Training, load_engine

SHAPES = ((50, 10), (50, 100), (50, 1000), (50, 10_000), (200, 100), (200, 1000), (200, 10_000))
TYPICAL = (50, 100)  # where variants of the native engine are compared
BATCH = 32
TURN_SECONDS, QUICK_TURN_SECONDS = 1.0, 0.25


def _spec(n: int, width: int, steps: int, seed: int = 0) -> RunSpec:
    """Give a run that can be neither learned nor memorised in the time.

    So every run uses its whole budget, and nearly every example has a loss: engines that skip those
    without one gain nothing.
    """
    return RunSpec(
        task=SparseParity(n, 20),
        data=Data(m=20_000, n_test=1000),
        model=MLP(width=width),
        training=Training(steps=steps, batch_size=BATCH),
        evaluation=Evaluation(every=steps),
        seed=seed,
    )


def _online(spec: RunSpec) -> RunSpec:
    return replace(spec, data=replace(spec.data, m=ONLINE))


def _with_looks(spec: RunSpec) -> RunSpec:
    return replace(spec, data=replace(spec.data, n_test=10_000), evaluation=Evaluation())


@dataclass(frozen=True)
class Contender:
    """A way to train: an engine and how its runs differ, or one of the loops below.

    `isa` forces the native engine's instructions; `key` names the contender in results.
    """

    key: str
    engine: str = ""
    variant: Callable[[RunSpec], RunSpec] | None = None
    isa: str = ""

    def prepare(self, n: int, width: int) -> Callable[[int], int]:
        """Give a function that takes about so many model-steps, and says how many it took."""
        if self.isa:
            os.environ[ISA_VARIABLE] = self.isa
        if self.engine:
            return _engine(self.engine, n, width, self.variant)
        return {"naive": _naive, "jax": _jax}[self.key](n, width)


def contenders(n: int, width: int) -> list[Contender]:
    """List who takes part at a shape: all that are installed."""
    found = [Contender("naive"), Contender("torch", "torch")]
    if importlib.util.find_spec("jax"):
        found.append(Contender("jax"))
    if is_built():
        found.append(Contender("native", "native"))
    if is_built() and (n, width) == TYPICAL:
        found += [
            Contender("native, online", "native", _online),
            Contender("native, looks", "native", _with_looks),
        ]
        found += [
            Contender(f"native, {isa.name}", "native", isa=isa.name)
            for isa in instruction_sets()
            if isa.runs_here and isa != chosen_set()
        ]
    return found


def _naive(n: int, width: int) -> Callable[[int], int]:
    """Prepare the papers' loop: one network, nn.Linear, autograd, torch.optim; no DataLoader."""
    import torch
    from torch import nn

    x_train, y_train = (torch.from_numpy(array) for array in _sample(n, width))
    network = nn.Sequential(nn.Linear(n, width), nn.ReLU(), nn.Linear(width, 1))
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, weight_decay=0.01)

    def steps(count: int) -> int:
        for _ in range(count):
            index = torch.randint(len(x_train), (BATCH,))
            loss = torch.relu(1 - y_train[index] * network(x_train[index]).squeeze(1)).mean()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call] # PyTorch's own has no types
            optimiser.step()
        return count

    return steps


def _sample(n: int, width: int) -> tuple[Any, Any]:
    from petridish.training.data import training_examples

    spec = _spec(n, width, 1)
    examples = training_examples([spec], 0, int(spec.data.m))
    return examples.x[0], (1 - 2 * examples.labels[0].astype("float32"))


def _jax(n: int, width: int) -> Callable[[int], int]:
    """Prepare JAX's best way here: a few networks by vmap, many steps by scan, one core."""
    import jax
    import jax.numpy as jnp

    stack, chunk = (8, 500) if width <= 100 else (2, 200) if width <= 1000 else (1, 50)
    x_train, y_train = (jnp.asarray(array) for array in _sample(n, width))

    def start(key: Any) -> tuple[Any, ...]:
        keys, bound, bound_v = jax.random.split(key, 4), n**-0.5, width**-0.5
        return (
            jax.random.uniform(keys[0], (n, width), minval=-bound, maxval=bound),
            jax.random.uniform(keys[1], (width,), minval=-bound, maxval=bound),
            jax.random.uniform(keys[2], (width,), minval=-bound_v, maxval=bound_v),
            jax.random.uniform(keys[3], (), minval=-bound_v, maxval=bound_v),
        )

    def loss(parameters: tuple[Any, ...], index: Any) -> Any:
        w, b, v, beta = parameters
        f = jax.nn.relu(x_train[index] @ w + b) @ v + beta
        return jax.nn.relu(1 - y_train[index] * f).mean()

    def step(parameters: tuple[Any, ...], index: Any) -> tuple[Any, ...]:
        gradients = jax.grad(loss)(parameters, index)
        return tuple(0.999 * p - 0.1 * g for p, g in zip(parameters, gradients, strict=True))

    def many(parameters: tuple[Any, ...], key: Any) -> Any:
        index = jax.random.randint(key, (chunk, stack, BATCH), 0, len(y_train))
        return jax.lax.scan(lambda p, i: (jax.vmap(step)(p, i), None), parameters, index)[0]

    compiled = jax.jit(many)
    state = jax.vmap(start)(jax.random.split(jax.random.key(0), stack))

    def steps(count: int) -> int:
        nonlocal state
        rounds = max(1, count // (stack * chunk))
        for turn in range(rounds):
            state = compiled(state, jax.random.key(turn))
        jax.block_until_ready(state)
        return rounds * stack * chunk

    return steps


def _engine(
    name: str, n: int, width: int, variant: Callable[[RunSpec], RunSpec] | None
) -> Callable[[int], int]:
    """Prepare runs of an engine; sampling and the set-up of runs are included."""
    engine = load_engine(name)
    stack = engine.stack_size(_spec(n, width, 1)) if name == "torch" else 1

    def steps(count: int) -> int:
        each = max(1, count // stack)
        specs = [_spec(n, width, each, seed) for seed in range(stack)]
        for _ in engine.run([variant(spec) if variant else spec for spec in specs], Silent()):
            pass
        return each * stack

    return steps


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


def measure_runner(*, runs: int, steps: int, kernel_rate: float) -> dict[str, float]:
    """Compare a whole sweep, from call to last shard, with the engine's steps alone.

    Sampling, looks at 10,000 held-out examples every 100 steps, storing and the start of the
    workers are all in the sweep, and in no way in the kernel's rate. `overhead` is the part of it
    outside the engines.
    """
    from petridish.store import Store

    n, width = TYPICAL
    base = _with_looks(_spec(n, width, steps))
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
    """Measure limits, engines, runner and store; about eight minutes, one with `quick`."""
    store = measure_store(records=10_000 if quick else 100_000)
    limits = measure_limits(rounds=2 if quick else 5)
    rows = (
        measure_engines(SHAPES[:2], rounds=2, turn=QUICK_TURN_SECONDS)
        if quick
        else measure_engines(SHAPES, rounds=5, turn=TURN_SECONDS)
    )
    typical = {row["engine"]: row for row in rows if (row["n"], row["width"]) == TYPICAL}
    kernel = typical["native" if is_built() else "torch"]["model_steps_per_second"]
    return {
        "machine": {
            "processor": _processor(),
            "cores": cores(),
            "system": platform.platform(),
            "python": platform.python_version(),
            "instructions": chosen_set().name if is_built() else None,
        },
        "store": store,
        "limits": limits,
        "rows": rows,
        "runner": measure_runner(runs=20 if quick else 400, steps=20_000, kernel_rate=kernel),
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
    limits = ", ".join(
        f"{name.partition('_')[0]} {value:.0f}" for name, value in found["limits"].items()
    )
    fma = found["limits"].get("fma_gigaflops")
    lines = [
        f"{machine['processor']}, {machine['cores']} cores, {machine['instructions']}, "
        f"Python {machine['python']}",
        f"limits of all cores together, GFLOP/s: {limits}",
        "",
        "      n   width  engine            model-steps/s  against naive  forward GFLOP/s",
    ]
    for row in found["rows"]:
        share = f" ({row['forward_gigaflops'] / fma:4.0%} of fma)" if fma else ""
        lines.append(
            f"  {row['n']:>5}  {row['width']:>6}  {row['engine']:16}"
            f"  {row['model_steps_per_second']:>13,.0f}  {row['ratio_to_naive']:>12.1f}×"
            f"  {row['forward_gigaflops']:>7.1f}{share}"
        )
    lines += [
        "",
        f"a whole sweep of {runner['runs']} runs of {runner['steps']} steps at n={TYPICAL[0]}, "
        f"width {TYPICAL[1]}, sampling, looks, storing and start included: "
        f"{runner['wall_seconds']:.1f} s, {runner['share_of_kernel_rate']:.0%} of the kernel's "
        f"rate; outside the engines {runner['overhead']:.1%}",
        f"store of {store['records']:,} records: opened, filtered and judged in "
        f"{store['seconds']:.2f} s; peak memory of the process {store['peak_gigabytes']:.2f} GB",
    ]
    return "\n".join(lines)
