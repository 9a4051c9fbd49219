"""Population gradients in closed form: against enumeration, and against the paper's lemmas."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.theory.majority import half_coefficient, majority_coefficient, rho
from petridish.theory.pareto.gradients import (
    Regime,
    over_sparse_constants,
    population_gradient,
    under_sparse_constants,
)
from tests.test_theory_majority import cube

REGIMES: tuple[Regime, ...] = ("over-sparse", "under-sparse")


def enumerated(
    n: int, support: Collection[int], ones: Collection[int], regime: Regime, at_zero: int
) -> np.ndarray[Any, Any]:
    """Average relu'(w · x) x_i χ_S(x) over {±1}^n, with w scaled to whole numbers: no rounding."""
    x = cube(n)
    # ε = 1/(n − s + 1) < 1/(n − s).
    weights = np.full(n, 0 if regime == "over-sparse" else 1)
    weights[list(ones)] = n - len(ones) + 1
    before = x @ weights
    slope = (before > 0) + at_zero * (before == 0)
    gradient: np.ndarray[Any, Any] = (x * (slope * x[:, list(support)].prod(axis=1))[:, None]).sum(
        axis=0
    ) / 2**n
    return gradient


def shapes(n: int, *, least_k: int = 0) -> Iterator[tuple[range, list[int]]]:
    """Return one pair (S, S') for each (k, s, |S ∩ S'|): the bits are exchangeable."""
    for k in range(least_k, n + 1):
        for s in range(n + 1):
            for overlap in range(max(0, k + s - n), min(k, s) + 1):
                yield range(k), [*range(overlap), *range(k, k + s - overlap)]


@pytest.mark.parametrize("n", range(1, 10))
@pytest.mark.parametrize("regime", REGIMES)
def test_gradients_equal_enumeration(n: int, regime: Regime) -> None:
    """For all n ≤ 9, all k, s and overlaps, both values of relu'(0), without a tolerance."""
    for support, ones in shapes(n):
        for at_zero in (0, 1):
            closed = population_gradient(n, support, ones, regime=regime, at_zero=at_zero)
            assert np.array_equal(closed, enumerated(n, support, ones, regime, at_zero))


@given(data=st.data(), n=st.integers(1, 10), regime=st.sampled_from(REGIMES))
def test_any_sets_will_do(data: st.DataObject, n: int, regime: Regime) -> None:
    """The closed form needs no order of the bits: S and S' are drawn at random."""
    support = data.draw(st.sets(st.integers(0, n - 1)))
    ones = data.draw(st.sets(st.integers(0, n - 1)))

    closed = population_gradient(n, support, ones, regime=regime)
    assert np.array_equal(closed, enumerated(n, support, ones, regime, 0))


def test_lemma_8_needs_an_even_k_alone() -> None:
    """C on S, c on the neuron's other ones, 0 elsewhere: for every s ≥ k, odd or even, any tie."""
    for n in range(2, 12):
        for support, ones in shapes(n, least_k=2):
            k, s = len(support), len(ones)
            if k % 2 or not set(support) <= set(ones):
                continue
            relevant, irrelevant = over_sparse_constants(k, s)
            printed = [relevant if i in support else (i in ones) * irrelevant for i in range(n)]
            for at_zero in (0, 1):
                found = population_gradient(n, support, ones, regime="over-sparse", at_zero=at_zero)
                assert np.array_equal(found, np.array(printed, float))


def test_lemma_8_is_empty_for_odd_k() -> None:
    """For odd k ≥ 3 and odd s the gradient vanishes: (7, 3), s = 7 has no trace of S."""
    for k in (3, 5, 7):
        for s in range(k, 12, 2):
            gradient = population_gradient(12, range(k), range(s), regime="over-sparse")
            assert not gradient.any()
    with pytest.raises(UserError, match="k=3 is odd, where the gradient shows nothing"):
        over_sparse_constants(3, 7)


def test_the_over_sparse_ratio_is_exact() -> None:
    """|c/C| = (k−1)/(s−k) for odd s; it is ≤ 4k/s if and only if s(3k+1) ≥ 4k²."""
    for k in range(2, 21, 2):
        for s in range(k + 1, 120, 2):
            relevant, irrelevant = over_sparse_constants(k, s)
            ratio = abs(irrelevant / relevant)
            assert ratio == Fraction(k - 1, s - k)
            assert (ratio <= Fraction(4 * k, s)) == (s * (3 * k + 1) >= 4 * k * k)
        for s in range(k + 2, 120, 2):
            relevant, irrelevant = over_sparse_constants(k, s)
            assert abs(irrelevant / relevant) == Fraction(k - 1, s - k + 1)


