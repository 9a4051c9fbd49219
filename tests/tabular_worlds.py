"""Invented runs on tables, for the tests of rules about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from petridish.chapters.tables.rules import (
    Competitive,
    LowerError,
    MostAtSmallSamples,
    SometimesBeats,
    SparseHelps,
    WidthHelps,
)
from tests.cell_tables import with_cells

Numbers = Any

WIDTHS, SAMPLES, INITS = (100, 300, 1_000), (50.0, 300.0, 2_000.0), ("uniform", "sparse(2)")


@dataclass(frozen=True)
class Method:
    """What is fitted: an MLP of some width and depth, or a member of another family."""

    model: str
    width: int | None = None
    deeper: tuple[int, ...] | None = None
    init: str = "uniform"
    decay: float = 0.0

    @property
    def family(self) -> str:
        """The name before the bracket."""
        return self.model.partition("(")[0]


def mlp(width: int, depth: int = 2, init: str = "uniform", decay: float = 0.0) -> Method:
    """Make an MLP of one width throughout."""
    deeper = (width,) * (depth - 1)
    return Method(f"mlp({width}, {deeper})", width, deeper, init, decay)


def mlps(
    widths: Sequence[int] = WIDTHS, inits: Sequence[str] = INITS, depths: Sequence[int] = (2,)
) -> list[Method]:
    """Make the MLPs of a grid."""
    return [mlp(r, depth, init) for r in widths for depth in depths for init in inits]


def forests(count: int) -> list[Method]:
    """Make a grid of forests."""
    return [Method(f"random_forest({trees})") for trees in range(1, count + 1)]


Effect = Callable[[Method, float, Numbers], Numbers]


def nothing_matters(method: Method, m: float, luck: Numbers) -> Numbers:
    """Every method errs as much as every other."""
    return 0.0 * luck


def world(
    effect: Effect = nothing_matters,
    methods: Sequence[Method] | None = None,
    *,
    tasks: int = 12,
    samples: Sequence[float] = SAMPLES,
    trials: int = 10,
    noise: float = 0.01,
    seed: int = 0,
) -> pl.DataFrame:
    """Draw the runs of all methods on the splits of some tasks.

    `effect` is what a method adds to the error at m, given each task's luck, a standard normal.
    """
    rng = np.random.default_rng(seed)
    methods = mlps() if methods is None else methods
    shape = (tasks, len(samples), len(methods), trials)
    base, luck = rng.uniform(0.1, 0.35, tasks), rng.standard_normal(tasks)
    hard = 0.02 * rng.standard_normal((tasks, len(samples), 1, trials))
    error = base[:, None, None, None] + hard + noise * rng.standard_normal(shape)
    for place, method in enumerate(methods):
        for at, m in enumerate(samples):
            error[:, at, place] += np.asarray(effect(method, m, luck))[..., None]
    task, sample, one, trial = (axis.ravel() for axis in np.indices(shape))

    def column(value: Callable[[Method], Any], kind: Any) -> pl.Series:
        return pl.Series([value(method) for method in methods], dtype=kind).gather(one)

    table = pl.DataFrame(
        {
            "task.dataset": pl.Series([f"task {t:02d}" for t in range(tasks)]).gather(task),
            "task.rows": pl.Series([10_000] * len(task)),
            "task.classes": pl.Series([2] * len(task)),
            "data.m": pl.Series(samples, dtype=pl.Float64).gather(sample),
            "seed": pl.Series(trial),
            "model": column(lambda method: method.model, pl.String),
            "model.width": column(lambda method: method.width, pl.Int64),
            "model.deeper": column(
                lambda m: None if m.deeper is None else list(m.deeper), pl.List(pl.Int64)
            ),
            "init": column(lambda method: method.init, pl.String),
            "training.weight_decay": column(lambda method: method.decay, pl.Float64),
            "training.optimiser": pl.Series(["adam"] * len(task)),
            "training.steps": pl.Series(samples, dtype=pl.Float64).gather(sample).cast(int),
            "test_error": pl.Series(np.clip(error.ravel(), 0.0, 0.5)),
            "seconds": pl.Series(rng.uniform(0.1, 1.0, len(task))),
            "outcome": pl.Series(["OUT_OF_STEPS"] * len(task)),
        }
    )
    return with_cells(table)


def by_width(slope: float, varying: float = 0.004) -> Effect:
    """Let the error fall by `slope` per tenfold width, more or less from task to task."""

    def effect(method: Method, m: float, luck: Numbers) -> Numbers:
        decades = math.log10((method.width or 100) / 100)
        return -(slope + varying * luck) * decades

    return effect


def by_start(gain: Mapping[float, float], varying: float = 0.004) -> Effect:
    """Let a sparse start lower the error by a gain that depends on m."""

    def effect(method: Method, m: float, luck: Numbers) -> Numbers:
        return -(gain[m] + varying * luck) * (method.init == "sparse(2)")

    return effect


def by_family(offsets: Mapping[str, float], varying: float = 0.004) -> Effect:
    """Let families err more or less, and tasks suit them more or less."""

    def effect(method: Method, m: float, luck: Numbers) -> Numbers:
        offset = offsets.get(method.family, 0.0)
        return offset + varying * luck * (method.family == "mlp")

    return effect


def equal(gain: float) -> dict[float, float]:
    """Return the same gain at every m."""
    return dict.fromkeys(SAMPLES, gain)


CONTENDERS = [*mlps(), *forests(4)]


LEVELS: dict[str, tuple[Any, Effect, list[Method]]] = {
    "width": (WidthHelps(), by_width(0.0), mlps()),
    "sparse": (SparseHelps(), by_start(equal(0.0)), mlps(WIDTHS[-1:])),
    "small samples": (MostAtSmallSamples(), by_start(equal(0.01)), mlps(WIDTHS[-1:])),
    "competitive": (Competitive(), by_family({"mlp": 0.01}), [mlp(100), mlp(300), *forests(2)]),
    "beats": (SometimesBeats(), nothing_matters, [mlp(100), mlp(300), mlp(1_000), *forests(3)]),
    "lower": (
        LowerError("sparse_mlp", "random_forest"),
        nothing_matters,
        [Method("sparse_mlp(1000)"), *forests(8)],
    ),
}
