"""The names of users' classes: by their code, and by what that uses of its file."""

from __future__ import annotations

import ast
import linecache
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from petridish.errors import UserError
from petridish.models import MLP
from petridish.sources import CARRIED, _dumped, code_digest
from petridish.store import Store
from petridish.sweeps import Sweep, run_sweep
from petridish.sweeps.userfile import load_user_file
from petridish.tasks import SparseParity
from petridish.training import Data, RunSpec, Training, run_key

HEAD = """
from dataclasses import dataclass
from collections import namedtuple
from functools import cached_property, lru_cache, partial
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


SCALES = {
    "a constant": "SCALE = 2",
    "a constant of a constant": "BASE = 2\nSCALE = BASE + 1",
    "an array": "SCALE = np.array([2.0])",
    "sets within": 'SCALE = {"kinds": {"relu", "tanh", "cos", "sin"}, "two": 2}["two"]',
    "a value": "SCALE = Power(2)",
    "a partial function": "def act(z):\n    return 2 * z\n\nSCALE = partial(act, 3)",
    "a closure": "def make(c):\n    return lambda: c\n\nSCALE = make(2)",
    "a cached function": "@lru_cache\ndef helper():\n    return 2\n\nSCALE = helper()",
    "a lambda over lines": "SCALE = (\n    lambda z:\n    z * 2\n)",
    "a table of functions": "def one(z):\n    return 2 * z\n\nSCALE = {1: one}[1]",
    "a named tuple": 'Pair = namedtuple("Pair", "a")\nSCALE = Pair(2).a',
    "an object": "class Own:\n    def __repr__(self):\n        return 2 * 'x'\n\nSCALE = Own()",
    "a branch": "if 2 > 1:\n    SCALE = 1\nelse:\n    SCALE = 0",
    "an async function": "async def later():\n    return 2\n\nSCALE = later",
    "an item": 'SCALES = {}\nSCALES["a"] = 2\nSCALE = SCALES["a"]',
    "an attribute": "class Own:\n    pass\n\nSCALE = Own()\nSCALE.size = 2",
    "an element": "SCALE = [1]\nSCALE.append(2)",
    "elements in a loop": "SCALE = [1]\nfor each in (2, 3):\n    SCALE.append(each)",
    "a sum": "SCALE = 1\nSCALE += 2",
    "a function's constant": "BASE = 2\n\ndef half():\n    return BASE / 3\n\nSCALE = half()",
    "a nested function": "def outer():\n    def inner():\n        return 2\n\n    return inner()\n"
    "\nSCALE = outer()",
    "a default argument": "BASE = 2\n\ndef half(of=BASE):\n    return of / 3\n\nSCALE = half()",
    "a decorator": "def twice(f):\n    return lambda: 2 * f()\n\n@twice\ndef one():\n    return 1\n"
    "\nSCALE = one()",
    "a class attribute": "BASE = 2\n\nclass Own:\n    size = BASE\n\nSCALE = Own.size",
}


@pytest.mark.parametrize("name", SCALES)
def test_what_a_class_uses_of_its_file_is_part_of_its_name(name: str, digest: Any) -> None:
    """By its code, whatever it is: an edit makes another name, and another process the same."""
    text = f"{SCALES[name]}\n{CLASS}"

    assert digest(text) == digest(text) != digest(text.replace("2", "5", 1))


PLACES = {
    "a class attribute": ("power: float = 2.0", "power: float = 2.0\n    factor = SCALE", "3"),
    "a default argument": ("(self, z)", "(self, z, scale=SCALE)", "scale"),
    "a lambda": ("return SCALE", "scale = lambda: SCALE\n        return scale()", ""),
    "a nested function": (
        "return SCALE",
        "def scale():\n            return SCALE\n        return scale()",
        "",
    ),
    "a base class": ("class Mine:", "class Mine(Base):", "self.scale()"),
    "a decorator": ("@dataclass(frozen=True)", "@dataclass(frozen=SCALE > 0)", "3"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_constant_counts_wherever_the_class_uses_it(place: str, digest: Any) -> None:
    """In its body, in its arguments, inside functions, and by its base."""
    old, new, instead = PLACES[place]
    text = CLASS.replace(old, new)
    if instead:
        text = text.replace("SCALE * z", f"{instead} * z")
    base = "class Base:\n    def scale(self):\n        return SCALE\n"
    text = f"SCALE = 2\n{base}{text}"

    assert digest(text) == digest(text) != digest(text.replace("2", "5", 1))


def test_a_call_that_only_reads_does_not_count(digest: Any) -> None:
    """A sweep at the end of the file may use what the class uses."""
    text = f"SCALE = np.ones(3)\n{CLASS}"

    assert digest(text) == digest(text + "\nSEEDS = SCALE.tolist()\nprint(SCALE)\n")
    assert digest(CLASS.replace("SCALE", "np.pi")) == digest(
        "np.random.seed(3)\n" + CLASS.replace("SCALE", "np.pi")
    )


def test_a_name_does_not_depend_on_the_process(tmp_path: Path) -> None:
    """Sets have another order in another process."""
    path = tmp_path / "mine.py"
    path.write_text(f"{HEAD}{SCALES['sets within']}\n{CLASS}", encoding="utf-8")
    code = (
        "from pathlib import Path; from petridish.sweeps.userfile import load_user_file; "
        "from petridish.sources import code_digest; "
        f"print(code_digest(load_user_file(Path({str(path)!r})).Mine))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(found) == 1


def test_another_import_under_the_same_name_is_noticed(digest: Any) -> None:
    """What other files hold is not looked at, but which of it is meant."""
    text = "from math import sin as SCALE\n" + CLASS

    assert digest(text) != digest(text.replace("sin", "cos"))
    assert digest(CLASS.replace("SCALE", "3")) == digest(
        "import os\nfrom math import pi\n" + CLASS.replace("SCALE", "3")
    )


def test_text_that_looks_like_syntax_is_text(digest: Any) -> None:
    """What Python 3.12 added to the syntax tree is left out there, and not in strings."""
    text = "SCALE = ', type_params=[]'\n" + CLASS

    assert digest(text) != digest(text.replace(", type_params=[]", ""))


def test_a_width_inside_a_format_is_named_alike_by_every_python(digest: Any) -> None:
    """Python 3.12.1 puts an empty text behind it; written down under Python 3.11."""
    text = CLASS.replace("SCALE", "float(f'{2:{3}}')")

    assert digest(text) == "209d7421f0f79087"
    (statement,) = ast.parse("f'{x:{w}}'").body
    assert isinstance(statement, ast.Expr)
    text_of_x = statement.value
    assert isinstance(text_of_x, ast.JoinedStr)
    (shown,) = text_of_x.values
    assert isinstance(shown, ast.FormattedValue)
    assert isinstance(shown.format_spec, ast.JoinedStr)
    plain = _dumped([statement])
    shown.format_spec.values.append(ast.Constant(""))
    assert _dumped([statement]) == plain
    assert digest(text) != digest(text.replace("{3}", "{4}"))


def test_both_of_two_classes_of_one_name_count(digest: Any) -> None:
    """Which of them is meant hangs on the condition, which counts too."""
    inside = CLASS.replace("SCALE", "3").replace("\n", "\n    ")
    text = f"FLAG = True\nif FLAG:{inside}\nelse:{inside.replace('3 *', '4 *')}\n"

    assert digest(text) != digest(text.replace("FLAG = True", "FLAG = False"))
    assert digest(text) != digest(text.replace("4 *", "5 *"))


def test_a_file_that_is_changed_after_its_import(tmp_path: Path) -> None:
    """The old code would run under the key of the new one."""
    path = tmp_path / "edited.py"
    path.write_text(f"{HEAD}SCALE = 2\n{CLASS}", encoding="utf-8")
    kind = load_user_file(path).Mine
    first = code_digest(kind)
    assert code_digest(kind) == first

    path.write_text(f"{HEAD}SCALE = 34\n{CLASS}", encoding="utf-8")
    with pytest.raises(UserError) as error:
        code_digest(kind)
    assert str(error.value) == (
        "The file of the class Mine was changed since it was imported, and the old code would run. "
        "Reload the file, or start Python again."
    )


def test_a_class_may_not_use_the_function_around_it(tmp_path: Path) -> None:
    """Its code is the same for every value; without such a variable it is named as others are."""
    inside = CLASS.replace("\n", "\n    ")
    text = f'{HEAD}def make(SCALE):\n    """Text\nat the margin."""{inside}\n    return Mine\n'
    path = tmp_path / "around.py"
    path.write_text(text, encoding="utf-8")
    around = load_user_file(path)
    with pytest.raises(UserError) as error:
        code_digest(vars(around)["make"](2))
    assert str(error.value) == (
        "The class Mine uses SCALE of the function around it, whose value is no part of the "
        "class's code. Make it a field, or define the class outside."
    )
    unused = tmp_path / "unused.py"
    unused.write_text(f"{text}\nMine = make(2)\n", encoding="utf-8")
    load_user_file(unused)  # only a class that stands in a spec needs a name
    free = tmp_path / "free.py"
    free.write_text(text.replace("SCALE *", "2 *"), encoding="utf-8")
    assert len(code_digest(vars(load_user_file(free))["make"](2))) == 16


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


def test_a_changed_cell_trains_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one process, as in a notebook: a sweep looks at the code each time it is run."""
    module = types.ModuleType("notebook_of_a_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    cells = vars(module)["In"] = [""]
    store = Store(tmp_path / "store")

    def carried_out(cell: str) -> None:
        cells.append(cell)
        exec(compile(cell, f"<cell {len(cells)}>", "exec"), vars(module))

    def newly_trained() -> int:
        spec = RunSpec(
            task=SparseParity(6, 2),
            data=Data(m=20, n_test=20),
            model=MLP(3, activation=mine()),
            training=Training(steps=2),
        )
        return run_sweep(Sweep(spec, {}), store, executor="inline").done

    carried_out(HEAD + "SCALE = 2")
    carried_out(CLASS)
    mine = vars(module)["Mine"]
    done = [newly_trained()]
    for cell in ("%%html\n<b>not Python</b>", "SCALE = 3", "SCALE = 3", "SCALE = 2"):
        if cell.startswith("%"):
            cells.append(cell)
        else:
            carried_out(cell)
        done.append(newly_trained())

    assert done == [1, 0, 1, 0, 0]

    done = []
    cells_then = ("SCALE = SCALE + 2", "SCALES = [3]", "SCALE = SCALES[0]", "SCALES[0] = 4")
    for cell in (*cells_then, "SCALES[0] = 4", "SCALES.append(5)"):
        carried_out(cell)
        done.append(newly_trained())
    assert done == [1, 0, 1, 1, 0, 1]


def test_a_value_of_a_class_that_was_defined_again() -> None:
    """Its code is not there any more: the run would have the key of the new code."""
    text = CLASS.replace("SCALE", "3")
    old = in_a_cell(HEAD + text)
    module = sys.modules["notebook_of_a_test"]
    vars(module)["In"] = [HEAD + text]
    named = code_digest(old)

    vars(module)["In"].append(text)
    exec(text, vars(module))
    assert vars(module)["Mine"] is not old
    assert code_digest(old) == code_digest(vars(module)["Mine"]) == named

    vars(module)["In"].append(text.replace("3 *", "4 *"))
    exec(text.replace("3 *", "4 *"), vars(module))
    assert code_digest(vars(module)["Mine"]) != named
    with pytest.raises(UserError) as error:
        code_digest(old)
    assert str(error.value) == (
        "The class Mine was defined again since this value of it was made, and its code is no "
        "longer there. Make the value again."
    )


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
