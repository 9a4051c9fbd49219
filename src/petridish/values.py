"""Values as JSON, and back: what a key is made from, and what a store and a record keep.

A value is a frozen dataclass of numbers, text, None, values, or tuples of them. Its JSON has the
name of its class and its fields; of a user's class, its code too (`petridish.sources`).
"""

from __future__ import annotations

import importlib
import math
import sys
import types
import typing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache, lru_cache
from typing import Any

from petridish.errors import UserError
from petridish.sources import code_digest, is_users

LATER = {"later": True}
"""Metadata of a field that came after runs were stored.

At its default it is left out of the JSON, so that old keys stay valid.
"""
RESERVED = {"type", "code", "version"}  # beside a value's fields in its JSON
# Where the package's values live, imported when one is first read: these rooms import this file.
ROOMS = (
    *("tasks", "models", "training", "estimator.contenders"),
    *("sweeps.adaptive", "sweeps.thresholds"),
)

named_code = lru_cache(maxsize=256)(code_digest)  # every part of every spec asks
# Values whose fields are known to fit a spec, by identity: the specs of a sweep share their parts.
_looked_at: dict[int, object] = {}
PLAIN = (type(None), bool, int, float, str)
MOST_LOOKED_AT = 4096
_learned: dict[str, types.ModuleType] = {}  # users' files, by the names of their modules


class GoneError(UserError, AttributeError):
    """Something was asked of a value whose class is not here."""


@dataclass(frozen=True)
class Gone:
    """A value of a class that is not here: it prints, compares, groups and has its key.

    Its fields are attributes, as the JSON has them. What a class computes it cannot, so no run with
    such a value is carried out.
    """

    kind: str
    parts: tuple[tuple[str, Any], ...]

    def __getattr__(self, name: str) -> Any:
        found = dict(object.__getattribute__(self, "parts"))
        if name in found:
            return found[name]
        raise GoneError(
            f"The class {self.kind} of this run is not here, and {name} is none of its fields. "
            "Load the file that defines it."
        )

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Refuse what an activation or a loss would compute."""
        raise GoneError(self.refusal)

    @property
    def refusal(self) -> str:
        """Why a run with this value is not carried out."""
        parts = dict(self.parts)
        kind = None if "code" in parts else known_classes().get(self.kind)
        if kind is not None:
            return (
                f"This run has {self.kind} of version {parts.get('version', 1)}, and this "
                f"petridish has version {version_of(kind)}: the run can be looked at, but not "
                "carried out."
            )
        return (
            f"The class {self.kind} of this run is not here, or its code is not what it was: the "
            "run can be looked at, but not carried out. Load the file that defines it."
        )


def version_of(kind: type) -> int:
    """Return the version of a class: it rises when its values come to compute something else."""
    version = getattr(kind, "version", 1)
    return version if isinstance(version, int) else 1


def is_left_out(part: Field[Any], value: object) -> bool:
    """Say whether a field came after runs were stored, and stands at its default."""
    return part.metadata == LATER and bool(value == part.default)


def plain(value: object) -> Any:
    """Return the JSON form of a value; type names keep two tasks with equal fields apart."""
    if isinstance(value, Gone):
        return {"type": value.kind, **{name: plain(part) for name, part in value.parts}}
    if is_dataclass(value) and not isinstance(value, type):
        if is_short(value):
            return type(value).short  # type: ignore[attr-defined] # is_short has looked
        parts = {
            part.name: plain(getattr(value, part.name))
            for part in fields(value)
            if not is_left_out(part, getattr(value, part.name))
        }
        if reserved := sorted(RESERVED & parts.keys()):
            raise UserError(
                f"{type(value).__name__}: the field {reserved[0]!r} has a name that specs use "
                "themselves. Choose another."
            )
        if (version := version_of(type(value))) > 1:  # the first is not written: old keys hold
            parts["version"] = version
        if code := named_code(type(value)):
            parts["code"] = code
        return {"type": type(value).__name__, **parts}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if isinstance(value, float):
        # One spelling for equal numbers: 0 and 0.0 make one run, and one entry of a cache.
        return "inf" if math.isinf(value) else int(value) if value.is_integer() else value
    return value


def is_short(value: object) -> bool:
    """Return whether a value is written by a short text: a class's `short`, with its defaults.

    Stored specs have such texts from before their classes were values.
    """
    kind = type(value)
    return "short" in vars(kind) and all(
        getattr(value, part.name) == part.default
        for part in fields(value)  # type: ignore[arg-type]
    )


def read(value: Any, hint: Any = None) -> Any:
    """Return the value that `plain` has written; `hint` is the type that its place asks for.

    JSON has one kind of number and of list: a field for a float reads 2 as 2.0, and lists are
    tuples.
    """
    if isinstance(value, dict):
        return _read_object(value)
    if isinstance(value, list):
        items = item_hints(value, hint)
        return tuple(read(part, item) for part, item in zip(value, items, strict=True))
    if value == "inf" and str not in options_of(hint):
        return math.inf
    return with_types(value, hint)


def with_types(value: Any, hint: Any) -> Any:
    """Return a number as a float, and a list as a tuple, where the field asks for one."""
    options = options_of(hint)
    if isinstance(value, tuple | list) and any(map(is_tuple, options)):
        items = item_hints(value, hint)
        return tuple(with_types(part, item) for part, item in zip(value, items, strict=True))
    if type(value) is int and float in options and int not in options:
        return float(value)
    return value


def hint_at(value: object, path: str) -> Any:
    """Return the type that the field at a path into a value asks for; None if it names none."""
    *inside, last = path.split(".")
    for name in inside:
        value = getattr(value, name)
    kind: type = type(value)
    return None if kind is Gone else field_hints(kind).get(last)


def learn(module: types.ModuleType) -> None:
    """Let `read` find the classes that a user's file defines."""
    _learned[module.__name__] = module


