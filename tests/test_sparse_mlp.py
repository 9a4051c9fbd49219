"""The estimators, as guests in scikit-learn's house."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import petridish
from petridish import SparseMLPClassifier, SparseMLPRegressor
from petridish.estimator.dropout import DropoutMembers
from petridish.estimator.features import Columns
from petridish.estimator.fitting import (
    STACK,
    Recipe,
    Sample,
    auto_batch,
    auto_rate,
    train_members,
)
from petridish.estimator.importance import movement, named_importances, shares
from petridish.estimator.relevance import relevance, weighing_members
from petridish.estimator.start import AsIn, AtData
from petridish.figures.importance import importance_bars, plot_importances
from petridish.models import MLP, Sparse
from petridish.naming import UserError
from petridish.training.optimisers import AdamW

Floats = NDArray[np.float64]
SMALL: dict[str, Any] = {"width": 32, "n_members": 2, "learning_rate": 1e-2, "random_state": 0}
CHECKED: dict[str, Any] = SMALL | {"learning_rate": 3e-2, "epochs": 15}
QUICK: dict[str, Any] = {"width": 16, "n_members": 3, "epochs": 3, "random_state": 0}


@parametrize_with_checks(
    [SparseMLPClassifier(**CHECKED), SparseMLPRegressor(**CHECKED)], xfail_strict=True
)
def test_scikit_learn_agrees(
    estimator: BaseEstimator, check: Callable[[BaseEstimator], None]
) -> None:
    """Both pass every one of scikit-learn's own checks."""
    check(estimator)


def products(n_rows: int, n_columns: int = 6, seed: int = 0) -> tuple[Floats, NDArray[np.int64]]:
    """Draw a table whose class is the sign of the product of its first two columns."""
    x = np.random.default_rng(seed).normal(size=(n_rows, n_columns))
    return x, (x[:, 0] * x[:, 1] > 0).astype(np.int64)


def both(**parameters: Any) -> list[Any]:
    """Give a classifier and a regressor."""
    return [SparseMLPClassifier(**parameters), SparseMLPRegressor(**parameters)]


def scores(estimator: Any, x: Any) -> Floats:
    """Give what an estimator says in numbers."""
    numbers: Floats = (
        estimator.predict_proba(x) if hasattr(estimator, "classes_") else estimator.predict(x)
    )
    return numbers


# Good defaults.


def test_defaults_learn_what_a_line_cannot() -> None:
    """Out of the box, products of two columns in 300 rows are learned to 15 % error."""
    x, y = products(1300)
    classifier = SparseMLPClassifier(random_state=0).fit(x[:300], y[:300])
    line = LogisticRegression().fit(x[:300], y[:300])

    assert line.score(x[300:], y[300:]) < 0.6
    assert classifier.score(x[300:], y[300:]) > 0.85


def test_regression_learns_what_a_line_cannot() -> None:
    """Out of the box, x0 x1 + x2 is learned to R² > 0.75, in whatever units y has."""
    x, _ = products(1300)
    y = 1e9 + 1e6 * (x[:, 0] * x[:, 1] + x[:, 2])
    regressor = SparseMLPRegressor(random_state=0).fit(x[:300], y[:300])

    assert LinearRegression().fit(x[:300], y[:300]).score(x[300:], y[300:]) < 0.6
    assert regressor.score(x[300:], y[300:]) > 0.75


