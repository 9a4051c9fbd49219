"""Someone's own table: dividing its rows, intervals, ranking."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.compare import Comparison, examine, findings, standings
from petridish.compare.describe import NumericTable
from petridish.compare.methods import FOREST, GUESS, MLP, MethodFit
from petridish.compare.ranking import ErrorFormat, corrected_interval
from petridish.compare.splits import (
    MOST_TEST,
    MOST_TRAINING,
    divide,
    drawn_rows,
    largest_training,
    test_rows,
    training_sizes,
)
from tests.messy_tables import messy

test_rows.__test__ = False  # type: ignore[attr-defined] # a function of ours, not a test


# Dividing


@given(st.integers(40, 400), st.integers(2, 6), st.integers(0, 2**32), st.integers(0, 9))
def test_parts_are_apart_nested_and_stratified(
    rows: int, classes: int, seed: int, repeat: int
) -> None:
    """No row is in two parts; every part has its share of each class to within one or two."""
    y = np.random.default_rng(seed).integers(0, classes, rows)
    split = divide(y, stratified=True, seed=seed, repeat=repeat)

    assert len(split.test) == test_rows(rows)
    assert len(split.training) == largest_training(rows)
    both = np.concatenate([split.training, split.test])
    assert len(np.unique(both)) == len(both)
    present = len(np.unique(y[split.training]))
    for part in (split.test, *(split.training[:m] for m in (30, rows // 2))):
        counts = np.bincount(y[part], minlength=classes)
        fair = np.bincount(y, minlength=classes) * len(part) / rows
        # A training part begins with one row of each class, which shifts the others.
        assert np.abs(counts - fair).max() <= 2 + classes * (part is not split.test) / 2
    assert len(np.unique(y[split.training[:present]])) == present


def test_repeats_differ_and_seeds_repeat() -> None:
    """A split is a function of seed and repeat."""
    y = np.arange(100) % 2
    first = divide(y, stratified=True, seed=3, repeat=0)
    again = divide(y, stratified=True, seed=3, repeat=0)
    other = divide(y, stratified=True, seed=3, repeat=1)

    np.testing.assert_array_equal(first.training, again.training)
    np.testing.assert_array_equal(first.test, again.test)
    assert set(first.test) != set(other.test)


def test_without_classes_rows_are_drawn_evenly() -> None:
    """Over 400 repeats every row is tested about as often as any: 80 times, five deviations off."""
    y = np.linspace(0, 1, 50)
    times = np.zeros(50)
    for repeat in range(400):
        times[divide(y, stratified=False, seed=0, repeat=repeat).test] += 1

    assert np.abs(times - 80).max() < 5 * math.sqrt(400 * 0.2 * 0.8)


@given(st.integers(40, 10**7), st.integers(0, 50))
def test_sizes_grow_from_small_to_most_of_the_table(rows: int, classes: int) -> None:
    """Two to six sizes, each at least 1.4 times the one before, the last as large as may be."""
    sizes = training_sizes(rows, classes)

    assert 2 <= len(sizes) <= 6
    assert sizes[-1] == min(MOST_TRAINING, rows - math.ceil(0.2 * rows))
    assert all(large >= 1.4 * small for small, large in pairwise(sizes))
    assert sizes[-1] + test_rows(rows) <= rows
    assert test_rows(rows) <= MOST_TEST


def test_the_grid_of_ten_thousand_rows() -> None:
    """As documented."""
    assert training_sizes(10_000) == (50, 100, 400, 1000, 3000, 8000)
    assert training_sizes(40) == (16, 32)


def test_long_tables_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many rows, each once, in the order of the file."""
    monkeypatch.setattr("petridish.compare.splits.MOST_ROWS", 100)
    drawn = drawn_rows(1000, seed=0)

    assert drawn_rows(100, seed=0) is None
    assert drawn is not None
    assert len(drawn) == 100
    assert (np.diff(drawn) > 0).all()


# Intervals


def test_the_corrected_interval_by_hand() -> None:
    """Values 1, 2, 3: s² = 1, J = 3, and a fifth of the rows in a test part: n_2/n_1 = 1/4."""
    mean, low, high = corrected_interval([1, 2, 3], test_share=0.2)

    half = 4.302652729911275 * math.sqrt(1 / 3 + 1 / 4)  # Student's t with 2 degrees of freedom
    assert mean == 2
    assert (low, high) == pytest.approx((2 - half, 2 + half), rel=1e-9)
    assert corrected_interval([5.0], test_share=0.2) == (5.0, -math.inf, math.inf)