@contextmanager
def learning(module: types.ModuleType) -> Iterator[None]:
    """Let `read` find the classes of a module for a while."""
    before = dict(_learned)
    learn(module)
    try:
        yield
    finally:
        _learned.clear()
        _learned.update(before)


def as_value(value: Any, owner: str, name: str) -> Any:
    """Return a field's value with NumPy's numbers as Python's, and lists and arrays as tuples.

    What a spec cannot hold is refused, by the class and the field that hold it.
    """
    if type(value) in PLAIN or isinstance(value, Gone):
        return value
    if isinstance(value, tuple | list):
        found = tuple(as_value(part, owner, name) for part in value)
        same = isinstance(value, tuple) and all(a is b for a, b in zip(found, value, strict=True))
        return value if same else found
    if isinstance(getattr(value, "shape", None), tuple) and hasattr(value, "tolist"):
        return as_value(value.tolist(), owner, name)
    if is_dataclass(value) and not isinstance(value, type):
        return _as_values(value, owner, name)
    if isinstance(value, bool | int | float | str):
        return value  # a subclass, such as an enumeration of words
    raise UserError(
        f"{owner}: {name} holds a value of the type {type(value).__name__}, which is no part of a "
        "spec. Give numbers, text, None, frozen dataclasses, or tuples of them."
    )


def settle(owner: Any) -> None:
    """Set the fields of a frozen dataclass to what `as_value` returns, before it checks them."""
    kind: type = type(owner)
    for part in _field_names(kind):
        inner = getattr(owner, part)
        if type(inner) not in PLAIN:
            object.__setattr__(owner, part, as_value(inner, kind.__name__, part))


def was_looked_at(value: object) -> bool:
    """Say whether `as_value` has returned this value before."""
    return _looked_at.get(id(value)) is value


def _as_values(value: Any, owner: str, name: str) -> Any:
    kind: type = type(value)
    if not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise UserError(
            f"{owner}: {name}={value!r} is not an instance of a frozen dataclass. Give one; "
            "docs/extend.md shows how."
        )
    if was_looked_at(value):
        return value
    changed = {}
    for part in _field_names(kind):
        inner = getattr(value, part)
        if type(inner) in PLAIN or (type(inner) is tuple and not inner):
            continue  # most fields: every spec is looked at
        found = as_value(inner, kind.__name__, part)
        if found is not inner:
            changed[part] = found
    if changed:
        value = replace(value, **changed)
    if len(_looked_at) >= MOST_LOOKED_AT:
        _looked_at.clear()
    _looked_at[id(value)] = value
    return value


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(part.name for part in fields(kind))


def find_gone(value: object) -> Gone | None:
    """Return the first part of a value whose class is not here, or None."""
    return next((part for part in parts_of(value) if isinstance(part, Gone)), None)


def has_users(value: object) -> bool:
    """Return whether a value or a part of it is of a user's class."""
    return any(is_users(type(part)) for part in parts_of(value))


