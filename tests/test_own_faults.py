"""A fault in a user's own file: one line with file, line, class and error, exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from petridish.cli.main import run_command
from petridish.store import Store

HEAD = '''"""Mine."""
from dataclasses import dataclass
from typing import ClassVar
import torch
from torch import nn
from petridish import *

def base(model):
    return RunSpec(
        task=SparseParity(8, 2), data=Data(m=50, n_test=100), model=model,
        training=Training(steps=20), evaluation=Evaluation(every=10),
    )

GRID = {"seed": range(2)}
'''
CASES = {
    "lambda": (
        "SWEEP = Sweep(base(MLP(width=8, activation=lambda x: x)), GRID)",
        "{file} cannot be imported at mine.py:9: MLP: activation holds a value of the type "
        "function, which is no part of a spec. Give numbers, text, None, frozen dataclasses, or "
        "tuples of them.",
    ),
    "import": ("{}['a']", "{file} cannot be imported at mine.py:15: KeyError: 'a'."),
    "axis": (
        "SWEEP = Sweep(base(MLP(width=8)), {'data.m': map(lambda x: 100 // x, (1, 0))})",
        "{file} cannot be imported at mine.py:15: ZeroDivisionError: integer division or modulo by "
        "zero.",
    ),
    "rule": (
        """
class Mine:
    def judge(self, table, level):
        return 1 / 0

CLAIMS = (Claim("a", "b", "c", Mine()),)
EXPERIMENT = Experiment("own", "t", "s", {"own": Sweep(base(MLP(width=8)), GRID)}, CLAIMS)
""",
        "{file}:18, in Mine.judge: ZeroDivisionError: division by zero. Add --traceback to see how "
        "it was reached.",
    ),
    "a rule's number": (
        """
class Mine:
    def judge(self, table, level):
        return 3

CLAIMS = (Claim("a", "b", "c", Mine()),)
EXPERIMENT = Experiment("own", "t", "s", {"own": Sweep(base(MLP(width=8)), GRID)}, CLAIMS)
""",
        "The rule Mine (mine.py:17): it returned 3; return a Finding.",
    ),
    "a rule's word": (
        """
from petridish.rules import Finding

class Mine:
    def judge(self, table, level):
        return Finding("holds", 1, 0, 2, "it", 3)

CLAIMS = (Claim("a", "b", "c", Mine()),)
EXPERIMENT = Experiment("own", "t", "s", {"own": Sweep(base(MLP(width=8)), GRID)}, CLAIMS)
""",
        "The rule Mine (mine.py:19): Finding: judgement='holds'. Give Judgement.SUPPORTED, "
        "Judgement.CONTRADICTED or Judgement.UNDECIDED.",
    ),
    "module": (
        """
class Net(nn.Module):
    def __init__(self, n, outputs):
        super().__init__()
        self.layer = nn.Linear(n, outputs)

    def forward(self, x):
        return self.layer(x.flatten(1)) if len(x) < 40 else self.missing

@dataclass(frozen=True)
class Own:
    name: ClassVar[str] = "net"
    def build(self, domain, n_outputs):
        return Net(domain.n_inputs, n_outputs)

SWEEP = Sweep(base(Own()), GRID)
""",
        "A run of net on sparse_parity(8, 2) failed. {file}:22, in Net.forward: AttributeError: "
        "'Net' object has no attribute 'missing'. The runs that had ended are kept.",
    ),
}


@pytest.mark.parametrize(
    ("case", "executor"), [*((case, "inline") for case in CASES), ("module", "local")]
)
def test_a_fault_of_ones_own_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str, executor: str
) -> None:
    """Which says where it is; the whole way is shown when asked for."""
    code, message = CASES[case]
    file = tmp_path / "mine.py"
    file.write_text(f"{HEAD}{code}\n")
    command = ["run", str(file), "--store", str(tmp_path / "store"), "--executor", executor]
    assert run_command([*command, "--jobs", "2"]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line == "petridish: " + message.replace("{file}", str(file))
    assert run_command([*command, "--traceback"]) == 2
    assert "Traceback (most recent call last):" in capsys.readouterr().err
    if case == "rule":
        assert len(Store(tmp_path / "store").keys()) == 2


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            'figures={"mine": lambda table, title: 3}',
            "The function of the figure mine (mine.py:15) returned 3. Return a matplotlib Figure.",
        ),
        (
            'figures={"mine": lambda table, title: table["nope"]}',
            '{file}:15, in <lambda>: ColumnNotFoundError: "nope" not found. Add --traceback to see '
            "how it was reached.",
        ),
    ],
)
def test_a_figure_that_fails_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, message: str
) -> None:
    """What it returned, or where it failed; the runs are there."""
    file, store = tmp_path / "mine.py", tmp_path / "store"
    grid = '{"own": Sweep(base(MLP(width=8)), GRID)}'
    file.write_text(f'{HEAD}EXPERIMENT = Experiment("own", "t", "s", {grid}, {code})\n')
    where = [str(file), "--store", str(store)]
    assert run_command(["run", *where, "--executor", "inline"]) == 0
    capsys.readouterr()
    assert run_command(["figure", *where, "--out", str(tmp_path)]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line == "petridish: " + message.replace("{file}", str(file))
    assert len(Store(store).keys()) == 2


def test_a_parameter_that_is_not_used_stays_as_it_was(tmp_path: Path) -> None:
    """Nothing depends on it, and nothing fails."""
    own = """
@dataclass(frozen=True)
class Own:
    name: ClassVar[str] = "net"
    def build(self, domain, n_outputs):
        module = nn.Sequential(nn.Flatten(), nn.Linear(domain.n_inputs, n_outputs))
        module.register_parameter("unused", nn.Parameter(torch.zeros(3)))
        return module

SWEEP = Sweep(base(Own()), GRID)
"""
    file = tmp_path / "mine.py"
    file.write_text(HEAD + own)
    command = ["run", str(file), "--store", str(tmp_path / "store"), "--executor", "inline"]
    assert run_command(command) == 0


def test_a_fault_of_petridish_itself_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1, and what to report."""
    monkeypatch.setattr("petridish.cli.list.print_json", None)
    assert run_command(["list", "--json"]) == 1
    assert capsys.readouterr().err.endswith(
        "in list_experiments: TypeError: 'NoneType' object is not callable. Please report it, with "
        "what --traceback prints.\n"
    )
