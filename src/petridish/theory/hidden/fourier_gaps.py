r"""Fourier gaps: majority's in closed form, and exact ones of random neurons [HP App. B].

A ReLU neuron with weights ±1 and no bias that matters has σ' = ½ + ½ Maj(w ⊙ x): its gradient at a
relevant bit is ½ ξ_{k−1} in size, at another ½ ξ_{k+1}, with ξ_d the coefficient of majority at
degree d. For odd k both are 0, as majority is an odd function: a bias has to break the symmetry.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.theory.checks import check_even, check_size
from petridish.theory.closed_form import sine_gradient
from petridish.theory.fourier import (
    fourier_gap,
    population_gradient_by_enumeration,
    relu_derivative,
)
from petridish.theory.majority import krawtchouk, majority_coefficient, majority_weight

Floats = NDArray[np.float64]
GapActivation = Literal["relu", "sine"]
GapWeights = Literal["uniform", "gaussian", "sign"]


# Majority


def majority_gap(n: int, k: int) -> Fraction:
    r"""Return :math:`|\xi_{k-1}| - |\xi_{k+1}|`, the Fourier gap of majority [HP Lemma B.2].

    Negative for n < 2k − 1; 0 for odd k, where both coefficients are 0 (sign(0) = 0 at even n).
    """
    check_size("majority_gap", n, k, least=1)
    return abs(_xi(n, k - 1)) - abs(_xi(n, k + 1))


def gradient_gap(n: int, k: int) -> Fraction:
    """Return half of `majority_gap`: the gap of a ReLU neuron's gradient at weights ±1."""
    return majority_gap(n, k) / 2


def coefficient_ratio(n: int, k: int) -> Fraction:
    r"""Return :math:`|\xi_{k-1}| / |\xi_{k+1}| = (n - k) / (k - 1)` for odd n and even k [HP B.2].

    For even n, which the paper leaves out, n + 1 takes the place of n.
    """
    check_size("coefficient_ratio", n, k, least=1)
    check_even("coefficient_ratio", k)
    return Fraction(n + 1 - n % 2 - k, k - 1)


def lemma_b2_bound(n: int, k: int) -> float:
    """Return γ_k = 0.03 (n − 1)^(−(k−1)/2), the gap that Lemma B.2 promises for n ≥ 4k."""
    check_size("lemma_b2_bound", n, k, least=1)
    return 0.03 / math.sqrt((n - 1) ** (k - 1))


def lemma_b2_holds(n: int, k: int) -> bool:
    """Return whether majority's gap is at least `lemma_b2_bound`, in whole numbers.

    Printed for every k and n ≥ 4k. It holds for all even k there, at even n too, by a factor of
    19 and more, and still at n = 2k; for odd k the gap is 0 and it fails.
    """
    gap = majority_gap(n, k)
    return gap > 0 and gap**2 * (n - 1) ** (k - 1) >= Fraction(9, 10_000)


def lemma_b1_weight(n: int, k: int, *, power: float = 1.5) -> float:
    r"""Return :math:`k^p \binom{n}{k} \xi_k^2`, which Lemma B.1 bounds by two constants for odd k.

    As printed, with p = 2/3, there is no such lower constant: the product falls like k^(−5/6). The
    exponent is 3/2: then the product is between (2/π)^{3/2} = 0.508 and 0.75 for all odd k and odd
    n ≥ 2k² [O'Donnell, Cor. 5.23].
    """
    return math.pow(k, power) * float(majority_weight(n, k))


def threshold_coefficient(n: int, degree: int, bias: float) -> Fraction:
    r"""Return the Fourier coefficient of 1{Σ x_i + b > 0} at a set of size `degree`.

    :math:`2^{-n} \sum_j` `krawtchouk` (n, j, d) over the numbers j of bits −1 with n − 2j + b > 0.
    """
    check_whole("threshold_coefficient", 0, n=n, degree=degree)
    total = sum(krawtchouk(n, j, degree) for j in range(n + 1) if n - 2 * j + bias > 0)
    return Fraction(total, 2**n)


def reference_gap(n: int, k: int) -> Fraction:
    """Return the gap with which those of other neurons are compared: that of a ReLU at weights 1.

    For even k it is `gradient_gap`, which Theorem 5.5 rests on. For odd k that is 0, and the neuron
    gets the smallest bias that changes its function: 1{Σ x_i + b > 0} with 1 < b < 3 for odd n, and
    0 < b < 2 for even n.
    """
    check_size("reference_gap", n, k, least=1)
    bias = 0 if k % 2 == 0 else 1 + n % 2
    above = threshold_coefficient(n, k + 1, bias) if k < n else Fraction(0)
    return abs(threshold_coefficient(n, k - 1, bias)) - abs(above)


def noisy_gap(gap: float, epsilon: float) -> float:
    """Return the gap that is left of a gradient if labels are flipped with ½ − ε [HP App. B.3.6].

    A flip changes the sign of y in E[y x_i σ'], so that (½ + ε) − (½ − ε) = 2ε of every entry is
    left, and of the gap. The text has ε; its Figure B.12 counts ε = 1 − 2p, which agrees with this.
    """
    if not 0 <= epsilon <= 0.5:
        raise UserError(f"noisy_gap: epsilon={epsilon}. Give a number from 0 to ½.")
    return 2 * epsilon * gap


# Gaps of random neurons


def random_gaps(
    activation: GapActivation,
    weights: GapWeights,
    n: int,
    k: int,
    *,
    trials: int,
    rng: np.random.Generator,
) -> Floats:
    r"""Draw neurons and return the exact Fourier gap Γ of each [HP Figs B.7, B.8 left].

    Parameters
    ----------
    activation : {"relu", "sine"}
        σ' = 1{z > 0}, or sin(z/√n) as in the paper for even k and cos(z/√n) for odd k, where the
        sine's own coefficients are 0.
    weights : {"uniform", "gaussian", "sign"}
        Independent entries: uniform on ±1, standard normal, or ±1. A ReLU's gap does not depend on
        their scale.
    n, k : int
        Bits, and relevant ones; n up to 24 for a ReLU.
    trials : int
        Neurons.
    rng : numpy Generator

    Returns
    -------
    gaps : array, shape (trial,)
        At S = {0 … k − 1}, as all bits are alike. Biases are 0 for even k. For odd k a ReLU without
        bias has no gap at all, and its bias is drawn like a weight, as in the paper's networks.
    """
    check_size("random_gaps", n, k, least=1)
    check_whole("random_gaps", 1, trials=trials)
    drawn = _draw(weights, (trials, n + 1), rng)
    w, b = drawn[:, :n], drawn[:, n] * (k % 2 if activation == "relu" else 0)
    if activation == "sine":
        phase = 0.0 if k % 2 else -math.pi / 2  # cos(z − π/2) = sin z
        gradient = sine_gradient(w, b, range(k), rate=1 / math.sqrt(n), phase=phase)
    else:
        gradient = population_gradient_by_enumeration(relu_derivative, w, b, range(k))
    return fourier_gap(gradient, range(k))


def _draw(weights: GapWeights, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    if weights == "uniform":
        return rng.uniform(-1, 1, shape)
    if weights == "gaussian":
        return rng.standard_normal(shape)
    if weights == "sign":
        return rng.choice([-1.0, 1.0], shape)
    raise UserError(f"weights={weights!r}. Give 'uniform', 'gaussian' or 'sign'.")


def _xi(n: int, degree: int) -> Fraction:
    return majority_coefficient(n, degree, tie=0) if degree <= n else Fraction(0)
