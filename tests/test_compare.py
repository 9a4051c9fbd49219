"""Someone's own table: fitting, and the whole comparison."""

from __future__ import annotations

import logging
import math
import subprocess
import sys
import warnings
from concurrent.futures import Future
from dataclasses import replace
from os import getpid, kill
from pathlib import Path
from time import sleep
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish.compare import comparison, course, examine, read_table
from petridish.compare import methods as fitting
from petridish.compare.comparison import compare
from petridish.compare.describe import NumericTable
from petridish.compare.methods import FOREST, GUESS, MLP, MethodFit, fit_one, methods
from petridish.compare.splits import divide
from petridish.errors import UserError
from tests.messy_tables import messy

# Fitting


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", methods())
@pytest.mark.usefixtures("quick_methods")
def test_every_method_copes_with_every_column(name: str, task: str) -> None:
    """Gaps, categories a training part lacks, a column empty there, classes with few rows."""
    frame = messy(90).with_columns(
        rare=pl.Series([None] * 85 + [1.0, 2.0, 3.0, 4.0, 5.0]),
        many=pl.Series([f"c{i % 20}" for i in range(90)]),
        price=pl.Series(np.sqrt(np.arange(90.0))),
    )
    _, examples = examine(frame, {"classification": "grade", "regression": "price"}[task])

    for size in (16, 60):
        fit = fit_one(examples, name, size, 1, seed=2)

        assert fit.failure == ""
        assert 0 <= fit.error < 10
        assert (fit.method, fit.size, fit.repeat) == (name, size, 1)
        assert fit.score <= 1


@pytest.mark.usefixtures("quick_methods")
def test_only_training_rows_are_learnt_from() -> None:
    """Test rows with other values leave the trained network as it was, to the last bit."""
    _, examples = examine(messy(), "grade")
    split = divide(examples.y, stratified=True, seed=0, repeat=0)
    changed = examples.x.copy()
    changed[split.test] = 1e6
    changed[split.training[60:]] = -1e6

    usual = fit_one(examples, MLP, 60, 0, seed=0)
    other = fit_one(replace(examples, x=changed), MLP, 60, 0, seed=0)

    assert usual.importance is not None
    assert other.importance is not None
    np.testing.assert_array_equal(usual.importance, other.importance)


@pytest.mark.usefixtures("quick_methods")
def test_a_failing_library_is_a_result() -> None:
    """Its message is kept; nothing is raised."""
    _, examples = examine(messy(), "grade")
    broken = replace(examples, x=np.full_like(examples.x, np.inf))

    fit = fit_one(broken, "linear model", 60, 0, seed=0)

    assert math.isnan(fit.error)
    assert fit.failure.startswith("ValueError: Input X contains infinity")


def test_a_guess_errs_on_all_but_the_most_frequent_class() -> None:
    """Which is what methods have to beat."""
    y = np.array([0] * 60 + [1] * 40)
    examples = NumericTable(("x",), np.array([False]), np.zeros((100, 1)), y, ("a", "b"))

    assert fit_one(examples, GUESS, 50, 0, seed=0).error == pytest.approx(0.4)


def test_the_area_under_the_curve_is_a_share_of_pairs() -> None:
    """Of a row of the class and one of another, the first has the higher share; ties count half."""
    rng = np.random.default_rng(0)
    y, shares = rng.integers(0, 3, 40), rng.integers(0, 5, (40, 4)) / 5
    areas = []
    for one in range(3):
        ours, theirs = shares[y == one, one], shares[y != one, one]
        pairs = [(a > b) + (a == b) / 2 for a in ours for b in theirs]
        areas.append(np.mean(pairs))

    assert fitting.mean_auc(y, shares) == pytest.approx(np.mean(areas))
    assert math.isnan(fitting.mean_auc(np.zeros(5, np.int64), shares[:5]))


@pytest.mark.usefixtures("quick_methods")
def test_importances_belong_to_columns_of_the_table() -> None:
    """Those of one-hot columns add up; shares sum to one."""
    _, examples = examine(messy(), "grade")
    model = methods()[MLP].build("classification", 0, examples.categorical)
    model.fit(examples.x, examples.y)
    raw = model.named_steps["model"].feature_importances_
    found = fitting.movement(model, len(examples.names))

    assert found is not None
    assert examples.names == ("age", "job", "joined", "member")
    # Numbers come first, then clerk, cook, nurse and the gap.
    by_hand = np.array([raw[0], raw[3:].sum(), raw[1], raw[2]])
    np.testing.assert_allclose(found, by_hand / by_hand.sum())
    assert len(raw) == 3 + 4


