"""Mistakes in a user's file: one line with file, class, line and error; what is stored stays."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from petridish.choices import blamed
from petridish.cli.main import run_command
from petridish.errors import UserError
from petridish.models import MLP
from petridish.store import Store
from petridish.sweeps import Sweep, run_sweep
from petridish.tasks import SparseParity
from petridish.training import Data, RunSpec, Training

HEAD = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import nn

from petridish.models import MLP
from petridish.seeds import Streams
from petridish.sweeps import Sweep
from petridish.tasks import Classes, Domain, Examples, Reals, SparseParity
from petridish.training import Below, Data, Evaluation, Instrument, Metric, RunSpec, Training


"""
NAMED = '    name: ClassVar[str] = "mine"\n'
BASE = {
    "task": "SparseParity(8, 2)",
    "model": "MLP(5)",
    "training": "Training(steps=20, target_error=None)",
    "evaluation": "Evaluation(every=10, curves=True)",
}


def module(body: str) -> str:
    """Return the text of a model whose module has this forward."""
    return f"""class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.first, self.unused = nn.Linear(n, 1), nn.Linear(3, 3)

    def forward(self, x):
        {body}


@dataclass(frozen=True)
class Mine:
{NAMED}
    def build(self, domain, n_outputs):
        return Net(domain.n_inputs)
"""


def choice(methods: str, base: str = "") -> str:
    """Return the text of a class with these methods."""
    return f"@dataclass(frozen=True)\nclass Mine{base}:\n{NAMED}{methods}"


METRIC = "    on: str = 'test'\n    def each(self, outputs, labels, facts):\n        return {}\n"
MEASURED = "Evaluation(every=10, curves=True, metrics=(Mine(),){})"
TASK = """    @property
    def domain(self):
        return Domain(Reals((3,)), Classes(2))

    def draw(self, seeds, purpose, start, count):
        if 5 in seeds:
            raise RuntimeError("five is unlucky")
        x = Streams(seeds, purpose).normals(3 * start, 3 * count).reshape(len(seeds), count, 3)
        return Examples((x[..., 0] > 0).astype(int), dense=x.astype(np.float32))
"""
CASES: dict[str, tuple[str, dict[str, str], str, str]] = {
    "a module that fails on a full batch": (
        module("if len(x) > 20: raise ValueError('too many')\n        return self.first(x)"),
        {"model": "Mine()"},
        "too many",
        "A run of mine on sparse_parity(8, 2) failed. {path}:{line}, in Net.forward: ValueError: "
        "too many. The runs that had ended are kept.",
    ),
    "a loss that knows no outputs": (
        choice("    def n_outputs(self, domain):\n        return domain.outputs\n"),
        {"training": "Training(loss=Mine())"},
        "domain.outputs",
        "The loss mine failed in n_outputs at mine.py:{line}: AttributeError: 'Domain' object has "
        "no attribute 'outputs'. It was given domain=Domain(Bits(8), Classes(2)).",
    ),
    "a loss that fails on a full batch": (
        choice(
            "    def n_outputs(self, domain):\n        return 1\n"
            "    def __call__(self, outputs, labels):\n"
            "        if labels.shape[1] > 20: raise KeyError('label')\n"
            "        return outputs.square().mean(dim=(1, 2))\n"
        ),
        {"training": "Training(loss=Mine())"},
        "KeyError",
        "A run of mlp(5) on sparse_parity(8, 2) failed. {path}:{line}, in Mine.__call__: KeyError: "
        "'label'. The runs that had ended are kept.",
    ),
    "a metric that returns text": (
        choice(METRIC.format("'good'"), "(Metric)"),
        {"evaluation": MEASURED.format("")},
        "",
        "The metric mine (mine.py:{home}) returned str from each, for 3 examples of 2 runs. Return "
        "a tensor with one number per run and example.",
    ),
    "a metric that fails in its check": (
        choice(
            METRIC.format("outputs[..., 0]") + "    def check(self, spec):\n        spec.nothing\n",
            "(Metric)",
        ),
        {"evaluation": MEASURED.format("")},
        "spec.nothing",
        "{path}:{line}, in Mine.check: AttributeError: 'RunSpec' object has no attribute "
        "'nothing'. Add --traceback to see how it was reached.",
    ),
    "a metric that fails when a threshold asks": (
        choice(
            METRIC.format("outputs[..., 0]") + "    def counts(self, domain):\n        1 / 0\n",
            "(Metric)",
        ),
        {"evaluation": MEASURED.format(", reached=(Below(Mine(), 0.1),)")},
        "1 / 0",
        "A run of mlp(5) on sparse_parity(8, 2) failed. {path}:{line}, in Mine.counts: "
        "ZeroDivisionError: division by zero. The runs that had ended are kept.",
    ),
    "an instrument that fails later": (
        choice(
            "    def read(self, reading):\n        return 1 / (10 - reading.step)\n", "(Instrument)"
        ),
        {"evaluation": "Evaluation(every=10, curves=True, instruments=(Mine(),))"},
        "reading.step",
        "The instrument mine failed in read at mine.py:{line}: ZeroDivisionError: division by "
        "zero. It was given step=10.",
    ),
    "a start that fails for no run": (
        choice("    def draw(self, parameters, seeds):\n        return seeds[0]\n"),
        {"model": "MLP(5), init=Mine()"},
        "seeds[0]",
        "The start mine (mine.py:{home}) drew int for 4 parameters. Return a list with one array "
        "per parameter.",
    ),
    "a lambda as activation": (
        "",
        {"model": "MLP(5, activation=lambda z: z)"},
        "lambda",
        "{path} cannot be imported at mine.py:{line}: MLP: activation holds a value of the type "
        "function, which is no part of a spec. Give numbers, text, None, frozen dataclasses, or "
        "tuples of them.",
    ),
    "a task that fails for some seeds": (
        choice(TASK),
        {"task": "Mine()"},
        "unlucky",
        "The task mine failed in draw at mine.py:{line}: RuntimeError: five is unlucky. It was "
        "given seeds=[4, 5, 6, 7], purpose='train', start=0, count=50.",
    ),
}


