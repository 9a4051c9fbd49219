"""How the sample that suffices grows with the number of variables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.variables.sample_thresholds import SUCCESS, box_cox, thresholds_of
from petridish.chapters.variables.trials import TRIAL
from petridish.rules.claims import Finding, Judgement, Reads, by_interval, nothing
from petridish.statistics.thresholds import exponents, outer_quantile

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _OfThresholds(Reads):
    """A rule about m(T), the least sample with which a share of the trials succeeds.

    A trial is a seed with its restarts. `thresholds_of` says how m(T) and its posterior are found;
    a threshold below the first m that was tried, or beyond the last, is only known to lie there.
    """

    success: float = SUCCESS

    columns: ClassVar[tuple[str, ...]] = ("outcome", "drawn.attempts", *TRIAL, "restart")
    over: ClassVar[tuple[str, ...]] = ("restart",)  # one that succeeds stands for its seed


@dataclass(frozen=True)
class ThresholdExponent(_OfThresholds):
    """γ in m(T) ∝ T^γ: the slope of a least-squares line through the logarithms.

    An interval is as wide as thresholds outside of what was tried allow. Supported if it lies below
    `below`, contradicted if above.
    """

    below: float = 0.3

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = (
            f"exponent of T in the least m with which {100 * self.success:g} % of trials succeed"
        )
        if table["task.n"].n_unique() < 2:
            return nothing(quantity, "needs two values of task.n")
        known = thresholds_of(table, self.success)
        low_end, high_end = exponents(known.lengths, known.drawn)
        best_low, best_high = exponents(known.lengths, known.found[..., None])
        low = min(outer_quantile(low_end, level / 2), float(best_low[0]))
        high = max(outer_quantile(high_end, 1 - level / 2), float(best_high[0]))
        estimate = float(best_low[0]) if best_low[0] == best_high[0] else math.nan
        remark = f"{known.text}; {known.trials} trials of {len(table)} runs"
        judgement = by_interval(-high, -low, -self.below)
        return Finding(judgement, estimate, low, high, quantity, known.trials, remark)


@dataclass(frozen=True)
class LinearInLog(_OfThresholds):
    """The Box–Cox exponent γ of m(T) = a + b (T^γ − 1)/γ, of which log T is γ = 0.

    Contradicted if the interval leaves out 0: linearity in log T is rejected. Supported if it has 0
    in it and ends below `below`, so that steeper laws are rejected. (That data prefer a logarithm
    to every power cannot come out: as γ → 0 powers become it.) Where trials leave open whether a
    threshold lies among the sizes that were tried, γ is open too.
    """

    below: float = 0.5

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = "γ of m(T) = a + b (T^γ − 1)/γ"
        if table["task.n"].n_unique() < 4:
            return nothing(quantity, "needs four values of task.n")
        known = thresholds_of(table, self.success)
        if not known.exact:
            return nothing(quantity, f"a threshold lies outside of the sizes tried: {known.text}")
        inside = (known.drawn[:, 0] == known.drawn[:, 1]).all(axis=0)
        each = np.full(len(inside), np.nan)
        each[inside] = box_cox(known.lengths, known.drawn[:, 0, inside])
        # All equal: as flat as it gets. A threshold outside of the sizes tried: any γ.
        least = np.where(np.isnan(each), -3, each)
        most = np.where(inside, least, 3)
        estimate = float(box_cox(known.lengths, known.found[:, :1])[0])
        low, high = outer_quantile(least, level / 2), outer_quantile(most, 1 - level / 2)
        rejected = low > 0 or high < 0
        judgement = Judgement.CONTRADICTED if rejected else Judgement.UNDECIDED
        if not rejected and high < self.below:
            judgement = Judgement.SUPPORTED
        remark = f"log T is {'rejected' if rejected else 'not rejected'}; searched from −3 to 3"
        return Finding(judgement, estimate, low, high, quantity, known.trials, remark)


@dataclass(frozen=True)
class ThresholdAt(_OfThresholds):
    """m(T) at one T, between two sizes."""

    length: int = 300
    between: tuple[float, float] = (56.0, 84.0)

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"least m at T = {self.length} with which {self.success:.0%} of trials succeed"
        own = table.filter(table["task.n"] == self.length)
        if not len(own):
            return nothing(quantity, f"no run has task.n = {self.length}")
        known = thresholds_of(own, self.success)
        low, high = known.interval(0, level)
        below, above = self.between
        inside = below <= low and high <= above
        outside = high < below or low > above
        judgement = (
            Judgement.SUPPORTED
            if inside
            else Judgement.CONTRADICTED
            if outside
            else Judgement.UNDECIDED
        )
        estimate = float(known.found[0, 1]) if known.exact else math.nan
        return Finding(judgement, estimate, low, high, quantity, known.trials, known.text)
