"""Values as JSON, and back: what a key is made from, and what a store and a record keep.

A value is a frozen dataclass of numbers, text, None, values, or tuples of them. Its JSON has the
name of its class and its fields; of a user's class, its code too (`petridish.sources`).
"""

from __future__ import annotations

import importlib
import math
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache, lru_cache
from typing import Any

from petridish.errors import UserError
from petridish.sources import is_users
from petridish.user_classes import named_code, users_called, users_class

LATER = {"later": True}
"""Metadata of a field that was added after runs were stored.

At its default it is left out of the JSON, so that old keys stay valid.
"""
RESERVED = {"type", "code", "version"}  # beside a value's fields in its JSON
# Where the package's values live, imported when one is first read: these rooms import this file.
ROOMS = (
    *("tasks", "models", "training", "estimator.contenders"),
    *("sweeps.adaptive", "sweeps.find_threshold"),
)

# Values that were checked, by identity: the specs of a sweep share their parts.
_checked: dict[int, object] = {}
PLAIN = frozenset({type(None), bool, int, float, str})
MOST_CHECKED = 4096


class GoneError(UserError, AttributeError):
    """Something was asked of a value whose class is missing."""


@dataclass(frozen=True)
class Gone:
    """A value whose class is missing: it prints, compares, groups and keeps its key.

    Its fields are attributes, as in the JSON. It computes nothing, so no run with such a value is
    carried out.
    """

    kind: str
    parts: tuple[tuple[str, Any], ...]

    def __getattr__(self, name: str) -> Any:
        found = dict(object.__getattribute__(self, "parts"))
        if name in found:
            return found[name]
        raise GoneError(self._absent(f", and {name} is none of its fields."))

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Refuse what an activation or a loss would compute."""
        raise GoneError(self.refusal)

    def has(self, name: str) -> bool:
        """Return whether `name` is one of its fields."""
        return name not in RESERVED and name in dict(self.parts)

    def with_field(self, name: str, value: Any) -> Gone:
        """Return a copy with another value in a field: it prints and compares as such a run's."""
        return replace(self, parts=tuple((dict(self.parts) | {name: value}).items()))

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
        return self._absent(": the run can be looked at, but not carried out.")

    def _absent(self, so: str) -> str:
        if any(users_called(self.kind)):
            return (
                f"The class {self.kind} of this run has another code here, its own or that of what "
                f"it uses{so} Restore the code, or run it as it is, which makes another run."
            )
        return f"The class {self.kind} of this run is not here{so} Load the file that defines it."


def version_of(kind: type) -> int:
    """Return the version of a class: it rises when its values come to compute something else."""
    version = getattr(kind, "version", 1)
    return version if isinstance(version, int) else 1


def is_left_out(part: Field[Any], value: object) -> bool:
    """Return whether a field was added after runs were stored, and has its default."""
    return part.metadata == LATER and bool(value == part.default)


def plain(value: object) -> Any:
    """Return the JSON form of a value; type names keep two tasks with equal fields apart."""
    if isinstance(value, Gone):
        return {"type": value.kind, **{name: plain(part) for name, part in value.parts}}
    if is_dataclass(value) and not isinstance(value, type):
        if is_short(value):
            return type(value).short  # type: ignore[attr-defined] # is_short has checked
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


def as_value(value: Any, owner: str, name: str) -> Any:
    """Return a field's value with NumPy's numbers as Python's, and lists and arrays as tuples.

    What a spec cannot hold is refused, by the class and the field that hold it.
    """
    if type(value) in PLAIN or is_checked(value) or isinstance(value, Gone):
        return value
    if isinstance(value, tuple | list):
        if type(value) is tuple and PLAIN.issuperset(map(type, value)):
            return value
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


def is_checked(value: object) -> bool:
    """Return whether `as_value` has returned this value before."""
    return _checked.get(id(value)) is value


def _as_values(value: Any, owner: str, name: str) -> Any:
    kind: type = type(value)
    if not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise UserError(
            f"{owner}: {name}={value!r} is not an instance of a frozen dataclass. "
            "Give an object of a class that has @dataclass(frozen=True) above it."
        )
    if is_checked(value):
        return value
    changed = {}
    for part in _field_names(kind):
        inner = getattr(value, part)
        if type(inner) in PLAIN or (type(inner) is tuple and not inner):
            continue  # most fields; this runs for every spec
        found = as_value(inner, kind.__name__, part)
        if found is not inner:
            changed[part] = found
    if changed:
        value = replace(value, **changed)
    if len(_checked) >= MOST_CHECKED:
        _checked.clear()
    _checked[id(value)] = value
    return value


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(part.name for part in fields(kind))


def find_gone(value: object) -> Gone | None:
    """Return the first part of a value whose class is missing, or None."""
    return next((part for part in parts_of(value) if isinstance(part, Gone)), None)


def refuse_gone(value: object) -> None:
    """Refuse a value of which a class is missing."""
    if gone := find_gone(value):
        raise UserError(gone.refusal)


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
    """Return the package's classes that a spec may contain, by name; names are unique."""
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
    kind = users_class(name, code) if code else known_classes().get(name)
    parts = {part: inner for part, inner in written.items() if part != "type"}
    version = written.get("version", 1)
    if kind is not None and version > version_of(kind):
        raise UserError(
            f"This spec has {name} of version {version}, and this petridish has version "
            f"{version_of(kind)}. Upgrade petridish."
        )
    if kind is None or version < version_of(kind):  # this version computes something else
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
    """Return whether a hint is a tuple type with item types."""
    return typing.get_origin(hint) is tuple and bool(typing.get_args(hint))


def is_literal(hint: object) -> bool:
    """Return whether a hint is a `Literal`."""
    return typing.get_origin(hint) is typing.Literal


def item_of(hint: Any) -> Any:
    """Return the type of a tuple's parts, of the first tuple that a hint allows."""
    return next((typing.get_args(each)[0] for each in options_of(hint) if is_tuple(each)), None)


def item_hints(value: Sequence[Any], hint: Any) -> list[Any]:
    """Return the type that a hint asks of each part of a tuple.

    `tuple[float, ...]` asks the same of every part, `tuple[str, float]` something of each. Where
    both numbers and pairs are allowed, the first part decides.
    """
    nested = bool(value) and isinstance(value[0], tuple | list)
    for arguments in (typing.get_args(each) for each in options_of(hint) if is_tuple(each)):
        endless = arguments[1:] == (Ellipsis,)
        items = [arguments[0]] * len(value) if endless else list(arguments)
        if len(items) == len(value) and (not nested or any(map(is_tuple, options_of(items[0])))):
            return items
    return [None] * len(value)
