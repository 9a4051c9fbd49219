"""Tasks whose inputs gather around centres: hidden representations and corners of a cube."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from petridish.errors import UserError
from petridish.tasks import HiddenLabels, Hypercube
from petridish.testing import check_task

SMALL = HiddenLabels(8, 6, 4, 3)
CUBE = Hypercube(6, 3, 0.6)


@pytest.mark.parametrize(
    "task",
    [SMALL, HiddenLabels(60, 40, 30, 5), HiddenLabels(3, 3, 1, 1), CUBE, Hypercube(4, 4, 0.0)],
    ids=repr,
)
def test_the_tasks_keep_their_contract(task: Any) -> None:
    """Domain, shapes, and examples that depend on their run and number alone."""
    check_task(task)


def test_a_label_is_that_of_the_vector() -> None:
    """All six vectors are different and about equally often drawn; others are uniform (5 errors).

    By chance one test in 100 000 would fail.
    """
    drawn, n = SMALL.draw([3], "train", 0, 12_000), 12_000
    codes = SMALL.codes(3)
    columns = np.linalg.qr(np.vstack([SMALL.directions([3])[0]]).T)[0]
    found = drawn.x[0] @ SMALL.directions([3])[0].T * np.sqrt(SMALL.variance) + 0.5
    phi = found.round().astype(int)

    assert columns.shape == (8, 4)
    assert len(np.unique(codes, axis=0)) == 6
    assert np.allclose(found, phi, atol=1e-5)
    for place, code in enumerate(codes):
        rows = np.all(phi == code, axis=1)
        assert abs(rows.mean() - 1 / 6) < 5 * np.sqrt(5 / 36 / n)
        assert set(drawn.labels[0][rows]) == {int(place >= 3)}
        centre = SMALL.centres([3])[0, place]
        mean, spread = drawn.x[0][rows].mean(axis=0), drawn.x[0][rows].std()
        assert np.abs(mean - centre).max() < 5 * spread * np.sqrt(6 / n) + 1e-6


def test_vectors_of_many_patterns_are_different() -> None:
    """Of 2^30 vectors, and of all four that there are; each run has its own."""
    many = HiddenLabels(60, 40, 30, 50)
    assert len(np.unique(many.codes(0), axis=0)) == 100
    assert not np.array_equal(many.codes(0), many.codes(1))
    assert len(np.unique(HiddenLabels(4, 4, 2, 2).codes(5), axis=0)) == 4


def test_corners_have_the_parity_of_their_signs() -> None:
    """Without noise an input is a corner; its label is the product of its signs."""
    task = Hypercube(5, 3, 0.0)
    drawn = task.draw([7], "test", 0, 64)
    signs = (drawn.x[0] @ task.directions([7])[0].T).round().astype(int)
    places = [int(np.flatnonzero(np.all(task.corners == row, axis=1))[0]) for row in signs]

    assert np.array_equal(drawn.labels[0] == 0, signs.prod(axis=1) == 1)
    assert np.allclose(drawn.x[0], task.centres([7])[0, places], atol=1e-6)
    assert len(set(places)) == 8


def test_the_noise_and_the_best_error() -> None:
    """E‖g‖² = σ_r²; the best rule errs as often as its formula says, within five errors.

    By chance one test in 100 000 would fail.
    """
    n = 40_000
    drawn = CUBE.draw([1], "train", 0, n)
    wide = Hypercube(6, 3, 2.0)
    along = drawn.x[0] @ CUBE.directions([1])[0].T
    noise = drawn.x[0] - np.sign(along) @ CUBE.directions([1])[0]
    far = wide.draw([1], "train", 0, n)
    guess = np.sign(far.x[0] @ wide.directions([1])[0].T).prod(axis=1) < 0
    wrong, expected = np.mean(guess != far.labels[0]), wide.best_error()

    assert np.mean((noise**2).sum(axis=1)) == pytest.approx(0.36, rel=0.02)
    assert 0.2 < expected < 0.35
    assert abs(wrong - expected) < 5 * np.sqrt(expected * (1 - expected) / n)
    assert Hypercube(4, 4, 0.0).best_error() == 0
    literal = Hypercube(100, 4, 10.0)  # σ_r² = 1 in each of 100 coordinates
    assert 0.57 < 1 - literal.best_error() < 0.76


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: HiddenLabels(5, 6, 3, 1),
            "HiddenLabels: k=3, patterns=6, d=5. Give k relevant ones among the patterns, and at "
            "most d patterns: they are orthonormal.",
        ),
        (
            lambda: HiddenLabels(5, 5, 2, 3),
            "HiddenLabels: vectors=3 of each label, and k=2 patterns have 4 vectors. Lower vectors "
            "or raise k.",
        ),
        (lambda: Hypercube(3, 4, 1.0), "Hypercube: k=4, d=3. Give at most d and at most 16."),
        (
            lambda: Hypercube(3, 2, -1.0),
            "Hypercube: spread=-1.0. Give a number of at least 0.",
        ),
    ],
)
def test_what_cannot_be(make: Any, message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        make()
    assert str(refused.value) == message
