"""What became of a run, by two thresholds: of its training error, and of its test error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from petridish.analysis.claims import Finding, Judgement, nothing
from petridish.analysis.estimate import bootstrap_median, wilson_interval

if TYPE_CHECKING:
    import polars as pl

DELAY = 2.0  # a run groks if it is solved this many times later than it has fitted its sample
CLASSES = ("solved at once", "grokked", "memorised only", "never fitted")


def with_classes(table: pl.DataFrame) -> pl.DataFrame:
    """Add the column `class`.

    A run is *fitted* at the first look with a training error of at most `evaluation.fitted_error`,
    *solved* at the first with a test error of at most `training.target_error`. It is «solved at
    once», or «grokked» if solved `DELAY` times later than fitted or later still; if it is not
    solved, «memorised only» or, where it never fitted its sample, «never fitted». Online there is
    no sample to fit.
    """
    import polars as pl

    solved = pl.col("outcome") == "SOLVED"
    late = pl.col("solved_at") >= DELAY * pl.col("fitted_at").clip(1)
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


@dataclass(frozen=True)
class Groks:
    """Some runs fit their sample long before their test error leaves chance, and then solve it.

    A run counts if its training error was at most `fitted` while its test error was still at least
    `chance`, and it was solved in the end. The estimate is the median over these runs of
    t_test / t_train: the step at which the test error first fell below `chance`, over that at which
    the training error first was at most `fitted`. Supported if such runs exist with a ratio of at
    least `delay`, and the interval of the median (bootstrap) lies above it; contradicted if runs
    were solved from a sample and none counts, so that their share is below `rare`.
    """

    fitted: float = 0.01
    chance: float = 0.45
    delay: float = DELAY
    rare: float = 0.05

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs that kept their curves."""
        quantity = "delay t_test / t_train of runs that grok"
        if "curve.step" not in table.columns or table["curve.step"].is_null().all():
            return nothing(quantity, "these runs kept no curves")
        ratios, solved = [], 0
        columns = ["outcome", "curve.step", "curve.train_error", "curve.test_error"]
        for outcome, step, train, test in table.select(columns).iter_rows():
            if outcome != "SOLVED" or not step or np.isnan(train[-1]):
                continue
            solved += 1
            fit = next((i for i, error in enumerate(train) if error <= self.fitted), None)
            if fit is None or test[fit] < self.chance:
                continue
            left = next(i for i, error in enumerate(test) if i > fit and error < self.chance)
            ratios.append(step[left] / max(step[fit], 1))
        if not solved:
            return nothing(quantity, "no run was solved from a sample")
        share = f"{len(ratios)} of {solved} solved runs were at chance when they had fitted"
        if not ratios:
            high = float(wilson_interval(0, solved, level=1 - level)[1])
            judgement = Judgement.CONTRADICTED if high < self.rare else Judgement.UNDECIDED
            return Finding(judgement, 1.0, 1.0, 1.0, quantity, solved, share)
        rng = np.random.default_rng(0)
        low, high = bootstrap_median(ratios, level=1 - level, rng=rng)
        estimate = float(np.sort(ratios)[(len(ratios) - 1) // 2])
        enough = low >= self.delay and len(ratios) >= 2
        judgement = Judgement.SUPPORTED if enough else Judgement.UNDECIDED
        remark = f"{share}; the longest delay is {max(ratios):.0f}"
        return Finding(judgement, estimate, low, high, quantity, solved, remark)
