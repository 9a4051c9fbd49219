"""Finite groups: tables, classes, representations."""

from __future__ import annotations

import itertools
import re
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.groups import Group, find_group, product, real_irreps
from petridish.groups.irreps import on_classes

NAMES = (
    *("Z1", "Z2", "Z3", "Z8", "Z31", "D1", "D2", "D4", "D5", "S1", "S3", "S4", "S5"),
    *("A4", "A5", "Q8", "Z2xZ2", "Z3xZ3", "Z2xS3", "Q8xZ3", "Z2xZ2xZ3"),
)


@pytest.mark.parametrize(
    ("name", "order", "classes", "abelian"),
    [
        ("Z7", 7, 7, True),
        ("D4", 8, 5, False),
        ("D5", 10, 4, False),
        ("S3", 6, 3, False),
        ("S4", 24, 5, False),
        ("S5", 120, 7, False),
        ("A4", 12, 4, False),
        ("A5", 60, 5, False),
        ("Q8", 8, 5, False),
        ("Z2xS3", 12, 6, False),
        ("Z2xZ2", 4, 4, True),
    ],
)
def test_known_groups(name: str, order: int, classes: int, abelian: bool) -> None:  # noqa: FBT001
    """Orders, numbers of conjugacy classes, and whether ab = ba, from any textbook."""
    group = find_group(name)

    assert (group.order, len(group.classes)) == (order, classes)
    assert np.array_equal(group.table, group.table.T) == abelian
    assert group.name == name


@pytest.mark.parametrize("name", NAMES)
def test_identity_inverses_and_classes(name: str) -> None:
    """By the definitions; classes cut the group into parts, each closed under conjugation."""
    group = find_group(name)
    everyone = np.arange(group.order)

    assert np.array_equal(group.table[group.identity], everyone)
    assert (group.table[everyone, group.inverse] == group.identity).all()
    assert np.array_equal(np.sort(np.concatenate(group.classes)), everyone)
    assert group.classes[0].tolist() == [group.identity]
    for members in group.classes:
        a = members[0]
        conjugates = {int(group.table[group.table[g, a], group.inverse[g]]) for g in everyone}
        assert conjugates == set(members.tolist())


def test_permutations_are_composed_from_the_right() -> None:
    """(1 2) after (2 3) sends 3 to 2 to 1: it is (1 2 3)."""
    group = find_group("S3")
    place = group.elements.index
    composed = group.table[place("(1 2)"), place("(2 3)")]

    assert group.elements[composed] == "(1 2 3)"
    assert group.elements[group.identity] == "e"


def test_quaternions() -> None:
    """Ij = k, ji = -k, i² = -1."""
    group = find_group("Q8")
    place = group.elements.index

    assert group.elements[group.table[place("i"), place("j")]] == "k"
    assert group.elements[group.table[place("j"), place("i")]] == "-k"
    assert group.elements[group.table[place("i"), place("i")]] == "-1"


def test_flips_undo_turns() -> None:
    """In D_n, s r s = r⁻¹."""
    group = find_group("D5")
    place = group.elements.index
    turned = group.table[group.table[place("s"), place("r")], place("s")]

    assert group.elements[turned] == "r4"


