"""The faults of a user's task: one sentence each, wherever they are met."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from petridish.estimator.contenders import RandomForest
from petridish.models import MLP
from petridish.seeds import Streams
from petridish.tasks import (
    Bits,
    Classes,
    Domain,
    Examples,
    HasParts,
    OneHot,
    Reals,
    SparseParity,
    Tokens,
    Values,
)
from petridish.testing import (
    check_task,
    short_run,
)
from petridish.training import (
    CrossEntropy,
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
            case "third class":  # which the first few examples do not have
                labels[..., np.arange(start, start + count) >= 20] = 2
            case "label shape":
                labels = labels[..., 0]
            case "impure":
                x = np.random.default_rng().normal(size=x.shape).astype(np.float32)
            case "impure labels":
                labels = np.random.default_rng().integers(2, size=labels.shape)
            case "place":
                x = np.sort(x, axis=1)
            case "infinite":
                x[x > 1] = math.inf
        return Examples(labels, dense=x, facts=facts)


ASKED = "It was given seeds=(0, 1), purpose='train', start=0, count=3."
TASKS = [
    (
        "nothing",
        "The task drawn(nothing) drew NoneType. Return Examples, such as "
        "Examples(labels, dense=x).",
    ),
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
        "The task drawn(facts) drew facts as list. Return a mapping, such as "
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


OTHERS = (
    "are others. An example must depend on its run's seed and its number alone: take all "
    "randomness from Streams(seeds, purpose), and begin at `start`."
)
VALUES = [
    (
        "third class",
        "The task drawn(third class) drew the label 2, and its domain has the classes 0 to 1, and "
        "-1 for no label. Return these from draw, or state another domain.",
    ),
    (
        "label shape",
        "The task drawn(label shape) drew labels of shape (2,), and 2 classes ask for (run, "
        "example). Return such labels from draw, or state another domain.",
    ),
    ("impure", f"The task drawn(impure): the same examples, drawn again, {OTHERS}"),
    ("impure labels", f"The task drawn(impure labels): the same examples, drawn again, {OTHERS}"),
    ("place", f"The task drawn(place): the same examples, drawn from a later start, {OTHERS}"),
    (
        "infinite",
        "The task drawn(infinite) drew 31 of 128 examples with inputs that are NaN or infinite. "
        "Return finite floats from draw.",
    ),
]


@pytest.mark.parametrize(("fault", "sentence"), VALUES)
def test_a_fault_that_would_be_trained_in_silence(fault: str, sentence: str) -> None:
    """Values and repeated draws are checked before the first step."""
    task = Drawn(fault)

    for model in (MLP(4), RandomForest()):
        spec = replace(PARITY, task=task, data=Data(m=200, n_test=200), model=model)
        assert refused(spec.check) == sentence
    assert refused(check_task, task) == sentence


@dataclass(frozen=True)
class Encoded:
    """A task whose inputs are none of its domain's."""

    name: ClassVar[str] = "encoded"
    kind: str

    @property
    def domain(self) -> Domain:
        """Return the inputs that are promised."""
        inputs: dict[str, Any] = {"bits": Bits(2), "one-hot": OneHot(2), "tokens": Tokens(3, 2)}
        return Domain(inputs[self.kind], Classes(2))

    def draw(self, seeds: Any, purpose: str, start: int, count: int) -> Examples:
        """Draw 1 to 3."""
        x = 1 + Streams(seeds, purpose).integers(3, 2 * start, 2 * count)
        x = x.reshape(len(seeds), count, 2)
        labels = x[..., 0] % 2
        return Examples(labels, dense=x if self.kind == "tokens" else x.astype(np.float32))


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("bits", "−1 and +1"),
        ("one-hot", "0 and 1, with 1 ones in each"),
        ("tokens", "whole numbers from 0 to 2"),
    ],
)
def test_inputs_of_another_kind_than_the_domain(kind: str, asked: str) -> None:
    """Their shape fits, and their values do not."""
    model = Reader() if kind == "tokens" else MLP(4)

    assert refused(replace(PARITY, task=Encoded(kind), model=model).check) == (
        f"The task encoded({kind}) drew inputs that its domain does not have: it asks for {asked}. "
        "Return such inputs from draw, or state another domain."
    )


def test_a_rare_class_is_no_sign() -> None:
    """Many labels are looked at before ±1 is suspected."""
    task = Drawn("rare")
    labels = task.draw((0, 1), "train", 0, 64).labels

    assert set(np.unique(labels)) == {-1, 1}
    replace(PARITY, task=task, data=Data(m=5000, n_test=9)).check()
    replace(PARITY, task=task, data=Data(m=5, n_test=9)).check()


