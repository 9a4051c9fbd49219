"""Mixtures as JSON, what one can afford, and the command that says it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.chapters import find
from petridish.choices import describe
from petridish.cli.main import run_command
from petridish.rules.mixtures import Mixture, affordable, mixtures
from petridish.store import Store
from petridish.training import Outcome, RunRecord, RunSpec
from tests.mixture_tables import Times, cell, resources

# JSON, and what one can afford


def test_json_holds_no_infinity() -> None:
    """Online m is "inf"; a task without a bound and endless restarts are null."""
    online = cell([100] * 9, **{"task": "sparse_majority(10, 3)", "data.m": math.inf})
    (option,) = mixtures(online, target=0.9)
    endless = replace(option, restarts_high=math.inf)
    document = json.loads(json.dumps(endless.as_json(), allow_nan=False))

    assert math.isnan(option.bound)
    assert document["m"] == "inf"
    assert document["bound"] is None
    assert document["restarts_high"] is None
    assert document["compute_high"] is None
    assert document["compute"] == 1_000
    assert replace(option, m=300.0).as_json()["m"] == 300


def test_online_nothing_is_excluded() -> None:
    """Proposition 3 speaks of m examples: without end, it asks for nothing else."""
    (option,) = mixtures(cell([100] * 9, **{"data.m": math.inf}), target=0.9)

    assert option.bound == 0


def mixture(m: float, width: int, steps: int, restarts: float) -> Mixture:
    """Make a mixture by its resources."""
    return Mixture("t", "i", m, width, steps, restarts, 0.5, 0.4, 0.6, 10, 1, 9, math.nan)


def test_the_cheapest_affordable_mixture_comes_first() -> None:
    """Limits are inclusive; m decides between mixtures of equal compute."""
    a, b, c = mixture(100, 10, 500, 4), mixture(300, 10, 500, 2), mixture(200, 20, 250, 2)

    assert affordable([a, b, c], {}) == [c, b, a]
    assert affordable([a, b, c], {"m": 200}) == [c, a]
    assert affordable([a, b, c], {"m": 200, "r": 10, "steps": 500, "restarts": 4}) == [a]
    assert affordable([a, b, c], {"restarts": 1}) == []
    assert affordable([a, b, c], {"compute": 10_000}) == [c, b]
    assert affordable([a, b, c], {"compute": 9_999}) == []


@given(
    st.lists(st.tuples(*[st.integers(1, 4)] * 4), max_size=8),
    st.dictionaries(st.sampled_from(["m", "r", "steps", "restarts"]), st.integers(1, 4)),
)
def test_affordable_is_a_plain_filter(
    rows: list[tuple[int, int, int, int]], have: dict[str, float]
) -> None:
    """Every mixture within all limits is there, no other, and compute rises."""
    names = ("m", "r", "steps", "restarts")
    found = affordable([mixture(*row) for row in rows], have)
    expected = [
        row
        for row in rows
        if all(value <= have.get(name, 99) for name, value in zip(names, row, strict=True))
    ]

    assert sorted(resources(o) for o in found) == sorted(expected)
    assert [o.compute for o in found] == sorted(o.compute for o in found)


# The command

SETTINGS = ("--scale", "smoke", "--set", "seed=0..9")
Frontier = Callable[..., tuple[int, str, str]]


def times_of(spec: RunSpec) -> Times:
    """Return what the runs of a cell did.

    m = 30: nothing; m = 100: half of the wide sparse nets, late; m = 300: a cheap way and a fast.
    """
    where = spec.data.m, getattr(spec.model, "width", 0), type(spec.init).__name__
    slow: Times = [800, None] * 5
    known: dict[Any, Times] = {
        (100, 32, "Sparse"): slow,
        (300, 4, "Uniform"): [500] * 10,
        (300, 32, "Sparse"): [200] * 10,
    }
    return known.get(where, [None] * 10)


def filled_store(folder: Path, settings: list[str], times: Callable[[RunSpec], Times]) -> Path:
    """Write records by hand for the runs of PF-1 at smoke scale."""
    records = [
        RunRecord(
            spec=replace(spec, seed=seed),
            outcome=Outcome.OUT_OF_STEPS if time is None else Outcome.SOLVED,
            fitted_at=None,
            steps=time or spec.training.steps,
            train_loss=0.1,
            seconds=0.1,
            engine="torch",
            final={"test_error": 0.5 if time is None else 0.0},
        )
        for spec, seeds in find("PF-1").sweep("smoke").narrowed(settings).cells()
        for seed, time in zip(seeds, times(spec), strict=True)
    ]
    store = Store(folder)
    store.prepare()
    store.write(records)
    return folder


@pytest.fixture
def frontier(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Frontier:
    """Return the command on a store made by hand: exit code, what it printed, its complaint."""
    folder = filled_store(tmp_path / "s", ["seed=0..9"], times_of)

    def command(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run_command(["frontier", "PF-1", "--store", str(folder), *SETTINGS, *arguments])
        return code, *capsys.readouterr()

    return command


def test_the_table_shows_the_front(frontier: Frontier) -> None:
    """By hand: 4 runs of 1000 steps with m = 100, or one of 500 with m = 300; the fast is dear."""
    code, out, err = frontier()
    title, task, header, *rows, more = out.splitlines()

    assert (code, err) == (0, "")
    assert title == "Mixtures that reach success 0.9"
    assert task == "sparse_parity(10, 2)"
    assert header.split()[:5] == ["m", "r", "init", "steps", "restarts"]
    assert [row.split()[:5] for row in rows] == [
        ["100", "32", "sparse(2)", "1,000", "4"],
        ["300", "4", "uniform", "500", "1"],
    ]
    assert " 1.3e+05 [" in rows[0]
    assert " 2.0e+03 [" in rows[1]
    assert more == "Not shown, as others need no more data and compute: 1 (--all)."


def test_all_shows_the_rest(frontier: Frontier) -> None:
    """The fast mixture appears, and nothing is left to mention."""
    code, out, _ = frontier("--all")
    rows = out.splitlines()[3:]

    assert code == 0
    assert [row.split()[0] for row in rows] == ["100", "300", "300"]
    assert rows[2].split()[1:5] == ["32", "sparse(2)", "200", "1"]


def test_what_one_has_is_answered_in_words(frontier: Frontier) -> None:
    """The cheapest way within the limits."""
    code, out, err = frontier("--have", "m=300,steps=400")
    lines = out.splitlines()

    assert (code, err) == (0, "")
    assert lines[0] == (
        "sparse_parity(10, 2): with m ≤ 300 and steps ≤ 400, the cheapest measured way to success "
        "0.9:"
    )
    assert lines[1].startswith("    m = 300, width r = 32, sparse(2), 200 steps, 1 run [1 to ")
    assert "compute width × steps × restarts = 6.40e+03" in lines[3]
    assert frontier("--have", "m=300,steps=400,compute=6400")[1].splitlines()[1:] == lines[1:]
    lines = frontier("--have", "m=300,steps=400,compute=6399")[1].splitlines()
    assert "nothing that was measured reaches success 0.9" in lines[0]
    assert "    compute = 6,400 would do, the rest as it is." in lines


def test_what_is_missing_is_said(frontier: Frontier) -> None:
    """Each resource that would do alone if there were more of it; T and width are understood."""
    code, out, _ = frontier("--have", "m=100, width=4")

    assert code == 0
    assert out == (
        "sparse_parity(10, 2): with m ≤ 100 and r ≤ 4, nothing that was measured reaches success "
        "0.9 (by cells of which 5 runs succeeded or more).\n"
        "    m = 300 would do, the rest as it is.\n"
        "    r = 32 would do, the rest as it is.\n"
    )
    assert "T" not in frontier("--have", "T=100")[1]
    assert "steps ≤ 100" in frontier("--have", "T=100")[1]


def test_limits_are_repeated_as_given(frontier: Frontier) -> None:
    """1.5 restarts are not 2: what cannot be had is not called within the limits."""
    assert "restarts ≤ 1.5" in frontier("--have", "restarts=1.5")[1]


def test_json_is_one_document(frontier: Frontier) -> None:
    """All mixtures, the cheapest within the limits, and nothing else on standard output."""
    code, out, err = frontier("--have", "m=100", "--json")
    document = json.loads(out)

    assert (code, err) == (0, "")
    assert list(document) == ["id", "scale", "target", "have", "cheapest", "mixtures"]
    assert (document["id"], document["scale"], document["target"]) == ("PF-1", "smoke", 0.9)
    assert document["have"] == {"m": 100}
    assert document["cheapest"][0]["compute"] == 128_000
    assert document["cheapest"] == document["mixtures"][:1]
    assert [o["best"] for o in document["mixtures"]] == [True, True, False]
    assert json.loads(frontier("--have", "m=99", "--json")[1])["cheapest"] == []


def test_json_with_all_the_data_one_wants(frontier: Frontier) -> None:
    """`--have m=inf`, online, is JSON too."""
    code, out, _ = frontier("--have", "m=inf", "--json")

    assert code == 0
    assert json.loads(out)["cheapest"][0]["compute"] == 2_000


def test_the_figure_is_written(frontier: Frontier, tmp_path: Path) -> None:
    """Its files are named; beside JSON on standard error."""
    code, out, err = frontier("--json", "--out", str(tmp_path / "pictures"))
    names = [f"{tmp_path}/pictures/PF-1-smoke-mixtures.{kind}" for kind in ("png", "svg")]

    assert code == 0
    assert json.loads(out)["id"] == "PF-1"
    assert err.splitlines() == names
    assert all(Path(name).stat().st_size > 1_000 for name in names)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--target", "1.5"), "--target 1.5 was given. Give a probability between 0 and 1."),
        (("--target", "0"), "--target 0 was given. Give a probability between 0 and 1."),
        (("--target", "nan"), "--target nan was given. Give a probability between 0 and 1."),
        (
            ("--have", "step=3"),
            "--have: there is no resource called 'step'. Did you mean steps?",
        ),
        (
            ("--have", "money=3"),
            "--have: there is no resource called 'money'. Known: compute, m, r, restarts, steps.",
        ),
        (("--have", "m"), "--have m gives no positive number. Write m=600."),
        (("--have", "m=many"), "--have m=many gives no positive number. Write m=600."),
        (("--have", "r=5,m=-3"), "--have m=-3 gives no positive number. Write m=600."),
        (("--have", "m=nan"), "--have m=nan gives no positive number. Write m=600."),
    ],
)
def test_mistakes_are_told(frontier: Frontier, arguments: tuple[str, ...], sentence: str) -> None:
    """One sentence, exit code 2, nothing on standard output."""
    assert frontier(*arguments) == (2, "", f"petridish: {sentence}\n")


def test_a_store_without_these_runs_is_told(
    frontier: Frontier, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another width was not run; a folder that is not there is no store."""
    assert frontier("--set", "r=999") == (
        2,
        "",
        f"petridish: The store {tmp_path}/s has no runs of PF-1. Run `petridish run PF-1` first, "
        "with the same --scale, --set and --store.\n",
    )
    assert run_command(["frontier", "PF-1", "--store", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == (
        f"petridish: There is no store {tmp_path}/none. Give --store, or fill one by "
        "`petridish run`.\n"
    )


def test_a_store_without_successes_shows_no_mixture(frontier: Frontier) -> None:
    """With m = 30 nothing was solved: that is an answer, not an error."""
    assert frontier("--set", "m=30") == (
        0,
        "In no cell did 5 runs or more succeed: there is no mixture to show. The most of one cell "
        "are 0, of at most 10 runs. Run more seeds, or easier settings.\n",
        "",
    )
    assert json.loads(frontier("--set", "m=30", "--json")[1])["mixtures"] == []


def test_tasks_without_a_bound_are_answered_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Proposition 3 is about parities: of a majority nothing is excluded, and no NaN is shown."""
    settings = ["seed=0..9", "task=sparse_majority(10, 3)", "m=300", "r=4"]
    folder = filled_store(tmp_path / "s", settings, lambda _: [500] * 10)
    options = [word for setting in settings for word in ("--set", setting)]
    command = ["frontier", "PF-1", "--scale", "smoke", "--store", str(folder), *options]

    assert run_command([*command, "--have", "m=300"]) == 0
    answer = capsys.readouterr().out
    assert "sparse_majority(10, 3)" in answer
    assert "nan" not in answer
    assert run_command(command) == 0
    assert capsys.readouterr().out.splitlines()[3].endswith("–")


def test_each_task_is_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is cheapest for the easy task says nothing about the hard one."""

    def times(spec: RunSpec) -> Times:
        return [100 if "(10, 2)" in describe(spec.task) else 1_000] * 10

    settings = ["seed=0..9", "k=2,3", "m=300", "r=4"]
    folder = filled_store(tmp_path / "s", settings, times)
    options = [word for setting in settings for word in ("--set", setting)]
    command = ["frontier", "PF-1", "--scale", "smoke", "--store", str(folder), *options]

    assert run_command([*command, "--have", "m=300"]) == 0
    answer = capsys.readouterr().out
    assert "sparse_parity(10, 2)" in answer
    assert "sparse_parity(10, 3)" in answer
