"""Theorem 5.5's big step, the second layer over it, and Theorem 5.6: against enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.theory.hidden.one_step import (
    bias_grid,
    chance_of_all_biases,
    first_gradient,
    first_rate,
    good_pair_chance,
    gradient_precision,
    gradient_samples,
    is_good,
    kernel_limit,
    least_bits,
    loss_after_step,
    network_loss,
    parity_layer,
    printed_layer,
    representing_share,
    step_biases,
    stepped_weights,
    theorem55_sizes,
    width_for_all_biases,
)
from petridish.theory.hidden.top_k import (
    gap_samples,
    predicted_top_k,
    predicted_top_k_size,
    top_k_trials,
)
from petridish.theory.majority import majority_coefficient
from petridish.theory.parity_step import least_hinge_loss, parity_of_sum, step_features
from tests.test_theory_majority import cube

Floats = NDArray[np.float64]


# The step


@pytest.mark.parametrize(("n", "k"), [(5, 2), (7, 2), (9, 4), (9, 6), (11, 4)])
def test_the_gradient_of_any_neuron(n: int, k: int) -> None:
    """For random signs and every bias of the grid, −η g over all inputs is `stepped_weights`.

    The bias itself has no gradient [HP Lemma B.3].
    """
    x = cube(n).astype(np.float64)
    label = x[:, :k].prod(axis=1)
    rng = np.random.default_rng(n)
    for bias in bias_grid(k):
        w, u = rng.choice([-1, 1], size=n), int(rng.choice([-1, 1]))
        active = x @ w + bias > 0
        gradient = -u * np.mean((label * active)[:, None] * x, axis=0)

        assert np.allclose(-first_rate(n, k) * gradient, stepped_weights(w, u, k), atol=1e-12)
        assert np.mean(label * active) == pytest.approx(0, abs=1e-15)
        assert np.allclose(np.abs(gradient[:k]), float(first_gradient(n, k)[0]))
        assert np.allclose(np.abs(gradient[k:]), float(first_gradient(n, k)[1]))


def test_the_ratio_of_the_gradients() -> None:
    """Exactly (n − k) / (k − 1), for all odd n up to 41 and even k."""
    for n in range(5, 42, 2):
        for k in range(2, n - 1, 2):
            inside, outside = first_gradient(n, k)
            assert inside / outside * (k - 1) == n - k


@pytest.mark.parametrize(("n", "k"), [(9, 2), (9, 4), (13, 6)])
def test_good_neurons_become_the_sum(n: int, k: int) -> None:
    """A good neuron has the weights 1/2k on S, its twin −1/2k; others keep their own signs."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        w, u = rng.choice([-1, 1], size=n), int(rng.choice([-1, 1]))
        weights = stepped_weights(w, u, k)
        own = weights[:k] * 2 * k * w[:k]

        assert np.allclose(own, own[0])  # one sign times the neuron's own
        assert abs(own[0]) == pytest.approx(1)
        assert is_good(w, u, k) == np.allclose(weights[:k], 1 / (2 * k))
        assert np.allclose(stepped_weights(w, -u, k), -weights)


# The second layer


@pytest.mark.parametrize(
    ("k", "first", "second"), [(2, 1.0, 1 / 4), (4, 1 / 4, 1 / 16), (6, 1 / 16, 1 / 64)]
)
def test_neither_set_of_biases_makes_the_parity(k: int, first: float, second: float) -> None:
    """Rising neurons alone: k features for k + 1 values; the least hinge loss is not 0."""
    _, parity, chance = parity_of_sum(k)
    for lemma, loss in (("B.4", first), ("B.5", second)):
        features = step_features(k, step_biases(k, lemma))  # type: ignore[arg-type] # two literals
        assert features.shape == (k + 1, k)
        assert least_hinge_loss(features, parity, chance) == pytest.approx(loss, abs=1e-7)


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_the_printed_layer_has_the_wrong_sign_and_one_wrong_value(k: int) -> None:
    """Over Lemma B.4's biases u* is −2χ_S, and 6 at s_x = k."""
    sums, parity, _ = parity_of_sum(k)
    output = step_features(k, step_biases(k, "B.4")) @ printed_layer(k)

    assert np.allclose(output[sums < k], -2 * parity[sums < k])
    assert output[sums == k] == pytest.approx(6)


