r"""From a covering number to a sample size [TH Lemma 4.2 = A.5, with A.2 to A.4].

Dudley's integral is taken with its usual constants, 4δ + 12 ∫, where the text has «some c > 0».
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import comb

import numpy as np

from petridish.errors import UserError, check_whole

CHAINING = 12.0
TRUNCATED = 4.0
POINTS = 200  # of the integral, on a logarithmic grid


def rademacher_bound(log_cover: Callable[[float], float], m: float, *, largest: float) -> float:
    r"""Bound the empirical Rademacher complexity of functions of at most `largest` (A).

    :math:`\inf_δ 4δ + 12 \int_δ^A \sqrt{\log N_\infty(ε)/m} \, dε` [TH Lemma A.2]. As the
    covering number falls in ε, sums of the integrand at left ends bound the integral.
    """
    radii = np.geomspace(largest * 1e-9, largest, POINTS)
    heights = np.sqrt(np.array([log_cover(float(radius)) for radius in radii[:-1]]) / m)
    beyond = np.append(np.cumsum((heights * np.diff(radii))[::-1])[::-1], 0.0)
    return float(min(largest, (TRUNCATED * radii + CHAINING * beyond).min()))


def closed_rademacher(capacity: float, m: float, *, largest: float = 1.0) -> float:
    r"""Bound the Rademacher complexity where :math:`\log N_\infty(ε) ≤ C/ε^2` [TH Cor. A.3].

    :math:`12 \sqrt{C/m} (1 + \log(A \sqrt{m/C} / 3))`, the best δ being :math:`3 \sqrt{C/m}`; A
    where that is beyond A.
    """
    if capacity <= 0 or m <= 0 or largest <= 0:
        raise UserError(
            f"closed_rademacher: capacity={capacity}, m={m}, largest={largest}. Give positive "
            "numbers."
        )
    scale = math.sqrt(capacity / m)
    if TRUNCATED * largest <= CHAINING * scale:
        return largest
    inner = 1 + math.log(largest * TRUNCATED / (CHAINING * scale))
    return min(largest, CHAINING * scale * inner)


def gap_bound(
    log_cover: Callable[[float], float],
    m: float,
    *,
    largest: float = 1.0,
    lipschitz: float = 1.0,
    bounded: float = 1.0,
    risk: float = 0.05,
) -> float:
    r"""Bound |risk − training risk| of all functions at once, but for a probability δ = `risk`.

    :math:`4 L \hat R + 2 b \sqrt{\log(1/δ) / 2m}` for an L-Lipschitz loss within [0, b]
    [TH Theorem A.4].
    """
    if not 0 < risk < 1:
        raise UserError(f"gap_bound: risk={risk!r}. Give a number between 0 and 1.")
    complexity = rademacher_bound(log_cover, m, largest=largest)
    return 4 * lipschitz * complexity + 2 * bounded * math.sqrt(math.log(1 / risk) / (2 * m))


def sufficient_sample(
    log_cover: Callable[[float, float], float],
    *,
    gap: float = 0.5,
    largest: float = 1.0,
    lipschitz: float = 1.0,
    risk: float = 0.05,
) -> float:
    """Return the least sample m, to 1 %, whose `gap_bound` is at most `gap`.

    `log_cover` takes the radius and m, since a cover is one on the tokens of m samples. Beyond the
    gap ½ a bound says nothing of balanced labels. ∞ if 10^30 samples are too few.
    """

    def large(m: float) -> bool:
        bound = gap_bound(
            lambda radius: log_cover(radius, m),
            m,
            largest=largest,
            lipschitz=lipschitz,
            risk=risk,
        )
        return bound > gap

    low, high = 1.0, 1e30
    if large(high):
        return math.inf
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if large(middle) else (low, middle)
    return high


def least_sample(n: int, sparsity: int) -> float:
    r"""Return :math:`\log_2 C(T, s)`: no fewer binary labels tell all supports apart [TH §4.6]."""
    check_whole("least_sample", 1, n=n, sparsity=sparsity)
    if sparsity > n:
        raise UserError(f"least_sample: sparsity={sparsity} of n={n} bits. Give at most n.")
    return math.log2(comb(n, sparsity))
