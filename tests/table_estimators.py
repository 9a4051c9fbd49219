"""Small tables and small estimators, for the tests of the estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish import SparseMLPClassifier, SparseMLPRegressor

Floats = NDArray[np.float64]
SMALL: dict[str, Any] = {"width": 32, "n_members": 2, "learning_rate": 1e-2, "random_state": 0}
CHECKED: dict[str, Any] = SMALL | {"learning_rate": 3e-2, "epochs": 15}
QUICK: dict[str, Any] = {"width": 16, "n_members": 3, "epochs": 3, "random_state": 0}


def products(n_rows: int, n_columns: int = 6, seed: int = 0) -> tuple[Floats, NDArray[np.int64]]:
    """Draw a table whose class is the sign of the product of its first two columns."""
    x = np.random.default_rng(seed).normal(size=(n_rows, n_columns))
    return x, (x[:, 0] * x[:, 1] > 0).astype(np.int64)


def both(**parameters: Any) -> list[Any]:
    """Return a classifier and a regressor."""
    return [SparseMLPClassifier(**parameters), SparseMLPRegressor(**parameters)]


def scores(estimator: Any, x: Any) -> Floats:
    """Return what an estimator says in numbers."""
    numbers: Floats = (
        estimator.predict_proba(x) if hasattr(estimator, "classes_") else estimator.predict(x)
    )
    return numbers
