"""Values as JSON and back: the same objects, the same keys; and classes that are gone."""

from __future__ import annotations

import importlib
import json
import pickle
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.chapters import EXPERIMENTS
from petridish.choices import describe
from petridish.errors import UserError
from petridish.models import MLP
from petridish.sweeps import Sweep
from petridish.sweeps.batches import check_all
from petridish.sweeps.userfile import load_user_file
from petridish.tasks import Reals, SparseParity, TruthTable
from petridish.training import (
    Evaluation,
    Piece,
    RunSpec,
    Schedule,
    Training,
    flat,
    forget_code,
    read_cell,
    read_spec,
    run_key,
    spec_text,
)
from petridish.values import ROOMS, Gone, GoneError, find_gone, known_classes, plain, read
from tests.conftest import forget_files
from tests.golden import RUNS

MINE = """
from dataclasses import dataclass
from typing import ClassVar

from petridish.tasks import SparseParity


@dataclass(frozen=True)
class Shifted(SparseParity):
    name: ClassVar[str] = "shifted"
    by: float = 1.0

    def shift(self):
        return SCALE * self.by
"""


@pytest.mark.parametrize("name", RUNS)
def test_a_spec_is_read_back_as_it_was(name: str) -> None:
    """The same object, number types included, and the same key."""
    again = read_spec(spec_text(RUNS[name]))

    assert again == RUNS[name]
    assert repr(again) == repr(RUNS[name])
    assert run_key(again) == run_key(RUNS[name])


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_cell_of_an_experiment_is_read_back(name: str) -> None:
    """At the scales that a laptop runs."""
    scales = EXPERIMENTS[name].scales
    for sweep in (scales[scale] for scale in ("smoke", "laptop") if scale in scales):
        for spec, _ in sweep.cells():
            again = read_spec(spec_text(spec))
            assert (repr(again), run_key(again)) == (repr(spec), run_key(spec))


@given(st.floats(0.01, 100), st.integers(1, 100), st.integers(0, 2**64 - 1))
def test_numbers_come_back_in_their_fields_types(rate: float, start: int, seed: int) -> None:
    """A float that is a whole number is written as one, and read as a float again."""
    pieces = (Piece(0, float(start)), Piece(start, (rate, 1.0)))
    training = Training(learning_rate=rate, weight_decay=float(start), schedule=Schedule(pieces))
    spec = RunSpec(task=SparseParity(8, 2), training=training, seed=seed)

    assert repr(read_spec(spec_text(spec))) == repr(spec)


def test_no_two_classes_of_specs_share_a_name() -> None:
    """A name in a spec means one class: over every module of the rooms, exported or not."""
    found: dict[str, set[type]] = {}
    for room in ROOMS:
        package = importlib.import_module(f"petridish.{room}")
        inside = pkgutil.walk_packages(getattr(package, "__path__", ()), f"{package.__name__}.")
        names = [each.name for each in inside if not each.name.endswith("petridish_native")]
        for module in (package, *map(importlib.import_module, names)):
            for kind in vars(module).values():
                named = isinstance(kind, type) and is_dataclass(kind) and hasattr(kind, "name")
                if named and "name" not in {part.name for part in fields(kind)}:
                    found.setdefault(kind.__name__, set()).add(kind)

    assert {name for name, kinds in found.items() if len(kinds) > 1} == set()
    assert set(found) <= set(known_classes())


@pytest.fixture
def shifted(tmp_path: Path) -> Iterator[Any]:
    """Return the class of a user's file."""
    path = tmp_path / "mine.py"
    path.write_text(MINE.replace("SCALE", "3"), encoding="utf-8")
    module = load_user_file(path)
    yield module.Shifted
    forget_files()


def test_a_users_class_is_read_back_by_its_name_and_code(shifted: Any) -> None:
    """While its file is loaded."""
    spec = RunSpec(task=shifted(8, 2, by=2))
    again = read_spec(spec_text(spec))

    assert type(again.task) is shifted
    assert (again, run_key(again)) == (spec, run_key(spec))


@pytest.fixture
def gone(shifted: Any) -> RunSpec:
    """Return a spec that was written with a class that is no longer here."""
    text = spec_text(RunSpec(task=shifted(8, 2, by=2.5), model=MLP(7), seed=4))
    forget_files()
    return read_spec(text)


def test_a_class_that_is_gone_prints_compares_groups_and_has_its_key(
    gone: RunSpec, shifted: Any
) -> None:
    """Its fields are there; so is the key under which its runs are stored."""
    task: Any = gone.task
    spec = RunSpec(task=shifted(8, 2, by=2.5), model=MLP(7), seed=4)

    assert isinstance(task, Gone)
    assert describe(task) == "Shifted(by=2.5, k=2, n=8, support=None)"
    assert (task.n, task.k, task.by, gone.model) == (8, 2, 2.5, MLP(7))
    assert run_key(gone) == run_key(spec)
    assert len({gone, read_spec(spec_text(gone)), replace(gone, seed=5)}) == 2
    assert pickle.loads(pickle.dumps(gone)) == gone
    assert flat(gone)["task"] == "Shifted(by=2.5, k=2, n=8, support=None)"
    assert find_gone(spec) is None


