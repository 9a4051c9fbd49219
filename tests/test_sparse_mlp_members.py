"""The estimators' members: the same bits, weights of rows, training, and what was found."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate

from petridish import SparseMLPClassifier, SparseMLPRegressor
from petridish.errors import UserError
from petridish.estimator.features import Columns
from petridish.estimator.fitting import STACK
from petridish.estimator.movement import movement, shares, weighted_variance
from petridish.figures.importance import importance_bars, plot_importances
from tests.table_estimators import QUICK, SMALL, both, products, scores

# Members.


def test_members_are_averaged() -> None:
    """The ensemble's probability is the mean over its members, each a plain ReLU network."""
    x, y = products(60)
    classifier = SparseMLPClassifier(**QUICK, depth=2).fit(x, y)
    inputs = classifier.columns_.inputs(x).astype(np.float64)
    each = []
    for member in range(3):
        hidden = inputs
        weights = [w[member].astype(np.float64) for w in classifier.weights_]
        for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
            hidden = np.maximum(hidden @ weight.T + bias, 0)
        each.append(1 / (1 + np.exp(-(hidden @ weights[-2].T + weights[-1]))))

    np.testing.assert_allclose(classifier.predict_proba(x)[:, 1:], np.mean(each, axis=0))


def test_more_members_leave_the_first_as_they_were() -> None:
    """Member i depends on its seed alone: an ensemble of 2 is the beginning of one of 6."""
    x, y = products(60)
    few = SparseMLPClassifier(**QUICK | {"n_members": STACK}).fit(x, y)
    many = SparseMLPClassifier(**QUICK | {"n_members": 3 * STACK}).fit(x, y)

    for first, more in zip(few.weights_, many.weights_, strict=True):
        assert np.array_equal(first, more[:STACK])


def test_the_first_layer_starts_sparse() -> None:
    """Without training, each neuron has `sparsity` nonzero weights; more than columns is cut."""
    x, y = products(60)
    for sparsity, nonzero in ((1, 1), (2, 2), (99, 6), ("dense", 6)):
        still = SparseMLPClassifier(
            **QUICK | {"epochs": 1, "sparsity": sparsity}, learning_rate=0.0
        ).fit(x, y)

        assert set((still.weights_[0] != 0).sum(axis=2).ravel()) == {nonzero}


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_depths(depth: int) -> None:
    """Depth counts hidden layers of the same width."""
    x, y = products(60)
    for estimator in both(**QUICK, depth=depth):
        weights = estimator.fit(x, y).weights_

        assert [w.shape[1] for w in weights[::2]] == [16] * depth + [1]


# The same bits.


def test_the_same_seed_gives_the_same_bits() -> None:
    """Weights and predictions; another seed gives others."""
    x, y = products(300)
    for estimator in both(**QUICK, batch_size=32):
        first, second = clone(estimator).fit(x, y), clone(estimator).fit(x, y)
        other = clone(estimator).set_params(random_state=1).fit(x, y)

        assert np.array_equal(scores(first, x), scores(second, x))
        assert not np.array_equal(scores(first, x), scores(other, x))


