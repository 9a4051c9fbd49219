"""HP's deep networks of squares, which learn end to end and no layer alone [HP App. B.3.7]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.robust import outcomes_of
from petridish.chapters.hidden.rules.table_rule import TableRule, decide, refuse_mixed
from petridish.errors import require
from petridish.models import MLP, Power
from petridish.rules.claims import Finding
from petridish.rules.specs import where, with_specs
from petridish.statistics.intervals import student_half_width
from petridish.statistics.shares import mean_share
from petridish.training import Greedy

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
CELL = ("model", "task")


def depth(model: object) -> int | None:
    """Return the number L of layers of an MLP of squares, None for other models.

    `MLP(10, (10, 1), Power(2))` has four: hidden ones of 10, 10 and 1 neurons, and the output. Its
    degree is 2^(L − 1).
    """
    if not isinstance(model, MLP) or model.activation != Power(2):
        return None
    return 2 + len(model.deeper)


def with_depth(table: pl.DataFrame) -> pl.DataFrame:
    """Keep the runs of MLPs of squares; add `depth`, and `greedy` for layerwise training.

    A diverged run has no test error; it knows nothing of the labels, and counts as ½.
    """
    import polars as pl

    named = with_specs(
        where(table, lambda spec: depth(spec.model) is not None),
        depth=lambda spec: depth(spec.model),
        greedy=lambda spec: isinstance(spec.init, Greedy),
    )
    return named.with_columns(
        depth=pl.col("depth").cast(pl.Int64),
        greedy=pl.col("greedy").cast(pl.Boolean),
        solved=(pl.col("outcome") == "SOLVED").cast(pl.Float64),
        test_error=pl.col("test_error").fill_nan(None).fill_null(0.5),
    )


@dataclass(frozen=True)
class _DepthGroup:
    """The runs of one depth and k, over all n: cells (model and task) by seeds."""

    depth: int
    k: int
    solved: Floats
    error: Floats

    @property
    def name(self) -> str:
        return f"L = {self.depth}, k = {self.k}"

    @property
    def n(self) -> int:
        return int((~np.isnan(self.solved)).sum())

    def success(self, tail: float) -> tuple[float, float, float]:
        """Return the share solved, with bounds each of which misses with probability `tail`."""
        return mean_share(self.solved, coverage=1 - 2 * tail)

    def mean_error(self, tail: float) -> tuple[float, float, float]:
        """Return the mean test error with Student's bounds over seeds, each missing at `tail`."""
        means = np.nanmean(self.error, axis=0)
        estimate, half = float(means.mean()), student_half_width(means, 1 - 2 * tail)
        return estimate, estimate - half, estimate + half


def _groups(runs: pl.DataFrame) -> list[_DepthGroup]:
    parts = runs.partition_by("depth", "task.k", as_dict=True)
    return [
        _DepthGroup(*key, *(outcomes_of(part, CELL, value) for value in ("solved", "test_error")))
        for key, part in sorted(parts.items(), key=lambda item: item[0])
    ]


