"""`petridish report`: what was run, as it was asked for, on one page."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

from petridish.chapters import EXPERIMENTS
from petridish.cli.report import _most_likely
from petridish.experiment import Experiment
from petridish.publish.report import Shown
from petridish.store import Store
from petridish.store.requests import SweepNote, note_request, requests
from petridish.sweeps import Sweep
from tests.conftest import Command, SmokeStore, copy_runs

OWN = '''"""Two widths of my own."""
from petridish.experiment import Experiment
from petridish.rules.claims import Claim
from petridish.sweeps import Sweep
from petridish.chapters import EXPERIMENTS

BASE = EXPERIMENTS["PF-1"].scales["smoke"].base
SWEEP = Sweep(BASE, {"model.width": (4, 8), "data.m": (30, 300), "seed": range(2)})
RULE = EXPERIMENTS["PF-1"].claims[1].rule
EXPERIMENT = Experiment(
    "mine", "Two widths", "a question of mine", {"own": SWEEP},
    (Claim("w", "Width helps.", "mine", RULE),),
)
'''

BROKEN = """class Broken:
    def judge(self, table, level):
        raise KeyError("x")


"""


@pytest.fixture
def store(smoke_store: SmokeStore, tmp_path: Path) -> Path:
    """Copy the smoke runs of PF-1; they were trained without a command, so there is no note."""
    copy_runs(smoke_store("PF-1"), tmp_path / "s")
    return tmp_path / "s"


def test_a_request_is_noted_once(tmp_path: Path) -> None:
    """The first time stays, the last one moves; torn and foreign notes are passed over."""
    note_request(tmp_path, "PF-1", "smoke", ["seed=0..3"])
    before = requests(tmp_path)[0]
    path = next((tmp_path / "sweeps").iterdir())
    path.write_text(path.read_text("utf-8").replace(before.first, "2026-01-01T00:00:00+00:00"))
    note_request(tmp_path, "PF-1", "smoke", ["seed=0..3"])
    note_request(tmp_path, "mine.py", "own")
    (tmp_path / "sweeps/torn.json").write_text('{"name": "PF-1", "sca')
    (tmp_path / "sweeps/foreign.json").write_text("[3]")

    first, second = requests(tmp_path)
    assert (first.name, first.scale, first.settings) == ("PF-1", "smoke", ("seed=0..3",))
    assert first.first == "2026-01-01T00:00:00+00:00" < first.last
    assert second.name == str(Path("mine.py").resolve())
    assert requests(tmp_path / "nowhere") == []


def test_a_note_that_cannot_be_written_is_left_out(tmp_path: Path) -> None:
    """A run does not end for want of it."""
    (tmp_path / "sweeps").write_text("in the way")
    note_request(tmp_path, "PF-1", "smoke")

    assert requests(tmp_path) == []


def test_a_report_shows_what_was_asked_for(inside: Command, store: Path, tmp_path: Path) -> None:
    """The scale, the settings, seeds beyond the declared ones, and a file of one's own."""
    (tmp_path / "mine.py").write_text(OWN, encoding="utf-8")
    for asked in (
        ("PF-1", "--scale", "smoke", "--set", "seed=0..4", "--set", "r=4"),
        ("mine.py",),
    ):
        assert inside("run", *asked, "--store", "s", "--executor", "inline").returncode == 0
    done = inside("report", "--store", "s", "--out", "page")
    page = html.unescape((tmp_path / "page.html").read_text(encoding="utf-8"))

    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r'<h2 id="(.*?)">(.*?)</h2>', page) == [
        ("PF-1-smoke-seed-0..4-r-4", f"PF-1: {EXPERIMENTS['PF-1'].title}"),
        ("mine-own", "mine: Two widths"),
    ]
    assert re.findall(r'<li><a href="#(.*?)">', page) == ["PF-1-smoke-seed-0..4-r-4", "mine-own"]
    assert "Scale smoke, seed=0..4, r=4: 30 runs" in page
    assert (
        "These are some of the settings of PF-1 at smoke scale. Its claims are about all of them, "
        "and are not judged on a part. `petridish verdicts` does all the same."
    ) in page
    assert page.count('<div class="claim">') == 1  # of mine.py, of which nothing was left out
    assert "No claims are declared." not in page
    assert "petridish run PF-1 --scale smoke --set seed=0..4 --set r=4 --store s" in page
    assert "petridish run mine.py --store s" in page
    assert re.search(r"Written on \d{4}-\d\d-\d\d with petridish ", page)


