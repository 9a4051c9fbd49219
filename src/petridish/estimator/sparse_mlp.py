"""What the estimators for tables share: reading parameters, training, computing outputs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state, check_X_y
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from petridish.errors import UserError
from petridish.estimator.arguments import choice, number, part, progress, share, whole, word
from petridish.estimator.categories import Categories, refuse_missing, refuse_texts
from petridish.estimator.clock import Clock, deal_folds, most_steps, usual_steps
from petridish.estimator.features import Columns, Preprocessing
from petridish.estimator.fitting import (
    Batches,
    HoldOut,
    RateSchedule,
    Recipe,
    TrainedMembers,
    WeightedRows,
    auto_batch,
    auto_rate,
    train_members,
)
from petridish.estimator.movement import shares, weighted_variance
from petridish.estimator.outputs import outputs_of
from petridish.estimator.relevance import relevance, weighing_members
from petridish.estimator.rows import merge_rows, n_rows_meant
from petridish.estimator.start import AsIn, AtData, Start
from petridish.models import MLP, Sparse, Uniform

if TYPE_CHECKING:
    from petridish.training.members import MemberLoss

Floats = NDArray[np.float64]
Kinks = Literal["data", "random"]


def with_shared_sections(kind: type) -> type:
    """Put the sections of the docstring of `SparseMLPBase` into that of a class."""
    if kind.__doc__ and SparseMLPBase.__doc__:  # neither is there under python -OO
        shared = SparseMLPBase.__doc__.partition("    Parameters\n")[2]
        parameters, _, shared = shared.partition("    Attributes\n    ----------\n")
        attributes, _, notes = shared.partition("    Notes\n")
        kind.__doc__ = (
            kind.__doc__.replace(
                "    {parameters}\n", "    Parameters\n" + parameters.rstrip() + "\n"
            )
            .replace("    {attributes}\n", attributes.rstrip() + "\n")
            .replace("    {notes}\n", "    Notes\n" + notes.rstrip() + "\n")
        )
    return kind


# A dataclass, so that each parameter is written once; equality and text are scikit-learn's.
@dataclass(eq=False, repr=False)
class SparseMLPBase(BaseEstimator):  # type: ignore[misc] # scikit-learn ships no types
    r"""A wide network with a sparse start; the subclasses say what its outputs mean.

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
        Networks trained side by side, each from a start of its own; what they predict is averaged.
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
    dropout : float, default=0.3, or 0.1 in regression
        Chance of a hidden neuron to be left out for a row in a step of training.
    learning_rate : float or "auto", default="auto"
        Of AdamW, at its largest. "auto": 5e-5 √n_samples, but at most 2e-3.
    weight_decay : float, default=0.0
        AdamW's, for weights; biases do not decay.
    schedule : "constant", "cosine" or "linear", default="constant"
        How the learning rate falls to 0 over the epochs, if it does.
    batch_size : int or "auto", default="auto"
        Rows per step. "auto": n_samples / 50, but from 32 to 256.
    epochs : int or "auto", default="auto"
        Passes over the rows, at most. "auto": 20 √n_samples steps or 2000, whichever is more;
        without early stopping 12 √n_samples.
    early_stopping : bool, default=True
        Cut the rows into `n_folds` parts with the same share of each class or range of y; each
        member learns from all parts but one, and all keep the weights of the step with the lowest
        held-out loss (`petridish.estimator.clock`). Fewer than 2 `n_folds` rows are all learned
        from.
    n_folds : int, default=8
        The number of these parts.
    patience : float, default=1.5
        End at this multiple of the step with the lowest held-out loss.
    random_state : int, RandomState or None, default=None
        A whole number gives the same bits at every fit on one machine, whatever the number of
        threads, processes, and the order of the rows.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
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
    categories_ : Categories or None
        How categorical columns of a data frame become numbers, if there were some.
    relevance_ : array
        The factor of each input in the members that weigh them, from 0.1 to 1; `weights_` hold it.
    n_iter_ : int
        Steps that the weights have taken.
    evaluated_at_ : array, shape (n_evaluations,)
        Steps after which losses were noted; with early stopping they go beyond `n_iter_`.
    loss_curve_ : array, shape (n_evaluations,)
        Mean training loss of the members since the evaluation before.
    validation_loss_curve_ : array, shape (n_evaluations,), or None
        Their loss on rows that they hold out, with early stopping: `clock.scaled_loss`.

    Notes
    -----
    A missing value (NaN) becomes 0, the middle of its column, and each column that had some in fit
    gets one more input, which is 1 where the value is missing. Columns that do not vary are left
    out. Equal rows are merged, and weighed by their number.

    Columns of a pandas or Polars frame that hold texts or categories become one input per
    category, at most 30 per column: the rarest share one, and a missing value is a category.
    In an array, encode them first, by scikit-learn's `OneHotEncoder(sparse_output=False)`.
    """

    width: int = 256
    depth: int = 2
    sparsity: int | Literal["dense"] = 2
    n_members: int = 8
    _: KW_ONLY
    preprocessing: Preprocessing = "both"
    relevance: float = 0.5
    kinks: Kinks = "data"
    dropout: float = 0.3
    learning_rate: float | Literal["auto"] = "auto"
    weight_decay: float = 0.0
    schedule: RateSchedule = "constant"
    batch_size: int | Literal["auto"] = "auto"
    epochs: int | Literal["auto"] = "auto"
    early_stopping: bool = True
    n_folds: int = 8
    patience: float = 1.5
    random_state: Any = None
    verbose: bool | int = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _checked(self, X: Any, *y: Any, **checks: Any) -> Any:
        """Return X as an array of numbers, with y if `fit` gives it."""
        checks |= {"dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}
        if y:
            refuse_missing(*y)
            self.categories_ = Categories.of(X)
        if self.categories_ is None:
            refuse_texts(X)
            return validate_data(self, X, *y, reset=bool(y), **checks)
        validate_data(self, X, reset=bool(y), skip_check_array=True)
        numbers = self.categories_.numbers(X)
        return check_X_y(numbers, *y, **checks) if y else check_array(numbers, **checks)

    def _rows(
        self, x: NDArray[Any], y: NDArray[Any], sample_weight: ArrayLike | None
    ) -> tuple[Floats, NDArray[Any], Floats]:
        """Return each row once with its weight."""
        weight = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise UserError("sample_weight is zero for every row. Give some row a positive weight.")
        with np.errstate(over="ignore"):
            if np.isinf(weight.sum()):
                weight = np.ldexp(weight, -1000)
        return merge_rows(x.astype(np.float64), y, weight)

    def _fit_members(
        self,
        x: Floats,
        target: NDArray[np.float32],
        row_weight: Floats,
        loss_weight: Floats,
        *,
        loss: MemberLoss,
        order: NDArray[Any],
    ) -> None:
        """Learn columns from `row_weight`, train by `loss_weight`, and set what fit shares.

        Rows are dealt into folds by `order`: their classes or values.
        """
        word(self, "preprocessing", get_args(Preprocessing))
        rng = check_random_state(self.random_state)
        deal = int(rng.randint(2**31 - 1))
        seeds = [int(seed) for seed in rng.randint(2**31 - 1, size=whole(self, "n_members"))]
        n = n_rows_meant(row_weight)
        self.columns_ = Columns.fit(x, row_weight, self.preprocessing)
        inputs = self.columns_.inputs(x)
        hold_out = self._hold_out(n, order, len(seeds), deal)
        recipe = self._recipe(n, len(x), hold_out, loss)
        if not np.ptp(target, axis=0).any():  # one value: there is nothing to learn
            hold_out, recipe = None, replace(recipe, steps=1)
        self.relevance_ = self._relevance(inputs, target, row_weight, n)
        factors = np.ones((len(seeds), self.columns_.n_inputs), np.float32)
        factors[weighing_members(len(seeds), share(self, "relevance"))] = self.relevance_
        for member, mine in enumerate(factors):
            mine[~self.columns_.seen(member // 2 % 2)] = 0  # of four in a row, two see each view
        with progress(type(self).__name__, recipe.steps, shown=bool(self.verbose)) as steps_done:
            trained = train_members(
                recipe,
                WeightedRows(inputs, target, (loss_weight / loss_weight.mean()).astype(np.float32)),
                seeds,
                hold_out=hold_out,
                factors=factors,
                steps_done=steps_done,
            )
        self._keep(recipe, trained, hold_out)
        found = shares(trained.moved * weighted_variance(inputs, row_weight), self.columns_)
        if self.categories_ is not None:
            found = self.categories_.per_column(found)
        self.feature_importances_ = found

    def _relevance(
        self, inputs: NDArray[np.float32], target: NDArray[np.float32], weight: Floats, n: float
    ) -> Floats:
        """Return the factor of each input; two views of a column have the same one."""
        first = self.columns_.seen(0)
        known = relevance(inputs[:, first], target, weight, n)
        factor = np.empty(self.columns_.n_inputs)
        for view in (0, 1):
            factor[self.columns_.seen(view)] = known
        return factor

    def _keep(self, recipe: Recipe, trained: TrainedMembers, hold_out: HoldOut | None) -> None:
        """Set the fitted attributes."""
        if not all(np.isfinite(weight).all() for weight in trained.weights):
            raise UserError(
                f"{type(self).__name__}: training diverged with "
                f"learning_rate={self.learning_rate}. Give a smaller one."
            )
        self.network_ = recipe.model
        self.weights_ = trained.weights
        self.n_iter_ = trained.steps
        self.evaluated_at_ = np.array(trained.evaluated_at)
        self.loss_curve_ = trained.losses.mean(axis=1)
        self.validation_loss_curve_ = np.array(hold_out.clock.losses) if hold_out else None

    def _hold_out(self, n: float, order: NDArray[Any], n_members: int, seed: int) -> HoldOut | None:
        """Deal the rows into folds; rows too few for two in each are all learned from."""
        n_folds = whole(self, "n_folds", least=2)
        if not choice(self, "early_stopping") or len(order) < 2 * n_folds:
            return None
        patience = number(self, "patience")
        clock = Clock(usual_steps(n), n * min(1, n_members / n_folds), patience=patience)
        return HoldOut(deal_folds(order, n_folds, seed), n_folds, clock)

    def _recipe(self, n: float, n_rows: int, hold_out: HoldOut | None, loss: MemberLoss) -> Recipe:
        """Read the parameters of training, and refuse what cannot be meant.

        `n` is the number of rows meant, `n_rows` that of distinct ones.
        """
        width, depth = whole(self, "width"), whole(self, "depth")
        schedule: Any = word(self, "schedule", get_args(RateSchedule))
        rate = auto_rate(n)
        if self.learning_rate != "auto":
            rate = number(self, "learning_rate", otherwise="auto")
        batch = auto_batch(n)
        if self.batch_size != "auto":
            batch = whole(self, "batch_size", otherwise="auto")
        steps = most_steps(n) if hold_out else usual_steps(n)
        if self.epochs != "auto":
            held = [hold_out.rows(0)] if hold_out else []
            steps = whole(self, "epochs", otherwise="auto") * Batches(n_rows, batch, [], held).count
        return Recipe(
            model=MLP(width, (width,) * (depth - 1)),
            start=self._start(self.columns_.n_seen),
            loss=loss,
            learning_rate=rate,
            weight_decay=number(self, "weight_decay"),
            schedule=schedule,
            batch_size=batch,
            steps=steps,
            dropout=part(self, "dropout"),
        )

    def _start(self, n_inputs: int) -> Start:
        s = None
        if self.sparsity != "dense":
            s = min(whole(self, "sparsity", otherwise="dense"), n_inputs)
        if word(self, "kinks", get_args(Kinks)) == "data":
            return AtData(s)
        return AsIn(Uniform() if s is None else Sparse(s))

    def _outputs(self, X: Any) -> Floats:
        """Return the members' outputs for rows of a table, shape (member, row, output)."""
        check_is_fitted(self)
        x = self._checked(X)
        inputs = self.columns_.inputs(x.astype(np.float64))
        return outputs_of(self.weights_, self.network_, inputs)