def test_repeats_that_agree_by_chance_claim_no_certainty() -> None:
    """Twice one row of 20: the variance of a difference is at least (0.05 − 0.05²) / 20."""
    mean, low, high = corrected_interval([0.05, 0.05], test_share=0.2, rows=20)

    half = 12.706204736432095 * math.sqrt((1 / 2 + 1 / 4) * 0.8 * (0.05 - 0.05**2) / 20)
    assert (low, high) == pytest.approx((mean - half, mean + half), rel=1e-9)
    assert corrected_interval([0.05, 0.05], test_share=0.2) == (0.05, 0.05, 0.05)
    assert corrected_interval([0.0, 0.0], test_share=0.2, rows=20) == (0.0, 0.0, 0.0)


@given(st.lists(st.integers(0, 10), min_size=20, max_size=20))
def test_the_least_variance_is_that_of_rows_that_differ_one_way(right: list[int]) -> None:
    """No rows with values −1, 0, 1 and the same mean vary less, whatever they are."""
    rows = np.sign(np.array(right) - 5)
    mean = rows.mean()

    assert rows.var() >= abs(mean) - mean**2 - 1e-12


def test_the_correction_keeps_its_level_where_students_does_not() -> None:
    """Mean losses of ten overlapping test parts: of 400 tables, 95 % ± 4 % hold the truth.

    The losses of a row are standard normal whatever was learnt: what remains is that test parts of
    one table share rows. Four standard errors of 400 tables are 4.4 %.
    """
    rng = np.random.default_rng(0)
    covered = {0.0: 0, 0.2: 0}
    for _ in range(400):
        losses = rng.normal(size=100)
        means = [losses[rng.permutation(100)[:20]].mean() for _ in range(10)]
        for share in covered:
            _, low, high = corrected_interval(means, test_share=share)
            covered[share] += low <= 0 <= high

    assert covered[0.2] / 400 > 0.95 - 0.044
    assert covered[0.0] / 400 < 0.85


# Ranking


def invented(errors: dict[str, dict[int, list[float]]], **changes: Any) -> Comparison:
    """Return a comparison with these errors by method, size and repeat."""
    fits = tuple(
        MethodFit(name, size, repeat, error, 1 - error, 0.5, 0.5)
        for name, sizes in errors.items()
        for size, values in sizes.items()
        for repeat, error in enumerate(values)
    )
    sizes = tuple(next(iter(errors.values())))
    examples = NumericTable(
        ("x",), np.array([False]), np.zeros((100, 1)), np.arange(100) % 2, ("a", "b")
    )
    found = Comparison(
        examples=examples,
        rows=100_000,
        test=20_000,
        sizes=sizes,
        repeats=len(errors[GUESS][sizes[0]]),
        seed=0,
        jobs=1,
        seconds=1.0,
        fits=fits,
        notes=(),
    )
    return replace(found, **changes)


STEADY = [0.30, 0.32, 0.28, 0.30]
WORLD = {
    MLP: {50: [0.24, 0.26, 0.22, 0.25], 80: [0.20, 0.22, 0.20, 0.20]},
    FOREST: {50: STEADY, 80: [0.10, 0.12, 0.11, 0.11]},
    "LightGBM": {50: [0.5, 0.2, 0.4, 0.3], 80: [0.14, 0.09, 0.13, 0.10]},
    GUESS: {50: [0.5] * 4, 80: [0.5] * 4},
}


def test_the_ranking_by_hand() -> None:
    """Means in order, paired differences, and ties where the interval holds zero."""
    ranking = standings(invented(WORLD), 80)

    assert [standing.method for standing in ranking] == [FOREST, "LightGBM", MLP]
    assert [standing.tied for standing in ranking] == [True, True, False]
    first, _, last = ranking
    assert first.error == pytest.approx(0.11)
    assert first.difference == 0
    differences = [0.10, 0.10, 0.09, 0.09]
    expected = corrected_interval(differences, test_share=0.2, rows=20_000)
    found = (last.difference, last.difference_low, last.difference_high)
    assert found == pytest.approx(expected)


def described(target: str = "grade") -> Any:
    """Return a description whose target has that name."""
    return examine(messy(), target)[0]


