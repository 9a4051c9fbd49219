"""Classifying rows of tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from petridish.errors import UserError
from petridish.estimator.sparse_mlp import Floats, SparseMLPBase, with_shared_sections


@with_shared_sections
@dataclass(eq=False, repr=False)
class SparseMLPClassifier(ClassifierMixin, SparseMLPBase):  # type: ignore[misc]
    r"""Classify rows of a table by wide networks whose first layer starts sparse [PF §4.2].

    Each neuron of the first layer starts with `sparsity` nonzero weights, so that it depends
    on few columns, as the splits of a tree do, and is free to use more as it learns. Several such
    networks are trained as one program, and their probabilities are averaged.

    {parameters}
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of rows by class; "balanced" gives each class the same weight.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
        The classes, sorted.
    {attributes}

    {notes}

    Examples
    --------
    The class is the sign of a product of two columns, which no linear model can tell:

    >>> import numpy as np
    >>> from petridish import SparseMLPClassifier
    >>> X = np.random.default_rng(0).normal(size=(600, 8))
    >>> y = np.where(X[:, 2] * X[:, 5] > 0, "alike", "opposite")
    >>> classifier = SparseMLPClassifier(n_members=2, random_state=0).fit(X[:400], y[:400])
    >>> bool(classifier.score(X[400:], y[400:]) > 0.8)
    True
    >>> np.sort(np.argsort(classifier.feature_importances_)[-2:])
    array([2, 5])
    """

    _: KW_ONLY
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train the members.

        Parameters
        ----------
        X : array-like or data frame, shape (n_samples, n_features)
            Numbers, NaN for a missing value; in a data frame also texts and categories.
        y : array-like, shape (n_samples,)
            Classes: numbers, strings or Booleans, at least two different ones.
        sample_weight : array-like, shape (n_samples,), default=None
            A weight of k counts as k copies of the row, and 0 as none.

        Returns
        -------
        self : SparseMLPClassifier
            The fitted estimator.
        """
        x, y = self._checked(X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        x, codes, weight = self._rows(x, codes, sample_weight)
        present, codes = np.unique(codes, return_inverse=True)
        self.classes_ = self.classes_[present]
        if len(present) < 2:
            raise UserError(
                f"{type(self).__name__}: the rows with a positive weight hold 1 class, "
                f"{self.classes_[0]!s}. Give rows of at least 2 classes."
            )
        factors = compute_class_weight(
            self.class_weight, classes=self.classes_, y=self.classes_[codes], sample_weight=weight
        )
        two = len(self.classes_) == 2
        target = codes[:, None] if two else np.eye(len(self.classes_))[codes]
        self._fit_members(
            x,
            target.astype(np.float32),
            weight,
            weight * factors[codes],
            loss="logistic" if two else "cross_entropy",
            order=codes,
        )
        return self

    def _log_proba(self, X: Any) -> Floats:
        """Return the logarithm of the members' mean probabilities, shape (row, class)."""
        outputs = self._outputs(X)
        if outputs.shape[2] == 1:
            outputs = np.concatenate([np.zeros_like(outputs), outputs], axis=2)
        each = outputs - np.logaddexp.reduce(outputs, axis=2, keepdims=True)
        mean: Floats = np.logaddexp.reduce(each, axis=0) - np.log(len(each))
        return mean

    def decision_function(self, X: Any) -> Floats:
        """Return log-odds for two classes, log-probabilities for more.

        Parameters
        ----------
        X : array-like or data frame, shape (n_samples, n_features)
            Rows of the table.

        Returns
        -------
        scores : array, shape (n_samples,) or (n_samples, n_classes)
            log p(second class) − log p(first class); or log p of each class.
        """
        logs = self._log_proba(X)
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    def predict_proba(self, X: Any) -> Floats:
        """Return the mean of the members' probabilities.

        Parameters
        ----------
        X : array-like or data frame, shape (n_samples, n_features)
            Rows of the table.

        Returns
        -------
        probabilities : array, shape (n_samples, n_classes)
            In the order of `classes_`; each row adds up to 1.
        """
        from scipy.special import expit, softmax

        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.stack([expit(-scores), expit(scores)], axis=1)
        probabilities: Floats = softmax(scores, axis=1)
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like or data frame, shape (n_samples, n_features)
            Rows of the table.

        Returns
        -------
        y : array, shape (n_samples,)
            Entries of `classes_`.
        """
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[chosen]
        return labels
