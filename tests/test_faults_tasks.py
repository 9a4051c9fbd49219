"""The faults of a stranger's task: one sentence each, wherever they are met."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from petridish.models import MLP
from petridish.seeds import Streams
from petridish.tasks import Classes, Domain, Examples, HasParts, Reals, SparseParity, Tokens, Values
from petridish.testing import (
    check_task,
    short_run,
)
from petridish.training import (
    Data,
    Error,
    Hinge,
    Outcome,
    RunSpec,
    Square,
    Training,
)
from tests.faults import at, carried_out, measured, refused, without_digits
from tests.own_parts import Reader

PARITY = short_run(SparseParity(8, 3), MLP(4), Hinge())


@dataclass(frozen=True)
class Drawn:
    """A task with one fault at a time."""

    name: ClassVar[str] = "drawn"
    fault: str = ""

    @property
    def domain(self) -> Domain:
        """Return vectors, or tokens, and two classes or a real target."""
        inputs = Tokens(3, 2) if self.fault == "tokens" else Reals((2,))
        return Domain(inputs, Values(1) if self.fault == "nan" else Classes(2))

    def draw(self, seeds: Any, purpose: str, start: int, count: int) -> Any:
        """Draw normal inputs."""
        drawn = Streams(seeds, purpose).normals(2 * start, 2 * count)
        x = drawn.reshape(len(seeds), count, 2).astype(np.float32)
        labels: Any = (x[..., 0] > 0).astype(np.int64)
        facts: Any = {}
        match self.fault:
            case "nothing":
                return None
            case "raises":
                return [][1]
            case "width":
                x = np.concatenate([x, x], axis=-1)
            case "none":
                return Examples(labels)
            case "list":
                labels = labels.tolist()
            case "whole":
                x = np.ones_like(x, np.int64)
            case "nan":
                labels = np.where(x[..., :1] > 1, math.nan, x[..., :1])
            case "signs":
                labels = 2 * labels - 1
            case "rare":  # missing labels, and a class that a few examples do not have
                labels = np.where(np.arange(start, start + count) % 2, -1, 1) * np.ones_like(labels)
                labels[..., np.arange(start, start + count) % 500 == 499] = 0
            case "unlabelled":
                labels = np.full_like(labels, -1)
            case "fact":
                facts = {"size": x[0, 0]}
            case "facts":
                facts = ["size"]
            case "sometimes":
                facts = {"size": x} if start == 0 else {}
        return Examples(labels, dense=x, facts=facts)


ASKED = "It was given seeds=(0, 1), purpose='train', start=0, count=3."
TASKS = [
    ("nothing", "The task drawn(nothing) drew NoneType. Return such as Examples(labels, dense=x)."),
    (
        "raises",
        f"The task drawn(raises) failed in draw at {at(Drawn.draw, 'return [][1]')}: IndexError: "
        f"list index out of range. {ASKED}",
    ),
    (
        "width",
        "The task drawn(width) drew inputs of shape (2, 3, 4), and its domain asks for (2, 3, 2). "
        "Return such inputs from draw, or state another domain.",
    ),
    (
        "none",
        "The task drawn(none) drew inputs in 0 ways. Give Examples one of packed, dense and hot.",
    ),
    ("list", "The task drawn(list) drew labels as list. Return NumPy arrays."),
    (
        "whole",
        "The task drawn(whole) drew inputs of the type int64, and its domain asks for floats. "
        "Return such inputs from draw.",
    ),
    (
        "tokens",
        "The task drawn(tokens) drew inputs of the type float32, and its domain asks for whole "
        "numbers. Return such inputs from draw.",
    ),
    (
        "nan",
        "The task drawn(nan) drew a target that is no finite number. A target cannot be missing, "
        "as a class can: leave such examples out of draw.",
    ),
    (
        "signs",
        "The task drawn(signs) drew the labels −1 and 1 alone, and −1 stands for no label: these "
        "would count nowhere. Return class 0 for y = +1 and class 1 for y = −1.",
    ),
    (
        "fact",
        "The task drawn(fact) was asked for 3 examples of 2 runs, and drew the fact 'size' of "
        "shape (2,). Return (run, example) first.",
    ),
    (
        "facts",
        "The task drawn(facts) drew facts as list. Return such as "
        'Examples(labels, dense=x, facts={"part": part}).',
    ),
]


@pytest.mark.parametrize(("fault", "sentence"), TASKS)
def test_a_fault_of_a_task(fault: str, sentence: str) -> None:
    """Before anything is trained, by the check, and by engines that nobody asked first."""
    loss = Square() if fault == "nan" else Hinge()
    model = Reader() if fault == "tokens" else MLP(4)
    spec = RunSpec(
        task=Drawn(fault),
        data=Data(m=100, n_test=100),
        model=model,
        training=Training(loss=loss, steps=2, target_error=None),
    )
    if fault != "nan":  # three examples may all have targets
        assert refused(spec.check) == sentence
    assert without_digits(refused(check_task, Drawn(fault))) == without_digits(sentence)
    if fault not in ("signs", "tokens"):  # which an engine cannot tell from labels that are missing
        for engine in ("torch", "reference"):
            found = refused(carried_out, engine, spec)
            same = [without_digits(each).split(" It was given")[0] for each in (found, sentence)]
            assert same[0] == same[1]


def test_a_rare_class_is_no_sign() -> None:
    """Many labels are looked at before ±1 is suspected; fewer than 64 say nothing."""
    task = Drawn("rare")
    labels = task.draw((0, 1), "train", 0, 64).labels

    assert set(np.unique(labels)) == {-1, 1}
    replace(PARITY, task=task, data=Data(m=5000, n_test=9)).check()
    replace(PARITY, task=Drawn("signs"), data=Data(m=40, n_test=9)).check()


def test_facts_that_come_and_go() -> None:
    """The same facts for every sample, whoever asks."""
    assert refused(check_task, Drawn("sometimes")) == (
        "drawn(sometimes): the same examples, drawn from a later start, have the facts [], and had "
        "['size']. Return the same facts for every sample."
    )


def test_a_mixture_says_the_part_of_every_example() -> None:
    """In its facts, by the name that metrics ask for."""

    @dataclass(frozen=True)
    class Partless(Drawn, HasParts):
        name: ClassVar[str] = "partless"
        parts: ClassVar[tuple[str, ...]] = ("a", "b")

    assert refused(measured(replace(PARITY, task=Partless()), Error(part="a")).check) == (
        "The task partless is a mixture, and drew no fact 'part'. Return from draw which of its 2 "
        "parts each example is of."
    )


@pytest.mark.parametrize("curves", [True, False])
def test_a_task_without_labels_is_never_solved(*, curves: bool) -> None:
    """No example counts, the error is no number, and both engines say so."""
    spec = replace(
        short_run(Drawn("unlabelled"), MLP(4)),
        training=replace(PARITY.training, target_error=0.5),
    )
    spec = measured(spec, curves=curves)
    spec.check()
    for engine in ("torch", "reference"):
        record = carried_out(engine, spec)
        assert record.outcome is Outcome.OUT_OF_STEPS
        assert math.isnan(record.test_error)
        assert record.fitted_at is None


@dataclass(frozen=True)
class Homeless(Drawn):
    """A task that does not know its domain."""

    name: ClassVar[str] = "homeless"

    @property
    def domain(self) -> Any:
        """Raise."""
        return {"inputs": 1}["domain"]


def test_a_check_ends_in_a_sentence() -> None:
    """Whatever the class that it is given is, or does."""

    @dataclass(frozen=True)
    class Inside(Drawn):
        name: ClassVar[str] = "inside"

    assert refused(check_task, Drawn) == (
        "<class 'tests.test_faults_tasks.Drawn'> is a class. Give an instance of it."
    )
    assert refused(check_task, Inside()) == (
        "Inside is not found at the top of its file, where a stored run looks for it. Define it "
        "there, outside of functions and classes."
    )
    domain: Any = inspect.getattr_static(Homeless, "domain")
    assert refused(check_task, Homeless()) == (
        f"check_task of homeless failed at {at(domain.fget, 'inputs')}: KeyError: 'domain'. "
        "docs/extend.md shows what each method is given and returns."
    )