def test_many_classes() -> None:
    """Three flowers; probabilities add up to 1, and the largest is what is predicted."""
    x, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    classifier = SparseMLPClassifier(width=64, n_members=2, random_state=0)

    assert cross_val_score(classifier, x, names, cv=3).mean() > 0.93
    classifier.fit(x, names)
    probabilities = classifier.predict_proba(x)
    assert probabilities.shape == (150, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert np.array_equal(classifier.predict(x), classifier.classes_[probabilities.argmax(axis=1)])
    assert classifier.classes_.tolist() == ["setosa", "versicolor", "virginica"]


def test_two_classes_have_log_odds() -> None:
    """Their sign is the prediction, and they are those of `predict_proba`."""
    x, y = products(60)
    classifier = SparseMLPClassifier(**QUICK).fit(x, y)
    odds, probabilities = classifier.decision_function(x), classifier.predict_proba(x)

    assert odds.shape == (60,)
    np.testing.assert_allclose(odds, np.log(probabilities[:, 1] / probabilities[:, 0]))
    assert np.array_equal(classifier.predict(x), (odds > 0).astype(int))


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


@pytest.mark.parametrize("preprocessing", ["standard", "quantile", "none"])
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


# Tables of all kinds.


def test_names_of_columns_are_kept() -> None:
    """Tables of pandas and Polars give NumPy's bits, and their names; a wrong name is refused."""
    x, y = products(60)
    names = [f"column {letter}" for letter in "abcdef"]
    for estimator in both(**QUICK):
        plain = clone(estimator).fit(x, y)
        assert not hasattr(plain, "feature_names_in_")
        for table in (pd.DataFrame(x, columns=names), pl.DataFrame(x, schema=names)):
            fitted = clone(estimator).fit(table, y)

            assert fitted.feature_names_in_.tolist() == names
            assert fitted.n_features_in_ == 6
            assert np.array_equal(scores(fitted, table), scores(plain, x))
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(pd.DataFrame(x, columns=names[::-1]))


def test_labels_may_come_in_series() -> None:
    """Series of pandas and Polars: strings, Booleans and categories are classes."""
    x, y = products(60)
    words = np.array(["no", "yes"])[y]
    for labels, classes in (
        (pd.Series(words), ["no", "yes"]),
        (pd.Series(words, dtype="category"), ["no", "yes"]),
        (pl.Series(words), ["no", "yes"]),
        (y.astype(bool), [False, True]),
        (y * 5 - 2, [-2, 3]),
    ):
        fitted = SparseMLPClassifier(**QUICK).fit(x, labels)

        assert fitted.classes_.tolist() == classes
        assert set(fitted.predict(x)) <= set(classes)


def test_gaps_of_tables_are_missing_values() -> None:
    """Polars' null and pandas' NA are NaN."""
    x, y = products(60)
    x = x.round(1)
    x[5:15, 2] = np.nan
    plain = SparseMLPClassifier(**QUICK).fit(x, y)
    polars = pl.DataFrame(x).fill_nan(None)
    pandas = pd.DataFrame(x, columns=polars.columns).astype("Float64")
    assert polars.null_count()["column_2"].item() == pandas["column_2"].isna().sum() == 10

    for table in (polars, pandas):
        fitted = SparseMLPClassifier(**QUICK).fit(table, y)
        assert np.array_equal(fitted.predict_proba(table), plain.predict_proba(x))


def test_float32_and_float64_agree() -> None:
    """Numbers that both hold give the same bits."""
    x, y = products(60)
    x = x.astype(np.float32)
    for estimator in both(**QUICK):
        single, double = clone(estimator).fit(x, y), clone(estimator).fit(x.astype(np.float64), y)

        assert np.array_equal(scores(single, x), scores(double, x.astype(np.float64)))
        assert scores(single, x).dtype == np.float64


def test_missing_values_can_be_the_signal() -> None:
    """A class that shows only in where values are missing is found, and credited to the column."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 4)), rng.integers(0, 2, 200)
    x[y == 1, 2] = np.nan
    classifier = SparseMLPClassifier(**SMALL).fit(x, y)

    assert classifier.score(x, y) == 1.0
    assert classifier.feature_importances_.argmax() == 2


def test_infinite_values_are_refused() -> None:
    """As scikit-learn does, in fit and in predict."""
    x, y = products(30)
    bad = x.copy()
    bad[3, 3] = np.inf
    for estimator in both(**QUICK):
        with pytest.raises(ValueError, match="Input X contains infinity"):
            clone(estimator).fit(bad, y)
        with pytest.raises(ValueError, match="Input X contains infinity"):
            estimator.fit(x, y).predict(bad)


def test_constant_and_huge_columns_do_no_harm() -> None:
    """Beside 0s, 1e300s, −1e30s and the smallest numbers, the network learns the same bits."""
    x, y = products(200)
    rng = np.random.default_rng(1)
    useless = np.tile([0.0, 1e300, -1e30, 5e-324], (200, 1))
    for estimator in both(**QUICK):
        plain = clone(estimator).fit(x, y)
        beside = clone(estimator).fit(np.hstack([useless, x]), y)
        huge = clone(estimator).fit(x * 2.0 ** rng.integers(-1000, 1000, 6), y)

        assert beside.feature_importances_[:4].tolist() == [0.0] * 4
        assert np.array_equal(scores(beside, np.hstack([useless, x])), scores(plain, x))
        assert all(map(np.array_equal, huge.weights_, plain.weights_))


def test_an_outlier_does_not_overflow() -> None:
    """One value of 1e30 in training, and others of 1e300 later, leave finite predictions."""
    x, y = products(100)
    x[7, 0] = 1e30
    later = np.full((3, 6), 1e300) * np.array([[1], [-1], [0]])
    for preprocessing in ("standard", "quantile", "none"):
        for estimator in both(**QUICK, preprocessing=preprocessing):
            assert np.isfinite(scores(estimator.fit(x, y), np.vstack([x, later]))).all()


def test_small_tables() -> None:
    """20 rows, more columns than rows, one column, two rows, and repeated rows are tables, too."""
    rng = np.random.default_rng(0)
    for n_rows, n_columns in ((20, 5), (20, 200), (30, 1), (2, 3)):
        x = rng.normal(size=(n_rows, n_columns))
        y = np.arange(n_rows) % 2
        for estimator in both(**QUICK):
            assert np.isfinite(scores(estimator.fit(x, y), x)).all()
    for estimator in both(**QUICK):
        same = estimator.fit(np.ones((20, 3)), np.arange(20) % 2)
        np.testing.assert_allclose(scores(same, np.ones((1, 3))), 0.5, atol=0.2)


def test_one_class_is_refused() -> None:
    """Also where the others have no weight; a single row has one class."""
    x, y = products(20)
    for rows, weight in ((slice(0, 1), None), (slice(None), y == y[0])):
        with pytest.raises(ValueError, match="class") as error:
            SparseMLPClassifier(**QUICK).fit(x[rows], y[rows], sample_weight=weight)
        assert str(error.value) == (
            "SparseMLPClassifier: the rows with a positive weight hold 1 class, "
            f"{y[0]}. Give rows of at least 2 classes."
        )


def test_a_single_row_is_a_constant() -> None:
    """A regressor that saw one row predicts its value."""
    one = SparseMLPRegressor(**QUICK).fit([[1.0, 2.0]], [7.0])

    assert one.predict([[1.0, 2.0], [5.0, 5.0]]).tolist() == [7.0, 7.0]


def test_a_constant_target_is_predicted_exactly() -> None:
    """Whatever its size."""
    x, _ = products(30)
    for value in (0.0, 0.1, -1e300):
        regressor = SparseMLPRegressor(**QUICK).fit(x, np.full(30, value))

        assert set(regressor.predict(x)) == {value}


def test_huge_targets() -> None:
    """Values near the largest number are learned as their small counterparts are."""
    x, _ = products(50)
    small = SparseMLPRegressor(**QUICK).fit(x, x[:, 0])
    huge = SparseMLPRegressor(**QUICK).fit(x, x[:, 0] * 2.0**1020)

    assert np.array_equal(np.ldexp(small.predict(x), 1020), huge.predict(x))


def test_several_targets() -> None:
    """One network predicts them all; one column is one target, with scikit-learn's warning."""
    x, _ = products(200)
    y = np.stack([x[:, 0], 1000 * x[:, 1] ** 2], axis=1)
    regressor = SparseMLPRegressor(**SMALL).fit(x, y)

    assert regressor.predict(x).shape == (200, 2)
    assert regressor.score(x, y) > 0.9
    for estimator in both(**QUICK):
        with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
            column = clone(estimator).fit(x, (x[:, :1] > 0).astype(int))
        assert np.array_equal(scores(column, x), scores(estimator.fit(x, x[:, 0] > 0), x))


# In scikit-learn's house.


def test_a_pipeline_and_a_grid() -> None:
    """Search over widths and sparsities behind a scaler whose output is a table."""
    x, y = products(80)
    pipeline = make_pipeline(StandardScaler(), SparseMLPClassifier(**QUICK))
    pipeline.set_output(transform="pandas")
    grid = GridSearchCV(
        pipeline,
        {
            "sparsemlpclassifier__width": np.array([4, 8]),
            "sparsemlpclassifier__sparsity": [1, "dense"],
        },
        cv=2,
    )
    grid.fit(pd.DataFrame(x, columns=list("abcdef")), y)

    assert len(grid.cv_results_["params"]) == 4
    last = grid.best_estimator_[-1]
    assert last.feature_names_in_.tolist() == list("abcdef")
    assert last.weights_[0].shape[1] == grid.best_params_["sparsemlpclassifier__width"]


def test_sample_weights_are_routed() -> None:
    """With metadata routing, cross-validation hands each fold its rows' weights."""
    x, y = products(60)
    weight = np.random.default_rng(0).integers(0, 3, 60)
    with config_context(enable_metadata_routing=True):
        estimator = SparseMLPClassifier(**QUICK).set_fit_request(sample_weight=True)
        estimator.set_score_request(sample_weight=False)
        found = cross_validate(
            estimator, x, y, cv=2, params={"sample_weight": weight}, return_estimator=True,
            return_indices=True,
        )  # fmt: skip
    for fitted, rows in zip(found["estimator"], found["indices"]["train"], strict=True):
        by_hand = SparseMLPClassifier(**QUICK).fit(x[rows], y[rows], sample_weight=weight[rows])
        assert np.array_equal(fitted.predict_proba(x), by_hand.predict_proba(x))


def test_categorical_columns_by_the_documented_recipe() -> None:
    """One-hot columns beside numbers, unknown categories included; importances have names."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"size": rng.normal(size=300), "colour": rng.choice(["red", "green", "blue"], 300)}
    )
    y = (table["size"] > 0) ^ (table["colour"] == "red")
    model = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["colour"]),
            remainder="passthrough",
        ),
        SparseMLPClassifier(**SMALL),
    )
    model.fit(table, y)

    assert model.score(table, y) > 0.97
    assert model.predict(pd.DataFrame({"size": [1.0], "colour": ["violet"]})).shape == (1,)
    names, values = named_importances(model)
    assert set(names[:1] + names[-1:]) == {"onehotencoder__colour_blue", "remainder__size"}
    found = dict(zip(names, values, strict=True))
    assert min(found, key=found.__getitem__) in (
        "onehotencoder__colour_green",
        "onehotencoder__colour_blue",
    )
    assert max(found, key=found.__getitem__) == "remainder__size"


def test_a_pickle_holds_the_network_and_no_rows() -> None:
    """Of 2000 rows or 20 000: weights and at most 256 quantiles a column; it predicts the same."""
    sizes = []
    for n_rows in (2_000, 20_000):
        x, y = products(n_rows)
        for estimator in both(**QUICK | {"epochs": 1}):
            fitted = estimator.fit(x, y)
            text = pickle.dumps(fitted)
            held = sum(weight.nbytes for weight in fitted.weights_)

            assert len(text) < held + 6 * 256 * 16 + 4_000
            assert np.array_equal(scores(pickle.loads(text), x), scores(fitted, x))
            sizes.append(len(text))
    assert sizes[2] < 1.1 * sizes[0]  # the smaller table has fewer distinct tails


def test_init_only_stores() -> None:
    """What is given is kept as the same object, however wrong, until fit."""
    odd: dict[str, Any] = {name: object() for name in SparseMLPClassifier().get_params()}
    kept = SparseMLPClassifier(**odd).get_params()

    assert all(kept[name] is value for name, value in odd.items())


def test_importing_petridish_loads_neither_torch_nor_scikit_learn() -> None:
    """The estimators come when they are asked for; an unknown name is an AttributeError."""
    script = (
        "import sys, petridish\n"
        "assert not {'torch', 'sklearn'} & set(sys.modules)\n"
        "petridish.SparseMLPClassifier, petridish.estimator.SparseMLPRegressor\n"
        "assert {'torch', 'sklearn'} <= set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)

    for module in (petridish, petridish.estimator):
        with pytest.raises(AttributeError, match="has no attribute 'DenseMLP'"):
            module.DenseMLP  # noqa: B018


# Training.


def test_what_is_chosen_from_the_number_of_rows() -> None:
    """12 √n steps; batches from 32 to 256; rates in proportion to √n, up to 2e-3."""
    assert [auto_batch(n) for n in (2, 100, 5000, 10**6)] == [32, 32, 100, 256]
    assert [auto_rate(n) for n in (100, 1600, 10**6)] == pytest.approx([5e-4, 2e-3, 2e-3])
    for n_rows, steps in ((10, 38), (100, 120), (1000, 380)):
        x, y = products(n_rows)
        whole = SparseMLPRegressor(width=4, n_members=1, early_stopping=False).fit(x, y)
        assert whole.n_iter_ == steps


def test_many_copies_of_few_rows_are_many_rows() -> None:
    """Two columns of 0 and 1 give eight distinct rows; 2000 of them are learned as 2000."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (2000, 2)).astype(np.float64)
    chance = np.array([[0.1, 0.4], [0.6, 0.2]])[x[:, 0].astype(int), x[:, 1].astype(int)]
    y = (rng.random(2000) < chance).astype(int)
    classifier = SparseMLPClassifier(width=64, n_members=2, random_state=0).fit(x, y)

    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    shares = [y[(x == corner).all(axis=1)].mean() for corner in corners]
    np.testing.assert_allclose(classifier.predict_proba(corners)[:, 1], shares, atol=0.05)


def test_neurons_start_on_relevant_columns_and_bend_at_rows() -> None:
    """±1 on two columns, drawn by the members' factors; each bias puts a row on the bend."""
    rows = np.random.default_rng(0).normal(size=(50, 5)).astype(np.float32)
    factors = np.array([[1, 1, 1, 1, 1], [1, 1, 0.5, 0.1, 0.1]], np.float32)
    drawn = AtData(2).draw(MLP(3000).parameters(5, 1), [7, 8], rows, factors)
    weight, bias = drawn[0], drawn[1]

    assert set(np.unique(weight)) == {-1, 0, 1}
    assert ((weight != 0).sum(axis=2) == 2).all()
    uses = (weight != 0).mean(axis=1)
    np.testing.assert_allclose(uses[0], 0.4, atol=0.03)  # 3 standard errors
    assert (np.diff(uses[1])[[1, 2]] < -0.1).all()
    for member in range(2):
        at_rows = (weight[member] * factors[member]) @ rows.T + bias[member][:, None]
        assert (np.abs(at_rows).min(axis=1) < 1e-5).all()


def test_relevance_is_what_a_column_says_alone() -> None:
    """A strong column has 1, a weaker one less, noise 0.1 or little more; a class a number."""
    x = np.random.default_rng(0).normal(size=(400, 6)).astype(np.float32)
    y = (x[:, 2] + 0.5 * x[:, 4] > 0).astype(np.float32)[:, None]
    factor = relevance(x, y, np.ones(400), 400)

    assert factor[2] == 1.0
    assert 0.3 < factor[4] < 0.7
    assert factor[[0, 1, 3, 5]].max() < 0.3
    assert factor.min() >= 0.1
    both_classes = np.hstack([y, 1 - y])
    np.testing.assert_allclose(relevance(x, both_classes, np.ones(400), 400), factor)


def test_relevance_does_not_hide_a_parity() -> None:
    """Where no column says anything alone, no column is held back; nor in too few rows."""
    rng = np.random.default_rng(0)
    held_back = 0
    for _ in range(50):
        x = rng.normal(size=(300, 10)).astype(np.float32)
        y = (x[:, :1] * x[:, 1:2] > 0).astype(np.float32)
        held_back += relevance(x, y, np.ones(300), 300).min() < 0.5
    assert held_back <= 10  # by design half of them differ from 1 at all
    assert relevance(x[:5], y[:5], np.ones(5), 5).tolist() == [1.0] * 10
    assert relevance(x, np.ones_like(y), np.ones(300), 300).tolist() == [1.0] * 10


def test_relevance_by_hand() -> None:
    """Two groups of six: means 0 and 1/3 of a target with variance 5/36."""
    x = np.repeat([0.0, 1.0], 6).astype(np.float32)[:, None]
    y = np.array([0] * 10 + [1] * 2, np.float32)[:, None]
    explained = (1 / 6) ** 2 / (5 / 36)
    adjusted = 1 - (1 - explained) * 11 / 10
    beside = np.hstack([x, np.tile([0.0, 1.0], 6).astype(np.float32)[:, None]])

    assert relevance(x, y, np.ones(12), 12).tolist() == [1.0]
    assert adjusted < (6.63 - 5) / 12  # χ²(5) exceeds 6.63 with the chance 1/4
    assert relevance(beside, y, np.ones(12), 12).tolist() == [1.0, 1.0]


def test_a_share_of_the_members_weighs_its_columns() -> None:
    """The first and others, evenly."""
    for n_members, share, weighing in (
        (4, 0.5, [True, False, True, False]),
        (3, 0.5, [True, False, True]),
        (3, 0.0, [False, False, False]),
        (2, 1.0, [True, True]),
        (1, 0.5, [True]),
        (4, 0.25, [True, False, False, False]),
    ):
        assert weighing_members(n_members, share).tolist() == weighing


def test_members_that_weigh_hold_the_factors() -> None:
    """Untrained, their first weights are the factors, and the other members' are ±1."""
    x, _ = products(300)
    still = SparseMLPRegressor(**QUICK, learning_rate=0.0).fit(x, x[:, 2] + 0.2 * x[:, 3])
    sizes = np.abs(still.weights_[0])

    assert still.relevance_[2] == 1.0
    assert still.relevance_.min() < 0.3
    for member in (0, 2):
        used = sizes[member] != 0
        expected = np.broadcast_to(still.relevance_, used.shape)[used]
        np.testing.assert_allclose(sizes[member][used], expected, rtol=1e-6)
    assert set(np.unique(sizes[1])) == {0.0, 1.0}


def test_dropout_silences_as_many_as_it_says() -> None:
    """Masks have the asked share of silence, and follow from a member's seed alone."""
    start = AsIn(Sparse(2)).init.draw(MLP(64, (64,)).parameters(4, 1), [3, 4])
    members = DropoutMembers(start, loss="square", optimiser=AdamW(), dropout=0.3, seeds=[3, 4])
    alone = DropoutMembers(
        [part[1:] for part in start], loss="square", optimiser=AdamW(), dropout=0.3, seeds=[4]
    )
    mask, again = members._mask(torch.Size((2, 500, 64))), members._mask(torch.Size((2, 500, 64)))

    assert mask.float().mean().item() == pytest.approx(0.7, abs=0.01)
    assert not torch.equal(mask, again)
    assert torch.equal(alone._mask(torch.Size((1, 500, 64)))[0], mask[1])


def test_slopes_under_dropout_are_those_of_autograd() -> None:
    """Given the masks, the backward pass by hand is the derivative of the masked network."""
    rng = np.random.default_rng(0)
    start = AsIn(Sparse(2)).init.draw(MLP(8, (8,)).parameters(4, 1), [3, 4])
    x = torch.from_numpy(rng.normal(size=(20, 4)).astype(np.float32))
    target = torch.from_numpy(rng.normal(size=(20, 1)).astype(np.float32))
    slopes = dropped(start).gradients(x, target)

    again = dropped(start)
    weights = [weight.clone().requires_grad_() for weight in again.weights]
    h = x.expand(2, 20, 4)
    for layer in range(2):
        h = (h @ weights[2 * layer].mT + weights[2 * layer + 1].unsqueeze(1)).relu()
        h = h * again._mask(h.shape) * (256 / (256 - 128))
    outputs = h @ weights[4].mT + weights[5].unsqueeze(1)
    (0.5 * (outputs - target).square()).mean(dim=1).sum().backward()  # type: ignore[no-untyped-call]

    for slope, weight in zip(slopes, weights, strict=True):
        torch.testing.assert_close(slope, weight.grad)


def dropped(start: list[NDArray[np.float32]]) -> DropoutMembers:
    """Give two members with half of their neurons silent."""
    return DropoutMembers(start, loss="square", optimiser=AdamW(), dropout=0.5, seeds=[3, 4])


def test_a_failure_in_one_stack_ends_the_others() -> None:
    """What a look's report raises comes out of the fit, and soon; so does Ctrl-C."""
    x, y = products(64)
    sample = Sample(x.astype(np.float32), y[:, None].astype(np.float32), np.ones(64, np.float32))
    recipe = Recipe(MLP(8), AtData(2), "logistic", 1e-3, 0.0, "cosine", 64, 10**9)

    def interrupt(steps: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_members(recipe, sample, range(6), steps_done=interrupt)


def test_the_examples_in_the_documentation_run() -> None:
    """As they are printed."""
    import doctest

    from petridish.estimator import sparse_mlp

    found = doctest.testmod(sparse_mlp)
    assert found.attempted >= 15
    assert found.failed == 0


def test_rates_fall_as_the_schedule_says() -> None:
    """From the peak to 0, halfway by half; or not at all."""
    recipe = Recipe(MLP(8), AsIn(Sparse(2)), "logistic", 0.4, 0.0, "cosine", 64, 30)
    rates = {
        name: [Recipe(**vars(recipe) | {"schedule": name}).rate(p) for p in (0.0, 0.5, 0.75)]
        for name in ("cosine", "linear", "constant")
    }

    assert rates["cosine"] == pytest.approx([0.4, 0.2, 0.2 * (1 - np.sqrt(0.5))])
    assert rates["linear"] == pytest.approx([0.4, 0.2, 0.1])
    assert rates["constant"] == [0.4] * 3


def test_progress_is_shown_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    """A bar on standard error with `verbose`, silence without."""
    x, y = products(40)
    SparseMLPClassifier(**QUICK).fit(x, y)
    assert capsys.readouterr() == ("", "")
    SparseMLPClassifier(**QUICK, verbose=True).fit(x, y)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "SparseMLPClassifier" in shown.err
    assert "100%" in shown.err


def test_divergence_is_an_error() -> None:
    """A rate far too high is named."""
    x, y = products(40)
    with pytest.raises(UserError) as error:
        SparseMLPRegressor(**QUICK, learning_rate=1e30).fit(x, y)

    assert str(error.value) == (
        "SparseMLPRegressor: training diverged with learning_rate=1e+30. Give a smaller one."
    )


@pytest.mark.parametrize(
    ("parameter", "value", "sentence"),
    [
        ("width", 0, "Give a whole number of at least 1."),
        ("width", 2.5, "Give a whole number of at least 1."),
        ("depth", True, "Give a whole number of at least 1."),
        ("n_members", -1, "Give a whole number of at least 1."),
        ("epochs", "many", "Give a whole number of at least 1, or 'auto'."),
        ("early_stopping", "no", "Give True or False."),
        ("n_folds", 1, "Give a whole number of at least 2."),
        ("dropout", 1.0, "Give a number from 0 to below 1."),
        ("relevance", 1.5, "Give a number from 0 to 1."),
        ("relevance", "all", "Give a number from 0 to 1."),
        ("kinks", "rows", "Known: data, random."),
        ("sparsity", "thin", "Give a whole number of at least 1, or 'dense'."),
        ("sparsity", 0, "Give a whole number of at least 1, or 'dense'."),
        ("batch_size", "all", "Give a whole number of at least 1, or 'auto'."),
        ("learning_rate", -0.1, "Give a finite number of at least 0, or 'auto'."),
        ("learning_rate", float("nan"), "Give a finite number of at least 0, or 'auto'."),
        ("weight_decay", float("inf"), "Give a finite number of at least 0."),
        ("schedule", "cosin", "Did you mean cosine?"),
        ("preprocessing", "standard scaler", "Did you mean standard?"),
    ],
)
def test_mistakes_are_named(parameter: str, value: object, sentence: str) -> None:
    """What was wrong, what was given, what to do."""
    x, y = products(20)
    for estimator in both(**{**QUICK, parameter: value}):
        with pytest.raises(UserError) as error:
            estimator.fit(x, y)
        assert str(error.value) == f"{type(estimator).__name__}: {parameter}={value!r}. {sentence}"


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
