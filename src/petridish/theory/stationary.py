"""The stationary law of a Markov chain."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from petridish.errors import UserError, require

Floats = NDArray[np.float64]
TOLERANCE = 1e-9  # of the sums of rows


def stationary(rows: Floats) -> Floats:
    """Return the stationary law of transition matrices (…, k, k), shape (…, k).

    By leaving out one state after the other [Grassmann, Taksar & Heyman 1985]: nothing is
    subtracted, so that the law is exact to rounding, however seldom a state is left. Matrices with
    a state that cannot be reached from every other need `stationary_law`.
    """
    left, k = np.array(rows, np.float64), rows.shape[-1]
    for state in range(k - 1, 0, -1):
        out = left[..., state, :state].sum(axis=-1)
        left[..., :state, state] /= out[..., None]
        left[..., :state, :state] += left[..., :state, state, None] * left[..., None, state, :state]
    law = np.ones_like(left[..., 0])
    for state in range(1, k):
        law[..., state] = (law[..., :state] * left[..., :state, state]).sum(axis=-1)
    law /= law.sum(axis=-1, keepdims=True)
    return law


def stationary_law(matrix: ArrayLike) -> Floats:
    """Return the stationary law of one transition matrix, or refuse it.

    It is unique if the states from which a chain cannot get away fall into one class; all others
    have the probability 0.

    Parameters
    ----------
    matrix : array-like, shape (k, k)
        Entry (i, j) is the probability of a step from i to j.
    """
    rows = np.asarray(matrix, np.float64)
    require(
        rows.ndim == 2 and rows.shape[0] == rows.shape[1] and len(rows) >= 1,
        f"A transition matrix has as many rows as columns, and this one has the shape {rows.shape}."
        " Give a square one.",
    )
    for state, row in enumerate(rows):
        if not (row >= 0).all():
            raise UserError(
                f"Row {state} of the transition matrix is {row.tolist()}, and probabilities are at "
                "least 0. Give such a row."
            )
        if not abs(row.sum() - 1) <= TOLERANCE:
            raise UserError(
                f"Row {state} of the transition matrix has the sum {row.sum():g}. Give a row with "
                "the sum 1."
            )
    classes = _closed_classes(rows > 0)
    if len(classes) > 1:
        named = " and ".join(str(each) for each in classes)
        raise UserError(
            f"The transition matrix has no unique stationary law: a chain stays within the states "
            f"{named} for ever. Give a matrix with a way between them."
        )
    kept = classes[0]
    law = np.zeros(len(rows))
    law[kept] = stationary(rows[np.ix_(kept, kept)])
    return law


def _closed_classes(leads: NDArray[np.bool_]) -> list[list[int]]:
    """Return the classes of states that lead to each other and nowhere else."""
    reach = leads | np.eye(len(leads), dtype=bool)
    for middle in range(len(leads)):
        reach |= reach[:, middle, None] & reach[None, middle]
    both = reach & reach.T
    found = []
    for state in range(len(leads)):
        members = np.flatnonzero(both[state])
        if members[0] == state and not (reach[state] & ~both[state]).any():
            found.append(members.tolist())
    return found
