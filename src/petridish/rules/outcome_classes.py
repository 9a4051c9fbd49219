"""What became of a run, by two thresholds: of its training error, and of its test error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.errors import UserError
from petridish.rules.claims import Finding, Judgement, Reads, nothing
from petridish.rules.columns import missing_curves
from petridish.rules.measures import Floats, Measure
from petridish.statistics.intervals import RESAMPLES, wilson_interval
from petridish.statistics.known import Known, quotient, within_budget

if TYPE_CHECKING:
    import polars as pl

DELAY = 2.0  # a run groks if it is solved this many times later than it has fitted its sample
CLASSES = ("solved at once", "grokked", "memorised only", "never fitted")
KINDS = (*CLASSES, "diverged", "unknown: stopped before")
"""What a map of classes tells apart: a run that diverged is said to have, whatever it had fitted,
and one that was stopped as solved says nothing of a lower error."""


def with_classes(table: pl.DataFrame) -> pl.DataFrame:
    """Add the column `class`.

    A run is *fitted* at the first evaluation with a training error of at most
    `evaluation.fitted_error`, *solved* at the first with a test error of at most
    `training.target_error`. It is «solved at once», or «grokked» if it was still unsolved at an
    evaluation at least `DELAY` times later than the one that found it fitted; if it is not solved,
    «memorised only» or, where it never fitted its sample, «never fitted». Online there is no sample
    to fit.
    """
    import polars as pl

    solved = pl.col("outcome") == "SOLVED"
    unsolved_until = pl.col("solved_at") - pl.col("evaluation.every")
    late = unsolved_until >= DELAY * pl.col("fitted_at").clip(1)
    return table.with_columns(
        pl.when(solved & late.fill_null(value=False))
        .then(pl.lit(CLASSES[1]))
        .when(solved)
        .then(pl.lit(CLASSES[0]))
        .when(pl.col("fitted_at").is_not_null())
        .then(pl.lit(CLASSES[2]))
        .otherwise(pl.lit(CLASSES[3]))
        .alias("class")
    )


def class_counts(
    table: pl.DataFrame,
    by: Sequence[str],
    *,
    fitted: float | None = None,
    solved: float | None = None,
) -> pl.DataFrame:
    """Count the classes of the runs by some fields: those of `with_classes`, and two more.

    A run that diverged unsolved is «diverged». With `fitted` and `solved`, other thresholds of the
    training and the test error, runs are classified anew from their curves, which the table must
    have; one that was stopped as solved before it reached a lower one is «unknown: stopped before».
    """
    import polars as pl

    from petridish.sweeps import by_arm

    runs = by_arm(table) if "arms" in table.columns else table
    if fitted is None and solved is None:
        diverged = pl.when(pl.col("outcome") == "DIVERGED").then(pl.lit(KINDS[4]))
        runs = with_classes(runs).with_columns(diverged.otherwise(pl.col("class")).alias("class"))
    elif fitted is None or solved is None:
        raise UserError("One threshold was given. Give both, such as fitted=0.01, solved=0.1.")
    elif missing := missing_curves(runs):
        raise UserError(f"{missing[0].upper()}{missing[1:]}.")
    else:
        names = ("curve.step", "curve.train_error", "curve.test_error", "evaluation.every")
        ends = ("outcome", "steps", "training.steps")
        classes = [_class(row, fitted, solved) for row in runs.select(*names, *ends).iter_rows()]
        runs = runs.with_columns(pl.Series("class", classes, dtype=pl.String))
    counts = [(pl.col("class") == name).sum().alias(name) for name in KINDS]
    return (
        runs.group_by(list(by) or [pl.lit("all").alias("runs")])
        .agg(pl.len().alias("n"), *counts)
        .sort(list(by))
    )


def _class(row: tuple[Any, ...], fitted: float, solved: float) -> str | None:
    """Return the class of a run by two thresholds, from its curves; None without any."""
    step, train, test, every, outcome, steps, budget = row
    if not step or not train or not test:
        return None
    first = [
        next((s for s, error in zip(step, curve, strict=True) if error <= most), None)
        for curve, most in ((train, fitted), (test, solved))
    ]
    if first[1] is not None:
        late = first[0] is not None and first[1] - every >= DELAY * max(first[0], 1)
        return CLASSES[1] if late else CLASSES[0]
    if outcome == "DIVERGED":
        return KINDS[4]
    if outcome == "SOLVED" and steps < budget:
        return KINDS[5]
    return CLASSES[3] if first[0] is None else CLASSES[2]


@dataclass(frozen=True)
class GrokkingDelay(Measure):
    """The step at which a run was solved over that at which it had fitted its sample."""

    columns = ("solved_at", "fitted_at", "training.steps")
    label = "grokking delay, solved over fitted"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the ratios; NaN online, where there is no sample to fit."""
        solved, fitted = (
            table[n].cast(float).clip(1).fill_null(np.inf).to_numpy()
            for n in ("solved_at", "fitted_at")
        )
        with np.errstate(invalid="ignore"):
            found: Floats = solved / fitted
        return found

    def known(self, table: pl.DataFrame) -> Known:
        """Return what is known of the ratios; nothing of a run that never fitted its sample."""
        budget = table["training.steps"].to_numpy()
        solved = table["solved_at"].cast(float).clip(1).fill_null(np.inf).to_numpy()
        fitted = table["fitted_at"].cast(float).clip(1).fill_null(np.nan).to_numpy()
        return quotient(within_budget(solved, budget), Known(fitted, fitted))


