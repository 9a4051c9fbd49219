"""The commands that show what was swept, over any axes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from petridish.store import Store
from tests.conftest import Command

OWN = '''
"""Width, data and rate."""
from petridish.models import MLP
from petridish.sweeps import Sweep
from petridish.tasks import SparseParity
from petridish.training import Data, Evaluation, RunSpec, Training

SWEEP = Sweep(
    RunSpec(
        task=SparseParity(8, 2),
        data=Data(m=100, n_test=100),
        model=MLP(8),
        training=Training(steps=40),
        evaluation=Evaluation(every=20, curves=True),
    ),
    {
        "model.width": (4, 8),
        "data.m": (50, 100),
        "training.learning_rate": (0.1, 1.0),
        "seed": range(2),
    },
)
'''
REGRESSION = '''
"""Nothing is to be solved."""
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from petridish.models import MLP
from petridish.seeds import Streams
from petridish.sweeps import Sweep
from petridish.tasks import Domain, Examples, Reals, Values
from petridish.training import Data, Evaluation, RunSpec, Square, Training


@dataclass(frozen=True)
class Sum:
    """The sum of three normal numbers."""

    name: ClassVar[str] = "sum"
    domain = Domain(Reals((3,)), Values(1))

    def draw(self, seeds, purpose, start, count):
        """Draw inputs and their sums."""
        x = Streams(seeds, purpose).normals(3 * start, 3 * count)
        x = x.reshape(len(seeds), count, 3).astype(np.float32)
        return Examples(x.sum(axis=2, keepdims=True), dense=x)


SWEEP = Sweep(
    RunSpec(
        task=Sum(),
        data=Data(m=50, n_test=50),
        model=MLP(4),
        training=Training(loss=Square(), steps=20, learning_rate=0.01, target_error=None),
        evaluation=Evaluation(every=10, curves=True),
    ),
    {"training.learning_rate": (0.01, 0.03), "seed": range(2)},
)
'''


@pytest.fixture
def trained(inside: Command, tmp_path: Path) -> Command:
    """Return the command line beside a file of three axes whose runs are stored."""
    (tmp_path / "own.py").write_text(OWN)
    assert inside("run", "own.py", "--jobs", 1).returncode == 0
    return inside


def test_three_axes_end_well_and_each_rate_has_its_table(trained: Command) -> None:
    """Training is not followed by a mistake, nor by a pool of rates."""
    done = trained("run", "own.py")

    assert done.returncode == 0
    for rate in ("0.1", "1"):
        assert f"learning rate = {rate}: " in done.stdout


def test_figures_show_three_axes(trained: Command, tmp_path: Path) -> None:
    """A map and curves, without asking; over chosen axes when asked, under a name of its own."""
    done = trained("figure", "own.py", "--out", "out")
    asked = trained("figure", "own.py", "--out", "out", "--rows", "lr", "--value", "test_error")

    assert done.returncode == asked.returncode == 0
    assert sorted(path.name for path in (tmp_path / "out").glob("*.png")) == [
        "own-own-curves.png",
        "own-own-outcomes.png",
        "own-own-rows=lr-value=test_error-outcomes.png",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--rows", "widht"),
            "There is no axis called 'widht' among these runs. Did you mean width?",
        ),
        (("--value", "accuracy"), "There is no value called 'accuracy'."),
        (
            ("--rows", "r", "--colour", "m"),
            "--rows r and --colour m were given, and lines of several colours take the place of "
            "rows. Give one of them.",
        ),
        (
            ("--best-over", "lr", "--best", "more"),
            "--best more was given. Give --best-over AXIS --best least or most.",
        ),
        (
            ("--best", "most"),
            "--best most was given without --best-over. Give --best-over AXIS --best least or "
            "most.",
        ),
        (
            ("--rows", "m", "--columns", "data.m"),
            "The axis data.m is asked for twice. Give each place its own.",
        ),
        (
            ("--best-over", "lr", "--best-over", "m"),
            "--best-over was given 2 times, and the last would replace the others. Give it once; "
            "if it takes several values, by commas.",
        ),
        (
            ("--set", "seed=0", "--set", "m=50", "--set", "seed=1"),
            "Values of seed were given 2 times, and the last would replace the others. Give them "
            "once, by commas: --set seed=v1,v2,…",
        ),
        (
            ("--best-over", "seed"),
            "The best seed was asked for, and the best of some settings is chosen on one half of "
            "the seeds and measured on the other. Give an axis such as training.learning_rate.",
        ),
        (
            ("--set", "lr=0.1,1e-1"),
            "The axis training.learning_rate has the value 0.1 more than once, and no run is made "
            "twice. Give each value once.",
        ),
        (
            ("--set", "training.target_error=none", "--adaptive"),
            "Adaptive allocation gives seeds where it is unclear on which side of ½ success lies, "
            "and 8 of the 8 settings have no stop rule by which a run would be solved. Leave "
            "--adaptive out, or set training.stop.",
        ),
        (
            ("--set", "training.target_error=none", "--value", "solved"),
            "'solved' was asked for, and these runs have no stop rule by which one would be "
            "solved. Give such as 'test_error', or set training.stop.",
        ),
    ],
)
def test_names_are_checked_before_anything_is_trained(
    options: tuple[str, ...], message: str, inside: Command, tmp_path: Path
) -> None:
    """One line, and no store."""
    (tmp_path / "own.py").write_text(OWN)
    done = inside("run", "own.py", *options)

    assert done.returncode == 2
    assert done.stderr.startswith(f"petridish: {message}")
    assert not (tmp_path / "petridish-store").exists()


def test_an_array_is_no_value_of_a_table(inside: Command, tmp_path: Path) -> None:
    """Said before anything is trained; the same instrument's numbers are shown."""
    text = f"""{OWN}
import numpy as np
from dataclasses import dataclass, replace
from typing import ClassVar
from petridish import Evaluation, Instrument

@dataclass(frozen=True)
class Outputs(Instrument):
    name: ClassVar[str] = "shape"

    def read(self, reading):
        return np.arange(3.0) if ARRAY else 3.0

ARRAY = True
SWEEP = replace(
    SWEEP, base=replace(SWEEP.base, evaluation=Evaluation(curves=True, instruments=(Outputs(),)))
)
"""
    asked = ("run", "own.py", "--executor", "inline", "--set", "seed=0,1", "--value", "shape")
    (tmp_path / "own.py").write_text(text)
    refused = inside(*asked)
    assert refused.returncode == 2
    assert refused.stderr == (
        "petridish: 'shape' is an array of every run, and one number of each is compared. Return "
        "the number that is meant from an instrument, such as the array's largest value.\n"
    )
    assert not (tmp_path / "petridish-store").exists()
    (tmp_path / "own.py").write_text(text.replace("ARRAY = True", "ARRAY = False"))
    assert "median shape at the end" in inside(*asked).stdout