def test_the_number_of_threads_does_not_matter() -> None:
    """One, two or three threads give the same bits, and the caller's number comes back."""
    x, y = products(5000)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            fitted = SparseMLPClassifier(**QUICK | {"n_members": 5, "epochs": 2}).fit(x, y)
            found.append(fitted.predict_proba(x))  # in more than one piece
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)

    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_fits_side_by_side_give_the_same_bits() -> None:
    """Four fits in four threads are four fits in turn, and PyTorch's threads come back."""
    x, y = products(200)
    before = torch.get_num_threads()
    alone = SparseMLPClassifier(**QUICK).fit(x, y).predict_proba(x)
    fitted = [SparseMLPClassifier(**QUICK) for _ in range(4)]
    threads = [threading.Thread(target=each.fit, args=(x, y)) for each in fitted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(np.array_equal(each.predict_proba(x), alone) for each in fitted)
    assert torch.get_num_threads() == before


def test_cross_validation_in_two_processes_gives_the_same_bits() -> None:
    """`n_jobs` changes where folds are fitted, not what comes out."""
    x, y = products(120)
    one, two = (
        cross_validate(
            SparseMLPClassifier(**QUICK, batch_size=16), x, y, cv=2, n_jobs=n_jobs,
            scoring="neg_log_loss", return_estimator=True,
        )
        for n_jobs in (1, 2)
    )  # fmt: skip

    assert np.array_equal(one["test_score"], two["test_score"])
    for ours, theirs in zip(one["estimator"], two["estimator"], strict=True):
        assert all(map(np.array_equal, ours.weights_, theirs.weights_))


def test_the_order_of_rows_does_not_matter() -> None:
    """Rows are a set: shuffled, they give the same bits."""
    x, y = products(80)
    order = np.random.default_rng(1).permutation(80)
    for estimator in both(**QUICK, batch_size=16):
        assert np.array_equal(
            scores(clone(estimator).fit(x, y), x),
            scores(clone(estimator).fit(x[order], y[order]), x),
        )


# Weights.


@pytest.mark.parametrize("preprocessing", ["both", "quantile", "standard", "none"])
@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_weight_is_a_number_of_copies(preprocessing: str, early_stopping: bool) -> None:  # noqa: FBT001
    """Bit for bit, also with minibatches, gaps, balanced classes and held-out rows."""
    x, y = products(90)
    x[np.random.default_rng(3).random(x.shape) < 0.1] = np.nan
    weight = np.random.default_rng(2).integers(0, 4, 90)
    choices = {"preprocessing": preprocessing, "early_stopping": early_stopping, "batch_size": 16}
    for estimator in both(**QUICK, **choices):
        if isinstance(estimator, SparseMLPClassifier):
            estimator.set_params(class_weight="balanced")
        weighted = clone(estimator).fit(x, y, sample_weight=weight)
        copied = clone(estimator).fit(x.repeat(weight, axis=0), y.repeat(weight))

        assert np.array_equal(scores(weighted, x), scores(copied, x))


def test_class_weights_move_the_boundary() -> None:
    """Of a rare class, "balanced" finds more; a dict with the same factors gives the same bits."""
    rng = np.random.default_rng(0)
    y = np.array(["common"] * 270 + ["rare"] * 30)
    x = rng.normal(size=(300, 2)) + 1.2 * (y == "rare")[:, None]
    plain, balanced, by_hand = (
        SparseMLPClassifier(**SMALL | {"epochs": 20}, class_weight=choice).fit(x, y)
        for choice in (None, "balanced", {"common": 300 / 540, "rare": 300 / 60})
    )

    assert (balanced.predict(x) == "rare").sum() > 1.5 * (plain.predict(x) == "rare").sum()
    assert np.array_equal(balanced.predict_proba(x), by_hand.predict_proba(x))


def test_weights_of_zero_are_refused_and_great_ones_are_not() -> None:
    """All zero is an error; 1e308 for all is as good as 1."""
    x, y = products(40)
    with pytest.raises(ValueError, match="zero"):
        SparseMLPClassifier(**QUICK).fit(x, y, sample_weight=np.zeros(40))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        SparseMLPClassifier(**QUICK).fit(x, y, sample_weight=-np.ones(40))
    great = SparseMLPClassifier(**QUICK).fit(x, y, sample_weight=np.full(40, 1e308))

    assert np.array_equal(
        great.predict_proba(x), SparseMLPClassifier(**QUICK).fit(x, y).predict_proba(x)
    )


# What the network found.


def test_movement_by_hand() -> None:
    """Σ |v_i|² (w_ij − w_ij(0))²: two members, two neurons, two inputs, two outputs."""
    start = np.zeros((2, 2, 2), np.float32)
    end = np.array([[[1, 0], [0, 2]], [[0, 0], [3, 0]]], np.float32)
    outgoing = np.array([[[1, 2], [0, 0]], [[5, 1], [5, 1]]], np.float32)

    assert movement(start, end, outgoing).tolist() == [1 * 1 + 2 * 9, 4 * 4]


def test_shares_add_gaps_to_their_column() -> None:
    """They add up to 1; a column without inputs has 0."""
    x = np.array([[1.0, 5.0, np.nan], [2.0, 5.0, 1.0], [3.0, 5.0, 0.0]])
    columns = Columns.fit(x, np.ones(3))

    assert shares(np.array([1.0, 2.0, 5.0]), columns).tolist() == [1 / 8, 0.0, 7 / 8]
    assert shares(np.zeros(3), columns).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("estimator", both(width=64, n_members=2, random_state=0))
def test_the_columns_that_matter_stand_out(estimator: Any) -> None:
    """Of 20 columns, the two whose product is the target take the most, by a wide margin."""
    x = np.random.default_rng(0).normal(size=(1500, 20))
    y = np.sign(x[:, 4] * x[:, 13])
    found = estimator.fit(x, y).feature_importances_
    order = np.argsort(-found)

    assert set(order[:2]) == {4, 13}
    assert found.sum() == pytest.approx(1)
    assert found[order[1]] > 2 * found[order[2]]


def test_importances_are_drawn() -> None:
    """The largest above, by name; long names lose their middle; a part says how much it holds."""
    names = [f"a column with a very long name, number {i}" for i in range(30)]
    values = np.arange(30) / np.arange(30).sum()
    figure = importance_bars(names, values, top=5)
    (axes,) = figure.axes

    assert [patch.get_width() for patch in axes.patches[:5]] == values[:-6:-1].tolist()  # type: ignore[attr-defined] # rectangles
    assert axes.get_yticklabels()[0].get_text() == "a column with a …name, number 29"
    assert axes.texts[0].get_text() == "6.7%"
    assert figure.get_supxlabel().startswith("5 of 30 columns, with 31% of all.")


def test_a_fitted_estimator_is_drawn() -> None:
    """In a figure of its own, or where the caller wants it."""
    x, y = load_diabetes(return_X_y=True, as_frame=True)
    regressor = SparseMLPRegressor(**QUICK).fit(x, y)
    figure = plot_importances(regressor)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    own = Figure()
    axes = own.subplots()

    assert sorted(labels) == sorted(x.columns)
    assert figure.get_supxlabel().startswith("All 10 columns.")
    assert plot_importances(regressor, top=3, ax=axes) is own
    assert len(axes.patches) >= 3


def test_what_has_no_importances_is_refused() -> None:
    """An unfitted one by scikit-learn's error, another estimator and a wrong `top` by ours."""
    x, y = products(20)
    with pytest.raises(NotFittedError):
        plot_importances(SparseMLPClassifier())
    with pytest.raises(UserError) as error:
        plot_importances(LogisticRegression().fit(x, y))
    assert str(error.value) == (
        "LogisticRegression has no importances. "
        "Give a SparseMLPClassifier or SparseMLPRegressor, or a pipeline that ends in one."
    )
    with pytest.raises(UserError) as error:
        plot_importances(SparseMLPClassifier(**QUICK).fit(x, y), top=0)
    assert str(error.value) == ("top=0 columns are to be drawn. Give a whole number of at least 1.")


def test_a_dropout_near_one_is_answered() -> None:
    """A chance that rounds to 1 leaves one neuron in 256, and no division by 0."""
    x, y = products(40)
    model = SparseMLPClassifier(**QUICK, dropout=0.9999).fit(x, y)

    assert np.isfinite(model.predict_proba(x)).all()


def test_of_four_members_two_see_each_view() -> None:
    """Weights of what a member does not see are 0; two views of a column have one relevance."""
    x, y = products(80)
    x[:, 2] = np.exp(3 * x[:, 2])
    fitted = SparseMLPClassifier(**QUICK | {"n_members": 8}).fit(x, y)
    used = (fitted.weights_[0] != 0).any(axis=1)  # (member, input)

    assert fitted.columns_.n_inputs == 12
    assert used.astype(int).tolist() == 2 * [
        *2 * [[1] * 6 + [0] * 6],
        *2 * [[0] * 6 + [1] * 6],
    ]
    assert np.array_equal(fitted.relevance_[:6], fitted.relevance_[6:])


def test_an_outlier_does_not_make_a_column_important() -> None:
    """Beside a value of 600 a column's deviations hardly vary, and weights on them go far."""
    x, y = products(400)
    x[7, 4] = 600.0
    fitted = SparseMLPClassifier(n_members=4, width=64, random_state=0).fit(x, y)

    assert {*np.argsort(fitted.feature_importances_)[-2:]} == {0, 1}
    assert fitted.feature_importances_[4] < 0.1


def test_the_variance_of_inputs_by_hand() -> None:
    """0, 0 and 3, the last with twice the weight: mean 1.5, variance 2.25; copies say the same."""
    inputs = np.array([[0.0], [0.0], [3.0]], np.float32)

    assert weighted_variance(inputs, np.array([1.0, 1.0, 2.0])) == pytest.approx([2.25])
    assert weighted_variance(inputs[[0, 1, 2, 2]], np.ones(4)) == pytest.approx([2.25])
