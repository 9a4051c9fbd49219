"""Mixtures of data, width, time and luck: formulas by hand and by brute force, and the command."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.analysis.mixtures import (
    FEWEST,
    LEVEL,
    Mixture,
    affordable,
    budgets,
    mixtures,
    restarts_needed,
)
from petridish.cli.main import run_command
from petridish.naming import describe
from petridish.papers import find
from petridish.store import Store
from petridish.training import Curves, Outcome, RunRecord, RunSpec

# Restarts


def test_restarts_by_hand() -> None:
    """A fair coin needs 4 tosses for 90 % and exactly 2 for 75 %; what never succeeds, forever."""
    assert restarts_needed(0.5, 0.9) == 4
    assert restarts_needed(0.5, 0.75) == 2
    assert restarts_needed(0.9, 0.9) == restarts_needed(1.0, 0.9) == 1
    assert restarts_needed(0.0, 0.9) == math.inf


@given(st.floats(1e-9, 1), st.floats(1e-6, 1 - 1e-6))
def test_restarts_are_the_fewest_that_suffice(success: float, target: float) -> None:
    """All R runs fail with probability (1 − q)^R: at most 1 − p, and with R − 1 runs more."""
    restarts = restarts_needed(success, target)

    assert restarts == int(restarts) >= 1
    if success < 1:
        assert math.exp(restarts * math.log1p(-success)) <= (1 - target) * (1 + 1e-6)
        if restarts > 1:
            assert math.exp((restarts - 1) * math.log1p(-success)) > (1 - target) * (1 - 1e-6)


@given(st.integers(1, 19), st.integers(1, 19))
def test_restarts_agree_with_counting(success: int, target: int) -> None:
    """In twentieths, by exact arithmetic: count until (20 − q)^R · 20 ≤ (20 − p) · 20^R."""
    counted = next(
        runs
        for runs in itertools.count(1)
        if (20 - success) ** runs * 20 <= (20 - target) * 20**runs
    )

    assert restarts_needed(success / 20, target / 20) == counted


@given(st.integers(1, 99), st.integers(1, 4))
def test_rounding_does_not_add_a_restart(percent: int, runs: int) -> None:
    """Where R runs reach the target exactly, R is the answer, though logarithms are rounded."""
    success = percent / 100

    assert restarts_needed(success, 1 - (1 - success) ** runs) <= runs


@pytest.mark.parametrize("success", [1e-12, 1e-300])
def test_hopeless_cells_need_a_number_of_restarts_too(success: float) -> None:
    """The smaller the probability the more restarts, up to infinity, without an error."""
    assert restarts_needed(success, 0.9) > 1e11


def test_certainty_takes_forever() -> None:
    """No number of runs that may fail reaches probability 1."""
    assert restarts_needed(0.5, 1.0) == math.inf


# Budgets


def test_budgets_by_hand() -> None:
    """1000 steps looked at every 100: 707, 500, 353, 250, 176 rounded down to looks."""
    assert budgets(1000, 100) == [1000, 700, 500, 300, 200, 100]
    assert budgets(100, 100) == [100]
    assert budgets(50, 100) == [50]
    assert budgets(150, 100) == [150, 100]


@given(st.integers(1, 100_000), st.integers(1, 1_000))
def test_budgets_are_looks_and_each_is_smaller_than_the_one_before(steps: int, every: int) -> None:
    """From the whole budget down to the first look; what is solved is only known at looks."""
    found = budgets(steps, every)

    assert found[0] == steps
    assert found[-1] == min(steps, every)
    assert all(budget % every == 0 for budget in found[1:])
    assert all(smaller < larger for larger, smaller in itertools.pairwise(found)), found


# Tables of runs

Times = Sequence[int | None]


def cell(times: Times, **columns: Any) -> pl.DataFrame:
    """Make the runs of a cell, by the steps at which they were solved."""
    values: dict[str, Any] = {
        "task": "sparse_parity(10, 2)",
        "task.n": 10,
        "task.k": 2,
        "init": "uniform",
        "data.m": 100.0,
        "model.width": 10,
        "training.steps": 1_000,
        "evaluation.every": 100,
    }
    rows = [
        {
            **values,
            **columns,
            "seed": seed,
            "outcome": "OUT_OF_STEPS" if time is None else "SOLVED",
            "solved_at": time,
        }
        for seed, time in enumerate(times)
    ]
    return pl.DataFrame(rows, schema_overrides={"solved_at": pl.Int64}, infer_schema_length=None)


def random_table(rng: np.random.Generator) -> pl.DataFrame:
    """Draw cells of two inits, widths and sample sizes with times on a coarse grid."""
    parts = [
        cell(
            [
                int(time) if time <= 1_000 else None
                for time in 100 * rng.integers(0, rng.integers(2, 25), size=rng.integers(1, 20))
            ],
            **{"init": init, "data.m": m, "model.width": width},
        )
        for init in ("uniform", "sparse(2)")
        for m in (100.0, 200.0, math.inf)
        for width in (10, 20)
    ]
    return pl.concat(parts)


def resources(option: Mixture) -> tuple[float, ...]:
    """Give the four resources that a mixture takes."""
    return option.m, option.width, option.steps, option.restarts


def dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Say whether one takes no more of anything than the other, and less of something."""
    no_more = all(a <= b for a, b in zip(one, other, strict=True))
    return no_more and any(a < b for a, b in zip(one, other, strict=True))


