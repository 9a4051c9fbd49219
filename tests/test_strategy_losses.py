"""What strategies lose in expectation: against closed forms, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import digamma

from petridish.errors import UserError
from petridish.tasks import MarkovChains, NGrams, SparseParity
from petridish.tasks.strategy_losses import expected_losses


@pytest.mark.parametrize("k", [2, 3, 5])
def test_one_token_by_hand(k: int) -> None:
    """After one token of a uniform start its row is uniform on the probability vectors.

    Its mean entropy is H_k − 1. Unigrams have seen that token; no pair has been seen, so that
    bigrams are uniform.
    """
    task = MarkovChains(k, 1, start="uniform")
    found = expected_losses(task, error=2e-3)
    entropy = digamma(k + 1) - digamma(2)
    uniform = np.log(k) - entropy
    unigram = np.log(k + 1) - np.log(2) / k - entropy

    assert list(found) == ["uniform", "unigram", "bigram"]
    assert found["uniform"] == found["bigram"]
    for name, expected in (("uniform", uniform), ("unigram", unigram)):
        loss, error = found[name]
        assert 0 < error <= 2e-3
        assert abs(loss - expected) < 5 * error


def test_more_sequences_are_drawn_until_the_error_is_small() -> None:
    """The same sequences come first; a smaller error is nearer to the truth of many draws."""
    task = NGrams(2, 20, 3)
    few, many = (expected_losses(task, ["trigram"], error=error)["trigram"] for error in (1, 1e-3))
    assert many[1] <= 1e-3 < few[1]
    assert abs(few[0] - many[0]) < 5 * few[1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"task": SparseParity(8, 2)},
            "The task sparse_parity(8, 2) has no strategies and truth to compare. Give one such as "
            "markov(3, 100).",
        ),
        (
            {"task": MarkovChains(2, 5), "error": 0.0},
            "expected_losses: error=0.0. Give a number above 0.",
        ),
        (
            {"task": MarkovChains(2, 5), "strategies": ["trigram"]},
            "The task markov(2, 5) knows no strategy called 'trigram'. Did you mean bigram or "
            "unigram?",
        ),
    ],
    ids=["task", "error", "strategy"],
)
def test_what_cannot_be_worked_out(given: dict[str, Any], message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        expected_losses(**given)
    assert str(refused.value) == message