def test_findings_say_when_the_network_loses() -> None:
    """And at which sizes it does not."""
    assert findings(invented(WORLD), described()) == [
        "With 80 training rows, the random forest has the lowest mean test error, 11.0 % "
        "[9.2, 12.8]; not distinguishable from it: LightGBM.",
        "The sparse MLP loses: place 3 of 3, +9.5 [+8.2, +10.8] against the random forest.",
        "Against the best of the others at each size it is better at 50; worse at 80 training "
        "rows.",
    ]


def test_the_headline_says_what_the_time_allowed() -> None:
    """Where larger training parts were left out."""
    world = replace(invented(WORLD), limit=10.0)

    assert findings(world, described())[0].startswith(
        f"With {world.sizes[-1]:,} training rows, the most that 10 s allow, "
    )


def test_findings_say_when_the_network_wins_or_ties() -> None:
    """With what is next, and with how much certainty."""
    wins = {name: {50: sizes[50]} for name, sizes in WORLD.items()}
    ties = wins | {MLP: {50: [0.29, 0.33, 0.29, 0.31]}}

    assert findings(invented(wins), described())[1] == (
        "The sparse MLP wins: the random forest is next, +5.8 [+4.6, +6.9]."
    )
    assert findings(invented(ties), described())[1] == (
        "The sparse MLP is not distinguishable from the best: place 2 of 3, +0.5 [-1.8, +2.8] "
        "against the random forest."
    )


def test_among_equals_the_house_comes_last() -> None:
    """A tie is not told as a win."""
    same = {name: {50: [0.0] * 4} for name in (MLP, FOREST)}
    world = invented(same | {GUESS: {50: [0.5] * 4}})

    assert [standing.method for standing in standings(world, 50)] == [FOREST, MLP]
    assert findings(world, described())[-1] == (
        "No error at all is rare: look whether a column is made from grade."
    )


def test_a_table_that_says_nothing_is_told_so() -> None:
    """The best method is set against a constant guess."""
    noise = {name: {50: [0.5, 0.48, 0.53, 0.5]} for name in (MLP, FOREST)}
    world = invented(noise | {GUESS: {50: [0.5] * 4}})

    assert findings(world, described())[-1] == (
        "No method is distinguishable from a constant guess: these columns may say nothing about "
        "grade."
    )


def test_two_repeats_do_not_say_that_nothing_was_learned() -> None:
    """20 % against 45 %: the interval of two repeats holds 0, which is its own fault."""
    found = {name: {50: [0.1, 0.3]} for name in (MLP, FOREST)}
    world = invented(found | {GUESS: {50: [0.45] * 2}})
    said = findings(world, described())

    assert not any("say nothing" in sentence for sentence in said)
    assert said[-1] == (
        "The repeats are too few to tell any method from a constant guess. Give more --repeats."
    )


def test_a_method_that_fails_is_named_and_not_ranked() -> None:
    """The others go on without it."""
    world = invented(WORLD)
    fits = tuple(
        replace(fit, error=math.nan, failure="ValueError: no") if fit.method == "LightGBM" else fit
        for fit in world.fits
    )
    world = replace(world, fits=fits)

    assert [standing.method for standing in standings(world, 80)] == [FOREST, MLP]
    assert findings(world, described())[-1] == (
        "LightGBM failed in 8 fits (training rows: 50, 80) and is not ranked there: ValueError: no"
    )


@pytest.mark.parametrize(
    ("guess", "value", "written"),
    [(1.8, 0.88, "0.880"), (2500.0, 812.34, "812"), (40.0, 3.14159, "3.1"), (1e9, 2e8, "2e+08")],
)
def test_errors_are_written_with_sensible_digits(guess: float, value: float, written: str) -> None:
    """About three digits of an error of the size that matters."""
    world = invented({GUESS: {50: [guess] * 4}})
    examples = replace(world.examples, y=np.linspace(0, 1, 100), classes=())

    assert ErrorFormat.of(replace(world, examples=examples)).write(value) == written


def test_no_difference_has_no_minus() -> None:
    """A difference that rounds to 0 is +0.0, from either side."""
    measure = ErrorFormat(classified=True)

    assert [measure.difference(value) for value in (-1e-6, 0.0, -0.02)] == ["+0.0", "+0.0", "-2.0"]
