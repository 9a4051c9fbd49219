"""The code of a user's class as a name: the same under every Python, and changed when it changes.

A class of one's own may change between two runs of one sweep. Its code is therefore part of the key
of a run, with what the code uses of its own file: constants by their value, functions and classes
by their code. Comments and layout do not count.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import inspect
import linecache
import re
import symtable
import sys
import textwrap
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from petridish.errors import UserError

CARRIED = "__petridish_code__"  # on a class that a worker receives by value, without its source
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def code_digest(kind: type) -> str:
    """Return a hash of the code of a user's class; empty for petridish's own classes.

    petridish's classes change with their version, and are named by it.
    """
    if kind.__module__.split(".")[0] == "petridish":
        return ""
    text = _source(kind)
    if text is None:
        if carried := kind.__dict__.get(CARRIED):
            return str(carried)
        raise UserError(
            f"The class {kind.__name__} has no source by which its runs could be named. Define it "
            "in a file or in a cell of a notebook."
        )
    found = _dumped(text) + "".join(sorted(_used(kind, text, {kind.__name__})))
    digest = hashlib.sha256(found.encode()).hexdigest()[:16]
    setattr(kind, CARRIED, digest)
    return digest


def _dumped(text: str) -> str:
    """Return the syntax tree as Python 3.11 prints it: keys must not depend on the Python."""
    tree = ast.parse(text)
    # Since 3.13 empty lists are left out unless asked for; since 3.12 types may have parameters.
    options: dict[str, Any] = {"show_empty": True} if sys.version_info >= (3, 13) else {}
    return ast.dump(tree, **options).replace(", type_params=[]", "")


def _source(thing: Any) -> str | None:
    """Return the source of a class or a function, unindented; None if it has none."""
    try:
        return textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        return _from_cell(thing) if isinstance(thing, type) else None


def _from_cell(kind: type) -> str | None:
    """Find a class in the cell of a notebook that holds its methods: Python knows their lines."""
    for part in vars(kind).values():
        function = _function(part)
        if function is None or function.__qualname__ != f"{kind.__qualname__}.{function.__name__}":
            continue
        lines = linecache.getlines(function.__code__.co_filename)
        for node in ast.walk(ast.parse("".join(lines))) if lines else ():
            if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                return textwrap.dedent("".join(lines[first - 1 : node.end_lineno]))
    return None


def _function(part: object) -> types.FunctionType | None:
    """Return the function behind a method, a property or a cached property."""
    for name in ("__func__", "fget", "func"):
        part = getattr(part, name, part)
    return part if isinstance(part, types.FunctionType) else None


def _used(kind: type, text: str, seen: set[str]) -> Iterator[str]:
    """Yield what code refers to in the file of a class, and what that refers to in turn."""
    there = vars(sys.modules[kind.__module__]) if kind.__module__ in sys.modules else {}
    for name in sorted(_names(text) - seen):
        seen.add(name)
        value = there.get(name)
        if name not in there or _is_from_elsewhere(value, kind.__module__):
            continue
        if not isinstance(value, type | types.FunctionType):
            yield f"\n{name} = {_constant(kind, name, value)}"
            continue
        inner = _source(value)
        if inner is None:
            raise UserError(
                f"The class {kind.__name__} uses {name}, which has no source by which its runs "
                "could be named. Define it in a file or in a cell of a notebook."
            )
        yield f"\n{name}: {_dumped(inner)}"
        yield from _used(kind, inner, seen)


def _is_from_elsewhere(value: object, module: str) -> bool:
    """Say whether a name stands for a module, or for a function or a class of another file."""
    has_code = callable(value) and hasattr(value, "__name__")  # an object with a call has none
    return isinstance(value, types.ModuleType) or (
        has_code and getattr(value, "__module__", None) != module
    )


class _WithoutHints(ast.NodeTransformer):
    """Hints compute nothing, and a library may print a type in another way tomorrow."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(0)
        return self.generic_visit(node)


def _names(text: str) -> set[str]:
    """Return the names that code takes from its module: locals of the same name are others."""
    tree = ast.fix_missing_locations(_WithoutHints().visit(ast.parse(text)))
    found: set[str] = set()
    tables = [symtable.symtable(ast.unparse(tree), "<class>", "exec")]
    for table in tables:
        outermost = table.get_type() == "module"
        found |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (outermost or symbol.is_global())
        }
        tables.extend(table.get_children())
    return found


def _constant(kind: type, name: str, value: object) -> str:
    """Write a value as text that is the same in every process."""
    if isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"{value.dtype} {value.shape} {content}"
    if isinstance(value, functools.partial):
        return f"partial {value.func.__qualname__} {value.args} {value.keywords}"
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__} {sorted(map(repr, value))}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: getattr(value, part.name) for part in dataclasses.fields(value)}
        return f"{type(value).__qualname__} {parts}"
    text = repr(value)
    if _ADDRESS.search(text):
        raise UserError(
            f"The class {kind.__name__} uses {name} of its file, an object of type "
            f"{type(value).__name__} that cannot be written as text, so that a change of it would "
            "not be noticed. Make it a constant, a function or a field of the class."
        )
    return text
