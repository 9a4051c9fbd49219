"""The probability that one sample is below another; intervals for means of shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from petridish.statistics.intervals import student_half_width, wilson_interval

Floats = NDArray[np.float64]


def chance_of_smaller(first: Floats, second: Floats) -> float:
    """Return the share of pairs in which `first` is smaller, ties counting half."""
    a, b = first[:, None], second[None, :]
    return float(np.mean((a < b) + 0.5 * (a == b)))


def share_distances(shares: Floats, level: float) -> tuple[float, float]:
    """Return the distances of a mean share to its bounds: Student's, or Wilson's if all agree."""
    if shares.std() > 0:
        half = student_half_width(shares, 1 - level)
        return half, half
    low, high = wilson_interval(shares.sum(), np.array(len(shares)), coverage=1 - level)
    return float(shares.mean() - low), float(high - shares.mean())