@dataclass(frozen=True)
class Labelled:
    """A task of k classes whose label is the number of the example and an offset, modulo k."""

    name: ClassVar[str] = "labelled"
    k: int = 3
    offset: int = 0
    period: int = 3
    available: int = 10**6
    domain: ClassVar[Any] = property(lambda self: Domain(Reals((2,)), Classes(self.k)))

    def draw(self, seeds: Any, purpose: str, start: int, count: int) -> Examples:
        """Draw normal inputs."""
        if start + count > self.available:
            raise ValueError("there are no more")
        x = Streams(seeds, purpose).normals(2 * start, 2 * count).reshape(len(seeds), count, 2)
        labels = np.arange(start, start + count) % self.period + self.offset
        return Examples(np.tile(labels, (len(seeds), 1)), dense=x.astype(np.float32))


def tried(task: Any, m: int) -> None:
    """Try a task as a run with m examples does."""
    training = Training(loss=CrossEntropy(), steps=2)
    replace(PARITY, task=task, data=Data(m=m, n_test=9), training=training).check()


@pytest.mark.parametrize("m", [5, 40, 5000])
def test_labels_that_begin_below_zero_are_refused_for_every_m(m: int) -> None:
    """−1 and 1, and −1 … k − 2: the first size of a sweep is often small."""
    assert "drew the labels −1 and 1 alone" in refused(tried, Drawn("signs"), m)
    assert refused(tried, Labelled(offset=-1), m) == (
        "The task labelled(3, -1): 33 % of the labels are −1 (no label); class 2 never "
        "occurs in 4096 examples. Return labels from 0 to 2; −1 means that an example has no label."
    )


def test_labels_as_they_should_be_are_not_refused() -> None:
    """Missing ones among all classes, a class that never occurs, and a task of few examples."""
    tried(Labelled(offset=-1, period=4), 5)
    tried(Labelled(k=4), 5)
    tried(Labelled(offset=-1, available=20), 5)


def test_a_constant_label_is_warned_of_once(capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error; a rare second class is enough."""
    for m in (5, 40):
        tried(Labelled(offset=1, period=1), m)
    assert capsys.readouterr().err == (
        "petridish: the task labelled(3, 1, 1) has the label 1 for each of 4096 examples: "
        "a model that ignores its inputs solves it.\n"
    )


@dataclass(frozen=True)
class OneSample:
    """The same examples for every seed, as of a real data set, or of a forgotten seed."""

    name: ClassVar[str] = "one_sample"

    available: int = 1000
    anew: str = ""  # a purpose that is drawn anew

    @property
    def domain(self) -> Domain:
        """Two real numbers of two classes."""
        return Domain(Reals((2,)), Classes(2))

    def draw(self, seeds: Any, purpose: str, start: int, count: int) -> Examples:
        """Draw from the same stream."""
        if start + count > self.available:
            raise ValueError("there are no more")
        drawn = Streams(seeds if purpose == self.anew else [7] * len(seeds), purpose)
        x = drawn.normals(2 * start, 2 * count).reshape(len(seeds), count, 2)
        return Examples((x[..., 0] > 0).astype(np.int64), dense=x.astype(np.float32))


def test_one_sample_for_all_seeds_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Not of one that draws training samples anew, nor where few examples may agree by chance."""
    for m in (5, 40, 40):
        tried(OneSample(), m)
    assert set(capsys.readouterr().err.splitlines()) == {
        "petridish: the task one_sample draws the same training sample for every seed: seeds "
        "differ in their start and batches alone, and intervals say nothing of other samples. That "
        "is right of one fixed data set; else draw from Streams(seeds, purpose)."
    }
    tried(OneSample(anew="train"), 40)
    tried(OneSample(available=12), 5)
    assert capsys.readouterr().err == ""


def test_facts_that_come_and_go() -> None:
    """The same facts for every sample, whoever asks."""
    assert refused(check_task, Drawn("sometimes")) == (
        "The task drawn(sometimes): the same examples, drawn from a later start, have the facts "
        "[], and had ['size']. Return the same facts for every sample."
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
        "Inside is not found at the top of its file, where stored runs expect it. Define it "
        "there, outside of functions and classes."
    )
    domain: Any = inspect.getattr_static(Homeless, "domain")
    assert refused(check_task, Homeless()) == (
        f"The task homeless failed in domain at {at(domain.fget, 'inputs')}: KeyError: 'domain'."
    )


def test_a_task_without_a_domain() -> None:
    """Before anything else is asked of it."""

    @dataclass(frozen=True)
    class Nowhere(Drawn):
        name: ClassVar[str] = "nowhere"
        domain: ClassVar[Any] = None

    assert refused(replace(PARITY, task=Nowhere()).check) == (
        "The task nowhere has the domain None. Return such as Domain(Bits(10), Classes(2))."
    )
    place = at(inspect.getattr_static(Homeless, "domain").fget, "inputs")
    assert refused(replace(PARITY, task=Homeless()).check) == (
        f"The task homeless failed in domain at {place}: KeyError: 'domain'."
    )
