"""Fourier coefficients of Majority and Half: closed forms against enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.theory.majority import (
    Tie,
    half_coefficient,
    limit_weight,
    majority_coefficient,
    majority_weight,
    rho,
    step_coefficient,
)

TIES: tuple[Tie, ...] = (-1, 0, 1)


def cube(n: int) -> np.ndarray[Any, Any]:
    """Return all of {±1}^n as whole numbers, shape (2^n, n)."""
    signs: np.ndarray[Any, Any] = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    return signs


@pytest.mark.parametrize("n", range(13))
def test_coefficients_equal_enumeration(n: int) -> None:
    """For all n ≤ 12, all degrees and all three values of sign(0), without a tolerance."""
    x = cube(n)
    total = x.sum(axis=1)
    for degree in range(n + 1):
        character = x[:, :degree].prod(axis=1)

        def enumerated(values: np.ndarray[Any, Any], chi: np.ndarray[Any, Any]) -> Fraction:
            return Fraction(int((values * chi).sum()), 2**n)

        assert half_coefficient(n, degree) == enumerated(total == 0, character)
        for tie in TIES:
            sign = np.where(total == 0, tie, np.sign(total))
            assert majority_coefficient(n, degree, tie=tie) == enumerated(sign, character)
        for at_zero in (0, 1):
            step = (total > 0) + at_zero * (total == 0)
            assert step_coefficient(n, degree, at_zero=at_zero) == enumerated(step, character)


def test_lemma_17_as_printed() -> None:
    """Half_2m(2j) = Maj_2m+1(2j+1) = the printed product, for all j ≤ m ≤ 40."""
    for m in range(41):
        for j in range(m + 1):
            printed = (
                (-1) ** j
                * Fraction(math.comb(m, j), math.comb(2 * m, 2 * j))
                * Fraction(math.comb(2 * m, m), 4**m)
            )
            assert half_coefficient(2 * m, 2 * j) == printed
            assert majority_coefficient(2 * m + 1, 2 * j + 1) == printed


@given(n=st.integers(0, 150), tie=st.sampled_from(TIES))
def test_parseval(n: int, tie: Tie) -> None:
    """Squares of all coefficients add up to E[Maj²], which is 1 but for ties counted as 0."""
    tied = Fraction(math.comb(n, n // 2), 2**n) if n % 2 == 0 else Fraction(0)
    squares = sum(math.comb(n, d) * majority_coefficient(n, d, tie=tie) ** 2 for d in range(n + 1))
    halves = sum(math.comb(n, d) * half_coefficient(n, d) ** 2 for d in range(n + 1))

    assert squares == (1 if tie else 1 - tied)
    assert halves == tied


def test_a_tie_moves_even_degrees_alone() -> None:
    """Odd degrees of Maj_2m are those of Maj_2m+1, whatever sign(0) is."""
    for m in range(1, 20):
        for degree in range(1, 2 * m, 2):
            values = {majority_coefficient(2 * m, degree, tie=tie) for tie in TIES}
            assert values == {majority_coefficient(2 * m + 1, degree)}


def test_ten_thousand_bits() -> None:
    """No overflow at n = 10^4; the first coefficient is √(2/πn) up to 1/n."""
    for n in (9_999, 10_000):
        first = float(majority_coefficient(n, 1))
        assert first == pytest.approx(math.sqrt(2 / (math.pi * n)), rel=1 / n)
        assert math.isfinite(float(majority_coefficient(n, 4_999)))
    assert math.isfinite(rho(9_999))


def test_the_weight_falls_to_its_limit() -> None:
    """O'Donnell's Theorem 5.22: limit < W^v[Maj_n] ≤ (1 + 2v/n) limit for odd n > 2v."""
    for degree in range(1, 12, 2):
        weights = [float(majority_weight(n, degree)) for n in range(degree, 200, 2)]
        assert all(after < before for before, after in itertools.pairwise(weights))
        for n, weight in zip(range(degree, 200, 2), weights, strict=True):
            assert limit_weight(degree) < weight
            if degree < n / 2:
                assert weight <= (1 + 2 * degree / n) * limit_weight(degree)
    assert float(majority_weight(20_001, 3)) == pytest.approx(limit_weight(3), rel=1e-3)


def test_the_printed_rho_is_half_of_the_limit() -> None:
    """So «≥ ρ» holds with room, and «≤ 2ρ» fails for every odd n: W³[Maj_9] = 0.1282 > 0.1061."""
    assert rho(1) == pytest.approx(1 / math.pi)
    assert limit_weight(1) == pytest.approx(2 / math.pi)
    assert round(float(majority_weight(9, 3)), 4) == 0.1282
    assert round(2 * rho(3), 4) == 0.1061
    for degree in (1, 3, 5, 7):
        for n in range(degree, 100, 2):
            assert rho(degree) < float(majority_weight(n, degree))
            assert float(majority_weight(n, degree)) > 2 * rho(degree)


def test_with_the_true_rho_the_bound_of_lemma_8_holds() -> None:
    """With O'Donnell's ρ «≤ 2ρ(k + 1)» holds wherever Lemma 8 is stated: k even, s odd, k < s/4.

    It needs no more than v = k + 1 < s/2 [O'Donnell Thm 5.22]; beyond, at s = v = 3, it fails.
    """
    for k in range(0, 42, 2):
        for s in range(4 * k + 1, 4 * k + 200, 2):
            assert k + 1 < s / 2 or s == 1
            assert float(majority_weight(s, k + 1)) <= 2 * limit_weight(k + 1)
    assert float(majority_weight(3, 3)) == 0.25
    assert round(2 * limit_weight(3), 3) == 0.212


def test_the_weight_of_even_majorities_rises_to_its_limit() -> None:
    """So «≤ 2ρ» [PF Lemma 8] holds for every even s, and fails for every odd one.

    From n to n + 2 the weight of degree v grows by the factor 1 + v / (n + 2)(n − v + 1) for even
    n, and by 1 − v / (n + 1)(n − v + 2) for odd n: exactly, for all v ≤ 13 and n < 120.
    """
    for degree in range(1, 14, 2):
        for n in range(degree, 120):
            growth = majority_weight(n + 2, degree) / majority_weight(n, degree) - 1
            if n % 2:
                assert growth == -Fraction(degree, (n + 1) * (n - degree + 2))
                assert float(majority_weight(n, degree)) > 2 * rho(degree)
            else:
                assert growth == Fraction(degree, (n + 2) * (n - degree + 1))
                assert float(majority_weight(n, degree)) < 2 * rho(degree)


def test_a_wrong_degree_is_named() -> None:
    """The message says what was given and what is allowed."""
    with pytest.raises(UserError) as error:
        half_coefficient(4, 6)
    assert str(error.value) == "degree=6 is above n=4. Give a degree from 0 to n."
