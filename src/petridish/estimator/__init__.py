"""Estimators for tables, in scikit-learn's manner; it and PyTorch load with the classes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from petridish.estimator.classifier import SparseMLPClassifier
    from petridish.estimator.regressor import SparseMLPRegressor

__all__ = ["SparseMLPClassifier", "SparseMLPRegressor"]
_HOMES = {"SparseMLPClassifier": "classifier", "SparseMLPRegressor": "regressor"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"petridish.estimator.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
