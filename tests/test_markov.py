"""Markov chains in context: what is drawn, and how strategies answer."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.tasks import Examples, MarkovChains
from petridish.tasks.chain_laws import SWEEPS, _walked, with_last_row
from petridish.theory import chain_predictors as predictors
from petridish.theory.stationary import stationary, stationary_law

KL_OF_LAWS = (0.1288, 0.1200, 0.0555, 0.0151)  # of 2, 3, 8 and 32 states, by 10^5 draws
SEQUENCES = st.integers(2, 4).flatmap(
    lambda k: st.tuples(st.just(k), st.lists(st.integers(0, k - 1), min_size=1, max_size=8))
)


def by_counting(strategy: str, k: int, tokens: list[int]) -> list[list[Fraction]]:
    """Predict at every position by the definition, one token after the other."""
    found = []
    for p in range(1, len(tokens) + 1):
        seen = tokens[:p]
        if strategy == "bigram":
            seen = [b for a, b in itertools.pairwise(seen) if a == tokens[p - 1]]
        counts = [seen.count(j) if strategy != "uniform" else 0 for j in range(k)]
        found.append([Fraction(count + 1, sum(counts) + k) for count in counts])
    return found


@given(SEQUENCES)
def test_strategies_count_what_was_seen(case: tuple[int, list[int]]) -> None:
    """Against counting in plain Python, at every position."""
    k, tokens = case
    examples = Examples(np.zeros((1, 1, len(tokens)), np.int64), dense=np.array([[tokens]]))
    for strategy in ("uniform", "unigram", "bigram"):
        predicted = MarkovChains(k, len(tokens)).predict(strategy, examples)[0, 0]
        expected = np.array(by_counting(strategy, k, tokens), np.float64)
        np.testing.assert_allclose(predicted, expected, rtol=1e-12)


def test_strategies_of_the_docstring() -> None:
    """After (0, 1, 0): 1/2, 2/5, 2/3 for the token 1."""
    examples = Examples(np.zeros((1, 1, 3), np.int64), dense=np.array([[[0, 1, 0]]]))
    task = MarkovChains(2, 3)
    last = [task.predict(name, examples)[0, 0, -1, 1] for name in ("uniform", "unigram", "bigram")]
    np.testing.assert_allclose(last, [1 / 2, 2 / 5, 2 / 3])


def test_the_bigram_is_the_posterior_mean_given_the_first_token() -> None:
    """By a sum over a fine grid of matrices of two states, each transition by its likelihood."""
    tokens = [0, 0, 1, 0, 0, 0, 1, 1]
    grid = (np.arange(400) + 0.5) / 400
    a, b = np.meshgrid(grid, grid, indexing="ij")  # probabilities of 0 → 1 and of 1 → 1
    chance = {(0, 0): 1 - a, (0, 1): a, (1, 0): 1 - b, (1, 1): b}
    likelihood = np.prod([chance[pair] for pair in itertools.pairwise(tokens)], axis=0)
    examples = Examples(np.zeros((1, 1, 8), np.int64), dense=np.array([[tokens]]))
    predicted = MarkovChains(2, 8).predict("bigram", examples)[0, 0, -1, 1]
    assert predicted == pytest.approx((likelihood * b).sum() / likelihood.sum(), abs=1e-5)


@pytest.mark.parametrize("rows", ["dirichlet", "unigram", "doubly"])
def test_tokens_follow_the_matrix_from_its_stationary_law(rows: Any) -> None:
    """Every state as often as the law says at every position, and every transition.

    Of 20 000 sequences, within five standard errors; labels are the tokens one place later.
    """
    task = MarkovChains(3, 4, rows)
    drawn = task.draw([3], "train", 0, 20_000)
    matrix, law = drawn.facts["rows"], stationary(drawn.facts["rows"])
    whole = np.concatenate([drawn.x, drawn.labels[..., -1:]], axis=-1)
    assert np.array_equal(drawn.labels, whole[..., 1:])
    hits = (whole[..., None] == np.arange(3)) - law[:, :, None]  # (run, example, token, state)
    assert np.abs(hits.mean(axis=(0, 1))).max() < 5 * 0.5 / np.sqrt(20_000)
    assert np.array_equal(task.predict("truth", drawn)[0, 7, 2], matrix[0, 7, drawn.x[0, 7, 2]])
    for state in range(3):
        here = drawn.x == state
        missed = (drawn.labels[..., None] == np.arange(3)) - task.predict("truth", drawn)
        assert np.abs(missed[here].mean(axis=0)).max() < 5 * 0.5 / np.sqrt(here.sum())


def test_rows_are_uniform_on_the_probability_vectors() -> None:
    """Dirichlet(1, 1, 1): moments 1/k and 2/(k(k + 1)), rows independent; five standard errors."""
    rows = MarkovChains(3, 1).draw([0], "train", 0, 20_000).facts["rows"][0]
    np.testing.assert_allclose(rows.sum(axis=-1), 1)
    error = 5 / np.sqrt(20_000)
    assert np.abs(rows.mean(axis=0) - 1 / 3).max() < 0.24 * error
    assert np.abs((rows**2).mean(axis=0) - 2 / 12).max() < 0.22 * error
    assert abs(np.corrcoef(rows[:, 0, 0], rows[:, 1, 0])[0, 1]) < error
    equal = MarkovChains(3, 1, "unigram").draw([0], "train", 0, 50).facts["rows"]
    assert np.array_equal(equal, np.broadcast_to(equal[:, :, :1], equal.shape))


@pytest.mark.parametrize(("k", "volume"), [(2, 1), (3, 3 / 24), (4, 352 / 362_880)])
def test_doubly_stochastic_matrices_are_uniform(k: int, volume: float) -> None:
    """Against points of the cube of the free entries that lie in the polytope.

    The share that is accepted is the polytope's volume in that cube, times (k − 1)! for each of
    the k − 1 rows, which are drawn from their simplex. Within five standard errors.
    """
    task, n = MarkovChains(k, 1, "doubly"), 20_000
    rows = task.draw([1], "train", 0, n).facts["rows"][0]
    np.testing.assert_allclose(rows.sum(axis=-1), 1)
    np.testing.assert_allclose(rows.sum(axis=-2), 1)
    assert rows.min() >= 0
    np.testing.assert_allclose(stationary(rows), 1 / k)
    free = np.random.default_rng(0).random((3_000_000, k - 1, k - 1))
    inside = (free.sum(axis=1) <= 1).all(axis=1) & (free.sum(axis=2) <= 1).all(axis=1)
    inside &= free.sum(axis=(1, 2)) >= k - 2
    kept = free[inside]
    assert abs(inside.mean() - volume) < 5 * np.sqrt(volume / 3_000_000)
    for power in (1, 2, 3):
        ours, cubes = rows[:, 0, 0] ** power, kept[:, 0, 0] ** power
        error = np.sqrt(ours.var() / n + cubes.var() / len(kept))
        assert abs(ours.mean() - cubes.mean()) < 5 * error
    accepted = volume * float(np.prod(np.arange(1, k))) ** (k - 1)
    uniforms = np.random.default_rng(1).random((n, k * (k - 1)))
    share = (with_last_row(uniforms, k)[:, -1] >= 0).all(axis=1).mean()
    assert abs(share - accepted) < 5 * 0.5 / np.sqrt(n)


@given(st.integers(2, 5), st.integers(0, 10**6))
def test_the_stationary_law_is_left_as_it_is(k: int, seed: int) -> None:
    """π P = π, also of chains that hardly ever leave a state."""
    sizes = 10.0 ** -np.random.default_rng(seed).integers(0, 12, (k, k))
    rows = sizes / sizes.sum(axis=1, keepdims=True)
    law = stationary(rows)
    np.testing.assert_allclose(law @ rows, law, rtol=1e-9)
    assert law.sum() == pytest.approx(1)


def test_the_first_matrices_do_not_depend_on_how_many_are_drawn() -> None:
    """Rejections of one example move no other, whoever asks."""
    task = MarkovChains(4, 5, "doubly")
    whole = task.draw([0, 1], "test/doubly", 0, 40)
    part = task.draw([1], "test/doubly", 30, 5)
    assert np.array_equal(part.facts["rows"][0], whole.facts["rows"][1, 30:35])
    assert np.array_equal(part.x[0], whole.x[1, 30:35])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 1}, "MarkovChains: k=1. Give a whole number of at least 2."),
        ({"length": 0}, "MarkovChains: length=0. Give a whole number of at least 1."),
        ({"rows": "double"}, "MarkovChains: rows='double'. Did you mean doubly?"),
        ({"alpha": 0.0}, "MarkovChains: alpha=0.0. Give a finite number above 0."),
        ({"epsilon": 0.6}, "MarkovChains: epsilon=0.6. Give a number above 0, at most 0.5."),
        ({"start": "even"}, "MarkovChains: start='even'. Give 'stationary' or 'uniform'."),
        (
            {"rows": "doubly", "alpha": 0.5},
            "MarkovChains: alpha=0.5 has no effect with rows='doubly'. Leave it out, or give "
            "rows='dirichlet'.",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(given: dict[str, Any], message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        MarkovChains(**{"k": 3, "length": 5} | given)
    assert str(refused.value) == message


def test_an_unknown_strategy_is_refused() -> None:
    """With the names that there are."""
    task = MarkovChains(3, 5)
    with pytest.raises(UserError) as refused:
        task.predict("bigrams", task.draw([0], "test", 0, 2))
    assert str(refused.value) == (
        "The task markov(3, 5) knows no strategy called 'bigrams'. Did you mean bigram?"
    )


@given(st.sampled_from([0.3, 1.0, 2.5]), st.integers(2, 4))
def test_rows_of_any_alpha_have_their_moments(alpha: float, k: int) -> None:
    """Means 1/k and variances (k − 1)/(k²(kα + 1)), within five standard errors."""
    n = 4_000
    rows = MarkovChains(k, 1, alpha=alpha).draw([0], "train", 0, n).facts["rows"][0, :, 0, 0]
    variance = (k - 1) / (k**2 * (k * alpha + 1))
    assert abs(rows.mean() - 1 / k) < 5 * np.sqrt(variance / n)
    spread = 5 * np.sqrt(((rows - 1 / k) ** 2).var() / n)
    assert abs(((rows - 1 / k) ** 2).mean() - variance) < spread


def test_symmetric_chains() -> None:
    """One a on the diagonal, uniform on (½ − ε, ½ + ε), and what is left elsewhere."""
    rows = MarkovChains(3, 1, "symmetric", epsilon=0.2).draw([0], "train", 0, 4_000).facts["rows"]
    stay = rows[0, :, 0, 0]
    for state in range(3):
        assert np.array_equal(rows[0, :, state, state], stay)
        assert np.allclose(rows[0, :, state, (state + 1) % 3], (1 - stay) / 2)
    assert 0.3 < stay.min() < 0.301
    assert 0.699 < stay.max() < 0.7
    assert abs(stay.mean() - 0.5) < 5 * 0.4 / np.sqrt(12 * 4_000)


def test_a_uniform_start_is_uniform() -> None:
    """Every state a k-th of the time, and of chains that are mostly in one state as well."""
    first = MarkovChains(2, 1, alpha=0.2, start="uniform").draw([0], "train", 0, 10_000).x
    assert abs(first.mean() - 0.5) < 5 * 0.5 / 100


@pytest.mark.parametrize("k", [4, 7, 8])
def test_the_chain_on_doubly_stochastic_matrices(k: int) -> None:
    """Sums are 1, and moments of entries agree: with rejection for k = 4, among places beyond.

    Within five standard errors of 3000 matrices; k = 4 is drawn by the chain for this test alone.
    """
    n = 3_000
    rounds = k - 1 if k % 2 == 0 else k
    size = SWEEPS * rounds**2 * (k // 2) ** 2
    rows = _walked(np.random.default_rng(0).random((n, size)), k)
    np.testing.assert_allclose(rows.sum(axis=-1), 1)
    np.testing.assert_allclose(rows.sum(axis=-2), 1)
    assert rows.min() >= 0
    for power in (1, 2, 3):
        moments = (rows**power).mean(axis=0)
        errors = (rows**power).std(axis=0) / np.sqrt(n)
        if k == 4:
            exact = MarkovChains(4, 1, "doubly").draw([1], "train", 0, 20_000).facts["rows"][0]
            moments = moments - (exact[:, 0, 0] ** power).mean()
            assert (np.abs(moments) < 5 * 1.1 * errors).all()
        else:
            assert (np.abs(moments - moments.mean()) < 5 * errors).all()
    again = _walked(np.random.default_rng(0).random((n, size)), k)
    assert np.array_equal(rows, again)


def by_grid(tokens: list[int], n: int = 600) -> float:
    """Return the Bayes probability of a 1 next, by a sum over a fine grid of matrices."""
    grid = (np.arange(n) + 0.5) / n
    a, b = np.meshgrid(grid, grid, indexing="ij")  # probabilities of 0 → 1 and of 1 → 1
    chance = {(0, 0): 1 - a, (0, 1): a, (1, 0): 1 - b, (1, 1): b}
    law = a / (a + 1 - b)  # of state 1
    likelihood = (law if tokens[0] else 1 - law) * 1.0
    for pair in itertools.pairwise(tokens):
        likelihood = likelihood * chance[pair]
    return float((likelihood * chance[tokens[-1], 1]).sum() / likelihood.sum())


@pytest.mark.parametrize("tokens", [[0, 1, 0], [1], [0, 0, 0, 0, 0], [1, 0, 1, 1, 0, 0, 1]])
def test_the_bayes_predictor_of_two_states(tokens: list[int]) -> None:
    """Against a grid to 1e-5, and twice as many nodes to 1e-8; also the number of the docstring."""
    task = MarkovChains(2, len(tokens))
    examples = Examples(np.zeros((1, 1, len(tokens)), np.int64), dense=np.array([[tokens]]))
    predicted = task.predict("bayes", examples)[0, 0]
    assert predicted[-1, 1] == pytest.approx(by_grid(tokens), abs=2e-5)
    np.testing.assert_allclose(predicted.sum(axis=-1), 1)
    np.testing.assert_allclose(task.predict_last("bayes", examples)[0, 0, 0], predicted[-1])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(predictors, "NODES", 2 * predictors.NODES)
        finer = task.predict("bayes", examples)[0, 0]
    np.testing.assert_allclose(finer, predicted, atol=1e-8)
    if tokens == [0, 1, 0]:
        assert predicted[-1, 1] == pytest.approx(0.6181, abs=5e-5)


def test_the_bayes_predictor_of_more_states_agrees() -> None:
    """Draws of two states against quadrature; and of three, the beginning's own symmetry.

    After one token of three states the two others are alike, so that their chances are equal.
    """
    counts = np.array([[[3, 1], [2, 5]], [[0, 0], [0, 0]], [[9, 9], [9, 9]]])
    first, here = np.array([0, 1, 0]), np.array([1, 1, 0])
    one = predictors._by_quadrature(counts + 1.0, first, here)
    other = predictors._by_draws(counts + 1.0, first, here)
    np.testing.assert_allclose(other, one, atol=0.02)
    task = MarkovChains(3, 1)
    examples = Examples(np.zeros((1, 1, 1), np.int64), dense=np.array([[[2]]]))
    found = task.predict("bayes", examples)[0, 0, 0]
    assert found[2] > 0.4  # a token that came first is likely to be frequent
    assert found[0] == pytest.approx(found[1], abs=0.03)


@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.5]))
def test_the_bayes_predictor_of_symmetric_chains(seed: int, epsilon: float) -> None:
    """Against a sum over a fine grid of a, whatever was seen."""
    task = MarkovChains(3, 30, "symmetric", epsilon=epsilon)
    examples = task.draw([seed], "test", 0, 1)
    tokens = examples.x[0, 0]
    stays = int((tokens[1:] == tokens[:-1]).sum())
    grid = 0.5 + epsilon * (2 * (np.arange(20_000) + 0.5) / 20_000 - 1)
    logs = stays * np.log(grid) + (29 - stays) * np.log1p(-grid)
    weight = np.exp(logs - logs.max())
    found = task.predict_last("bayes", examples)[0, 0, 0, tokens[-1]]
    assert found == pytest.approx((grid * weight).sum() / weight.sum(), abs=1e-6)


def test_where_bayes_is_another_strategy() -> None:
    """Of independent tokens it is the unigram strategy, from a uniform start the bigram one."""
    for task, name in (
        (MarkovChains(3, 9, "unigram"), "unigram"),
        (MarkovChains(3, 9, start="uniform"), "bigram"),
    ):
        examples = task.draw([0], "test", 0, 20)
        assert np.array_equal(task.predict("bayes", examples), task.predict(name, examples))
    assert "bayes" not in MarkovChains(3, 9, "doubly").strategies
    assert "bayes" in MarkovChains(2, 9, "doubly").strategies


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (
            [[0.5, 0.4], [0.5, 0.5]],
            "Row 0 of the transition matrix has the sum 0.9. Give a row with the sum 1.",
        ),
        (
            [[1.0, 0.0], [1.5, -0.5]],
            "Row 1 of the transition matrix is [1.5, -0.5], and probabilities are at least 0. Give "
            "such a row.",
        ),
        (
            [[1, 0, 0], [0.5, 0, 0.5], [0, 0, 1]],
            "The transition matrix has no unique stationary law: a chain stays within the states "
            "[0] and [2] for ever. Give a matrix with a way between them.",
        ),
        (
            [[1, 0]],
            "A transition matrix has as many rows as columns, and this one has the shape (1, 2). "
            "Give a square one.",
        ),
    ],
)
def test_a_matrix_without_a_stationary_law_is_refused(matrix: Any, message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        stationary_law(matrix)
    assert str(refused.value) == message


def test_stationary_laws_by_powers_and_eigenvectors() -> None:
    """Also of a chain with states that it leaves for ever."""
    rng = np.random.default_rng(0)
    for k in (2, 3, 6):
        rows = rng.dirichlet(np.ones(k), k)
        law = stationary_law(rows)
        np.testing.assert_allclose(np.linalg.matrix_power(rows, 200)[0], law, atol=1e-10)
        values, vectors = np.linalg.eig(rows.T)
        vector = np.real(vectors[:, np.argmax(np.real(values))])
        np.testing.assert_allclose(vector / vector.sum(), law, atol=1e-10)
    transient = [[0.5, 0.5, 0], [0, 0.2, 0.8], [0, 0.6, 0.4]]
    np.testing.assert_allclose(stationary_law(transient), [0, 3 / 7, 4 / 7])


def test_stationary_laws_near_uniform() -> None:
    """E KL(π ‖ uniform) falls with k like 1/2k: 0.129, 0.120, 0.056, 0.0151 at k = 2, 3, 8, 32.

    Which is why more states need longer sequences for unigrams to be told from uniform predictions.
    Of 4000 matrices, within five standard errors.
    """
    rng = np.random.default_rng(0)
    found = []
    for k in (2, 3, 8, 32):
        law = stationary(rng.dirichlet(np.ones(k), (4_000, k)))
        found.append((law * np.log(k * law)).sum(axis=-1))
    means = [float(each.mean()) for each in found]
    assert (np.diff(means) < 0).all()
    for each, expected in zip(found, KL_OF_LAWS, strict=True):
        assert abs(each.mean() - expected) < 5 * each.std() / np.sqrt(4_000)
