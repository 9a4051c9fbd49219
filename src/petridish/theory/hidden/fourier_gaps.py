r"""Fourier gaps: majority's in closed form, other neurons' exactly, and what they give [HP App. B].

A ReLU neuron with weights ±1 and no bias that matters has σ' = ½ + ½ Maj(w ⊙ x): its gradient at a
relevant bit is ½ ξ_{k−1} in size, at another ½ ξ_{k+1}, with ξ_d the coefficient of majority at
degree d. For odd k both are 0, as majority is an odd function: a bias has to break the symmetry.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.theory.fourier import (
    DERIVATIVES,
    all_signs,
    fourier_gap,
    population_gradient_by_enumeration,
)
from petridish.theory.majority import majority_coefficient, majority_weight

Floats = NDArray[np.float64]
GapActivation = Literal["relu", "sine"]
GapWeights = Literal["uniform", "gaussian", "sign"]


# Majority


def majority_gap(n: int, k: int) -> Fraction:
    r"""Give :math:`|\xi_{k-1}| - |\xi_{k+1}|`, the Fourier gap of majority [HP Lemma B.2].

    Negative for n < 2k − 1; 0 for odd k, where both coefficients are 0 (sign(0) = 0 at even n).
    """
    _check_degree("majority_gap", n, k)
    return abs(_xi(n, k - 1)) - abs(_xi(n, k + 1))


def gradient_gap(n: int, k: int) -> Fraction:
    """Give half of `majority_gap`: the gap of a ReLU neuron's gradient at weights ±1."""
    return majority_gap(n, k) / 2


def coefficient_ratio(n: int, k: int) -> Fraction:
    r"""Give :math:`|\xi_{k-1}| / |\xi_{k+1}| = (n - k) / (k - 1)` for odd n and even k [HP B.2].

    For even n, which the source leaves out, n + 1 takes the place of n.
    """
    _check_degree("coefficient_ratio", n, k)
    if k % 2:
        raise UserError(f"coefficient_ratio: k={k} is odd, and the ratio 0/0. Give an even k.")
    return Fraction(n + 1 - n % 2 - k, k - 1)


def lemma_b2_bound(n: int, k: int) -> float:
    """Give γ_k = 0.03 (n − 1)^(−(k−1)/2), the gap that Lemma B.2 promises for n ≥ 4k."""
    _check_degree("lemma_b2_bound", n, k)
    return 0.03 / math.sqrt((n - 1) ** (k - 1))


def lemma_b2_holds(n: int, k: int) -> bool:
    """Say whether majority's gap is at least `lemma_b2_bound`, in whole numbers.

    Printed for every k and n ≥ 4k. It holds for all even k there, at even n too, by a factor of
    19 and more, and still at n = 2k; for odd k the gap is 0 and it fails.
    """
    gap = majority_gap(n, k)
    return gap > 0 and gap**2 * (n - 1) ** (k - 1) >= Fraction(9, 10_000)


def lemma_b1_weight(n: int, k: int, *, power: float = 1.5) -> float:
    r"""Give :math:`k^p \binom{n}{k} \xi_k^2`, which Lemma B.1 bounds by two constants for odd k.

    As printed, with p = 2/3, there is no such lower constant: the product falls like k^(−5/6). The
    exponent is 3/2: then the product is between (2/π)^{3/2} = 0.508 and 0.75 for all odd k and odd
    n ≥ 2k² [O'Donnell, Cor. 5.23].
    """
    return math.pow(k, power) * float(majority_weight(n, k))


def threshold_coefficient(n: int, degree: int, bias: float) -> Fraction:
    r"""Give the Fourier coefficient of 1{Σ x_i + b > 0} at a set of size `degree`.

    :math:`2^{-n} \sum_j \sum_i (-1)^i \binom{d}{i} \binom{n-d}{j-i}` over the numbers j of bits −1
    with n − 2j + b > 0.
    """
    check_whole("threshold_coefficient", 0, n=n, degree=degree)
    total = sum(
        (-1) ** i * math.comb(degree, i) * math.comb(n - degree, j - i)
        for j in range(n + 1)
        if n - 2 * j + bias > 0
        for i in range(min(degree, j) + 1)
    )
    return Fraction(total, 2**n)


