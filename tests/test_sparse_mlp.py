"""The estimators, as guests in scikit-learn's house."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import petridish
from petridish import SparseMLPClassifier, SparseMLPRegressor
from petridish.estimator.movement import named_importances
from tests.table_estimators import CHECKED, QUICK, SMALL, both, products, scores


@parametrize_with_checks([SparseMLPClassifier(**CHECKED), SparseMLPRegressor(**CHECKED)])
def test_scikit_learn_agrees(
    estimator: BaseEstimator, check: Callable[[BaseEstimator], None]
) -> None:
    """Both pass every one of scikit-learn's own checks."""
    check(estimator)


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
    subprocess.run([sys.executable, "-c", script], check=True, timeout=600)

    for module in (petridish, petridish.estimator):
        with pytest.raises(AttributeError, match="has no attribute 'DenseMLP'"):
            module.DenseMLP  # noqa: B018
