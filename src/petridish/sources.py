"""The digest of a user's class: the same under every Python, changed whenever its code changes.

A user may edit a class between two runs of a sweep. Its code is therefore part of the key of a
run, with the statements of its file, or of its notebook, that define what the code uses, and
what these use in turn. The value of a constant counts too if it is not what one literal statement
says: computed, rebound or changed while Python runs. Comments, layout, type hints, other files, and
data that the code reads do not count.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import symtable
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any
from weakref import WeakKeyDictionary

from petridish.errors import UserError

CARRIED = "__petridish_code__"  # on a class that a worker receives by value, without its source

Statements = dict[str, list[ast.stmt]]

_read: WeakKeyDictionary[type, str] = WeakKeyDictionary()  # digests of code, without values
_received: WeakKeyDictionary[type, str] = WeakKeyDictionary()  # names given by another process


def code_digest(kind: type) -> str:
    """Return a hash of the code of a user's class; empty for petridish's own classes.

    petridish's classes change with their version, and are named by it.
    """
    if not is_users(kind):
        return ""
    if kind in _received:
        return _received[kind]
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
    _check_current(kind, _hash(text))
    values = _computed(kind, own, bound)
    digest = _hash(text + "".join(f"\n{name} = {values[name]}" for name in sorted(values)))
    setattr(kind, CARRIED, digest)
    return digest


@lru_cache(maxsize=1)
def own_digest() -> str:
    """Return a hash of petridish's own code: installations of one version may differ."""
    here = Path(__file__).parent
    found = hashlib.sha256()
    for path in sorted(here.rglob("*.py")):
        found.update(path.relative_to(here).as_posix().encode() + path.read_bytes())
    return found.hexdigest()[:8]


def receive(names: Mapping[type, str]) -> None:
    """Take the names that the process which sent these classes gave them.

    A class that came by value brought its constants with it. One of a file that was imported here
    must have the same: its runs would be kept under the name of others.
    """
    for kind, name in names.items():
        if getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is not kind:
            _received[kind] = name
        elif code_digest(kind) != name:
            bound = _statements(kind)
            found = sorted(_computed(kind, _definition(kind, bound), bound))
            raise UserError(
                f"The class {kind.__name__} of {inspect.getfile(kind)} uses "
                f"{' or '.join(found) or 'code'} that is not the same in a worker process, which "
                "imports the file anew. Make it a field of the class, or run with --jobs 1."
            )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _check_current(kind: type, digest: str) -> None:
    """Refuse a class whose source is no longer the code that would run."""
    module, before = sys.modules.get(kind.__module__), _read.get(kind)
    now = getattr(module, kind.__qualname__, kind)
    if now is not kind and isinstance(now, type) and before != digest:
        raise UserError(
            f"The class {kind.__name__} was defined again since this value of it was made, and its "
            "code is no longer there. Make the value again."
        )
    # The cells of a notebook change what a class uses; a file does so only when it is imported.
    if before not in (None, digest) and not hasattr(module, "In"):
        raise UserError(
            f"The file of the class {kind.__name__} was changed since it was imported, and the old "
            "code would run. Reload the file, or start Python again."
        )
    _read[kind] = digest


def is_users(kind: type) -> bool:
    """Return whether a class is defined outside of petridish."""
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
        return _bound(map(str, cells))
    if module is not None:
        try:
            return _bound([inspect.getsource(module)])
        except (OSError, TypeError):
            pass
    for function in _methods(kind):  # they know their file or cell
        if lines := linecache.getlines(function.__code__.co_filename):
            return _bound(["".join(lines)])
    return {}


def _methods(kind: type) -> Iterator[types.FunctionType]:
    """Yield the functions that a class defines itself."""
    for part in vars(kind).values():
        function = _function(part)
        if function is not None and function.__module__ == kind.__module__:
            yield function


def _function(part: object) -> types.FunctionType | None:
    """Return the function behind a method, a property or a cached property."""
    for name in ("__func__", "fget", "func"):
        part = getattr(part, name, part)
    return part if isinstance(part, types.FunctionType) else None


