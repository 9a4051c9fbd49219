"""The second layer of the over-sparse proof: printed and repaired biases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from petridish.theory.pareto.over_sparse import (
    feature_matrix,
    least_error,
    over_sparse_biases,
    printed_biases,
    second_layer,
)
from petridish.theory.parity_step import least_hinge_loss, parity_of_sum
from tests.test_theory_majority import cube


def test_the_parity_as_a_function_of_the_sum() -> None:
    """χ_S = (−1)^((k − s_x)/2) with binomial chances; «s_x mod 2» is 0 for all x and even k."""
    for k in (2, 4, 6):
        x = cube(k)
        sums, parity, chance = parity_of_sum(k)
        for value, sign, share in zip(sums, parity, chance, strict=True):
            here = x.sum(axis=1) == value
            assert set(x[here].prod(axis=1)) == {sign}
            assert here.mean() == share
        assert not (x.sum(axis=1) % 2).any()


@pytest.mark.parametrize(
    ("k", "hinge", "error"), [(2, 1.0, 1 / 2), (4, 0.7734, 1 / 8), (6, 0.6458, 1 / 32)]
)
def test_the_printed_biases_cannot_make_the_parity(k: int, hinge: float, error: float) -> None:
    """For k + 1 values there are k − 1 features: the least hinge loss stays above ½, not 0.

    The signs can be right but at s_x = ±k, which have the probability 2^(1−k); k = 2 has no
    neuron left.
    """
    biases = printed_biases(k)

    assert feature_matrix(k, biases).shape == (k + 1, k - 1)
    _, parity, chance = parity_of_sum(k)
    loss = least_hinge_loss(feature_matrix(k, biases), parity, chance)
    assert loss == pytest.approx(hinge, abs=1e-4)
    assert least_error(k, biases) == error


@pytest.mark.parametrize("k", [2, 4, 6, 8, 10])
def test_the_repaired_biases_can(k: int) -> None:
    """With β_0 added the system is square, triangular from the middle out, and solved exactly."""
    biases = over_sparse_biases(k)
    matrix = feature_matrix(k, biases)

    assert matrix.shape == (k + 1, k + 1)
    assert np.allclose(matrix @ second_layer(k), parity_of_sum(k)[1], atol=1e-6)
    assert least_hinge_loss(matrix, *parity_of_sum(k)[1:]) == pytest.approx(0, abs=1e-6)


def test_the_norm_of_the_second_layer() -> None:
    """B_k is 181, 1.2·10^4, 5.6·10^5 for k = 2, 4, 6; with the offset 3/4, 15, 115, 405."""
    norms = [float(np.linalg.norm(second_layer(k))) for k in (2, 4, 6)]
    wider = [float(np.linalg.norm(second_layer(k, offset=0.75))) for k in (2, 4, 6)]

    assert norms == pytest.approx([181.02, 11952.8, 556923], rel=1e-4)
    assert wider == pytest.approx([15.12, 114.67, 405.37], rel=1e-3)


def test_how_the_norm_grows() -> None:
    """B_k/k grows by factors that tend to (2 − o)/o: 31 for the offset 1/16, 5/3 for 3/4."""

    def factors(offset: float, last: int) -> list[float]:
        shares = [
            float(np.linalg.norm(second_layer(k, offset=offset))) / k for k in range(2, last + 1, 2)
        ]
        return [after / before for before, after in itertools.pairwise(shares)]

    assert factors(1 / 16, 8) == pytest.approx([33.01, 31.06, 31.00], abs=0.005)
    assert factors(1 / 16, 12)[-1] == pytest.approx(31, rel=1e-4)
    assert factors(3 / 4, 30)[-1] == pytest.approx(5 / 3, rel=1e-3)


def test_the_exact_solution_is_the_smallest_with_margin_one() -> None:
    """For k = 2, 4, 6 no entry of a second layer with hinge loss 0 is smaller, by programs."""
    from scipy.optimize import linprog

    for k in (2, 4, 6):
        exact = second_layer(k)
        margins = parity_of_sum(k)[1][:, None] * feature_matrix(k, over_sparse_biases(k))
        scaled = margins * np.abs(exact)  # variables of order 1
        for entry in range(k + 1):
            goal = np.zeros(k + 1)
            goal[entry] = np.sign(exact[entry])
            least = linprog(goal, A_ub=-scaled, b_ub=-np.ones(k + 1), bounds=[(None, None)])
            assert least.fun == pytest.approx(1, rel=1e-6)


def test_bad_neurons_stay_silent() -> None:
    """All biases are at most −15/16k, and a bad neuron's input at most 11/16k.

    The largest bias is −31/32k. An offset of 3/4 gives −10/16k, enough for the 9/16k + ητ ≤ 10/16k
    that the proof has before it rounds up.
    """
    for k in range(2, 21, 2):
        biases = over_sparse_biases(k)
        assert biases.max() == pytest.approx(-31 / (32 * k))
        assert biases.max() <= -15 / (16 * k)
        assert over_sparse_biases(k, offset=0.75).max() == pytest.approx(-10 / (16 * k))
