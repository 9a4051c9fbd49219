"""The names of users' classes: by their code, and by what that uses of its file."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from petridish.errors import UserError
from petridish.models import MLP
from petridish.sources import CARRIED, code_digest
from petridish.store import Store
from petridish.sweeps import Sweep, run_sweep
from petridish.sweeps.userfile import load_user_file
from petridish.tasks import SparseParity
from petridish.training import Data, RunSpec, Training, run_key

HEAD = """
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from petridish.models import Power

"""
CLASS = '''
@dataclass(frozen=True)
class Mine:
    """A scaled square."""

    name: ClassVar[str] = "mine"
    power: float = 2.0

    def __call__(self, z):
        return SCALE * z**self.power
'''


@pytest.fixture
def digest(tmp_path: Path) -> Iterator[Any]:
    """Return the digest of the class Mine of a file with this text; each file is another one."""
    loaded: list[Any] = []

    def of(text: str) -> str:
        path = tmp_path / f"file{len(loaded)}.py"
        path.write_text(HEAD + text, encoding="utf-8")
        loaded.append(load_user_file(path))
        return code_digest(loaded[-1].Mine)

    yield of
    for module in loaded:
        del sys.modules[module.__name__]


def test_a_class_that_stands_alone_keeps_the_name_that_stored_runs_have(digest: Any) -> None:
    """Written down under Python 3.11, and the same under every other."""
    alone = CLASS.replace("SCALE", "3")

    assert digest(alone) == "1d426c1cd5ce85d0"
    assert digest(alone.replace("self.power", "self.power  # a square")) == "1d426c1cd5ce85d0"
    assert digest(alone.replace("3 *", "4 *")) != "1d426c1cd5ce85d0"


USES = {
    "a constant": ("SCALE = 2\n", "SCALE = 3\n"),
    "a constant of a constant": ("BASE = 2\nSCALE = BASE + 1\n", "BASE = 3\nSCALE = BASE + 1\n"),
    "an array": ("SCALE = np.array([1.0])\n", "SCALE = np.array([2.0])\n"),
    "a list": ("SCALE = [1, {2}]\n", "SCALE = [1, {3}]\n"),
    "a value": ("SCALE = Power(2)\n", "SCALE = Power(3)\n"),
}


@pytest.mark.parametrize("name", USES)
def test_what_a_class_uses_of_its_file_is_part_of_its_name(name: str, digest: Any) -> None:
    """By value: the same value has the same name, another value another one."""
    one, other = USES[name]

    assert digest(one + CLASS) == digest(one + CLASS) != digest(other + CLASS)


def test_functions_and_classes_of_the_file_count_by_their_code(digest: Any) -> None:
    """Also those that they use in turn; unused ones do not count."""
    text = "def inner():\n    return 2\n\ndef scale():\n    return inner()\n" + CLASS
    text = text.replace("SCALE", "scale()")
    based = "class Base:\n    factor = 2\n" + CLASS.replace("SCALE", "2").replace(
        "class Mine:", "class Mine(Base):"
    )

    assert digest(text) == digest(text + "\ndef unused():\n    return 1\n")
    assert digest(text) != digest(text.replace("return 2", "return 3"))
    assert digest(based) != digest(based.replace("factor = 2", "factor = 3"))


def test_a_local_of_the_same_name_is_another_thing(digest: Any) -> None:
    """Arguments, locals and attributes are not the file's; hints compute nothing."""
    local = CLASS.replace("return SCALE", "SCALE = sqrt(4)\n        return SCALE")
    hinted = CLASS.replace("SCALE", "2").replace("(self, z)", "(self, z: Floats) -> Floats")

    assert digest(local) == digest("SCALE = 5\n" + local)
    assert digest("Floats = NDArray[np.float64]\n" + hinted) == digest(
        "Floats = NDArray[np.float32]\n" + hinted
    )


