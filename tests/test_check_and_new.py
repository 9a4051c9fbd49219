"""`petridish new` and `petridish check`: the first minutes with a file of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from petridish.cli.main import run_command
from petridish.errors import UserError
from petridish.sweeps import Sweep
from petridish.sweeps import price as prices
from petridish.sweeps.batches import check_all, run_cost
from petridish.sweeps.price import TIMED, Speeds, price
from petridish.tasks import SparseParity
from petridish.training import Data, RunSpec
from tests.own_parts import Dropped

pytestmark = pytest.mark.usefixtures("short_calibration")
SAMPLE = """
import numpy as np
from dataclasses import dataclass
from typing import ClassVar
from petridish import Bits, Classes, Data, Domain, Examples, RunSpec, Sweep, Training

@dataclass(frozen=True)
class Impure:
    name: ClassVar[str] = "impure"

    @property
    def domain(self):
        return Domain(Bits(8), Classes(2))

    def draw(self, seeds, purpose, start, count):
        packed = np.random.default_rng().integers(0, 2**8, (len(seeds), count, 1), dtype="uint64")
        return Examples((packed[..., 0] % 2).astype("uint8"), packed, 8)

SWEEP = Sweep(RunSpec(task=Impure(), training=Training(steps=5)), {"seed": range(2)})
"""


def test_the_template_is_checked_run_and_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `new` writes keeps its contracts and runs to a verdict; it overwrites nothing."""
    file, store = tmp_path / "mine.py", str(tmp_path / "store")
    assert run_command(["new", str(file)]) == 0
    assert run_command(["check", str(file)]) == 0
    said = capsys.readouterr().out
    assert "mine at own scale: 80 runs, claims: 1\n" in said
    assert "contract     task halves keeps it\n" in said
    assert "settings     all 8 cells can be trained\n" in said
    assert "first steps  " in said
    assert "memory       " in said
    assert "price        at most " in said
    small = ["--set", "seed=0,1", "--store", store]
    assert run_command(["run", str(file), "--executor", "inline", *small]) == 0
    assert "(a, ours) More data never lower the share" in capsys.readouterr().out
    assert run_command(["figure", str(file), *small, "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    assert run_command(["new", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"petridish: {file} is there already. Give the path of a new file.\n"
    )
    assert run_command(["new", "mine.txt"]) == 2
    assert capsys.readouterr().err == (
        "petridish: mine.txt was given. Give the path of a new file that ends in .py.\n"
    )


def test_a_broken_contract_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was asked of the class, and what was found."""
    file = tmp_path / "mine.py"
    file.write_text(SAMPLE)
    assert run_command(["check", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("petridish: ")
    assert "impure" in line


def test_unusual_labels_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """How many are missing, and which classes never occur."""
    text = SAMPLE.replace("import numpy as np", "import numpy as np\nfrom petridish import Streams")
    text = text.replace("Classes(2)", "Classes(3)").replace(
        'np.random.default_rng().integers(0, 2**8, (len(seeds), count, 1), dtype="uint64")',
        "Streams(seeds, purpose).packed(8, start, count)",
    )
    text = text.replace("steps=5", "steps=5, loss=petridish.CrossEntropy()")
    text = text.replace("import numpy as np", "import numpy as np\nimport petridish")
    file = tmp_path / "mine.py"
    file.write_text(text)
    assert run_command(["check", str(file)]) == 0
    assert "labels       class 2 never occurs in 4096 examples\n" in capsys.readouterr().out


NEVER = """
import math
from dataclasses import dataclass
from typing import ClassVar
from petridish import (
    MLP, Data, Evaluation, Instrument, Metric, RunSpec, SparseParity, Sweep, Training
)

@dataclass(frozen=True)
class Depth(Metric):
    name: ClassVar[str] = "depth"

    def each(self, outputs, labels, facts):
        return outputs.squeeze(-1) * VALUE

@dataclass(frozen=True)
class Gauge(Instrument):
    name: ClassVar[str] = "gauge"
    at: tuple[int, ...] | None = None

    def read(self, reading):
        return VALUE

VALUE = math.nan
SWEEP = Sweep(
    RunSpec(
        task=SparseParity(8, 2), data=Data(m=20, n_test=20), model=MLP(4),
        training=Training(steps=50),
        evaluation=Evaluation(curves=True, metrics=(Depth(),), instruments=(Gauge(AT),)),
    ),
    {"seed": range(2)},
)
"""


def test_what_is_never_a_number_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of metrics and of instruments, but of those that read later steps alone."""
    file = tmp_path / "never.py"
    said = (
        "is NaN whenever it is measured in a run of 4 steps. Where that is not meant, look for a "
        "division by zero or the logarithm of a negative number.\n"
    )
    file.write_text(NEVER.replace("AT)", "None)"))
    assert run_command(["check", str(file)]) == 0
    found = capsys.readouterr().out
    assert f"metric       test_depth {said}" in found
    assert f"instrument   gauge {said}" in found
    file.write_text(NEVER.replace("AT)", "(50,))").replace("math.nan", "1.0"))
    assert run_command(["check", str(file)]) == 0
    assert "NaN" not in capsys.readouterr().out
    file.write_text(NEVER.replace("AT)", "(50,))"))
    assert run_command(["check", str(file)]) == 0
    assert "instrument   " not in capsys.readouterr().out


OWN_CLAIM = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from matplotlib.figure import Figure
from petridish import (
    MLP, Accepts, Claim, Data, Experiment, Finding, Judgement, RunSpec, SparseParity, Sweep,
    Training,
)

@dataclass(frozen=True)
class Own:
    def judge(self, table, level):
        mean = float(len(table))
        return Finding(Judgement.UNDECIDED, mean, mean, mean, "runs", len(table))

@dataclass(frozen=True)
class Any(Accepts):
    name: ClassVar[str] = "any"

    def accepts(self, task, seeds, sample):
        return np.ones(len(seeds), bool)

def draw(table, title):
    return Figure()

EXPERIMENT = Experiment(
    "mine", "Mine", "me",
    {"own": Sweep(
        RunSpec(
            task=SparseParity(8, 2),
            data=Data(m=20, n_test=20, accept=Any()),
            model=MLP(4),
            training=Training(steps=100),
        ),
        {"model.width": (3, 4), "seed": range(3)},
    )},
    claims=(Claim("a", "A claim.", "me", Own()),),
    figures={"mine": draw},
)
"""


def test_a_claim_about_values_at_the_end_of_runs_that_may_stop_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs that are solved end sooner than the others, and nothing said so."""
    file = tmp_path / "ends.py"
    rule = "Rule(AtEnd('test_error'), Each(('model.width',)), Median(), below=0.2)"
    text = OWN_CLAIM.replace("Own())", f"{rule})").replace(
        "MLP, Acc", "AtEnd, Each, Rule, MLP, Acc"
    )
    file.write_text(text.replace("Accepts,", "Accepts, Median,"))
    assert run_command(["check", str(file)]) == 0
    assert (
        "claims       a reads values at the end, and a run ends once it is solved: runs may differ "
        "in their steps. Set training.target_error=none to compare at equal steps.\n"
    ) in capsys.readouterr().out
    assert run_command(["check", str(file), "--set", "target_error=none"]) == 0
    assert "claims       " not in capsys.readouterr().out


def test_how_often_a_sample_was_redrawn_is_no_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A number that a check returns is not what there is to know of the class."""
    file = tmp_path / "rule.py"
    file.write_text(OWN_CLAIM)
    assert run_command(["check", str(file)]) == 0
    said = capsys.readouterr().out
    assert "contract     sample rule any keeps it\n" in said
    assert "sample rule  " not in said


def test_own_rules_and_figures_are_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a few short runs; a rule for samples too."""
    file = tmp_path / "claim.py"
    file.write_text(OWN_CLAIM)
    assert run_command(["check", str(file)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1:4] == [
        "contract     sample rule any keeps it",
        "contract     rule Own returns a finding",
        "contract     figure mine is drawn",
    ]
    other = tmp_path / "other.py"
    text = OWN_CLAIM.replace("return Figure()", 'raise petridish.NothingToDraw("No runs.")')
    text = text.replace("mean = float(len(table))", 'raise petridish.UserError("Too few runs.")')
    other.write_text(f"import petridish\n{text}")
    assert run_command(["check", str(other)]) == 0
    assert capsys.readouterr().out.splitlines()[2:4] == [
        "contract     rule Own has nothing to judge in short runs: Too few runs.",
        "contract     figure mine has nothing to draw of short runs",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'return Finding(Judgement.UNDECIDED, mean, mean, mean, "runs", len(table))',
            "return mean",
            "The rule Own of the claim a returned float from judge. Return a Finding, such as "
            'Finding(Judgement.UNDECIDED, estimate, low, high, "what it measures", n).',
        ),
        (
            "float(len(table))",
            "table['nope'].mean()",
            "The rule Own of the claim a failed in judge at wrong.py:14: ColumnNotFoundError: "
            '"nope" not found.',
        ),
        (
            "return Figure()",
            "return 3",
            "The function of the figure mine (wrong.py:24) returned 3. Return a matplotlib Figure.",
        ),
        (
            "return Figure()",
            "return [][1]",
            "The figure mine failed at wrong.py:25: IndexError: list index out of range.",
        ),
        (
            "np.ones(len(seeds), bool)",
            "True",
            "The rule any returned True from accepts for one run. Return a NumPy array with one "
            "bool per run.",
        ),
    ],
)
def test_a_wrong_rule_or_figure_is_one_line(
    old: str, new: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is trained for long."""
    file = tmp_path / "wrong.py"
    file.write_text(OWN_CLAIM.replace(old, new))
    assert run_command(["check", str(file)]) == 2
    assert capsys.readouterr().err == f"petridish: {message}\n"


def test_what_no_machine_holds_is_refused_before_anything_is_drawn() -> None:
    """A width or a sample with some zeros too many."""
    base = RunSpec(task=SparseParity(5000, 3), data=Data(n_test=1000))
    for axes in ({"model.width": (10**12,)}, {"data.m": (2**32,)}):
        with pytest.raises(
            UserError, match=r"This run needs about .* [GT]B of memory, .* of it for "
        ):
            check_all(Sweep(base, axes).specs())


def test_a_few_cells_of_modules_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others cost in proportion to their work."""
    timed: set[RunSpec] = set()

    def seconds(engine: str, spec: RunSpec, size: int) -> float:
        timed.add(spec)
        return 1e-12 * size * run_cost(spec)

    monkeypatch.setattr(prices, "timed_seconds", seconds)
    base = RunSpec(task=SparseParity(8, 2), data=Data(n_test=100), model=Dropped(4))
    sweep = Sweep(base, {"training.steps": tuple(range(100, 2100, 100)), "seed": range(5)})
    cost = price(sweep, Speeds((1.0,), (1.0,)), jobs=1)
    assert len(timed) == TIMED
    assert cost.seconds == pytest.approx(1e-12 * sum(run_cost(spec) for spec in sweep.specs()))
