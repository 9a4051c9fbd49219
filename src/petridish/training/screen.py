"""Deciding whether a run is solved without reading the whole held-out sample at each evaluation.

Only the whole sample decides «solved». An evaluation counts errors on a growing part of it, and
ends early with «not yet» when so many errors have probability below `MISS` for a run exactly at the
target (hypergeometric), or exceed what the whole sample may have.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, inf, lgamma

CHUNK = 256  # examples per forward pass; fixed, because a sum's rounding may depend on its shape
FIRST = 128  # examples of the first stage: at chance level 64 ± 6 are wrong, far above any limit
MISS = 1e-12  # probability of a wrong «not yet», for a run exactly at the target


@dataclass(frozen=True)
class Stage:
    """Count the errors up to example stop − 1; go on while there are at most `limit`."""

    start: int
    stop: int
    limit: int


def allowed_errors(n_test: int, target_error: float, *, strict: bool = False) -> int:
    """Count the errors that a solved run may make on its whole held-out sample.

    `strict` asks for an error rate below the target; the count is −1 where there is none.
    """
    if strict:
        return ceil(target_error * n_test - 1e-9) - 1
    return int(target_error * n_test + 1e-9)  # 0.3 × 10 is 3, whatever the float says


@lru_cache(maxsize=64)
def stages(n_test: int, allowed: int) -> tuple[Stage, ...]:
    """Return the stages of an evaluation in which at most `allowed` of the whole sample may err.

    A run is solved if it passes the last stage, which is the whole sample's.
    """
    if allowed < 0:
        return (Stage(0, min(n_test, FIRST), -1),)
    found, stop = [], 0
    while stop < n_test:
        start, stop = stop, min(n_test, max(FIRST, 2 * stop))
        found.append(Stage(start, stop, _limit(n_test, allowed, stop)))
    return tuple(found)


def _limit(n_test: int, allowed: int, seen: int) -> int:
    """Return the smallest count that `seen` examples exceed with probability below `MISS`.

    `allowed` of the `n_test` examples are errors, and the examples seen are a random part of them.
    """
    count = min(seen, allowed)
    tail = 0.0  # P(more than `count` errors among those seen)
    while count > 0:
        tail += exp(
            log_choose(allowed, count)
            + log_choose(n_test - allowed, seen - count)
            - log_choose(n_test, seen)
        )
        if tail >= MISS:
            break
        count -= 1
    return count


def log_choose(n: int, k: int) -> float:
    """Return the logarithm of the binomial coefficient, −∞ where it is 0."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) if 0 <= k <= n else -inf
