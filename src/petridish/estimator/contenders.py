"""Forests, boosting and networks for tables, as models of runs.

Each is fitted whole by the engine `fit`: in one thread (there is one worker per core), without
output, and with a result that depends on its arguments alone. What a class here does not name is
its library's default.
"""

from __future__ import annotations

import importlib.util
from abc import abstractmethod
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.estimator.isolated import alone
from petridish.models import ChecksTask, FitsItself
from petridish.tasks import Task
from petridish.values import LATER

Inputs = NDArray[np.float32]
Labels = NDArray[Any]


@dataclass(frozen=True)
class Contender(FitsItself, ChecksTask):
    """A model that is fitted whole. A new one is a frozen dataclass that says how.

    `package` is what it needs, `extra` what of petridish installs that, `on_torch` whether it
    computes with PyTorch.
    """

    name: ClassVar[str]
    package: ClassVar[str] = "sklearn"
    extra: ClassVar[str] = "tabular"
    on_torch: ClassVar[bool] = False

    @abstractmethod
    def fitted(self, x: Inputs, codes: Labels, *, seed: int) -> Any:
        """Return a fitted model; `codes` are the classes in the sample as 0, 1, …, without gaps."""

    def fit_predict(
        self, x: Inputs, y: Labels, x_test: Inputs, *, seed: int, n_classes: int
    ) -> Labels:
        """Fit the classes `y` of `x`, and predict those of `x_test`.

        A sample may lack some of the `n_classes` classes: those are never predicted. With one
        class alone there is nothing to fit, and it is the answer.
        """
        self._check_installed()
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) == 1:
            return np.repeat(classes, len(x_test))
        with alone(on_torch=self.on_torch):
            model = self.fitted(x, codes, seed=seed % 2**31)  # libraries take 31 bits
            predicted = np.asarray(model.predict(x_test))
        return classes[predicted.reshape(-1).astype(np.int64)]

    def check_task(self, task: Task) -> None:
        """Refuse a run that cannot be fitted, before anything is."""
        self._check_installed()
        if task.domain.n_classes < 2:
            raise UserError(
                f"The model {self.name} predicts classes, and the task {task.name} has none. Give "
                "a task with classes."
            )

    def _check_installed(self) -> None:
        if importlib.util.find_spec(self.package) is None:
            raise UserError(
                f"The model {self.name} needs the package {self.package}, which is not installed. "
                f"Run pip install 'petridish[{self.extra}]'."
            )

    def typical_seconds(self, rows: int, features: int) -> float:
        """Guess the time of a fit on one core, for plans and for an order of work."""
        return 0.3


def _check_positive(owner: str, **values: float) -> None:
    for name, value in values.items():
        if not 0 < value < float("inf"):
            raise UserError(f"{owner}: {name}={value}. Give a number above 0.")


def _check_share(owner: str, **values: float) -> None:
    for name, value in values.items():
        if not 0 < value <= 1:
            raise UserError(f"{owner}: {name}={value}. Give a share above 0 and up to 1.")


@dataclass(frozen=True)
class LogisticRegression(Contender):
    """Logistic regression of scikit-learn; a larger `inverse_penalty` (C) shrinks less."""

    name: ClassVar[str] = "logistic_regression"

    inverse_penalty: float = 1.0

    def __post_init__(self) -> None:
        _check_positive("LogisticRegression", inverse_penalty=self.inverse_penalty)

    def fitted(self, x: Inputs, codes: Labels, *, seed: int) -> Any:
        """Return the model, fitted to the training rows."""
        from sklearn import linear_model

        model = linear_model.LogisticRegression(C=self.inverse_penalty, max_iter=1000)
        return model.fit(x, codes)


