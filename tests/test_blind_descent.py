"""Assumption 2 and Proposition 3 of PF, on small networks over all inputs."""

from __future__ import annotations

import math
from itertools import combinations
from typing import get_args

import numpy as np
import pytest

from petridish.errors import UserError
from petridish.theory.pareto.blind_descent import BlindPath, Sampling, told_apart

PATH = BlindPath(8, 2, 3)


def test_the_gradient_is_the_slope_of_the_loss(seed: int) -> None:
    """By differences, for the target 0 and for a parity; no derivative of h is above 1."""
    rng = np.random.default_rng(seed)
    inputs = PATH.inputs()
    w = rng.normal(size=(2, 9))
    for target in (None, inputs[:, :3].prod(axis=1)):
        labels = np.zeros(len(inputs)) if target is None else target

        def loss(at: np.ndarray, labels: np.ndarray = labels) -> float:
            return float(np.mean((PATH.derivatives(at, inputs)[0] - labels) ** 2) / 2)

        step = np.zeros_like(w)
        step[1, 4] = 1e-5
        slope = (loss(w + step) - loss(w - step)) / 2e-5
        assert PATH.gradient(w, inputs, target)[1, 4] == pytest.approx(slope, rel=1e-6)
    assert np.abs(PATH.derivatives(w, inputs)[1]).max() <= 1


def test_differences_are_those_of_the_gradients() -> None:
    """For every parity of 3 bits, the largest of the gradient less that for the target 0."""
    inputs = PATH.inputs()
    by_mask = sorted(combinations(range(8), 3), key=lambda bits: sum(1 << b for b in bits))
    expected = [
        max(
            np.abs(
                PATH.gradient(w, inputs, inputs[:, list(bits)].prod(axis=1))
                - PATH.gradient(w, inputs)
            ).max()
            for w in PATH.weights()
        )
        for bits in by_mask
    ]

    assert PATH.differences(3) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("n", "k"), [(8, 3), (10, 5)])
def test_most_parities_do_not_show(n: int, k: int, seed: int) -> None:
    """As the proof has it: the mean of the square over S is at most r T / C(n, k)."""
    for width, steps in ((1, 1), (3, 4)):
        path = BlindPath(n, width, steps, seed=seed)
        bound = path.parameters * steps / math.comb(n, k)
        assert float(np.mean(path.differences(k) ** 2)) <= bound
        assert told_apart(n, k, width=width, steps=steps, tau=0.5, starts=3) <= bound / 0.0625


def test_what_shows_leaves_the_path_and_nothing_else(seed: int) -> None:
    """Noise of τ hides every parity of 5 bits and none of 1 bit, whose derivative is near 1."""
    path = BlindPath(10, 2, 5, seed=seed)
    hidden = path.differences(5).max()
    shown = path.differences(1).min()

    assert hidden < 0.05 < 0.5 < shown
    assert path.leaves_at(range(5), 4_000, 0.2, seed=seed) == path.steps
    assert path.leaves_at([0], 4_000, 0.2, seed=seed) == 0


def test_without_noise_enough_for_its_sample_a_step_shows() -> None:
    """With few examples their own error is above τ, for whatever target."""
    assert BlindPath(10, 2, 5).leaves_at(range(5), 20, 0.2) == 0


@pytest.mark.parametrize("sampling", get_args(Sampling))
def test_a_precision_takes_as_many_examples_as_its_inverse_square(sampling: Sampling) -> None:
    """For each way of sampling: 16 times the examples have a quarter of the error.

    Means over 20 fixed draws, whose quotient has a standard deviation of about 0.25. And as
    Hoeffding's inequality has it, the error exceeds √(2 log(2 r T / δ) / m) in at most δ of them,
    for one neuron, whose gradient is at most 1.
    """
    path = BlindPath(8, 1, 3)
    few, many = (
        np.array([path.sample_error(m, sampling=sampling, seed=draw) for draw in range(20)])
        for m in (200, 3_200)
    )
    bound = math.sqrt(2 * math.log(2 * path.parameters * path.steps / 0.05) / 200)

    assert 2.8 < few.mean() / many.mean() < 5.5
    assert (few > bound).mean() <= 0.05


def test_assumption_2_is_about_another_target_than_the_proof() -> None:
    """The sample's error for χ_S is twice that for 0, where outputs are nearer to 0."""
    for_nothing, for_a_parity = (
        np.mean([PATH.sample_error(400, support=support, seed=draw) for draw in range(10)])
        for support in (None, (0, 1, 2))
    )

    assert for_a_parity > 1.5 * for_nothing


def test_an_unknown_way_of_sampling_is_refused() -> None:
    """With those that there are."""
    with pytest.raises(UserError) as caught:
        PATH.sample_error(10, sampling="stream")  # type: ignore[arg-type]
    assert str(caught.value) == (
        "sample_error: sampling='stream'. Give one of ('online', 'offline', 'batches')."
    )
