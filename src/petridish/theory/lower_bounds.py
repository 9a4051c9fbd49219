r"""What learning a parity takes at least: PF's lower bound on resources, and the statistics.

The four resources are the parameters r, the steps T, the precision τ of the gradients and the
probability δ of success. Where a sample size m is asked for instead of τ, τ² = 1/m: the paper's
m = Õ(1/τ²) without its constants and logarithms.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

from petridish.errors import check_whole
from petridish.theory.checks import check_positive, check_size

Version = Literal["printed", "proved"]


def n_parameters(width: int, n: int) -> int:
    """Count the parameters of a 2-layer MLP, width · (n + 2) + 1: Proposition 3's letter r."""
    check_whole("n_parameters", 1, width=width, n=n)
    return width * (n + 2) + 1


def resource_product(parameters: float, steps: float, tau: float, delta: float) -> float:
    """Return rT / (τ²δ), the left side of [PF Proposition 3]."""
    check_positive(parameters=parameters, steps=steps, tau=tau, delta=delta)
    return parameters * steps / (tau**2 * delta)


def sq_bound(n: int, k: int, *, version: Version = "printed") -> float:
    r"""Return the right side of [PF Proposition 3], :math:`\frac12 \binom{n}{k}`.

    Where the resource product is at most this, some (n, k)-parity leaves the first T steps of SGD
    independent of it with probability 1 − δ.

    Parameters
    ----------
    n, k : int
        Bits, and degree of the parity.
    version : {"printed", "proved"}, default="printed"
        The proof gives a constant of ¼: half of τ goes to the sample's error (Assumption 2), so
        that Markov's inequality is used at (τ/2)², and a factor ½ leaves 1 − 2δ. Whether the
        proposition holds with ½ is open.

    Returns
    -------
    bound : float
    """
    check_whole("sq_bound", 0, n=n, k=k)
    return math.comb(n, k) * {"printed": 0.5, "proved": 0.25}[version]


def least_steps(n: int, k: int, *, parameters: float, tau: float, delta: float) -> int:
    """Return the fewest steps T that Proposition 3 does not rule out, given the rest."""
    return _above(sq_bound(n, k) / resource_product(parameters, 1, tau, delta))


def least_parameters(n: int, k: int, *, steps: float, tau: float, delta: float) -> int:
    """Return the fewest parameters r that Proposition 3 does not rule out, given the rest."""
    return _above(sq_bound(n, k) / resource_product(1, steps, tau, delta))


def least_samples(n: int, k: int, *, parameters: float, steps: float, delta: float) -> int:
    """Return the smallest m = 1/τ² that Proposition 3 does not rule out, given the rest."""
    return _above(sq_bound(n, k) / resource_product(parameters, steps, 1, delta))


def most_success(n: int, k: int, *, parameters: float, steps: float, tau: float) -> float:
    """Return the largest probability of success that Proposition 3 leaves to the hardest parity.

    It is rT / (τ² · ½ C(n, k)), at most 1.
    """
    return min(1.0, resource_product(parameters, steps, tau, 1) / sq_bound(n, k))


def statistical_limit(n: int, k: int) -> float:
    """Return log2 C(n, k): the labels, one bit each, that it takes to name a set S."""
    check_size("statistical_limit", n, k)
    return math.log2(math.comb(n, k))


def ambiguity(n: int, k: int, m: int) -> tuple[float, float]:
    r"""Bound the probability that m random examples leave a second k-parity possible.

    Two sets agree on an example with probability ½, and for a fixed S the events of two others
    are independent, since S ⊕ S' and S ⊕ S'' are two different non-empty sets. Their number
    therefore has the mean :math:`\mu = (\binom{n}{k} - 1) 2^{-m}` and the variance
    :math:`\mu (1 - 2^{-m})`.

    Returns
    -------
    low, high : float
        μ / (μ + 1 − 2^{−m}), by Cauchy and Schwarz, and min(1, μ), by the union bound. The odds
        turn within a few examples of `statistical_limit`.
    """
    check_whole("ambiguity", 0, n=n, k=k, m=m)
    agree = Fraction(1, 1 << m)
    mean = max(0, math.comb(n, k) - 1) * agree
    if mean == 0:
        return 0.0, 0.0
    low = mean / (mean + 1 - agree)
    return float(low), float(mean) if mean < 1 else 1.0


def _above(value: float) -> int:
    """Return the smallest whole number above `value`: at equality the bound still holds."""
    return math.floor(value) + 1