@dataclass(frozen=True)
class RandomForest(Contender):
    """Random forest [Breiman 2001] of scikit-learn, the paper's baseline [PF §C.3].

    `max_depth` is None for trees grown out; `max_features` is a number of columns looked at for a
    split (at most those there are), "sqrt", or None for all.
    """

    name: ClassVar[str] = "random_forest"

    n_estimators: int = 100
    max_depth: int | None = None
    max_features: int | str | None = "sqrt"

    def __post_init__(self) -> None:
        check_whole("RandomForest", 1, n_estimators=self.n_estimators)
        if self.max_depth is not None:
            check_whole("RandomForest", 1, max_depth=self.max_depth)
        if self.max_features not in ("sqrt", None):
            check_whole("RandomForest (or sqrt, or none)", 1, max_features=self.max_features)

    def fitted(self, x: Inputs, codes: Labels, *, seed: int) -> Any:
        """Return the model, fitted to the training rows."""
        from sklearn.ensemble import RandomForestClassifier

        looked_at = self.max_features
        return RandomForestClassifier(
            n_estimators=self.n_estimators,
            max_depth=self.max_depth,
            max_features=min(looked_at, x.shape[1]) if isinstance(looked_at, int) else looked_at,
            random_state=seed,
            n_jobs=1,
        ).fit(x, codes)

    def typical_seconds(self, rows: int, features: int) -> float:
        """Guess: each tree sorts the columns it tries."""
        given = self.max_features
        looked_at = features if given is None else features**0.5 if given == "sqrt" else int(given)
        return self.n_estimators * (2e-3 + 2.5e-7 * rows * min(looked_at, features))


