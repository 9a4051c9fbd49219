"""Classifying rows of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from petridish.errors import UserError
from petridish.estimator.features import Preprocessing
from petridish.estimator.fitting import RateSchedule
from petridish.estimator.sparse_mlp import Floats, Kinks, SparseMLPBase


class SparseMLPClassifier(ClassifierMixin, SparseMLPBase):  # type: ignore[misc]
    r"""Classify rows of a table by wide networks whose first layer starts sparse [PF §4.2].

    Each neuron of the first layer starts with `sparsity` nonzero weights, so that it looks at a
    few columns, as the splits of a tree do, and is free to look at more as it learns. Several such
    networks are trained as one program, and their probabilities are averaged.

    Parameters
    ----------
    width : int, default=256
        Neurons of each hidden layer.
    depth : int, default=2
        Hidden layers.
    sparsity : int or "dense", default=2
        Nonzero weights with which each neuron of the first layer starts; at most all columns.
        "dense" is PyTorch's usual start.
    n_members : int, default=8
        Networks trained side by side, each from a start of its own; the probabilities are
        averaged.
    preprocessing : "both", "quantile", "standard" or "none", default="both"
        Send each column to the normal quantiles of its ranks, or to mean 0 and deviation 1, or
        leave it as it is. "both": of four members two see quantiles, and two z / √(1 + (z/3)²),
        z being deviations from the mean.
    relevance : float, default=0.5
        Share of the members that scale columns, and draw those that a neuron starts with, by the
        variance of y that each explains alone; the other members treat all columns alike. Where
        no column explains anything alone, as in a parity, all members do.
    kinks : "data" or "random", default="data"
        Let each neuron of the first layer bend at a training row, with weights ±1; or start it as
        in the paper, with weights 1 and biases uniform on ±1/√n_features.
    dropout : float, default=0.3
        Chance of a hidden neuron to be silent for a row in a step of training.
    learning_rate : float or "auto", default="auto"
        Of AdamW, at its largest. "auto": 5e-5 √n_samples, but at most 2e-3.
    weight_decay : float, default=0.0
        AdamW's, for weights; biases do not decay.
    schedule : "constant", "cosine" or "linear", default="constant"
        How the learning rate falls to 0 over the epochs, if it does.
    batch_size : int or "auto", default="auto"
        Rows a step. "auto": n_samples / 50, but from 32 to 256.
    epochs : int or "auto", default="auto"
        Passes over the rows, at most. "auto": 20 √n_samples steps or 2000, whichever is more;
        without early stopping 12 √n_samples.
    early_stopping : bool, default=True
        Cut the rows into `n_folds` parts with the same share of each class or range of y; each
        member learns from all parts but one, and all keep the weights of the step after which
        they told the parts that they did not learn from best (`petridish.estimator.clock`). Fewer
        than 2 `n_folds` rows are all learned from.
    n_folds : int, default=8
        The number of these parts.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of rows by class; "balanced" gives each class the same weight.
    random_state : int, RandomState or None, default=None
        A whole number gives the same bits at every fit on one machine, whatever the number of
        threads, processes, and the order of the rows.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
        The classes, sorted.
    n_features_in_ : int
        Columns seen in fit.
    feature_names_in_ : array of str, shape (n_features_in_,)
        Their names, if X had any.
    feature_importances_ : array, shape (n_features_in_,)
        How far training moved the first layer's weights on each column: shares of
        :math:`\sum_i \|v_i\|^2 (w_{ij} - w_{ij}(0))^2 \operatorname{Var} x_j` over the neurons i of
        all members, with :math:`v_i` what leaves neuron i and :math:`x_j` its input.
        `petridish.figures.importance.plot_importances` draws them.
    weights_ : list of array, shape (n_members, ...)
        Weights (n_members, fan_out, fan_in) and biases (n_members, fan_out), layer by layer.
    network_ : MLP
        The network's shape.
    columns_ : Columns
        How the table's columns become inputs.
    relevance_ : array
        The factor of each input in the members that weigh them, from 0.1 to 1; `weights_` hold it.
    n_iter_ : int
        Steps that the weights have taken.
    looks_ : array, shape (n_looks,)
        Steps after which losses were noted; with early stopping they go beyond `n_iter_`.
    loss_curve_ : array, shape (n_looks,)
        Mean training loss of the members since the look before.
    validation_loss_curve_ : array, shape (n_looks,), or None
        Their loss on rows that they hold out, with early stopping: `clock.scaled_loss`.

    Notes
    -----
    A missing value (NaN) becomes 0, the middle of its column, and each column that had some in fit
    gets one more input, which is 1 where the value is missing. Columns that do not vary are left
    out. Equal rows are merged, and weighed by their number.

    Categorical columns become numbers in a pipeline:

    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> model = make_pipeline(
    ...     make_column_transformer(
    ...         (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["colour"]),
    ...         remainder="passthrough",
    ...     ),
    ...     SparseMLPClassifier(),
    ... )

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

    def __init__(
        self,
        width: int = 256,
        depth: int = 2,
        sparsity: int | Literal["dense"] = 2,
        n_members: int = 8,
        *,
        preprocessing: Preprocessing = "both",
        relevance: float = 0.5,
        kinks: Kinks = "data",
        dropout: float = 0.3,
        learning_rate: float | Literal["auto"] = "auto",
        weight_decay: float = 0.0,
        schedule: RateSchedule = "constant",
        batch_size: int | Literal["auto"] = "auto",
        epochs: int | Literal["auto"] = "auto",
        early_stopping: bool = True,
        n_folds: int = 8,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.width = width
        self.depth = depth
        self.sparsity = sparsity
        self.n_members = n_members
        self.preprocessing = preprocessing
        self.relevance = relevance
        self.kinks = kinks
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.batch_size = batch_size
        self.epochs = epochs
        self.early_stopping = early_stopping
        self.n_folds = n_folds
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train the members.

        Parameters
        ----------
        X : array-like or data frame, shape (n_samples, n_features)
            Numbers; NaN is a missing value.
        y : array-like, shape (n_samples,)
            Classes: numbers, strings or Booleans, at least two different ones.
        sample_weight : array-like, shape (n_samples,), default=None
            A weight of k counts as k copies of the row, and 0 as none.

        Returns
        -------
        self : SparseMLPClassifier
            The fitted estimator.
        """
        x, y = validate_data(
            self, X, y, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
        )
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
        """Give the logarithm of the members' mean probabilities, shape (row, class)."""
        outputs = self._outputs(X)
        if outputs.shape[2] == 1:
            outputs = np.concatenate([np.zeros_like(outputs), outputs], axis=2)
        each = outputs - np.logaddexp.reduce(outputs, axis=2, keepdims=True)
        mean: Floats = np.logaddexp.reduce(each, axis=0) - np.log(len(each))
        return mean

    def decision_function(self, X: Any) -> Floats:
        """Give log-odds for two classes, log-probabilities for more.

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
        """Give the mean of the members' probabilities.

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
        """Give the most probable class of each row.

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
