"""Mean gradients over windows of steps, from the weights at their ends [FL Table 7]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from petridish.errors import require

Floats = NDArray[np.float64]


def needed_steps(ends: Sequence[int]) -> tuple[int, ...]:
    """Return the steps whose weights `window_gradients` reads: each end, and one before it."""
    return tuple(sorted({at for end in ends for at in (end, max(end - 1, 0))}))


def window_gradients(
    weights: Mapping[int, Floats], ends: Sequence[int], rate: float, momentum: float = 0.0
) -> Floats:
    """Return the mean gradient between each end and the next, shape (window, …).

    Of SGD with PyTorch's momentum at a constant rate and without decay: u_t = μ u_{t−1} + g_t and
    w_{t+1} = w_t − η u_t, so that the gradients of the steps s … e − 1 add up to (w_s − w_e)/η −
    μ (w_{s−1} − w_{e−1})/η, with w_{−1} = w_0.
    """
    missing = [step for step in needed_steps(ends) if step not in weights]
    require(
        len(ends) > 1 and list(ends) == sorted(set(ends)) and not missing and rate > 0,
        f"window_gradients: ends={tuple(ends)}, rate={rate}, weights at {sorted(weights)}. Give at "
        "least two ends in order, a positive rate, and the weights at each end and one step "
        "before.",
    )
    found = []
    for first, last in pairwise(ends):
        before = weights[max(first - 1, 0)] - weights[last - 1]
        total = (weights[first] - weights[last]) - momentum * before
        found.append(total / (rate * (last - first)))
    return np.stack(found)


def agreement(gradients: Floats) -> tuple[Floats, Floats]:
    """Return the cosines of some vectors with their mean, and of each pair: Table 7's two halves.

    Of three independent directions at random the first are 1/√3 = 0.58 and the second 0.
    """
    rows = gradients.reshape(len(gradients), -1)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    mean = rows.mean(axis=0)
    pairs = [unit[i] @ unit[j] for i in range(len(unit)) for j in range(i + 1, len(unit))]
    return unit @ mean / np.linalg.norm(mean), np.array(pairs)