@pytest.mark.usefixtures("quick_methods")
def test_a_shuffled_column_hurts_if_it_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deciding column does, by about half; one that is not tried has no number."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    x[:, 2] = np.where(rng.random(400) < 0.2, np.nan, x[:, 2])
    y = (x[:, 1] > 0).astype(np.int64)
    examples = NumericTable(("a", "b", "c"), np.zeros(3, bool), x, y, ("no", "yes"))

    fit = fit_one(examples, FOREST, 300, 0, seed=0, shuffle=True)
    assert fit.importance is not None
    assert 0.3 < fit.importance[1] < 0.7
    assert np.abs(fit.importance[[0, 2]]).max() < 0.05

    monkeypatch.setattr(fitting, "SHUFFLED_COLUMNS", 1)
    fit = fit_one(examples, FOREST, 300, 0, seed=0, shuffle=True)
    assert fit.importance is not None
    assert np.isnan(fit.importance).tolist() == [True, False, True]


# The whole


@pytest.mark.usefixtures("quick_methods")
def test_the_same_seed_gives_the_same_errors_whatever_the_processes() -> None:
    """Every method at every size in every repeat, in order."""
    _, examples = examine(messy(), "grade")
    one = compare(examples, sizes=(60, 30), repeats=2, seed=5, jobs=1)
    two = compare(examples, sizes=(30, 60), repeats=2, seed=5, jobs=1)

    assert [(fit.repeat, fit.size, fit.method) for fit in one.fits] == [
        (repeat, size, name) for repeat in (0, 1) for size in (30, 60) for name in methods()
    ]
    assert [fit.error for fit in one.fits] == [fit.error for fit in two.fits]
    assert one.sizes == (30, 60)
    shuffled = [
        (fit.size, fit.repeat)
        for fit in one.fits
        if fit.method == FOREST and fit.importance is not None
    ]
    assert shuffled == [(60, 1)]


