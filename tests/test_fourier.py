"""Spectra, population gradients and gaps: against enumeration, closed forms and autograd."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from petridish.errors import UserError
from petridish.models import (
    ACTIVATIONS,
    Activation,
    InfiniteZigzag,
    Oscillating,
    Power,
    ReLU,
    Sine,
    Zigzag,
)
from petridish.theory.closed_form import sine_gradient
from petridish.theory.fourier import (
    all_signs,
    fourier_coefficients,
    fourier_gap,
    mask_bits,
    population_gradient_by_enumeration,
    relu_derivative,
    sampled_gradient,
    set_mask,
    strict_gap,
    walsh_hadamard,
)
from petridish.theory.majority import step_coefficient
from petridish.training.population_gradient import derivative
from tests.fourier_cases import ALL_ACTIVATIONS, plain_gradient

# The transform


def test_inputs_and_sets_are_counted_by_bits() -> None:
    """Input 5 = 101 in binary has −1 at the bits 0 and 2; the set 9 holds 0 and 3."""
    assert all_signs(3)[5].tolist() == [-1, 1, -1]
    assert len({tuple(x) for x in all_signs(6).tolist()}) == 64
    assert (set_mask((3, 0)), mask_bits(9), set_mask(()), mask_bits(0)) == (9, (0, 3), 0, ())
    for mask in range(64):
        assert set_mask(mask_bits(mask)) == mask


@pytest.mark.parametrize("n", range(8))
def test_the_transform_is_the_sum_over_characters(n: int, seed: int) -> None:
    """Every entry is Σ f(x) χ_T(x) with χ_T multiplied out, for several functions at once."""
    values = np.random.default_rng(seed).standard_normal((2, 3, 2**n))
    x = all_signs(n)
    characters = np.array(
        [x[:, list(mask_bits(mask))].prod(axis=1, dtype=np.int64) for mask in range(2**n)]
    )
    kept = values.copy()
    coefficients = fourier_coefficients(values)

    assert np.array_equal(values, kept)
    assert np.allclose(coefficients * 2**n, values @ characters.T)
    assert walsh_hadamard(values) is values
    assert np.allclose(values, coefficients * 2**n)


def test_twice_the_transform_gives_the_function_back(seed: int) -> None:
    """Times 2^n; in float32 too, at n = 16, and Parseval's sum of squares is the mean square."""
    values = np.random.default_rng(seed).standard_normal(2**16).astype(np.float32)
    spectrum = fourier_coefficients(values)

    assert spectrum.dtype == np.float32
    assert float((spectrum.astype(float) ** 2).sum()) == pytest.approx(
        float((values.astype(float) ** 2).mean()), rel=1e-5
    )
    assert np.allclose(walsh_hadamard(spectrum), values, atol=1e-5)


def test_a_character_has_one_coefficient() -> None:
    """χ_T is 1 at T and 0 elsewhere, for all T of five bits."""
    x = all_signs(5)
    for mask in range(32):
        values = x[:, list(mask_bits(mask))].prod(axis=1, dtype=np.float64)
        assert np.array_equal(fourier_coefficients(values), np.arange(32) == mask)


def test_what_cannot_be_transformed_is_named() -> None:
    """A length that is no power of two, whole numbers, a view, too many bits."""
    for values, message in (
        (np.zeros(6), "walsh_hadamard: 6 values of type float64. Give 2^n of them as int32, "),
        (np.zeros(4, np.int64), "walsh_hadamard: 4 values of type int64. Give 2^n of them as "),
        (np.zeros(8)[::2], "walsh_hadamard: the values are not contiguous. Give a copy of them."),
    ):
        with pytest.raises(UserError) as error:
            walsh_hadamard(values)  # type: ignore[type-var] # on purpose
        assert str(error.value).startswith(message)
    with pytest.raises(UserError) as error:
        all_signs(25)
    assert str(error.value) == (
        "all_signs: n=25 bits have 2^25 inputs. Give n up to 24, or take a sample."
    )


def test_the_derivative_of_a_relu_is_autograds(seed: int) -> None:
    """At random points and at the corner, where PyTorch takes 0."""
    z = np.append(np.random.default_rng(seed).uniform(-12, 12, 100), 0.0)

    class Own(ReLU):
        """A ReLU that is no longer known as one."""

    assert derivative(ReLU()) is relu_derivative
    assert np.array_equal(derivative(Own())(z), relu_derivative(z))
    assert {a.name for a in ALL_ACTIVATIONS} == set(ACTIVATIONS)


def test_derivatives_by_differences(seed: int) -> None:
    """σ' is the slope of σ between two close points, also where gradients are switched off."""
    import torch

    z = np.random.default_rng(seed).uniform(-6, 6, 100)
    z = z[np.abs(z - np.rint(z)) > 1e-3]  # corners are at whole numbers
    with torch.no_grad():
        for activation in ALL_ACTIVATIONS:
            above, below = (
                activation(torch.from_numpy(z + step)).numpy() for step in (1e-6, -1e-6)
            )
            slope = (above - below) / 2e-6
            assert np.allclose(derivative(activation)(z), slope, rtol=1e-5, atol=1e-4), activation


# Population gradients


