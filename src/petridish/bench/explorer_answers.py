"""Measuring the explorer on made stores: how soon it opens, answers, and follows a store."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from petridish.models import MLP, Sparse
from petridish.store import Store
from petridish.tasks import SparseParity
from petridish.training import Data, Evaluation, RunSpec, Training, cell_text

SEEDS = 100  # of every setting
PER_SHARD = 5_000
STEPS, POINTS = 20_000, 20
SIZES = (100_000, 1_000_000)


def make_store(folder: Path, runs: int) -> None:
    """Fill a store with made runs: a hundred seeds of every setting, with curves of 20 points.

    Nothing is trained: success and curves follow a made-up law with noise, the same at every call.
    """
    store = Store(folder)
    store.prepare()
    cells = [cell_text(spec) for spec in made_specs(-(-runs // SEEDS))]
    rng = np.random.default_rng(0)
    for start in range(0, runs, PER_SHARD):
        store.write_table(made_runs(cells, start, min(PER_SHARD, runs - start), rng))


def made_specs(count: int) -> list[RunSpec]:
    """Return specs over width, sample size and rate: as many of each as the count allows."""
    base = RunSpec(
        task=SparseParity(50, 3),
        init=Sparse(2),
        training=Training(steps=STEPS),
        evaluation=Evaluation(every=STEPS // POINTS, curves=True),
    )
    side = max(2, round(count ** (1 / 3)))
    widths = np.unique(np.geomspace(10, 10_000, side).round().astype(int)).tolist()
    samples = np.unique(np.geomspace(100, 100_000, side).round().astype(int)).tolist()
    rates = [float(f"{r:.3g}") for r in np.geomspace(1e-3, 1, -(-count // (side * side)))]
    specs = [
        replace(
            base,
            model=MLP(width),
            data=Data(m=m),
            training=Training(steps=STEPS, learning_rate=rate),
        )
        for rate in rates
        for width in widths
        for m in samples
    ]
    return specs[:count]


def made_runs(cells: list[str], start: int, count: int, rng: np.random.Generator) -> pl.DataFrame:
    """Return rows of a store: runs `start` to `start + count` of a made sweep."""
    number = np.arange(start, start + count)
    cell = number // SEEDS
    every = STEPS // POINTS
    scale = POINTS / (1 + cell % 37) * rng.lognormal(0, 0.5, count)
    step = np.arange(POINTS + 1) * every
    test = 0.5 / (1 + np.exp(np.arange(POINTS + 1)[None] - scale[:, None]))
    train = 0.5 / (1 + np.exp(2 * np.arange(POINTS + 1)[None] - scale[:, None]))
    solved, fitted = test <= 0.1, train <= 0.01
    ended = np.where(solved.any(axis=1), solved.argmax(axis=1), POINTS)
    is_fitted = fitted.any(axis=1) & (fitted.argmax(axis=1) <= ended)
    steps = ended * every
    texts = [cells[place] for place in cell]
    keys = [
        hashlib.sha256(f"{t}{n}".encode()).hexdigest()[:32]
        for t, n in zip(cell, number, strict=True)
    ]
    error = test[np.arange(count), ended]
    return pl.DataFrame(
        {
            "key": keys,
            "outcome": np.where(solved.any(axis=1), "SOLVED", "OUT_OF_STEPS"),
            "solved_at": pl.Series(steps).set(pl.Series(~solved.any(axis=1)), None),
            "fitted_at": pl.Series(fitted.argmax(axis=1) * every).set(pl.Series(~is_fitted), None),
            "steps": steps,
            "test_error": error,
            "train_loss": error * 2,
            "seconds": rng.random(count),
            "engine": "native",
            "engine_version": 1,
            "version": "made",
            "commit": pl.Series([None] * count, dtype=pl.String),
            "clean": pl.Series([None] * count, dtype=pl.Boolean),
            "cell": pl.Series(texts, dtype=pl.Categorical),
            "restart": 0,
            "seed": number % SEEDS,
            "curve.step": [step[: end + 1].tolist() for end in ended],
            "curve.test_error": [c[: e + 1].tolist() for c, e in zip(test, ended, strict=True)],
            "curve.train_error": [c[: e + 1].tolist() for c, e in zip(train, ended, strict=True)],
        }
    )


def measure_explorer(sizes: tuple[int, ...] = SIZES) -> list[dict[str, Any]]:
    """Measure the explorer's answers on made stores, each in a process of its own."""
    found = []
    for runs in sizes:
        with tempfile.TemporaryDirectory() as folder:
            _apart(make_store, Path(folder), runs)
            found.append({"runs": runs, **_apart(_measured, Path(folder))})
    return found


def _apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a new process, whose memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def _measured(folder: Path) -> dict[str, float]:
    from petridish.explorer.answers import Explorer
    from petridish.explorer.run_sets import RunSets

    seconds: dict[str, float] = {}
    megabytes: dict[str, float] = {}

    def asked(name: str, what: str, **more: str) -> Mapping[str, Any]:
        began = time.perf_counter()
        answer = explorer.answer(what, {"of": "all-runs", **more})
        seconds[name] = time.perf_counter() - began
        megabytes[name] = len(answer) / 1e6
        found: dict[str, Any] = json.loads(answer)
        return found

    began, spent = time.perf_counter(), time.process_time()
    explorer = Explorer(RunSets([folder], None))
    about = asked("axes", "set")
    asked("first value", "value", value=about["usual"])
    opened, cores = time.perf_counter() - began, time.process_time() - spent
    asked("median time", "value", value="time")
    asked("metric at the end", "value", value="test_error")
    asked("classes", "value", value="classes")
    name = about["counts"]["id"][len(about["counts"]["id"]) // 2]
    asked("one setting", "setting", id=name)
    asked("its curves", "curves", id=name, curve="test_error")
    asked("curves for the sliders", "stairs")
    one = made_runs([cell_text(made_specs(1)[0])], 0, 50, np.random.default_rng(1))
    Store(folder).write_table(one.with_columns(pl.col("seed") + 1_000_000))
    asked("after one more shard", "set")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {
        "open": opened,
        "open, on one core": cores,  # what other load does not change
        **{name: taken for name, taken in seconds.items() if name != "axes"},
        "settings": len(about["counts"]["id"]),
        "megabytes": max(megabytes.values()),
        "peak_gigabytes": peak,
    }


def explorer_table(rows: list[dict[str, Any]]) -> str:
    """Return the measurements as text."""
    names = [name for name in rows[0] if name not in ("runs", "settings")]
    lines = [f"{'runs':<26}" + "".join(f"{row['runs']:>12,}" for row in rows)]
    lines += [f"{'settings':<26}" + "".join(f"{row['settings']:>12,}" for row in rows)]
    for name in names:
        unit = {"megabytes": "largest answer, MB", "peak_gigabytes": "peak memory, GB"}
        said = unit.get(name, f"{name}, s")
        lines.append(f"{said:<26}" + "".join(f"{row[name]:>12.3f}" for row in rows))
    return "\n".join(lines)