def _bound(texts: Iterable[str]) -> Statements:
    """Return the statements that make each name of a file, or of a notebook's cells, what it is.

    A name that is bound again is what it is now, unless its new value is made from the old one.
    """
    bound: Statements = {}
    for text in texts:
        binding, changing = _sorted(text)
        for name, statements in binding.items():
            from_old = any(_refers_to(name, _table(each)) for each in statements)
            bound[name] = [*(bound.get(name, ()) if from_old else ()), *statements]
        for name, statements in changing.items():
            if name in bound:  # no import
                # A cell that sets an item may be carried out twice.
                set_again = [_dumped([each]) for each in statements if isinstance(each, ast.Assign)]
                before = [each for each in bound[name] if _dumped([each]) not in set_again]
                bound[name] = [*before, *statements]
    return bound


@lru_cache(maxsize=256)
def _sorted(text: str) -> tuple[Statements, Statements]:
    """Sort statements by the names that they bind, and by those whose contents they change.

    An import counts only if it renames what it imports: other files do not count.
    """
    found: Statements = {}
    changed: Statements = {}
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a cell in another language
        return found, changed
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            continue
        for name in _changed(statement):
            changed.setdefault(name, []).append(statement)
        names = {
            symbol.get_name()
            for symbol in _table(statement).get_symbols()
            if symbol.is_assigned() or symbol.is_imported()
        }
        if isinstance(statement, ast.ImportFrom):
            names = {a.asname for a in statement.names if a.asname and a.asname != a.name}
        for name in names:
            found.setdefault(name, []).append(statement)
    return found, changed


def _changed(statement: ast.stmt) -> set[str]:
    """Return the names whose contents a statement changes: `a[0] = 2`, `a.b = 2`, `a.append(2)`."""
    targets: list[ast.AST] = []
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue  # its code is not carried out here
        if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            targets.append(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            targets.append(node.value.func)
        waiting.extend(ast.iter_child_nodes(node))
    found = set()
    for target in targets:
        inside = target
        while isinstance(inside, ast.Subscript | ast.Attribute):
            inside = inside.value
        if isinstance(inside, ast.Name) and inside is not target:
            found.add(inside.id)
    return found


def _refers_to(name: str, table: symtable.SymbolTable) -> bool:
    """Return whether a statement uses the value of a name when it is carried out."""
    return name in table.get_identifiers() and table.lookup(name).is_referenced()


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
    """Return the variables of the functions around a class; None if it is not found."""
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


def _computed(kind: type, own: list[ast.stmt], bound: Statements) -> dict[str, str]:
    """Return the values of constants that code uses and no single literal states, as text.

    What such a constant was made from does not count: its value says it all.
    """
    values = next((each.__globals__ for each in _methods(kind)), {})
    found, seen, waiting = {}, {kind.__name__}, [own]
    while waiting:
        for statement in waiting.pop():
            for name in sorted(_referenced(statement) & bound.keys() - seen):
                seen.add(name)
                text = _written(values[name]) if name in values else None
                if text is None:
                    waiting.append(bound[name])
                elif len(bound[name]) > 1 or text != _literal(name, bound[name][0]):
                    found[name] = text
    return found


def _literal(name: str, statement: ast.stmt) -> str | None:
    """Return the value that an assignment of literals gives a name, as text."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return None
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    pairs = [(target, statement.value) for target in targets]
    for target, value in pairs:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs.extend(zip(target.elts, value.elts, strict=False))
        if isinstance(target, ast.Name) and target.id == name:
            try:
                return _written(ast.literal_eval(value))
            except (ValueError, TypeError):
                return None
    return None


def _written(value: object) -> str | None:
    """Return a plain value as text, the same in every process; None for any other value."""
    import numpy as np  # where it is needed: `petridish --help` does not wait for it

    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.hasobject:
            return None
        held = hashlib.sha256(value.tobytes()).hexdigest()
        return f"array({value.dtype.str}, {value.shape}, {held})"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, PurePath):
        return f"path({value.as_posix()!r})"
    if not isinstance(value, tuple | list | dict | set | frozenset):
        return None
    parts = [_written(each) for each in (value.items() if isinstance(value, dict) else value)]
    texts = [text for text in parts if text is not None]
    if len(texts) < len(parts):
        return None
    ordered = sorted(texts) if isinstance(value, set | frozenset) else texts
    return f"{type(value).__name__}({', '.join(ordered)})"


class _WithoutHints(ast.NodeTransformer):
    """Removes type hints, which do not affect results."""

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
