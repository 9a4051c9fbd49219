"""Specs: what is refused, and the key that names a run."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from petridish.choices import describe, parse, split
from petridish.errors import UserError, nearest
from petridish.models import INITS, MLP, Identity, Init, Sparse
from petridish.sweeps import load_user_file
from petridish.sweeps.sweep import OFFERED
from petridish.tasks import SparseAnd, SparseOr, SparseParity
from petridish.training import (
    ONLINE,
    SGD,
    Above,
    Adam,
    Below,
    Data,
    Error,
    Evaluation,
    Held,
    Hinge,
    OneHypothesis,
    Piece,
    RunSpec,
    Schedule,
    Square,
    Training,
    flat,
    run_key,
    step_schedule,
)
from petridish.training.keys import _part_text
from tests.domains import bits

SPEC = RunSpec(task=SparseParity(20, 3), evaluation=Evaluation(curves=True))

REFUSED = [
    (
        lambda: Data(m=0),
        "Data: m=0 training examples were asked for. "
        "Give a whole number from 1 to 2^32, or inf for fresh examples at each step.",
    ),
    (
        lambda: Data(m=2.5),
        "Data: m=2.5 training examples were asked for. "
        "Give a whole number from 1 to 2^32, or inf for fresh examples at each step.",
    ),
    (
        lambda: Data(label_noise=1.5),
        "Data: label_noise=1.5. Give a probability from 0 to 1.",
    ),
    (
        lambda: Data(n_test=0),
        "Data: n_test=0. Give a whole number of at least 1.",
    ),
    (
        lambda: Training(learning_rate=-0.1),
        "Training: learning_rate=-0.1. Give a finite number of at least 0.",
    ),
    (
        lambda: Training(weight_decay=math.inf),
        "Training: weight_decay=inf. Give a finite number of at least 0.",
    ),
    (lambda: Training(steps=0), "Training: steps=0. Give a whole number of at least 1."),
    (lambda: Training(batch_size=0), "Training: batch_size=0. Give a whole number of at least 1."),
    (
        lambda: Training(target_error=2.0),
        "Training: target_error=2.0. "
        "Give an error rate from 0 to 1, or none to use the whole budget.",
    ),
    (
        lambda: Evaluation(every=0),
        "Evaluation: every=0. Give a whole number of at least 1.",
    ),
    (
        lambda: replace(SPEC, seed=-1),
        "RunSpec: seed=-1. Give a whole number from 0 to 2^64 − 1.",
    ),
    (
        lambda: Evaluation(curves="yes"),  # type: ignore[arg-type] # on purpose
        "Evaluation: curves='yes'. Give true or false.",
    ),
    (
        lambda: replace(SPEC, init=Sparse),  # type: ignore[arg-type] # on purpose
        "RunSpec: init=<class 'petridish.models.inits.Sparse'> is not an instance of a frozen "
        "dataclass. Give an object of a class that has @dataclass(frozen=True) above it.",
    ),
    (
        lambda: replace(SPEC, model=nn.Linear(8, 1)),  # type: ignore[arg-type] # on purpose
        "RunSpec: model is Linear, a module of PyTorch. Give an object of a frozen dataclass whose "
        "method build(self, domain, n_outputs) returns such a module: each run builds its own.",
    ),
    (
        lambda: Training(steps=50.5),  # type: ignore[arg-type] # on purpose
        "Training: steps=50.5. Give a whole number of at least 1.",
    ),
    (lambda: SGD(1.0), "SGD: momentum=1.0. Give a number from 0 to below 1."),
    (
        lambda: Adam(beta1=1.0),
        "Adam: beta1=1.0, beta2=0.999, epsilon=1e-08. "
        "Give betas from 0 to below 1 and a positive epsilon.",
    ),
    (
        lambda: Schedule((Piece(5), Piece(5))),
        "The schedule's pieces start at the steps [5, 5]. "
        "Give steps from 0 on, in order, each once.",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_what_makes_no_sense_is_refused(make: Any, sentence: str) -> None:
    """One sentence: what was wrong, what was given, what to do."""
    with pytest.raises(UserError) as error:
        make()

    assert str(error.value) == sentence


def leaves(value: Any) -> list[tuple[str, ...]]:
    """List the path of every field in a spec that holds no further fields."""
    found = []
    for part in fields(value):
        inner = getattr(value, part.name)
        if is_dataclass(inner) and fields(inner):
            found += [(part.name, *rest) for rest in leaves(inner)]
        else:
            found.append((part.name,))
    return found


def changed(value: Any, path: tuple[str, ...]) -> Any:
    """Return a copy with another value at `path`."""
    name, *rest = path
    inner = getattr(value, name)
    if rest:
        return replace(value, **{name: changed(inner, tuple(rest))})
    others = {
        "support": (0, 1, 2),
        "m": 500,
        "deeper": (7,),
        "output": "linear",
        "activation": Identity(),
        "init": Sparse(2),
        "loss": Square(),
        "schedule": step_schedule((5,), 0.1),
        "pieces": (Piece(3, 0.1),),
        "curves": False,
        "instruments": ("movement",),
        "batches": "epochs",
        "draws": "distinct",
        "accept": OneHypothesis(),
        "precision": "float64",
        "power": 3.0,
        "weights": True,
        "stop": Below(Error(part="a"), 0.2),
        "clip": 1.0,
        "metrics": (Error(on="train"),),
        "samples": (Held("other", SparseParity(10, 2)),),
        "reached": (Above(Error(), 0.5),),
        "at": (3, 7),
    }
    other = others.get(name)
    if name in ("draws", "accept"):  # ask for a finite sample; that m is in the key is seen above
        return replace(value, **{"m": 500, name: other})
    if other is None:
        other = inner + 1 if isinstance(inner, int) else inner / 2 + 0.01
    return replace(value, **{name: other})


@pytest.mark.parametrize("path", leaves(SPEC), ids=".".join)
def test_every_field_is_part_of_the_key(path: tuple[str, ...]) -> None:
    """Two runs that differ in one field have two names."""
    # Epochs go through a sample, which there is none of online.
    spec = replace(SPEC, data=Data(m=300)) if path[-1] == "batches" else SPEC
    other = changed(spec, path)

    assert other != spec
    assert run_key(other) != run_key(spec)


def test_the_key_is_the_same_everywhere() -> None:
    """Written down: a key must not change between processes, machines and versions.

    If this fails, stored runs would be trained again: raise SCHEMA and say so in the changelog.
    """
    assert run_key(SPEC) == "5411ec96e5c45545c3434f3e3c362123"


def test_type_names_keep_tasks_with_equal_fields_apart() -> None:
    """AND and OR of the same bits are two runs; equal numbers, however spelled, are one."""
    one, other = (replace(SPEC, task=task) for task in (SparseAnd(9, 2), SparseOr(9, 2)))

    assert run_key(one) != run_key(other)
    for one_way, other_way in (
        (Data(m=100), Data(m=100.0)),
        (Data(label_noise=0), Data(label_noise=0.0)),
        (Data(label_noise=1), Data(label_noise=1.0)),
    ):
        _part_text.cache_clear()
        first = run_key(replace(SPEC, data=one_way))
        _part_text.cache_clear()
        assert run_key(replace(SPEC, data=other_way)) == first


MINE = """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Mine:
    name: ClassVar[str] = "mine"

    def __call__(self, z):
        return FACTOR * z
