"""FL's theory: rules on fixed features, the cosine of a step, bounds, and exact networks."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from petridish.errors import UserError
from petridish.tasks import Dictionary
from petridish.theory.inputs.coverage import random_coverage
from petridish.theory.inputs.exact_networks import exact_network
from petridish.theory.inputs.lower_bounds import (
    fixed_feature_bound,
    parseval_bound,
    query_bound,
    query_dimension,
    vacuous_from,
)
from petridish.theory.inputs.steps import (
    balanced_linear_error,
    best_linear_error,
    best_threshold_error,
    step_cosine,
    tent,
)


def law(k: int, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all φ_A, their labels and their probabilities."""
    phi = np.array(list(product((0, 1), repeat=k)))
    counts = phi.sum(axis=1)
    chance = (1 - share) / 2**k + share / 2 * np.isin(counts, (0, k))
    return phi, np.where(counts % 2 == 1, 1, -1), chance


@pytest.mark.parametrize(
    ("k", "largest", "share"), [(1, 2, 0.5), (3, 3, 0.5), (3, 2, 0.2), (5, 1, 0.5)]
)
def test_no_linear_rule_is_better(k: int, largest: int, share: float) -> None:
    """Of all integer weights up to `largest`, with every threshold; some attain the formula."""
    phi, y, chance = law(k, share)
    best = 1.0
    for weights in product(range(-largest, largest + 1), repeat=k):
        z = phi @ np.array(weights)
        for cut in np.unique(z) - 0.5:
            wrong = chance[np.where(z > cut, 1, -1) != y].sum()
            best = min(best, wrong, 1 - wrong)

    assert best == pytest.approx(best_linear_error(k, share), abs=1e-12)