@pytest.mark.parametrize("k", [2, 4, 6, 8, 10])
def test_a_twin_repairs_it(k: int) -> None:
    """Lemma B.5's biases and the twin of the last neuron make 2χ_S, within the text's norms.

    All of these biases can be drawn, for k = 2 too.
    """
    biases, layer = step_biases(k, "B.5"), parity_layer(k)
    output = step_features(k, biases, [biases[-1]]) @ layer

    assert np.allclose(output, 2 * parity_of_sum(k)[1], atol=1e-9)
    assert np.abs(layer).max() <= 8 * k
    assert np.linalg.norm(layer) <= 8 * k * math.sqrt(k)
    assert np.abs(layer).sum() <= 8 * k**2
    grid = bias_grid(k)
    assert len(grid) == 2 * k - 1
    assert np.isin(np.rint(biases * k), np.rint(grid * k)).all()


def test_the_printed_biases_leave_the_grid_for_two_bits() -> None:
    """Lemma B.4's second bias is 1 for k = 2; drawn are −½, 0 and ½."""
    assert step_biases(2, "B.4").tolist() == [0.5, 1.0]
    assert bias_grid(2).tolist() == [-0.5, 0.0, 0.5]


def test_every_frame_will_do() -> None:
    """Pairs of mixed signs on S, one for each bias, make the parity as well; one pair cannot."""
    for k in (2, 4):
        biases = step_biases(k, "B.5")
        good = np.ones((k, k), np.int64)
        mixed = good.copy()
        mixed[:, 0] = -1

        assert network_loss(k, good, biases) == pytest.approx(0, abs=1e-7)
        assert network_loss(k, mixed, biases) == pytest.approx(0, abs=1e-7)
        assert network_loss(k, mixed[:1], biases[:1]) > 0.05


# Width


def test_the_chance_of_a_good_pair() -> None:
    """Drawn pairs have equal signs on S and a given bias as often as it says."""
    rng = np.random.default_rng(0)
    signs = rng.integers(0, 2, size=(200_000, 2))
    biases = rng.integers(0, 3, size=200_000)
    share = np.mean((signs[:, 0] == signs[:, 1]) & (biases == 1))

    assert float(good_pair_chance(2)) == pytest.approx(1 / 6)
    assert share == pytest.approx(1 / 6, abs=5 * math.sqrt(5 / 36 / 200_000))


@pytest.mark.parametrize("k", [2, 4])
def test_widths_and_what_they_hold(k: int) -> None:
    """The proved width fails with at most δ; the printed one with more than δ."""
    for delta in (0.1, 0.01):
        printed, proved = (
            width_for_all_biases(k, delta, version=version) for version in ("printed", "proved")
        )
        assert 1 - chance_of_all_biases(proved, k) <= delta
        assert 1 - chance_of_all_biases(printed, k) > 2 * delta
        assert printed % 2 == proved % 2 == 0


def test_all_biases_by_drawing() -> None:
    """Inclusion and exclusion against 4000 drawn networks of 12 pairs."""
    rng = np.random.default_rng(1)
    signs = rng.integers(0, 2, size=(4_000, 12, 2))
    biases = rng.integers(0, 3, size=(4_000, 12))
    good = signs[..., 0] == signs[..., 1]
    found = np.mean([(good & (biases == b)).any(axis=1) for b in (1, 2)], axis=0) == 1

    assert chance_of_all_biases(24, 2) == pytest.approx(found.mean(), abs=0.035)


