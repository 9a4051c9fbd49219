"""Worlds for the rules: tables in which a claim holds, its opposite does, or nothing matters.

A rule at level α may decide wrongly with probability α. Where tables are drawn from a world without
an effect, `most_wrong` gives the number of wrong decisions that such a rule exceeds with
probability 1e-4 or less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from petridish.chapters.pareto.rules.samples import Steadier, WidthRemoves, Worsens
from petridish.chapters.pareto.rules.starts import BestStart, SucceedsWhereFails
from petridish.chapters.pareto.rules.theorems import AboveTheBound, GrowsNoFaster
from petridish.chapters.pareto.rules.tickets import TicketsImprove, TicketsWin
from petridish.rules.claims import Judgement
from petridish.rules.comparisons import BestOrTied
from petridish.rules.outcome_classes import Groks
from petridish.rules.times import Quicker, SlowAtTheEdge
from tests.cell_tables import with_cells

SUPPORTED, CONTRADICTED, UNDECIDED = (
    Judgement.SUPPORTED,
    Judgement.CONTRADICTED,
    Judgement.UNDECIDED,
)
TYPES = {
    "solved_at": pl.Int64,
    "fitted_at": pl.Int64,
    "init.s": pl.Int64,
    "init.chosen": pl.String,
    "init.seed": pl.Int64,
}
Time = Callable[[np.random.Generator, dict[str, Any]], int | None]


def run(time: int | None, **columns: Any) -> dict[str, Any]:
    """Make one row of a table: a run solved at `time`, or never."""
    values: dict[str, Any] = {
        "task": "sparse_parity(50, 3)",
        "task.n": 50,
        "task.k": 3,
        "init": "uniform",
        "init.s": None,
        "data.m": 100.0,
        "model.width": 10,
        "seed": 0,
        "outcome": "OUT_OF_STEPS" if time is None else "SOLVED",
        "solved_at": time,
        "fitted_at": None,
    }
    return values | columns


def table_of(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Make a table with the types that a store's has."""
    types = {name: kind for name, kind in TYPES.items() if name in rows[0]}
    return with_cells(pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None))


def sweep(
    time: Time,
    *,
    widths: Sequence[int] = (10, 100),
    samples: Sequence[float] = (100.0, 200.0, 400.0),
    inits: Sequence[str] = ("uniform",),
    seeds: int = 10,
    seed: int = 0,
) -> pl.DataFrame:
    """Draw the runs of a grid; `time` gives when a run of a cell is solved."""
    rng = np.random.default_rng(seed)
    cells = [
        {"init": init, "model.width": width, "data.m": m}
        for init in inits
        for width in widths
        for m in samples
    ]
    return table_of([run(time(rng, c), seed=s, **c) for c in cells for s in range(seeds)])


def near(typical: float, rng: np.random.Generator) -> int:
    """Draw a time around the typical one, on looks every 100 steps."""
    return 100 * math.ceil(typical * math.exp(0.3 * rng.standard_normal()) / 100)


def with_chance(probability: float, rng: np.random.Generator) -> int | None:
    """Solve a run at 100 steps, or not at all."""
    return 100 if rng.random() < probability else None


def nothing_matters(rng: np.random.Generator, cell: dict[str, Any]) -> int:
    """Every run takes as long as every other, but for noise."""
    return near(3_000, rng)


def most_wrong(tables: int, level: float = 0.05) -> int:
    """Return the number of wrong decisions that bad luck of 1e-4 explains."""
    from scipy.stats import binom

    return int(binom.isf(1e-4, tables, level))


def decided(rule: Any, tables: Sequence[pl.DataFrame], level: float = 0.05) -> int:
    """Count the tables on which a rule decides."""
    return sum(rule.judge(table, level).judgement is not UNDECIDED for table in tables)


# Tables for several rules


def curve(fit: int, left: int, *, every: int = 100, looks: int = 45) -> dict[str, Any]:
    """Make a run that fits its sample from `fit` on and leaves chance from `left` on."""
    steps = [every * look for look in range(looks)]
    return run(
        steps[-1],
        **{
            "curve.step": steps,
            "curve.train_error": [0.0 if step >= fit else 0.5 for step in steps],
            "curve.test_error": [0.05 if step >= left else 0.5 for step in steps],
        },
    )


def curves_of(ratios: Sequence[float]) -> pl.DataFrame:
    """Make runs that leave chance so many times later than they fit, at 1000 steps."""
    return table_of(
        [curve(1_000, round(1_000 * ratio)) | {"seed": s} for s, ratio in enumerate(ratios)]
    )


def ticket_run(time: int | None, **columns: Any) -> dict[str, Any]:
    """Make a run whose curve comes to 5 % error at `time`, or stays at chance."""
    steps = [0, 1_000] if time is None else [0, time]
    errors = [0.5, 0.5 if time is None else 0.05]
    return run(time, **{"curve.step": steps, "curve.test_error": errors, **columns})


def tickets(
    ticket: Callable[[int], int | None],
    control: Callable[[], int | None],
    *,
    parents: int = 10,
    each: int = 5,
    controls: int = 50,
) -> pl.DataFrame:
    """Make runs from tickets of some parents, and of both controls."""
    largest = [
        ticket_run(ticket(parent), seed=s, **{"init.chosen": "largest", "init.seed": parent})
        for parent in range(parents)
        for s in range(each)
    ]
    others = [
        ticket_run(control(), seed=s, **{"init.chosen": chosen, "init.seed": None})
        for chosen in ("random", None)
        for s in range(controls)
    ]
    return table_of(largest + others)


