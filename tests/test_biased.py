"""Sparse AND of biased bits, and samples that several hypotheses explain."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.tasks import BiasedAnd, Examples
from petridish.testing import check_task
from petridish.training import Data, OneHypothesis, RunSpec
from petridish.training.data import sample_attempts


@pytest.mark.parametrize(
    "task",
    [BiasedAnd(6, 2, 0.3, (1, 4)), BiasedAnd(70, 2, encoding="signs")],
    ids=["support", "signs"],
)
def test_the_task_keeps_its_contract(task: BiasedAnd) -> None:
    """Domain, shapes, and examples that depend on their run and number alone."""
    check_task(task)


def test_labels_are_the_and_of_the_relevant_bits() -> None:
    """By the definition; in both encodings the same examples."""
    task = BiasedAnd(9, 3)
    drawn = task.draw([0, 1], "train", 0, 200)
    signs = BiasedAnd(9, 3, encoding="signs").draw([0, 1], "train", 0, 200)
    assert np.array_equal(signs.x == -1, drawn.x == 1)
    for run, support in enumerate(task.supports([0, 1])):
        expected = [all(x[bit] == 1 for bit in support) for x in drawn.x[run]]
        assert drawn.labels[run].tolist() == signs.labels[run].tolist() == expected


def test_half_of_the_labels_are_1() -> None:
    """Of 40 000 examples, within four standard errors: one test in 16 000 would fail by chance."""
    drawn = BiasedAnd(5, 3).draw([2], "train", 0, 40_000)
    assert abs(drawn.labels.mean() - 0.5) < 4 * 0.5 / 200
    assert abs(drawn.x.mean() - 0.5 ** (1 / 3)) < 4 * 0.41 / np.sqrt(200_000)


@given(
    bits=st.integers(2, 8).flatmap(
        lambda m: st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=m, max_size=m)
    ),
    support=st.sets(st.integers(0, 5), min_size=2, max_size=2),
)
def test_several_explain_as_trying_every_hypothesis_says(
    bits: list[list[bool]], support: set[int]
) -> None:
    """Against all 15 ANDs of two of six bits."""
    task = BiasedAnd(6, 2)
    labels = [all(row[bit] for bit in support) for row in bits]
    fits = [
        all(all(row[bit] for bit in pair) == label for row, label in zip(bits, labels, strict=True))
        for pair in combinations(range(6), 2)
    ]
    sample = Examples(np.array([labels], np.uint8), dense=np.array([bits], np.int64))
    assert task.several_explain(sample).tolist() == [sum(fits) > 1]


def test_samples_that_several_hypotheses_explain_are_drawn_anew() -> None:
    """Of ten places and twelve examples some first samples are ambiguous, and none that is kept."""
    task = BiasedAnd(10, 3)
    spec = RunSpec(task=task, data=Data(m=12, accept=OneHypothesis()))
    attempts = [sample_attempts(RunSpec(task=task, data=spec.data, seed=s)) for s in range(30)]
    first = task.several_explain(task.draw(range(30), "train", 0, 12))
    assert [tried > 1 for tried in attempts] == first.tolist()
    assert 1 < first.sum() < 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, 2, 1.0), "BiasedAnd: p=1.0. Give a probability between 0 and 1."),
        (
            (2, 3),
            "BiasedAnd: s=3 relevant bits were asked for, but n=2 has only 2 bits. Raise n or "
            "lower s.",
        ),
        (
            (5, 2, None, None, "words"),
            "BiasedAnd: encoding='words'. Give 'tokens' or 'signs'.",
        ),
    ],
)
def test_what_is_no_biased_and(arguments: tuple[object, ...], message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        BiasedAnd(*arguments)  # type: ignore[arg-type]
    assert str(refused.value) == message