def test_networks_represent_the_parity_sooner_than_proved() -> None:
    """At a width of 48, k = 4: nearly all drawn networks, though 1 % have all good pairs."""
    share = representing_share(4, 48, draws=15, rng=np.random.default_rng(0))

    assert share > 0.6
    assert chance_of_all_biases(48, 4) < 0.02


# Sizes


def test_lemma_b4_holds_at_finite_n() -> None:
    """Where its bound says anything, 16 ε k² n < 1, the loss is far below it; it falls with n."""
    k = 2
    losses = []
    for n in (1_901, 4_001):
        epsilon = next(e for e in np.geomspace(1e-6, 1e-2, 200)[::-1] if 16 * e * k**2 * n < 1)
        assert n >= least_bits(k, epsilon)
        losses.append(loss_after_step(n, k))
        assert losses[-1] <= 16 * epsilon * k**2 * n
    assert losses[1] < losses[0] < 1e-12
    assert loss_after_step(9, k) > 0.01


def test_the_loss_after_the_step_equals_enumeration() -> None:
    """Over all inputs, with the stepped weights of good neurons of one draw of signs."""
    for n, k in ((9, 2), (11, 4)):
        inputs = cube(n)
        signs = np.where(majority_coefficient(n, k - 1) > 0, 1, -1) * np.ones(n, int)
        weights = stepped_weights(signs, 1, k)
        weights[k:] = np.abs(weights[k:])  # a sum of signs is symmetric
        z = inputs @ weights
        biases = step_biases(k)
        features = np.maximum(np.stack([*(z + b for b in biases), biases[-1] - z]), 0)
        parity = inputs[:, :k].prod(axis=1)
        hinge = np.maximum(1 - parity * (parity_layer(k) @ features), 0)

        assert np.all(weights[:k] == pytest.approx(1 / (2 * k)))
        assert loss_after_step(n, k) == pytest.approx(float(hinge.mean()))


def test_the_precision_is_what_the_proof_needs() -> None:
    """At equality a good neuron moves by 1/8k²; below `least_bits` no precision suffices."""
    n, k, epsilon = least_bits(2, 0.1), 2, 0.1
    tau = gradient_precision(n, k, epsilon)
    outside = float(first_gradient(n, k)[1])
    root = math.sqrt(2 * (n - k) * math.log(2 * k / epsilon))
    moved = first_rate(n, k) * ((k + 1) * tau + (outside + tau) * root)

    assert tau > 0
    assert moved == pytest.approx(1 / (8 * k**2))
    assert gradient_precision(n - 2, k, epsilon) == 0


def test_hoeffding_for_the_irrelevant_weights() -> None:
    """The text's deviation Δ √(n log(2k/ε) / 2) is passed with more than ε/k.

    Signs of 400 weights of one size: the exact binomial tail is 0.18 where ε/k = 0.05; twice the
    deviation keeps it.
    """
    from scipy.stats import binom

    n, k, epsilon = 400, 2, 0.1
    for factor, kept in ((0.5, False), (2.0, True)):
        bound = math.sqrt(factor * n * math.log(2 * k / epsilon))
        tail = 2 * float(binom.sf(math.ceil((n + bound) / 2) - 1, n, 0.5))
        assert (tail <= epsilon / k) is kept


def test_sample_sizes_by_hand() -> None:
    """2 log(4nr/δ) / τ², and 8 log(2n/δ) / γ²."""
    assert gradient_samples(10, 4, tau=0.1, delta=0.1) == math.ceil(200 * math.log(1600))
    inside, outside = first_gradient(15, 2)
    gap = float(inside - outside)
    assert gap_samples(15, 2, delta=0.1) == math.ceil(8 * math.log(300) / gap**2)
    with pytest.raises(UserError, match="n may be too small"):
        gradient_samples(10, 4, tau=0.0, delta=0.1)