@pytest.mark.parametrize("name", NAMES)
def test_representations(name: str) -> None:
    """Homomorphisms into orthogonal matrices; characters orthogonal; all there are."""
    group = find_group(name)
    irreps = real_irreps(group)
    commuting = {"real": 1, "complex": 2, "quaternionic": 4}
    for irrep in irreps:
        products = np.einsum("gij,hjk->ghik", irrep.matrices, irrep.matrices)
        np.testing.assert_allclose(products, irrep.matrices[group.table], atol=1e-10)
        square = np.einsum("gij,gkj->gik", irrep.matrices, irrep.matrices)
        np.testing.assert_allclose(square - np.eye(irrep.dimension), 0, atol=1e-10)
        # Entries are orthogonal [Lemma D.10]; of the other kinds some are equal, up to sign.
        gram = irrep.basis @ irrep.basis.T * irrep.dimension / group.order
        values = np.linalg.eigvalsh(gram)
        np.testing.assert_allclose(values[values > 1e-9], commuting[irrep.kind], atol=1e-9)
        assert irrep.kind != "real" or np.allclose(gram, np.eye(len(gram)), atol=1e-10)
    characters = np.stack([irrep.character for irrep in irreps])
    expected = np.diag([commuting[irrep.kind] for irrep in irreps])

    np.testing.assert_allclose(characters @ characters.T / group.order, expected, atol=1e-10)
    assert np.allclose(irreps[0].character, 1)
    assert irreps[0].name == "trivial"
    assert sum(i.dimension**2 // commuting[i.kind] for i in irreps) == group.order
    if all(irrep.kind == "real" for irrep in irreps):
        assert len(irreps) == len(group.classes)
    assert len({irrep.name for irrep in irreps}) == len(irreps)


def test_the_character_table_of_s5() -> None:
    """As printed [TH Table D.1], up to the order of rows.

    The names of two rows are exchanged there: the standard representation has the character
    (fixed points) − 1, which is +2 for (1 2).
    """
    group = find_group("S5")
    place = {group.elements[m]: n for n, members in enumerate(group.classes) for m in members}
    names = ["e", "(1 2)", "(1 2)(3 4)", "(1 2 3)", "(1 2 3 4)", "(1 2 3 4 5)", "(1 2)(3 4 5)"]
    columns = [place[name] for name in names]
    ours = on_classes(real_irreps(group), group.classes)[:, columns].round().astype(int)
    printed = {
        (1, 1, 1, 1, 1, 1, 1),
        (1, -1, 1, 1, -1, 1, -1),
        (4, -2, 0, 1, 0, -1, 1),
        (4, 2, 0, 1, 0, -1, -1),
        (5, 1, 1, -1, -1, 0, 1),
        (5, -1, 1, -1, 1, 0, -1),
        (6, 0, -2, 0, 0, 1, 0),
    }

    assert {tuple(int(value) for value in row) for row in ours} == printed
    standard = tuple(fixed - 1 for fixed in (5, 3, 1, 2, 1, 0, 0))
    assert standard == (4, 2, 0, 1, 0, -1, -1)  # the row that is called standard ⊗ sign
    assert [irrep.name for irrep in real_irreps(group)] == [
        *("trivial", "1d", "4d_a", "4d_b", "5d_a", "5d_b", "6d")
    ]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("Z5", "real complex complex"),
        ("Z4", "real real complex"),
        ("Q8", "real real real real quaternionic"),
        ("A4", "real complex real"),
        ("S4", "real real real real real"),
    ],
)
def test_kinds_of_representations(name: str, kinds: str) -> None:
    """What commutes with them: the reals, the complex numbers, or the quaternions."""
    assert " ".join(irrep.kind for irrep in real_irreps(find_group(name))) == kinds


@settings(deadline=None, max_examples=30)
@given(name=st.sampled_from(["Z6", "D4", "Q8", "S3", "A4", "Z2xZ2"]), seed=st.integers(0, 999))
def test_names_of_elements_do_not_matter(name: str, seed: int) -> None:
    """The same group under other places has the same characters, element by element."""
    group = find_group(name)
    order = np.random.default_rng(seed).permutation(group.order)
    place = np.argsort(order)
    other = Group("other", place[group.table[np.ix_(order, order)]])
    ours = {tuple(irrep.character[order].round(6) + 0.0) for irrep in real_irreps(group)}

    assert {tuple(irrep.character.round(6) + 0.0) for irrep in real_irreps(other)} == ours