@dataclass(frozen=True)
class HistGradientBoosting(Contender):
    """Gradient-boosted trees of scikit-learn, without early stopping."""

    name: ClassVar[str] = "hist_gradient_boosting"

    max_iter: int = 100
    learning_rate: float = 0.1
    max_leaf_nodes: int = 31
    min_samples_leaf: int = 20

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_whole(owner, 1, max_iter=self.max_iter, min_samples_leaf=self.min_samples_leaf)
        check_whole(owner, 2, max_leaf_nodes=self.max_leaf_nodes)
        _check_positive(owner, learning_rate=self.learning_rate)

    def fitted(self, x: Inputs, codes: Labels, *, seed: int) -> Any:
        """Return the model, fitted to the training rows."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            max_iter=self.max_iter,
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.max_leaf_nodes,
            min_samples_leaf=self.min_samples_leaf,
            early_stopping=False,
            random_state=seed,
        ).fit(x, codes)


@dataclass(frozen=True)
class XGBoost(Contender):
    """Gradient-boosted trees of XGBoost; `sampled` is the share of rows and columns per tree."""

    name: ClassVar[str] = "xgboost"
    package: ClassVar[str] = "xgboost"

    n_estimators: int = 100
    learning_rate: float = 0.3
    max_depth: int = 6
    sampled: float = 1.0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_whole(owner, 1, n_estimators=self.n_estimators, max_depth=self.max_depth)
        _check_positive(owner, learning_rate=self.learning_rate)
        _check_share(owner, sampled=self.sampled)

    def fitted(self, x: Inputs, codes: Labels, *, seed: int) -> Any:
        """Return the model, fitted to the training rows."""
        from xgboost import XGBClassifier

        return XGBClassifier(
            n_estimators=self.n_estimators,
            learning_rate=self.learning_rate,
            max_depth=self.max_depth,
            subsample=self.sampled,
            colsample_bytree=self.sampled,
            tree_method="hist",
            random_state=seed,
            n_jobs=1,
            verbosity=0,
        ).fit(x, codes)


@dataclass(frozen=True)
class LightGBM(Contender):
    """Gradient-boosted trees of LightGBM; `sampled` is the share of rows and columns per tree."""

    name: ClassVar[str] = "lightgbm"
    package: ClassVar[str] = "lightgbm"

    n_estimators: int = 100
    learning_rate: float = 0.1
    num_leaves: int = 31
    min_child_samples: int = 20
    sampled: float = 1.0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_whole(owner, 1, n_estimators=self.n_estimators)
        check_whole(owner, 1, min_child_samples=self.min_child_samples)
        check_whole(owner, 2, num_leaves=self.num_leaves)
        _check_positive(owner, learning_rate=self.learning_rate)
        _check_share(owner, sampled=self.sampled)

    def fitted(self, x: Inputs, codes: Labels, *, seed: int) -> Any:
        """Return the model, fitted to the training rows."""
        from lightgbm import LGBMClassifier

        return LGBMClassifier(
            n_estimators=self.n_estimators,
            learning_rate=self.learning_rate,
            num_leaves=self.num_leaves,
            min_child_samples=self.min_child_samples,
            subsample=self.sampled,
            subsample_freq=1,
            colsample_bytree=self.sampled,
            random_state=seed,
            deterministic=True,
            force_row_wise=True,  # or it times two ways of counting, and takes the faster
            n_jobs=1,
            verbose=-1,
        ).fit(x, codes)


VALIDATION_SHARE = 5  # pytabkit keeps one row in five, by which it chooses the epoch


@dataclass(frozen=True)
class _FromPyTabKit(Contender):
    """A network of pytabkit with its tuned defaults, on the CPU.

    With fewer than 5 rows none is left to choose the epoch by: the answer is the commonest class.
    """

    package: ClassVar[str] = "pytabkit"
    extra: ClassVar[str] = "nets"
    on_torch: ClassVar[bool] = True
    kind: ClassVar[str]

    def fitted(self, x: Inputs, codes: Labels, *, seed: int) -> Any:
        """Return the model, fitted to the training rows."""
        import pytabkit
        from sklearn.dummy import DummyClassifier

        if len(x) < VALIDATION_SHARE:
            return DummyClassifier().fit(x, codes)
        model = getattr(pytabkit, self.kind)(
            device="cpu", n_threads=1, random_state=seed, val_fraction=1 / VALIDATION_SHARE
        )
        return model.fit(x, codes)


@dataclass(frozen=True)
class RealMLP(_FromPyTabKit):
    """RealMLP with its tuned defaults [Holzmüller et al. 2024]."""

    name: ClassVar[str] = "realmlp"
    kind: ClassVar[str] = "RealMLP_TD_Classifier"

    def typical_seconds(self, rows: int, features: int) -> float:
        """Guess: 256 epochs."""
        return 5 + 0.01 * rows


@dataclass(frozen=True)
class TabM(_FromPyTabKit):
    """TabM with its defaults [Gorishniy et al. 2025]."""

    name: ClassVar[str] = "tabm"
    kind: ClassVar[str] = "TabM_D_Classifier"

    def typical_seconds(self, rows: int, features: int) -> float:
        """Guess: 32 networks in one, until they no longer improve."""
        return 18 + 0.07 * rows


@dataclass(frozen=True)
class SparseMLP(Contender):
    """`SparseMLPClassifier`, by its parameters of the same names.

    Every one of them is handed over, so that a run's name says what was fitted even after the
    estimator's defaults have changed; it weighs classes alike.
    """

    name: ClassVar[str] = "sparse_mlp"
    on_torch: ClassVar[bool] = True

    width: int = 256
    depth: int = 2
    sparsity: int | str = 2
    n_members: int = 8
    preprocessing: str = "both"
    relevance: float = 0.5
    kinks: str = "data"
    dropout: float = 0.3
    learning_rate: float | str = "auto"
    weight_decay: float = 0.0
    schedule: str = "constant"
    batch_size: int | str = "auto"
    epochs: int | str = "auto"
    early_stopping: bool = True
    n_folds: int = 8
    patience: float = field(default=2.5, metadata=LATER)  # as in the runs that are stored

    def fitted(self, x: Inputs, codes: Labels, *, seed: int) -> Any:
        """Return the model, fitted; the estimator refuses values that make no sense."""
        from petridish.estimator import SparseMLPClassifier

        options: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        return SparseMLPClassifier(**options, random_state=seed).fit(x, codes)

    def typical_seconds(self, rows: int, features: int) -> float:
        """Guess: as the default took on tables of 200 to 1900 rows, for each eight members."""
        return (1.2 + 0.004 * rows) * self.n_members / 8
