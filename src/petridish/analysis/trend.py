"""Tests of trends and orders between success probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[Any]


def trend_test(solved: Counts, runs: Counts, scores: Counts) -> float:
    r"""Test whether success rises along an ordered condition, over many strata at once.

    Parameters
    ----------
    solved, runs : array, shape (stratum, condition)
        Runs that solved the task, and runs made.
    scores : array, shape (condition,)
        The order, for example log width.

    Returns
    -------
    p : float
        One-sided p-value against «no rise»: the Cochran–Armitage test in each stratum, their scores
        and hypergeometric variances summed before dividing [Mantel 1963]. Small where success
        rises; close to 1 where it falls; 1/2 where no stratum has both outcomes.
    """
    total = runs.sum(axis=1, keepdims=True)
    share = solved.sum(axis=1, keepdims=True) / np.maximum(total, 1)
    statistic = float(np.sum(scores * (solved - runs * share)))
    mean = (runs * scores).sum(axis=1, keepdims=True) / np.maximum(total, 1)
    spread = (runs * (scores - mean) ** 2).sum(axis=1, keepdims=True)
    factor = np.where(total > 1, total / np.maximum(total - 1, 1), 0.0)
    variance = float(np.sum(share * (1 - share) * spread * factor))
    if variance == 0:
        return 0.5
    return 0.5 * math.erfc(statistic / math.sqrt(2 * variance))


def decrease_test(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Test by Fisher whether success fell: one-sided exact p-value of «(solved, runs) or worse»."""
    (s1, n1), (s2, n2) = before, after
    solved, runs = s1 + s2, n1 + n2
    whole = _log_choose(runs, n2)
    tail = sum(
        math.exp(_log_choose(solved, i) + _log_choose(runs - solved, n2 - i) - whole)
        for i in range(max(0, n2 - (runs - solved)), s2 + 1)
    )
    return min(1.0, tail)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values so that rejecting those below a level keeps the family's error below it."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, running = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = running
    return adjusted