def reference_gap(n: int, k: int) -> Fraction:
    """Give the gap with which those of other neurons are compared: that of a ReLU at weights 1.

    For even k it is `gradient_gap`, which Theorem 5.5 rests on. For odd k that is 0, and the neuron
    gets the smallest bias that changes its function: 1{Σ x_i + b > 0} with 1 < b < 3 for odd n, and
    0 < b < 2 for even n.
    """
    _check_degree("reference_gap", n, k)
    bias = 0 if k % 2 == 0 else 1 + n % 2
    above = threshold_coefficient(n, k + 1, bias) if k < n else Fraction(0)
    return abs(threshold_coefficient(n, k - 1, bias)) - abs(above)


# Gradients in closed form, for any n


def sine_gradient(
    weights: Floats, biases: Floats, support: Collection[int], *, rate: float, phase: float
) -> Floats:
    r"""Give E[y x_i cos(a (w · x + b) + φ)] of a batch of neurons, in closed form.

    Parameters
    ----------
    weights, biases : array, shape (neuron, n) and (neuron,)
    support : collection of int
        S, the bits of y.
    rate, phase : float
        a and φ.

    Returns
    -------
    gradient : array, shape (neuron, n)
        Bits are independent, so that the mean of χ_T exp(i a w · x) is a product over bits, of
        i sin(a w_j) inside T and cos(a w_j) outside; T is S without i, or with it.
    """
    inside = _inside(support, weights.shape[1])
    sine, cosine = np.sin(rate * weights), np.cos(rate * weights)
    others = _without_each(np.where(inside, sine, cosine))
    turned = np.cos(rate * biases + phase + (inside.sum() - 1) * math.pi / 2)[:, None]
    gradient: Floats = turned * others * np.where(inside, cosine, -sine)
    return gradient


def polynomial_gradient(
    weights: Floats, support: Collection[int], *, degree: int, leading: float
) -> Floats:
    r"""Give E[y x_i σ'(w · x + b)] for a polynomial σ of degree at most |S|, any n.

    A polynomial of degree d − 1 in x has no coefficient beyond that degree, and at S ∖ {i} none but
    that of its leading term: with σ(z) = a z^d + … and d = |S| the gradient is
    :math:`a\, d! \prod_{j \in S, j \ne i} w_j` on S and 0 elsewhere; with d < |S| it is 0.
    """
    inside = _inside(support, weights.shape[1])
    if degree > inside.sum():
        raise UserError(
            f"polynomial_gradient: degree={degree} is above |S|={inside.sum()}, where there is no "
            "short form. Enumerate the inputs instead."
        )
    gradient = np.zeros_like(weights)
    if degree == inside.sum():
        gradient[:, inside] = leading * math.factorial(degree) * _without_each(weights[:, inside])
    return gradient


def product_gradient(weights: Floats, support: Collection[int]) -> Floats:
    r"""Give E[y ∂f/∂w_{li}] of a PolyNet f(x) = Π_l (w_l · x + b_l) with k = |S| factors, any n.

    Without factor l the product has the degree k − 1: on S the gradient is the permanent of the
    weights without row l and column i, over the columns S; elsewhere it is 0.
    """
    inside = np.flatnonzero(_inside(support, weights.shape[1]))
    k = len(weights)
    if k != len(inside):
        raise UserError(
            f"product_gradient: {k} factors and |S|={len(inside)} bits. Give as many of both."
        )
    gradient = np.zeros_like(weights)
    rows = np.arange(k)
    for place, bit in enumerate(inside):
        columns = np.delete(inside, place)
        for factor in range(k):
            minor = weights[np.ix_(rows != factor, columns)]
            gradient[factor, bit] = _permanent(minor)
    return gradient


def _permanent(matrix: Floats) -> float:
    """Average Π_i δ_i Π_j (δ · column j) over the signs δ with δ_1 = 1 [Glynn 2010]."""
    if not len(matrix):
        return 1.0
    signs = np.ones((2 ** (len(matrix) - 1), len(matrix)))
    signs[:, 1:] = all_signs(len(matrix) - 1)
    return float(np.mean(signs.prod(axis=1) * (signs @ matrix).prod(axis=1)))


