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
        1 for a solved run and 0 for another.
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

    _, conditions, seeds = outcome.shape
    centred = scores - scores.mean()
    each = np.einsum("c,kcs->s", centred, outcome)  # every seed's own statistic
    total = conditions * seeds
    share = outcome.mean(axis=(1, 2))
    factor = total / max(total - 1, 1)
    variance = float(np.sum(share * (1 - share)) * seeds * np.sum(centred**2) * factor)
    if seeds > 1:
        variance = max(variance, seeds * float(each.var(ddof=1)))
    if variance == 0:
        return 0.5
    return float(stdtr(max(seeds - 1, 1), -each.sum() / math.sqrt(variance)))


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