def over_sparse(
    probability: Callable[[int, int, float], float],
    *,
    sparsities: Sequence[int] = (4, 8, 16),
    widths: Sequence[int] = (8, 64),
    samples: Sequence[float] = (50.0, 100.0, 200.0, 400.0),
    seeds: int = 10,
    seed: int = 0,
) -> pl.DataFrame:
    """Draw runs from over-sparse starts, solved with a probability of (s, width, m)."""
    rng = np.random.default_rng(seed)
    rows = [
        run(
            with_chance(probability(s, width, m), rng),
            seed=number,
            init=f"over_sparse({s}, 2)",
            **{"init.s": s, "model.width": width, "data.m": m},
        )
        for s in sparsities
        for width in widths
        for m in samples
        for number in range(seeds)
    ]
    return table_of(rows)


def in_arm(table: pl.DataFrame, name: str = "all") -> pl.DataFrame:
    """Put all runs into one arm."""
    return table.with_columns(arms=pl.lit([name], pl.List(pl.String)))


def by_sample(
    chances: dict[float, float], *, inits: Sequence[str] = ("uniform",), seeds: int = 50
) -> pl.DataFrame:
    """Draw runs of two widths that are solved with a chance of their sample size."""
    return sweep(
        lambda rng, c: with_chance(chances[c["data.m"]], rng),
        samples=tuple(chances),
        inits=inits,
        seeds=seeds,
    )


def later_with_data(narrow: float, wide: float, *, seeds: int = 20) -> pl.DataFrame:
    """Draw runs whose time grows so many times from m = 200 to 400, at two widths."""

    def time(rng: np.random.Generator, cell: dict[str, Any]) -> int:
        growth = narrow if cell["model.width"] == 10 else wide
        return near(20_000 * (growth if cell["data.m"] == 400 else 1), rng)

    return sweep(time, seeds=seeds)


LEAST_DATA = GrowsNoFaster("all", "init.s", "data.m", exponent=1)
LEAST_WIDTH = GrowsNoFaster("all", "init.s", "model.width", exponent=-1)
RULES: dict[str, tuple[Any, Callable[[], pl.DataFrame]]] = {
    "quicker": (
        Quicker(),
        lambda: sweep(lambda rng, c: near(10_000 / c["model.width"] ** 0.5, rng)),
    ),
    "edge": (SlowAtTheEdge(), lambda: sweep(lambda rng, c: near(3e5 / c["data.m"], rng))),
    "fall": (Worsens("success"), lambda: by_sample({100.0: 0.9, 200.0: 0.9, 400.0: 0.2})),
    "valley": (
        Worsens("success", returns=True),
        lambda: by_sample({100.0: 0.95, 200.0: 0.05, 400.0: 0.95}),
    ),
    "later": (Worsens("time"), lambda: later_with_data(4, 4)),
    "gone": (WidthRemoves("uniform", margin=0.5), lambda: later_with_data(6, 1, seeds=40)),
    "steadier": (
        Steadier(),
        lambda: sweep(
            lambda rng, c: with_chance(
                0.2 if c["data.m"] == 400 and c["init"] == "uniform" else 0.9, rng
            ),
            inits=("sparse(2)", "uniform"),
            seeds=30,
        ),
    ),
    "best start": (
        BestStart("sparse(2)"),
        lambda: sweep(
            lambda rng, c: with_chance(0.95 if c["init"] == "sparse(2)" else 0.3, rng),
            inits=("sparse(2)", "sparse(3)", "uniform"),
            seeds=20,
        ),
    ),
    "quickest start": (
        BestStart("sparse(2)", "time"),
        lambda: sweep(
            lambda rng, c: near(1_000 if c["init"] == "sparse(2)" else 9_000, rng),
            inits=("sparse(2)", "sparse(3)", "uniform"),
        ),
    ),
    "rescue": (
        SucceedsWhereFails(("all",)),
        lambda: in_arm(
            sweep(
                lambda rng, c: with_chance(float(c["init"] == "sparse(2)"), rng),
                inits=("sparse(2)", "uniform"),
                seeds=20,
            )
        ),
    ),
    "best": (
        BestOrTied("init", "sparse(2)"),
        lambda: sweep(
            lambda rng, c: with_chance(1.0 if c["init"] == "sparse(2)" else 0.5, rng),
            inits=("sparse(2)", "sparse(3)", "uniform"),
        ),
    ),
    "more tickets": (
        TicketsWin("success"),
        lambda: tickets(lambda parent: 100 if parent else None, lambda: None),
    ),
    "sooner tickets": (
        TicketsWin("time"),
        lambda: tickets(lambda parent: 80 * (1 + parent), lambda: 900),
    ),
    "improving tickets": (
        TicketsImprove(),
        lambda: tickets(lambda parent: 100 if parent else None, lambda: None),
    ),
    "bound": (AboveTheBound(), lambda: sweep(nothing_matters)),
    "least data": (
        LEAST_DATA,
        lambda: in_arm(over_sparse(lambda s, _, m: float(m >= 40 * s**0.5), widths=(8,))),
    ),
    "least width": (
        LEAST_WIDTH,
        lambda: in_arm(
            over_sparse(
                lambda s, r, _: float(r >= 2_000 / s**2),
                widths=(4, 8, 16, 32, 64, 128, 256),
                samples=(50.0,),
            )
        ),
    ),
    "grokking": (Groks(), lambda: curves_of([2.4, 2.6, 2.7, 2.9, 3.1, 3.2, 3.3, 3.5])),
}