@dataclass(frozen=True)
class Groks(Reads):
    """Some runs fit their sample long before their test error leaves chance, and then solve it.

    A run counts if its training error was at most `fitted` while its test error was still at least
    `chance`, and it was solved in the end. Its delay is t_test / t_train: the last evaluation at
    which the test error was still at chance, over the evaluation that found the sample fitted, so
    that the spacing of evaluations makes no delay. The estimate is the median delay, with an
    interval by drawing seeds anew. Supported if the interval lies at `delay` or above, from at
    least `fewest` seeds; contradicted if runs were solved from a sample and none counts, so that
    their share is below `rare`.
    """

    columns = ("curve.step", "curve.train_error", "curve.test_error")

    fitted: float = 0.01
    chance: float = 0.45
    delay: float = DELAY
    rare: float = 0.05
    fewest: int = 5

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs that kept their curves."""
        quantity = "delay t_test / t_train of runs that grok"
        if missing := missing_curves(table):
            return nothing(quantity, missing)
        delays: dict[int, list[float]] = {}  # by seed: runs of one seed share their data
        solved = 0
        columns = ["seed", "outcome", "curve.step", "curve.train_error", "curve.test_error"]
        for seed, outcome, step, train, test in table.select(columns).iter_rows():
            if outcome != "SOLVED" or not step or np.isnan(train[-1]):
                continue
            solved += 1
            if (delay := self._delay(step, train, test)) is not None:
                delays.setdefault(seed, []).append(delay)
        if not solved:
            return nothing(quantity, "no run was solved from a sample")
        every = sorted(delay for some in delays.values() for delay in some)
        share = f"{len(every)} of {solved} solved runs were at chance when they had fitted"
        if not every:
            high = float(wilson_interval(0, solved, coverage=1 - level)[1])
            judgement = Judgement.CONTRADICTED if high < self.rare else Judgement.UNDECIDED
            nan = math.nan
            return Finding(judgement, nan, nan, nan, quantity, solved, share)
        low, high = _resampled_median([delays[seed] for seed in sorted(delays)], level)
        estimate = every[(len(every) - 1) // 2]
        enough = low >= self.delay and len(delays) >= self.fewest
        judgement = Judgement.SUPPORTED if enough else Judgement.UNDECIDED
        remark = f"{share}; the longest delay is {every[-1]:.0f}"
        low, high = min(low, estimate), max(high, estimate)
        return Finding(judgement, estimate, low, high, quantity, solved, remark)

    def _delay(self, step: list[int], train: list[float], test: list[float]) -> float | None:
        fit = next((i for i, error in enumerate(train) if error <= self.fitted), None)
        if fit is None or test[fit] < self.chance:
            return None
        left = next((i for i, error in enumerate(test) if i > fit and error < self.chance), None)
        return None if left is None else step[left - 1] / max(step[fit], 1)


def _resampled_median(groups: list[list[float]], level: float) -> tuple[float, float]:
    """Bound a median by drawing groups anew."""
    rng = np.random.default_rng(0)  # the same table gives the same verdict
    medians = []
    for _ in range(RESAMPLES):
        drawn = np.concatenate([groups[i] for i in rng.integers(len(groups), size=len(groups))])
        medians.append(np.sort(drawn)[(len(drawn) - 1) // 2])
    low, high = np.quantile(medians, [level / 2, 1 - level / 2])
    return float(low), float(high)
