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
from petridish.tasks.markov import stationary

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
    share = (task._rows(uniforms)[:, -1] >= 0).all(axis=1).mean()
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
        (
            {"k": 7, "rows": "doubly"},
            "MarkovChains: rows='doubly' with k=7 states. Doubly stochastic matrices are drawn by "
            "rejection, which is feasible up to k=6. Lower k.",
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
