"""The minimal model's population gradients: against enumeration, and what the paper misprints.

Every corrected formula of TH App. E.1 has its counterexample here; `docs/results/errata.md` lists
them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.models.causal_modules import MinimalAttentionModule
from petridish.theory.induction import closed_forms as forms
from petridish.theory.induction.population_gradients import (
    Chains,
    constant_start,
    coupling,
    equal_chains,
    flat_chains,
    from_constant,
    from_diagonal,
    key_gradient,
    position_gradient,
    smallest_rate,
    step,
    two_steps,
)
from petridish.training import MultiMargin

FLAT, EQUAL = flat_chains(), equal_chains()
TENSOR = coupling(100, FLAT)


def by_autodiff(
    t: int, chains: Chains, key: NDArray[Any], positions: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Differentiate the margin loss of the module, summed over all sequences of t + 1 tokens."""
    module = MinimalAttentionModule(2, t).double()
    with torch.no_grad():
        module.key.copy_(torch.from_numpy(key))
        module.positions.copy_(torch.from_numpy(positions))
    rows = np.array([[chains.a, chains.leave_a], [chains.leave_b, chains.b]])
    sequences = np.array(list(itertools.product((0, 1), repeat=t + 1)))
    chances = []
    for tokens in sequences:
        chance = chains.law[tokens[0]].copy()
        for one, other in itertools.pairwise(tokens):
            chance *= rows[one, other]
        chances.append(chains.mean(chance))
    x = torch.from_numpy(sequences)
    each = MultiMargin(1e3).each(module(x[:, :-1]), x[:, 1:]).mean(dim=1)
    loss = (each * torch.tensor(chances, dtype=torch.float64)).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    assert module.key.grad is not None
    assert module.positions.grad is not None
    return -module.key.grad.numpy(), -module.positions.grad.numpy()


@pytest.mark.parametrize("chains", [flat_chains(40), equal_chains(0.3, 40)], ids=["flat", "equal"])
def test_gradients_equal_autodiff_over_all_sequences(chains: Chains) -> None:
    """At weights without any symmetry, t = 5: the tensor has all of the population loss."""
    rng = np.random.default_rng(0)
    key, positions = rng.normal(size=(2, 2)), rng.normal(size=5)
    tensor = coupling(5, chains)
    of_key, of_positions = by_autodiff(5, chains, key, positions)
    np.testing.assert_allclose(key_gradient(tensor, positions), of_key, atol=1e-12)
    np.testing.assert_allclose(position_gradient(tensor, key), of_positions, atol=1e-12)


def test_reference_numbers_at_a_hundred_tokens() -> None:
    """Computed by others' sums to six digits: W_k's entries, g_1, g_2 and h_1 to h_4."""
    first = key_gradient(TENSOR, np.ones(100))
    np.testing.assert_allclose(first, [[81.7027, 18.3068], [18.3068, 81.7027]], rtol=2e-6)
    np.testing.assert_allclose(from_constant(TENSOR)[:2], [5.84332, 5.72851], rtol=1e-6)
    expected = [5.21595, 6.26641, 4.38625, 5.05512]
    np.testing.assert_allclose(from_diagonal(TENSOR)[:4], expected, rtol=1e-6)


def test_the_quadrature_has_converged() -> None:
    """Two thirds of the nodes change the sums by less than 1e-7 of them."""
    fewer = coupling(100, flat_chains(80))
    np.testing.assert_allclose(fewer, TENSOR, rtol=0, atol=1e-7 * np.abs(TENSOR).max())


