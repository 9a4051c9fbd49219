"""Constants that are computed, rebound or changed while Python runs: another value, another run."""

from __future__ import annotations

import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import petridish
from petridish.errors import UserError
from petridish.sources import code_digest
from petridish.store import Store
from petridish.sweeps.userfile import load_user_file
from tests.test_notebook import executed
from tests.test_sources import CLASS, HEAD

TASK = """
import sys
from dataclasses import dataclass
from typing import ClassVar

import petridish
from petridish import (
    MLP, Data, Domain, Examples, Reals, RunSpec, Square, Streams, Sweep, Training, Values,
)

@dataclass(frozen=True)
class Scaled:
    name: ClassVar[str] = "scaled"
    domain = Domain(Reals((3,)), Values(1))

    def draw(self, seeds, purpose, start, count):
        x = Streams(seeds, purpose).normals(3 * start, 3 * count).reshape(len(seeds), count, 3)
        return Examples(x.max(-1, keepdims=True) * NOISE, dense=x.astype("float32"))

SWEEP = Sweep(
    RunSpec(
        task=Scaled(),
        data=Data(m=20, n_test=20),
        model=MLP(4),
        training=Training(loss=Square(), steps=3, target_error=None),
    ),
    {"seed": range(2)},
)

def go():
    runs = petridish.run(SWEEP, store="kept", jobs=2, progress="none")
    print(runs.summary.done, *runs.outcomes(value="test_squared_error")["value"].to_list())
"""


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Any]:
    """Load a file with this text; each file is another one."""
    loaded: list[types.ModuleType] = []

    def of(text: str) -> types.ModuleType:
        path = tmp_path / f"file{len(loaded)}.py"
        path.write_text(HEAD + "from pathlib import Path\n" + text + CLASS, encoding="utf-8")
        loaded.append(load_user_file(path))
        return loaded[-1]

    yield of
    for each in loaded:
        del sys.modules[each.__name__]


VALUES = {
    "a number": ("SCALE = float('2')", 3.0),
    "another type": ("SCALE = int('2')", 2.0),
    "text": ("SCALE = str(2)", "3"),
    "None": ("SCALE = print()", 3),
    "a list": ("SCALE = list((1, 2))", [1, 3]),
    "a nested tuple": ("SCALE = tuple([1, (2, 3)])", (1, (2, 4))),
    "a dict": ("SCALE = dict(a=1)", {"a": 2}),
    "a set": ("SCALE = set('ab')", {"a", "c"}),
    "an array": ("SCALE = np.ones(3)", [1.0, 1.0, 1.0]),
    "a path": ("SCALE = Path('a')", Path("b")),
    "a literal": ("SCALE = 2", 3),
    "a literal of two": ("SCALE, OTHER = 2, 3", 3),
}


@pytest.mark.parametrize("name", VALUES)
def test_another_value_is_another_run(name: str, module: Any) -> None:
    """Of every plain kind, and back again."""
    text, other = VALUES[name]
    file = module(text)
    first, value = code_digest(file.Mine), file.SCALE
    file.SCALE = other
    second = code_digest(file.Mine)
    file.SCALE = value

    assert first == code_digest(file.Mine) == code_digest(module(text).Mine) != second


def test_a_constant_that_is_changed_in_place(module: Any) -> None:
    """Its statement still says what it was."""
    file = module("SCALE = [1, 2]")
    first = code_digest(file.Mine)
    file.SCALE.append(3)

    assert code_digest(file.Mine) != first


def test_literals_are_named_by_their_statement_alone(module: Any) -> None:
    """As the runs that stores hold; written down before values counted."""
    assert code_digest(module("SCALE = 2").Mine) == "bab138959b869b81"
    assert code_digest(module("SCALE: tuple = (-1, {'a': 2.5})").Mine) == "a77e3b83e1e2d73d"
    assert code_digest(module("OTHER = SCALE = 2").Mine) == "0e1a71ba0e714aaa"


