"""Choices written as text, and read back.

A *choice* is a frozen dataclass with a class attribute `name`: an initialisation, a loss, a task.
Its text is the name with its arguments, `sparse(2)`; a name alone where it has none, `uniform`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from petridish.errors import UserError, nearest
from petridish.values import RESERVED, Gone


def describe(value: object) -> str:
    """Write a choice as text: `Sparse(s=2)` is `sparse(2)`; defaults at the end are left out."""
    if isinstance(value, Gone):
        shown = [f"{name}={describe(part)}" for name, part in value.parts if name not in RESERVED]
        return f"{value.kind}({', '.join(shown)})"
    if not is_dataclass(value):
        return "inf" if value == float("inf") else str(value)
    arguments = [(field, getattr(value, field.name)) for field in fields(value)]
    while arguments and _is_default(*arguments[-1]):
        arguments.pop()
    text = ", ".join(describe(argument) for _, argument in arguments)
    name = getattr(value, "name", type(value).__name__)
    return f"{name}({text})" if text else str(name)


def _is_default(field: Field[Any], value: object) -> bool:
    return field.default is not MISSING and bool(field.default == value)


def parse_choice(text: str, kind: str, kinds: Mapping[str, Mapping[str, type]]) -> Any:
    """Read a choice from its text, the inverse of `describe`.

    `kinds` gives the known choices for a field of each name, `kind` which of them is meant.
    """
    name, bracket, inside = text.strip().partition("(")
    known = kinds[kind]
    if name not in known:
        raise UserError(f"There is no {kind} called {name!r}. {nearest(name, known)}")
    if bracket and not inside.endswith(")"):
        raise UserError(f"The {kind} {text!r} lacks its closing bracket.")
    names = [field.name for field in fields(known[name])]
    texts = split(inside[:-1])
    if len(texts) > len(names):
        raise UserError(
            f"The {kind} {text!r} has {len(texts)} arguments, but {name} takes "
            f"{len(names)}: {', '.join(names) or 'none'}."
        )
    arguments = {
        field: parse_choice(part, field, kinds) if field in kinds else parse_value(part)
        for field, part in zip(names, texts, strict=False)
    }
    required = [field.name for field in fields(known[name]) if field.default is MISSING]
    if missing := [field for field in required if field not in arguments]:
        raise UserError(
            f"The {kind} {text!r} lacks {', '.join(missing)}. "
            f"Write {name}({', '.join(f'{field}' for field in required)})."
        )
    return known[name](**arguments)


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
    """Split at the commas that stand outside brackets: `uniform,sparse(2)` has two parts."""
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
