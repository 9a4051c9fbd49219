"""The methods that are compared, what each is given, and one fit of one of them."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.compare.describe import Floats, NumericTable, Task
from petridish.compare.splits import divide
from petridish.estimator.isolated import alone
from petridish.seeds import Streams

MLP, FOREST, GUESS = "sparse MLP", "random forest", "constant guess"
TREES = 300
MOST_ONE_HOT = 30  # columns for one categorical column; rarer categories share the last
SHUFFLED_COLUMNS, SHUFFLED_ROWS, SHUFFLES = 30, 1000, 3  # of a forest's permutation importance


@dataclass(frozen=True)
class Method:
    """A method with its settings, in words and as a function.

    Attributes
    ----------
    settings, numbers, categories : str
        How it is set, what becomes of numbers and of categories before it sees them.
    build : function of (task, random state, which columns are categorical)
        Returns a scikit-learn estimator of raw columns.
    needs : str
        The package without which it is left out.
    """

    name: str
    settings: str
    numbers: str
    categories: str
    build: Callable[[Task, int, NDArray[np.bool_]], Any]
    needs: str = ""


@dataclass(frozen=True)
class MethodFit:
    """The result of one fit.

    Attributes
    ----------
    error : float
        On the test part: the share of rows put into a wrong class, or the root mean square error.
    score : float
        On the test part: the area under the ROC curve, averaged over classes, or R².
    seconds, spent : float
        Of the fit with its preprocessing, and of all of it: split, fit, test and importances.
    importance : array, shape (column,), or None
        Of a network, the share of each column in the movement of first-layer weights; of a forest,
        where asked for, by how much the test error rises when the column is shuffled (NaN where
        that was not tried).
    failure : str
        Why there is no error, if there is none.
    """

    method: str
    size: int
    repeat: int
    error: float
    score: float
    seconds: float
    spent: float
    importance: Floats | None = None
    failure: str = ""


def methods() -> dict[str, Method]:
    """Return the methods that this installation has, slowest first."""
    known = [
        Method(
            MLP,
            "petridish's SparseMLP, defaults",
            "missing ones filled and scaled by the network's own rule",
            f"one-hot, at most {MOST_ONE_HOT} columns each",
            _sparse_mlp,
        ),
        Method(
            FOREST,
            f"scikit-learn, {TREES} trees, else defaults",
            "missing ones: median and an indicator",
            "numbered",
            _forest,
        ),
        Method(
            "HistGradientBoosting",
            "scikit-learn, defaults",
            "as they are; missing ones native",
            "native",
            _histogram_boosting,
        ),
        Method(
            "LightGBM",
            "defaults",
            "as they are; missing ones native",
            "numbered",
            _lightgbm,
            needs="lightgbm",
        ),
        Method(
            "XGBoost",
            "defaults",
            "as they are; missing ones native",
            "numbered",
            _xgboost,
            needs="xgboost",
        ),
        Method(
            "linear model",
            "scikit-learn, logistic regression or ridge, penalty 1",
            "missing ones: median and an indicator; then standardised",
            f"one-hot, at most {MOST_ONE_HOT} columns each",
            _linear,
        ),
        Method(
            GUESS,
            "always the most frequent class, or the mean; not ranked",
            "not seen",
            "not seen",
            _guess,
        ),
    ]
    return {method.name: method for method in known if not method.needs or find_spec(method.needs)}


# What a method is given


def _piped(prepare: Any, model: Any) -> Any:
    from sklearn.pipeline import Pipeline

    return Pipeline([("prepare", prepare), ("model", model)])


def _columns(categorical: NDArray[np.bool_], numbers: Any, categories: Any) -> Any:
    from sklearn.compose import ColumnTransformer

    return ColumnTransformer(
        [
            ("numbers", numbers, np.flatnonzero(~categorical)),
            ("categories", categories, np.flatnonzero(categorical)),
        ],
        verbose_feature_names_out=False,
    )


def _median() -> Any:
    from sklearn.impute import SimpleImputer

    # A column may have no value at all in a small training part, and have some in the test part.
    return SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)


def _one_hot() -> Any:
    from sklearn.preprocessing import OneHotEncoder

    return OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_ONE_HOT, sparse_output=False
    )


def _sparse_mlp(task: Task, state: int, categorical: NDArray[np.bool_]) -> Any:
    from petridish import estimator

    kind = {
        "classification": estimator.SparseMLPClassifier,
        "regression": estimator.SparseMLPRegressor,
    }[task]
    return _piped(_columns(categorical, "passthrough", _one_hot()), kind(random_state=state))


def _forest(task: Task, state: int, categorical: NDArray[np.bool_]) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.impute import SimpleImputer

    kind = {"classification": RandomForestClassifier, "regression": RandomForestRegressor}[task]
    numbered = SimpleImputer(strategy="constant", fill_value=-1.0)
    return _piped(
        _columns(categorical, _median(), numbered), kind(n_estimators=TREES, random_state=state)
    )


def _histogram_boosting(task: Task, state: int, categorical: NDArray[np.bool_]) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = {
        "classification": HistGradientBoostingClassifier,
        "regression": HistGradientBoostingRegressor,
    }[task]
    return kind(categorical_features=categorical, random_state=state)


def _lightgbm(task: Task, state: int, categorical: NDArray[np.bool_]) -> Any:
    package = importlib.import_module("lightgbm")
    kind = package.LGBMClassifier if task == "classification" else package.LGBMRegressor
    return kind(random_state=state, n_jobs=1, verbosity=-1)


def _xgboost(task: Task, state: int, categorical: NDArray[np.bool_]) -> Any:
    package = importlib.import_module("xgboost")
    kind = package.XGBClassifier if task == "classification" else package.XGBRegressor
    return kind(random_state=state, n_jobs=1, verbosity=0)


def _linear(task: Task, state: int, categorical: NDArray[np.bool_]) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = LogisticRegression(max_iter=1000) if task == "classification" else Ridge()
    numbers = make_pipeline(_median(), StandardScaler())
    return _piped(_columns(categorical, numbers, _one_hot()), model)


def _guess(task: Task, state: int, categorical: NDArray[np.bool_]) -> Any:
    from sklearn.dummy import DummyClassifier, DummyRegressor

    return DummyClassifier() if task == "classification" else DummyRegressor()


# One fit


def warm_up(name: str) -> None:
    """Import what a method needs, so that a process's first fit takes no longer than others."""
    with alone(on_torch=name == MLP):
        methods()[name].build("classification", 0, np.zeros(1, bool))


