"""One truncated step from the under-sparse start: what the proof says, and what samples give."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from petridish.errors import UserError
from petridish.theory.pareto.gradients import population_gradient
from petridish.theory.pareto.recovery import (
    Found,
    predicted_recovery,
    predicted_size,
    recovery_curve,
    recovery_slope,
    recovery_trials,
)
from petridish.theory.pareto.under_sparse import (
    Floats,
    ReluNetwork,
    Threshold,
    UnderSparse,
    best_correlation,
    bias_features,
    correlation_curve,
    good_network,
    sample_gradient,
    second_layer_weights,
    subnetwork,
    truncated_step,
    untrained_correlation,
)
from petridish.theory.parity_step import label_sums
from tests.test_theory_majority import cube

RECIPES = [UnderSparse(n=7, k=4, s=2), UnderSparse(n=8, k=4, s=2), UnderSparse(n=9, k=6, s=4)]


def mean_gradient(recipe: UnderSparse, network: ReluNetwork) -> Floats:
    """Return the population's gradient, shape (width, n), by [PF Lemmas 18–20].

    The biases matter only at ties, which they decide by their sign.
    """
    support = range(recipe.k)
    rows = [
        -u
        * population_gradient(
            recipe.n,
            support,
            [int(i) for i in np.flatnonzero(w == 1)],
            regime="under-sparse",
            at_zero=int(b > 0),
        )
        for w, b, u in zip(network.weights, network.biases, network.signs, strict=True)
    ]
    return np.stack(rows)


def random_network(recipe: UnderSparse, width: int, rng: np.random.Generator) -> ReluNetwork:
    """Draw the initialisation as printed: width/2 random neurons, each with a mirrored copy."""
    half = width // 2
    order = rng.permuted(np.tile(np.arange(recipe.n), (half, 1)), axis=1)
    weights = np.where(order < recipe.s, 1.0, recipe.epsilon)
    biases, signs = rng.choice(recipe.biases, half), rng.choice([-1.0, 1.0], half)
    return ReluNetwork(
        np.tile(weights, (2, 1)), np.tile(biases, 2), np.concatenate([signs, -signs])
    )


def test_the_numbers_of_the_start_are_as_printed() -> None:
    """ε = 1 / (2 (n − s)), and biases are odd multiples of ε/2k."""
    recipe = UnderSparse(n=9, k=4, s=2)

    assert recipe.epsilon == 1 / 14
    assert np.allclose(recipe.biases * 2 * 4 / recipe.epsilon, [-3, -1, 1, 3])


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_whole_cube_as_a_sample_gives_the_mean_gradient(recipe: UnderSparse, seed: int) -> None:
    """For good and bad neurons and odd and even n: biases decide ties and nothing else."""
    network = random_network(recipe, 60, np.random.default_rng(seed))
    sampled = sample_gradient(recipe, network, cube(recipe.n).astype(float))

    assert np.allclose(sampled, mean_gradient(recipe, network), atol=1e-14)


def test_the_gradient_is_that_of_the_hinge_loss(seed: int) -> None:
    """By differences of the loss itself, at a start with f = 0."""
    recipe = UnderSparse(n=7, k=4, s=2)
    rng = np.random.default_rng(seed)
    network = random_network(recipe, 8, rng)
    x = rng.choice([-1.0, 1.0], size=(50, 7))
    label = x[:, :4].prod(axis=1)
    gradient = sample_gradient(recipe, network, x)
    for neuron, bit in ((0, 0), (3, 5), (6, 2)):
        moved = network.weights.copy()
        moved[neuron, bit] += 1e-6
        loss = np.maximum(1 - label * replace(network, weights=moved)(x), 0).mean()
        assert (loss - 1) / 1e-6 == pytest.approx(gradient[neuron, bit], abs=1e-6)


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_weights_after_the_step(recipe: UnderSparse) -> None:
    """ε/2k on S', (1 + ε) ε/2k on S ∖ S', ε²/2k outside, for the copy with u = sign(ξ).

    Printed: ε/2k on all of S and ε²/k outside. With the printed sign of η it is the other copy.
    """
    before = good_network(recipe)
    after = truncated_step(recipe, before, mean_gradient(recipe, before), threshold="printed")
    right = after.weights[before.signs == np.sign(recipe.relevant)]
    unit, k, s = recipe.epsilon / (2 * recipe.k), recipe.k, recipe.s

    assert np.allclose(right[:, :s], unit, rtol=1e-12)
    assert np.allclose(right[:, s:k], unit * (1 + recipe.epsilon), rtol=1e-12)
    assert np.allclose(right[:, k:], unit * recipe.epsilon, rtol=1e-12)
    wrong = after.weights[before.signs != np.sign(recipe.relevant)]
    assert np.all(wrong[:, s:k] < 0)


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_k_biases_make_the_parity_but_for_one_value(k: int) -> None:
    """There are k features, all 0 at s_x = −k, and triangular at the other k of the k + 1 values.

    So the correlation is 1 − 2^−k with β = 0, and 1 with a free output bias: more than the ½ − ε
    claimed, and with k neurons, as the proof begins, not the k + 1 with which it ends.
    """
    features = bias_features(k)
    weights, _ = second_layer_weights(k, output_bias="zero")

    assert not features[0].any()
    assert np.linalg.matrix_rank(features) == k
    assert weights == pytest.approx([(-1) ** j * max(1, 4 * j - 4) for j in range(1, k + 1)])
    assert best_correlation(k, output_bias="zero") == pytest.approx(1 - 2.0**-k)
    assert best_correlation(k, output_bias="free") == pytest.approx(1)


@pytest.mark.parametrize("share", [0.5, 0.05])
def test_a_small_epsilon_is_needed(share: float) -> None:
    """Over all of {±1}^9, (9, 4), s = 2: the signs agree to 15/16 for small ε, less for large."""
    recipe = UnderSparse(n=9, k=4, s=2, share=share)
    before = good_network(recipe)
    after = truncated_step(recipe, before, mean_gradient(recipe, before), threshold="printed")
    x = cube(9).astype(float)
    label = x[:, :4].prod(axis=1)
    output = subnetwork(recipe, after, output_bias="zero")(x)

    agreement = float(np.mean(np.sign(np.round(output, 9)) * label))
    assert agreement == pytest.approx(15 / 16 if share < 0.1 else 0.84, abs=0.01)


def test_an_untrained_second_layer_may_not_reach_a_half() -> None:
    """With u left at ±1 the best cosine is 0.70 and 0.73 for k − s = 2, 0.31 and 0.26 for 4."""
    found = [untrained_correlation(k, s) for k, s in ((4, 2), (6, 4), (6, 2), (4, 0))]

    assert found == pytest.approx([0.702, 0.730, 0.312, 0.259], abs=1e-3)


def test_the_printed_threshold_finds_nothing_in_a_sample(seed: int) -> None:
    """γ = |ξ| outside S zeroes those bits for the population only; half-way, a sample does.

    At (21, 4), s = 2 and m = 16 000: 0 of 40 samples against 35 or more (0.999 predicted).
    """
    cuts: tuple[tuple[Threshold, int, int], ...] = (("printed", 0, 0), ("midway", 35, 40))
    for threshold, low, high in cuts:
        rng = np.random.default_rng(seed)
        share = recovery_curve(21, 4, 2, [16_000], 40, rng, threshold=threshold)
        assert low <= 40 * share[0] <= high
    with pytest.raises(UserError, match="no sample is large enough at the printed threshold"):
        predicted_size(UnderSparse(n=21, k=4, s=2), threshold="printed")


def test_the_printed_precision_is_of_another_order() -> None:
    """|ξ| outside S falls like n^−(k−s+1)/2: its samples would grow with n^(k−s+1), two more."""
    for k, s in ((4, 2), (6, 2)):
        sizes = [UnderSparse(n=n, k=k, s=s).irrelevant for n in (4001, 8001)]
        slope = math.log(abs(sizes[1] / sizes[0])) / math.log(8001 / 4001)
        assert slope == pytest.approx(-(k - s + 1) / 2, abs=0.01)


@pytest.mark.parametrize("n", [21, 22])
def test_recovery_is_as_predicted(n: int, seed: int) -> None:
    """By independent normal entries: 200 samples agree within 4.5 standard errors, 0.16."""
    recipe = UnderSparse(n=n, k=4, s=2)
    sizes = [2000, 4000, 8000]
    share = recovery_curve(n, 4, 2, sizes, 200, np.random.default_rng(seed))

    predicted = [predicted_recovery(recipe, m) for m in sizes]
    assert share == pytest.approx(predicted, abs=0.16)


def test_the_slope_of_the_prediction_tends_to_the_claim() -> None:
    """A bit's sample size grows like n^(k−s−1) for large n; the whole set's a logarithm faster."""

    def slope(k: int, s: int, found: Found) -> float:
        sizes = [predicted_size(UnderSparse(n=n, k=k, s=s), found=found) for n in (4001, 8001)]
        return math.log(sizes[1] / sizes[0]) / math.log(8001 / 4001)

    for k, s in ((4, 2), (6, 4), (6, 2)):
        assert slope(k, s, "bit") == pytest.approx(k - s - 1, abs=0.01)
        assert 0.1 < slope(k, s, "set") - (k - s - 1) < 0.16


def test_against_a_dense_start_the_sample_falls_by_n_to_the_s() -> None:
    """As App. B.3 remarks: for large n by n^s over a constant, with s = 0 as the dense start."""
    for k, s in ((4, 2), (6, 2), (6, 4)):
        falls = [
            predicted_size(UnderSparse(n=n, k=k, s=0), found="bit")
            / predicted_size(UnderSparse(n=n, k=k, s=s), found="bit")
            for n in (4001, 8001)
        ]
        assert math.log(falls[1] / falls[0]) / math.log(8001 / 4001) == pytest.approx(s, abs=0.01)


def test_the_measured_slope(seed: int) -> None:
    """(n, 4), s = 2, n = 21 … 81, 40 samples each: as predicted, within 4.5 standard errors."""
    slope = recovery_slope(
        (21, 41, 81), 4, 2, trials=40, rng=np.random.default_rng(seed), found="bit", resamples=300
    )
    error = (slope.high - slope.low) / (2 * 1.96)

    assert slope.claimed == 1
    assert slope.predicted == pytest.approx(1.07, abs=0.02)
    assert abs(slope.slope - slope.predicted) < 4.5 * error
    assert error < 0.15


def test_finding_the_set_is_not_yet_the_parity(seed: int) -> None:
    """Truncation zeroes small entries but leaves the large ones noisy, so m must grow further.

    At (21, 4), s = 2 and m = 8000 the set S is found in 93 % of samples, yet the subnetwork agrees
    with the parity to 0.73 of 1; at ten times m to 0.90, where the population's step has 0.926.
    Each mean within 4.5 standard errors.
    """
    recipe = UnderSparse(n=21, k=4, s=2)
    rng = np.random.default_rng(seed)
    few, some = correlation_curve(recipe, [500, 8000], trials=40, rng=rng).mean(axis=0)
    (many,) = correlation_curve(recipe, [80_000], trials=5, rng=rng).mean(axis=0)

    assert few == pytest.approx(0, abs=0.03)
    assert some == pytest.approx(0.727, abs=4.5 * 0.175 / math.sqrt(40))
    assert many == pytest.approx(0.897, abs=4.5 * 0.0275 / math.sqrt(5))


def test_trials_agree_with_the_plain_path(seed: int) -> None:
    """The fast sums equal the mean gradient within 5 standard errors, for odd and even n."""
    for recipe in RECIPES:
        sums = (
            label_sums(recipe.n, recipe.k, recipe.s, 200_000, np.random.default_rng(seed)) / 200_000
        )
        last = mean_gradient(recipe, good_network(recipe))[recipe.k // 2]  # bias ε/2k, u = +1
        assert np.abs(sums + last).max() < 5 * math.sqrt(0.5 / 200_000)


def test_mistakes_are_named() -> None:
    """Odd sizes and falling sample sizes are refused in a sentence."""
    with pytest.raises(UserError) as error:
        UnderSparse(n=9, k=3, s=2)
    assert str(error.value) == (
        "UnderSparse: n=9, k=3, s=2. Give even k and s with s < k < n; "
        "otherwise the gradients vanish."
    )
    with pytest.raises(UserError, match="Give rising sizes, from 1 on"):
        recovery_trials(RECIPES[0], [20, 10], trials=1, rng=np.random.default_rng(0))


def test_the_chance_of_a_bias() -> None:
    """The grid has k values, so a good neuron draws a given one with 1/k, not 1/(k + 1)."""
    for k in (2, 4, 6):
        assert Fraction(1, len(UnderSparse(n=9, k=k, s=0).biases)) == Fraction(1, k)
