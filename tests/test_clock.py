"""When members stop: evaluations, the loss after the best scale, the clock, what it keeps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish import SparseMLPClassifier, SparseMLPRegressor
from petridish.estimator.clock import (
    Clock,
    deal_folds,
    evaluation_steps,
    most_steps,
    scaled_loss,
    usual_steps,
)
from petridish.estimator.fitting import HoldOut, Recipe, TrainedMembers, WeightedRows, train_members
from petridish.estimator.start import AtData
from petridish.models import MLP

RECIPE = Recipe(
    model=MLP(8), start=AtData(2), loss="logistic", learning_rate=1e-2, weight_decay=0.0,
    schedule="constant", batch_size=16, steps=60,
)  # fmt: skip


def sample(n_rows: int = 64) -> WeightedRows:
    """Return rows whose class is the sign of a product."""
    x = np.random.default_rng(1).normal(size=(n_rows, 4)).astype(np.float32)
    target = (x[:, :1] * x[:, 1:2] > 0).astype(np.float32)
    return WeightedRows(x, target, np.ones(n_rows, np.float32))


def test_numbers_of_steps() -> None:
    """12 √n are usual; the clock is asked up to 2000, or 20 √n from 10 000 rows on."""
    assert [usual_steps(n) for n in (2, 100, 10_000)] == [17, 120, 1200]
    assert [most_steps(n) for n in (2, 10_000, 40_000)] == [2000, 2000, 4000]


@given(most=st.integers(1, 10**6))
def test_evaluated_at_grow_by_a_quarter_up_to_the_last(most: int) -> None:
    """From 20 on; a shorter training has one look, at its end."""
    steps = evaluation_steps(most)

    assert steps[-1] == most
    assert most <= 20 or steps[0] == 20
    assert all(0 < later - earlier <= 0.3 * earlier for earlier, later in pairwise(steps))


@given(scale=st.floats(0.3, 3), seed=st.integers(0, 99))
def test_how_loudly_rows_are_told_does_not_count(scale: float, seed: int) -> None:
    """The scaled loss is the least over scales, found here on a fine grid; classes as well."""
    rng = np.random.default_rng(seed)
    outputs, target = rng.normal(size=(50, 1)), rng.integers(0, 2, (50, 1)).astype(float)
    outputs += target  # somewhat right
    weight = rng.random(50) + 0.1
    found = scaled_loss("logistic", outputs, target, weight)
    grid = [
        np.average((np.logaddexp(0, a * outputs) - a * target * outputs)[:, 0], weights=weight)
        for a in np.exp(np.linspace(-4, 2, 2001))
    ]
    two = np.concatenate([np.zeros_like(outputs), outputs], axis=1)

    assert found == pytest.approx(min(grid), abs=1e-5)
    assert scaled_loss("logistic", scale * outputs, target, weight) == pytest.approx(
        found, abs=1e-5
    )
    assert scaled_loss(
        "cross_entropy", two, np.concatenate([1 - target, target], axis=1), weight
    ) == pytest.approx(found, abs=1e-5)


def test_numbers_are_told_by_their_squared_error() -> None:
    """½ log of its weighted mean; a perfect fit is finite."""
    told, true = np.array([[1.0], [2.0]]), np.array([[2.0], [4.0]])

    assert scaled_loss("square", told, true, np.array([3.0, 1.0])) == pytest.approx(
        0.5 * np.log((3 * 1 + 1 * 4) / 4)
    )
    assert np.isfinite(scaled_loss("square", true, true, np.ones(2)))


def clock(losses: list[float], *, usual: int = 100, n: float = 1000) -> Clock:
    """Return a clock that has seen these losses at the first evaluations."""
    seen = Clock(usual, n)
    for step, loss in zip(evaluation_steps(10**6), losses, strict=False):
        seen.note(step, loss)
    return seen


def test_the_clock_takes_the_lowest_loss_and_waits_for_none_later() -> None:
    """It ends once it has gone 2.5 times as far as its best step, and to the usual steps."""
    falling_then_rising = [0.6, 0.5, 0.4, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    steps = evaluation_steps(10**6)

    assert clock(falling_then_rising).best() == steps[3] == 39
    over = [clock(falling_then_rising[:k]).over() for k in range(1, 11)]
    assert over == [step >= 100 for step in steps[:10]]  # 2.5 · 39 comes before 100
    assert not clock(falling_then_rising, usual=20_000).over()


def test_patience_is_a_multiple_of_the_best_step() -> None:
    """With 1.5 the second evaluation after the best is the last, with 2.5 the fifth."""
    losses = [0.6, 0.55, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, *[0.2] * 10]
    steps = evaluation_steps(10**6)
    for patience, last in ((1.5, 12), (2.5, 15)):
        one = Clock(200, 1000, patience=patience)
        for step, loss in zip(steps, losses, strict=False):
            one.note(step, loss)
            if one.over():
                break
        assert (one.best(), one.steps[-1]) == (steps[10], steps[last])


def test_few_rows_leave_the_clock_near_the_usual_steps() -> None:
    """Between equal losses the prior decides; a small gain far away needs many rows."""
    flat = [0.5] * 16
    far = [0.5] * 4 + [0.49] * 3 + [0.5] * 12

    assert clock(flat, usual=119).best() == 119
    assert clock(far, usual=500, n=50).best() == evaluation_steps(10**6)[14] == 455
    assert clock(far, usual=500, n=5000).best() in evaluation_steps(10**6)[4:7]


def test_a_loss_that_is_not_finite_is_never_best() -> None:
    """A member that diverges after a good evaluation does not take it away."""
    assert clock([0.5, 0.4, 0.5, float("nan"), float("inf")]).best() == 25


def test_what_may_yet_be_best_is_kept() -> None:
    """The best step at the end is always among those wanted when it was last made up."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        losses = rng.random(12)
        seen, kept = Clock(100, 1000), set[int]()
        for step, loss in zip(evaluation_steps(10**6), losses, strict=False):
            seen.note(step, loss)
            kept = {*kept, step} & seen.wanted()
            assert seen.best() in kept
        assert len(kept) <= 2


