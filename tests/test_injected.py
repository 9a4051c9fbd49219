"""Inputs without labels among those of a task, and teachers that label both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from petridish.errors import UserError
from petridish.models import MLP
from petridish.tasks import Dictionary, Injected, SparseParity
from petridish.testing import check_task
from petridish.training import Data, Hinge, RunSpec, Silent, Taught, Training, load_engine
from tests.own_parts import Waves

TASK = Dictionary(6, 4, 3)
MIXED = Injected(TASK, 0.3)


@pytest.mark.parametrize(
    "task", [MIXED, Injected(TASK, 0.75, replace(TASK, structure=False))], ids=repr
)
def test_the_task_keeps_its_contract(task: Injected) -> None:
    """Domain, shapes, parts, and examples that depend on their run and number alone."""
    check_task(task)


def test_both_parts_are_what_they_would_be_alone() -> None:
    """Original examples in their order; a share of the others, exactly, without a label."""
    drawn = MIXED.draw([2, 5], "train", 7, 100)
    injected = drawn.facts["part"][0] == 1
    before = int(7 * 0.3)
    n = int(injected.sum())
    alone = TASK.draw([2, 5], "train", 7 - before, 100 - n)

    assert abs(n - 30) <= 1
    assert np.array_equal(drawn.x[:, ~injected], alone.x)
    assert np.array_equal(drawn.labels[:, ~injected], alone.labels)
    assert (drawn.labels[:, injected] == -1).all()
    other = Injected(TASK, 0.3, replace(TASK, structure=False)).draw([2, 5], "train", 7, 100)
    theirs = replace(TASK, structure=False).draw([2, 5], "train/injected", before, n)
    assert np.array_equal(other.x[:, injected], theirs.x)


def test_injected_numbers_are_standard_normal() -> None:
    """Mean and covariance of 24 000 numbers within five standard errors."""
    drawn = Injected(TASK, 0.5).draw([1], "train", 0, 8000)
    x = drawn.x[0][drawn.facts["part"][0] == 1].astype(float)

    assert np.abs(x.mean(axis=0)).max() < 5 / np.sqrt(4000)
    assert np.allclose(np.cov(x.T), np.eye(6), atol=5 * np.sqrt(2 / 4000))


def test_a_teacher_labels_all_inputs() -> None:
    """The original ones too: labels of both parts are the teacher's answers."""
    training = Training(loss=Hinge(), steps=30, batch_size=20, target_error=None)
    teacher = RunSpec(
        task=TASK, data=Data(m=200, n_test=50), model=MLP(8), training=training, seed=0
    )
    student = replace(teacher, task=Taught(MIXED, teacher), data=Data(m=300, n_test=100), seed=4)
    (record,) = load_engine("reference").run([student], Silent())
    labels = student.task.draw([4], "train", 0, 300)

    assert set(np.unique(labels.labels)) <= {0, 1}
    assert set(labels.facts["part"][0]) == {0, 1}
    assert record.final["test_error"] <= 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Injected(TASK, 1.0),
            "Injected: share=1.0 of the inputs are to be injected. Give a number between 0 and 1: "
            "some inputs of each kind.",
        ),
        (lambda: Injected("x", 0.5), "Injected: original='x' is no task. Give one."),  # type: ignore[arg-type]
        (
            lambda: Injected(Waves(), 0.5).domain,
            "Injected: the task waves has real targets, which cannot be missing. Give a task with "
            "classes.",
        ),
        (
            lambda: Injected(SparseParity(5, 2), 0.5).domain,
            "Injected: the inputs of sparse_parity(5, 2) are Bits(n=5), and normal numbers are "
            "none. Give a task of such inputs as injected.",
        ),
        (
            lambda: Injected(TASK, 0.5, Dictionary(7, 4, 3)).domain,
            "Injected: the inputs of dictionary(6, 4, 3) are Reals(shape=(6,)), and those of "
            "dictionary(7, 4, 3) are Reals(shape=(7,)). Give tasks of the same inputs.",
        ),
    ],
)
def test_mixtures_that_cannot_be(make: Any, message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        make()
    assert str(refused.value) == message
