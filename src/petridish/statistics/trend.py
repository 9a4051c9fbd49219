"""Tests of trends and orders between success probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.training.screen import log_choose

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


def decrease_test(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Test by Fisher whether success fell: one-sided exact p-value of «(solved, runs) or worse»."""
    (s1, n1), (s2, n2) = before, after
    solved, runs = s1 + s2, n1 + n2
    whole = log_choose(runs, n2)
    tail = sum(
        math.exp(log_choose(solved, i) + log_choose(runs - solved, n2 - i) - whole)
        for i in range(max(0, n2 - (runs - solved)), s2 + 1)
    )
    return min(1.0, tail)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values so that rejecting those below a level keeps the family's error below it."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, running = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = running
    return adjusted
