"""Predicting numbers from rows of tables."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import validate_data

from petridish.estimator.features import Preprocessing, Scale
from petridish.estimator.fitting import RateSchedule
from petridish.estimator.sparse_mlp import Floats, Kinks, SparseMLPBase


class SparseMLPRegressor(RegressorMixin, SparseMLPBase):  # type: ignore[misc]
    r"""Predict numbers from rows of a table by wide networks whose first layer starts sparse.

    As `SparseMLPClassifier`, with the squared error as loss. The target is standardised inside;
    several targets are predicted by one network with several outputs.

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
        Networks trained side by side, each from a start of its own; the predictions are
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
    dropout : float, default=0.1
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
    random_state : int, RandomState or None, default=None
        A whole number gives the same bits at every fit on one machine, whatever the number of
        threads, processes, and the order of the rows.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    n_outputs_ : int
        Targets seen in fit.
    target_scale_ : Scale
        How targets are standardised.
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
    ...     SparseMLPRegressor(),
    ... )

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
        dropout: float = 0.1,
        learning_rate: float | Literal["auto"] = "auto",
        weight_decay: float = 0.0,
        schedule: RateSchedule = "constant",
        batch_size: int | Literal["auto"] = "auto",
        epochs: int | Literal["auto"] = "auto",
        early_stopping: bool = True,
        n_folds: int = 8,
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
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train the members.

        Parameters
        ----------
        X : array-like or data frame, shape (n_samples, n_features)
            Numbers; NaN is a missing value.
        y : array-like, shape (n_samples,) or (n_samples, n_outputs)
            Numbers to predict.
        sample_weight : array-like, shape (n_samples,), default=None
            A weight of k counts as k copies of the row, and 0 as none.

        Returns
        -------
        self : SparseMLPRegressor
            The fitted estimator.
        """
        x, y = validate_data(
            self,
            X,
            y,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
            multi_output=True,
            y_numeric=True,
        )
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
        """Give the mean of the members' predictions.

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
