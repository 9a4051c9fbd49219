"""Logarithms of times that are known to lie between two evaluations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ROOT_2PI = math.log(2 * math.pi) / 2


@dataclass(frozen=True)
class LogTimes:
    """Logarithms of times, each known to lie between two values.

    Attributes
    ----------
    low, high : array, shape (group, run)
        A run first found solved at an evaluation was solved after the evaluation before it; one
        that is not solved has `high` infinite. Where a group has fewer runs than others, −∞ and ∞.
    """

    low: Floats
    high: Floats

    @cached_property
    def runs(self) -> NDArray[np.int64]:
        """Runs of each group."""
        made: NDArray[np.int64] = (np.isfinite(self.low) | np.isfinite(self.high)).sum(axis=1)
        return made

    @cached_property
    def unsolved(self) -> int:
        """Runs whose time is only known to lie beyond their budget."""
        return int((np.isfinite(self.low) & np.isinf(self.high)).sum())

    @cached_property
    def middle(self) -> Floats:
        """A rough value for each: the middle, or the end that is known; NaN where no run was."""
        ends = np.stack([self.low, self.high])
        known = np.isfinite(ends)
        none = ~known.any(axis=0)
        total = np.where(known, ends, 0.0).sum(axis=0)
        rough: Floats = np.where(none, np.nan, total / np.maximum(known.sum(axis=0), 1))
        return rough


def interval_terms(
    low: Floats, high: Floats, eta: Floats, within: float
) -> tuple[Floats, Floats, Floats, Floats]:
    r"""Return log P(low < η + e ≤ high), slope and curvature in η, and the slope in log σ_e.

    With l, u the ends in units of σ_e, φ the normal density, P the probability, :math:`A = (φ(u) -
    φ(l)) / P` and :math:`B = (u φ(u) - l φ(l)) / P`: the slope in η is :math:`-A / σ_e`, minus the
    second derivative :math:`(B + A^2) / σ_e^2`, and the slope in log σ_e is −B.
    """
    from scipy.special import log_ndtr  # slow to import

    lower, upper = (low - eta) / within, (high - eta) / within
    swap = lower > 0  # the far tail on the left, where the logarithm of Φ is exact
    near = log_ndtr(np.where(swap, -lower, upper))
    far = log_ndtr(np.where(swap, -upper, lower))
    log_p = near + np.log(-np.expm1(np.minimum(far - near, -1e-300)))
    at_low, at_high = (np.exp(-(end**2) / 2 - ROOT_2PI - log_p) for end in (lower, upper))
    a = at_high - at_low
    b = np.where(np.isinf(upper), 0, upper) * at_high - np.where(np.isinf(lower), 0, lower) * at_low
    curvature = np.clip(b + a**2, 0.0, 1.0)  # one minus a variance that truncation made smaller
    return log_p, -a / within, curvature / within**2, -b
