"""How the time to converge grows with n, architecture by architecture [HP Fig. B.5]."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.architectures import ROBUST, in_order, with_architectures
from petridish.chapters.hidden.rules.robust import RATE, outcomes_of
from petridish.chapters.hidden.rules.table_rule import TableRule, decide, refuse_mixed
from petridish.errors import require
from petridish.rules.claims import Finding
from petridish.statistics.intervals import RESAMPLES

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)  # arrays have no one answer to ==
class Scaling:
    """How the time to converge grows with n, for one architecture and one k.

    Attributes
    ----------
    alpha, c : float
        The smallest α with t(n) ≤ c (n − n0)^α, infinite where some t(n) is beyond the budget; and
        t(n0 + 1), the time at the smallest n.
    draws, least : array
        α with seeds drawn anew, infinite where a time lies beyond the budget; and the same with the
        budget in place of what lies beyond it: α is at least this.
    runs, seeds : int
        How many stand behind it.
    """

    architecture: str
    k: int
    alpha: float
    c: float
    draws: Floats
    least: Floats
    runs: int
    seeds: int

    def low(self, level: float) -> float:
        """Return the lower bound of α, one-sided."""
        return min(float(np.quantile(self.least, level, method="inverted_cdf")), self.alpha)

    def high(self, level: float) -> float:
        """Return the upper bound of α, one-sided."""
        return max(float(np.quantile(self.draws, 1 - level, method="inverted_cdf")), self.alpha)


def scalings(runs: pl.DataFrame, n0: int = 9) -> list[Scaling]:
    r"""Fit :math:`t_c \le c (n - n_0)^\alpha` for each architecture and k [HP App. B.4.2].

    `runs` have one batch size, loss and initialisation, and a column `architecture`.
    :math:`t_c(n)` is the 10th percentile of the time to convergence over the seeds, at the learning
    rate where it is least: the first time by which a tenth of the runs have converged. The smallest
    exponent is :math:`\alpha = \max_n \log(t_c(n) / c) / \log(n - n_0)` over :math:`n > n_0 + 1`,
    with :math:`c = t_c(n_0 + 1)`. Seeds are drawn anew together in all n and rates, and the best
    rates chosen anew with them.
    """
    runs = runs.filter(runs["task.n"] > n0)
    parts = runs.partition_by("architecture", "task.k", as_dict=True)
    order = in_order(set(runs["architecture"]))
    return [
        _scaling(name, k, parts[name, k].sort("task.n", RATE, "seed"), n0)
        for name, k in sorted(parts, key=lambda key: (order.index(key[0]), key[1]))
        if parts[name, k]["task.n"].min() == n0 + 1 and parts[name, k]["task.n"].n_unique() > 1
    ]


def _scaling(name: str, k: int, runs: pl.DataFrame, n0: int) -> Scaling:
    import polars as pl

    late = runs.with_columns(time=pl.col("solved_at").cast(pl.Float64).fill_null(math.inf).clip(1))
    times = outcomes_of(late, ("task.n", RATE), "time")  # (n and rate, seed)
    times = times[:, ~np.isnan(times).any(axis=0)]  # the seeds that every cell has
    sizes = late.select("task.n", RATE).unique().sort("task.n", RATE)["task.n"].to_numpy()
    n, seeds = np.unique(sizes), times.shape[1]
    if not seeds:
        nan = np.array([math.inf])
        return Scaling(name, k, math.nan, math.nan, nan, -nan, len(runs), 0)
    rng = np.random.default_rng(0)  # the same table gives the same verdict
    drawn = np.vstack([np.arange(seeds), rng.integers(seeds, size=(RESAMPLES, seeds))])
    tenth = (seeds - 1) // 10  # the first by which a tenth have converged
    quick = np.partition(times[:, drawn], tenth, axis=-1)[..., tenth]  # (n and rate, draw)
    best = np.stack([quick[sizes == size].min(axis=0) for size in n])  # (n, draw)
    budget = float(runs["training.steps"].max())  # type: ignore[arg-type] # a whole column
    exponents = np.log(n[1:, None] - n0)
    known = np.isfinite(best[0])
    start = np.where(known, best[0], 1.0)
    alpha = np.where(known, np.max(np.log(best[1:] / start) / exponents, axis=0), math.inf)
    least = np.max(np.log(np.minimum(best[1:], budget) / start) / exponents, axis=0)
    least = np.where(known, least, -math.inf)
    return Scaling(
        name, k, float(alpha[0]), float(best[0, 0]), alpha[1:], least[1:], times.size, seeds
    )


def exhaustive_alpha(k: int, sizes: Iterable[int], n0: int = 9) -> float:
    """Return the α that the number of candidates C(n, k) has by the same fit.

    For n = 10, 20, 30 it is 0.75, 1.16 and 1.60 at k = 2, 3 and 4: n − 9 grows from 1 to 21 where n
    only trebles.
    """
    first = math.comb(n0 + 1, k)
    return max(math.log(math.comb(n, k) / first) / math.log(n - n0) for n in sizes if n > n0 + 1)


@dataclass(frozen=True)
class ScalingTable(TableRule):
    """The time to converge grows with n more slowly than the number of candidates [HP Fig. B.5].

    For each architecture and k the α of `scalings`, at one batch size, loss and initialisation,
    over the α that C(n, k) has by the same fit (`exhaustive_alpha`). The paper calls α small and
    names no bound; one step per candidate, with an examination that costs the same at every n, is
    the search that SGD is set against.

    The estimate is the largest of these ratios, with an interval by drawing seeds anew. Supported
    if every one is below 1, bounds included (each at the whole level: were one above, it would have
    to pass its own bound), and all `architectures` were run. Contradicted if some ratio lies above,
    bounds included (the level split over the entries). With fewer than `fewest` seeds an entry
    decides nothing: a bootstrap of so few knows the 10th percentile as the least time only. An
    entry whose time at the smallest n is so long that C(n, k)'s growth would leave the budget
    cannot contradict; unsolved, it leaves the claim undecided. The remark counts these.
    """

    n0: int = 9
    batch_size: int = 32
    loss: str = "hinge"
    init: str = "xavier"
    architectures: tuple[str, ...] = ROBUST
    fewest: int = 15

    @property
    def quantity(self) -> str:
        """What the estimate measures, in words."""
        return f"largest α over that of C(n, k), in t ≤ c (n − {self.n0})^α"

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        import polars as pl

        at = f"B = {self.batch_size}, {self.loss}, {self.init}"
        keys = ("architecture", "task.n", "task.k", "training.batch_size", "training.loss", "init")
        runs = with_architectures(table).filter(
            pl.col("architecture").is_in(self.architectures),
            pl.col("training.batch_size") == self.batch_size,
            pl.col("training.loss") == self.loss,
            pl.col("init") == self.init,
        )
        refuse_mixed(runs, (*keys, RATE))
        entries = scalings(runs, self.n0)
        require(bool(entries), f"no architecture has n = {self.n0 + 1} and a larger n at {at}")
        absent = set(self.architectures) - {entry.architecture for entry in entries}
        few = [entry for entry in entries if entry.seeds < self.fewest]
        missing = [entry for entry in entries if not math.isfinite(entry.alpha)]
        split = level / len(entries)
        sizes = sorted(set(runs["task.n"]))
        limits = {k: exhaustive_alpha(k, sizes, self.n0) for k in sorted({e.k for e in entries})}
        above = [
            entry
            for entry in entries
            if entry.seeds >= self.fewest and entry.low(split) > limits[entry.k]
        ]
        below = all(entry.high(level) < limits[entry.k] for entry in entries)
        judgement = decide(contradicted=above, supported=below and not few and not absent)
        known = [entry for entry in entries if math.isfinite(entry.alpha)] or entries
        # The one that decides: significantly above, or else the largest.
        worst = max(known, key=lambda entry: (entry in above, entry.alpha / limits[entry.k]))
        # The least n leaves most room: α there is the largest that a time within the budget has.
        nearest = math.log(next(n for n in sizes if n > self.n0 + 1) - self.n0)
        budget = float(runs["training.steps"].max())  # type: ignore[arg-type] # a whole column
        blind = sum(math.log(budget / e.c) / nearest <= limits[e.k] for e in known)
        candidates = ", ".join(f"{limit:.2f} at k = {k}" for k, limit in limits.items())
        parts = [
            f"{worst.architecture}, k = {worst.k}: c = {worst.c:g}, α = {worst.alpha:.2f}",
            f"{sum(entry.alpha < limits[entry.k] for entry in entries)} of {len(entries)} α below "
            f"that of C(n, k) ({candidates})",
            f"at {at}",
            f"{blind} take too long at n = {self.n0 + 1} to be found above it in {budget:,.0f} "
            "steps",
        ]
        if missing:
            named = ", ".join(f"{e.architecture} at k = {e.k}" for e in missing)
            parts.append(f"less than a tenth converge for some n: {named}")
        if few:
            parts.append(f"{len(few)} entries have less than {self.fewest} seeds")
        if absent:
            parts.append(f"not run: {', '.join(in_order(absent))}")
        total = sum(entry.runs for entry in entries)
        ends = (worst.alpha, worst.low(split), worst.high(level))
        limit = limits[worst.k]
        estimate, low, high = (end / limit if math.isfinite(end) else math.nan for end in ends)
        remark = "; ".join(parts)
        return Finding(judgement, estimate, low, high, self.quantity, total, remark, bound=1.0)
