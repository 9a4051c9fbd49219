"""Lower bounds, statistical limits, and how likely good neurons are."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.theory.lower_bounds import (
    ambiguity,
    least_parameters,
    least_samples,
    least_steps,
    most_success,
    n_parameters,
    resource_product,
    sq_bound,
    statistical_limit,
)
from petridish.theory.majority import rho
from petridish.theory.pareto.gradients import over_sparse_constants
from petridish.theory.pareto.neurons import (
    chance_of_good,
    chance_within,
    draws_for_good,
    good_chance,
    good_init_width,
    lemma7_bound,
    lemma15_width,
)
from petridish.theory.pareto.over_sparse import (
    lemma10_samples,
    printed_biases,
    second_layer,
    theorem16_sizes,
)
from tests.test_theory_majority import cube

resources = st.floats(1e-2, 1e4)


def test_a_case_by_hand() -> None:
    """C(50, 3) = 19600: width 10 has 521 parameters; 1 step at m = 9 and δ = ½ is ruled out."""
    assert n_parameters(10, 50) == 521
    assert sq_bound(50, 3) == 9800
    assert sq_bound(50, 3, version="proved") == 4900
    assert resource_product(521, 1, tau=1 / 3, delta=0.5) == pytest.approx(9378)
    assert least_samples(50, 3, parameters=521, steps=1, delta=0.5) == 10
    assert most_success(50, 3, parameters=521, steps=1, tau=1 / 3) == pytest.approx(9 * 521 / 9800)


@given(r=resources, steps=resources, tau=resources, delta=st.floats(0.01, 1))
def test_least_resources_are_the_first_beyond_the_bound(
    r: float, steps: float, tau: float, delta: float
) -> None:
    """One more than the bound allows, and one fewer is ruled out."""
    bound = sq_bound(30, 4) * (1 + 1e-12)  # rounding may lift an equality
    t = least_steps(30, 4, parameters=r, tau=tau, delta=delta)
    p = least_parameters(30, 4, steps=steps, tau=tau, delta=delta)
    m = least_samples(30, 4, parameters=r, steps=steps, delta=delta)

    assert resource_product(r, t, tau, delta) * (1 + 1e-12) > sq_bound(30, 4)
    assert resource_product(p, steps, tau, delta) * (1 + 1e-12) > sq_bound(30, 4)
    assert t == 1 or resource_product(r, t - 1, tau, delta) <= bound
    assert p == 1 or resource_product(p - 1, steps, tau, delta) <= bound
    assert m == 1 or resource_product(r, steps, (m - 1) ** -0.5, delta) <= bound


def test_lemma_6_is_parseval(seed: int) -> None:
    """The mean over S of E[χ_S g]² is at most 1/C(n,k) for |g| ≤ 1, exactly, n ≤ 8, all k."""
    rng = np.random.default_rng(seed)
    for n in range(1, 9):
        x = cube(n)
        bounded = [np.sign(x.sum(axis=1)), rng.uniform(-1, 1, 2**n), rng.choice([-1, 1], 2**n)]
        for k in range(n + 1):
            characters = np.stack(
                [x[:, list(c)].prod(axis=1) for c in itertools.combinations(range(n), k)]
            )
            for g in bounded:
                mean = np.mean((characters @ g / 2**n) ** 2)
                assert mean <= 1 / math.comb(n, k) * (1 + 1e-12)


def test_the_proof_of_proposition_3_gives_a_quarter() -> None:
    """Markov's step at (τ/2)² can be tight, so that it leaves 1 − 2δ for ½ C(n,k), 1 − δ for ¼.

    The derivative ½ (χ_A + χ_B + χ_C − χ_A⊕B⊕C) is ±1 and has the correlation ½ with four sets:
    with τ = 1, of which the sample's error takes a half, four of C(n, k) targets show.
    """
    n, k = 6, 2
    x = cube(n)
    sets = [(0, 1), (1, 2), (2, 3), (0, 3)]  # the fourth is the sum of the others
    chi = np.stack([x[:, list(c)].prod(axis=1) for c in sets])
    derivative = (chi[0] + chi[1] + chi[2] - chi[3]) / 2
    every = [x[:, list(c)].prod(axis=1) for c in itertools.combinations(range(n), k)]
    seen = np.array([abs(np.mean(derivative * c)) >= 0.5 for c in every])

    assert set(np.unique(derivative)) == {-1.0, 1.0}
    delta = resource_product(1, 1, tau=1, delta=1) / sq_bound(n, k)
    proved = resource_product(1, 1, tau=1, delta=1) / sq_bound(n, k, version="proved")
    assert seen.mean() == pytest.approx(proved)
    assert seen.mean() == pytest.approx(2 * delta)


def test_the_statistical_limit_separates() -> None:
    """Ambiguity falls from above ½ to under 1 % within 8 examples of log2 C(n, k)."""
    for n, k in ((50, 3), (100, 4), (10_000, 10)):
        limit = statistical_limit(n, k)
        assert ambiguity(n, k, math.floor(limit) - 1)[0] > 0.5
        assert ambiguity(n, k, math.ceil(limit) + 7)[1] < 0.01


def test_ambiguity_is_bracketed_exactly() -> None:
    """By the closed form 1 − (1 − 2^−m)^(n−1) for k = 1, and by all samples for (4, 2), m ≤ 4."""
    for n in (2, 5, 40):
        for m in range(12):
            low, high = ambiguity(n, 1, m)
            exact = 1 - (1 - 0.5**m) ** (n - 1)
            assert low - 1e-12 <= exact <= high + 1e-12
    others = [set(c) ^ {0, 1} for c in itertools.combinations(range(4), 2) if set(c) != {0, 1}]
    for m in range(1, 5):
        x = 1 - 2 * ((np.arange(2 ** (4 * m))[:, None, None] >> np.arange(4 * m).reshape(m, 4)) & 1)
        agree = np.stack([(x[:, :, sorted(d)].prod(axis=2) == 1).all(axis=1) for d in others])
        low, high = ambiguity(4, 2, m)
        assert low - 1e-12 <= agree.any(axis=0).mean() <= high + 1e-12


def test_lemma_10_holds(seed: int) -> None:
    """At its m no derivative is off by τ in 200 samples (allowed: a share δ = 10 %, here 0)."""
    rng = np.random.default_rng(seed)
    n, width, tau, delta = 6, 3, 0.2, 0.1
    m = lemma10_samples(n, width, tau=tau, delta=delta)
    x = rng.choice([-1.0, 1.0], size=(200, m, n))
    active = x[:, :, :3].sum(axis=2) > 0
    means = (x.prod(axis=2) * active)[:, :, None] * x
    truth = (cube(n).prod(axis=1) * (cube(n)[:, :3].sum(axis=1) > 0)) @ cube(n) / 2**n

    assert m == math.ceil(4 * math.log(4 * 6 * 3 / 0.1) / 0.04)
    assert np.abs(means.mean(axis=1) - truth).max() < tau


def test_good_chances_equal_enumeration() -> None:
    """C(n−k, s−k)/C(n, s) and C(k, s)/C(n, s), for all n ≤ 9."""
    for n in range(10):
        for k, s in itertools.product(range(n + 1), repeat=2):
            support = set(range(k))
            drawn = [set(c) for c in itertools.combinations(range(n), s)]
            good = sum(support <= d if s >= k else d <= support for d in drawn)
            assert good_chance(n, k, s) == Fraction(good, len(drawn))


def test_where_lemma_7_holds() -> None:
    """Wherever s ≥ 2(k−1), and for every s ≥ k if k ≤ 5; first failures near s = k after that."""
    for k in range(1, 9):
        for n in range(k, 80):
            for s in range(k, n + 1):
                if k <= 5 or s >= 2 * (k - 1):
                    assert good_chance(n, k, s) >= lemma7_bound(n, k, s)

    def fails(n: int, k: int, s: int) -> bool:
        return good_chance(n, k, s) < lemma7_bound(n, k, s)

    first = {k: next(n for n in range(k, 2000) if fails(n, k, k)) for k in range(6, 11)}
    assert first == {6: 1210, 7: 89, 8: 61, 9: 52, 10: 49}
    # For n → ∞ the lemma is (s/2)^k ≤ s!/(s−k)!, the harder the larger n: k ≤ 5 passes for all n.
    for k in range(1, 6):
        assert all((s / 2) ** k <= math.perm(s, k) for s in range(k, 2 * k))
    turn = next(s for s in range(400, 800) if Fraction(s, 2) ** 400 <= math.perm(s, 400))
    assert turn == 460  # 1.15 k


def test_the_chance_of_good_neurons(seed: int) -> None:
    """The binomial tail, by its sum and by 4000 drawn networks within 4.5 standard errors."""
    chance = float(good_chance(10, 2, 4))
    tail = sum(math.comb(12, j) * chance**j * (1 - chance) ** (12 - j) for j in range(3, 13))
    assert chance_of_good(12, chance, wanted=3) == pytest.approx(tail, rel=1e-12)

    order = np.random.default_rng(seed).permuted(np.tile(np.arange(10), (4000, 12, 1)), axis=2)
    good = ((order < 4)[:, :, :2].all(axis=2)).sum(axis=1) >= 3
    assert abs(good.mean() - tail) < 4.5 * math.sqrt(tail * (1 - tail) / 4000)


@given(chance=st.floats(1e-6, 1), probability=st.floats(0, 0.999), wanted=st.integers(0, 20))
def test_draws_are_the_fewest(chance: float, probability: float, wanted: int) -> None:
    """They suffice, and one fewer does not."""
    draws = draws_for_good(chance, probability, wanted=wanted)

    assert chance_of_good(draws, chance, wanted=wanted) >= probability
    assert draws == 0 or chance_of_good(draws - 1, chance, wanted=wanted) < probability


@pytest.mark.parametrize(("n", "k", "s"), [(50, 2, 9), (50, 4, 17), (1000, 2, 101)])
def test_lemma_15_fails_and_its_repair_holds(n: int, k: int, s: int) -> None:
    """At the printed width a bias has too many good neurons: at most 2r' with probability ~0.

    The k/2 biases are the repaired ones; with the printed k/2 − 1 there are still more of each.
    The proof takes the bound (s/2n)^k for the chance itself, which is about 2^k larger. With the
    exact chance all k/2 biases have [½, 2] of the expected number, with probability 1 − δ.
    """
    delta = 0.1
    chance = float(good_chance(n, k, s)) / (k / 2)
    width = lemma15_width(n, k, s, delta)
    expected = width / (2 * k) * float(lemma7_bound(n, k, s))
    assert chance_within(width // 2, chance, low=expected / 2, high=2 * expected) < 1e-12

    width = good_init_width(n, k, s, delta)
    mean = width // 2 * chance
    each = chance_within(width // 2, chance, low=mean / 2, high=2 * mean)
    assert 1 - k / 2 * (1 - each) >= 1 - delta


def test_lemma_15_fails_at_the_printed_biases() -> None:
    """For n = 60, k = 4, s = 17, δ = 0.1: 2124 good neurons at the one printed bias, 87 allowed."""
    n, k, s = 60, 4, 17
    width = lemma15_width(n, k, s, 0.1)
    draws, chance = width // 2, float(good_chance(n, k, s)) / len(printed_biases(k))
    expected = width / (2 * k) * float(lemma7_bound(n, k, s))

    assert (width, round(expected, 1), math.floor(2 * expected)) == (870_351, 43.8, 87)
    assert draws * chance == pytest.approx(2124, abs=0.5)
    assert chance_within(draws, chance, low=expected / 2, high=2 * expected) < 1e-12


def test_theorem_16_asks_for_more_ones_than_bits() -> None:
    """For k = 2, ε = δ = 0.1: s ≥ 1.9·10^9 in print, 9.7·10^8 in what it is for, as B_2 = 181.

    An offset of 3/4 needs 6.7·10^6.
    """
    sizes = theorem16_sizes(10**6, 2, 1001, epsilon=0.1, delta=0.1)
    wider = theorem16_sizes(10**6, 2, 1001, epsilon=0.1, delta=0.1, offset=0.75)

    printed = 80 * 2 * float(np.linalg.norm(second_layer(2))) ** 2 * math.log(40) / 0.01
    assert printed == pytest.approx(1.934e9, rel=1e-3)
    assert sizes.least_sparsity == pytest.approx(9.67e8, rel=1e-3)
    assert wider.least_sparsity == pytest.approx(6.74e6, rel=1e-3)
    assert sizes.steps / (1 + math.log(sizes.steps)) >= 100 * 181**2


def test_the_printed_precision_is_too_coarse() -> None:
    """κ_k stands in the denominator of τ, and belongs into the numerator.

    For n = 100, k = 2, s = 9, ε = δ = 0.1 the print has 4.4·10^−8 ≤ 1.0·10^−8.
    """
    n, k, s, epsilon, delta = 100, 2, 9, 0.1, 0.1
    sizes = theorem16_sizes(n, k, s, epsilon=epsilon, delta=delta)
    kappa = math.sqrt(rho(k - 1)) / 2
    norm, log = float(np.linalg.norm(second_layer(k))), math.log(2 * k / delta)
    rest = 40 * norm * n * math.sqrt(math.comb(s, k - 1)) * log

    assert kappa * math.comb(s, k - 1) ** -0.5 < abs(over_sparse_constants(k, s)[0])
    assert epsilon / (rest * kappa) > 4 * sizes.tau
    assert epsilon * kappa / rest <= sizes.tau


def test_the_printed_precision_is_as_coarse_at_every_sparsity() -> None:
    """For k = 2 printed τ over needed τ rises from 4.32 at s = 9 to π√2, so the theorem's s too."""
    k, epsilon, delta = 2, 0.1, 0.1
    kappa, log = math.sqrt(rho(k - 1)) / 2, math.log(2 * k / delta)
    norm = float(np.linalg.norm(second_layer(k)))
    factors = []
    for s in (9, 17, 101, 1_001, 10_001):
        sizes = theorem16_sizes(10 * s, k, s, epsilon=epsilon, delta=delta)
        root = math.sqrt(math.comb(s, k - 1))
        factors.append(epsilon / (40 * norm * 10 * s * kappa * root * log) / sizes.tau)
        constant = abs(float(over_sparse_constants(k, s)[0]))
        formula = sizes.neurons / (20 * log * kappa * constant * root)
        assert factors[-1] == pytest.approx(formula, rel=1e-12)

    assert factors == sorted(factors)
    assert factors[0] == pytest.approx(4.32, abs=0.005)
    assert factors[-1] == pytest.approx(math.sqrt(2) * math.pi, rel=1e-3)


def test_wrong_numbers_are_named() -> None:
    """Zero resources are refused by name."""
    with pytest.raises(UserError) as error:
        resource_product(10, 0, 0.1, 0.5)
    assert str(error.value) == "steps=0. Give a number above 0."