@dataclass(frozen=True)
class DepthDecides(TableRule):
    """L layers of squares learn the parities of degree up to 2^(L−1), and no other [HP App. B.3.7].

    Trained end to end. For every depth and k that the paper lists, more than half of the runs have
    to be solved, over all n; for every k > 2^(L−1), less than `rare`, with a mean test error above
    `chance`. Supported if all of these hold, bounds included (each at the whole level: were one not
    to hold, it would have to pass its own bound), with every listed pair run and at least one k
    beyond. Contradicted if a listed pair is solved in less than half of its runs, or one beyond in
    more than `rare` (the level split over all pairs). An error below `chance` makes the claim
    undecided, not false: the sign of a polynomial of lower degree may resemble the parity. The
    estimate is the least share solved of the listed pairs.
    """

    quantity = "least share solved, over the depths and k that the paper lists"

    listed: Mapping[int, Sequence[int]] = field(
        default_factory=lambda: {3: tuple(range(1, 5)), 4: tuple(range(1, 9))}
    )
    rare: float = 0.2
    chance: float = 0.4

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        runs = with_depth(table).filter(greedy=False)
        refuse_mixed(runs, CELL)
        groups = _groups(runs)
        within = [g for g in groups if g.k in self.listed.get(g.depth, ())]
        beyond = [g for g in groups if g.k > 2 ** (g.depth - 1)]
        require(bool(within), "no run of an MLP of squares that the paper lists")
        wanted = {(layers, k) for layers, ks in self.listed.items() for k in ks}
        absent = sorted(wanted - {(g.depth, g.k) for g in within})
        share = level / (len(within) + len(beyond))
        unsolved = [g.name for g in within if g.success(share)[2] < 0.5]
        learned = [g.name for g in beyond if g.success(share)[1] > self.rare]
        judgement = decide(
            contradicted=unsolved or learned,
            supported=not absent
            and beyond
            and all(g.success(level)[1] > 0.5 for g in within)
            and all(g.success(level)[2] < self.rare for g in beyond)
            and all(g.mean_error(level)[1] > self.chance for g in beyond),
        )
        worst = min(within, key=lambda g: g.success(level)[0])
        parts = [f"at {worst.name}"]
        if beyond:
            most = max(beyond, key=lambda g: g.success(level)[0])
            nearest = min(beyond, key=lambda g: g.mean_error(level)[0])
            parts.append(
                f"beyond 2^(L−1), at most {most.success(level)[0]:.0%} solved ({most.name}), and "
                f"the least mean error is {nearest.mean_error(level)[0]:.2f} ({nearest.name})"
            )
        if unsolved:
            parts.append(f"not solved: {'; '.join(unsolved)}")
        if learned:
            parts.append(f"solved beyond 2^(L−1): {'; '.join(learned)}")
        if absent:
            parts.append("not run: " + "; ".join(f"L = {a}, k = {k}" for a, k in absent))
        n = sum(g.n for g in (*within, *beyond))
        return Finding(judgement, *worst.success(level), self.quantity, n, "; ".join(parts))


@dataclass(frozen=True)
class GreedyStaysAtChance(TableRule):
    """Layer by layer, squares learn nothing of a parity that they learn end to end [HP App. B.3.7].

    For every depth and k with 2 < k ≤ 2^(L−1) that was run both ways, on equal models and tasks:
    the mean test error of the greedy runs, and the share of the others that is solved. Supported if
    every mean error is above `chance` and more than half of the others are solved, bounds included
    (each at the whole level); contradicted if a mean error is below `chance`, bounds included (the
    level split over all pairs). The estimate is the least mean error, with Student's bounds over
    seeds; a diverged run has none and counts as 0, against the claim. A single layer of squares can
    represent parities of one and two bits: they prove nothing.
    """

    quantity = "least mean test error of greedy layerwise training"

    chance: float = 0.4

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        import polars as pl

        lost = pl.when(pl.col("outcome") == "DIVERGED").then(0.0).otherwise(pl.col("test_error"))
        runs = with_depth(table.with_columns(test_error=lost)).filter(
            pl.col("task.k") > 2,
            pl.col("task.k") <= 2 ** (pl.col("depth") - 1),
            pl.col("greedy").n_unique().over(CELL) == 2,
        )
        refuse_mixed(runs, (*CELL, "greedy"))
        require(not runs.is_empty(), "no model and task with k > 2 was trained both ways")
        sides = (_groups(runs.filter(greedy=side)) for side in (True, False))
        pairs = list(zip(*sides, strict=True))
        share = level / len(pairs)
        judgement = decide(
            contradicted=any(g.mean_error(share)[2] < self.chance for g, _ in pairs),
            supported=all(g.mean_error(level)[1] > self.chance for g, _ in pairs)
            and all(together.success(level)[1] > 0.5 for _, together in pairs),
        )
        worst = min((layerwise for layerwise, _ in pairs), key=lambda g: g.mean_error(level)[0])
        weakest = min((together for _, together in pairs), key=lambda g: g.success(level)[0])
        solved = sum(float(np.nansum(layerwise.solved)) for layerwise, _ in pairs)
        n = sum(layerwise.n + together.n for layerwise, together in pairs)
        remark = (
            f"at {worst.name}; {solved:.0f} of {sum(g.n for g, _ in pairs)} greedy runs solved; "
            f"end to end at least {weakest.success(level)[0]:.0%} ({weakest.name})"
        )
        estimate, low, high = worst.mean_error(level)
        return Finding(judgement, estimate, low, high, self.quantity, n, remark)
