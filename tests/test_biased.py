"""Sparse AND of biased bits, and samples that several hypotheses explain."""

from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.tasks import BiasedAnd, BiasedBits, Examples
from petridish.tasks.biased import chance_of_one
from petridish.tasks.hypotheses import explaining
from petridish.testing import check_task
from petridish.training import Data, OneHypothesis, RunSpec
from petridish.training.data import sample_attempts


@pytest.mark.parametrize(
    "task",
    [
        BiasedAnd(6, 2, 0.3, (1, 4)),
        BiasedAnd(70, 2, encoding="signs"),
        BiasedBits(70, of="parity", encoding="signs"),
        BiasedBits(9, 2, of="table", values=(0, 1, 0, 1), p=0.3),
    ],
    ids=["support", "signs", "parity", "table"],
)
def test_the_task_keeps_its_contract(task: BiasedAnd | BiasedBits) -> None:
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


NAMED: dict[str, Any] = {
    "and": all,
    "or": any,
    "majority": lambda bits: 2 * sum(bits) > len(bits),
    "parity": lambda bits: sum(bits) % 2 == 1,
}


@pytest.mark.parametrize("of", NAMED)
def test_named_functions_are_what_their_names_say(of: str) -> None:
    """By the definition; tokens and signs have the same bits and supports."""
    tokens, signs = (
        BiasedBits(9, 3, of=of, encoding=encoding)  # type: ignore[arg-type]
        for encoding in ("tokens", "signs")
    )
    drawn, other = (task.draw([0, 1], "train", 0, 100) for task in (tokens, signs))
    assert np.array_equal(other.x == -1, drawn.x == 1)
    for run, support in enumerate(tokens.supports([0, 1])):
        expected = [NAMED[of]([bit == 1 for bit in x[support]]) for x in drawn.x[run]]
        assert drawn.labels[run].tolist() == other.labels[run].tolist() == expected


def test_tables_and_symmetric_functions_read_their_values() -> None:
    """A table's lowest digit is the first bit; a symmetric function counts ones."""
    table = BiasedBits(5, 2, of="table", values=(0, 1, 0, 0), support=(3, 1), p=0.5)
    counted = BiasedBits(5, 2, of="symmetric", values=(0, 1, 0), support=(3, 1), p=0.5)
    x = table.draw([0], "train", 0, 200).x[0]
    first = (x[:, 3] == 1) & (x[:, 1] == 0)
    assert table.draw([0], "train", 0, 200).labels[0].tolist() == first.tolist()
    assert counted.draw([0], "train", 0, 200).labels[0].tolist() == (x[:, 3] != x[:, 1]).tolist()
    assert BiasedBits(5, of="and").draw([0], "train", 0, 50).labels.tolist() == (
        BiasedAnd(5).draw([0], "train", 0, 50).labels.tolist()
    )


@given(
    s=st.integers(1, 4),
    values=st.lists(st.booleans(), min_size=16, max_size=16),
)
def test_half_of_the_labels_of_any_function_are_1(s: int, values: list[bool]) -> None:
    """The exact chance by enumeration is ½ at the p that is taken, where there is one."""
    table = tuple(map(int, values[: 2**s]))
    cube = np.array(table, bool).reshape((2,) * s)
    grid = np.array([chance_of_one(cube, p) for p in np.linspace(0.005, 0.995, 199)])
    if grid.min() > 0.5 or grid.max() < 0.5:
        if min(abs(grid - 0.5)) > 0.01:  # no p in sight of the grid
            with pytest.raises(UserError, match="no p gives as many labels 1 as 0 of table"):
                BiasedBits(6, s, of="table", values=table)
        return
    task = BiasedBits(6, s, of="table", values=table)
    chance = sum(
        task.share ** int(index).bit_count() * (1 - task.share) ** (s - int(index).bit_count())
        for index in np.flatnonzero(table)
    )
    assert chance == pytest.approx(0.5, abs=1e-6)


@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 70),
    table=st.lists(st.booleans(), min_size=8, max_size=8),
    label=st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_functions_are_counted_as_trying_each_one_says(
    seed: int, m: int, table: list[bool], label: list[bool]
) -> None:
    """Against every table of three of six bits in every order, as functions of all 64 inputs."""
    rng = np.random.default_rng(seed)
    bits = rng.random((m, 6)) < 0.5
    true = np.array(label if seed % 3 == 0 else table)
    labels = true[bits[:, [0, 2, 3]] @ [1, 2, 4]]
    every = np.array(np.unravel_index(np.arange(64), (2,) * 6)).T.astype(bool)
    functions = {
        tuple(np.array(table)[every[:, list(order)] @ [1, 2, 4]]): bool(
            (np.array(table)[bits[:, list(order)] @ [1, 2, 4]] == labels).all()
        )
        for chosen in combinations(range(6), 3)
        for order in permutations(chosen)
    }
    cube = np.array(table).reshape(2, 2, 2).transpose(2, 1, 0)
    assert explaining(bits, labels, cube, most=1000) == sum(functions.values())


def test_a_sample_too_small_for_any_single_hypothesis_says_how_many_were_tried() -> None:
    """Three examples never tell 120 ANDs apart."""
    with pytest.raises(UserError) as refused:
        sample_attempts(RunSpec(task=BiasedAnd(10), data=Data(m=3, accept=OneHypothesis())))
    assert str(refused.value) == (
        "Of the first 1000 training samples of biased_and(10) with m=3 at seed 0, one_hypothesis "
        "accepts none. Raise data.m, or accept more."
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"of": "xor"},
            "BiasedBits: of='xor'. Give 'and' or 'or' or 'majority' or 'parity' or "
            "'symmetric' or 'table'.",
        ),
        (
            {"of": "table", "values": (0, 1, 1)},
            "BiasedBits: values has 3 entries for of='table' "
            "and s=3. Give 2^s = 8 of them, one for each setting of the relevant bits.",
        ),
        (
            {"of": "symmetric", "values": (0, 1, 1)},
            "BiasedBits: values has 3 entries for "
            "of='symmetric' and s=3. Give s + 1 = 4 of them, one for each number of ones.",
        ),
        (
            {"values": (0, 1)},
            "BiasedBits: values has 2 entries for of='majority' and s=3. Give "
            "none: the function's name says them.",
        ),
        (
            {"of": "symmetric", "values": (0, 1, 2, 1)},
            "BiasedBits: values=(0, 1, 2, 1) has entries other than 0 and 1. Give 0 or 1.",
        ),
        (
            {"s": 2},
            "BiasedBits: s=2 is even, and half of the bits are no majority. Give an odd s, "
            "such as 3.",
        ),
        (
            {"of": "symmetric", "values": (1, 1, 1, 1)},
            "BiasedBits: no p gives as many labels 1 as "
            "0 of symmetric with values=(1, 1, 1, 1). Give a p.",
        ),
        ({"p": 0.0}, "BiasedBits: p=0.0. Give a probability between 0 and 1."),
    ],
)
def test_what_is_no_function_of_biased_bits(arguments: dict[str, Any], message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        BiasedBits(9, **arguments)
    assert str(refused.value) == message


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
