"""The smallest number at which a monotone condition holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any


def first_true(holds: Callable[[int], bool], *, largest: int) -> int | None:
    """Return the smallest whole m at which `holds`, by doubling and bisection.

    It tries m = 0, 1, 2, 4, … until one holds, then bisects; None if none holds up to `largest`. If
    `holds` is not monotone, the m found holds and m − 1 does not, but smaller ones may.
    """
    below, m = -1, 0
    while not holds(m):
        if m == largest:
            return None
        below, m = m, min(max(1, 2 * m), largest)
    while m - below > 1:
        middle = (below + m) // 2
        below, m = (below, middle) if holds(middle) else (middle, m)
    return m


def first_size(holds: Callable[[float], bool], *, largest: float = 1e30) -> float:
    """Return the smallest real m from 1 on at which `holds`, to 15 digits; ∞ beyond `largest`."""
    high = 1.0
    while not holds(high):
        high *= 2
        if high > largest:
            return math.inf
    low = high / 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def crossing(shares: Any, sizes: Sequence[float] | Any, goal: float) -> float:
    """Return the size at which rising shares reach `goal`, linear in log size between two.

    Beyond the sizes it is the nearest of them, which understates a difference.
    """
    above = next((place for place, share in enumerate(shares) if share >= goal), len(sizes))
    if above in (0, len(sizes)):
        return float(sizes[min(above, len(sizes) - 1)])
    weight = (goal - shares[above - 1]) / (shares[above] - shares[above - 1])
    low, high = math.log(sizes[above - 1]), math.log(sizes[above])
    return math.exp(low + weight * (high - low))


def steps_solving(factor: float, shift: float) -> int:
    """Return the smallest whole T ≥ 1 with T ≥ factor · (shift + log T), for large T."""
    steps = max(1.0, factor)
    for _ in range(200):  # contracts, since the derivative factor / T is below 1
        steps = max(1.0, factor * (shift + math.log(steps)))
    return math.ceil(steps)
