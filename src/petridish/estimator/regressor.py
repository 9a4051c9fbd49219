"""Predicting numbers from rows of tables."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning

from petridish.estimator.features import Scale
from petridish.estimator.sparse_mlp import Floats, SparseMLPBase, with_shared_sections


@with_shared_sections
@dataclass(eq=False, repr=False)
class SparseMLPRegressor(RegressorMixin, SparseMLPBase):  # type: ignore[misc]
    r"""Predict numbers from rows of a table by wide networks whose first layer starts sparse.

    As `SparseMLPClassifier`, with the squared error as loss. The target is standardised inside;
    several targets are predicted by one network with several outputs.

    {parameters}

    Attributes
    ----------
    n_outputs_ : int
        Targets seen in fit.
    target_scale_ : Scale
        How targets are standardised.
    {attributes}

    {notes}

    Examples
    --------
    >>> import numpy as np
    >>> from petridish import SparseMLPRegressor
    >>> X = np.random.default_rng(0).normal(size=(600, 8))
    >>> y = 1000 + 50 * X[:, 2] * X[:, 5]
    >>> regressor = SparseMLPRegressor(n_members=2, random_state=0).fit(X[:400], y[:400])
    >>> bool(regressor.score(X[400:], y[400:]) > 0.5)
    True
    """

    _: KW_ONLY
    dropout: float = 0.1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train the members.

        Parameters
        ----------
        X : array-like or data frame, shape (n_samples, n_features)
            Numbers, NaN for a missing value; in a data frame also texts and categories.
        y : array-like, shape (n_samples,) or (n_samples, n_outputs)
            Numbers to predict.
        sample_weight : array-like, shape (n_samples,), default=None
            A weight of k counts as k copies of the row, and 0 as none.

        Returns
        -------
        self : SparseMLPRegressor
            The fitted estimator.
        """
        x, y = self._checked(X, y, multi_output=True, y_numeric=True)
        if y.ndim == 2 and y.shape[1] == 1:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected. Please change the "
                "shape of y to (n_samples,), for example using ravel().",
                DataConversionWarning,
                stacklevel=2,
            )
            y = y[:, 0]
        x, y, weight = self._rows(x, y.astype(np.float64), sample_weight)
        values = y.reshape(len(y), -1)
        self.n_outputs_ = values.shape[1]
        self.target_scale_ = Scale.fit(values, weight)
        target = self.target_scale_.forward(values).astype(np.float32)
        self._fit_members(x, target, weight, weight, loss="square", order=values[:, 0])
        return self

    def predict(self, X: Any) -> Floats:
        """Return the mean of the members' predictions.

        Parameters
        ----------
        X : array-like or data frame, shape (n_samples, n_features)
            Rows of the table.

        Returns
        -------
        y : array, shape (n_samples,) or (n_samples, n_outputs)
            In the units of the y that `fit` saw.
        """
        mean = self._outputs(X).mean(axis=0)
        predicted = self.target_scale_.backward(mean)
        return predicted[:, 0] if self.n_outputs_ == 1 else predicted