@pytest.fixture(autouse=True)
def learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the classes of the files: other tests list the known ones."""
    monkeypatch.setattr("petridish.user_classes._learned", {})


def written(tmp_path: Path, code: str, changes: dict[str, str]) -> Path:
    """Write a user's file with a sweep over eight seeds."""
    parts = ", ".join(f"{name}={value}" for name, value in (BASE | changes).items())
    sweep = f"SWEEP = Sweep(RunSpec(data=Data(m=50, n_test=50), {parts}), {{'seed': range(8)}})\n"
    path = tmp_path / "mine.py"
    path.write_text(f"{HEAD}{code}\n\n{sweep}", encoding="utf-8")
    return path


def said(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """Return the only line that a command says of a file, with exit code 2."""
    store = str(path.parent / "store")
    assert run_command(["run", str(path), "--store", store, *options]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "petridish:" in line]
    lines = [line for line in lines if not re.search(r"petridish: \d+/\d+ runs", line)]  # progress
    assert len(lines) == 1
    return lines[0].partition("petridish: ")[2]


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_in_a_file_is_one_line(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever method fails, and whenever."""
    code, changes, where, sentence = CASES[case]
    path = written(tmp_path, code, changes)
    lines = path.read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if where in text)
    jobs = ("--jobs", "2") if "seeds" in case else ("--executor", "inline")

    home = next((n for n, text in enumerate(lines, 1) if text.startswith("@dataclass")), 0)

    assert said(path, capsys, *jobs) == sentence.format(path=path, line=line, home=home)


def test_an_unused_parameter_is_no_mistake(tmp_path: Path) -> None:
    """Its gradient is 0."""
    path = written(tmp_path, module("return self.first(x)"), {"model": "Mine()"})
    store = tmp_path / "store"

    assert run_command(["run", str(path), "--store", str(store), "--executor", "inline"]) == 0
    assert len(Store(store).read().table) == 8


@dataclass(frozen=True)
class Unlucky(SparseParity):
    """A parity that cannot be drawn for one seed."""

    name: ClassVar[str] = "unlucky"

    def draw(self, seeds: Any, purpose: str, start: int, count: int) -> Any:
        """Refuse seed 5."""
        if 5 in seeds:
            raise RuntimeError("five is unlucky")
        return super().draw(seeds, purpose, start, count)


def test_what_has_ended_before_a_mistake_is_kept(tmp_path: Path) -> None:
    """And the mistake says what it comes from, for those who want the traceback."""
    spec = RunSpec(
        task=Unlucky(8, 2), data=Data(m=20, n_test=20), model=MLP(3), training=Training(steps=2)
    )
    store = Store(tmp_path / "store")
    run_sweep(Sweep(spec, {"seed": range(3)}), store, executor="inline")
    with pytest.raises(UserError) as error:
        run_sweep(Sweep(spec, {"seed": range(8)}), store, executor="inline")

    assert isinstance(error.value.__cause__, RuntimeError)
    assert set(store.read().table["seed"]) >= {0, 1, 2}


def test_long_arguments_are_cut() -> None:
    """A stack may have hundreds of seeds."""
    with (
        pytest.raises(UserError) as error,
        blamed("task", SparseParity(3, 2), "draw", seeds=[7] * 99),
    ):
        raise ValueError("no")

    assert str(error.value).endswith(f"It was given seeds=[{'7, ' * 19}7,….")
