"""petridish: a laboratory for the science of deep learning on small exact tasks."""

import ast as _ast
from importlib import import_module as _import_module
from pathlib import Path as _Path

__version__ = "0.1.0"
DEFAULT_STORE = "petridish-store"  # the folder that keeps the runs, where none is named

# What a user's file needs, by the room that it comes from; the stub beside this file lists it for
# type checkers too. A room is imported when one of its names is asked for: `petridish --help` does
# not wait for PyTorch.
_HOMES = {
    alias.name: str(statement.module)
    for statement in _ast.parse(_Path(__file__).with_suffix(".pyi").read_text("utf-8")).body
    if isinstance(statement, _ast.ImportFrom)
    for alias in statement.names
}

# `from petridish import *` must not replace what many files have from elsewhere.
_TAKEN = {"Field", "Mean", "Table"}

__all__ = ["DEFAULT_STORE", "__version__", *sorted(_HOMES.keys() - _TAKEN)]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(_import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    shown = {name for name in globals() if not name.startswith("_") or name.startswith("__")}
    return sorted({*shown, *_HOMES})