def test_a_class_that_is_gone_refuses_to_run(gone: RunSpec) -> None:
    """In a sentence, before anything is trained; so does what only a class can know."""
    refusal = (
        "The class Shifted of this run is not here: the run can be looked at, but not carried out. "
        "Load the file that defines it."
    )
    for refused in (gone.check, lambda: check_all([gone])):
        with pytest.raises(UserError) as error:
            refused()
        assert str(error.value) == refusal
    with pytest.raises(GoneError) as unknown:
        _ = gone.task.domain
    assert str(unknown.value) == (
        "The class Shifted of this run is not here, and domain is none of its fields. Load the "
        "file that defines it."
    )


def test_another_code_is_another_class(shifted: Any, tmp_path: Path) -> None:
    """A file that changed since does not stand for what it was."""
    text = spec_text(RunSpec(task=shifted(8, 2)))
    forget_files()
    path = tmp_path / "changed.py"
    path.write_text(MINE.replace("SCALE", "4"), encoding="utf-8")
    load_user_file(path)
    changed = read_spec(text)

    assert isinstance(changed.task, Gone)
    with pytest.raises(UserError) as error:
        changed.check()
    assert str(error.value) == (
        "The class Shifted of this run has another code here, its own or that of what it uses: the "
        "run can be looked at, but not carried out. Restore the code, or run it as it is, which "
        "makes another run."
    )
    forget_files()


def test_what_a_newer_petridish_wrote_is_refused() -> None:
    """A field that is not known here would change what the run is."""
    written = json.loads(spec_text(RunSpec(task=SparseParity(8, 2))))
    written["model"]["wings"] = 2
    with pytest.raises(UserError) as error:
        read_spec(json.dumps(written))
    assert str(error.value) == (
        "This spec has MLP with the field 'wings', which this petridish does not know: a newer one "
        "wrote it. Upgrade petridish."
    )


PARITY = '{"task": {"type": "SparseParity", "n": 8, "k": 2}, '


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nonsense", "Expecting value: line 1 column 1 (char 0)."),
        ("[1]", "It is no object of fields."),
        ('"x"', "It is no object of fields."),
        ("{}", "TypeError: RunSpec.__init__() missing 1 required keyword-only argument: 'task'."),
        ('{"task": {"n": 8}}', "KeyError: 'type'."),
        (
            '{"task": {"type": "SparseParity", "n": 8}}',
            "TypeError: SparseParity.__init__() missing 1 required positional argument: 'k'.",
        ),
        (
            PARITY + '"data": null}',
            "AttributeError: 'NoneType' object has no attribute 'online'.",
        ),
        (
            PARITY + '"data": {"type": "Data", "m": "x"}}',
            "TypeError: '>=' not supported between instances of 'str' and 'int'.",
        ),
    ],
)
def test_a_text_that_is_no_spec_is_refused(text: str, why: str) -> None:
    """One line, whatever the text is, by both readers."""
    shown = repr(text if len(text) <= 60 else f"{text[:60]}…")
    for reader in (read_spec, read_cell):
        with pytest.raises(UserError) as error:
            reader(text)
        assert str(error.value) == (
            f"This is not the text of a spec: {shown}. {why} Give what spec_text writes."
        )


def test_plain_values_by_hand() -> None:
    """Tuples are lists, ∞ is text, and a float without a fraction is whole."""
    assert plain((1.0, float("inf"), None, "a")) == [1, "inf", None, "a"]
    assert read([1, "inf"], tuple[float, ...]) == (1.0, float("inf"))
    assert read("inf", str) == "inf"
    assert read("inf", int | str) == "inf"
    assert repr(read(2, float | None)) == "2.0"
    assert repr(read(2, int | float)) == "2"