@pytest.mark.parametrize("k", [1, 3, 5, 7])
def test_rules_by_the_number_of_patterns(k: int) -> None:
    """Thresholds and the majority, by enumeration."""
    phi, y, chance = law(k, 0.5)
    counts = phi.sum(axis=1)
    wrong = [chance[np.where(counts >= cut, 1, -1) != y].sum() for cut in range(k + 2)]

    assert best_threshold_error(k, 0.5) == pytest.approx(min(wrong))
    assert balanced_linear_error(k, 0.5) == pytest.approx(wrong[(k + 1) // 2])
    assert best_linear_error(k, 0.5) <= best_threshold_error(k, 0.5) + 1e-12


def test_numbers_for_the_papers_setting() -> None:
    """27/32 for k = 5 by every rule; for 3 and 7 the balanced one is far below the best."""
    rules = (best_linear_error, best_threshold_error, balanced_linear_error)
    assert [1 - rule(5, 0.5) for rule in rules] == pytest.approx([27 / 32] * 3)
    assert [1 - rule(3, 0.5) for rule in rules] == pytest.approx([0.875, 0.8125, 0.625])
    assert [1 - rule(7, 0.5) for rule in rules] == pytest.approx([0.828, 0.8086, 0.672], abs=5e-4)


def test_the_cosine_of_a_step() -> None:
    """0.9992, 0.9985 and 0.9962 in the paper's setting; and by simulation of the mean itself."""
    found = [step_cosine(n, 5, 100, 0.25) for n in (50_000, 25_000, 10_000)]
    assert found == pytest.approx([0.9992, 0.9985, 0.9962], abs=5e-5)
    rng = np.random.default_rng(0)
    n, k, patterns = 400, 3, 40
    cosines = []
    for _ in range(300):
        whole = rng.random((n, 1)) < 0.5
        phi = rng.random((n, patterns)) < 0.5
        phi[:, :k] = np.where(rng.random((n, 1)) < 0.5, whole, phi[:, :k])
        y = np.where(phi[:, :k].sum(axis=1) % 2 == 1, 1, -1)
        w = (y[:, None] * (phi - 0.5)).mean(axis=0)
        cosines.append(w[:k].sum() / np.sqrt(k) / np.linalg.norm(w))
    assert np.mean(cosines) == pytest.approx(step_cosine(n, k, patterns, 0.25), abs=0.01)


def test_a_tent() -> None:
    """0 outside, a·b at the middle, linear between."""
    z = np.array([-1.0, 0.5, 0.75, 1.0, 1.25, 1.5, 3.0])
    assert tent(z, 1.0, 2.0, 0.5) == pytest.approx([0, 0, 0.5, 1, 0.5, 0, 0])


def test_what_has_no_formula() -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        best_linear_error(4, 0.5)
    assert str(refused.value) == (
        "best_linear_error: k=4, share=0.5. Give an odd k of at least 1, and a share from 0 to 1."
    )
    with pytest.raises(UserError) as refused:
        step_cosine(0, 3, 2, 0.25)
    assert str(refused.value) == (
        "step_cosine: n=0, k=3, patterns=2, correlation=0.25. Give n of at least 1, k from 1 to "
        "the number of patterns, and a positive correlation."
    )


def test_bounds_for_fixed_features() -> None:
    """The paper's own setting: Theorem 2 says nothing from B = 0.92 on, Parseval from 354 on."""
    vacuous, better = vacuous_from(100, 5, 600)
    assert vacuous == pytest.approx(0.9238, abs=1e-4)
    assert better == pytest.approx(354.2, abs=0.1)
    assert fixed_feature_bound(5, 600, vacuous) == pytest.approx(0, abs=1e-12)
    assert parseval_bound(100, 5, 600, better) == pytest.approx(0, abs=1e-12)
    assert fixed_feature_bound(5, 600, 0.0) == parseval_bound(100, 5, 600, 0.0) == 0.5
    for patterns, k in ((80, 5), (160, 7), (400, 21)):
        for norm in (0.01, 0.1, 1.0):
            ours, theirs = parseval_bound(patterns, k, 50, norm), fixed_feature_bound(k, 50, norm)
            assert ours >= theirs


@given(
    features=st.integers(1, 6),
    norm=st.floats(0.05, 3.0),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=25, deadline=None)
def test_some_parity_is_hard_for_any_features(features: int, norm: float, seed: int) -> None:
    """For random feature maps of 6 bits the least hinge loss, found by a grid, is above the bound.

    The minimum over ‖w‖ ≤ B is bounded from below by 1 − B ‖E χ Ψ‖, and from above by any w: here
    the best multiple of E χ Ψ. The worst parity of three bits has at least the bound.
    """
    rng = np.random.default_rng(seed)
    signs = np.array(list(product((1, -1), repeat=6)))
    psi = rng.uniform(-1, 1, (64, features))
    worst = 0.0
    for chosen in combinations(range(6), 3):
        y = signs[:, list(chosen)].prod(axis=1)
        direction = (y[:, None] * psi).mean(axis=0)
        length = np.linalg.norm(direction)
        least = 1.0
        for size in np.linspace(0, norm, 21):
            w = size * direction / length if length > 0 else 0 * direction
            least = min(least, np.maximum(0, 1 - y * (psi @ w)).mean())
        assert least >= 1 - norm * length - 1e-9
        worst = max(worst, least)
    assert worst >= parseval_bound(6, 3, features, norm, background=1.0) - 1e-9


def test_statistical_queries() -> None:
    """C(100, 5) parities: 211 queries; parities are uncorrelated, by enumeration."""
    queries, error = query_bound(100, 5)
    assert queries == pytest.approx(211.1, abs=0.1)
    assert error == pytest.approx(0.5)
    signs = np.array(list(product((1, -1), repeat=5)))
    rows = np.array([signs[:, list(c)].prod(axis=1) for c in combinations(range(5), 3)])
    assert np.array_equal(rows @ rows.T / 32, np.eye(query_dimension(5, 3)))


@given(
    k=st.integers(1, 9),
    chosen=st.integers(1, 2**10 - 2),
    share=st.floats(0, 1),
    lemma=st.sampled_from([5, 35]),
    form=st.sampled_from([None, 0, 0.25]),
)
def test_exact_networks(k: int, chosen: int, share: float, lemma: int, form: float | None) -> None:
    """Every count has y f = 1 at least, for any P and mean; sizes are the lemma's."""
    positive = [p for p in range(k + 1) if chosen >> p & 1]
    mean = share * k
    network = exact_network(k, positive, mean, lemma=lemma, shift=form)
    counts = np.arange(k + 1)
    y = np.where(np.isin(counts, positive), 1.0, -1.0)
    error = 0.125 if lemma == 35 else 0.0

    for e in (-error, 0.0, error):
        assert (y * network.of_count(counts - mean + e) >= 1 - 1e-6).all()
    if lemma == 5:
        assert np.allclose(network.of_count(counts - mean), y, atol=1e-6)
    assert len(network.outputs) == 3 * (k + 1)
    largest = np.abs(network.outputs).max()
    assert largest == (32 if lemma == 5 else 128) * k / (1 if network.shift else 2)
    inputs = (counts - mean)[:, None] / network.scale + network.biases
    assert np.abs(inputs).max() <= 1
    if form is None:
        assert np.abs(network.biases).min() >= 1 / (8 * network.scale) - 1e-12


def test_an_exact_network_on_drawn_inputs() -> None:
    """Weights σ Σ M_j / 4k on examples of the task itself, of a parity and of an interval."""
    for task in (
        Dictionary(20, 8, 5),
        Dictionary(20, 8, 4, share=0.0, positive=(1, 2), relevant=0.6),
    ):
        plus = task.positive or (1, 3, 5)
        network = exact_network(task.k, plus, task.k * task.present_in_a)
        drawn = task.draw([3], "test", 0, 500)
        along = drawn.x[0] @ task.directions([3])[0].sum(axis=0) * np.sqrt(task.variance)
        assert np.allclose(network.of_count(along), 1 - 2.0 * drawn.labels[0], atol=1e-3)


def test_random_directions_cover_corners() -> None:
    """800 in four dimensions reach 0.964, within what the median of 200 trials can be off by."""
    assert np.median(random_coverage(800, 4, 200)) == pytest.approx(0.964, abs=0.004)
    assert np.median(random_coverage(800, 5, 100)) == pytest.approx(0.919, abs=0.006)


def test_what_is_no_bound() -> None:
    """One sentence each."""
    for call, message in (
        (
            lambda: parseval_bound(4, 5, 10, 1.0),
            "parseval_bound: k=5, patterns=4. Give at least k patterns.",
        ),
        (
            lambda: fixed_feature_bound(5, 0, 1.0),
            "fixed_feature_bound: k=5, features=0, norm=1.0, background=0.5. Give k and features "
            "of at least 1, a norm of at least 0, and a probability.",
        ),
        (
            lambda: exact_network(3, (4,), 1.5),
            "exact_network: k=3, positive=(4,), lemma=5, shift=None. Give numbers from 0 to k, "
            "lemma 5 or 35, and a shift of 0 or 0.25.",
        ),
        (
            lambda: query_bound(4, 5),
            "query_dimension: k=5, patterns=4. Give k from 0 to the number of patterns.",
        ),
    ):
        with pytest.raises(UserError) as refused:
            call()
        assert str(refused.value) == message


def largest_cosine(d: int, directions: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Return cosines and the distribution of the largest one of random directions of R^d."""
    cosines = np.linspace(0, 1, 20_001)
    return cosines, ((1 + beta.cdf(cosines**2, 0.5, (d - 1) / 2)) / 2) ** directions


def test_table_4_has_the_random_features_of_another_dimension() -> None:
    """The docs' numbers: 0.293 and 0.296 of 300 pairs of neurons are those of d = 100, not 500."""
    found = {}
    for d in (100, 500):
        cosines, below = largest_cosine(d)
        middle, weight = cosines[1:], np.diff(below) / (1 - below[0])
        mean = float(middle @ weight)
        found[d] = mean, float(np.sqrt((middle - mean) ** 2 @ weight))
        beyond = float(1 - np.interp(0.293, cosines, below))
        assert beyond == pytest.approx({100: 0.36, 500: 3e-9}[d], rel=0.2)
    assert found[100] == pytest.approx((0.284, 0.036), abs=5e-4)
    assert found[500] == pytest.approx((0.128, 0.017), abs=5e-4)
    drawn = np.random.default_rng(0).standard_normal((200, 300, 100))
    largest = (drawn[..., 0] / np.linalg.norm(drawn, axis=2)).max(axis=1)
    assert largest.mean() == pytest.approx(0.284, abs=4 * 0.036 / np.sqrt(200))
