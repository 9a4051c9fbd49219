"""N-grams and mixtures in context: what is drawn, and how strategies answer."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.tasks import Examples, MarkovChains, Mixed, NGrams, SparseParity
from petridish.theory.stationary import stationary


def by_counting(order: int, k: int, tokens: list[int]) -> list[list[Fraction]]:
    """Predict at every position by the definition, one token after the other."""
    found = []
    for p in range(1, len(tokens) + 1):
        seen = tokens[:p]
        context = seen[len(seen) - order :] if order else []
        counts = [0] * k
        for place in range(order, p):
            if len(context) == order and seen[place - order : place] == context:
                counts[seen[place]] += 1
        found.append([Fraction(count + 1, sum(counts) + k) for count in counts])
    return found


@given(
    st.integers(2, 3).flatmap(
        lambda k: st.tuples(st.just(k), st.lists(st.integers(0, k - 1), min_size=4, max_size=12))
    )
)
def test_strategies_count_what_was_seen(case: tuple[int, list[int]]) -> None:
    """Against counting in plain Python, at every position, up to 4-grams."""
    k, tokens = case
    task = NGrams(k, len(tokens), 4)
    assert task.strategies == ("uniform", "unigram", "bigram", "trigram", "4-gram", "truth")
    examples = Examples(np.zeros((1, 1, len(tokens)), np.int64), dense=np.array([[tokens]]))
    for order, name in enumerate(task.strategies[1:-1]):
        expected = np.array(by_counting(order, k, tokens), np.float64)
        np.testing.assert_allclose(task.predict(name, examples)[0, 0], expected, rtol=1e-6)


def test_bigrams_are_markov_chains() -> None:
    """The strategies of both tasks agree, and n = 2 has the chain's own stationary law."""
    chains, grams = MarkovChains(3, 20), NGrams(3, 20, 2)
    examples = chains.draw([0], "test", 0, 30)
    for name in ("uniform", "unigram", "bigram"):
        np.testing.assert_allclose(
            grams.predict(name, examples), chains.predict(name, examples), rtol=1e-6
        )
    own = grams.draw([0], "test", 0, 30)
    np.testing.assert_allclose(own.facts["contexts"], stationary(own.facts["rows"]))


def test_tokens_follow_the_truth() -> None:
    """At every position the next token is as likely as the truth says, and calibrated.

    Of 20 000 sequences, within five standard errors, in all and where the truth is above a half.
    """
    task = NGrams(2, 6, 3)
    drawn = task.draw([4], "train", 0, 20_000)
    truth = task.predict("truth", drawn)[0]  # (example, position, token)
    hit = drawn.labels[0] == 1
    for place in range(6):
        chance = truth[:, place, 1]
        for among in (np.ones(20_000, bool), chance > 0.5):
            missed = (hit[:, place] - chance)[among]
            assert abs(missed.mean()) < 5 * 0.5 / np.sqrt(among.sum())
    np.testing.assert_allclose(truth.sum(axis=-1), 1)


def test_the_truth_of_a_beginning() -> None:
    """Summed over contexts in plain Python: the first token, then the next given it."""
    task = NGrams(2, 3, 3)
    drawn = task.draw([1], "train", 0, 5)
    for example in range(5):
        law = drawn.facts["contexts"][0, example]
        rows = drawn.facts["rows"][0, example]
        tokens = drawn.x[0, example]
        truth = task.predict("truth", drawn)[0, example]
        begun = law[2 * tokens[0] : 2 * tokens[0] + 2]
        np.testing.assert_allclose(truth[0], begun / begun.sum())
        np.testing.assert_allclose(truth[1], rows[2 * tokens[0] + tokens[1]])
        np.testing.assert_allclose(truth[2], rows[2 * tokens[1] + tokens[2]])
        # The stationary law of contexts stays: (i, j) comes from (h, i) by a step to j.
        for i, j in itertools.product(range(2), repeat=2):
            into = sum(law[2 * h + i] * rows[2 * h + i, j] for h in range(2))
            assert into == pytest.approx(law[2 * i + j])


def test_example_i_is_the_same_whoever_asks() -> None:
    """Of n-grams and of mixtures."""
    mixture = Mixed(MarkovChains(4, 8, "doubly"), MarkovChains(4, 8, "unigram"), 0.25)
    for task in (NGrams(3, 8, 3), mixture):
        whole, part = task.draw([0, 1], "test", 0, 40), task.draw([1], "test", 13, 9)
        assert np.array_equal(part.x[0], whole.x[1, 13:22])
        assert np.array_equal(part.labels[0], whole.labels[1, 13:22])


def test_a_mixture_has_its_shares_and_answers_part_by_part() -> None:
    """A quarter of every four examples; the truth is that of each example's own chain."""
    first, second = MarkovChains(3, 30, "doubly"), MarkovChains(3, 30, "unigram")
    task = Mixed(first, second, 0.25)
    drawn = task.draw([0], "train", 0, 400)
    part = drawn.facts["part"][0]
    assert (part.reshape(-1, 4).sum(axis=1) == 1).all()
    assert task.strategies == ("uniform", "unigram", "bigram", "truth")
    one, other = (drawn.facts[f"{name}/rows"][0] for name in task.parts)
    assert np.allclose(other[part == 1], other[part == 1][:, :1])
    assert np.allclose(one[part == 0].sum(axis=1), 1)
    truth = task.predict("truth", drawn)[0]
    for example in range(0, 400, 37):
        rows = (one, other)[part[example]][example]
        assert np.array_equal(truth[example], rows[drawn.x[0, example]])
    grams = Mixed(MarkovChains(3, 6), NGrams(3, 6, 3), 0.5)  # facts of other names and shapes
    assert grams.predict("truth", grams.draw([0, 1], "test", 0, 7)).shape == (2, 7, 6, 3)
    assert np.array_equal(drawn.labels[..., :-1], drawn.x[..., 1:])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: NGrams(2, 2, 3),
            "NGrams: length=2, and a sequence of so few tokens has no n-gram of n=3 tokens. Raise "
            "length or lower n.",
        ),
        (lambda: NGrams(1, 9), "NGrams: k=1. Give a whole number of at least 2."),
        (
            lambda: NGrams(9, 9, 5),
            "NGrams: k=9 and n=5 give 6561 contexts, and at most 1024 are drawn. Lower k or n.",
        ),
        (
            lambda: Mixed(MarkovChains(2, 5), MarkovChains(2, 5), 1.0),
            "Mixed: share=1.0 of the examples are to be of the second task. Give a number between "
            "0 and 1: some examples of each.",
        ),
        (
            lambda: Mixed(MarkovChains(2, 5), 3).domain,  # type: ignore[arg-type]
            "Mixed: second=3 is no task. Give one.",
        ),
        (
            lambda: Mixed(MarkovChains(2, 5), SparseParity(5, 2)).domain,
            "Mixed: markov(2, 5) has the domain Domain(inputs=Tokens(vocabulary=2, length=5), "
            "target=Classes(k=2, positions=5)), and sparse_parity(5, 2) has "
            "Domain(inputs=Bits(n=5), target=Classes(k=2, positions=None)). Give tasks of the same "
            "domain.",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: Any, message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        make()
    assert str(refused.value) == message


def test_unknown_strategies_are_refused() -> None:
    """With the names that there are."""
    grams = NGrams(2, 9, 3)
    with pytest.raises(UserError) as refused:
        grams.predict("trigams", grams.draw([0], "test", 0, 2))
    assert str(refused.value) == (
        "The task ngrams(2, 9) knows no strategy called 'trigams'. Did you mean trigram?"
    )