@pytest.fixture
def newer_parity(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let sparse parities be of version 2."""
    monkeypatch.setattr(SparseParity, "version", 2, raising=False)
    forget_code()
    yield
    monkeypatch.undo()
    forget_code()


def test_a_class_of_a_newer_version_is_another_run(newer_parity: None) -> None:
    """The version is written and in the key; what has none is of the first."""
    spec = RunSpec(task=SparseParity(8, 2))

    assert plain(spec.task)["version"] == 2
    assert "version" not in plain(spec.model)
    assert read_spec(spec_text(spec)) == spec


def test_an_older_version_is_itself_and_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text and key come back, it compares as its own, and says in a sentence why it is not run."""
    forget_code()
    spec = RunSpec(task=SparseParity(8, 2))
    text, key = spec_text(spec), run_key(spec)
    monkeypatch.setattr(SparseParity, "version", 2, raising=False)
    forget_code()
    older = read_spec(text)

    assert (spec_text(older), run_key(older)) == (text, key)
    assert older != spec
    assert run_key(spec) != key
    assert describe(older.task) == "SparseParity(k=2, n=8, support=None)"
    with pytest.raises(UserError) as error:
        older.check()
    assert str(error.value) == (
        "This run has SparseParity of version 1, and this petridish has version 2: the run can be "
        "looked at, but not carried out."
    )
    monkeypatch.undo()
    forget_code()


def test_a_version_that_is_not_known_here_is_refused(newer_parity: None) -> None:
    """What it computes cannot be known."""
    text = spec_text(RunSpec(task=SparseParity(8, 2))).replace('"version": 2', '"version": 3')
    with pytest.raises(UserError) as error:
        read_spec(text)
    assert str(error.value) == (
        "This spec has SparseParity of version 3, and this petridish has version 2. Upgrade "
        "petridish."
    )


def test_numpys_numbers_are_welcome() -> None:
    """They are Python's in the spec: the same object, and the same key."""
    given = RunSpec(
        task=SparseParity(np.int64(8), np.int32(2)),  # type: ignore[arg-type]
        model=MLP(np.int64(5), [np.int64(4)]),  # type: ignore[arg-type]
        training=Training(target_error=np.float64(0.25), steps=np.int16(7)),  # type: ignore[arg-type]
        seed=np.uint64(3),  # type: ignore[arg-type]
    )
    same = RunSpec(
        task=SparseParity(8, 2),
        model=MLP(5, (4,)),
        training=Training(target_error=0.25, steps=7),
        seed=3,
    )

    assert repr(given) == repr(same)
    assert run_key(given) == run_key(same)


@dataclass(frozen=True)
class Odd:
    """A model with a field that anything fits into."""

    name: ClassVar[str] = "odd"
    held: Any = None


@dataclass
class Loose:
    """Not frozen."""

    width: int = 3


NO_PART = (
    "which is no part of a spec. Give numbers, text, None, frozen dataclasses, or tuples of them."
)


@pytest.mark.parametrize(
    ("held", "sentence"),
    [
        ({"a": 1}, f"Odd: held holds a value of the type dict, {NO_PART}"),
        (lambda x: x, f"Odd: held holds a value of the type function, {NO_PART}"),
        ((1, {2}), f"Odd: held holds a value of the type set, {NO_PART}"),
        (
            Loose(),
            "Odd: held=Loose(width=3) is not an instance of a frozen dataclass. "
            "Give an object of a class that has @dataclass(frozen=True) above it.",
        ),
    ],
)
def test_what_a_spec_cannot_hold_is_refused(held: Any, sentence: str) -> None:
    """By the class and the field that hold it."""
    model: Any = Odd(held)
    with pytest.raises(UserError) as error:
        RunSpec(task=SparseParity(8, 2), model=model)
    assert str(error.value) == sentence


def test_arrays_are_tuples_and_numpy_truths_are_truths() -> None:
    """In fields, in axes, and with the key of the plain spelling."""
    parity: Any = SparseParity(10, 2, np.array([1, 2]))  # type: ignore[arg-type]
    table: Any = TruthTable(7, np.array([0, 1, 1, 0]), np.array([3, 5]))  # type: ignore[arg-type]
    pieces: Any = Piece(0, np.array([0.0, 1.0]))  # type: ignore[arg-type]
    image: Any = Reals(np.array([1, 6, 6]))  # type: ignore[arg-type]
    watched: Any = Evaluation(curves=np.bool_(1), at=np.array([3, 1]))  # type: ignore[arg-type]

    assert repr(parity) == repr(SparseParity(10, 2, (1, 2)))
    assert repr(table) == repr(TruthTable(7, (0, 1, 1, 0), (3, 5)))
    assert repr(pieces) == repr(Piece(0, (0.0, 1.0)))
    assert repr(image) == repr(Reals((1, 6, 6)))
    assert repr(watched) == repr(Evaluation(curves=True, at=(1, 3)))
    assert run_key(RunSpec(task=parity)) == run_key(RunSpec(task=SparseParity(10, 2, (1, 2))))
    base = RunSpec(task=SparseParity(10, 2))
    for axis in ((np.array([1, 2]), np.array([3])), ((1, 2), (3,))):
        found = [spec.evaluation.at for spec in Sweep(base, {"evaluation.at": axis}).specs()]
        assert repr(found) == "[(1, 2), (3,)]"
    grid: Any = np.array([[1, 2], [0, 4]])
    tasks: list[Any] = [spec.task for spec in Sweep(base, {"task.support": grid}).specs()]
    assert [task.support for task in tasks] == [(1, 2), (0, 4)]
    with pytest.raises(UserError) as error:
        Evaluation(at=5)  # type: ignore[arg-type]
    assert str(error.value) == "Evaluation: at=5 is no tuple. Give for example at=(10, 100)."
