"""Measurements of speed: ratios within one run, because machines are noisy.

Every rival gets all cores in the same way: one pinned process per core, one thread each. They take
turns of about a second, in several rounds; rates and ratios are medians over the rounds. Steps are
timed without evaluations on the held-out sample; what these cost has lines of its own.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

from petridish.bench.attention_steps import attention_table, measure_attention
from petridish.bench.evaluations import measure_evaluations
from petridish.bench.others import Others
from petridish.bench.rivals import QUICK_TURN_SECONDS, SHAPES, TURN_SECONDS, TYPICAL
from petridish.bench.turns import measure_engines, measure_limits
from petridish.bench.whole_sweeps import measure_runner, measure_store
from petridish.bench.wide_steps import measure_tables
from petridish.sweeps import cores
from petridish.training.native.library import chosen_set, is_built


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Measure limits, engines, runner and store; about four minutes, one with `quick`."""
    others = Others()
    store = measure_store(records=10_000 if quick else 50_000)
    limits = measure_limits(rounds=2 if quick else 3)
    rows = (
        measure_engines(SHAPES[:2], rounds=2, turn=QUICK_TURN_SECONDS)
        if quick
        else measure_engines(SHAPES, rounds=3, turn=TURN_SECONDS)
    )
    typical = {
        row["engine"]: row for row in rows if (row["n"], row["width"], row["batch"]) == TYPICAL
    }
    kernel = typical["native" if is_built() else "torch"]["model_steps_per_second"]
    found: dict[str, Any] = {
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
        "evaluations": measure_evaluations(rounds=2 if quick else 3, turn=0.2 if quick else 0.5),
        "attention": measure_attention(rounds=2 if quick else 3, turn=0.2 if quick else 0.5),
        "tables": measure_tables(rounds=2 if quick else 3, turn=0.2 if quick else 0.5),
        "runner": measure_runner(runs=20 if quick else 400, steps=20_000, kernel_rate=kernel),
    }
    found["machine"]["others"] = others.share()
    return found


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _against(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1f}×"


def table(found: dict[str, Any]) -> str:
    """Return the measurements as text."""
    machine, runner, store = found["machine"], found["runner"], found["store"]
    limits = ", ".join(
        f"{name.partition('_')[0]} {value:.0f}" for name, value in found["limits"].items()
    )
    fma = found["limits"].get("fma_gigaflops")
    busy = machine["others"]
    beside = "unknown" if busy is None else f"{busy:.0%} of the cores' time"
    lines = [
        f"{machine['processor']}, {machine['cores']} cores, {machine['instructions']}, "
        f"Python {machine['python']}",
        f"what else ran beside it: {beside}",
        f"limits of all cores together, GFLOP/s: {limits}",
        "",
        "      n   width  batch  engine            model-steps/s  against naive  against JAX"
        "  forward GFLOP/s",
    ]
    for row in found["rows"]:
        share = f" ({row['forward_gigaflops'] / fma:4.0%} of fma)" if fma else ""
        lines.append(
            f"  {row['n']:>5}  {row['width']:>6}  {row['batch']:>5}  {row['engine']:16}"
            f"  {row['model_steps_per_second']:>13,.0f}  {row['ratio_to_naive']:>12.1f}×"
            f"  {_against(row['ratio_to_jax']):>11}"
            f"  {row['forward_gigaflops']:>7.1f}{share}"
        )
    lines += ["", "  width  evaluation    examples/s  against torch"]
    lines += [
        f"  {row['width']:>5}  {row['engine']:10}  {row['examples_per_second']:>12,.0f}"
        f"  {_against(row['ratio_to_torch']):>13}"
        for row in found["evaluations"]
    ]
    lines += ["", attention_table(found["attention"])]
    lines += ["", "  width  batch  a step on a table, one core  its bare matrix products"]
    lines += [
        f"  {row['width']:>5}  {row['batch']:>5}  {row['milliseconds']:>24.1f} ms"
        f"  {row['share_of_sgemm']:>23.0%} of it"
        for row in found["tables"]
    ]
    lines += [
        "",
        f"a whole sweep of {runner['runs']} runs of {runner['steps']} steps at n={TYPICAL[0]}, "
        f"width {TYPICAL[1]}, sampling, evaluations, storing and start included: "
        f"{runner['wall_seconds']:.1f} s, {runner['share_of_kernel_rate']:.0%} of the kernel's "
        f"rate; outside the engines {runner['overhead']:.1%}",
        f"store of {store['records']:,} records: opened, filtered and judged in "
        f"{store['seconds']:.2f} s; peak memory of the process {store['peak_gigabytes']:.2f} GB",
    ]
    return "\n".join(lines)
