"""PF's word for sparse starts on tables: they «sometimes» improve performance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.tables.error_arrays import Floats, even_mlps
from petridish.chapters.tables.gains import DENSE, NO_PAIR, SPARSE, sparse_gains
from petridish.rules.claims import Finding, Judgement, nothing, remarks
from petridish.statistics.paired import paired_test, significant

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Sometimes:
    """In how many of many comparisons there is a gain, for certain and at most.

    Attributes
    ----------
    better, excluded : array of bool, shape (comparison,)
        Where the gain is significantly above 0, and where it is significantly below `least`.
    share : float
        Of the comparisons with a gain in the mean.
    least : float
        The smallest gain of interest, in percentage points.
    """

    better: NDArray[np.bool_]
    excluded: NDArray[np.bool_]
    share: float
    least: float

    @classmethod
    def of(
        cls, gains: Floats, level: float, least: float, *, correlation: float = 0.0
    ) -> Sometimes:
        """Test gains as fractions, shape (comparison, trial), at half of the level per side."""
        better, excluded = (
            significant(paired_test(values, correlation=correlation), level / 2)
            for values in (gains, least / 100 - gains)
        )
        return cls(better, excluded, float((np.nanmean(gains, axis=1) > 0).mean()), least)

    @property
    def low(self) -> float:
        """The share with a gain for certain."""
        return float(self.better.mean())

    @property
    def high(self) -> float:
        """The share in which the smallest gain of interest is not excluded, or there is one."""
        return float((self.better | ~self.excluded).mean())

    @property
    def judgement(self) -> Judgement:
        """Supported by one gain; contradicted where it is excluded everywhere."""
        if self.low > 0:
            return Judgement.SUPPORTED
        return Judgement.CONTRADICTED if self.high == 0 else Judgement.UNDECIDED

    @property
    def blind(self) -> str:
        """What is not seen, where nothing is decided."""
        if self.judgement is not Judgement.UNDECIDED:
            return ""
        return (
            f"a gain of {self.least:g} point{'s' * (self.least != 1)} is excluded in "
            f"{int(self.excluded.sum())} of {len(self.excluded)}"
        )


@dataclass(frozen=True)
class SparseSometimesHelps:
    """At some task and m the widest MLP errs less with a sparse start [PF §4.2 (3T)].

    The estimate is the share of comparisons (task, m and training) in which the mean error is
    lower, for the widest net of one width throughout that was run with both starts. The interval
    reaches from the share in which it is significantly lower to that in which a gain of `least`
    percentage points is not excluded (paired t tests over trials, Holm over all, half of the level
    for each side). Supported if it lies above 0; contradicted if it is 0: the gain is smaller
    everywhere.
    """

    least: float = 1.0

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"share of comparisons in which {SPARSE} errs less than {DENSE} at the widest"
        gains = sparse_gains(even_mlps(table))
        if gains is None:
            return nothing(quantity, NO_PAIR)
        found = Sometimes.of(gains.values, level, self.least)
        worse = significant(paired_test(-gains.values), level / 2)
        said = (
            f"of {len(worse)} comparisons significantly better in {int(found.better.sum())}, worse "
            f"in {int(worse.sum())}; points: mean {100 * np.nanmean(gains.values):+.2f}"
        ).replace("-", "−")
        remark = remarks(said, found.blind)
        ends = found.share, found.low, found.high
        return Finding(found.judgement, *ends, quantity, gains.runs, remark)
