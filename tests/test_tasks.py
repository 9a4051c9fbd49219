"""Tasks: labels against brute force, and one suite over all of them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.choices import describe, parse
from petridish.errors import UserError
from petridish.sweeps.sweep import OFFERED
from petridish.tasks import (
    TASKS,
    BiasedAnd,
    BiasedBits,
    Dictionary,
    GroupProduct,
    HiddenLabels,
    Hypercube,
    Images,
    Injected,
    MarkovChains,
    Mixed,
    NGrams,
    SparseAnd,
    SparseMajority,
    SparseOr,
    SparseParity,
    Table,
    Task,
    TruthTable,
)
from petridish.tasks.base import OnSupport
from tests.domains import bits

XOR = (0, 1, 1, 0)
ALL_TASKS: list[Any] = [
    SparseParity(8, 3),
    SparseParity(70, 2, (1, 69)),
    SparseAnd(8, 3),
    SparseOr(65, 2, (3, 64)),
    SparseMajority(9, 3),
    TruthTable(8, XOR, (2, 4)),
]


def test_the_suite_covers_every_task() -> None:
    """A new task must join the list above, but for those that are no functions of bits.

    Tables are in test_tables.py, groups in test_group_tasks.py, biased bits in test_biased.py,
    dictionaries in test_dictionary.py, centres in test_clusters.py, images in test_images.py,
    mixtures in test_injected.py and test_ngrams.py, Markov chains in test_markov.py, n-grams in
    test_ngrams.py.
    """
    others = {Table, GroupProduct, BiasedAnd, BiasedBits, Dictionary, MarkovChains}
    others |= {HiddenLabels, Hypercube, Images, Injected, Mixed, NGrams}
    assert {type(task) for task in ALL_TASKS} == set(TASKS.values()) - others


def expected_label(task: OnSupport, signs: tuple[int, ...]) -> int:
    """Label relevant signs by the definition, in plain Python; −1 is true."""
    truths = [sign == -1 for sign in signs]
    if isinstance(task, SparseParity):
        return int(np.prod(signs) == -1)
    if isinstance(task, SparseAnd):
        return int(all(truths))
    if isinstance(task, SparseOr):
        return int(any(truths))
    if isinstance(task, SparseMajority):
        return int(sum(truths) > len(truths) / 2)
    assert isinstance(task, TruthTable)
    return task.table[sum(truth << place for place, truth in enumerate(truths))]


@pytest.mark.parametrize("task", ALL_TASKS, ids=describe)
def test_labels_are_the_function_of_the_relevant_bits(task: OnSupport, seed: int) -> None:
    """Every label drawn agrees with the definition, applied to the unpacked signs."""
    seeds = [seed, seed + 1]
    examples = task.draw(seeds, "train", 0, 300)
    for run, support in enumerate(task.supports(seeds)):
        for x, label in zip(examples.x[run], examples.labels[run], strict=True):
            signs = tuple(int(sign) for sign in x[support])
            assert set(np.unique(x)) <= {-1.0, 1.0}
            assert label == expected_label(task, signs)


@pytest.mark.parametrize("task", ALL_TASKS, ids=describe)
def test_example_i_is_the_same_whoever_asks(task: Task, seed: int) -> None:
    """Examples do not depend on the other runs, on the range drawn, or on earlier draws."""
    whole = task.draw([seed, seed + 1], "train", 0, 50)
    part = task.draw([seed + 1], "train", 20, 10)

    assert np.array_equal(part.x[0], whole.x[1, 20:30])
    assert np.array_equal(part.labels[0], whole.labels[1, 20:30])


@pytest.mark.parametrize("task", ALL_TASKS, ids=describe)
def test_train_and_test_share_the_support_and_nothing_else(task: OnSupport, seed: int) -> None:
    """The held-out sample is another draw of the same function."""
    train, test = task.draw([seed], "train", 0, 64), task.draw([seed], "test", 0, 64)

    assert not np.array_equal(train.x, test.x)
    assert task.domain == bits(train.x.shape[-1]) == bits(task.n)


@pytest.mark.parametrize("task", ALL_TASKS, ids=describe)
def test_the_text_of_a_task_reads_back(task: Task) -> None:
    """`describe` and `parse` are inverse."""
    assert parse(describe(task), "task", Task, OFFERED) == task


def test_the_case_in_the_docstring() -> None:
    """With n=5 and support=(0, 3), the input (+1, −1, −1, −1, +1) has the label −1."""
    packed = np.array([[[0b01110]]], np.uint64)  # bits 1, 2 and 3 are the signs −1

    assert SparseParity(5, 2, (0, 3)).label(packed, np.array([[0, 3]])).tolist() == [[1]]


@given(bits=st.lists(st.integers(0, 1), min_size=1, max_size=6))
def test_parity_by_counting_equals_parity_by_bits(bits: list[int]) -> None:
    """The fast label of whole words is the exclusive or of the relevant bits."""
    n = len(bits)
    task = SparseParity(n, n)
    packed = np.array([[[sum(bit << place for place, bit in enumerate(bits))]]], np.uint64)

    assert task.label(packed, np.arange(n)[None]).item() == sum(bits) % 2
    assert task.evaluate(np.array(bits, np.uint8)).item() == sum(bits) % 2


def test_runs_draw_their_own_supports() -> None:
    """Over 3000 runs each of the 10 supports of (5, 3) is drawn, about equally often (4.5 σ)."""
    supports = SparseParity(5, 3).supports(range(3000))
    counts = [
        int((supports == subset).all(axis=1).sum())
        for subset in itertools.combinations(range(5), 3)
    ]

    assert sum(counts) == 3000
    assert all(abs(count - 300) < 4.5 * np.sqrt(270) for count in counts)


REFUSED = [
    (
        lambda: SparseParity(3, 4),
        "SparseParity: k=4 relevant bits were asked for, but n=3 has only 3 bits. "
        "Raise n or lower k.",
    ),
    (
        lambda: SparseParity(5, 2, (1, 1)),
        "SparseParity: support=(1, 1) repeats the bits [1]. Name each bit once.",
    ),
    (
        lambda: SparseParity(5, 2, (1, 5)),
        "SparseParity: support=(1, 5) names the bits [5], but n=5 has only the bits 0 to 4. "
        "Raise n or choose lower bits.",
    ),
    (
        lambda: SparseParity(5, 2, (1, 2, 3)),
        "SparseParity: support=(1, 2, 3) names 3 bits, but k=2. Give 2 different bits.",
    ),
    (
        lambda: SparseParity(0, 0),
        "SparseParity: n=0. Give a whole number of at least 1.",
    ),
    (
        lambda: SparseParity(5, 2.5),  # type: ignore[arg-type] # on purpose
        "SparseParity: k=2.5. Give a whole number of at least 1.",
    ),
    (
        lambda: SparseAnd(3, 4),
        "SparseAnd: s=4 relevant bits were asked for, but n=3 has only 3 bits. Raise n or lower s.",
    ),
    (
        lambda: SparseMajority(5, 4),
        "SparseMajority: s=4 is even, and half of the bits are no majority. "
        "Give an odd s, such as 5.",
    ),
    (
        lambda: TruthTable(5, (0, 1, 1)),
        "TruthTable: table has 3 entries. Give 2^s of them, one for each setting of the s "
        "relevant bits.",
    ),
    (
        lambda: TruthTable(5, (0, 2)),
        "TruthTable: table=(0, 2) has entries other than 0 and 1. Give 0 or 1.",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_what_makes_no_sense_is_refused(make: Any, sentence: str) -> None:
    """One sentence: what was wrong, what was given, what to do."""
    with pytest.raises(UserError) as error:
        make()

    assert str(error.value) == sentence