def fit_one(
    examples: NumericTable, name: str, size: int, repeat: int, *, seed: int, shuffle: bool = False
) -> MethodFit:
    """Fit a method to the training part of a size and test it, on one thread.

    `shuffle` asks for a forest's permutation importance too.
    """
    started = time.perf_counter()
    with alone(on_torch=name == MLP):  # PyTorch is slow to import
        try:
            fit = _fitted(examples, name, size, repeat, seed, shuffle=shuffle)
        except Exception as error:  # of a library, on data no one has seen: the others go on
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            spent = time.perf_counter() - started
            return MethodFit(name, size, repeat, np.nan, np.nan, spent, spent, failure=reason)
    return replace(fit, spent=time.perf_counter() - started)


def _fitted(
    examples: NumericTable, name: str, size: int, repeat: int, seed: int, *, shuffle: bool
) -> MethodFit:
    classified = examples.task == "classification"
    split = divide(examples.y, stratified=classified, seed=seed, repeat=repeat)
    training = split.training[:size]
    x, y = np.asarray(examples.x[training]), examples.y[training]
    if classified:  # classes without a row in this part are unknown to the method
        found, y = np.unique(y, return_inverse=True)
    state = int(Streams([seed], f"state {repeat}").halves(0, 1)[0, 0]) >> 1
    model = methods()[name].build(examples.task, state, examples.categorical)
    begun = time.perf_counter()
    model.fit(x, y)
    seconds = time.perf_counter() - begun
    x_test, y_test = np.asarray(examples.x[split.test]), examples.y[split.test]
    if classified:
        shares = np.zeros((len(y_test), len(examples.classes)))
        shares[:, found] = model.predict_proba(x_test)
        error, score = float(np.mean(shares.argmax(axis=1) != y_test)), mean_auc(y_test, shares)
    else:
        error, score = _regression_scores(y_test, model.predict(x_test))
    importance = None
    if name == MLP:
        importance = movement(model, len(examples.names))
    elif shuffle and name == FOREST:
        chosen = split.test[:SHUFFLED_ROWS]
        labels = examples.y[chosen]
        if classified:
            codes = np.full(len(examples.classes), -1)
            codes[found] = np.arange(len(found))
            labels = codes[labels]
        importance = shuffled_rise(
            model, examples.x[chosen], labels, classified=classified, state=state
        )
    return MethodFit(name, size, repeat, error, score, seconds, seconds, importance)


def _regression_scores(y: Floats, predicted: Floats) -> tuple[float, float]:
    square = float(np.mean((predicted - y) ** 2))
    spread = float(np.mean((y - y.mean()) ** 2))
    return square**0.5, 1 - square / spread if spread else float("nan")


def mean_auc(y: NDArray[np.int64], shares: Floats) -> float:
    """Average over classes the area under the ROC curve of a class against the others.

    With two classes both areas are the same one. Classes that the test part lacks are passed over.
    """
    from sklearn.metrics import roc_auc_score

    present = np.unique(y)
    if len(present) < 2:
        return float("nan")
    areas = [roc_auc_score(y == one, shares[:, one]) for one in present]
    return float(np.mean(areas))


# Importances


def movement(model: Any, columns: int) -> Floats | None:
    """Return the share of each raw column in the movement of the network's first layer."""
    shares = getattr(model.named_steps["model"], "feature_importances_", None)
    if shares is None:
        return None
    # Raw columns are called x0, x1 …; the one-hot columns of x3 begin with x3_.
    names = model.named_steps["prepare"].get_feature_names_out()
    owner = np.array([int(name.partition("_")[0][1:]) for name in names])
    found = np.zeros(columns)
    np.add.at(found, owner, shares)
    return found / found.sum() if found.sum() > 0 else found


def shuffled_rise(
    model: Any, x: Floats, y: NDArray[Any], *, classified: bool, state: int
) -> Floats:
    """Measure by how much a forest's error rises when one column is shuffled.

    Only for the columns on which its splits gained most: it takes a prediction for each.
    """
    rng = np.random.default_rng(state)

    def error(inputs: Floats) -> float:
        predicted = model.predict(inputs)
        if classified:
            return float(np.mean(predicted != y))
        return float(np.mean((predicted - y) ** 2) ** 0.5)

    gains = model.named_steps["model"].feature_importances_
    names = model.named_steps["prepare"].get_feature_names_out()
    owner = [int(name.removeprefix("missingindicator_")[1:]) for name in names]
    gain = np.bincount(owner, weights=gains, minlength=x.shape[1])
    rises, usual = np.full(x.shape[1], np.nan), error(x)
    for column in np.argsort(-gain, kind="stable")[:SHUFFLED_COLUMNS]:
        changed, errors = x.copy(), []
        for _ in range(SHUFFLES):
            changed[:, column] = rng.permutation(x[:, column])
            errors.append(error(changed))
        rises[column] = np.mean(errors) - usual
    return rises