def test_an_object_without_a_fixed_text_is_refused(digest: Any) -> None:
    """A change of it would go unnoticed."""
    with pytest.raises(UserError) as error:
        digest("SCALE = object()\n" + CLASS)
    assert str(error.value) == (
        "The class Mine uses SCALE of its file, an object of type object that cannot be written as "
        "text, so that a change of it would not be noticed. Make it a constant, a function or a "
        "field of the class."
    )


def in_a_cell(text: str, number: int = 1) -> Any:
    """Define a class as a cell of a notebook does: no file, but lines that Python can show."""
    module = types.ModuleType("notebook_of_a_test")
    sys.modules[module.__name__] = module
    name = f"/tmp/kernel/{number}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), vars(module))
    return vars(module)["Mine"]


def test_a_class_of_a_notebook_is_named_by_its_cell(digest: Any) -> None:
    """The same name as in a file; an edited cell makes another."""
    text = CLASS.replace("SCALE", "3")
    cell = in_a_cell(HEAD + text)

    assert code_digest(cell) == digest(text)
    assert code_digest(in_a_cell(HEAD + text.replace("3 *", "4 *"), 2)) != code_digest(cell)


def without_source() -> type:
    """Define a class whose lines nobody kept."""
    made: dict[str, Any] = {"__name__": "nowhere"}
    text = "from petridish.tasks import SparseParity as Own\n" + HEAD
    text += "@dataclass(frozen=True)\nclass SparseParity(Own):\n    def draw(self, *a): return 0\n"
    exec(compile(text, "<nowhere>", "exec"), made)
    kind: type = made["SparseParity"]
    return kind


def test_a_class_without_source_never_has_the_key_of_a_built_in_one() -> None:
    """It is refused, unless it carries the name that its sender gave it."""
    kind = without_source()
    with pytest.raises(UserError) as error:
        run_key(RunSpec(task=kind(8, 2)))
    assert str(error.value) == (
        "The class SparseParity has no source by which its runs could be named. Define it in a "
        "file or in a cell of a notebook."
    )
    sent = without_source()
    setattr(sent, CARRIED, "0123456789abcdef")
    assert code_digest(sent) == "0123456789abcdef"
    assert run_key(RunSpec(task=sent(8, 2))) != run_key(RunSpec(task=SparseParity(8, 2)))


def test_a_class_carries_its_name_to_those_that_get_it_by_value(digest: Any) -> None:
    """The name is on the class once it is asked for."""
    cell = in_a_cell(HEAD + CLASS.replace("SCALE", "3"))
    found = code_digest(cell)
    linecache.cache.pop("/tmp/kernel/1.py")

    assert code_digest(cell) == found


def test_a_changed_constant_trains_anew(tmp_path: Path) -> None:
    """In one process: a sweep looks at the code each time it is run."""
    path = tmp_path / "mine.py"
    path.write_text(HEAD + "SCALE = 2\n" + CLASS, encoding="utf-8")
    module = load_user_file(path)
    base = RunSpec(
        task=SparseParity(6, 2),
        data=Data(m=20, n_test=20),
        model=MLP(3, activation=module.Mine()),
        training=Training(steps=2),
    )
    store = Store(tmp_path / "store")
    done = []
    for scale in (2, 2, 3):
        vars(module)["SCALE"] = scale
        done.append(run_sweep(Sweep(base, {}), store, executor="inline").done)

    assert done == [1, 0, 1]


def test_names_that_specs_use_themselves_are_refused() -> None:
    """A field `type` would stand where the class's name stands."""

    @dataclass(frozen=True)
    class Typed(SparseParity):
        name: ClassVar[str] = "typed"
        type: str = "Hinge"

    with pytest.raises(UserError) as error:
        run_key(replace(RunSpec(task=SparseParity(8, 2)), task=Typed(8, 2)))
    assert str(error.value) == (
        "Typed: the field 'type' has a name that specs use themselves. Choose another."
    )
