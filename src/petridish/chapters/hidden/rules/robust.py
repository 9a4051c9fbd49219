"""HP's robust space: which architectures converge, with which batch sizes, starts and losses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.architectures import NUMERALS, in_order, with_architectures
from petridish.rules.cells import mixed
from petridish.rules.claims import Finding, Judgement, nothing
from petridish.statistics.estimate import student_half_width, wilson_interval

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
Counts = int | NDArray[Any]
ROBUST = NUMERALS[:15]  # (i) … (xv); the others are the source's less robust ones
RATES = (0.001, 0.01, 0.1, 1.0)
RATE = "training.learning_rate"
OTHERS = ("task", "training.batch_size", "init", "training.loss")
COMBINATION = ("architecture", *OTHERS)
RESAMPLES = 2_000


@dataclass(frozen=True)
class RobustSpace:
    """Every combination converges in at least `share` of its runs, for some learning rate [HP §3].

    A combination is an architecture with a task, a batch size, an initialisation and a loss. The
    estimate is the share of combinations whose best η reaches `share`, as the source counts. But
    the best of four was chosen on the runs that show it, and with few seeds one lucky run is 20 %:

    - A combination is *certain* to reach `share` if some η has a count that a probability below
      `share` gives too rarely (exact binomial test, Bonferroni over its η). Supported if all
      combinations are certain, each at the whole level: were one of them to fail, it would have to
      slip through its own test. All `architectures` must have been run.
    - Contradicted if a group of combinations of one architecture converges too rarely even with
      the best η of each, chosen in hindsight: if all had an η with `share`, their best counts would
      add up to more. Groups pool over any of task, batch size, init and loss, or over none; half of
      the level is split over the 16 ways of pooling, and in each over its groups. Runs at one seed
      share their start and data, so that a group's counts are divided by the design effect of its
      way of pooling [Kish 1965]: how much more the seeds' sums vary, over all architectures, than
      those of independent runs. Where no cell varies, seeds alone count. Combinations in which a
      rate of `rates` was not tried cannot speak against the claim.
    - The interval bounds the share of combinations that truly reach `share`, however they depend on
      each other: of F that fail, tests at level / 5 let level · F / 5 pass on average, so that
      F / 5 or more pass with probability `level` at most (Markov's inequality). Likewise above, at
      half of the level: an upper end below 1 contradicts too. Between all this it is undecided.

    The remark also tells, for the weakest architecture, its mean success where one half of the
    seeds chooses each combination's η and the other half measures it (`crossed_success`). The tests
    are for numbers of runs that were fixed beforehand.

    Attributes
    ----------
    share : float
        What every combination has to reach.
    architectures : tuple of str
        Which the claim is about.
    at_least : mapping
        Bounds on columns: {"training.batch_size": 16} for the source's less robust settings.
    rates : tuple of float
        The learning rates that the claim allows.
    """

    share: float = 0.2
    architectures: tuple[str, ...] = ROBUST
    at_least: Mapping[str, float] = field(default_factory=dict)
    rates: tuple[float, ...] = RATES

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        import polars as pl

        quantity = f"share of combinations that reach {self.share:.0%} with their best η"
        runs = with_architectures(table).filter(
            pl.col("architecture").is_in(self.architectures) & pl.col(RATE).is_in(self.rates)
        )
        for column, least in self.at_least.items():
            runs = runs.filter(pl.col(column) >= least)
        if runs.is_empty():
            return nothing(quantity, f"no run of {_listed(self.architectures)}")
        if clash := mixed(runs, (*COMBINATION, RATE)):
            return nothing(quantity, clash)
        cells = self._cells(runs)
        failure = self._failure(runs, cells.filter("tried"), level / 2)
        low, high = _least_share(cells, level), _largest_share(cells, level / 2)
        missing = [name for name in self.architectures if name not in set(cells["architecture"])]
        certain = cells["p_pass"] <= level
        judgement = Judgement.UNDECIDED
        if failure or high < 1:
            judgement = Judgement.CONTRADICTED
        elif certain.all() and not missing:
            judgement = Judgement.SUPPORTED
        estimate = float((cells["best"] >= self.share).mean())  # type: ignore[arg-type] # a number
        if failure:
            high = min(high, 1 - 1 / len(cells))
        low, high = min(low, estimate), max(high, estimate)
        remark = self._remark(cells, runs, level, failure, missing)
        return Finding(judgement, estimate, low, high, quantity, len(runs), remark)

    def _cells(self, runs: pl.DataFrame) -> pl.DataFrame:
        """Give each combination its best share, and the p-values of passing and of failing."""
        import polars as pl

        counts = by_rate(runs)
        solved, made = counts["solved"].to_numpy(), counts["runs"].to_numpy()
        counts = counts.with_columns(
            above=binomial_at_least(solved, made, self.share),
            below=binomial_at_most(solved, made, self.share),
        )
        return counts.group_by(COMBINATION).agg(
            best=(pl.col("solved") / pl.col("runs")).max(),
            p_pass=pl.col("above").min() * pl.len(),  # Bonferroni over the rates
            p_fail=pl.col("below").max(),  # it fails if every rate does
            tried=pl.len() == len(self.rates),
        )

    def _failure(self, runs: pl.DataFrame, cells: pl.DataFrame, level: float) -> str:
        """Name the group that speaks most clearly against the claim; nothing if none does."""
        import polars as pl

        if cells.is_empty():
            return ""
        kept = best_runs(runs).join(cells.select(COMBINATION), on=COMBINATION, how="semi")
        kept = kept.with_columns(
            residual=pl.col("solved") - pl.col("solved").mean().over(COMBINATION)
        )
        alone = float((kept["residual"] ** 2).sum())
        found = []
        ways = [way for size in range(len(OTHERS) + 1) for way in combinations(OTHERS, size)]
        for way in ways:
            by = ["architecture", *way]
            together = kept.group_by(*by, "seed", maintain_order=True).agg(pl.col("residual").sum())
            effect = float((together["residual"] ** 2).sum()) / alone if alone else math.inf
            groups = (
                kept.group_by(by)
                .agg(solved=pl.col("solved").sum(), runs=pl.len(), seeds=pl.col("seed").n_unique())
                .sort(by)  # of two equals, the first is named
            )
            solved, made = groups["solved"].to_numpy(), groups["runs"].to_numpy()
            effects = np.clip(effect, 1, made / groups["seeds"].to_numpy())
            p = (
                binomial_at_most(solved / effects, made / effects, self.share)
                * len(groups)
                * len(ways)
            )
            worst = int(np.argmin(p))
            found.append((float(p[worst]), by, groups.row(worst, named=True)))
        least, by, group = min(found, key=lambda each: each[0])
        if least > level:
            return ""
        where = ", ".join(_short(name, group[name]) for name in by)
        return (
            f"too rarely even with the best η: {where}, {group['solved']} of {group['runs']} runs "
            f"(p = {least:.2g} after correction)"
        )

    def _remark(
        self,
        cells: pl.DataFrame,
        runs: pl.DataFrame,
        level: float,
        failure: str,
        missing: list[str],
    ) -> str:
        import polars as pl

        reach = pl.col("best") >= self.share
        each = cells.group_by("architecture").agg(
            passing=reach.sum(), all=pl.len(), share=reach.mean(), mean=pl.col("best").mean()
        )
        name, passing, total = each.sort("share", "mean", "architecture").row(0)[:3]
        worst = (
            cells.filter(pl.col("architecture") == name).sort("best", *OTHERS).row(0, named=True)
        )
        at = ", ".join(_short(column, worst[column]) for column in OTHERS)
        certain = int((cells["p_pass"] <= level).sum())
        parts = [
            f"{int(cells.select(reach.sum()).item())} of {len(cells)} combinations by their point "
            f"estimate, {certain} for certain",
            f"fewest: {name}, {passing} of {total}, least at {at} ({worst['best']:.0%})",
        ]
        crossed = crossed_success(runs, coverage=1 - level)
        if name in set(crossed["architecture"]):
            row = crossed.row(by_predicate=pl.col("architecture") == name, named=True)
            parts.append(
                f"{name} succeeds in {row['success']:.0%} [{row['low']:.0%}, {row['high']:.0%}] "
                "of its runs with the η that the other half of the seeds prefers"
            )
        if untried := len(cells) - int(cells["tried"].sum()):
            parts.append(f"{untried} without all of the {len(self.rates)} rates")
        if missing:
            parts.append(f"not run: {_listed(missing)}")
        return "; ".join([*([failure] if failure else []), *parts])


def by_rate(runs: pl.DataFrame) -> pl.DataFrame:
    """Count runs and solved ones for every combination and learning rate."""
    import polars as pl

    return runs.group_by(*COMBINATION, RATE).agg(
        runs=pl.len(), solved=(pl.col("outcome") == "SOLVED").sum()
    )


def best_runs(runs: pl.DataFrame) -> pl.DataFrame:
    """Keep the runs of each combination at its best η: the most often solved, then the quickest.

    `solved` is made 0 or 1. A tie is broken by the 10th percentile of the time, then by the rate.
    """
    import polars as pl

    time = pl.col("solved_at").cast(pl.Float64).fill_null(math.inf)
    rates = runs.group_by(*COMBINATION, RATE).agg(
        share=(pl.col("outcome") == "SOLVED").mean(),
        quick=time.sort().get(((pl.len() - 1) // 10).cast(pl.Int64)),
    )
    chosen = (
        rates.sort("share", "quick", RATE, descending=[True, False, False])
        .group_by(COMBINATION, maintain_order=True)
        .first()
    )
    kept = runs.join(chosen.select(*COMBINATION, RATE), on=[*COMBINATION, RATE], how="semi")
    return kept.with_columns(solved=(pl.col("outcome") == "SOLVED").cast(pl.Int64))


def crossed_success(runs: pl.DataFrame, *, coverage: float = 0.95) -> pl.DataFrame:
    """Give each architecture's mean success at rates that its measured runs did not choose.

    One half of the seeds chooses the η of each combination, the other half measures it, and the
    other way round: what is measured is on average no more than the best η's success. Columns
    `architecture`, `success`, `low`, `high` (see `mean_share`) and `runs`. Architectures without
    two seeds are left out.
    """
    import polars as pl

    number = {seed: i for i, seed in enumerate(sorted(set(runs["seed"])))}
    halves = runs.with_columns(
        half=pl.col("seed").replace_strict(number, return_dtype=pl.Int64) % 2
    )
    measured = []
    for half in (0, 1):
        choosing, other = (halves.filter(pl.col("half") == side) for side in (half, 1 - half))
        rates = best_runs(choosing).select(*COMBINATION, RATE).unique()
        measured.append(other.join(rates, on=[*COMBINATION, RATE], how="semi"))
    kept = pl.concat(measured).with_columns(solved=(pl.col("outcome") == "SOLVED").cast(pl.Float64))
    rows = []
    for (name,), part in kept.partition_by("architecture", as_dict=True).items():
        outcome = outcomes_of(part, COMBINATION)
        rows.append((name, *mean_share(outcome, coverage=coverage), len(part)))
    order = {name: i for i, name in enumerate(in_order({row[0] for row in rows}))}
    schema = {"architecture": pl.String, "success": pl.Float64, "low": pl.Float64}
    schema |= {"high": pl.Float64, "runs": pl.Int64}
    return pl.DataFrame(sorted(rows, key=lambda row: order[row[0]]), schema=schema, orient="row")


def outcomes_of(runs: pl.DataFrame, cells: Sequence[str], value: str = "solved") -> Floats:
    """Lay a column out, shape (cell, seed), NaN where there is no run."""
    import polars as pl

    placed = runs.select(
        pl.struct(cells).rank("dense").alias("cell") - 1, pl.col("seed").rank("dense") - 1, value
    )
    laid = np.full((runs.select(cells).unique().height, runs["seed"].n_unique()), np.nan)
    laid[placed["cell"].to_numpy(), placed["seed"].to_numpy()] = placed[value].to_numpy()
    return laid


def mean_share(outcome: Floats, *, coverage: float) -> tuple[float, float, float]:
    """Bound the mean success of several cells, shape (cell, seed), NaN where there is no run.

    Each cell weighs the same. The interval is the wider, to each side, of two: Student's over the
    seeds' means, as the cells of one seed depend on each other; and the one that adds the squares
    of the cells' distances to Wilson's bounds, which keeps its width where all seeds agree.
    """
    runs, solved = (~np.isnan(outcome)).sum(axis=1), np.nansum(outcome, axis=1)
    share = solved / runs
    low, high = wilson_interval(solved, runs, coverage=coverage)
    down, up = (math.hypot(*(share - end)) / len(share) for end in (low, high))
    half = student_half_width(np.nanmean(outcome, axis=0), coverage)
    if math.isinf(half):  # a single seed: Wilson's bounds know how little that is
        half = 0.0
    estimate = float(share.mean())
    return estimate, max(0.0, estimate - max(down, half)), min(1.0, estimate + max(up, half))


def binomial_at_most(solved: Counts, runs: Counts, p: float) -> Floats:
    """P(X ≤ solved) for X binomial; counts may be fractions, as effective ones are."""
    from scipy.special import betainc  # slow to import

    failed = np.asarray(runs) - solved
    return np.where(failed <= 0, 1.0, betainc(np.maximum(failed, 1e-9), solved + 1, 1 - p))


def binomial_at_least(solved: Counts, runs: Counts, p: float) -> Floats:
    """P(X ≥ solved) for X binomial."""
    return binomial_at_most(np.asarray(runs) - solved, runs, 1 - p)


STRICT = 5.0  # tests behind a bound on a share have this many times less than its level


def _least_share(cells: pl.DataFrame, level: float) -> float:
    """Bound from below the share of combinations that truly pass.

    With F that fail, at most t F of them are expected to pass a test at level t; the chance that
    t F / level or more do is at most the level. So F (1 − t / level) is at most the number that did
    not pass.
    """
    p = cells["p_pass"].to_numpy()
    if (p <= level).all():
        return 1.0  # one that fails would have to pass its own test
    return max(0.0, 1 - float((p > level / STRICT).mean()) / (1 - 1 / STRICT))


def _largest_share(cells: pl.DataFrame, level: float) -> float:
    """Bound it from above in the same way, by the combinations that were not found to fail."""
    open_still = (cells["p_fail"].to_numpy() > level / STRICT) | ~cells["tried"].to_numpy()
    return min(1.0, float(open_still.mean()) / (1 - 1 / STRICT))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


SHORT = {"training.batch_size": "B = {}", "training.loss": "{}"}


def _short(column: str, value: object) -> str:
    return SHORT.get(column, "{}").format(value)


@dataclass(frozen=True, eq=False)  # arrays have no one answer to ==
class Scaling:
    """How the time to converge grows with n, for one architecture and one k [HP Fig. B.5].

    Attributes
    ----------
    architecture, k
        Which.
    alpha : float
        The smallest α with t(n) ≤ c (n − n0)^α; infinite where some t(n) is beyond the budget.
    c : float
        t(n0 + 1), the time at the smallest n.
    draws : array
        α with seeds drawn anew, infinite where a time lies beyond the budget.
    least : array
        The same with the budget in place of what lies beyond it: α is at least this.
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
        """Give the lower bound of α, one-sided."""
        bound = float(np.quantile(self.least, level, method="inverted_cdf"))
        return min(bound, self.alpha)

    def high(self, level: float) -> float:
        """Give the upper bound of α, one-sided."""
        bound = float(np.quantile(self.draws, 1 - level, method="inverted_cdf"))
        return max(bound, self.alpha)


def scalings(
    table: pl.DataFrame,
    *,
    n0: int = 9,
    batch_size: int = 32,
    loss: str = "hinge",
    init: str = "xavier",
) -> list[Scaling]:
    r"""Fit :math:`t_c \le c (n - n_0)^\alpha` for each architecture and k [HP App. B.4.2].

    :math:`t_c(n)` is the 10th percentile of the time to convergence over the seeds, at the learning
    rate where it is least: the first time by which a tenth of the runs have converged. The smallest
    exponent is :math:`\alpha = \max_n \log(t_c(n) / c) / \log(n - n_0)` over :math:`n > n_0 + 1`,
    with :math:`c = t_c(n_0 + 1)`. Seeds are drawn anew together in all n and rates, and the best
    rates chosen anew with them.
    """
    import polars as pl

    runs = with_architectures(table).filter(
        (pl.col("training.batch_size") == batch_size)
        & (pl.col("training.loss") == loss)
        & (pl.col("init") == init)
        & (pl.col("task.n") > n0)
    )
    found = []
    parts = runs.partition_by("architecture", "task.k", as_dict=True)
    for name in in_order(set(runs["architecture"])):
        for k in sorted({key[1] for key in parts if key[0] == name}):
            part = parts[name, k].sort("task.n", RATE, "seed")
            if part["task.n"].min() == n0 + 1 and part["task.n"].n_unique() > 1:
                found.append(_scaling(name, k, part, n0))
    return found


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
    """Give the α that the number of candidates C(n, k) has by the same fit.

    For n = 10, 20, 30 it is 0.75, 1.16 and 1.60 at k = 2, 3 and 4: n − 9 grows from 1 to 21 where n
    only trebles.
    """
    first = math.comb(n0 + 1, k)
    return max(math.log(math.comb(n, k) / first) / math.log(n - n0) for n in sizes if n > n0 + 1)


@dataclass(frozen=True)
class ScalingTable:
    """The time to converge grows with n by a small exponent: α < `small` · k [HP §3, Fig. B.5].

    For each architecture and k the α of `scalings`, at one batch size, loss and initialisation. The
    source calls α small and names no bound; here t_c ≤ c (n − n0)^α with α < k is asked for, which
    gives t_c ≤ c n^k, the growth of a search through all candidates. That is lenient: between the
    first look and a budget of 10^5 steps there is hardly room for α above 3; so the remark tells
    how many entries stay below the α that the number of candidates C(n, k) has by the same fit.

    The estimate is the largest α / k, with an interval by drawing seeds anew. Supported if every α
    is below, bounds included (each at the whole level: were one above, it would have to slip
    through its own bound), all `architectures` were run, and no entry is missing because less than
    a tenth of the runs converge for some n. Contradicted if some α lies above, bounds included
    (the level split over the entries); a time beyond the budget counts as the budget there.
    Entries with less than `fewest` seeds decide nothing: a bootstrap of so few knows the 10th
    percentile as the least time only, and misses four times as often as it should.
    """

    n0: int = 9
    batch_size: int = 32
    loss: str = "hinge"
    init: str = "xavier"
    architectures: tuple[str, ...] = ROBUST
    small: float = 1.0
    fewest: int = 15

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        import polars as pl

        quantity = f"largest α / k in t ≤ c (n − {self.n0})^α"
        at = f"B = {self.batch_size}, {self.loss}, {self.init}"
        keys = ("architecture", "task.n", "task.k", "training.batch_size", "training.loss", "init")
        runs = with_architectures(table).filter(
            pl.col("architecture").is_in(self.architectures)
            & (pl.col("training.batch_size") == self.batch_size)
            & (pl.col("training.loss") == self.loss)
            & (pl.col("init") == self.init)
        )
        if clash := mixed(runs, (*keys, RATE)):
            return nothing(quantity, clash)
        entries = scalings(
            runs, n0=self.n0, batch_size=self.batch_size, loss=self.loss, init=self.init
        )
        if not entries:
            return nothing(
                quantity, f"no architecture has n = {self.n0 + 1} and a larger n at {at}"
            )
        absent = set(self.architectures) - {entry.architecture for entry in entries}
        few = [entry for entry in entries if entry.seeds < self.fewest]
        missing = [entry for entry in entries if not math.isfinite(entry.alpha)]
        split = level / len(entries)

        def above(entry: Scaling) -> bool:
            return entry.seeds >= self.fewest and entry.low(split) > self.small * entry.k

        judgement = Judgement.UNDECIDED
        if any(above(entry) for entry in entries):
            judgement = Judgement.CONTRADICTED
        elif (
            not few
            and not absent
            and all(entry.high(level) < self.small * entry.k for entry in entries)
        ):
            judgement = Judgement.SUPPORTED
        known = [entry for entry in entries if math.isfinite(entry.alpha)] or entries
        # The one that decides: significantly above, or else the largest.
        worst = max(known, key=lambda entry: (above(entry), entry.alpha / entry.k))
        sizes = sorted(set(runs["task.n"]))
        limits = {k: exhaustive_alpha(k, sizes, self.n0) for k in sorted({e.k for e in entries})}
        below = sum(entry.alpha < limits[entry.k] for entry in entries)
        parts = [
            f"{worst.architecture}, k = {worst.k}: c = {worst.c:g}, α = {worst.alpha:.2f}",
            f"{below} of {len(entries)} α below exhaustive search's own "
            f"({', '.join(f'{limit:.2f} at k = {k}' for k, limit in limits.items())})",
            f"at {at}",
        ]
        if missing:
            named = ", ".join(f"{e.architecture} at k = {e.k}" for e in missing)
            parts.append(f"less than a tenth converge for some n: {named}")
        if few:
            parts.append(f"{len(few)} entries have less than {self.fewest} seeds")
        if absent:
            parts.append(f"not run: {_listed(in_order(absent))}")
        total = sum(entry.runs for entry in entries)
        ends = (_finite(worst.low(split) / worst.k), _finite(worst.high(level) / worst.k))
        estimate = _finite(worst.alpha / worst.k)
        return Finding(judgement, estimate, *ends, quantity, total, "; ".join(parts))


def _finite(number: float) -> float:
    return number if math.isfinite(number) else math.nan
