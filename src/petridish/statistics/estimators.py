"""Estimators: one number with its interval from the values of runs, of which some are censored.

Each takes what is known of the values, shape (side, seed), NaN where there is none, and a coverage.
Seeds are the unit: the sides of one seed share their data, and seeds are drawn anew together.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.statistics.intervals import (
    RESAMPLES,
    lower_median,
    median_interval,
    student_half_width,
)
from petridish.statistics.known import Known, quotient

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A number with its interval; `missing` says what the interval lacks to say anything."""

    value: float
    low: float
    high: float
    missing: str = ""

    @property
    def text(self) -> str:
        """The number with its interval, as far as there are any."""
        if math.isnan(self.value):
            return "–"
        if math.isnan(self.low):
            return f"{self.value:.3g}"
        if self.low in (-math.inf, 0.0) and self.high == math.inf:  # 0 of a ratio
            return f"{self.value:.3g}, no interval yet"
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


NOTHING = Estimate(math.nan, math.nan, math.nan, "there are no values")


class Estimator(ABC):
    """How one number is estimated from the values of runs."""

    sides: ClassVar[int]
    """Samples that it compares."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What is estimated, in words."""

    @abstractmethod
    def estimate(self, values: Known, coverage: float) -> Estimate:
        """Estimate from values of shape (side, seed)."""


class _OfOneSample(Estimator):
    """An estimator of one sample per group, given the values that are there."""

    sides: ClassVar[int] = 1

    def estimate(self, values: Known, coverage: float) -> Estimate:
        """Estimate from values of shape (1, seed)."""
        sample = values[0][values[0].there]
        return self.of(sample, coverage) if len(sample.low) else NOTHING

    @abstractmethod
    def of(self, sample: Known, coverage: float) -> Estimate:
        """Estimate from at least one value, shape (seed,)."""


@dataclass(frozen=True)
class Share(_OfOneSample):
    """The probability of a 1 among values that are 0 or 1.

    The interval is exact [Clopper & Pearson 1934]: it keeps its coverage however few the seeds are.
    A value that may be either counts as 0 in the lower end and as 1 in the higher.
    """

    label: ClassVar[str] = "share"

    def of(self, sample: Known, coverage: float) -> Estimate:
        """Estimate from at least one value."""
        from scipy.stats import binomtest

        n = len(sample.low)
        for value in (*sample.low, *sample.high):
            if value not in (0, 1):
                raise UserError(
                    f"Share: one of the values is {value:g}, and a share counts values of 0 and 1. "
                    "Give Median() or Mean(), or another measure."
                )
        least, most = int(sample.low.sum()), int(sample.high.sum())
        low, high = (
            binomtest(count, n).proportion_ci(coverage, method="exact") for count in (least, most)
        )
        return Estimate(most / n, float(low.low), float(high.high))


@dataclass(frozen=True)
class Median(_OfOneSample):
    """The median, with an interval between two order statistics, whatever the distribution.

    The lower end is an order statistic of the lower ends of what is known, the higher end one of
    the higher ends, so that the coverage holds however many values are censored, and by what. The
    estimate is the lower median (`lower_median`) of the higher ends: infinite where more than half
    of the times lie beyond their budget.
    """

    label: ClassVar[str] = "median"

    def of(self, sample: Known, coverage: float) -> Estimate:
        """Estimate from at least one value."""
        n = len(sample.low)
        low, _ = median_interval(sample.low, coverage)
        _, high = median_interval(sample.high, coverage)
        return Estimate(lower_median(sample.high.tolist()), low, high, _too_few(n, coverage))


def fewest_for_median(coverage: float) -> int:
    """Return how many values a median's interval needs to be finite: 6 at a coverage of 95 %."""
    return math.ceil(1 - math.log2(1 - coverage) - 1e-9)


def _too_few(n: int, coverage: float) -> str:
    fewest = fewest_for_median(coverage)
    if n >= fewest:
        return ""
    return f"needs {fewest} seeds for an interval of {coverage:.4g} coverage, and has {n}"


@dataclass(frozen=True)
class Mean(_OfOneSample):
    """The mean, with Student's interval.

    There is none where a value is infinite or censored, and none where all values are equal: a few
    equal outcomes do not say that others would be the same.
    """

    label: ClassVar[str] = "mean"

    def of(self, sample: Known, coverage: float) -> Estimate:
        """Estimate from at least one value."""
        n = len(sample.low)
        if unknown := int((~sample.exact).sum()):
            return Estimate(
                math.nan,
                math.nan,
                math.nan,
                f"{unknown} of {n} values are not known or infinite, of which there is no mean: "
                "Median() takes them",
            )
        middle, half = float(sample.low.mean()), student_half_width(sample.low, coverage)
        if n < 2:
            return Estimate(middle, middle - half, middle + half, "needs 2 seeds, and has 1")
        if np.ptp(sample.low) == 0:
            return Estimate(
                middle,
                -math.inf,
                math.inf,
                f"the {n} values are equal, and Student's interval needs some that differ: "
                "Median() takes them, of zeros and ones Share()",
            )
        return Estimate(middle, middle - half, middle + half)


@dataclass(frozen=True)
class RatioOfMedians(Estimator):
    """The median of one side over that of the other, by a bootstrap over seeds.

    Seeds that both sides have are drawn together, the others on their side. A resample whose median
    lies beyond the budget has a ratio known to lie between two ends, of which the interval takes
    the outer ones: an end may be 0 or infinite, and is never NaN. Percentile intervals of a few
    values are too short; the side with less seeds needs as many as a median's own interval.
    """

    sides: ClassVar[int] = 2
    label: ClassVar[str] = "ratio of medians"

    def estimate(self, values: Known, coverage: float) -> Estimate:
        """Estimate from values of shape (2, seed)."""
        there = values.there
        fewest = int(there.sum(axis=1).min())
        if not fewest:
            return NOTHING
        medians = _lower_medians(values[:, None, :])  # (side, 1)
        value = float(quotient(medians[0], medians[1]).high[0])
        if missing := _too_few(fewest, coverage):
            return Estimate(value, 0.0, math.inf, missing)
        rng = np.random.default_rng(0)  # the same values give the same interval
        parts = [np.flatnonzero(there[0] & there[1])]
        parts += [np.flatnonzero(there[side] & ~there[1 - side]) for side in (0, 1)]
        places = np.concatenate(
            [
                part[rng.integers(len(part), size=(RESAMPLES, len(part)))]
                for part in parts
                if len(part)
            ],
            axis=1,
        )
        drawn = _lower_medians(values[:, places])  # (side, resample)
        ratios = quotient(drawn[0], drawn[1])
        tail = (1 - coverage) / 2
        low = float(np.quantile(ratios.low, tail, method="inverted_cdf"))
        high = float(np.quantile(ratios.high, 1 - tail, method="inverted_cdf"))
        return Estimate(value, min(low, value), max(high, value))


def _lower_medians(values: Known) -> Known:
    """Return the lower median over the last axis of those that are there."""
    count = values.there.sum(axis=-1, keepdims=True)

    def middle(ends: Floats) -> Floats:
        ordered = np.sort(ends, axis=-1)  # NaN comes last
        found: Floats = np.take_along_axis(ordered, np.maximum(count - 1, 0) // 2, axis=-1)[..., 0]
        return found

    return Known(middle(values.low), middle(values.high))