@pytest.mark.parametrize("t", [3, 20])
def test_printed_formulas_that_are_right(t: int) -> None:
    """(E.17) and (E.28), chain by chain; the nodes avoid λ = 0, where (E.17) divides by it."""
    chains = flat_chains(7 if t == 3 else 10)
    keep = np.abs(chains.eigenvalue) > 0.02
    part = Chains(chains.leave_a[keep], chains.leave_b[keep], chains.weights[keep])
    of_key = forms.key_gradient_of_chain(part, t)
    for node in range(0, int(keep.sum()), 5):
        one = Chains(part.leave_a[[node]], part.leave_b[[node]], np.ones(1))
        tensor = coupling(t, one)
        np.testing.assert_allclose(of_key[..., node], key_gradient(tensor, np.ones(t)), 1e-6, 1e-9)
        for j in (1, 2, t):
            found = forms.g_of_chain(one, t, j)[0]
            assert found == pytest.approx(from_constant(tensor)[j - 1], rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("t", [3, 20])
def test_e37_and_e38_hold_corrected(t: int) -> None:
    """Chain by chain, j = 1 and others; as printed both are wrong."""
    one = Chains(np.array([0.3]), np.array([0.45]), np.ones(1))
    h = from_diagonal(coupling(t, one))
    assert forms.h1_of_chain(one, t)[0] == pytest.approx(h[0], rel=1e-10)
    for j in range(2, t + 1):
        assert forms.h_of_chain(one, t, j)[0] == pytest.approx(h[j - 1], rel=1e-9, abs=1e-12)
    assert abs(printed_e37(one, t) / h[0] - 1) > 0.005
    assert abs(printed_e38(one, t, 2) / h[1] - 1) > 0.005


def printed_e37(chains: Chains, t: int) -> float:
    """Return (E.37) over η(ρ − c') as printed, without the expectation."""
    a, b, lam = chains.a, chains.b, chains.eigenvalue
    bracket = ((lam - lam ** (t + 1)) / (1 - lam) - t) * (a - 1) * (b - 1) / (lam - 1) ** 2
    bracket += (
        ((b - 1) ** 2 * (a - 0.5) + (a - 1) ** 2 * (b - 0.5)) / (lam - 1) ** 2 * (t * (t - 1) / 2)
    )
    return float(bracket[0] / t)


def printed_e38(chains: Chains, t: int, j: int) -> float:
    """Return (E.38) as printed: over λ − 1 in its second line."""
    a, b, lam = chains.a, chains.b, chains.eigenvalue
    rows = np.array([[a, 1 - a], [1 - b, b]])
    beta = np.array([[a - 1, 1 - a], [1 - b, b - 1]])
    gamma = np.array([[b - 1, a - 1], [b - 1, a - 1]])
    total = forms.h_of_chain(chains, t, j) * t
    for i, other in itertools.product(range(2), repeat=2):
        weight = chains.law[other] / (lam - 1) ** 2 * (rows[other, i] - 0.5)
        right, wrong = ((lam - lam ** (t - j + 2)) / side for side in (1 - lam, lam - 1))
        total += weight * beta[i, other] * gamma[other, i] / (lam - 1) * (wrong - right)
    return float(total[0] / t)


def test_limits_of_expectations() -> None:
    """(E.24), (E.25), (E.29) and (E.42) as printed; (E.43) with a sign changed."""
    a, b, lam = FLAT.a, FLAT.b, FLAT.eigenvalue
    mean = FLAT.mean
    diagonal = (b - 1) ** 2 * (b - a) * (a - 0.5) / (a + b - 2) ** 3
    off = (b - 1) * (a - 1) * (b - a) * (a - 0.5) / (a + b - 2) ** 3
    assert mean(diagonal) == pytest.approx(forms.DIAGONAL_LIMIT, abs=1e-6)
    assert mean(off) == pytest.approx(forms.OFF_DIAGONAL_LIMIT, abs=1e-6)
    square = ((a - 1) ** 2 + (b - 1) ** 2) / (lam - 1) ** 2
    assert mean(square) == pytest.approx(forms.QUADRATIC_LIMIT, abs=1e-6)
    first = ((b - 1) ** 2 * (a - 0.5) + (a - 1) ** 2 * (b - 0.5)) / (lam - 1) ** 2
    assert mean(first) == pytest.approx(forms.FIRST_LIMIT, abs=1e-6)
    second = 4 * (a - 1) * (b - 1) ** 2 * (a - 0.5) / (a + b - 2) ** 3 * lam
    second += 2 * (b - a) * (b - 1) ** 2 * (a - 0.5) / (a + b - 2) ** 3
    assert mean(second) == pytest.approx(forms.SECOND_LIMIT, abs=1e-6)
    printed = (7 - 10 * math.log(2)) / 2 + (5 - 8 * math.log(2)) / 6
    assert printed == pytest.approx(-0.0566, abs=1e-4)
    assert printed < forms.FIRST_LIMIT < forms.SECOND_LIMIT  # printed, it says the opposite


def test_negative_for_odd_j_holds_from_three_on() -> None:
    """E of the term with λ^{j−1}, which the text calls negative for j odd: at j = 1 it is not."""
    a, b, lam = FLAT.a, FLAT.b, FLAT.eigenvalue
    term = (a - 1) * (b - 1) ** 2 * (a - 0.5) / (a + b - 2) ** 3
    values = [float(FLAT.mean(term * lam ** (j - 1))) for j in range(1, 10)]
    assert values[0] > 0
    assert all(value < 0 for value in values[2::2])
    assert all(value > 0 for value in values[1::2])


def test_the_diagonal_bias_is_four_in_the_limit_alone() -> None:
    """B ≈ 4 A of Lemma 8.4: 5.95, 4.95, 4.46 at t = 25, 50, 100, and 3.98 in the limit."""
    assert pytest.approx(3.98, abs=0.01) == forms.DIAGONAL_LIMIT / forms.OFF_DIAGONAL_LIMIT
    for t, ratio in ((25, 5.95), (50, 4.95), (100, 4.46)):
        first = key_gradient(coupling(t, FLAT), np.ones(t))
        assert first[0, 0] / first[0, 1] == pytest.approx(ratio, abs=0.01)


@pytest.mark.parametrize(("t", "rate"), [(25, 0.277), (50, 0.0297), (100, 0.00356), (200, 0.00044)])
def test_where_lemma_84_holds(t: int, rate: float) -> None:
    """v_2 is the largest after two steps above a rate, and v_1 just below it, whatever c is."""
    least, tensor = smallest_rate(t), coupling(t, FLAT)
    assert least == pytest.approx(rate, rel=0.01)
    for c in (0.001, 0.02, 1.0):
        for factor, largest in ((0.99, 1), (1.01, 2)):
            weights = constant_start(t, c)
            for _ in range(2):
                weights = step(weights, tensor, factor * least)
            assert np.argmax(weights.positions) + 1 == largest


def test_the_lemma_fails_at_the_rate_of_the_experiments() -> None:
    """η = 2e-3 at t = 100: v_1 is still the largest after two steps."""
    weights = constant_start(100, 0.02)
    for _ in range(2):
        weights = step(weights, TENSOR, 2e-3)
    assert np.argmax(weights.positions) == 0


def test_the_second_step_is_a_sum_of_two_parts() -> None:
    """v^(2) = c + η(c + c')g + η(ρ − c')h: what tells positions apart comes by the diagonal."""
    c, rate = 0.02, 0.03
    one = step(constant_start(100, c), TENSOR, rate)
    two = step(one, TENSOR, rate)
    diagonal, off = one.key[0, 0], one.key[0, 1]
    g, h = from_constant(TENSOR), from_diagonal(TENSOR)
    np.testing.assert_allclose(
        two.positions, c + rate * (c + off) * g + rate * (diagonal - off) * h, rtol=1e-12
    )


def test_corollary_e2_has_the_wrong_sign() -> None:
    """With a = b v grows, most at j = 1, where the print has it shrink by η(t − j + 1)/2t."""
    for t, first, diagonal in ((50, 0.5876, 6.22), (100, 0.7433, 16.0), (200, 0.9061, 39.7)):
        tensor = coupling(t, EQUAL)
        g, key = from_constant(tensor), key_gradient(tensor, np.ones(t))
        np.testing.assert_allclose(g, forms.g_of_equal_chains(t), atol=1e-6)
        assert g[0] == pytest.approx(first, abs=1e-4)
        assert (g[:-1] > 0).all()
        assert (np.diff(g) <= 1e-12).all()
        printed = -(t - np.arange(1, t + 1) + 1) / (2 * t)
        assert printed[0] == -0.5
        assert key[0, 0] == pytest.approx(diagonal, rel=0.01)
        assert abs(key[0, 1]) < 1e-12
    # Of the order ln t, and not quadratic in t − j + 1 as with a and b apart: the wish survives.
    assert from_constant(coupling(100, EQUAL))[49] / forms.g_of_equal_chains(100)[0] > 0.3
    assert from_constant(TENSOR)[49] / from_constant(TENSOR)[0] < 0.3


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.4])
def test_moments_of_hard_chains(epsilon: float) -> None:
    """(E.53) and (E.57) corrected; the prints lack −⅛ and the density 1/2ε."""
    law = equal_chains(epsilon)
    diagonal = law.mean(-(law.a - 0.5) / (8 * (law.a - 1)))
    assert forms.hard_key_diagonal(epsilon) == pytest.approx(diagonal, rel=1e-9)
    printed = 2 * epsilon + 0.5 * math.log((0.5 - epsilon) / (0.5 + epsilon))
    assert printed < 0 < diagonal
    for j in range(1, 7):
        moment = law.mean((law.a - 0.5) * (2 * law.a - 1) ** (j - 1))
        assert forms.hard_moment(j, epsilon) == pytest.approx(moment, rel=1e-9, abs=1e-15)
    assert 4 * epsilon**3 / 3 == pytest.approx(2 * epsilon * forms.hard_moment(2, epsilon))
    assert forms.hard_key_diagonal(1e-2) == pytest.approx(1e-4 / 6, rel=1e-3)  # Θ(ε²), not O(ε)