def _without_each(factors: Floats) -> Floats:
    """Give the product of each row without its i-th factor; no division, so that 0 may occur."""
    before = np.ones_like(factors)
    before[:, 1:] = np.cumprod(factors[:, :-1], axis=1)
    after = np.ones_like(factors)
    after[:, :-1] = np.cumprod(factors[:, :0:-1], axis=1)[:, ::-1]
    return before * after


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
    r"""Draw neurons and give the exact Fourier gap Γ of each [HP Figs B.7, B.8 left].

    Parameters
    ----------
    activation : {"relu", "sine"}
        σ' = 1{z > 0}, or sin(z/√n) as in the source for even k and cos(z/√n) for odd k, where the
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
        bias has no gap at all, and its bias is drawn like a weight, as in the source's networks.
    """
    _check_degree("random_gaps", n, k)
    check_whole("random_gaps", 1, trials=trials)
    drawn = _draw(weights, (trials, n + 1), rng)
    w, b = drawn[:, :n], drawn[:, n] * (k % 2 if activation == "relu" else 0)
    if activation == "sine":
        phase = 0.0 if k % 2 else -math.pi / 2  # cos(z − π/2) = sin z
        gradient = sine_gradient(w, b, range(k), rate=1 / math.sqrt(n), phase=phase)
    else:
        gradient = population_gradient_by_enumeration(DERIVATIVES["relu"](), w, b, range(k))
    return fourier_gap(gradient, range(k))


def _draw(weights: GapWeights, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    if weights == "uniform":
        return rng.uniform(-1, 1, shape)
    if weights == "gaussian":
        return rng.standard_normal(shape)
    if weights == "sign":
        return rng.choice([-1.0, 1.0], shape)
    raise UserError(f"weights={weights!r}. Give 'uniform', 'gaussian' or 'sign'.")


# From a gap to the set


def proposition_b7_samples(n: int, gap: float, *, delta: float = 0.01) -> int:
    r"""Give examples from which the k largest entries of a gradient are S [HP Prop. B.7].

    The source says :math:`O(\log n / \gamma^2)`. Here its constant is worked out, for stochastic
    gradients in [−1, 1] such as a ReLU's: by Hoeffding's inequality and a union over n entries,
    :math:`m \ge 8 \log(2n/\delta) / \gamma^2` puts all of them within γ/2 with probability 1 − δ.

    Parameters
    ----------
    n : int
        Bits.
    gap : float
        The strict gap γ of σ' itself, for weights ±1 `gradient_gap`, half of majority's.
    delta : float, default=0.01
        Chance of failure allowed.
    """
    check_whole("proposition_b7_samples", 1, n=n)
    if not gap > 0 or not 0 < delta < 1:
        raise UserError(
            f"proposition_b7_samples: gap={float(gap)}, delta={delta}. "
            "Give a gap above 0 and a probability of failure between 0 and 1."
        )
    return math.ceil(8 * math.log(2 * n / delta) / float(gap) ** 2)


def recovery_probability(n: int, k: int, m: int, *, trials: int, rng: np.random.Generator) -> float:
    """Give the share of samples of m whose gradient has its k largest entries on S [HP Prop. B.7].

    One ReLU neuron with weights 1 and the correlation loss; k is even. Random signs change the
    signs of the gradient's entries alone. Ties count as active, as in the source's 1{Σ x_i ≥ 0};
    that matters for even n only, and there for no coefficient of odd degree.
    """
    from petridish.theory.pareto.recovery import label_sums
    from petridish.theory.pareto.under_sparse import UnderSparse

    check_whole("recovery_probability", 1, m=m, trials=trials)
    recipe = UnderSparse(n=n, k=k, s=0)  # no ones at all: every weight is the same
    found = 0
    for _ in range(trials):
        size = np.abs(label_sums(recipe, m, rng))
        found += bool(size[:k].min() > size[k:].max())
    return found / trials


def _xi(n: int, degree: int) -> Fraction:
    return majority_coefficient(n, degree, tie=0) if degree <= n else Fraction(0)


def _inside(support: Collection[int], n: int) -> NDArray[np.bool_]:
    inside = np.zeros(n, np.bool_)
    inside[list(support)] = True
    return inside


def _check_degree(owner: str, n: int, k: int) -> None:
    check_whole(owner, 1, n=n, k=k)
    if k > n:
        raise UserError(f"{owner}: k={k} is above n={n}. Give k from 1 to n.")