@pytest.mark.parametrize("n", [1, 2, 5, 8, 11])
@pytest.mark.parametrize(
    "activation",
    [ReLU(), Power(3), Zigzag(3), Oscillating(4), InfiniteZigzag(2), Sine(3)],
    ids=repr,
)
def test_the_gradient_is_the_mean_over_all_inputs(
    activation: Activation, n: int, seed: int
) -> None:
    """Cut into halves and blocks it equals the plain mean, for supports of every size."""
    rng = np.random.default_rng(seed)
    for k in {1, n // 2, n}:
        support = rng.permutation(n)[:k].tolist()
        w, b = rng.standard_normal((3, n)), rng.standard_normal(3)
        found = population_gradient_by_enumeration(derivative(activation), w, b, support)
        assert np.allclose(found, plain_gradient(activation, w, b, support), atol=1e-12)


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Blocks of 64 entries give a ReLU's gradient bit for bit as one block does."""
    rng = np.random.default_rng(seed)
    w, b = rng.standard_normal((5, 10)), rng.standard_normal(5)
    whole = population_gradient_by_enumeration(relu_derivative, w, b, (2, 7, 8))
    monkeypatch.setattr("petridish.theory.fourier._BLOCK", 64)
    blocks = population_gradient_by_enumeration(relu_derivative, w, b, (2, 7, 8))

    assert np.array_equal(whole, blocks)


def test_the_gradient_is_read_off_the_spectrum(seed: int) -> None:
    """g_i is the coefficient of σ'(w · x + b) at S ∖ {i} for i ∈ S, at S ∪ {i} for others."""
    rng = np.random.default_rng(seed)
    w, b, support = rng.standard_normal(9), 0.3, (1, 4, 6)
    spectrum = fourier_coefficients(derivative(ReLU())(all_signs(9) @ w + b))
    (found,) = population_gradient_by_enumeration(
        derivative(ReLU()), w[None], np.array([b]), support
    )

    for i in range(9):
        assert found[i] == spectrum[set_mask(support) ^ (1 << i)]


@pytest.mark.parametrize("n", [3, 8, 9, 12])
def test_weights_of_one_have_majoritys_coefficients(n: int) -> None:
    """For all k, as fractions: a ReLU's gradient is exact where weights are whole numbers."""
    for k in range(1, n + 1):
        (g,) = population_gradient_by_enumeration(
            relu_derivative, np.ones((1, n)), np.zeros(1), range(k)
        )
        assert Fraction(g[0]) == step_coefficient(n, k - 1)
        assert k == n or Fraction(g[-1]) == step_coefficient(n, k + 1)


def test_signs_turn_signs_alone(seed: int) -> None:
    """Random signs instead of ones leave every |g_i| as it was."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (4, 9))
    relu = relu_derivative
    g = population_gradient_by_enumeration(relu, signs, np.zeros(4), range(4))
    ones = population_gradient_by_enumeration(relu, np.ones((1, 9)), np.zeros(1), range(4))

    assert np.array_equal(np.abs(g), np.broadcast_to(np.abs(ones), (4, 9)))


def test_twenty_four_bits() -> None:
    """The largest enumeration equals the closed form of a cosine."""
    rng = np.random.default_rng(0)
    w, b = rng.uniform(-0.3, 0.3, (1, 24)), rng.standard_normal(1)
    found = population_gradient_by_enumeration(derivative(Sine(3)), w, b, (0, 11, 23))
    rate = math.pi / 2
    exact = rate * sine_gradient(w, b, (0, 11, 23), rate=rate, phase=-math.pi)

    assert np.allclose(found, exact, atol=1e-12)


def test_samples_agree_within_their_errors() -> None:
    """(estimate − truth) / standard error has mean square 1 over 200 samples, within 15 %."""
    rng = np.random.default_rng(0)
    w, b, support = rng.standard_normal((2, 8)), rng.standard_normal(2), (0, 5)
    for activation in (ReLU(), Sine(2)):
        truth = plain_gradient(activation, w, b, support)
        deviations = [
            (found - truth) / error
            for found, error in (
                sampled_gradient(
                    derivative(activation),
                    w,
                    b,
                    support,
                    rng.choice([-1.0, 1.0], (400, w.shape[1])),
                )
                for _ in range(200)
            )
        ]
        assert np.mean(np.square(deviations)) == pytest.approx(1, rel=0.15)


def test_gaps_by_hand() -> None:
    """S = {0, 2}: sizes 5 and 1 inside, 3 and 0 outside; the strict gap is negative."""
    g = np.array([[-5.0, 3.0, 1.0, 0.0], [2.0, 0.0, -2.0, 0.0]])

    assert fourier_gap(g, (0, 2)).tolist() == [2, 2]
    assert strict_gap(g, (0, 2)).tolist() == [-2, 2]
    assert fourier_gap(g, range(4)).tolist() == [5, 2]
    with pytest.raises(UserError) as error:
        fourier_gap(g, (0, 4))
    assert str(error.value) == (
        "support: the bits [4] lie outside 0 … 3. Give more weights or lower bits."
    )


def test_shapes_that_do_not_fit_are_named() -> None:
    """One bias for two neurons."""
    with pytest.raises(UserError) as error:
        population_gradient_by_enumeration(relu_derivative, np.ones((2, 3)), np.zeros(1), (0,))
    assert str(error.value) == (
        "population gradient by enumeration: weights of shape (2, 3) and biases of shape (1,). "
        "Give (neuron, n) and (neuron,)."
    )