def test_the_two_steps_of_proposition_e3() -> None:
    """η_1 = 1/t², η_2 = 1/t: W_k becomes diagonal, v_2 the largest, v_4/v_2 → 12ε²/5.

    The other entries vanish beside it like ln t / t: from t = 250 to 1000 by more than half.
    """
    epsilon, rest = 0.2, []
    for t in (250, 1_000):
        found = two_steps(t, epsilon=epsilon, rates=(t**-2, 1 / t), nodes=30)
        assert abs(found.key[0, 1]) < 1e-3 * found.key[0, 0]
        v = found.positions
        assert np.argmax(v) == 1
        rest.append(v[2] / (v[1] - v[2]))
        limit = (v[3] - v[2]) / (v[1] - v[2])
    assert rest[1] < 0.4 * rest[0]
    assert limit == pytest.approx(12 * epsilon**2 / 5, rel=0.1)


def test_decay_is_needed_on_v_too() -> None:
    """§8.3.2 has it on the second layer alone: v_init then stays, and no entry stands out."""
    t = 500
    with_both = two_steps(t, epsilon=0.2, rates=(t**-2, 1 / t), nodes=30).positions
    on_key = two_steps(
        t, epsilon=0.2, rates=(t**-2, 1 / t), decay_of_positions=0.0, nodes=30
    ).positions
    assert with_both[1] > 1.5 * with_both[0]
    assert on_key[1] < 1.01 * on_key[0]


def test_the_rates_are_in_the_order_of_the_appendix() -> None:
    """η_1 of the order 1/t keeps v away from v_init: the larger rate is the second, not the first.

    Section 8.3.2 says that the first needs to be larger.
    """
    t = 500
    right, wrong = (
        step(constant_start(t, 1.0), coupling(t, flat_chains(30)), rate) for rate in (t**-2, 1 / t)
    )
    assert np.ptp(right.positions) < 0.06
    assert np.ptp(wrong.positions) > 10 * np.ptp(right.positions)
    assert right.key[0, 0] > right.key[0, 1] + 0.005  # and the second layer has a diagonal already


def test_bad_sizes_are_refused() -> None:
    """One sentence each."""
    cases: dict[str, Callable[[], object]] = {
        "coupling: t=0. Give a whole number of at least 1.": lambda: coupling(0, EQUAL),
        "epsilon=0.7. Give a number above 0, at most 0.5.": lambda: equal_chains(0.7),
        "rates[0]=0. Give a number above 0.": lambda: two_steps(9, epsilon=0.1, rates=(0, 1)),
    }
    for message, call in cases.items():
        with pytest.raises(UserError) as refused:
            call()
        assert str(refused.value) == message