"""


def test_a_users_class_is_named_by_its_code_too(tmp_path: Path) -> None:
    """Changed code makes another key, a changed comment does not; petridish's own carry none."""
    specs = []
    for number, factor in enumerate(("2", "2 # twice", "3")):
        path = tmp_path / f"mine{number}.py"
        path.write_text(MINE.replace("FACTOR * z", f"z * {factor}"), encoding="utf-8")
        specs.append(replace(SPEC, model=MLP(10, activation=load_user_file(path).Mine())))
    two, commented, three = specs

    assert run_key(two) == run_key(commented) != run_key(three)
    assert flat(two)["model.activation.code"] != flat(three)["model.activation.code"]
    assert not any(column.endswith(".code") for column in flat(SPEC))


def test_flat_columns_have_the_documented_names() -> None:
    """One column a field; a choice stands as text above its fields."""
    spec = replace(SPEC, init=Sparse(2), data=Data(m=ONLINE), seed=7)
    columns = flat(spec)

    expected = {
        "task": "sparse_parity(20, 3)",
        "task.n": 20,
        "task.k": 3,
        "task.support": None,
        "data.m": math.inf,
        "model": "mlp(100)",
        "model.width": 100,
        "model.activation": "relu",
        "init": "sparse(2)",
        "init.s": 2,
        "training.loss": "hinge",
        "training.optimiser": "sgd",
        "training.learning_rate": 0.1,
        "training.weight_decay": 0.01,
        "training.steps": 100_000,
        "seed": 7,
    }
    assert {name: columns[name] for name in expected} == expected


def test_schedules_by_hand() -> None:
    """Factors hold from their step on; before the first piece they are 1."""
    schedule = step_schedule((10, 20), 0.5)

    assert [schedule.at(step).rate for step in (0, 9, 10, 19, 20, 99)] == [
        1,
        1,
        0.5,
        0.5,
        0.25,
        0.25,
    ]
    parameters = MLP(3).parameters(bits(4), 1)
    assert Piece().spread((3.0, 5.0), parameters) == (3.0, 3.0, 5.0, 5.0)
    assert Piece().spread((1.0, 2.0, 3.0, 4.0), parameters) == (1.0, 2.0, 3.0, 4.0)
    assert Piece().spread(2.0, parameters) == (2.0,) * 4
    assert Piece().spread((("layer1.*", 3.0), ("*", 5.0)), parameters) == (3.0, 3.0, 5.0, 5.0)
    assert Piece().spread((("@bias", 0.0), ("*", 1.0)), parameters) == (1.0, 0.0, 1.0, 0.0)


@given(st.lists(st.sampled_from(["a", "b(1,2)", "c((1, 2), d)", "3"]), min_size=1, max_size=4))
def test_split_keeps_brackets_together(parts: list[str]) -> None:
    """Commas inside brackets do not part a list."""
    assert split(",".join(parts)) == parts


def test_wrong_choices_meet_their_nearest() -> None:
    """Whole sentences for unknown names, missing brackets and too many arguments."""
    cases = {
        "sparze(2)": "There is no init called 'sparze'. Did you mean sparse?",
        "qqqq": f"There is no init called 'qqqq'. {nearest('qqqq', INITS)}",
        "sparse(2": "The init 'sparse(2' lacks its closing bracket.",
        "sparse(2, 3)": "The init 'sparse(2, 3)' has 2 arguments, but sparse takes 1: s.",
        "sparse": "The init 'sparse' lacks s. Write sparse(s).",
    }
    for text, sentence in cases.items():
        with pytest.raises(UserError) as error:
            parse(text, "init", Init, OFFERED)
        assert str(error.value) == sentence
    assert describe(Hinge()) == "hinge"
    assert describe(MLP(10, (), Identity())) == "mlp(10, (), identity)"