def test_the_best_end_is_chosen_by_an_option(trained: Command) -> None:
    """Of the two rates the one with the least error, or the one with the most."""
    asked = ("own.py", "--value", "test_error", "--best-over", "lr", "--json")
    usual, least, most = (
        json.loads(trained("run", *asked, *end).stdout)["outcomes"]
        for end in ((), ("--best", "least"), ("--best", "most"))
    )
    assert usual == least
    assert len(least) == len(most) == 4
    assert all(low["value"] <= high["value"] for low, high in zip(least, most, strict=True))
    assert [row["chosen"] for row in least] != [row["chosen"] for row in most]
    drawn = trained("figure", *asked[:-1], "--best", "most", "--out", "out")
    assert drawn.stdout.split() == [
        f"out/own-own-value=test_error-best_over=lr-best=most-outcomes.{ending}"
        for ending in ("png", "svg")
    ]


DEEP = """
from dataclasses import dataclass
from typing import ClassVar
from torch import nn
from petridish import Data, Own, RunSpec, SparseParity, Sweep, Training

@dataclass(frozen=True)
class Deep:
    name: ClassVar[str] = "deep"
    depth: int = 1

    def build(self, domain, n_outputs):
        sizes = [domain.n_inputs, *[6] * self.depth]
        layers = [nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]
        return nn.Sequential(*layers, nn.ReLU(), nn.Linear(6, n_outputs))

SWEEP = Sweep(
    RunSpec(task=SparseParity(6, 2), data=Data(m=20, n_test=20), model=Deep(), init=Own(),
            training=Training(steps=3)),
    {"model.depth": (1, 2), "seed": (0, 1)},
)
"""


