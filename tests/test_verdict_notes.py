"""Judging a claim again after adding seeds: it is noted, said, and its cost is paid."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from petridish import run
from petridish.experiment import Experiment, user_experiment
from petridish.rules import (
    AtEnd,
    Claim,
    Each,
    Field,
    Judgement,
    Mean,
    Median,
    Rule,
    Share,
    Solved,
    SolvedAt,
)
from petridish.rules.claims import blind_within, seeds_to_exclude
from petridish.store.verdicts_shown import VerdictsShown
from petridish.sweeps import Sweep
from tests.conftest import Command
from tests.outcome_worlds import BASE, half_solved, world
from tests.rule_worlds import most_wrong

UNDECIDED = Judgement.UNDECIDED
OWN = '''
"""Is the parity found by half of the seeds?"""
from petridish.experiment import Experiment
from petridish.models import MLP
from petridish.rules import Claim, Each, Rule, Share, Solved
from petridish.sweeps import Sweep
from petridish.tasks import SparseParity
from petridish.training import Data, RunSpec, Training

SWEEP = Sweep(
    RunSpec(
        task=SparseParity(8, 2),
        data=Data(m=200, n_test=100),
        model=MLP(8),
        training=Training(steps=100, learning_rate=0.5),
    ),
    {"seed": range(4)},
)
CLAIM = Claim("a", "Most are solved.", "ours", Rule(Solved(), Each(), Share(), above=0.5))
EXPERIMENT = Experiment("own", "own", "ours", {"own": SWEEP}, (CLAIM,))
'''


def test_judgements_are_kept_once_per_number_of_runs(tmp_path: Path) -> None:
    """Other seeds are the same question, other settings are not; a torn file is no judgement."""
    shown = VerdictsShown(tmp_path, "own", "quick")
    for n, word in ((8, "undecided"), (8, "undecided"), (16, "supported")):
        shown.note([("a", n, word), ("b", 0, "undecided")])

    assert shown.judged() == {"a": [(8, "undecided"), (16, "supported")], "b": []}
    assert VerdictsShown(tmp_path, "own", "quick", ["seed=0..9"]).path == shown.path
    assert VerdictsShown(tmp_path, "own", "quick", ["m=3"]).path != shown.path
    shown.path.write_text("{")
    assert shown.judged() == {}
    VerdictsShown(tmp_path / "nowhere", "own", "quick").note([("a", 8, "supported")])


def test_without_claims_nothing_is_noted(tmp_path: Path) -> None:
    """There is nothing to judge, and no file."""
    VerdictsShown(tmp_path, "mine", "own").note([])
    assert not any(tmp_path.iterdir())


def test_a_later_verdict_says_that_it_was_judged_before(inside: Command, tmp_path: Path) -> None:
    """At which n, with what verdict, and whether it stands at the level that is left."""
    (tmp_path / "own.py").write_text(OWN)
    first = inside("run", "own.py", "--jobs", 1)
    again = inside("verdicts", "own.py")
    more = inside("run", "own.py", "--jobs", 1, "--set", "seed=0..11")
    as_json = json.loads(inside("verdicts", "own.py", "--set", "seed=0..11", "--json").stdout)

    rows = json.loads(inside("run", "own.py", "--json").stdout)["outcomes"]
    assert [row["n"] for row in rows] == [4]
    assert {"of", "solved", "diverged", "value", "low", "high", "chosen"} <= set(rows[0])
    assert "UNDECIDED" in first.stdout
    assert "judged before" not in first.stdout + again.stdout
    line = (
        "judged before at n = 4 (undecided); judging again after adding runs costs: at the level "
        "of judgement 2, 0.0083 instead of 0.05, it stands"
    )
    assert f"    → {line}" in more.stdout
    assert as_json["verdicts"][0]["notes"] == [line]


def test_python_and_the_report_say_that_a_verdict_was_judged_before(
    inside: Command, tmp_path: Path
) -> None:
    """Verdicts in Python, their tables and the page carry the same notes as the command line."""
    (tmp_path / "own.py").write_text(OWN)
    own = user_experiment(tmp_path / "own.py")
    store = tmp_path / "petridish-store"
    first, more = (
        run(own, settings={"seed": range(n)}, store=store, jobs=1).verdicts() for n in (4, 12)
    )
    page = inside("report", "own.py", "--set", "seed=0..11", "--out", "page.html")

    line = (
        "judged before at n = 4 (undecided); judging again after adding runs costs: at the "
        "level of judgement 2, 0.0083 instead of 0.05, it stands"
    )
    assert [verdict.notes for verdict in more] == [(line,)]
    assert "judged before" not in repr(first)
    assert repr(more).startswith("(a, ours) Most are solved.\n    SUPPORTED: ")
    assert repr(more).endswith(f"\n    → {line}")
    assert f"<br>→ {line}" in more._repr_html_()
    assert page.returncode == 0
    assert f"→ {line}" in (tmp_path / "page.html").read_text()


def test_judging_until_a_verdict_appears_keeps_its_stated_risk() -> None:
    """At ½ every verdict is wrong. 300 worlds, judged after 10, 20, 40, 80, 160 and 320 seeds.

    Believed at the full level each time, some verdict appears in more than 1.5 times the level of
    the worlds; believed where it stands, in at most 1.5 times the level, as is promised.
    """
    rng = np.random.default_rng(1)
    claim = Claim("a", "So.", "ours", Rule(Solved(), Each(), Share(), above=0.5))
    own = Experiment("own", "own", "ours", {"own": Sweep(BASE, {})}, (claim,), level=0.2)

    @cache  # a share depends on two numbers alone, which many worlds have in common
    def decided(solved: int, n: int, nth: int) -> bool:
        outcomes = ["SOLVED"] * solved + ["OUT_OF_STEPS"] * (n - solved)
        runs = pl.DataFrame({"outcome": outcomes, "seed": range(n)})
        verdict = own.judge_again(claim, runs, nth=nth) if nth > 1 else own.judge(runs)[0]
        return verdict.finding.judgement is not UNDECIDED

    bold = careful = 0
    for _ in range(300):
        solved = (rng.random(320) < 0.5).cumsum()
        seen = believed = False
        for nth, n in enumerate((10, 20, 40, 80, 160, 320), 1):
            so_far = int(solved[n - 1])
            seen |= decided(so_far, n, 1)
            if decided(so_far, n, 1) and not believed:
                believed = decided(so_far, n, nth)
        bold, careful = bold + seen, careful + believed

    assert careful <= most_wrong(300, 0.3)
    assert careful < 0.3 * 300 < bold


@pytest.mark.parametrize(
    ("bound", "interval", "sentence"),
    [
        (
            0.5,
            (0.6, 0.4, 0.8),
            "about 80 seeds instead of 20 would exclude 0.5, if the estimate stays",
        ),
        (
            0.0,
            (-0.1, -0.2, 0.1),
            "about 80 seeds instead of 20 would exclude 0, if the estimate stays",
        ),
        (
            1.0,
            (2.0, 0.5, 8.0),
            "about 80 seeds instead of 20 would exclude 1, if the estimate stays",
        ),
        (0.5, (0.5, 0.4, 0.6), "the estimate is too near to 0.5 for more seeds to tell them apart"),
        (0.5, (0.7, 0.6, 0.8), ""),
    ],
)
def test_undecided_says_about_how_many_seeds_would_decide(
    bound: float, interval: tuple[float, float, float], sentence: str
) -> None:
    """By hand: twice the distance needs four times the seeds; ratios on a logarithmic scale."""
    assert seeds_to_exclude(bound, *interval, seeds=20) == sentence
    assert seeds_to_exclude(bound, *interval, seeds=1) == ""  # of one seed no width is known


@pytest.mark.parametrize(
    ("bound", "interval", "distance"),
    [
        (0.0, (0.1, -0.1, 0.25), "0 below 0.2"),  # the larger half
        (0.5, (0.6, 0.4, 0.7), "0.5 below 0.2"),
        (1.0, (2.0, 0.5, 4.0), "1 below a factor of 4"),
        (1.0, (0.5, -0.5, 1.5), "1 below 1"),  # no ratio: it may be below 0
    ],
)
def test_undecided_says_how_small_an_effect_would_not_be_seen(
    bound: float, interval: tuple[float, float, float], distance: str
) -> None:
    """By hand; of what is decided or has no interval there is nothing to say."""
    said = f"differences from {distance} are too small for these runs to show"
    assert blind_within(bound, *interval) == said
    assert blind_within(9.0, *interval) == ""
    assert blind_within(bound, interval[0], interval[1], math.inf) == ""
    assert blind_within(bound, math.nan, math.nan, math.nan) == ""


def test_an_effect_of_that_size_is_seen() -> None:
    """The same runs moved by the distance are decided, and moved by half of it they are not."""
    values = pl.DataFrame({"seed": range(8), "value": [(-1.0) ** seed for seed in range(8)]})
    rule = Rule(Field("value"), Each(), Mean(), above=0.0)
    found = rule.judge(values, 0.05)
    least = found.high - found.estimate

    assert f"differences from 0 below {least:.3g} are" in found.remark
    moved = [
        rule.judge(values.with_columns(pl.col("value") + by * least), 0.05) for by in (0.5, 1.01)
    ]
    assert [each.judgement.value for each in moved] == ["undecided", "supported"]


def test_a_rule_says_what_would_decide_it_and_how_much_it_sees() -> None:
    """The number of seeds is a note beside the verdict; a record keeps what it is blind to."""
    outcomes = ["SOLVED"] * 12 + ["OUT_OF_STEPS"] * 8
    runs = pl.DataFrame({"outcome": outcomes, "seed": range(20)})
    finding = Rule(Solved(), Each(), Share(), above=0.5).judge(runs, 0.05)

    assert finding.judgement is UNDECIDED
    assert finding.remark == (
        "the interval does not exclude 0.5: more seeds would narrow it; differences from 0.5 below "
        "0.239 are too small for these runs to show"
    )
    assert finding.note == "about 120 seeds instead of 20 would exclude 0.5, if the estimate stays"


def test_a_verdict_on_values_at_the_end_says_which_runs_stopped(tmp_path: Path) -> None:
    """Such values are of different steps; of times and shares there is nothing to say."""
    rules = {
        "end": Rule(AtEnd("test_error"), Each(), Median(), below=0.2),
        "time": Rule(SolvedAt(), Each(), Median(), below=300),
    }
    claims = tuple(Claim(name, "A claim.", "ours", rule) for name, rule in rules.items())
    axes = {"seed": range(8)}
    experiment = Experiment("own", "own", "ours", {"own": Sweep(BASE, axes)}, claims)
    end, time = experiment.judge_shown(world(axes, half_solved), tmp_path, "own")
    said = (
        "4 of 8 runs stopped once they were solved, after 100 steps: values at the end are of "
        "different steps. Set training.target_error=none to compare at equal steps."
    )
    assert said in end.notes
    assert said not in time.notes