def test_the_sizes_of_theorem_55() -> None:
    """At (4001, 2), ε = 0.1: T is 8 times as long as printed for its width, η M / ρ √T."""
    for version, power in (("printed", 9), ("proved", 12)):
        sizes = theorem55_sizes(4_001, 2, epsilon=0.1, version=version)  # type: ignore[arg-type] # two literals
        assert sizes.steps == pytest.approx(2**power * 8 * sizes.width * 4_001**2 / 0.01)
        # What is left of the regret, 16 k^1.5 √r n / √T, must be at most ε/4.
        regret = 16 * 2**1.5 * math.sqrt(sizes.width) * 4_001 / math.sqrt(sizes.steps - 1)
        assert (regret <= 0.025 * (1 + 1e-9)) is (version == "proved")
        assert sizes.second_rate == pytest.approx(
            8 * 2**1.5 / (2 * math.sqrt(sizes.width) * 4_001 * math.sqrt(sizes.steps - 1))
        )
        assert sizes.first_rate == first_rate(4_001, 2)


def test_the_power_of_k_in_the_batch_is_seven_halves() -> None:
    """2 / τ² over n C(n, k−1) and its logarithm is of the order k^(7/2); the text has k^(7/6)."""
    epsilon, orders = 0.1, []
    for k in range(2, 32, 2):
        n = 2 * k**2 + 1
        tau = theorem55_sizes(n, k, epsilon=epsilon, version="printed").tau
        log = math.log(128 * k**3 * n / epsilon)
        orders.append(2 / (tau**2 * n * math.comb(n, k - 1) * log))

    powers = np.arange(2, 32, 2.0)
    right, printed = (np.array(orders) / powers**power for power in (7 / 2, 7 / 6))
    assert 2**10 / 2.2 < right.min() < right.max() < 2**10 / 0.5
    assert printed[-1] > 100 * printed[0]


# The first gradient


