"""Measures of one run's curve: how long it stays at chance, and how suddenly it leaves.

They take the evaluations of a run, `steps`, and its error at each of them: any run that kept its
curves.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

CHANCE, SOLVED = 0.45, 0.05  # a run is on its plateau from the one up, and past it from the other


def transition_time(steps: ArrayLike, errors: ArrayLike, *, solved: float = SOLVED) -> float:
    """Return the first evaluation with an error of at most `solved`; NaN if there is none."""
    under = np.flatnonzero(np.asarray(errors, np.float64) <= solved)
    return float(np.asarray(steps, np.float64)[under[0]]) if len(under) else math.nan


def plateau_length(
    steps: ArrayLike, errors: ArrayLike, *, chance: float = CHANCE, solved: float = SOLVED
) -> float:
    """Return the steps spent with an error of at least `chance` before it falls to `solved`.

    Between two evaluations that differ, the change counts as halfway. With evaluations at 0, 10, 20
    and 30 that find 0.5, 0.5, 0.3 and 0, it is 15 of 30 steps. Time on a plateau that a run came
    back to counts too. NaN if the run never falls to `solved`.
    """
    end = transition_time(steps, errors, solved=solved)
    at = np.asarray(steps, np.float64)
    before = at <= end
    high = (np.asarray(errors, np.float64)[before] >= chance).astype(np.float64)
    length = float(np.sum(np.diff(at[before]) * (high[1:] + high[:-1]) / 2))
    return math.nan if math.isnan(end) else length


def plateau_fraction(
    steps: ArrayLike, errors: ArrayLike, *, chance: float = CHANCE, solved: float = SOLVED
) -> float:
    r"""Return the plateau's share of the time until the error falls to `solved`.

    The empirical side of Theorem 5.7's :math:`T(0.49) / T(0)` [HP §4.2], which is close to 1 for a
    phase transition. An error that falls along a straight line from ½ to 0 has ⅑; a fall to
    `solved` between the first two evaluations has ½, which says no more than that the evaluations
    were too far apart. NaN if the run never falls to `solved`, or starts there.
    """
    end = transition_time(steps, errors, solved=solved)
    return (
        plateau_length(steps, errors, chance=chance, solved=solved) / end if end > 0 else math.nan
    )
