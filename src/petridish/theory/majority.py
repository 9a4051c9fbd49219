r"""Fourier coefficients of Majority and Half, exactly, for every number of bits and degree.

Both functions are symmetric, so a coefficient depends on the size of its set alone, its *degree*.
Everything here is a `Fraction`: no size overflows, and tests compare without a tolerance.

A tie, Σ x_i = 0, needs an even number of bits. The paper settles it in two ways: sign(0) = −1
in [PF App. B.3], 1{Σ x_i ≥ 0} in the proof of [PF Lemma 8]. Here it is an argument: the value of
sign(0), which is −1, 0 or +1, or of the step function at zero, which is 0, ½ or 1. A tie moves
the coefficients of even degree alone.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from petridish.errors import UserError, check_whole

Tie = Literal[-1, 0, 1]


@lru_cache(maxsize=4096)
def half_coefficient(n: int, degree: int) -> Fraction:
    r"""Return a Fourier coefficient of Half_n(x) = 1{Σ x_i = 0} [PF Lemma 17].

    Parameters
    ----------
    n : int
        Bits; 0 is allowed, Half_0 is the constant 1.
    degree : int
        Size of the coefficient's set, 0 … n.

    Returns
    -------
    coefficient : Fraction
        :math:`(-1)^j \binom{m}{j} \binom{2m}{2j}^{-1} \binom{2m}{m} 2^{-2m}` for n = 2m and
        degree 2j. It is 0 for odd degrees, since Half is even, and for odd n, where no tie exists.
    """
    _check(n, degree)
    if n % 2 or degree % 2:
        return Fraction(0)
    m, j = n // 2, degree // 2
    sign = -1 if j % 2 else 1
    return Fraction(sign * math.comb(m, j) * math.comb(n, m), math.comb(n, degree) * 4**m)


@lru_cache(maxsize=4096)
def majority_coefficient(n: int, degree: int, *, tie: Tie = -1) -> Fraction:
    r"""Return a Fourier coefficient of Maj_n(x) = sign(Σ x_i) [PF Lemma 17; O'Donnell Thm 5.19].

    Parameters
    ----------
    n, degree : int
        Bits, and size of the coefficient's set.
    tie : {-1, 0, 1}, default=-1
        The value of sign(0). The default is the paper's; it matters for even n and degree alone.

    Returns
    -------
    coefficient : Fraction
        For an odd degree, Half's coefficient one bit and one degree lower: Half_{n−1}(degree − 1)
        for odd n, and Half_n(degree − 1) for even n, where Maj_n is Maj_{n+1} averaged over the
        last bit. For an even degree, tie · Half_n(degree).
    """
    _check(n, degree)
    if tie not in (-1, 0, 1):
        raise UserError(f"majority_coefficient: tie={tie!r}. Give sign(0), which is -1, 0 or 1.")
    if degree % 2 == 0:
        return tie * half_coefficient(n, degree)
    return half_coefficient(n - n % 2, degree - 1)


def step_coefficient(n: int, degree: int, *, at_zero: int | Fraction = 0) -> Fraction:
    """Return a Fourier coefficient of the step 1{Σ x_i > 0}, with the value `at_zero` at ties.

    It is ½ · (Maj_n with sign(0) = 0) + (at_zero − ½) · Half_n + ½ · 1{degree = 0}, the derivative
    of a ReLU whose weights are all 1.
    """
    odd = majority_coefficient(n, degree, tie=0) / 2
    even = (at_zero - Fraction(1, 2)) * half_coefficient(n, degree)
    return odd + even + Fraction(degree == 0, 2)


def majority_weight(n: int, degree: int) -> Fraction:
    r"""Return :math:`W^d = \binom{n}{d} \widehat{\mathrm{Maj}}_n(d)^2`, with sign(0) = 0."""
    return math.comb(n, degree) * majority_coefficient(n, degree, tie=0) ** 2


def rho(degree: int) -> float:
    r"""Return the printed :math:`\rho(v) = \frac{2}{\pi v 2^v} \binom{v-1}{(v-1)/2}` [PF Lemma 8].

    It is half of `limit_weight`, so that «weight ≥ ρ(v)» is weaker than it could be. «Weight ≤
    2ρ(v)» is false for every odd n, which is what the lemma has, and true for every even n.
    """
    return limit_weight(degree) / 2


def limit_weight(degree: int) -> float:
    r"""Return the limit of `majority_weight` for n → ∞ [O'Donnell Thm 5.22].

    :math:`[z^v] \frac{2}{\pi} \arcsin z = \frac{4}{\pi v 2^v} \binom{v-1}{(v-1)/2}` for odd v. For
    odd n the weight falls towards it, by the factor 1 − v / (n + 1)(n − v + 2) from n to n + 2, and
    for v < n/2 it is at most 1 + 2v/n times the limit. For even n it rises towards it, by
    1 + v / (n + 2)(n − v + 1).
    """
    check_whole("limit_weight", 1, degree=degree)
    if degree % 2 == 0:
        return 0.0
    # A ratio of whole numbers divides without overflow, however long they are.
    return 2 / math.pi * (math.comb(degree - 1, degree // 2) / (degree << (degree - 1)))


def krawtchouk(n: int, k: int, d: int) -> int:
    r"""Return the Krawtchouk polynomial :math:`\sum_j (-1)^j \binom{d}{j} \binom{n - d}{k - j}`.

    It is the sum of χ_S(x) χ_S(x') over the sets S of k bits, for inputs that differ in d of n; and
    the sum of χ_D(x) over the inputs x with k bits −1, for a set D of size d.
    """
    return sum((-1) ** j * math.comb(d, j) * math.comb(n - d, k - j) for j in range(min(d, k) + 1))


def _check(n: int, degree: int) -> None:
    check_whole("Fourier coefficient", 0, n=n, degree=degree)
    if degree > n:
        raise UserError(f"degree={degree} is above n={n}. Give a degree from 0 to n.")
