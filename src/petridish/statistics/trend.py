"""Tests of trends and orders between success probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Counts = NDArray[Any]


def trend_test(outcome: Counts, scores: Counts) -> float:
    r"""Test whether success rises along an ordered condition, over many strata at once.

    Parameters
    ----------
    outcome : array, shape (stratum, condition, seed)
        1 for a solved run and 0 for another, NaN where none was made.
    scores : array, shape (condition,)
        The order, for example the rank of the width.

    Returns
    -------
    p : float
        One-sided p-value against «no rise»: the Cochran–Armitage statistic, summed over strata
        [Mantel 1963]. Its variance is the larger of the hypergeometric one, which takes runs for
        independent, and the one seen between the seeds' own statistics, which does not; it is
        compared with Student's distribution. Small where success rises, close to 1 where it falls,
        1/2 where no stratum has both outcomes.
    """
    from scipy.special import stdtr  # slow to import

    made = ~np.isnan(outcome)
    runs = made.sum(axis=2)  # (stratum, condition)
    total = runs.sum(axis=1)
    share = np.nansum(outcome, axis=(1, 2)) / total
    centre = (runs * scores).sum(axis=1) / total
    centred = scores - centre[:, None]  # (stratum, condition)
    residual = np.where(made, outcome - share[:, None, None], 0.0)
    each = np.einsum("kc,kcs->s", centred, residual)  # every seed's own statistic
    spread = (runs * centred**2).sum(axis=1) * total / np.maximum(total - 1, 1)
    variance = float(np.sum(share * (1 - share) * spread))
    seeds = _effective(made.sum(axis=(0, 1)))
    if seeds > 1:
        variance = max(
            variance, float((each**2).sum() - each.sum() ** 2 / len(each)) * seeds / (seeds - 1)
        )
    if variance == 0:
        return 0.5
    return float(stdtr(max(seeds - 1, 1), -each.sum() / math.sqrt(variance)))


def _effective(weight: Counts) -> float:
    """Count seeds by their weight: all of them where each has as many runs."""
    return float(weight.sum() ** 2 / (weight**2).sum())


@lru_cache(maxsize=65_536)  # cells of few runs are compared with many others, which are alike
def decrease_test(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Test by Fisher whether success fell: one-sided exact p-value of «(solved, runs) or worse»."""
    (s1, n1), (s2, n2) = before, after
    solved, runs = s1 + s2, n1 + n2
    if s2 < max(0, n2 - (runs - solved)):
        return 0.0
    i = np.arange(max(0, n2 - (runs - solved)), s2 + 1)
    ways = _log_choose(solved, i) + _log_choose(runs - solved, n2 - i)
    return min(1.0, float(np.exp(ways - _log_choose(runs, n2)).sum()))


def _log_choose(n: ArrayLike, k: ArrayLike) -> Any:
    """Return the logarithm of C(n, k), entry by entry."""
    from scipy.special import gammaln  # slow to import

    chosen = np.asarray(k)
    return gammaln(np.add(n, 1)) - gammaln(chosen + 1) - gammaln(np.subtract(n, chosen) + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values so that rejecting those below a level keeps the family's error below it."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, running = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = running
    return adjusted