def test_one_cell_by_hand() -> None:
    """Five of ten runs solved at 300, five at 500: half by 300 steps, all by 500."""
    found = mixtures(cell([300] * 5 + [500] * 5), target=0.9)

    assert [(o.steps, o.success, o.restarts, o.compute) for o in found] == [
        (500, 1.0, 1.0, 5_000.0),
        (300, 0.5, 4.0, 12_000.0),
    ]
    assert [o.best for o in found] == [True, False]
    assert {o.runs for o in found} == {10}
    # ½ C(10, 2) · 0.9 / (100 · 12): at this m, width × steps × restarts cannot be less
    assert found[0].bound == pytest.approx(22.5 * 0.9 / 1200)


def test_too_few_successes_offer_nothing() -> None:
    """Four successes are too few to guess luck from, five are enough."""
    assert FEWEST == 5
    assert mixtures(cell([100] * 4 + [None] * 6), target=0.9) == []
    assert len(mixtures(cell([100] * 5 + [None] * 6), target=0.9)) == 1
    assert mixtures(cell([None] * 9), target=0.9) == []
    assert mixtures(cell([100] * 9).clear(), target=0.9) == []


def test_a_diverged_run_counts_as_failed() -> None:
    """It was made, and it was not solved."""
    diverged = cell([100] * 5 + [None] * 5).with_columns(
        outcome=pl.when(pl.col("solved_at").is_null())
        .then(pl.lit("DIVERGED"))
        .otherwise(pl.col("outcome"))
    )

    assert [(o.success, o.runs) for o in mixtures(diverged, target=0.9)] == [(0.5, 10)]


@pytest.mark.parametrize("draw", range(8))
def test_what_is_kept_is_what_nothing_dominates(draw: int) -> None:
    """Every cell at every budget, compared by a plain double loop."""
    table = random_table(np.random.default_rng(draw))
    offers = set()
    for (m, width, _), runs in table.group_by("data.m", "model.width", "init"):
        times = runs["solved_at"].to_list()
        for budget in budgets(1_000, 100):
            solved = sum(time is not None and time <= budget for time in times)
            if solved >= FEWEST:
                luck = restarts_needed(solved / len(times), 0.9)
                offers.add((float(str(m)), int(str(width)), budget, luck))
    expected = {o for o in offers if not any(dominates(other, o) for other in offers)}
    found = mixtures(table, target=0.9)

    assert sorted(resources(o) for o in found) == sorted(expected)
    for option in found:
        assert 1 - (1 - option.success) ** option.restarts >= 0.9 - 1e-9
        assert option.low <= option.success <= option.high
        assert option.restarts_low <= option.restarts <= option.restarts_high