def test_a_claim_of_ones_own_has_no_column_for_a_paper(
    inside: Command, store: Path, tmp_path: Path
) -> None:
    """Its source stands below what was found."""
    (tmp_path / "mine.py").write_text(OWN, encoding="utf-8")
    inside("run", "mine.py", "--store", "s", "--executor", "inline")
    assert inside("report", "mine.py", "--store", "s", "--out", "p.html").returncode == 0
    page = (tmp_path / "p.html").read_text(encoding="utf-8")

    assert "<h4>The paper</h4>" not in page
    assert '<p class="soft">mine; kind: ours</p>' in page
    assert [len(re.findall(f'<h2 id="{name}', page)) for name in ("mine", "PF-1")] == [1, 0]


def test_a_fault_in_a_rule_leaves_the_rest_of_the_page(
    inside: Command, store: Path, tmp_path: Path
) -> None:
    """The page says which line failed, and shows what else the store holds."""
    broken = OWN.replace("RULE = ", "IGNORED = ").replace(
        "EXPERIMENT = ", "RULE = Broken()\nEXPERIMENT = "
    )
    broken = broken.replace("BASE = ", BROKEN + "BASE = ")
    (tmp_path / "mine.py").write_text(broken, encoding="utf-8")
    for asked in (("PF-1", "--scale", "smoke"), ("mine.py",)):
        inside("run", *asked, "--store", "s", "--executor", "inline")
    assert inside("report", "--store", "s", "--out", "p.html").returncode == 0
    page = html.unescape((tmp_path / "p.html").read_text(encoding="utf-8"))
    line = broken[: broken.index("raise KeyError")].count("\n") + 1

    said = f"mine: no claim is judged. The code failed at mine.py:{line}: KeyError: 'x'."
    assert said in page
    assert re.findall(r'<h2 id="(mine|PF-1)', page) == ["PF-1", "mine"]


def test_without_notes_an_experiment_appears_once(
    inside: Command, store: Path, tmp_path: Path
) -> None:
    """At the smallest scale that has the runs; a scale and settings may be named instead."""
    guessed = inside("report", "--store", "s", "--out", "a.html")
    named = inside(
        *("report", "PF-1", "--scale", "smoke", "--set", "seed=0..1"),
        *("--store", "s", "--out", "b.html"),
    )
    pages = [(tmp_path / name).read_text(encoding="utf-8") for name in ("a.html", "b.html")]

    assert guessed.returncode == named.returncode == 0
    found = re.findall(r'<h2 id="(.*?)"', pages[0])  # others have some of the same runs
    assert found[0] == "PF-1-smoke"
    assert all(name.endswith("-smoke") for name in found)
    assert re.findall(r'<h2 id="(.*?)"', pages[1]) == ["PF-1-smoke-seed-0..1"]
    assert "Scale smoke, seed=0..1: 24 runs" in pages[1]


def test_of_scales_with_the_same_cells_the_smallest_is_meant(smoke_store: SmokeStore) -> None:
    """Runs of `laptop` are not «paper, 48 of 480»."""
    sweep = EXPERIMENTS["PF-1"].scales["smoke"]
    more = Sweep(sweep.base, {**sweep.axes, "seed": range(40)})
    experiment = Experiment("X", "x", "x", {"paper": more, "laptop": sweep, "copy": sweep})
    candidates = [Shown(experiment, name, each) for name, each in experiment.scales.items()]
    table = Store(smoke_store("PF-1")).read().table

    assert [shown.scale for shown in _most_likely(candidates, table)] == ["laptop"]
    assert _most_likely(candidates, table.clear()) == []


def test_what_cannot_be_shown_is_said(inside: Command, store: Path, tmp_path: Path) -> None:
    """A file that is gone, settings without an experiment, a store without runs."""
    gone = tmp_path / "gone.py"
    note_request(store, str(gone), "own")
    note_request(store, "PF-1", "smoke")
    done = inside("report", "--store", "s")
    alone = inside("report", "--scale", "smoke", "--store", "s")
    other = inside("report", "PF-5", "--store", "s")

    assert done.returncode == 0
    assert done.stderr.startswith(f"petridish: {gone} is not shown. ")
    assert alone.stderr == (
        "petridish: --scale and --set were given without an experiment. Write `petridish report "
        "ID`.\n"
    )
    assert other.stderr == (
        "petridish: The store s has no runs of PF-5, or of too few of its cells. Run `petridish "
        "run ID` first, or name the file of your own whose runs it has.\n"
    )
    assert (alone.returncode, other.returncode) == (2, 2)


def test_captions_are_text_beside_the_pictures(
    inside: Command, store: Path, tmp_path: Path
) -> None:
    """Each panel of a picture can stand alone, with words for those who do not see it."""
    inside("report", "PF-1", "--store", "s", "--out", "p.html")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    captions = re.findall(r"<figcaption><strong>(.*?)</strong> (.*?)</figcaption>", page)
    pictures = re.findall(r"<svg class=\"whole.*?</svg>", page, re.DOTALL)

    assert [title for title, _ in captions] == ["PF-1, smoke: frontier", "PF-1, smoke: classes"]
    for (title, note), picture in zip(captions, pictures, strict=True):
        name = title.replace(", ", "-").replace(": ", "-")
        assert note
        assert f'aria-label="{title}"' in picture
        assert "48 runs" not in picture
        assert f'<use href="#{name}"/>' in page
        assert page.count(f'id="{name}"') == 1
    assert '<svg class="panel" role="img" aria-label="PF-1, smoke: frontier, panel 1"' in page


