"""Shares of successes: binomial tails, the mean over several cells, and how many truly pass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.statistics.intervals import student_half_width, wilson_interval

Floats = NDArray[np.float64]
Counts = int | NDArray[Any]
STRICT = 5.0  # tests behind a bound on a share have this many times less than its level


def binomial_at_most(solved: Counts, runs: Counts, p: float) -> Floats:
    """Compute P(X ≤ solved) for X binomial; counts may be fractions, as effective ones are."""
    from scipy.special import betainc  # slow to import

    failed = np.asarray(runs) - solved
    return np.where(failed <= 0, 1.0, betainc(np.maximum(failed, 1e-9), solved + 1, 1 - p))


def binomial_at_least(solved: Counts, runs: Counts, p: float) -> Floats:
    """Compute P(X ≥ solved) for X binomial."""
    return binomial_at_most(np.asarray(runs) - solved, runs, 1 - p)


def mean_share(outcome: Floats, *, coverage: float) -> tuple[float, float, float]:
    """Bound the mean success of several cells, shape (cell, seed), NaN where there is no run.

    Each cell weighs the same. The interval is the wider, to each side, of two: Student's over the
    seeds' means, as the cells of one seed depend on each other; and the one that adds the squares
    of the cells' distances to Wilson's bounds, which keeps its width where all seeds agree.
    """
    runs, solved = (~np.isnan(outcome)).sum(axis=1), np.nansum(outcome, axis=1)
    share = solved / runs
    low, high = wilson_interval(solved, runs, coverage=coverage)
    down, up = (math.hypot(*(share - end)) / len(share) for end in (low, high))
    half = student_half_width(np.nanmean(outcome, axis=0), coverage)
    if math.isinf(half):  # a single seed: Wilson's bounds know how little that is
        half = 0.0
    estimate = float(share.mean())
    return estimate, max(0.0, estimate - max(down, half)), min(1.0, estimate + max(up, half))


def least_passing(p: Floats, level: float) -> float:
    """Bound from below the share of hypotheses that truly pass, from the p-values of passing.

    Holds however they depend on each other (Markov's inequality): of F that fail, at most t F are
    expected to pass a test at level t, and t F / level or more do with probability `level` at most.
    So F (1 − t / level) is at most the number that did not pass.
    """
    if (p <= level).all():
        return 1.0  # one that fails would have to pass its own test
    return max(0.0, 1 - float((p > level / STRICT).mean()) / (1 - 1 / STRICT))


def most_passing(p: Floats, level: float) -> float:
    """Bound that share from above in the same way, from the p-values of failing."""
    return min(1.0, float((p > level / STRICT).mean()) / (1 - 1 / STRICT))
