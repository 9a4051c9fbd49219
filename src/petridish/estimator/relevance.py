"""How much of the target a column explains on its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from petridish.estimator.features import Floats, mid_ranks

GROUPS = 6
LEAST = 0.1  # factor of a column that explains nothing where others do


def relevance(
    inputs: NDArray[np.float32], target: NDArray[np.float32], weight: Floats, n: float
) -> Floats:
    r"""Compute a factor up to 1 for each input from the variance of the target that it explains.

    Parameters
    ----------
    inputs : array, shape (row, input)
        What the network would be given.
    target : array, shape (row, output)
        Values, or the classes' indicators.
    weight : array, shape (row,)
        Of the rows.
    n : float
        Rows that the weights stand for.

    Returns
    -------
    factor : array, shape (input,)
        :math:`\max(\rho_j^p, 0.1)^e` with :math:`\rho_j = \eta_j^2 / \max_i \eta_i^2`, where
        :math:`\eta_j^2` is the adjusted share of the target's variance between six groups of rows
        by the rank of input j; :math:`p = \frac12 \min(1, 16 / \sqrt n)`, as a network with many
        rows finds out by itself; and :math:`e = 1 - (t / \max_i \eta_i^2)^2`, at least 0, with
        the t that the largest of them reaches by chance: where no column explains anything
        alone, as in a parity, all factors are near 1.
    """
    share = weight / weight.sum()
    centred = target - share @ target  # (row, output)
    whole = (share @ np.square(centred)).sum()
    if n <= GROUPS or whole <= 0:
        return np.ones(inputs.shape[1])
    parts = [_between(column, centred, share) for column in inputs.T]
    explained, groups = np.array(parts).T
    adjusted = 1 - (1 - explained / whole) * (n - 1) / (n - groups)
    largest, chance = adjusted.max(), _largest_by_chance(n, inputs.shape[1])
    if largest <= chance:
        return np.ones(inputs.shape[1])
    power = 0.5 * min(1.0, 16 / np.sqrt(n))
    evidence = 1 - (chance / largest) ** 2
    factor: Floats = np.maximum((adjusted.clip(0) / largest) ** power, LEAST) ** evidence
    return factor


def _largest_by_chance(n: float, n_inputs: int) -> float:
    """Return the median of the largest adjusted share if no input were informative."""
    from scipy.special import chdtri

    freedom = GROUPS - 1
    return max(0.0, float(chdtri(freedom, 1 / (2 * n_inputs)) - freedom) / n)


def _between(column: NDArray[np.float32], centred: Floats, share: Floats) -> tuple[float, int]:
    """Return the variance of the target between groups of one input's ranks, and their number."""
    ranks = mid_ranks(column, share)  # equal values stay together
    group = np.floor(GROUPS * ranks).astype(np.intp).clip(0, GROUPS - 1)
    size = np.bincount(group, share, minlength=GROUPS)
    sums = np.stack([np.bincount(group, share * t, minlength=GROUPS) for t in centred.T])
    filled = size > 0
    return float((np.square(sums[:, filled]) / size[filled]).sum()), int(filled.sum())


def weighing_members(n_members: int, share: float) -> NDArray[np.bool_]:
    """Return which members weigh their columns: the first, and others spread evenly after it.

    Not all do by default: what a column explains alone may hide what it explains together
    with others, as in x₁ x₂ + x₃.
    """
    chosen: NDArray[np.bool_] = np.diff(np.ceil(np.arange(n_members + 1) * share)) > 0
    return chosen