def test_a_product_of_groups_is_taken_by_parts() -> None:
    """Z2 x Z3 is cyclic of order 6: its characters are those of Z6; products have all names."""
    both = product(find_group("Z2"), find_group("Z3"))
    place = both.elements.index

    assert both.name == "Z2xZ3"
    assert both.elements[both.table[place("1,2"), place("1,1")]] == "0,0"
    assert [i.dimension for i in real_irreps(both)] == [
        i.dimension for i in real_irreps(find_group("Z6"))
    ]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (
            [[0, 1]],
            "The table of G has the shape (1, 2). Give as many rows as columns, at least one.",
        ),
        ([], "The table of G has the shape (0,). Give as many rows as columns, at least one."),
        ([[0.5]], "The table of G holds float64. Give whole numbers."),
        (
            [[0, 1], [1, 2]],
            "G is not closed: 1 · 1 is 2, but its elements are 0 to 1. Give a table of these.",
        ),
        (
            [[1, 1], [1, 1]],
            "G has no identity: no element e has ea = ae = a for every a. Mend the table.",
        ),
        (
            [[0, 1], [1, 1]],
            "G is no group: 1 has no inverse, no b with 1 · b = b · 1 = 0. Mend the table.",
        ),
        (
            [[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 4, 0, 1, 3], [3, 2, 4, 0, 1], [4, 3, 1, 2, 0]],
            "G is not associative: (1 · 1) · 2 is 2, but 1 · (1 · 2) is 4. Mend the table.",
        ),
    ],
)  # fmt: skip
def test_what_is_no_group_is_told(table: list[list[int]], sentence: str) -> None:
    """With the elements that say so."""
    with pytest.raises(UserError) as error:
        Group("G", table)
    assert str(error.value) == sentence


def test_names_of_elements_are_checked_and_used() -> None:
    """As many as elements, all different; messages speak of them."""
    with pytest.raises(UserError) as error:
        Group("G", [[0, 1], [1, 0]], ("e", "e"))
    assert str(error.value) == (
        "G has 2 elements, but 1 different names for them. Name each, or none."
    )
    with pytest.raises(UserError) as error:
        Group("G", [[0, 1], [1, 1]], ("one", "zero"))
    assert "zero has no inverse, no b with zero · b = b · zero = one" in str(error.value)


@pytest.mark.parametrize("name", ["", "S", "Z0", "S 3", "X4", "Z2*Z3", "Q16", "z5", "Z2x"])
def test_an_unknown_group(name: str) -> None:
    """The sentence says how groups are written."""
    with pytest.raises(UserError) as error:
        find_group(name)
    assert str(error.value) == (
        f"There is no group called {name!r}. Write Z71, D4 (the symmetries of a square), S5, A4, "
        "Q8, or a product such as Z2xS3."
    )


@pytest.mark.parametrize(
    ("name", "count"), [("S7", str(factorial(7))), ("Z721", "721"), ("S99", "very many")]
)
def test_a_group_that_is_too_large(name: str, count: str) -> None:
    """Refused before its table is made."""
    with pytest.raises(UserError) as error:
        find_group(name)
    assert str(error.value) == f"{name} has {count} elements. Give a group of at most 720."


@given(name=st.sampled_from(["Z2xZ4", "D4", "Q8", "Z2xZ2xZ2", "Z12"]), seed=st.integers(0, 2**32))
def test_a_table_with_four_entries_exchanged_is_judged_as_by_brute_force(
    name: str, seed: int
) -> None:
    """Exchange x and y where they stand at the corners of a square: still one of each in a row."""
    rng = np.random.default_rng(seed)
    table = find_group(name).table.copy()
    corners = [
        (a, b, c, d)
        for a, b in itertools.combinations(range(1, len(table)), 2)
        for c, d in itertools.combinations(range(1, len(table)), 2)
        if table[a, c] == table[b, d] and table[a, d] == table[b, c]
    ]
    a, b, c, d = corners[rng.integers(len(corners))]
    table[[a, a, b, b], [c, d, c, d]] = table[[a, a, b, b], [d, c, d, c]]
    order = range(len(table))
    broken = [
        (x, y, z)
        for x, y, z in itertools.product(order, repeat=3)
        if table[table[x, y], z] != table[x, table[y, z]]
    ]
    assert broken, "an exchange breaks every one of these groups"
    with pytest.raises(UserError, match=r"is not associative|no inverse") as error:
        Group("changed", table)
    if "associative" in str(error.value):
        x, y, z = (
            int(found) for found in re.findall(r"\((\d+) · (\d+)\) · (\d+)", str(error.value))[0]
        )
        assert (x, y, z) in broken