def parts_of(value: object) -> Iterator[Any]:
    """Yield the values inside a value, itself first."""
    inner: list[Any] = []
    if isinstance(value, tuple | list):
        inner = list(value)
    elif is_dataclass(value) and not isinstance(value, type):
        yield value
        if not isinstance(value, Gone):
            inner = [getattr(value, part.name) for part in fields(value)]
    for part in inner:
        if type(part) not in PLAIN:
            yield from parts_of(part)


@cache
def known_classes() -> dict[str, type]:
    """Return the package's classes that may stand in a spec, by name; no two have the same."""
    found: dict[str, type] = {}
    for room in ROOMS:
        module = importlib.import_module(f"petridish.{room}")
        for name in getattr(module, "__all__", vars(module)):
            kind = getattr(module, name)
            if isinstance(kind, type) and is_dataclass(kind):
                found[kind.__name__] = kind
    return found


def _read_object(written: dict[str, Any]) -> Any:
    name, code = written["type"], written.get("code", "")
    kind = _users_class(name, code) if code else known_classes().get(name)
    parts = {part: inner for part, inner in written.items() if part != "type"}
    version = written.get("version", 1)
    if kind is not None and version > version_of(kind):
        raise UserError(
            f"This spec has {name} of version {version}, and this petridish has version "
            f"{version_of(kind)}. Upgrade petridish."
        )
    if kind is None or version < version_of(kind):  # what it computed is not here any more
        return Gone(name, tuple((part, read(inner)) for part, inner in parts.items()))
    own = {part: inner for part, inner in parts.items() if part not in RESERVED}
    known = [part.name for part in fields(kind)]
    if unknown := [part for part in own if part not in known]:
        raise UserError(
            f"This spec has {name} with the field {unknown[0]!r}, which this petridish does not "
            "know: a newer one wrote it. Upgrade petridish."
        )
    hints = field_hints(kind)
    return kind(**{part: read(inner, hints.get(part)) for part, inner in own.items()})


def _users_class(name: str, code: str) -> type | None:
    """Find a class of a file that was loaded, or of the notebook or script that is running."""
    for module in _users_modules():
        kind = getattr(module, name, None)
        if isinstance(kind, type) and is_dataclass(kind):
            with suppress(UserError):  # a class that has no name of its own is not the one
                if named_code(kind) == code:
                    return kind
    return None


def users_classes() -> list[type]:
    """Return the choices that users' files, or the running notebook or script, define."""
    return [
        kind
        for module in _users_modules()
        for kind in vars(module).values()
        if isinstance(kind, type)
        and is_dataclass(kind)
        and kind.__module__ == module.__name__
        and isinstance(getattr(kind, "name", None), str)
    ]


def _users_modules() -> list[types.ModuleType]:
    running = sys.modules.get("__main__")
    return [*_learned.values(), *([running] if running else [])]


@lru_cache(maxsize=256)
def field_hints(kind: type) -> dict[str, Any]:
    """Return the types of a class's fields; of a hint that cannot be evaluated, its default's."""
    try:
        return typing.get_type_hints(kind)
    except (NameError, TypeError, AttributeError):
        return {
            part.name: type(part.default) for part in fields(kind) if part.default is not MISSING
        }


def options_of(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the one type that a hint is."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if union else (hint,)


def is_tuple(hint: object) -> bool:
    """Say whether a hint is for tuples of something."""
    return typing.get_origin(hint) is tuple and bool(typing.get_args(hint))


def is_literal(hint: object) -> bool:
    """Say whether a hint names its values."""
    return typing.get_origin(hint) is typing.Literal


def item_of(hint: Any) -> Any:
    """Return the type of a tuple's parts, of the first tuple that a hint allows."""
    return next((typing.get_args(each)[0] for each in options_of(hint) if is_tuple(each)), None)


def item_hints(value: Sequence[Any], hint: Any) -> list[Any]:
    """Return the type that a hint asks of each part of a tuple.

    `tuple[float, ...]` asks the same of every part, `tuple[str, float]` something of each. Where
    both numbers and pairs may stand, the parts say which.
    """
    nested = bool(value) and isinstance(value[0], tuple | list)
    for arguments in (typing.get_args(each) for each in options_of(hint) if is_tuple(each)):
        endless = arguments[1:] == (Ellipsis,)
        items = [arguments[0]] * len(value) if endless else list(arguments)
        if len(items) == len(value) and (not nested or any(map(is_tuple, options_of(items[0])))):
            return items
    return [None] * len(value)
