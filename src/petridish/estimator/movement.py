"""Which columns a network found: how far its first layer's weights moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError

if TYPE_CHECKING:
    from petridish.estimator.features import Columns

Weights = NDArray[np.float32]


def movement(start: Weights, end: Weights, outgoing: Weights) -> NDArray[np.float64]:
    r"""Sum up how far the first layer's weights moved, input by input.

    Parameters
    ----------
    start, end : array, shape (member, neuron, input)
        First-layer weights before and after training, for standardised inputs.
    outgoing : array, shape (member, output, neuron)
        The next layer's weights after training.

    Returns
    -------
    moved : array, shape (input,)
        :math:`\sum_i \|v_i\|^2 (w_{ij} - w_{ij}(0))^2` over the neurons i of all members, with
        :math:`v_i` the weights that leave neuron i. Adaptive steps move every weight a little; the
        square favours those that moved far, :math:`v_i` those that the next layer uses.
    """
    outgoing_norm = np.square(outgoing, dtype=np.float64).sum(axis=1)  # (member, neuron)
    moved: NDArray[np.float64] = np.einsum(
        "mi,mij->j", outgoing_norm, np.square(end - start, dtype=np.float64)
    )
    return moved


def weighted_variance(inputs: Weights, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute each input's variance over the rows.

    What weights on it do is in proportion: they go far on an input that hardly varies, such as the
    deviations of a column with one outlier.
    """
    share = weight / weight.sum()
    variance: NDArray[np.float64] = share @ np.square(inputs - share @ inputs)
    return variance


def shares(moved: NDArray[np.float64], columns: Columns) -> NDArray[np.float64]:
    """Sum inputs to the table's columns, those for missing values too, and divide by the total.

    All are 0 where no column varies, or nothing moved.
    """
    source = columns.source
    total = np.bincount(source, moved[: len(source)], minlength=columns.n_features)
    whole = total.sum()
    return total / whole if whole > 0 else np.zeros(columns.n_features)


def named_importances(estimator: Any) -> tuple[list[str], NDArray[np.float64]]:
    """Return the names of the columns a fitted estimator saw, and their importances.

    `estimator` may be a pipeline that ends in one; its columns are what the last step was given.
    Columns without names are called x0, x1, …
    """
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    check_is_fitted(last)
    values = getattr(last, "feature_importances_", None)
    if values is None:
        raise UserError(
            f"{type(last).__name__} has no importances. "
            "Give a SparseMLPClassifier or SparseMLPRegressor, or a pipeline that ends in one."
        )
    names = getattr(last, "feature_names_in_", None)
    if names is None and isinstance(estimator, Pipeline) and len(estimator) > 1:
        names = estimator[:-1].get_feature_names_out()
    if names is None:
        names = [f"x{place}" for place in range(len(values))]
    return [str(name) for name in names], np.asarray(values, np.float64)
