"""What the estimators for tables share: reading parameters, training, computing outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from petridish.errors import UserError
from petridish.estimator.clock import Clock, deal_folds, most_steps, usual_steps
from petridish.estimator.features import Columns, Preprocessing
from petridish.estimator.fitting import (
    Batches,
    HoldOut,
    RateSchedule,
    Recipe,
    Sample,
    Trained,
    auto_batch,
    auto_rate,
    train_members,
)
from petridish.estimator.importance import shares, weighted_variance
from petridish.estimator.outputs import outputs_of
from petridish.estimator.reading import choice, number, part, progress, share, whole, word
from petridish.estimator.relevance import relevance, weighing_members
from petridish.estimator.rows import merge_rows, n_rows_meant
from petridish.estimator.start import AsIn, AtData, Start
from petridish.models import MLP, Sparse, Uniform

if TYPE_CHECKING:
    from petridish.training.members import MemberLoss

Floats = NDArray[np.float64]
Kinks = Literal["data", "random"]


class SparseMLPBase(BaseEstimator):  # type: ignore[misc] # scikit-learn ships no types
    """A wide network with a sparse start; the subclasses say what its outputs mean."""

    # Stored by the subclasses' __init__, as scikit-learn wants it.
    width: int
    depth: int
    sparsity: int | Literal["dense"]
    n_members: int
    preprocessing: Preprocessing
    relevance: float
    kinks: Kinks
    dropout: float
    learning_rate: float | Literal["auto"]
    weight_decay: float
    schedule: RateSchedule
    batch_size: int | Literal["auto"]
    epochs: int | Literal["auto"]
    early_stopping: bool
    n_folds: int
    random_state: Any
    verbose: bool | int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _rows(
        self, x: NDArray[Any], y: NDArray[Any], sample_weight: ArrayLike | None
    ) -> tuple[Floats, NDArray[Any], Floats]:
        """Give each row once with its weight."""
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
                Sample(inputs, target, (loss_weight / loss_weight.mean()).astype(np.float32)),
                seeds,
                hold_out=hold_out,
                factors=factors,
                steps_done=steps_done,
            )
        self._keep(recipe, trained, hold_out)
        self.feature_importances_ = shares(
            trained.moved * weighted_variance(inputs, row_weight), self.columns_
        )

    def _relevance(
        self, inputs: NDArray[np.float32], target: NDArray[np.float32], weight: Floats, n: float
    ) -> Floats:
        """Give each input's factor; two views of one column have the same ranks and factor."""
        first = self.columns_.seen(0)
        known = relevance(inputs[:, first], target, weight, n)
        factor = np.empty(self.columns_.n_inputs)
        for view in (0, 1):
            factor[self.columns_.seen(view)] = known
        return factor

    def _keep(self, recipe: Recipe, trained: Trained, hold_out: HoldOut | None) -> None:
        """Set the fitted attributes."""
        if not all(np.isfinite(weight).all() for weight in trained.weights):
            raise UserError(
                f"{type(self).__name__}: training diverged with "
                f"learning_rate={self.learning_rate}. Give a smaller one."
            )
        self.network_ = recipe.model
        self.weights_ = trained.weights
        self.n_iter_ = trained.steps
        self.looks_ = np.array(trained.looks)
        self.loss_curve_ = trained.losses.mean(axis=1)
        self.validation_loss_curve_ = np.array(hold_out.clock.losses) if hold_out else None

    def _hold_out(self, n: float, order: NDArray[Any], n_members: int, seed: int) -> HoldOut | None:
        """Deal the rows into folds; rows too few for two in each are all learned from."""
        n_folds = whole(self, "n_folds", least=2)
        if not choice(self, "early_stopping") or len(order) < 2 * n_folds:
            return None
        clock = Clock(usual_steps(n), n * min(1, n_members / n_folds))
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
        """Give the members' outputs for rows of a table, shape (member, row, output)."""
        check_is_fitted(self)
        x = validate_data(
            self,
            X,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
            reset=False,
        )
        inputs = self.columns_.inputs(x.astype(np.float64))
        return outputs_of(self.weights_, self.network_, inputs)
