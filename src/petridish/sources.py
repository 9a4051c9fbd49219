"""The code of a user's class as a name: the same under every Python, and changed when it changes.

A class of one's own may change between two runs of one sweep. Its code is therefore part of the key
of a run, with the statements of its file, or of its notebook, that define what the code uses, and
what these use in turn. Only code is looked at, never values: it is the same in every process. Not
looked at are comments, layout, type hints, other files, and data that the code reads.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import symtable
import sys
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from petridish.errors import UserError

CARRIED = "__petridish_code__"  # on a class that a worker receives by value, without its source

Statements = dict[str, list[ast.stmt]]


def code_digest(kind: type) -> str:
    """Return a hash of the code of a user's class; empty for petridish's own classes.

    petridish's classes change with their version, and are named by it.
    """
    if not is_users(kind):
        return ""
    bound = _statements(kind)
    own = _definition(kind, bound)
    if not own:
        if carried := kind.__dict__.get(CARRIED):
            return str(carried)
        raise UserError(
            f"The class {kind.__name__} has no source by which its runs could be named. Define it "
            "in a file or in a cell of a notebook."
        )
    if around := sorted(_closed_over(kind, own, bound)):
        raise UserError(
            f"The class {kind.__name__} uses {around[0]} of the function around it, whose value is "
            "no part of the class's code. Make it a field, or define the class outside."
        )
    used = [f"\n{name}: {_dumped(found)}" for name, found in _used(own, bound, kind.__name__)]
    text = _dumped(own) + "".join(sorted(used))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    setattr(kind, CARRIED, digest)
    return digest


def is_users(kind: type) -> bool:
    """Return whether a class is none of petridish's own."""
    return kind.__module__.split(".")[0] != "petridish"


def _dumped(statements: Iterable[ast.stmt]) -> str:
    """Write statements as Python 3.11 prints their syntax tree: keys must not depend on it."""
    tree = ast.Module(body=list(statements), type_ignores=[])
    for node in ast.walk(tree):
        if not getattr(node, "type_params", True):
            del node.type_params  # type: ignore[attr-defined] # since Python 3.12
        if isinstance(node, ast.JoinedStr):  # Python 3.12.0 and 3.12.1 add empty texts
            node.values = [v for v in node.values if not _is_empty_text(v)]
    # Since 3.13 empty lists are left out unless asked for.
    options: dict[str, Any] = {"show_empty": True} if sys.version_info >= (3, 13) else {}
    return ast.dump(tree, **options)


def _is_empty_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == ""


# Where the code is


def _statements(kind: type) -> Statements:
    """Return the statements that bind each name of the class's file or notebook."""
    module = sys.modules.get(kind.__module__)
    cells = getattr(module, "In", None)  # what IPython has carried out, cell by cell
    if isinstance(cells, list):
        bound: Statements = {}
        for cell in cells:
            bound |= _bound(str(cell))  # a name that is bound again is what it is now
        return bound
    if module is not None:
        try:
            return _bound(inspect.getsource(module))
        except (OSError, TypeError):
            pass
    for part in vars(kind).values():  # methods know the file or the cell that they stand in
        function = _function(part)
        if function is not None and function.__module__ == kind.__module__:
            lines = linecache.getlines(function.__code__.co_filename)
            if lines:
                return _bound("".join(lines))
    return {}


def _function(part: object) -> types.FunctionType | None:
    """Return the function behind a method, a property or a cached property."""
    for name in ("__func__", "fget", "func"):
        part = getattr(part, name, part)
    return part if isinstance(part, types.FunctionType) else None


@lru_cache(maxsize=256)
def _bound(text: str) -> Statements:
    """Sort the statements of a file by the names that they bind.

    An import is looked at only if it gives another name to what it imports: what other files hold
    is not part of this one.
    """
    found: Statements = {}
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a cell in another language
        return found
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            continue
        names = {
            symbol.get_name()
            for symbol in _table(statement).get_symbols()
            if symbol.is_assigned() or symbol.is_imported()
        }
        if isinstance(statement, ast.ImportFrom):
            names = {a.asname for a in statement.names if a.asname and a.asname != a.name}
        for name in names:
            found.setdefault(name, []).append(statement)
    return found


def _definition(kind: type, bound: Statements) -> list[ast.stmt]:
    """Return the statements that define a class; of one inside a function, its own code."""
    first, *rest = kind.__qualname__.split(".")
    if not rest:
        return bound.get(first, [])
    for statement in bound.get(first, []):
        for node in ast.walk(statement):
            if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
                return [node]
    return []


def _closed_over(kind: type, own: list[ast.stmt], bound: Statements) -> set[str]:
    """Name the variables of the functions around a class that its code uses."""
    around = {
        name
        for statement in bound.get(kind.__qualname__.split(".")[0], [])
        for name in _locals_around(kind.__name__, _table(statement)) or ()
    }
    taken = {name for statement in own for name in _referenced(statement)}
    return taken & around - {kind.__name__}


def _locals_around(name: str, table: symtable.SymbolTable) -> set[str] | None:
    """Return the variables of the functions that a class stands in; None if it is not there."""
    for inner in table.get_children():
        there = inner.get_type() == "class" and inner.get_name() == name
        found = set() if there else _locals_around(name, inner)
        if found is not None:
            own = table.get_locals() if isinstance(table, symtable.Function) else ()
            return {*found, *own}
    return None


# What the code uses


def _used(
    own: list[ast.stmt], bound: Statements, name: str
) -> Iterator[tuple[str, list[ast.stmt]]]:
    """Yield the names of its file that code uses, directly or not, with what binds them."""
    seen, waiting = {name}, [own]
    while waiting:
        for statement in waiting.pop():
            for each in sorted(_referenced(statement) & bound.keys() - seen):
                seen.add(each)
                waiting.append(bound[each])
                yield each, bound[each]


class _WithoutHints(ast.NodeTransformer):
    """Hints compute nothing."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(0)
        return self.generic_visit(node)


def _table(statement: ast.stmt) -> symtable.SymbolTable:
    """Return the names of a statement by scope, hints aside."""
    copied = ast.parse(ast.unparse(statement))
    return symtable.symtable(ast.unparse(_WithoutHints().visit(copied)), "<code>", "exec")


def _referenced(statement: ast.stmt) -> set[str]:
    """Return the names that code takes from its module: locals of the same name are others."""
    found: set[str] = set()
    tables = [_table(statement)]
    for table in tables:
        outermost = table.get_type() == "module"
        found |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (outermost or symbol.is_global())
        }
        tables.extend(table.get_children())
    return found
