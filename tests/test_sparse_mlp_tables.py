"""The estimators on tables of all kinds."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning

from petridish import SparseMLPClassifier, SparseMLPRegressor
from petridish.errors import UserError
from tests.table_estimators import QUICK, SMALL, both, products, scores

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
    for preprocessing in ("both", "quantile", "standard", "none"):
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


def test_one_value_is_predicted_at_once() -> None:
    """There is nothing to learn: one step, and the value."""
    x, _ = products(200)
    fitted = SparseMLPRegressor(n_members=2).fit(x, np.full(200, 7.5))

    assert fitted.n_iter_ == 1
    assert np.array_equal(fitted.predict(x), np.full(200, 7.5))


def colours() -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """Make rows whose class depends on a number and a colour together; some have no colour."""
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], 300).astype(object)
    table = pd.DataFrame({"size": rng.normal(size=300), "colour": colour})
    y = np.array((table["size"] > 0) ^ (table["colour"] == "red"))
    table.loc[::30, "colour"] = None
    return table, y


def test_categories_of_a_frame_become_inputs() -> None:
    """Texts, pandas' categories and Polars' give the same bits; importances are the columns'."""
    table, y = colours()
    names = [None if pd.isna(name) else name for name in table["colour"]]
    dense = pl.DataFrame({"size": table["size"].to_list(), "colour": names})
    tables = (
        table,
        table.astype({"colour": "category"}),
        dense,
        dense.cast({"colour": pl.Categorical}),
    )
    fitted = [SparseMLPClassifier(**SMALL).fit(each, y) for each in tables]

    assert fitted[0].score(table, y) > 0.93
    for model, each in zip(fitted, tables, strict=True):
        assert np.array_equal(model.predict_proba(each), fitted[0].predict_proba(table))
        assert model.feature_names_in_.tolist() == ["size", "colour"]
        assert model.feature_importances_.shape == (model.n_features_in_,) == (2,)
        assert model.feature_importances_.sum() == pytest.approx(1)


def test_categories_that_fit_has_not_seen_are_no_error() -> None:
    """Neither in a row alone nor beside others; a frame without the column is refused."""
    table, y = colours()
    model = SparseMLPRegressor(**SMALL).fit(table, y.astype(float))
    new = pd.DataFrame({"size": [1.0, 1.0], "colour": ["violet", None]})

    assert np.isfinite(model.predict(new)).all()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(new.rename(columns={"colour": "shade"}))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_after_a_frame_with_categories_an_array_is_refused() -> None:
    """It has no names by which categories could be found."""
    table, y = colours()
    with pytest.raises(UserError) as refused:
        SparseMLPClassifier(**SMALL).fit(table, y).predict(table.to_numpy())
    assert str(refused.value) == (
        "The model was fitted to a data frame, and X has no column 'size'. Give a data frame with "
        "the columns size, colour."
    )


def test_rare_categories_share_an_input() -> None:
    """A column of 100 names has 30 inputs."""
    names = pd.DataFrame({"name": [f"n{min(i % 130, 99)}" for i in range(390)]})
    model = SparseMLPClassifier(**QUICK).fit(names, np.arange(390) % 2)

    assert model.categories_ is not None
    assert model.categories_.numbers(names).shape == (390, 30)
    assert model.columns_.n_features == 30


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_dates_in_a_frame_are_refused(kind: Any) -> None:
    """With what to do."""
    days = kind({"day": [datetime.date(2026, 1, 1 + i % 28) for i in range(40)]})
    if kind is pd.DataFrame:
        days["day"] = pd.to_datetime(days["day"])
    with pytest.raises(UserError) as error:
        SparseMLPClassifier(**QUICK).fit(days, np.arange(40) % 2)
    assert str(error.value) == (
        "The column day holds dates or times. Turn it into numbers, such as days since a date, or "
        "leave it out."
    )


@pytest.mark.parametrize("kind", [np.array, list, pd.DataFrame])
def test_texts_without_a_named_column_are_refused(kind: Any) -> None:
    """Of an array, a list, or a frame whose columns are numbered; texts of numbers are numbers."""
    rows = [[float(i % 3), "x" if i == 7 else str(i % 2)] for i in range(20)]
    given = np.array(rows, object) if kind is np.array else kind(rows)
    with pytest.raises(UserError) as error:
        SparseMLPClassifier(**QUICK).fit(given, [0, 1] * 10)
    assert str(error.value) == (
        "The column 1 of X holds the text 'x'. Give a pandas or Polars data frame whose columns "
        "are named by texts, which may hold categories; or turn the column into numbers."
    )
    rows[7][1] = "1"
    assert SparseMLPClassifier(**QUICK).fit(np.array(rows, object), [0, 1] * 10).classes_.size == 2


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_amounts_as_texts_are_refused(kind: Any) -> None:
    """Hundreds of prices are no categories, unless the frame calls them so; few codes are."""
    prices = kind({"price": [f"${i + 1000:,}.50" for i in range(40)]})
    with pytest.raises(UserError) as error:
        SparseMLPClassifier(**QUICK).fit(prices, np.arange(40) % 2)
    assert str(error.value) == (
        "The column price holds 40 different texts that look like numbers, such as '$1,000.50'. "
        "Turn them into numbers; or into categories, if they are."
    )

    codes = kind({"code": [str(i % 5) for i in range(40)]})
    named = kind({"street": [f"{i} Main Street" for i in range(40)]})
    if kind is pd.DataFrame:
        meant = prices.astype("category")
    else:
        meant = prices.with_columns(pl.col("price").cast(pl.Categorical))
    for table in (codes, named, meant):
        assert SparseMLPClassifier(**QUICK).fit(table, np.arange(40) % 2).categories_ is not None


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_target_of_texts_that_lacks_some_is_refused(missing: Any) -> None:
    """In a sentence, and not by what sorting says."""
    x, _ = products(40)
    y = np.array([missing, "a", "b", "a"] * 10, object)
    with pytest.raises(UserError) as error:
        SparseMLPClassifier(**QUICK).fit(x, y)
    assert str(error.value) == "y has no value in 10 of 40 rows. Leave these rows out of X and y."
