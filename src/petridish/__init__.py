"""petridish: a laboratory for the science of deep learning on small exact tasks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from petridish.estimator import SparseMLPClassifier, SparseMLPRegressor

__version__ = "0.1.0"

__all__ = ["SparseMLPClassifier", "SparseMLPRegressor", "__version__"]


def __getattr__(name: str) -> Any:
    # The estimators need scikit-learn and PyTorch, which `petridish --help` does not wait for.
    if name in ("SparseMLPClassifier", "SparseMLPRegressor"):
        return getattr(import_module("petridish.estimator"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
