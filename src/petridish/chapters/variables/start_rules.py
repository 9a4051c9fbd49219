"""What starts on one data set have in common: the share that differs, and how far it scatters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from petridish.rules.claims import Finding, Reads, by_interval, nothing
from petridish.rules.curve_measures import LeastOf
from petridish.statistics.intervals import wilson_interval
from petridish.sweeps.arms import by_arm

if TYPE_CHECKING:
    import polars as pl

ERROR = "curve.test_error"
DRAWS = 4_000


def least_errors(table: pl.DataFrame, *arms: str) -> pl.DataFrame:
    """Return one row per data set of some arms, with the least held-out error of each start."""
    import polars as pl

    table = by_arm(table, *arms)
    return (
        table.with_columns(least=pl.Series(LeastOf("test_error").of(table)))
        .filter(pl.col("least").is_not_nan())
        .group_by("arm", "data.m", "seed")
        .agg(least=pl.col("least"))
        .sort("arm", "data.m", "seed")
    )


@dataclass(frozen=True)
class MixedStarts(Reads):
    """Of the data sets of an arm, the share on which some starts succeed and others fail.

    Success is an accuracy above `success` at some evaluation. Wilson's interval.
    """

    arm: str
    above: float = 0.5
    success: float = 0.99

    columns: ClassVar[tuple[str, ...]] = (ERROR, "data.m", "seed", "restart")
    over: ClassVar[tuple[str, ...]] = ("restart",)

    @property
    def arms(self) -> tuple[str, ...]:
        """The arm that it names."""
        return (self.arm,)

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"share of data sets with starts that succeed and starts that fail ({self.arm})"
        each = least_errors(table, self.arm)
        wins = [np.array(errors) < 1 - self.success for errors in each["least"] if len(errors) > 1]
        if not wins:
            return nothing(quantity, "needs several starts on one data set")
        mixed = sum(bool(won.any() and not won.all()) for won in wins)
        low, high = wilson_interval(np.array([mixed]), np.array([len(wins)]), coverage=1 - level)
        starts = np.concatenate(wins).mean()
        return Finding(
            by_interval(float(low[0]), float(high[0]), self.above),
            mixed / len(wins),
            float(low[0]),
            float(high[0]),
            quantity,
            len(wins),
            f"{starts:.0%} of single starts succeed",
        )


@dataclass(frozen=True)
class ScattersMore(Reads):
    """How much more the best accuracies of data sets scatter in one arm than in another.

    The difference of standard deviations of each data set's least held-out error, with a bootstrap
    over data sets.
    """

    more: str
    less: str

    columns: ClassVar[tuple[str, ...]] = (ERROR, "data.m", "seed", "restart")
    over: ClassVar[tuple[str, ...]] = ("restart",)

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that it names."""
        return (self.more, self.less)

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"standard deviation of the best error, {self.more} − {self.less}"
        each = least_errors(table, *self.arms)
        found = []
        rng = np.random.default_rng(0)
        for arm in self.arms:
            best = np.array([min(errors) for errors in each.filter(each["arm"] == arm)["least"]])
            if len(best) < 3:
                return nothing(quantity, f"needs three data sets of the arm {arm}")
            drawn = best[rng.integers(len(best), size=(DRAWS, len(best)))].std(axis=1, ddof=1)
            found.append((best.std(ddof=1), drawn, len(best)))
        (top, tops, n), (bottom, bottoms, other) = found
        low, high = np.quantile(tops - bottoms, [level / 2, 1 - level / 2])
        return Finding(
            by_interval(float(low), float(high), 0.0),
            float(top - bottom),
            float(low),
            float(high),
            quantity,
            n + other,
            f"{top:.3g} against {bottom:.3g}",
        )