def test_what_a_constant_is_made_from_counts_by_its_code_alone(module: Any) -> None:
    """A list that a script fills between two runs is not what the class uses."""
    file = module("BASE = [1]\nSCALE = float(BASE[0])")
    first = code_digest(file.Mine)
    file.BASE.append(2)

    assert code_digest(file.Mine) == first


def test_a_constant_of_a_function_that_the_class_uses(module: Any) -> None:
    """A function is followed, by whatever name the class calls it."""
    file = module("BASE = 2\n\ndef half():\n    return BASE / 2\n\nSCALE = half")
    first = code_digest(file.Mine)
    file.BASE = 3

    assert code_digest(file.Mine) != first


def test_a_script_trains_anew_for_another_argument(tmp_path: Path) -> None:
    """Its workers use its value, and keep the runs under its key."""
    loop = "go()\nfor NOISE in (3.0, 4.0):\n    go()\n"
    (tmp_path / "argv.py").write_text(
        f"{TASK}\nNOISE = float(sys.argv[1])\n{loop}", encoding="utf-8"
    )

    def printed(argument: str) -> list[list[str]]:
        done = subprocess.run(
            [sys.executable, "argv.py", argument],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return [line.split() for line in done.stdout.splitlines()]

    one, twenty, again = printed("1"), printed("20"), printed("1")

    assert [done for done, *_ in one] == ["2", "2", "2"]
    assert [done for done, *_ in twenty] == ["2", "0", "0"]
    assert [done for done, *_ in again] == ["0", "0", "0"]
    values = [value for _, value in one]
    assert len({*values, twenty[0][1]}) == 4
    assert [value for _, value in again] == values
    assert [value for _, value in twenty][1:] == values[1:]


def test_a_notebook_trains_anew_for_another_value(tmp_path: Path) -> None:
    """Rebound twice in one cell, added to, and set by its name."""
    cells = [
        f"{TASK}\nNOISE = 1.0\ngo()",
        "NOISE = 7.0; go(); NOISE = 9.0; go()",
        "NOISE += 100.0; go()",
        "globals()['NOISE'] = 1000.0; go(); go()",
    ]
    lines = [
        line.split()
        for cell in executed(cells, tmp_path)
        for each in cell.outputs
        for line in each.text.splitlines()
    ]

    assert [done for done, *_ in lines] == ["2", "2", "2", "2", "2", "0"]
    assert len({value for _, value in lines}) == 5


def test_a_file_whose_workers_would_compute_another_constant(tmp_path: Path) -> None:
    """It is refused in one line, and nothing is stored under a wrong key."""
    path = tmp_path / "own.py"
    path.write_text(f"{TASK}\nimport os\nNOISE = float(os.getpid())\n", encoding="utf-8")
    command = [sys.executable, "-m", "petridish", "run", str(path), "--store", "kept", "--jobs"]

    def ended(jobs: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, jobs], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    done = ended("2")
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1] == (
        f"petridish: The class Scaled of {path} uses NOISE that is not the same in a worker "
        "process, which imports the file anew. Make it a field of the class, or run with --jobs 1."
    )
    assert len(Store(tmp_path / "kept").keys()) == 0
    assert ended("1").returncode == 0


def test_a_run_is_loaded_by_the_constant_of_now(tmp_path: Path) -> None:
    """Without a `run` in between: the model of another value is not handed out for this one."""
    path = tmp_path / "scaled.py"
    path.write_text(f"{TASK}\nNOISE = 1.0\n", encoding="utf-8")
    file: Any = load_user_file(path)
    try:
        first = next(file.SWEEP.specs())
        petridish.run(file.SWEEP, store=tmp_path / "s", executor="inline", progress="none")
        assert petridish.load(first, store=tmp_path / "s").spec == first
        file.NOISE = 2.0
        with pytest.raises(UserError, match="has a key that begins"):
            petridish.load(first, store=tmp_path / "s")
    finally:
        del sys.modules[file.__name__]
