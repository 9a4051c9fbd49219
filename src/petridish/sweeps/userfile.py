"""A user's own file: tasks, activations, inits and sweeps declared outside the package."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import petridish
from petridish.choices import said_by
from petridish.errors import UserError
from petridish.user_classes import learn


def load_user_file(path: Path) -> ModuleType:
    """Import a Python file; every process that loads it gives it the same module name.

    The name is made from the path, so that a worker can receive the file's classes from the process
    that read it.
    """
    path = path.resolve()
    name = f"petridish_user_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        raise UserError(f"There is no file {path}. Give the path of a Python file.")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path} is not a Python file. Give a file that ends in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # as `python file.py` does: modules beside it import
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        said = said_by(error).replace(": UserError: ", ": ", 1)
        # `from petridish import *` leaves out what many files have from elsewhere, such as Mean.
        forgotten = error.name if isinstance(error, NameError) else None
        cure = f" Add `from petridish import {forgotten}`." if forgotten in dir(petridish) else ""
        if "attempted relative import" in said:  # the file is imported by itself, as a script is
            where = "as Python finds them from the file's folder"
            cure = f" Name modules {where}: `from parts import Net`."
        stop = "" if said.endswith("?") else "."
        raise UserError(f"{path} cannot be imported{said}{stop}{cure}") from error
    learn(module)
    return module
