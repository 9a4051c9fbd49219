"""Estimators for tables, in scikit-learn's manner; it and PyTorch load with the classes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from petridish.estimator.sparse_mlp import SparseMLPClassifier, SparseMLPRegressor

__all__ = ["SparseMLPClassifier", "SparseMLPRegressor"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("petridish.estimator.sparse_mlp"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