def test_libraries_say_nothing_during_a_fit(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Their warnings, prints and logs would be drawn into the progress bar."""
    guess = methods()[GUESS]

    def loud(*given: Any) -> Any:
        warnings.warn("not converged", UserWarning, stacklevel=1)
        logging.getLogger("library").warning("slow")
        print("hello")
        return guess.build(*given)

    monkeypatch.setattr(fitting, "methods", lambda: {GUESS: replace(guess, build=loud)})
    x = np.arange(60.0)[:, None]
    table = NumericTable(("x",), np.array([False]), x, np.arange(60) % 2, ("a", "b"))
    fitting.warm_up(GUESS)
    found = fit_one(table, GUESS, 20, 0, seed=0)

    assert not found.failure
    assert capfd.readouterr() == ("", "")


def test_a_worker_imports_no_more_than_fits_need() -> None:
    """Neither engines, rules nor figures: with their imports the time was up before a fit."""
    code = (
        "import sys, petridish.compare.course as course, petridish.compare.methods as methods;"
        "methods.warm_up(methods.GUESS);"
        "rooms = ('training', 'rules', 'figures', 'sweeps', 'store');"
        "print(sorted({f'petridish.{room}' for room in rooms} & {*sys.modules}"
        " | {'torch', 'matplotlib', 'jinja2'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_something_else_is_done_once_while_the_first_fits_run(clockwork: NumericTable) -> None:
    """Before any of them is waited for."""
    seen: list[int] = []
    calls: list[int] = []

    def show(done: int, planned: int, left: float) -> None:
        seen.append(done)

    compare(clockwork, seconds=20, jobs=1, show=show, meanwhile=lambda: calls.append(len(seen)))
    assert calls == [0]
    assert seen


def test_two_processes_give_what_one_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are a matter of seeds, not of where a fit runs."""
    few = {name: methods()[name] for name in ("HistGradientBoosting", "linear model", GUESS)}
    monkeypatch.setattr(comparison, "methods", lambda: few)
    monkeypatch.setattr(course, "methods", lambda: few)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    examples = NumericTable(
        ("a", "b"), np.zeros(2, bool), x, (x[:, 0] > 0).astype(np.int64), ("no", "yes")
    )
    one, two = (compare(examples, sizes=(20,), repeats=2, seed=1, jobs=jobs) for jobs in (1, 2))

    assert [fit.error for fit in one.fits] == [fit.error for fit in two.fits]
    assert (one.jobs, two.jobs) == (1, 2)


@pytest.fixture
def clockwork(monkeypatch: pytest.MonkeyPatch) -> NumericTable:
    """Let a fit take a thousandth of a second per row, by a clock that only fits move."""
    now = [0.0]

    def fit(examples: NumericTable, name: str, size: int, repeat: int, **_: Any) -> MethodFit:
        now[0] += size / 1000
        return MethodFit(name, size, repeat, 0.5, 0.5, size / 1000, size / 1000)

    monkeypatch.setattr(course, "fit_one", fit)
    monkeypatch.setattr(course, "warm_up", lambda _: None)
    for module in (comparison, course):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    y = np.arange(1500) % 2
    return NumericTable(("x",), np.array([False]), np.zeros((1500, 1)), y, ("a", "b"))


def test_the_largest_size_that_time_allows_is_ranked(clockwork: NumericTable) -> None:
    """A repeat of 50, 100, 400 and 1200 rows takes 0.05 to 1.2 s per method.

    Fits begin with two repeats of 400 rows. Three repeats of the largest size decide; smaller ones
    are left out where time is short.
    """
    most = len(methods()) * (2 * 0.4 + 3 * 1.2) / (1 - course.PAGE_SHARE)
    whole = compare(clockwork, seconds=2 * most, jobs=1)
    enough = compare(clockwork, seconds=1.01 * most, jobs=1)
    less = compare(clockwork, seconds=0.5 * most, jobs=1)

    assert (whole.sizes, whole.limit) == ((50, 100, 400, 1200), None)
    assert (enough.sizes, enough.repeats, enough.limit) == ((1200,), 3, None)
    assert enough.notes[0] == (
        "Training parts of 50, 100, 400 rows left out, to have time for 1,200; a longer --seconds "
        "includes them."
    )
    assert {fit.size for fit in enough.fits} == {1200}
    assert (less.sizes[-1], less.limit) == (400, 0.5 * most)
    assert less.notes[0] == (
        f"Training parts of 1,200 rows left out: 3 repeats of them would take longer than "
        f"{0.5 * most:g} s; a longer --seconds includes them."
    )


@pytest.mark.parametrize("seconds", [3.0, 5.0, 10.0, 20.0, 40.0, 60.0, 100.0])
def test_the_time_is_kept(seconds: float, clockwork: NumericTable) -> None:
    """Fits end before the page is due, whatever the time."""
    found = compare(clockwork, seconds=seconds, jobs=1)

    assert found.seconds <= seconds - min(0.15 * seconds, 5.0)
    assert found.repeats >= 2


def test_sizes_between_are_passed_over_where_time_is_short(
    clockwork: NumericTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fit of 1 s whatever its rows: three repeats of the whole table, none of what lies between.

    One repeat of 400 rows too would have left too little time for the largest.
    """
    usual = vars(course)["fit_one"]

    def steady(examples: NumericTable, name: str, size: int, repeat: int, **_: Any) -> MethodFit:
        fit: MethodFit = usual(examples, name, 1000, repeat)
        return replace(fit, size=size)

    monkeypatch.setattr(course, "fit_one", steady)
    monkeypatch.setattr(course, "GROWTH", (0.0, 0.0, 1.2))
    seconds = len(methods()) * 5.5 / (1 - course.PAGE_SHARE)
    found = compare(clockwork, seconds=seconds, jobs=1)

    assert (found.sizes, found.repeats) == ((1200,), 3)
    assert found.notes[0] == (
        "Training parts of 50, 100, 400 rows left out, to have time for 1,200; a longer --seconds "
        "includes them."
    )


def test_a_size_that_took_longer_than_expected_is_left_out(
    clockwork: NumericTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where not even a second repeat of it fits: the time is kept."""
    usual = vars(course)["fit_one"]

    def slow(examples: NumericTable, name: str, size: int, repeat: int, **more: Any) -> MethodFit:
        for _ in range(8 if size == 1200 else 1):
            fit: MethodFit = usual(examples, name, size, repeat, **more)
        return fit

    monkeypatch.setattr(course, "fit_one", slow)
    seconds = len(methods()) * 3 * 1.75 / 0.8
    found = compare(clockwork, seconds=seconds, jobs=1)

    assert (found.sizes[-1], found.limit) == (400, seconds)
    assert {fit.size for fit in found.fits} == set(found.sizes)
    assert found.notes[0].startswith("Training parts of 1,200 rows left out: 3 repeats of them ")


def test_however_short_the_time_two_repeats_are_made(clockwork: NumericTable) -> None:
    """Of one size and the quickest methods: a single repeat has no interval."""
    found = compare(clockwork, seconds=0.001, jobs=1)
    quickest = list(methods())[-course.LEAST_METHODS :]
    others = ", ".join(name for name in methods() if name not in quickest)

    assert (found.sizes, found.repeats, found.methods) == ((400,), 2, quickest)
    assert found.notes == (
        "Training parts of 1,200 rows left out: 3 repeats of them would take longer than 0.001 s; "
        "a longer --seconds includes them.",
        "Training parts of 50, 100 rows left out, to have time for 400; a longer --seconds "
        "includes them.",
        f"Left out for want of time: {others}; a --seconds longer than 0.001 includes more.",
        "2 of 10 repeats made in the time of 0.001 s; a longer --seconds gives more, and narrower "
        "intervals.",
    )


@pytest.mark.parametrize("at", [400, 1200])
def test_what_runs_when_the_time_is_up_is_cut_off(
    at: int, clockwork: NumericTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network that never ends is left out; one that does not end at a larger size, that size."""

    class Endless(course._Here):
        """Carries out all but a network's fits to `at` rows, which take forever."""

        def submit(self, fn: Any, /, *work: Any, **options: Any) -> Future[Any]:
            future: Future[Any] = Future()
            if work[:2] == (MLP, at):
                fn(MLP, 10**6, 0)  # which moves the clock
                return future
            return super().submit(fn, *work, **options)

    monkeypatch.setattr(course, "_Here", Endless)
    found = compare(clockwork, seconds=100.0, jobs=1)

    assert (found.sizes, found.limit, found.repeats) == ((400,), 100.0, 2)
    assert (MLP in found.methods) == (at == 1200)
    assert any(note.startswith(f"Left out for want of time: {MLP}; ") for note in found.notes) == (
        at == 400
    )
    assert all(len(found.at(name, 400)) == 2 for name in found.methods)


def test_a_repeat_that_was_cut_off_in_between_is_left_out(clockwork: NumericTable) -> None:
    """A long fit may be cut off when later ones have ended: methods share their repeats."""
    found = course.Course(
        examples=clockwork,
        sizes=(400,),
        repeats=5,
        seconds=60.0,
        seed=0,
        jobs=2,
        show=lambda *_: None,
        started=0.0,
        shorten=False,
    )
    found.grid, found.first = found.sizes, 400
    found.fits = [
        MethodFit(name, 400, repeat, 0.5, 0.5, 0.4, 0.4)
        for name in methods()
        for repeat in range(4)
        if (name, repeat) != (MLP, 2)
    ]
    found._keep_whole()

    assert found.repeats == 3
    assert {fit.repeat for fit in found.fits} == {0, 1, 3}
    assert len(found.fits) == 3 * len(methods())


def test_processes_are_ended_with_the_comparison(clockwork: NumericTable) -> None:
    """Also while a fit is under way: a worker that sleeps is gone at once."""
    with course._workers(2, clockwork) as (workers, _):
        asleep = workers.submit(sleep, 10**6)
        process = workers.submit(getpid).result()
    assert not asleep.done() or asleep.exception() is not None
    with pytest.raises(ProcessLookupError):
        kill(process, 0)


def test_repeats_end_with_the_time(clockwork: NumericTable) -> None:
    """As many as end early enough, of ten; said in a note."""
    seconds = 7.5 * len(methods()) * 1.75 + course.PAGE_SECONDS
    found = compare(clockwork, seconds=seconds, jobs=1)

    assert found.repeats == 7
    assert len(found.fits) == 7 * 4 * len(methods())
    assert found.notes == (
        f"7 of 10 repeats made in the time of {seconds:g} s; a longer --seconds gives more, and "
        "narrower intervals.",
    )


def test_what_is_asked_for_is_done(clockwork: NumericTable) -> None:
    """Repeats and sizes that were named are carried out, whatever the time."""
    found = compare(clockwork, sizes=(700, 1200), repeats=30, jobs=1)

    assert (found.sizes, found.repeats, found.notes) == ((700, 1200), 30, ())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"sizes": (5, 50)},
            "--sizes asks for 5 training rows. Of 1,500 usable rows, give sizes from 10 to 1200: "
            "the rest is for tests.",
        ),
        (
            {"sizes": (50, 1201)},
            "--sizes asks for 1201 training rows. Of 1,500 usable rows, give sizes from 10 to "
            "1200: the rest is for tests.",
        ),
        ({"repeats": 1}, "tabular compare: repeats=1. Give a whole number of at least 2."),
        ({"jobs": 0}, "tabular compare: jobs=0. Give a whole number of at least 1."),
        ({"seed": -1}, "tabular compare: seed=-1. Give a whole number of at least 0."),
        ({"seconds": 0}, "--seconds 0 was given. Give a time above 0."),
    ],
)
def test_bad_options_get_one_sentence(
    options: dict[str, Any], sentence: str, clockwork: NumericTable
) -> None:
    """Before anything is fitted."""
    with pytest.raises(UserError) as found:
        compare(clockwork, **options)
    assert str(found.value) == sentence


def test_a_text_called_parquet_is_said_not_to_be(tmp_path: Path) -> None:
    """The name says what was meant."""
    path = tmp_path / "table.parquet"
    path.write_text("hi", encoding="utf-8")
    with pytest.raises(UserError) as error:
        read_table(path)
    assert str(error.value).startswith(f"{path} cannot be read as Parquet: ")
    assert str(error.value).endswith(" Write the file anew.")