def test_a_field_of_ones_own_model_is_set_by_its_short_name(
    inside: Command, tmp_path: Path
) -> None:
    """`--set depth=3` is `--set model.depth=3`, as an axis that is there or not."""
    (tmp_path / "deep.py").write_text(DEEP)
    for name in ("depth", "model.depth"):
        done = json.loads(inside("run", "deep.py", "--set", f"{name}=3,4", "--json").stdout)
        assert [row["model.depth"] for row in done["outcomes"]] == [3, 4]
    assert done["summary"]["skipped"] == 4
    wrong = inside("run", "deep.py", "--set", "depht=3")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "petridish: There is no axis called 'depht' in this sweep. Did you mean depth?\n",
    )


def test_settings_are_in_titles_and_names_which_stay_short(
    trained: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rates of 0.1 and 10 have their names; of a long list the name has a hash, the title a cut."""
    saved = []

    def save(figure: Figure, _: Path, name: str) -> list[Path]:
        saved.append((" ".join(figure.get_suptitle().split()), name))
        return []

    monkeypatch.setattr("petridish.figures.style.save", save)
    long = f"seed={','.join(map(str, range(100)))}"
    for setting in ((), ("lr=1e-1",), ("lr=1e+0",), (long,), (f"{long},100",)):
        options = [part for text in setting for part in ("--set", text)]
        done = trained("figure", "own.py", "--value", "solved", *options)
        assert done.returncode == 0, done.stderr
    titles, names = zip(*saved, strict=True)
    assert len(set(names)) == 5
    assert names[1] == "own-own-lr=1e-1-value=solved-outcomes"
    assert max(map(len, names)) < 60
    assert titles[:2] == (
        "own, own: Width, data and rate.",
        "own, own, lr=1e-1: Width, data and rate.",
    )
    assert titles[3] == f"own, own, {long[:60]}…: Width, data and rate."


def test_a_declared_figure_that_does_not_suit_is_replaced(inside: Command, tmp_path: Path) -> None:
    """PF-1 with two rates: its map knows none; what varies is drawn, and why is said."""
    rates = ("PF-1", "--scale", "smoke", "--set", "lr=0.05,0.1", "--set", "seed=0..1")
    assert inside("run", *rates, "--jobs", 1).returncode == 0
    done = inside("figure", *rates, "--out", "out")

    assert done.returncode == 0
    assert "The figure frontier is not drawn as declared. Several runs share" in done.stderr
    assert len(list((tmp_path / "out").glob("*-outcomes.png"))) == 1


def test_what_is_not_to_be_solved_is_not_said_to_be_unsolved(
    inside: Command, tmp_path: Path
) -> None:
    """A regression shows its squared error at the end, in its table and its figures."""
    (tmp_path / "regression.py").write_text(REGRESSION)
    done = inside("run", "regression.py", "--jobs", 1)
    drawn = inside("figure", "regression.py", "--out", "out")

    assert (done.returncode, drawn.returncode) == (0, 0)
    assert "4 runs trained and 0 found" in done.stderr
    assert "solved" not in done.stderr.splitlines()[-1]
    assert "Median test_squared_error at the end, by learning rate" in done.stdout
    assert len(Store(tmp_path / "petridish-store").read().table) == 4
