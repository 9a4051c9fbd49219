"""Someone's own table: fitting, and the whole comparison."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from petridish import estimator
from petridish.compare import comparison, examine, read_table
from petridish.compare import methods as fitting
from petridish.compare.comparison import compare
from petridish.compare.describe import Examples
from petridish.compare.methods import FOREST, GUESS, MLP, Fit, fit_one, methods
from petridish.compare.splits import divide
from petridish.errors import UserError
from tests.messy_tables import messy


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make forests and networks small: these tests are about what is done with them."""
    monkeypatch.setattr(fitting, "TREES", 10)
    small = {"width": 16, "n_members": 1, "epochs": 2}
    for name in ("SparseMLPClassifier", "SparseMLPRegressor"):
        whole = getattr(estimator, name)
        monkeypatch.setattr(estimator, name, functools.partial(whole, **small), raising=False)


# Fitting


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", methods())
@pytest.mark.usefixtures("quick")
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


@pytest.mark.usefixtures("quick")
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


@pytest.mark.usefixtures("quick")
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
    examples = Examples(("x",), np.array([False]), np.zeros((100, 1)), y, ("a", "b"))

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


@pytest.mark.usefixtures("quick")
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


@pytest.mark.usefixtures("quick")
def test_a_shuffled_column_hurts_if_it_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deciding column does, by about half; one that is not tried has no number."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    x[:, 2] = np.where(rng.random(400) < 0.2, np.nan, x[:, 2])
    y = (x[:, 1] > 0).astype(np.int64)
    examples = Examples(("a", "b", "c"), np.zeros(3, bool), x, y, ("no", "yes"))

    fit = fit_one(examples, FOREST, 300, 0, seed=0, shuffle=True)
    assert fit.importance is not None
    assert 0.3 < fit.importance[1] < 0.7
    assert np.abs(fit.importance[[0, 2]]).max() < 0.05

    monkeypatch.setattr(fitting, "SHUFFLED_COLUMNS", 1)
    fit = fit_one(examples, FOREST, 300, 0, seed=0, shuffle=True)
    assert fit.importance is not None
    assert np.isnan(fit.importance).tolist() == [True, False, True]


# The whole


@pytest.mark.usefixtures("quick")
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


def test_two_processes_give_what_one_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are a matter of seeds, not of where a fit runs."""
    few = {name: methods()[name] for name in ("HistGradientBoosting", "linear model", GUESS)}
    monkeypatch.setattr(comparison, "methods", lambda: few)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    examples = Examples(
        ("a", "b"), np.zeros(2, bool), x, (x[:, 0] > 0).astype(np.int64), ("no", "yes")
    )
    one, two = (compare(examples, sizes=(20,), repeats=2, seed=1, jobs=jobs) for jobs in (1, 2))

    assert [fit.error for fit in one.fits] == [fit.error for fit in two.fits]
    assert (one.jobs, two.jobs) == (1, 2)


@pytest.fixture
def clockwork(monkeypatch: pytest.MonkeyPatch) -> Examples:
    """Let a fit take a thousandth of a second a row, by a clock that only fits move."""
    now = [0.0]

    def fit(examples: Examples, name: str, size: int, repeat: int, **_: Any) -> Fit:
        now[0] += size / 1000
        return Fit(name, size, repeat, 0.5, 0.5, size / 1000, size / 1000)

    monkeypatch.setattr(comparison, "fit_one", fit)
    monkeypatch.setattr(comparison._Course, "spent", lambda _: now[0])
    y = np.arange(1500) % 2
    return Examples(("x",), np.array([False]), np.zeros((1500, 1)), y, ("a", "b"))


def test_sizes_that_time_does_not_allow_are_left_out(clockwork: Examples) -> None:
    """A repeat of 50, 100, 400 and 1200 rows takes 1.75 s a method; without the last, 0.55 s.

    The fewest repeats of all four are done in their time; in less, those of the first three.
    """
    whole = 1.75 * len(methods()) * comparison.FEWEST_REPEATS
    enough = compare(clockwork, seconds=1.001 * whole, jobs=1)
    less = compare(clockwork, seconds=0.999 * whole, jobs=1)

    assert enough.sizes == (50, 100, 400, 1200)
    assert enough.repeats == 3
    assert less.sizes == (50, 100, 400)
    assert less.notes[0] == (
        f"Training parts of 1,200 rows left out: 3 repeats of them would take longer than "
        f"{0.999 * whole:g} s; a longer --seconds includes them."
    )


def test_two_sizes_are_always_done(clockwork: Examples) -> None:
    """However short the time, with the fewest repeats."""
    found = compare(clockwork, seconds=0.001, jobs=1)

    assert (found.sizes, found.repeats) == ((50, 100), 3)
    assert [note.partition(" rows left out")[0] for note in found.notes] == [
        "Training parts of 400, 1,200",
        "3 of 10 repeats made in the time of 0.001 s; a longer --seconds gives more, and narrower "
        "intervals.",
    ]


def test_repeats_end_with_the_time(clockwork: Examples) -> None:
    """As many as end early enough, of ten; said in a note."""
    one = len(methods()) * 1.75
    found = compare(clockwork, seconds=7.5 * one, jobs=1)

    assert found.repeats == 7
    assert len(found.fits) == 7 * 4 * len(methods())
    assert found.notes == (
        f"7 of 10 repeats made in the time of {7.5 * one:g} s; a longer --seconds gives more, and "
        "narrower intervals.",
    )


def test_what_is_asked_for_is_done(clockwork: Examples) -> None:
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
    options: dict[str, Any], sentence: str, clockwork: Examples
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
