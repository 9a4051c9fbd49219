"""The classes of users: of files that were loaded, and of what is running and has been imported."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass
from functools import lru_cache

from petridish.errors import UserError
from petridish.sources import code_digest, is_users

named_code = lru_cache(maxsize=256)(code_digest)  # asked for every part of every spec
_learned: dict[str, types.ModuleType] = {}  # users' files, by the names of their modules


def learn(module: types.ModuleType) -> None:
    """Make the classes of a user's file known to `petridish.values.read`."""
    _learned[module.__name__] = module


@contextmanager
def learning(module: types.ModuleType) -> Iterator[None]:
    """Make the classes of a module known to `petridish.values.read`, inside the `with` block."""
    before = dict(_learned)
    learn(module)
    try:
        yield
    finally:
        _learned.clear()
        _learned.update(before)


def users_classes() -> list[type]:
    """Return the choices that users' files, or the running notebook or script, define.

    A class that takes over another's name with its methods is none: it would stand in its place.
    """
    return [
        kind
        for module in _users_modules()
        for kind in vars(module).values()
        if isinstance(kind, type)
        and is_dataclass(kind)
        and kind.__module__ == module.__name__
        and isinstance(vars(kind).get("name"), str)
    ]


def users_class(name: str, code: str) -> type | None:
    """Return the user's class of a name and a digest of its code; None if it is not here."""
    for kind in users_called(name):
        with suppress(UserError):  # a class without a digest does not match
            if named_code(kind) == code:
                home = sys.modules.get(kind.__module__)
                if home is not None and vars(home).get(name) is kind:
                    learn(home)  # asked first from now on
                return kind
    return None


def users_called(name: str) -> Iterator[type]:
    """Yield users' classes of a name; last those of modules that a script or notebook imports.

    A module's `__getattr__` is not asked: it might import what nobody needs.
    """
    for module in dict.fromkeys([*_users_modules(), *list(sys.modules.values())]):
        kind = getattr(module, "__dict__", {}).get(name)
        if isinstance(kind, type) and is_dataclass(kind) and is_users(kind):
            yield kind


def _users_modules() -> list[types.ModuleType]:
    running = sys.modules.get("__main__")
    return [*_learned.values(), *([running] if running else [])]
