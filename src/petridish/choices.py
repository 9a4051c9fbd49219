"""Choices written as text, and read back.

A *choice* is a frozen dataclass with a class attribute `name`: an initialisation, a loss, a task.
Its text is the name with its arguments, `sparse(2)`; a name alone where it has none, `uniform`.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from petridish.errors import UserError, nearest
from petridish.sources import is_users
from petridish.user_classes import users_classes
from petridish.values import (
    RESERVED,
    Gone,
    field_hints,
    is_literal,
    is_tuple,
    item_of,
    options_of,
    with_types,
)


class HasText(ABC):
    """A value that has a shorter text than its fields."""

    @abstractmethod
    def text(self) -> str:
        """Return the text."""


MOST_LETTERS = 60  # of an argument in a message
Offered = Mapping[Any, Mapping[str, type]]  # classes by name, for each type that fields ask for


def describe(value: object) -> str:
    """Write a choice as text: `Sparse(s=2)` is `sparse(2)`; defaults at the end are left out."""
    if isinstance(value, Gone):
        shown = [f"{name}={describe(part)}" for name, part in value.parts if name not in RESERVED]
        return f"{value.kind}({', '.join(shown)})"
    if not is_dataclass(value):
        return "inf" if value == float("inf") else str(value)
    if isinstance(value, HasText):
        return value.text()
    arguments = [(field, getattr(value, field.name)) for field in fields(value)]
    while arguments and _is_default(*arguments[-1]):
        arguments.pop()
    text = ", ".join(describe(argument) for _, argument in arguments)
    return f"{name_of(value)}({text})" if text else name_of(value)


def name_of(value: object) -> str:
    """Return the name of a choice without its arguments; of a class that is gone, the class's."""
    if isinstance(value, Gone):
        return value.kind
    name = getattr(type(value), "name", None)  # of the class: a field may have this name too
    return name if isinstance(name, str) else type(value).__name__


@contextmanager
def blamed(kind: str, value: object, method: str, **given: object) -> Iterator[None]:
    """Turn what a user's class raises into a `UserError` with method, line, error and input.

    Otherwise its author would see a traceback through code of petridish.
    """
    try:
        yield
    except (UserError, MemoryError):
        raise
    except Exception as error:
        shown = ", ".join(_shown(name, each) for name, each in given.items())
        name = describe(value) if own_frame(error) else placed(value)
        raise UserError(
            f"The {kind} {name} failed in {method}{said_by(error)}."
            + (f" It was given {shown}." if shown else "")
        ) from error


def hint_at(value: object, path: str) -> Any:
    """Return the type that the field at a path into a value asks for; None if it names none."""
    *inside, last = path.split(".")
    for name in inside:
        value = getattr(value, name)
    kind: type = type(value)
    return None if kind is Gone else field_hints(kind).get(last)


def placed(value: object) -> str:
    """Return a value as text, and of a user's class where it is defined: «mine (file.py:12)»."""
    kind = type(value)
    return describe(value) + (home_of(kind) if is_users(kind) else "")


def home_of(defined: type | Callable[..., Any]) -> str:
    """Return where a class or function is defined, as « (file.py:12)»; "" if it is not known."""
    import inspect

    try:
        line = inspect.getsourcelines(defined)[1]
        return f" ({code_name(inspect.getfile(defined))}:{line})"
    except (OSError, TypeError):
        return ""


def said_by(error: BaseException) -> str:
    """Return the last line of a user's own code that an error passed, and its text.

    Such as « at file.py:12: ValueError: two shapes differ», without a full stop.
    """
    text = " ".join(str(error).split()).rstrip(".")
    return f"{place_of(error)}: {type(error).__name__}: {text}"


def place_of(error: BaseException) -> str:
    """Return the last line of a user's own code that an error passed, as « at file.py:12»."""
    own = own_frame(error)
    return f" at {code_name(own[0].f_code.co_filename)}:{own[1]}" if own else ""


def code_name(path: str) -> str:
    """Return the name of a file of code; of a notebook's cell what stands beside it: In[3]."""
    import sys

    if "IPython" in sys.modules:
        from IPython import get_ipython

        shell = get_ipython()
        cell = shell and getattr(shell.compile, "format_code_name", lambda _: None)(path)
        if cell:
            return str(cell[1])
    return Path(path).name


def fault_sentence(error: BaseException, frame: FrameType, line: int) -> str:
    """Return one sentence on what a user's own code raised, and where."""
    code = frame.f_code
    text = " ".join(str(error).split()).rstrip(".")
    return (
        f"{code.co_filename}:{line}, in {code.co_qualname}: {type(error).__name__}"
        f"{f': {text}' if text else ''}."
    )


def own_frame(error: BaseException) -> tuple[FrameType, int] | None:
    """Return the last frame of a user's own code that an error passed, with its line."""
    import sysconfig
    import traceback

    others = (str(Path(__file__).parent), sysconfig.get_paths()["stdlib"], "<")
    own = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith(others)
        and "site-packages" not in frame.f_code.co_filename
    ]
    return own[-1] if own else None


def _shown(name: str, value: Any) -> str:
    """Write an argument: arrays by their shape, mappings by their keys."""
    if hasattr(value, "shape"):
        return f"{name} of shape {tuple(value.shape)}"
    if isinstance(value, Mapping):
        return f"{name} {list(value)}"
    text = describe(value) if is_dataclass(value) else repr(value)
    return f"{name}={text if len(text) <= MOST_LETTERS else f'{text[:MOST_LETTERS]}…'}"


