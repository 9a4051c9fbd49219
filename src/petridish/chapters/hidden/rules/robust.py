"""HP's robust space: which architectures converge, with which batch sizes, starts and losses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.architectures import ROBUST, in_order, with_architectures
from petridish.chapters.hidden.rules.table_rule import TableRule, decide, refuse_mixed
from petridish.errors import require
from petridish.rules.claims import Finding
from petridish.statistics.shares import (
    binomial_at_least,
    binomial_at_most,
    least_passing,
    mean_share,
    most_passing,
)

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
RATES = (0.001, 0.01, 0.1, 1.0)
RATE = "training.learning_rate"
OTHERS = ("task", "training.batch_size", "init", "training.loss")
COMBINATION = ("architecture", *OTHERS)


@dataclass(frozen=True)
class RobustSpace(TableRule):
    """Every combination converges in at least `share` of its runs, for some learning rate [HP §3].

    A combination is an architecture with a task, a batch size, an initialisation and a loss. The
    estimate is the share of combinations whose best η reaches `share`, as the paper counts. But
    the best of four was chosen on the runs that show it, and with few seeds one lucky run is 20 %:

    - A combination is *certain* if some η has a count that a probability below `share` gives too
      rarely (exact binomial test, Bonferroni over its η). Supported if all are certain, each at the
      whole level: were one to fail, it would have to pass its own test.
    - Contradicted if a group of combinations of one architecture converges too rarely even with
      the best η of each (`_failure`), or if the interval ends below 1 (`most_passing`). A
      combination in which a rate of `rates` was not tried cannot speak against the claim.

    The tests are for numbers of runs that were fixed beforehand.

    Attributes
    ----------
    share : float
        What every combination has to reach.
    architectures : tuple of str
        Which the claim is about; all must have been run.
    at_least : mapping
        Bounds on columns: {"training.batch_size": 16} for the paper's less robust settings.
    rates : tuple of float
        The learning rates that the claim allows.
    """

    share: float = 0.2
    architectures: tuple[str, ...] = ROBUST
    at_least: Mapping[str, float] = field(default_factory=dict)
    rates: tuple[float, ...] = RATES

    @property
    def quantity(self) -> str:
        """What the estimate measures, in words."""
        return f"share of combinations that reach {self.share:.0%} with their best η"

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        import polars as pl

        runs = with_architectures(table).filter(
            pl.col("architecture").is_in(self.architectures),
            pl.col(RATE).is_in(self.rates),
            *(pl.col(column) >= least for column, least in self.at_least.items()),
        )
        require(not runs.is_empty(), f"no run of {', '.join(self.architectures)}")
        refuse_mixed(runs, (*COMBINATION, RATE))
        cells = self._cells(runs)
        failure = self._failure(runs, cells.filter("tried"), level / 2)
        p_fail = np.where(cells["tried"], cells["p_fail"], 1.0)
        low, high = (
            least_passing(cells["p_pass"].to_numpy(), level),
            most_passing(p_fail, level / 2),
        )
        missing = [name for name in self.architectures if name not in set(cells["architecture"])]
        certain = (cells["p_pass"] <= level).all()
        judgement = decide(contradicted=failure or high < 1, supported=certain and not missing)
        estimate = float((cells["best"] >= self.share).mean())  # type: ignore[arg-type] # a number
        if failure:
            high = min(high, 1 - 1 / len(cells))
        low, high = min(low, estimate), max(high, estimate)
        remark = self._remark(cells, runs, level, failure, missing)
        return Finding(judgement, estimate, low, high, self.quantity, len(runs), remark)

    def _cells(self, runs: pl.DataFrame) -> pl.DataFrame:
        """Return each combination's best share, and the p-values of passing and of failing."""
        import polars as pl

        counts = runs.group_by(*COMBINATION, RATE).agg(
            runs=pl.len(), solved=(pl.col("outcome") == "SOLVED").sum()
        )
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
        """Name the group that speaks most clearly against the claim; nothing if none does.

        If all combinations of a group had an η with `share`, their best counts, chosen in
        hindsight, would add up to more. Groups pool over any of `OTHERS`, or over none; the level
        is split over the 16 ways of pooling, and in each over its groups. Runs at one seed share
        their start and data, so that a group's counts are divided by the design effect of its way
        of pooling [Kish 1965]: how much more the seeds' sums vary, over all architectures, than
        those of independent runs. Where no cell varies, seeds alone count.
        """
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
            p = binomial_at_most(solved / effects, made / effects, self.share)
            p *= len(groups) * len(ways)
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
        worst = cells.filter(architecture=name).sort("best", *OTHERS).row(0, named=True)
        at = ", ".join(_short(column, worst[column]) for column in OTHERS)
        certain = int((cells["p_pass"] <= level).sum())
        parts = [
            f"{int(cells.select(reach.sum()).item())} of {len(cells)} combinations by their point "
            f"estimate, {certain} for certain",
            f"fewest: {name}, {passing} of {total}, least at {at} ({worst['best']:.0%})",
        ]
        crossed = crossed_success(runs, coverage=1 - level)
        for _, success, low, high, _ in crossed.filter(architecture=name).iter_rows():
            parts.append(
                f"{name} succeeds in {success:.0%} [{low:.0%}, {high:.0%}] "
                "of its runs with the η that the other half of the seeds prefers"
            )
        if certain < len(cells):
            parts.append(self._blind(runs, level))
        if untried := len(cells) - int(cells["tried"].sum()):
            parts.append(f"{untried} without all of the {len(self.rates)} rates")
        if missing:
            parts.append(f"not run: {', '.join(missing)}")
        if "training.steps" in runs.columns:
            parts.append(f"at most {max(runs['training.steps']):,} steps")
        return "; ".join([failure, *parts] if failure else parts)

    def _blind(self, runs: pl.DataFrame, level: float) -> str:
        """Return how many solved runs make a combination certain, of the fewest runs."""
        made = int(runs.group_by(*COMBINATION, RATE).len()["len"].min())  # type: ignore[arg-type]
        rates = runs[RATE].n_unique()
        solved = np.arange(made + 1)
        enough = binomial_at_least(solved, np.full(made + 1, made), self.share) * rates <= level
        least = f"from {int(solved[enough][0])} on" if enough.any() else "with no number"
        return f"of {made} runs at each η a combination is certain {least}"


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
    """Compute each architecture's mean success at rates that its measured runs did not choose.

    One half of the seeds chooses the η of each combination, the other half measures it, and the
    other way round: what is measured is on average no more than the best η's success. Columns
    `architecture`, `success`, `low`, `high` (see `mean_share`) and `runs`. Architectures without
    two seeds are left out.
    """
    import polars as pl

    by = [*COMBINATION, RATE]
    halves = runs.with_columns(half=pl.col("seed").rank("dense") % 2)
    measured = pl.concat(
        halves.filter(half=1 - half).join(best_runs(halves.filter(half=half)), on=by, how="semi")
        for half in (0, 1)
    ).with_columns(solved=(pl.col("outcome") == "SOLVED").cast(pl.Float64))
    rows = []
    for name in in_order(set(measured["architecture"])):
        part = measured.filter(architecture=name)
        rows.append(
            (name, *mean_share(outcomes_of(part, COMBINATION), coverage=coverage), len(part))
        )
    return pl.DataFrame(rows, ["architecture", "success", "low", "high", "runs"], orient="row")


def outcomes_of(runs: pl.DataFrame, cells: Sequence[str], value: str = "solved") -> Floats:
    """Lay a column out, shape (cell, seed), NaN where there is no run."""
    import polars as pl

    placed = runs.select(
        pl.struct(cells).rank("dense").alias("cell") - 1, pl.col("seed").rank("dense") - 1, value
    )
    laid = np.full((runs.select(cells).unique().height, runs["seed"].n_unique()), np.nan)
    laid[placed["cell"].to_numpy(), placed["seed"].to_numpy()] = placed[value].to_numpy()
    return laid


def _short(column: str, value: object) -> str:
    return f"B = {value}" if column == "training.batch_size" else str(value)
