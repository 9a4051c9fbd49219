"""FL-6: students on mixtures that a teacher labels."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from petridish.chapters.inputs.injected_images import HIGH, LOW, OTHER_IMAGES
from petridish.chapters.inputs.student_rules import (
    AboveConstant,
    MinimumMoves,
    OriginalError,
    PartGap,
    lowest,
)
from petridish.chapters.inputs.students import DIGITS, STUDENTS
from petridish.figures.style import NothingToDraw
from petridish.rules import Judgement
from petridish.store import Store
from petridish.sweeps import Arms
from petridish.sweeps.arms import arm
from petridish.tasks import find_images
from petridish.training import ended, parents_of
from petridish.training.data import initial_weights
from tests.conftest import SmokeStore


@pytest.fixture
def table(smoke_store: SmokeStore) -> pl.DataFrame:
    """Return the smoke runs."""
    return STUDENTS.sweep("smoke").among(Store(smoke_store("FL-6")).read(columns="all").table)


def test_the_digits_are_those_of_scikit_learn() -> None:
    """Written down in the declaration, so that listing experiments reads no images."""
    assert find_images("digits") == DIGITS


def test_labels_are_those_of_each_seeds_own_teacher() -> None:
    """The held-out labels of a student are the largest outputs of its teacher, of both parts."""
    arms = STUDENTS.sweep("smoke")
    assert isinstance(arms, Arms)
    specs = list(arms["half injected"].specs())
    teachers = [parents_of(spec)[0] for spec in specs]
    assert [teacher.seed for teacher in teachers] == [spec.seed for spec in specs] == [0, 1, 2]
    curve = next(iter(arms["students of the teacher"].narrowed(["model.width=9"]).specs()))
    assert (curve.restart, parents_of(curve)[0].restart) == (1, 0)
    firsts = [initial_weights([run])[0] for run in (curve, parents_of(curve)[0])]
    assert firsts[0].shape == firsts[1].shape
    assert not np.allclose(firsts[0], firsts[1])  # a start of its own, at equal width
    spec, weights = specs[1], ended(teachers[1])
    drawn = spec.task.draw([1], "test", 0, 40)
    x = drawn.x[0].reshape(40, -1).astype(np.float64)
    hidden = (x @ weights["layer1.weight"].T + weights["layer1.bias"]) ** 2
    outputs = hidden @ weights["layer2.weight"].T + weights["layer2.bias"]

    assert np.array_equal(drawn.labels[0], outputs.argmax(axis=1))
    assert drawn.facts["part"].sum() == 20


def test_other_images_are_injected_without_their_labels(smoke_store: SmokeStore) -> None:
    """Digits 5 to 9 among 0 to 4: all have one of five labels, by a teacher that saw both."""
    store = Store(smoke_store("FL-11"))
    runs = OTHER_IMAGES.sweep("smoke").among(store.read(columns="all").table)
    arms = OTHER_IMAGES.sweep("smoke")
    assert isinstance(arms, Arms)
    spec = next(iter(arms["images injected"].specs()))
    drawn = spec.task.draw([0], "test", 0, 40)
    bare = LOW.draw([0], "test", 0, 20), HIGH.draw([0], "test/injected", 0, 20)

    assert (find_images("digits", range(5)), find_images("digits", range(5, 10))) == (LOW, HIGH)
    for part, examples in enumerate(bare):
        assert np.array_equal(drawn.x[0][drawn.facts["part"][0] == part], examples.x[0])
    assert drawn.labels.max() < 5
    assert parents_of(spec)[0].task == arms["images injected"].base.task.inputs  # type: ignore[attr-defined]
    assert len(OTHER_IMAGES.judge(runs)) == 4
    assert len(OTHER_IMAGES.figures["parts"](runs, "").axes) >= 4


def test_measures_by_hand(table: pl.DataFrame) -> None:
    """From the errors on the parts, and the share of the largest class."""
    half, alone = arm(table, "half injected"), arm(table, "images alone")
    original, injected = (
        half[f"final.test_error_{part}"].to_numpy() for part in ("original", "injected")
    )
    share = np.array([curve[-1] for curve in half["curve.largest_class_injected"]])

    assert np.allclose(PartGap().of(half), injected - original)
    assert np.allclose(OriginalError().of(half), original)
    assert np.allclose(OriginalError().of(alone), alone["test_error"])
    assert np.allclose(AboveConstant().of(half), injected - 1 + share)
    assert np.isnan(PartGap().of(alone)).all()
    assert PartGap().of(half).min() > 0  # noise is harder, in every seed


def curve(losses: dict[int, list[float]], name: str) -> pl.DataFrame:
    """Return the runs of a U-curve, a list of losses by seed for each width."""
    rows = [
        {"arms": [name], "seed": seed, "model.width": width, "outcome": "OUT_OF_STEPS"}
        | {"final.test_cross_entropy": loss}
        for width, of_seed in losses.items()
        for seed, loss in enumerate(of_seed)
    ]
    return pl.DataFrame(rows)


def test_the_minimum_of_a_curve() -> None:
    """By seed, among widths that count; a larger one in every seed is a move."""
    many = 10
    small = curve({1: [2.0] * many, 3: [1.0] * many, 9: [1.5] * many, 50: [0.1] * many}, "a")
    large = curve({1: [2.0] * many, 3: [1.8] * many, 9: [1.5] * many, 50: [0.1] * many}, "b")
    both = pl.concat([small, large])
    found = MinimumMoves("b", "a", most=9).judge(both, 0.05)

    assert set(lowest(small, 9).values()) == {3}
    assert set(lowest(small, 50).values()) == {50}
    assert (found.judgement, found.estimate, found.n) == (Judgement.SUPPORTED, 3.0, 20)
    assert MinimumMoves("b", "a", most=50).judge(both, 0.05).judgement is Judgement.UNDECIDED
    assert MinimumMoves("a", "b", most=9).judge(both, 0.05).judgement is Judgement.CONTRADICTED
    none = MinimumMoves("a", "b", most=9).judge(
        pl.concat([small, large[:0]]).with_columns(
            arms=pl.when(pl.col("seed") < 5).then(pl.lit(["a"])).otherwise(pl.lit(["b"]))
        ),
        0.05,
    )
    assert none.remark == "no seed was run in both arms"


def test_claims_and_figures(table: pl.DataFrame) -> None:
    """Nine claims, six panels of students, three curves."""
    assert len(STUDENTS.judge(table)) == 9
    assert len(STUDENTS.figures["parts"](table, "").axes) == 6
    assert len(STUDENTS.figures["curves"](table, "").axes) == 3
    with pytest.raises(NothingToDraw) as refused:
        STUDENTS.figures["parts"](table.drop("curve.test_error_original"), "")
    assert str(refused.value) == "No student kept its curves. Run the experiment as declared."
