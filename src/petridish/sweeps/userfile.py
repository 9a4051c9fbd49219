"""A user's own file: tasks, activations, inits and sweeps declared outside the package."""

from __future__ import annotations

import hashlib
import importlib.util
import linecache
import sys
from importlib.abc import SourceLoader
from pathlib import Path
from types import ModuleType

import petridish
from petridish.choices import said_by
from petridish.errors import UserError
from petridish.user_classes import learn

TEXT = "__petridish_text__"  # what stood in the file when it was imported


def load_user_file(path: Path) -> ModuleType:
    """Import a Python file; every process that loads it gives it the same module name.

    The name is made from the path, so that a worker can receive the file's classes from the process
    that read it. A file that was edited since is imported again.
    """
    path = path.expanduser().resolve()
    name = f"petridish_user_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    text = path.read_bytes() if path.is_file() else None
    if name in sys.modules and text in (None, vars(sys.modules[name]).get(TEXT)):
        return sys.modules[name]
    if text is None:
        raise UserError(f"There is no file {path}. Give the path of a Python file.")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or not isinstance(spec.loader, SourceLoader):
        raise UserError(f"{path} is not a Python file. Give a file that ends in .py.")
    module = importlib.util.module_from_spec(spec)
    vars(module)[TEXT] = text
    linecache.checkcache(str(path))  # the lines by which its classes are named
    before = sys.modules.get(name)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # as `python file.py` does: modules beside it import
    try:
        # Not by `exec_module`: compiled code of the same second and length would be taken.
        exec(spec.loader.source_to_code(text, str(path)), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
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
