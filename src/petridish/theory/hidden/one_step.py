r"""One big step of gradient descent finds the parity, and a second layer reads it [HP Thm 5.5].

Neurons start in pairs of equal weights w ∈ {±1}^n and biases b, with opposite outputs u = ±1, so
that the network is 0. With n odd and |b| < 1 a neuron's derivative is a majority, and its gradient
is ∓½ ξ_{k−1} on S and ∓½ ξ_{k+1} elsewhere, ξ_d being Majority's coefficient of degree d. A step
with the rate η_0 = 1 / (k |ξ_{k−1}|) and a weight decay of 1 leaves

    ŵ_j = u χ_S(w) sign(ξ_{k−1}) w_j / 2k   on S,

and weights (k − 1) / (n − k) times as large elsewhere. Up to those every neuron has become
relu(± w_S · x_S / 2k + b): after flipping the inputs' signs by w_S, which costs the parity a sign
at most, a function of s_x = Σ_S x_j alone. S is the first k bits: all bits are alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.theory.checks import check_even, check_probability
from petridish.theory.fourier import all_signs
from petridish.theory.majority import majority_coefficient
from petridish.theory.parity_step import least_hinge_loss

Floats = NDArray[np.float64]
Version = Literal["printed", "proved"]
Lemma = Literal["B.4", "B.5"]


# The step


def first_gradient(n: int, k: int) -> tuple[Fraction, Fraction]:
    """Return the modulus of a neuron's gradient on S and elsewhere, ½|ξ_{k−1}| and ½|ξ_{k+1}|.

    [HP Lemma B.3], for odd n and even k. Their ratio is (n − k) / (k − 1) exactly; their difference
    is the Fourier gap of the neuron's derivative, half of Majority's.
    """
    _check_sizes(n, k)
    inside, outside = (abs(majority_coefficient(n, degree)) / 2 for degree in (k - 1, k + 1))
    return inside, outside


def first_rate(n: int, k: int) -> float:
    """Return η_0 = 1 / (k |ξ_{k−1}|) [HP Thm 5.5]."""
    return float(1 / (2 * k * first_gradient(n, k)[0]))


def stepped_weights(signs: Sequence[int] | NDArray[np.int64], output: int, k: int) -> Floats:
    """Return a neuron's weights −η_0 g after the population's step, from its signs w and u."""
    w = np.asarray(signs, np.float64)
    n = len(w)
    inside, outside = first_gradient(n, k)
    sign = {-1: -1.0, 1: 1.0}[output] * float(np.prod(w[:k]))  # w_j times χ_{S ∖ j} is χ_S
    xi_in, xi_out = (math.copysign(1, majority_coefficient(n, d)) for d in (k - 1, k + 1))
    sizes = np.where(np.arange(n) < k, xi_in, xi_out * float(outside / inside))
    return sign * sizes * w / (2 * k)


def is_good(signs: Sequence[int] | NDArray[np.int64], output: int, k: int) -> bool:
    """Return whether a neuron has w_j = u sign(ξ_{k−1}) on all of S [HP Lemma B.4].

    Its weights on S become 1/2k; those of its twin become −1/2k.
    """
    w = np.asarray(signs)
    sign = 1 if majority_coefficient(len(w), k - 1) > 0 else -1
    return bool(np.all(w[:k] == output * sign))


# The second layer


def bias_grid(k: int) -> Floats:
    """Return the biases that a neuron may draw: −1 + 1/k, …, 1 − 1/k in steps of 1/k.

    These are 2k − 1; the proof takes the chance of each for 1/2k in one line, and for 1/k in the
    next.
    """
    check_even("bias_grid", k)
    return np.arange(1 - k, k) / k


def step_biases(k: int, lemma: Lemma = "B.5") -> Floats:
    """Return the k biases of the good neurons: −½ + (i + 1)/k in Lemma B.4, −½ + i/k in B.5.

    Neither set makes the parity with rising neurons alone: the first has no bend at the last value
    of s_x but one, the second is 0 at the first value. With the twin of one neuron, which every
    network has, the second does (`parity_layer`). The first has a bias of 1 for k = 2.
    """
    check_even("step_biases", k)
    first = {"B.4": 2, "B.5": 1}[lemma]
    return -0.5 + np.arange(first, k + first) / k


def printed_layer(k: int) -> Floats:
    """Return u* as printed: 8k (−1)^{i+1} for i ≤ k − 2, then 6k and −2k [HP B.2.1, Claim 5].

    Over the biases of Lemma B.4 it is −2χ_S, not 2χ_S, and 6 at s_x = k.
    """
    check_even("printed_layer", k)
    signs = (-1.0) ** (np.arange(1, k - 1) + 1)
    return k * np.concatenate([8 * signs, [6.0, -2.0]])


def parity_layer(k: int) -> Floats:
    """Return the second layer that makes 2χ_S of k rising neurons and one falling, shape (k + 1,).

    Over the biases of Lemma B.5, then the twin of the last: 8k (−1)^{i+1} for i < k, 2 − 4k for
    i = k, and 2 for the twin. Its entries are at most 8k and its norm at most 8k√k, as the text
    says of its own.
    """
    check_even("parity_layer", k)
    signs = (-1.0) ** (np.arange(1, k) + 1)
    return np.concatenate([8 * k * signs, [2.0 - 4 * k, 2.0]])


def network_loss(k: int, signs: NDArray[np.int64], biases: Floats) -> float:
    """Return the least hinge loss over the features of whole pairs, as n → ∞.

    `signs` are the pairs' weights on S, shape (pair, k), whether good or not; `biases` (pair,).
    """
    x = all_signs(k).astype(np.float64)  # (input, k)
    sums = x @ np.asarray(signs, np.float64).T / (2 * k)  # (input, pair)
    features = np.maximum(np.hstack([sums + biases, -sums + biases]), 0)
    return least_hinge_loss(features, np.prod(x, axis=1), np.full(2**k, 2.0**-k))


def loss_after_step(n: int, k: int) -> float:
    r"""Return the hinge loss after the population's step, at finite n [HP Lemma B.4].

    Of `parity_layer` over k good neurons and the twin of the last, with equal signs on the
    irrelevant bits: these add (k − 1) / (2k (n − k)) times a sum of n − k signs to every neuron, so
    that the mean is over two binomial laws. The lemma says :math:`16 \epsilon k^2 n` at most, from
    `least_bits` on.
    """
    from scipy.stats import binom

    _check_sizes(n, k)
    others = np.arange(k - n, n - k + 1, 2)  # Σ of the irrelevant signs
    shift = others * (k - 1) / (2 * k * (n - k))
    chance = binom.pmf((others + n - k) // 2, n - k, 0.5)
    biases, layer = step_biases(k)[:, None], parity_layer(k)
    loss = 0.0
    for minus in range(k + 1):
        z = (k - 2 * minus) / (2 * k) + shift
        features = np.maximum(np.vstack([z + biases, biases[-1] - z]), 0)  # (neuron, others)
        hinge = np.maximum(1 - (-1) ** minus * (layer @ features), 0)
        loss += math.comb(k, minus) / 2**k * float(chance @ hinge)
    return loss


# Width


def good_pair_chance(k: int) -> Fraction:
    """Return the probability that a pair has equal signs on S and a given bias, 2^{1−k} / (2k − 1).

    One of its neurons is then good. Printed is 1 / k2^{k−1}, about twice as much.
    """
    check_even("good_pair_chance", k)
    return Fraction(1, (2 * k - 1) * 2 ** (k - 1))


def chance_of_all_biases(width: int, k: int) -> float:
    r"""Return the probability that each of the k biases has a good pair, among width / 2 pairs.

    :math:`\sum_j (-1)^j \binom{k}{j} (1 - jp)^{r/2}` with p from `good_pair_chance`.
    """
    check_whole("chance_of_all_biases", 0, width=width)
    chance, pairs = good_pair_chance(k), width // 2
    return float(sum((-1) ** j * math.comb(k, j) * (1 - j * chance) ** pairs for j in range(k + 1)))


def width_for_all_biases(k: int, delta: float, *, version: Version = "proved") -> int:
    r"""Return the width that has a good pair for every bias with probability 1 − δ [HP Lemma B.5].

    Printed is :math:`k 2^k \log(k/\delta)`, from twice the chance of a good pair; the proof gives
    :math:`(2k - 1) 2^k \log(k/\delta)`.
    """
    check_probability(delta=delta)
    factor = {"printed": k, "proved": 2 * k - 1}[version]
    width = math.ceil(math.ldexp(factor, k) * math.log(k / delta))
    return width + width % 2


def representing_share(k: int, width: int, *, draws: int, rng: np.random.Generator) -> float:
    """Return the share of drawn networks whose features make the parity exactly, as n → ∞.

    More than `chance_of_all_biases`: a neuron with mixed signs on S serves as well as a good one.
    """
    grid = bias_grid(k)
    found = 0
    for _ in range(draws):
        signs = 1 - 2 * rng.integers(0, 2, size=(width // 2, k))
        biases = grid[rng.integers(len(grid), size=width // 2)]
        found += network_loss(k, signs, biases) < 1e-6
    return found / draws


# Sizes


def least_bits(k: int, epsilon: float) -> int:
    """Return the fewest bits for which the proof says anything: n − k > 32 k² (k − 1)² log(2k/ε).

    Then the irrelevant weights shift the second layer's output by less than 1 with probability
    1 − ε, by Hoeffding's inequality. The text has 2^11 k^4 log(2k/ε) times unknown constants, for
    an inequality whose exponent is 4 times too large.
    """
    check_probability(epsilon=epsilon)
    log = math.log(2 * k / epsilon)
    bits = k + math.floor(32 * k**2 * (k - 1) ** 2 * log) + 1
    return bits + 1 - bits % 2


def gradient_precision(n: int, k: int, epsilon: float, *, version: Version = "proved") -> float:
    r"""Return the precision τ of the first gradient that suffices [HP Lemma B.4].

    Parameters
    ----------
    n, k : int
        Bits (odd) and degree of the parity (even).
    epsilon : float
        Probability of inputs on which the network may be wrong.
    version : {"proved", "printed"}, default="proved"
        Printed is :math:`|\xi_{k-1}| / 16 k \sqrt{2n \log(2k/\epsilon)}`. Proved: every good
        neuron moves by at most 1/8k², which `parity_layer` turns into less than 1,
        :math:`\eta_0 [(k + 1) \tau + (\frac12 |\xi_{k+1}| + \tau) \sqrt{2 (n - k) \log(2k /
        \epsilon)}] \le 1 / 8k^2`.

    Returns
    -------
    tau : float
        0 where n is too small for any precision to suffice (`least_bits`).
    """
    check_probability(epsilon=epsilon)
    inside, outside = (float(value) for value in first_gradient(n, k))
    log = math.log(2 * k / epsilon)
    if version == "printed":
        return 2 * inside / (16 * k * math.sqrt(2 * n * log))
    root = math.sqrt(2 * (n - k) * log)
    return max(0.0, (2 * inside / (8 * k) - outside * root) / (k + 1 + root))


def gradient_samples(n: int, width: int, *, tau: float, delta: float) -> int:
    r"""Return the batch :math:`2 \log(4nr/\delta) / \tau^2` of the first step [HP Lemma B.5].

    Every derivative is then within τ of its mean with probability 1 − δ, by Hoeffding's inequality
    for n r + r terms in [−1, 1].
    """
    check_whole("gradient_samples", 1, n=n, width=width)
    if tau <= 0:
        raise UserError(
            f"gradient_samples: tau={tau}. Give a precision above 0; n may be too small, see "
            "least_bits."
        )
    check_probability(delta=delta)
    return math.ceil(2 * math.log(4 * n * width / delta) / tau**2)


@dataclass(frozen=True, kw_only=True)
class OneStepSizes:
    """What [HP Thm 5.5] asks for, with its constants worked out."""

    width: int  # r
    first_rate: float  # η_0
    tau: float  # precision of the first gradient
    batch_size: int  # B
    steps: int  # T
    second_rate: float  # η_t of the second layer


def theorem55_sizes(n: int, k: int, *, epsilon: float, version: Version = "proved") -> OneStepSizes:
    r"""Work out the sizes of [HP Thm 5.5] for an expected loss of ε, from the exact ξ.

    Parameters
    ----------
    n, k : int
        Bits (odd) and degree of the parity (even).
    epsilon : float
        Expected hinge loss, below ½.
    version : {"proved", "printed"}, default="proved"
        The statement's T is :math:`2^9 k^3 r n^2 / \epsilon^2`; its own last line needs
        :math:`2^{12}`. Its B has lost powers: with τ as defined it is :math:`2^{10} k^2 n
        \log(128 k^3 n/\epsilon) \log(32nr/\epsilon) / \xi_{k-1}^2`, where the text has 2^8 and
        |ξ|; in k this is of the order :math:`k^{7/2} \binom{n}{k-1}`, printed :math:`k^{7/6}`.
        Both versions take B from their τ.

    Returns
    -------
    sizes : OneStepSizes
    """
    check_probability(epsilon=epsilon)
    width = width_for_all_biases(k, epsilon / 8, version=version)
    tau = gradient_precision(n, k, epsilon / (64 * k**2 * n), version=version)
    power = {"printed": 9, "proved": 12}[version]
    steps = math.ceil(2**power * k**3 * width * n**2 / epsilon**2) + 1
    return OneStepSizes(
        width=width,
        first_rate=first_rate(n, k),
        tau=tau,
        batch_size=gradient_samples(n, width, tau=tau, delta=epsilon / 8),
        steps=steps,
        second_rate=4 * k**1.5 / (n * math.sqrt(width * (steps - 1))),
    )


# Fixed features


def kernel_limit(
    n: int, k: int, dimension: int, radius: float, *, version: Version = "printed"
) -> float:
    r"""Return the hinge loss 1 − ε that fixed features exceed on some parity [HP Thm 5.6].

    Parameters
    ----------
    n, k : int
        Bits, and degree of the parity.
    dimension : int
        Number D of features; their vector Ψ(x) has a norm of at most 1.
    radius : float
        Bound R on the norm of the weights over the features.
    version : {"printed", "proved"}, default="printed"
        Printed is :math:`\epsilon = R \sqrt{D / \binom{n}{k}}`. D is not needed: the loss is at
        least :math:`1 - R \|E[\chi_S \Psi]\|`, and by Bessel's inequality the squares of these
        norms sum to at most :math:`E\|\Psi\|^2 \le 1` over all S, so that
        :math:`\epsilon = R / \sqrt{\binom{n}{k}}`. With features of at most 1 *each*, D comes back:
        all :math:`\binom{n}{k}` parities as features have a loss of 1 − R.

    Returns
    -------
    loss : float
        At least 0. The text says the same of the 0-1 loss, where it is false for every ε ≤ 1: that
        loss does not change with the size of w. All parities as features, scaled to norm 1, have an
        error of 0 for every R < ε. The one feature Ψ ≡ 1 (D = 1) has an error of ½ on every parity,
        which refutes it for ε ≤ ½ even at D = 1.
    """
    check_whole("kernel_limit", 1, n=n, k=k, dimension=dimension)
    features = {"printed": dimension, "proved": 1}[version]
    return max(0.0, 1 - radius * math.sqrt(features / math.comb(n, k)))


def _check_sizes(n: int, k: int) -> None:
    check_even("one_step", k)
    if not isinstance(n, int) or n % 2 == 0 or n <= k:
        raise UserError(
            f"one_step: n={n}, k={k}. Give an odd number of bits above k: with an even one the "
            "neurons are no majorities."
        )
