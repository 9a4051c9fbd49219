"""Rows of a table as a set: equal rows become one, with the sum of their weights.

So a weight of 2 is two copies of a row, bit for bit, and the order of rows is of no consequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def merge_rows(x: Floats, y: NDArray[Any], weight: Floats) -> tuple[Floats, NDArray[Any], Floats]:
    """Drop rows of weight 0, merge rows with equal x and y, and put them in an order of their own.

    Parameters
    ----------
    x : array, shape (row, column)
        Features; NaN equals NaN.
    y : array, shape (row,) or (row, output)
        Classes or values.
    weight : array, shape (row,)
        At least 0.

    Returns
    -------
    x, y, weight : arrays
        Each pair (x, y) once, in the order of its bytes, which is as good as random.
    """
    kept = weight > 0
    x, y, weight = x[kept], y[kept], weight[kept]
    whole = np.column_stack([x, y.reshape(len(y), -1).astype(np.float64)])
    whole += 0.0  # −0.0 becomes 0.0: equal numbers have equal bytes
    whole[np.isnan(whole)] = np.nan
    texts = np.ascontiguousarray(whole).view(np.dtype((np.void, whole.itemsize * whole.shape[1])))
    _, first, place = np.unique(texts.ravel(), return_index=True, return_inverse=True)
    total: Floats = np.zeros(len(first))
    np.add.at(total, place, weight)
    return x[first], y[first], total


def n_rows_meant(weight: Floats) -> float:
    """Count the rows that weights stand for.

    Whole numbers are copies, of which four per row count, or 2000 in all; other weights, and those
    above 2^53, are mere importance, and count as one row each.
    """
    if np.array_equal(weight, np.floor(weight)) and weight.max() <= 2**53:
        return float(min(weight.sum(), max(4 * len(weight), 2000)))
    return float(len(weight))
