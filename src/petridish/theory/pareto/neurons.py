r"""How likely good neurons are: one draw, a network of them, and the width that suffices.

A sparse neuron starts with s ones at random places. It is *good* if they hold the parity's whole
set S (over-sparse, s ≥ k) [PF B.2.1], or lie within it (under-sparse, s < k) [PF B.3]. In the
paper's symmetric networks of width r half of the neurons are copies, so `draws` is r / 2 there.
"""

from __future__ import annotations

import math
from fractions import Fraction

from petridish.errors import UserError, check_whole
from petridish.theory.checks import check_probability
from petridish.theory.smallest import first_true


def good_chance(n: int, k: int, s: int) -> Fraction:
    r"""Return the probability that an s-sparse neuron is good.

    :math:`\binom{n-k}{s-k} / \binom{n}{s}` for s ≥ k [PF Lemma 7], and
    :math:`\binom{k}{s} / \binom{n}{s}` for s < k [PF Theorem 21]; they agree at s = k.
    """
    check_whole("good_chance", 0, n=n, k=k, s=s)
    if max(k, s) > n:
        raise UserError(f"k={k} and s={s}, but there are n={n} bits. Raise n.")
    good = math.comb(n - k, s - k) if s >= k else math.comb(k, s)
    return Fraction(good, math.comb(n, s))


def lemma7_bound(n: int, k: int, s: int) -> Fraction:
    """Return the lower bound (s / 2n)^k on `good_chance` [PF Lemma 7].

    Stated for s > 4k, where it holds. Beyond the lemma: it holds for every s ≥ 2(k − 1), where each
    factor (s − i) / (n − i) is at least s / 2n, and for k ≤ 5 for every s ≥ k; from k = 6 on it
    fails for s near k and large n, up to s ≈ 1.15 k.
    """
    check_whole("lemma7_bound", 0, k=k, s=s)
    check_whole("lemma7_bound", 1, n=n)
    return Fraction(s, 2 * n) ** k


def chance_of_good(draws: int, chance: float, *, wanted: int = 1) -> float:
    r"""Return the probability that at least `wanted` of `draws` independent neurons are good.

    Parameters
    ----------
    draws : int
        Independent neurons.
    chance : float
        Probability that one is good, from `good_chance`; divided by the number of biases where
        a neuron must draw a certain bias too.
    wanted : int, default=1
        Good neurons wanted.

    Returns
    -------
    probability : float
        The binomial tail :math:`\Pr[\mathrm{Bin}(r, p) \ge j] = I_p(j, r - j + 1)`.
    """
    check_whole("chance_of_good", 0, draws=draws, wanted=wanted)
    if not 0 <= chance <= 1:
        raise UserError(f"chance_of_good: chance={chance}. Give a probability.")
    if wanted == 0:
        return 1.0
    if wanted > draws:
        return 0.0
    from scipy.special import betainc  # slow to import

    return float(betainc(wanted, draws - wanted + 1, float(chance)))


def draws_for_good(chance: float, probability: float, *, wanted: int = 1) -> int:
    """Return the fewest draws that hold `wanted` good neurons with at least `probability`."""
    if not 0 < chance <= 1 or not 0 <= probability < 1:
        raise UserError(
            f"draws_for_good: chance={chance}, probability={probability}. "
            "Give a chance above 0 and a probability below 1."
        )
    enough = first_true(
        lambda draws: chance_of_good(draws, chance, wanted=wanted) >= probability, largest=2**62
    )
    assert enough is not None  # any chance above 0 is met in the end
    return enough


def lemma15_width(n: int, k: int, s: int, delta: float) -> int:
    r"""Return the printed width :math:`20 k (2n/s)^k \log(2k/\delta)` [PF Lemma 15]."""
    check_probability(delta=delta)
    return math.ceil(20 * k * float(1 / lemma7_bound(n, k, s)) * math.log(2 * k / delta))


def good_init_width(n: int, k: int, s: int, delta: float) -> int:
    r"""Return a width that makes an initialisation good with probability at least 1 − δ.

    Lemma 15 with the exact chance p of a good neuron in place of its bound, and with k/2 biases:
    at :math:`r \ge 10 k \log(k/\delta) / p` every bias has between half and 3/2 of the expected
    rp/k good neurons, by the two Chernoff bounds exp(−μ/8) and exp(−μ/10).
    """
    check_probability(delta=delta)
    return math.ceil(10 * k * math.log(k / delta) / float(good_chance(n, k, s)))


def chance_within(draws: int, chance: float, *, low: float, high: float) -> float:
    """Return the probability that the number of good neurons among `draws` lies in [low, high]."""
    first, last = max(0, math.ceil(low)), math.floor(high)
    return chance_of_good(draws, chance, wanted=first) - chance_of_good(
        draws, chance, wanted=last + 1
    )
