"""What an accelerator computes, and how fast: `petridish bench --device cuda`.

Its table says what only the device itself can show: whether it draws the bits of the random
streams, how far its losses are from the engine `reference`, what memory a stack takes beside what
was predicted, and how many model-steps it makes beside one core of the CPU.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from petridish.bench.rivals import PlainMLP, spec_of
from petridish.models import AttentionOnly, Homogeneous, ParityTransformer
from petridish.seeds import Streams
from petridish.sweeps.placement import device_rates, stack_size
from petridish.tasks import GroupProduct, MarkovChains
from petridish.training import (
    CrossEntropy,
    Data,
    Evaluation,
    RunRecord,
    RunSpec,
    Silent,
    Training,
    load_engine,
)
from petridish.training.device_memory import memory_of_stacks
from petridish.training.device_streams import DeviceStreams
from petridish.training.devices import CPU, Device

COMPARED_STEPS = 20
WORDS = 1_000_000
SEEDS = (0, 1, 2**64 - 1)
QUICK_RUNS = 4  # at a time: the others' time is that of a step, not of a memory filled


def _shapes() -> dict[str, RunSpec]:
    """Return runs whose steps are of several kinds, none of which ends early."""
    group = GroupProduct("Z31")
    on_group = RunSpec(
        task=group,
        data=Data(m=group.n_possible, n_test=group.n_possible, draws="distinct"),
        model=Homogeneous(500),
        training=Training(
            loss=CrossEntropy(), batch_size=None, steps=1, target_error=None, weight_decay=0.0
        ),
    )
    chains = replace(
        on_group,
        task=MarkovChains(3, 64),
        data=Data(m=1000, n_test=100),
        model=AttentionOnly(16),
        training=replace(on_group.training, batch_size=64),
    )
    parity = spec_of(50, 100, 1)
    return {
        "mlp(100)": parity,
        "mlp(10000)": spec_of(50, 10_000, 1),
        "a module, 1000 wide": replace(parity, model=PlainMLP(1000)),
        "parity_transformer": replace(parity, model=ParityTransformer(128, 8, 16)),
        "homogeneous(500), whole Z31": on_group,
        "attention_only(16), 64 tokens": chains,
    }


def _of_steps(spec: RunSpec, steps: int, *, curves: bool = False) -> RunSpec:
    """Return a run of some steps, evaluated after each of them or at its end alone."""
    every = 1 if curves else steps
    evaluation = Evaluation(every=every, curves=curves, fitted_error=None)
    training = replace(spec.training, steps=steps, target_error=None)
    return replace(spec, training=training, evaluation=evaluation)


def _records(spec: RunSpec, runs: int, device: Device, engine: str = "torch") -> list[RunRecord]:
    specs = [replace(spec, seed=seed) for seed in range(runs)]
    found = list(load_engine(engine).run(specs, Silent(), device))
    return sorted(found, key=lambda record: record.spec.seed)


def largest_difference(spec: RunSpec, device: Device) -> float:
    """Return how far the losses of the first steps are from the reference's, relatively."""
    short = _of_steps(spec, COMPARED_STEPS, curves=True)
    ours, theirs = (
        np.array([record.curves["train_loss"][1:] for record in records])
        for records in (_records(short, 2, device), _records(short, 2, CPU, "reference"))
    )
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def _rate(spec: RunSpec, runs: int, device: Device, turn: float) -> float:
    """Return model-steps per second, over about `turn` seconds."""
    steps, seconds = 4, 0.0
    while seconds < turn / 2:
        steps = 2 * steps if seconds < turn / 8 else int(steps * turn / seconds)
        long = _of_steps(spec, steps)
        device.synchronise()
        started = time.perf_counter()
        _records(long, runs, device)
        device.synchronise()
        seconds = time.perf_counter() - started
    return steps * runs / seconds


def _memory(spec: RunSpec, runs: int, device: Device) -> tuple[float, float | None]:
    """Return the bytes that a stack was predicted to take, and those that it took, where known."""
    fixed, each = memory_of_stacks(replace(spec, seed=0, restart=0))
    if device.kind != "cuda":
        return fixed + each * runs, None
    before = torch.cuda.memory_allocated(device.name)
    torch.cuda.reset_peak_memory_stats(device.name)
    _records(_of_steps(spec, 2), runs, device)
    return fixed + each * runs, float(torch.cuda.max_memory_allocated(device.name) - before)


def wrong_words(device: Device, words: int = WORDS) -> int:
    """Count the random words that the device draws otherwise than NumPy."""
    ours = DeviceStreams(SEEDS, "bench", device).words(0, words).cpu().numpy()
    return int((ours.view(np.uint64) != Streams(SEEDS, "bench").words(0, words)).sum())


def measure_device(device: Device, *, quick: bool = False) -> dict[str, Any]:
    """Measure a device: some minutes, or about one with `quick`."""
    call, work = device_rates(device)
    engine, turn, rows = load_engine("torch"), 0.25 if quick else 2.0, []
    for name, spec in _shapes().items():
        runs, alone = stack_size(device, engine, spec), engine.stack_size(spec)
        if quick:
            runs, alone = min(runs, QUICK_RUNS), min(alone, QUICK_RUNS)
        predicted, taken = _memory(spec, runs, device)
        rate, core = (_rate(spec, *where, turn) for where in ((runs, device), (alone, CPU)))
        rows.append(
            {
                "run": name,
                "runs_at_a_time": runs,
                "model_steps_per_second": rate,
                "on_one_core": core,
                "ratio": rate / core,
                "bytes_predicted": predicted,
                "bytes_taken": taken,
                "largest_difference": largest_difference(spec, device),
            }
        )
    return {
        "device": device.describe(),
        "torch": torch.__version__,
        "words_drawn": len(SEEDS) * WORDS,
        "words_wrong": wrong_words(device),
        "microseconds_of_a_step": 1e6 * call,
        "gigaflops": 6e-9 / work,  # forward and twice backward, a product and a sum each
        "rows": rows,
    }


def device_table(found: dict[str, Any]) -> str:
    """Return the measurements as text."""
    lines = [
        f"{found['device']}, PyTorch {found['torch']}",
        f"random words: {found['words_wrong']:,} of {found['words_drawn']:,} differ from the CPU's",
        f"a step of a tiny network takes {found['microseconds_of_a_step']:,.0f} µs; in products "
        f"{found['gigaflops']:,.0f} GFLOP/s",
        "",
        "  run                            runs   model-steps/s  one core's  memory, MB: predicted,"
        " taken  off the reference",
    ]
    lines += [_line(row) for row in found["rows"]]
    return "\n".join(lines)


def _line(row: dict[str, Any]) -> str:
    taken = "unknown" if row["bytes_taken"] is None else f"{row['bytes_taken'] / 1e6:.1f}"
    return (
        f"  {row['run']:30} {row['runs_at_a_time']:>4}  {row['model_steps_per_second']:>14,.0f}"
        f"  {row['ratio']:>9.2f}×  {row['bytes_predicted'] / 1e6:>21.1f}  {taken:>6}"
        f"  {row['largest_difference']:>17.0e}"
    )