@given(
    classes=st.lists(st.integers(0, 3), min_size=16, max_size=80),
    n_folds=st.integers(2, 8),
    seed=st.integers(0, 99),
)
def test_folds_are_equal_and_share_every_class(classes: list[int], n_folds: int, seed: int) -> None:
    """Sizes differ by at most one, and so do the numbers of each class; the seed decides."""
    values = np.array(classes)
    fold = deal_folds(values, n_folds, seed)
    for chosen in (np.ones(len(values), bool), *(values == c for c in range(4))):
        sizes = np.bincount(fold[chosen], minlength=n_folds)
        assert np.ptp(sizes) <= 1

    assert np.array_equal(fold, deal_folds(values, n_folds, seed))
    assert fold[np.argmin(fold)] == 0  # the first fold is never smaller than another
    assert np.bincount(fold)[0] == np.bincount(fold).max()


class Fixed(Clock):
    """A clock that has always known the best step."""

    def best(self) -> int:
        """Return it."""
        return 31

    def wanted(self) -> set[int]:
        """Want it alone, once it has come."""
        return {31}


def trained(given_rows: WeightedRows, steps: int) -> TrainedMembers:
    """Train five members that hold out a quarter each, and keep the weights after 31 steps."""
    hold_out = HoldOut(deal_folds(sample().target[:, 0], 4, 0), 4, Fixed(10**6, 1e9))
    recipe = Recipe(**vars(RECIPE) | {"steps": steps})
    return train_members(recipe, given_rows, range(5), hold_out=hold_out)


def test_the_weights_kept_are_those_of_the_best_step() -> None:
    """Of all members: training that ends there gives the same bits."""
    kept, ended = trained(sample(), 60), trained(sample(), 31)

    assert kept.steps == ended.steps == 31
    assert (kept.evaluated_at, ended.evaluated_at) == ([20, 25, 31, 39, 49, 60], [20, 25, 31])
    assert kept.losses.shape == (6, 5)
    for one, other in zip(kept.weights, ended.weights, strict=True):
        assert np.array_equal(one, other)


def test_a_member_does_not_learn_from_the_rows_that_it_holds_out() -> None:
    """Other labels for them change every member but those that hold them out."""
    rows = sample()
    fold = deal_folds(rows.target[:, 0], 4, 0)
    other = np.where((fold == 1)[:, None], 1 - rows.target, rows.target)
    before, after = (
        trained(WeightedRows(rows.x, y, rows.weight), 31) for y in (rows.target, other)
    )
    pairs = zip(before.weights[0], after.weights[0], strict=True)

    assert [np.array_equal(*pair) for pair in pairs] == [False, True, False, False, False]


def test_noise_is_left_soon_and_a_clear_table_learned_long() -> None:
    """The clock goes by the table: a product of two columns, and coin tosses."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 4))
    choices: dict[str, Any] = {"width": 64, "n_members": 4, "random_state": 0}
    noise = SparseMLPClassifier(**choices).fit(x, rng.integers(0, 2, 400))
    clear = SparseMLPClassifier(**choices).fit(x, x[:, 0] * x[:, 1] > 0)
    numbers = SparseMLPRegressor(**choices).fit(x, x[:, 0] * x[:, 1])

    assert noise.n_iter_ <= 2 * usual_steps(400) < min(clear.n_iter_, numbers.n_iter_)
    for fitted in (noise, clear, numbers):
        assert fitted.validation_loss_curve_ is not None
        assert fitted.evaluated_at_.shape == fitted.loss_curve_.shape
        assert fitted.evaluated_at_.shape == fitted.validation_loss_curve_.shape
        assert fitted.n_iter_ in fitted.evaluated_at_
    whole = SparseMLPClassifier(**choices, early_stopping=False).fit(x, x[:, 0] > 0)
    assert whole.validation_loss_curve_ is None
    assert whole.n_iter_ == whole.evaluated_at_[-1] == usual_steps(400)


def test_few_rows_are_all_learned_from() -> None:
    """Fewer than two rows a fold: nothing is held out, and the steps are the usual ones."""
    x = np.arange(15.0)[:, None]
    fitted = SparseMLPRegressor(width=4, n_members=2, random_state=0).fit(x, x[:, 0])

    assert fitted.validation_loss_curve_ is None
    assert fitted.n_iter_ == usual_steps(15)