def test_a_terminal_sees_that_the_report_works(
    inside: Command, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line per experiment."""
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _: True, raising=False)

    assert inside("report", "PF-1", "--store", "s").stderr == "1/1  PF-1 smoke …\n"


SCRIPT = """
from dataclasses import dataclass
from typing import ClassVar

import petridish
from petridish import (
    Data, Domain, Examples, Reals, RunSpec, SparseParity, Square, Streams, Sweep, Training, Values
)
from petridish.chapters import EXPERIMENTS
from petridish.experiment import Experiment

@dataclass(frozen=True)
class Odd(SparseParity):
    name: ClassVar[str] = "odd"

    def label(self, packed, supports):
        return 1 - super().label(packed, supports)

@dataclass(frozen=True)
class Ramp:
    name: ClassVar[str] = "ramp"
    slope: float = 1.0
    domain = Domain(Reals((2,)), Values(1))

    def draw(self, seeds, purpose, start, count):
        x = Streams(seeds, purpose).normals(2 * start, 2 * count).reshape(len(seeds), count, 2)
        return Examples(self.slope * x[..., :1], dense=x.astype("float32"))

BASE = RunSpec(task=Odd(8, 2), data=Data(n_test=100), training=Training(steps=20))
RATES = Sweep(BASE, {"training.learning_rate": (0.1, 0.2), "seed": range(2)})
CLAIMS = EXPERIMENTS["PF-1"].claims[:1]
WIDTHS = Sweep(BASE, {"model.width": (3, 4)})
MINE = Experiment("mine", "Two widths", "here", {"own": WIDTHS}, CLAIMS)
REAL = RunSpec(
    task=Ramp(), data=Data(m=50, n_test=50),
    training=Training(loss=Square(), target_error=None, steps=9),
)
asked = {"store": "s", "executor": "inline", "progress": "none"}
petridish.run(RATES, **asked)
petridish.run(RATES, **asked)
petridish.run(Sweep(BASE, {"seed": range(3)}), **asked)
petridish.run(MINE, **asked)
petridish.run(Sweep(REAL, {"task.slope": (1.0, 2.0), "model.width": (3, 4)}), **asked)
"""


def test_a_report_shows_what_a_script_has_run(inside: Command, tmp_path: Path) -> None:
    """Sweeps and experiments of a process that has ended, with a class that is gone since."""
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, check=True, timeout=600)
    done = inside("report", "--store", "s", "--out", "page.html")
    page = html.unescape((tmp_path / "page.html").read_text(encoding="utf-8"))

    assert (done.returncode, done.stderr) == (0, "")
    headings = re.findall(r'<h2 id="(.*?)">(.*?)</h2>', page)
    assert [heading for _, heading in headings] == [
        "sweep: odd(8, 2) by training.learning_rate",
        "sweep: odd(8, 2)",
        "mine: Two widths",
        "sweep: ramp by task.slope, model.width",
    ]
    assert len({anchor for anchor, _ in headings}) == 4
    rates, seeds, mine, slopes = page.split("<h2 ")[1:]
    assert "4 runs" in rates
    assert "<th>training.learning_rate</th><th>n</th><th>solved</th>" in rates
    assert rates.count("<svg") == 1
    assert "No claims are declared." in seeds
    assert "Claims are judged where they are declared." in mine
    assert "To run it again" not in page
    assert "Median test_squared_error at the end." in slopes  # over a field of a class that is gone

    done = inside("report", "mine", "--store", "s", "--out", "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (done.returncode, done.stderr, page.count("<h2 ")) == (0, "", 1)


def test_a_note_that_a_newer_version_wrote_is_refused_in_one_line(
    inside: Command, store: Path, tmp_path: Path
) -> None:
    """The rest of the store is shown."""
    newer = {"base": {"type": "RunSpec", "version": 99}, "axes": {}, "also": []}
    note_request(store, "sweep", "own", (), SweepNote("From the future", 0, newer))
    note_request(store, "PF-1", "smoke")
    done = inside("report", "--store", "s", "--out", "page.html")
    assert done.returncode == 0
    assert done.stderr == (
        "petridish: sweep is not shown. This spec has RunSpec of version 99, and this petridish "
        "has version 1. Upgrade petridish.\n"
    )
    assert "PF-1-smoke" in (tmp_path / "page.html").read_text(encoding="utf-8")