def _is_default(field: Field[Any], value: object) -> bool:
    return field.default is not MISSING and bool(field.default == value)


def choices_for(hint: Any, offered: Offered) -> dict[str, type]:
    """Return the classes that a type hint accepts, by name.

    `offered` has the package's classes for each type, such as every `Task`. A user's class that was
    loaded is accepted too, if it has the names of the protocol.
    """
    found: dict[str, type] = {}
    for option in options_of(hint):
        named = offered.get(option)
        if named is None:
            every = (kind for kinds in offered.values() for kind in kinds.values())
            named = {kind.name: kind for kind in every if kind is option}
        else:
            own = (kind for kind in users_classes() if _is_meant(kind, option, offered))
            named = {**named, **{kind.name: kind for kind in own}}  # type: ignore[attr-defined]
        found |= named
    return found


def _is_meant(kind: type, protocol: type, offered: Offered) -> bool:
    """Return whether a class has all names of a protocol, and of none that asks for more.

    A task has `draw`, as an initialisation has, and is none.
    """
    names = {*dir(kind), *(part.name for part in fields(kind))}
    asked = _asked(protocol)
    fitting = (_asked(other) for other in offered if _asked(other) <= names)
    return bool(asked) and asked <= names and not any(asked < other for other in fitting)


def _asked(protocol: type) -> set[str]:
    """Return the public names of a protocol; none for a class that is no protocol."""
    return {
        name
        for base in protocol.__mro__
        if getattr(base, "_is_protocol", False)
        for name in (*vars(base), *getattr(base, "__annotations__", ()))
        if not name.startswith("_")
    }


def parse(text: str, what: str, hint: Any, offered: Offered) -> Any:
    """Read a value from its text by the type of its field, the inverse of `describe`.

    A value of another type is returned as it is: the class whose field it is refuses it.
    """
    known = choices_for(hint, offered)
    if known and not (text.strip().lower() == "none" and type(None) in options_of(hint)):
        return parse_choice(text, what, known, offered)
    wants, inside = options_of(hint), text.strip()
    if any(map(is_tuple, wants)) and (inside[:1], inside[-1:]) in (("(", ")"), ("[", "]")):
        return tuple(parse(part, what, item_of(hint), offered) for part in split(inside[1:-1]))
    value = parse_value(text)
    if str in wants:
        other = (value is None and type(None) in wants) or (type(value) is int and int in wants)
        other |= isinstance(value, float) and float in wants
        return value if other else text.strip()
    return with_types(value, hint)


def parse_choice(text: str, what: str, known: Mapping[str, type], offered: Offered) -> Any:
    """Read a choice from its text: a class of `known`, with its arguments by their types."""
    name, bracket, inside = text.strip().partition("(")
    if name not in known:
        raise UserError(f"There is no {what} called {name!r}. {nearest(name, known)}")
    if bracket and not inside.endswith(")"):
        raise UserError(f"The {what} {text!r} lacks its closing bracket.")
    names = [field.name for field in fields(known[name])]
    texts = split(inside[:-1])
    if len(texts) > len(names):
        raise UserError(
            f"The {what} {text!r} has {len(texts)} arguments, but {name} takes "
            f"{len(names)}: {', '.join(names) or 'none'}."
        )
    hints = field_hints(known[name])
    arguments = {
        field: parse(part, field, hints.get(field), offered)
        for field, part in zip(names, texts, strict=False)
    }
    required = [field.name for field in fields(known[name]) if field.default is MISSING]
    if missing := [field for field in required if field not in arguments]:
        raise UserError(
            f"The {what} {text!r} lacks {', '.join(missing)}. "
            f"Write {name}({', '.join(f'{field}' for field in required)})."
        )
    return known[name](**arguments)


def parse_setting(text: str, axis: str, hint: Any, offered: Offered) -> Any:
    """Read a value for an axis; it must be of a type that the field there takes."""
    wants = options_of(hint)
    if not choices_for(hint, offered) and any(map(is_dataclass, wants)):
        raise UserError(
            f"The axis {axis} has no values that can be written here. Set its parts, or declare "
            "the sweep in a file of your own."
        )
    value = parse(text, axis.rpartition(".")[2], hint, offered)
    if hint is None or (value is None and type(None) in wants) or {bool, str} & {*wants}:
        return value  # the spec itself refuses what it cannot use
    if any(map(is_tuple, wants)) and not isinstance(value, tuple) and not {int, float} & {*wants}:
        raise UserError(
            f"The axis {axis} takes lists in brackets, but {text!r} was given. "
            "For example: (0,1,2)."
        )
    if not {int, float} & {*wants} or (isinstance(value, tuple) and any(map(is_tuple, wants))):
        return value if not any(map(is_literal, wants)) else text.strip()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"The axis {axis} takes numbers, but {text!r} was given. Give a number.")
    if float not in wants and isinstance(value, float):
        if not value.is_integer():
            raise UserError(
                f"The axis {axis} takes whole numbers, but {text!r} was given. Give a whole number."
            )
        return int(value)
    return parse_value(text)  # as it was written; the class makes it a float


def parse_value(text: str) -> Any:
    """Read a number, a tuple, `inf`, `none`, true or false; text where it is none of them."""
    text = text.strip()
    words = {"inf": float("inf"), "none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return tuple(value) if isinstance(value, list) else value


def split(text: str) -> list[str]:
    """Split at the commas outside brackets: `uniform,sparse(2)` has two parts."""
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    parts.append(part)
    return [part.strip() for part in parts if part.strip()]
