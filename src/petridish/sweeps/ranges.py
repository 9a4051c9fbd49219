"""Values of axes on a logarithmic scale."""

from __future__ import annotations

import math

from petridish.errors import require

DIGITS = 3


def log_range(first: float, last: float, count: int) -> tuple[float, ...]:
    """Return `count` values from `first` to `last`, each the same factor after the one before.

    ``log_range(1e-3, 1, 7)`` is (0.001, 0.00316, 0.01, 0.0316, 0.1, 0.316, 1.0). Rounded to three
    digits: values enter the keys of runs, and last bits differ between machines.
    """
    numbers = [isinstance(end, int | float) and 0 < end < math.inf for end in (first, last)]
    require(
        all(numbers),
        f"log_range: from {first!r} to {last!r} was given. Give two positive numbers.",
    )
    require(
        isinstance(count, int) and not isinstance(count, bool) and count >= 2,
        f"log_range: {count!r} values were asked for. Give a whole number from 2 on.",
    )
    factor = (last / first) ** (1 / (count - 1))
    found = tuple(float(f"{first * factor**place:.{DIGITS}g}") for place in range(count))
    require(
        len(set(found)) == count,
        f"log_range: {count} values from {first:g} to {last:g} are not {count} different ones at "
        f"{DIGITS} digits. Give fewer, or ends further apart.",
    )
    return found