def test_the_whole_cube_shows_the_parity() -> None:
    """The population's gradient has its k largest entries at S, for all n up to 31."""
    for n in range(5, 32, 2):
        for k in range(2, (n + 1) // 2, 2):
            inside, outside = first_gradient(n, k)
            assert inside > outside


def test_recovery_is_as_predicted() -> None:
    """(31, 2): 150 samples of each size; prediction within four standard errors."""
    sizes = [200, 800, 2_000, 4_000]
    found = top_k_trials(31, 2, sizes, trials=150, rng=np.random.default_rng(0)).mean(axis=0)
    for share, m in zip(found, sizes, strict=True):
        expected = predicted_top_k(31, 2, m)
        assert share == pytest.approx(
            expected, abs=4 * math.sqrt(expected * (1 - expected) / 150) + 0.02
        )
    assert found[0] < 0.2
    assert found[-1] > 0.95
    half = predicted_top_k_size(31, 2)
    assert predicted_top_k(31, 2, half) == pytest.approx(0.5, abs=1e-3)


def test_the_proof_of_proposition_b7_says_too_much() -> None:
    """At (9, 4) entries off S are above γ/2; yet the k largest of an estimate within γ/2 are S."""
    inside, outside = (float(value) for value in first_gradient(9, 4))
    gap = inside - outside
    gradient = np.array([inside] * 4 + [outside] * 5)
    worst = gradient + 0.499 * gap * np.array([-1] * 4 + [1] * 5)

    assert outside > gap / 2
    assert worst[:4].min() > worst[4:].max()


def test_the_gap_s_sample_is_enough() -> None:
    """(9, 2): the sample of Proposition B.7 for δ = 0.1 shows S in all of 40 trials."""
    m = gap_samples(9, 2, delta=0.1)

    assert top_k_trials(9, 2, [m], trials=40, rng=np.random.default_rng(0)).all()
    assert m > predicted_top_k_size(9, 2, goal=0.9)


# Fixed features


def test_the_kernel_limit_holds_for_some_parity() -> None:
    """20 features of 6 bits, R = 1: hinge loss on the hardest 3-parity, least over w.

    Gradient descent finds the least loss from above; it stays above 1 − R / √C(6, 3), and so above
    the printed limit.
    """
    x = cube(6).astype(np.float64)
    rng = np.random.default_rng(0)
    features = np.maximum(x @ rng.standard_normal((6, 20)) + rng.standard_normal(20), 0)
    features /= np.linalg.norm(features, axis=1).max()
    proved, printed = (
        kernel_limit(6, 3, 20, 1.0, version=version) for version in ("proved", "printed")
    )
    supports = [(a, b, c) for a in range(6) for b in range(a + 1, 6) for c in range(b + 1, 6)]
    losses = []
    for support in supports:
        label = x[:, list(support)].prod(axis=1)
        w = np.zeros(20)
        best = 1.0
        for step in range(300):
            margin = label * (features @ w)
            w += (features * (label * (margin < 1))[:, None]).mean(axis=0) / math.sqrt(1 + step)
            w /= max(1.0, float(np.linalg.norm(w)))
            best = min(best, float(np.maximum(1 - label * (features @ w), 0).mean()))
        losses.append(best)

    assert printed <= proved == pytest.approx(1 - 1 / math.sqrt(20))
    assert max(losses) > proved
    assert min(losses) < 1


def test_the_limit_does_not_hold_for_errors() -> None:
    """The one feature Ψ ≡ 1 with w = 1 errs on half of the inputs of every parity."""
    x = cube(9)
    for support in itertools.combinations(range(9), 4):
        label = x[:, list(support)].prod(axis=1)
        assert np.mean(1 * label <= 0) == 0.5
    # D R² = 1 < ε² C(9, 4) for ε = 0.1: the text says that some parity has a loss above 0.9.
    assert kernel_limit(9, 4, 1, 1.0) > 0.9


@pytest.mark.parametrize("epsilon", [0.3, 0.6, 0.99, 1])
def test_scaled_parities_have_no_errors(epsilon: float) -> None:
    """All parities of 2 of 6 bits, scaled to norm 1: R e_S has an error of 0 for an R below ε."""
    x = cube(6).astype(np.float64)
    supports = list(itertools.combinations(range(6), 2))
    labels = np.stack([x[:, list(support)].prod(axis=1) for support in supports], axis=1)
    features = labels / math.sqrt(len(supports))
    radius = 0.99 * epsilon
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1)
    assert len(supports) * radius**2 < epsilon**2 * math.comb(6, 2)
    for place, label in enumerate(labels.T):
        w = radius * np.eye(len(supports))[place]
        assert np.mean(label * (features @ w) <= 0) == 0
    # The text says that some parity has a loss above 1 − ε, and so above 0.
    assert kernel_limit(6, 2, len(supports), radius) >= 1 - epsilon


def test_with_features_of_at_most_one_each_their_number_counts() -> None:
    """All parities as features, R = ε: a hinge loss of 1 − ε, as the printed limit says."""
    x = cube(6).astype(np.float64)
    supports = list(itertools.combinations(range(6), 3))
    features = np.stack([x[:, list(support)].prod(axis=1) for support in supports], axis=1)
    for place, label in enumerate(features.T):
        w = 0.3 * np.eye(len(supports))[place]
        assert np.maximum(1 - label * (features @ w), 0).mean() == pytest.approx(0.7)
    assert kernel_limit(6, 3, len(supports), 0.3) == pytest.approx(0.7)
    assert kernel_limit(6, 3, len(supports), 0.3, version="proved") > 0.9


@pytest.mark.parametrize(
    ("n", "k", "message"),
    [
        (9, 3, "one_step: k=3 is odd, where the gradient shows nothing. Give an even k."),
        (
            10,
            2,
            "one_step: n=10, k=2. Give an odd number of bits above k: with an even one the neurons "
            "are no majorities.",
        ),
    ],
)
def test_sizes_beyond_the_theorem_are_refused(n: int, k: int, message: str) -> None:
    """Even n and odd k."""
    with pytest.raises(UserError) as caught:
        first_gradient(n, k)
    assert str(caught.value) == message
