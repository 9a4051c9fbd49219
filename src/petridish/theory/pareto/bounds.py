r"""What the resources must at least be: the lower bound of Proposition 3, and the statistics.

The four resources are the parameters r, the steps T, the precision τ of the gradients and the
probability δ of success. Where a sample size m is asked for instead of τ, τ² = 1/m: the paper's
m = Õ(1/τ²) without its constants and logarithms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from petridish.errors import UserError, check_whole
from petridish.theory.pareto.gradients import over_sparse_constants
from petridish.theory.pareto.over_sparse import OFFSET, second_layer

Version = Literal["printed", "proved"]


def n_parameters(width: int, n: int) -> int:
    """Count the parameters of a 2-layer MLP, width · (n + 2) + 1: Proposition 3's letter r."""
    check_whole("n_parameters", 1, width=width, n=n)
    return width * (n + 2) + 1


def resource_product(parameters: float, steps: float, tau: float, delta: float) -> float:
    """Give rT / (τ²δ), the left side of [PF Proposition 3]."""
    _check_positive(parameters=parameters, steps=steps, tau=tau, delta=delta)
    return parameters * steps / (tau**2 * delta)


def sq_bound(n: int, k: int, *, version: Version = "printed") -> float:
    r"""Give the right side of [PF Proposition 3], :math:`\frac12 \binom{n}{k}`.

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
    """Give the fewest steps T that Proposition 3 does not rule out, given the rest."""
    return _above(sq_bound(n, k) / resource_product(parameters, 1, tau, delta))


def least_parameters(n: int, k: int, *, steps: float, tau: float, delta: float) -> int:
    """Give the fewest parameters r that Proposition 3 does not rule out, given the rest."""
    return _above(sq_bound(n, k) / resource_product(1, steps, tau, delta))


def least_samples(n: int, k: int, *, parameters: float, steps: float, delta: float) -> int:
    """Give the smallest m = 1/τ² that Proposition 3 does not rule out, given the rest."""
    return _above(sq_bound(n, k) / resource_product(parameters, steps, 1, delta))


def most_success(n: int, k: int, *, parameters: float, steps: float, tau: float) -> float:
    """Give the largest probability of success that Proposition 3 leaves to the hardest parity.

    It is rT / (τ² · ½ C(n, k)), at most 1.
    """
    return min(1.0, resource_product(parameters, steps, tau, 1) / sq_bound(n, k))


def statistical_limit(n: int, k: int) -> float:
    """Give log2 C(n, k): the labels, one bit each, that it takes to name a set S."""
    check_whole("statistical_limit", 0, n=n, k=k)
    if k > n:
        raise UserError(f"statistical_limit: k={k} is above n={n}. Give k of at most n.")
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


def lemma10_samples(n: int, width: int, *, tau: float, delta: float) -> int:
    r"""Give the sample size :math:`4 \log(4nr/\delta) / \tau^2` [PF Lemma 10].

    With it every derivative of the first layer is within τ of its mean, with probability 1 − δ.
    Hoeffding's inequality for terms in [−1, 1] would do with half of it.
    """
    _check_positive(tau=tau, delta=delta)
    return math.ceil(4 * math.log(4 * n * width / delta) / tau**2)


@dataclass(frozen=True, kw_only=True)
class OverSparseSizes:
    """What the proof of [PF Theorem 16] asks for, with its constants worked out."""

    width: int  # r
    neurons: float  # r', good neurons for each bias
    learning_rate: float  # η of the first step
    tau: float  # precision of the first gradient
    n_train: int  # m
    least_sparsity: int  # s
    steps: int  # T


def theorem16_sizes(
    n: int, k: int, s: int, *, epsilon: float, delta: float, offset: float = OFFSET
) -> OverSparseSizes:
    r"""Work out the sizes in the proof of [PF Theorem 16], for a loss of at most 7ε.

    Parameters
    ----------
    n, k, s : int
        Bits, degree of the parity (even), ones of a neuron (s ≥ k).
    epsilon, delta : float
        Loss, and probability of failure of each of the proof's three parts.
    offset : float, default=1/16
        The biases' offset, which sets the second layer's norm B_k.

    Returns
    -------
    sizes : OverSparseSizes
        From the exact :math:`C_{k,s}` and :math:`B_k` instead of the bounds: r as printed in
        Lemma 15; :math:`\eta = 1 / 2k|C|`;
        :math:`\tau = \min(\epsilon / 4 B k r' n \eta, 1 / 16 \eta k n)`; m the larger of Lemmas 10
        and 14; :math:`s \ge 4 k r' B^2 / \epsilon^2`, for which the print asks by
        :math:`s \ge 80 k B^2 \log(2k/\delta) / \epsilon^2`, twice as much; and the smallest T with
        :math:`T / (1 + \log T) \ge 100 (B \|\psi\| + \epsilon)^2 / \epsilon^2`, where the print
        lacks the factor B².
    """
    _check_positive(epsilon=epsilon, delta=delta)
    log = math.log(2 * k / delta)
    width = math.ceil(20 * k * (2 * n / s) ** k * log)
    neurons = width / (2 * k) * (s / (2 * n)) ** k
    norm = float(np.linalg.norm(second_layer(k, offset=offset)))
    rate = 1 / (2 * k * abs(float(over_sparse_constants(k, s)[0])))
    tau = min(epsilon / (4 * norm * k * neurons * n * rate), 1 / (16 * rate * k * n))
    features = math.sqrt(8 * k * neurons)
    second = (4 * math.sqrt(2) * norm * features + 1) ** 2 * math.log(2 / delta) / epsilon**2
    return OverSparseSizes(
        width=width,
        neurons=neurons,
        learning_rate=rate,
        tau=tau,
        n_train=max(lemma10_samples(n, width, tau=tau, delta=delta), math.ceil(second)),
        least_sparsity=math.ceil(4 * k * neurons * norm**2 / epsilon**2),
        steps=_steps(100 * (norm * features + epsilon) ** 2 / epsilon**2),
    )


def _steps(ratio: float) -> int:
    """Give the smallest T ≥ 1 with T / (1 + log T) ≥ ratio, by iterating T = ratio (1 + log T)."""
    steps = max(1.0, ratio)
    for _ in range(200):  # contracts, since the derivative ratio / T is below 1
        steps = max(1.0, ratio * (1 + math.log(steps)))
    return math.ceil(steps)


def _above(value: float) -> int:
    """Give the smallest whole number above `value`: at equality the bound still holds."""
    return math.floor(value) + 1


def _check_positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise UserError(f"{name}={value}. Give a number above 0.")