@pytest.mark.parametrize("draw", range(4))
def test_every_point_of_the_front_is_marked_once(draw: int) -> None:
    """The front of data and compute is complete, and of equal points one is on it."""
    found = mixtures(random_table(np.random.default_rng(draw)), target=0.9)
    points = {(o.m, o.compute) for o in found}
    front = sorted(p for p in points if not any(dominates(other, p) for other in points))

    assert sorted((o.m, o.compute) for o in found if o.best) == front


@pytest.mark.parametrize("draw", range(4))
def test_the_order_of_rows_changes_no_resources(draw: int) -> None:
    """Runs come back from a store in any order, and from any seeds."""
    table = random_table(np.random.default_rng(draw))
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=draw).with_columns(
        seed=pl.col("seed") + 1_000
    )

    assert [resources(o) for o in mixtures(shuffled, target=0.9)] == [
        resources(o) for o in mixtures(table, target=0.9)
    ]


def test_of_equally_costly_mixtures_the_same_one_is_shown_in_any_order() -> None:
    """Two inits that need one run each: which of them is named does not depend on the rows."""
    surer = cell([100] * 20, init="uniform")
    luckier = cell([100] * 19 + [None], init="sparse(2)")
    one_way = mixtures(pl.concat([surer, luckier]), target=0.9)
    other_way = mixtures(pl.concat([luckier, surer]), target=0.9)

    assert one_way == other_way


def test_runs_of_different_budgets_are_different_cells() -> None:
    """A run of 1000 steps says nothing about what 4000 would have done."""
    short = cell([900] * 5 + [None] * 5)
    long = cell([900] * 5 + [3_000] * 5, **{"training.steps": 4_000})
    one_way = mixtures(pl.concat([short, long]), target=0.9)
    other_way = mixtures(pl.concat([long, short]), target=0.9)

    assert [resources(o) for o in one_way] == [resources(o) for o in other_way]
    assert max(o.success for o in one_way) == 1.0


def test_tasks_do_not_compete() -> None:
    """An easy task dominates no mixture of a hard one, and each has its own front."""
    easy = cell([100] * 9)
    hard = cell([1_000] * 9, **{"task": "sparse_parity(10, 5)", "task.k": 5})
    found = mixtures(pl.concat([easy, hard]), target=0.9)

    assert [(o.task, o.steps, o.best) for o in found] == [
        ("sparse_parity(10, 2)", 100, True),
        ("sparse_parity(10, 5)", 1_000, True),
    ]


def test_intervals_hold_at_once_for_all_budgets() -> None:
    """Over 80 cells, at most 5 % (and luck of 1e-4) miss the truth at any budget shown."""
    from scipy.stats import binom

    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(80):
        drawn = rng.exponential(700, size=20)
        times: Times = [math.ceil(t / 100) * 100 if t <= 1_000 else None for t in drawn]
        found = mixtures(cell(times), target=0.9)
        missed += any(not o.low <= 1 - math.exp(-o.steps / 700) <= o.high for o in found)
    assert missed <= binom.isf(1e-4, 80, 1 - LEVEL)


def test_one_budget_has_the_plain_anytime_interval() -> None:
    """With a single look there is nothing to correct for."""
    from petridish.analysis import anytime_interval

    (only,) = mixtures(cell([100] * 7 + [None] * 3, **{"training.steps": 100}), target=0.9)
    low, high = anytime_interval(7, 10, level=LEVEL)

    assert (only.low, only.high) == (float(low), float(high))
    assert only.compute_interval == (1000 * only.restarts_low, 1000 * only.restarts_high)
    assert only.restarts_high == restarts_needed(float(low), 0.9)


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
    """Give what the runs of a cell did.

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
            solved_at=time,
            fitted_at=None,
            steps=time or spec.training.steps,
            test_error=0.5 if time is None else 0.0,
            train_loss=0.1,
            curves=Curves(),
            seconds=0.1,
            engine="torch",
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
    """Give the command on a store made by hand: exit code, what it printed, what it complained."""
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
            "--have: there is no resource called 'money'. Known: m, r, restarts, steps.",
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
        "In no cell did 5 runs or more succeed: there is no mixture to show.\n",
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