def test_the_lower_bound_of_lemma_8() -> None:
    """|C| ≥ ½ √ρ(k−1) C(s, k−1)^−½ for odd s; at s = k = 6, outside the lemma, it fails."""

    def bound(k: int, s: int) -> float:
        return math.sqrt(rho(k - 1) / math.comb(s, k - 1)) / 2

    for k in range(2, 13, 2):
        for s in range(k + 1, 150, 2):
            assert abs(over_sparse_constants(k, s)[0]) > bound(k, s)
    assert abs(over_sparse_constants(6, 6)[0]) < bound(6, 6)


def test_lemma_9_with_an_absolute_value() -> None:
    """Bad neurons: norm |C| where one bit of S is missing, 0 where more are; for every s."""
    for n in range(2, 12):
        for support, ones in shapes(n, least_k=2):
            k, s = len(support), len(ones)
            missing = sorted(set(support) - set(ones))
            if k % 2 or not missing or s < k - 1:
                continue
            gradient = population_gradient(n, support, ones, regime="over-sparse")
            one = majority_coefficient(s, k - 1, tie=0) / 2 if len(missing) == 1 else Fraction(0)
            assert np.abs(gradient).sum() == abs(float(one))
            assert gradient[missing[0]] == float(one)


def test_lemma_9_as_printed_fails() -> None:
    """Without the absolute value the bound is negative for k = 4, s = 17: C = −0.0065."""
    assert round(float(over_sparse_constants(4, 17)[0]), 4) == -0.0065


def lemmas_18_and_19(n: int, support: range, ones: list[int]) -> list[Fraction]:
    """Return the printed right sides, with sign(0) = −1."""
    parity, chosen = set(support), set(ones)
    both = parity & chosen
    sides = []
    for i in range(n):
        if i in parity:
            half, rest = both - {i}, parity - (both | {i})
        else:
            half, rest = both | (chosen & {i}), (parity | {i}) - chosen
        tied = half_coefficient(len(ones), len(half))
        sides.append(tied * majority_coefficient(n - len(ones), len(rest), tie=-1) / 2)
    return sides


def test_lemmas_18_to_20_hold_where_stated() -> None:
    """For all even s < k, all n ≤ 12 and all overlaps; a tie, hence a small bias, plays no part."""
    for n in range(3, 13):
        for support, ones in shapes(n, least_k=2):
            k, s = len(support), len(ones)
            if k % 2 or s % 2 or s >= k:
                continue
            printed = np.array(lemmas_18_and_19(n, support, ones), float)
            for at_zero in (0, 1):
                found = population_gradient(
                    n, support, ones, regime="under-sparse", at_zero=at_zero
                )
                assert np.array_equal(found, printed)
            if set(ones) <= set(support) and k < n:
                relevant, irrelevant = under_sparse_constants(n, k, s)
                good = [relevant * (i >= s) if i < k else irrelevant for i in range(n)]
                assert np.array_equal(printed, np.array(good, float))


def test_where_lemmas_18_and_19_end() -> None:
    """Off the assumptions, with relu'(0) = 0 and s < k ≤ n ≤ 12.

    Lemma 19 never fails. Lemma 18 fails for good neurons with k = s + 1 alone, at the bit that
    they lack, and there for odd s and for s = 0: the term 1{S ⊆ S̄ ∪ {i}} that the proof drops.
    """
    for n in range(2, 13):
        for support, ones in shapes(n, least_k=1):
            k, s = len(support), len(ones)
            if s >= k:
                continue
            printed = np.array(lemmas_18_and_19(n, support, ones), float)
            found = population_gradient(n, support, ones, regime="under-sparse")
            fails = k == s + 1 and set(ones) <= set(support) and (s % 2 == 1 or s == 0)
            expected = [k - 1] if fails else []
            assert np.flatnonzero(found != printed).tolist() == expected


def test_odd_parities_feel_ties() -> None:
    """For odd k, even s and even n − s, relu'(0) decides: (4, 3), s = 0 has ∓1/16 on S."""
    gradients = [
        population_gradient(4, range(3), [], regime="under-sparse", at_zero=at_zero)
        for at_zero in (0, 1)
    ]
    assert gradients[0][0] == -gradients[1][0] == 1 / 16


def test_the_under_sparse_ratio_has_n_minus_k() -> None:
    """|ξ_relevant / ξ_irrelevant| = (n−k)/(k−s−1) for odd n, one more above for even n.

    The printed n − s is another number for every s < k: (21, 4), s = 2 has 17, not 19.
    """
    for k in range(2, 11, 2):
        for s in range(0, k, 2):
            for n in range(k + 1, 60):
                relevant, irrelevant = under_sparse_constants(n, k, s)
                above = n - k if n % 2 else n - k + 1
                assert abs(relevant / irrelevant) == Fraction(above, k - s - 1)


def test_wrong_bits_are_named() -> None:
    """The message says which bits, and what to do."""
    with pytest.raises(UserError) as error:
        population_gradient(5, (0, 7), (1,), regime="over-sparse")
    assert str(error.value) == (
        "support: the bits [7] lie outside 0 … 4. Raise n or choose lower bits."
    )
