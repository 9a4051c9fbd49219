"""Errors of the user: one clear sentence each, and the nearest known name to a wrong one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Integral
from textwrap import shorten


class UserError(ValueError):
    """An error of the user: one sentence says what was wrong, what was given, what to do.

    The command line prints the sentence and ends with exit code 2; a notebook shows it alone.
    """

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows instead of the traceback."""
        return [f"{type(self).__name__}: {self}"]


def require(condition: bool, message: str) -> None:  # noqa: FBT001 - a condition is what it takes
    """Raise a `UserError` with this message unless the condition holds."""
    if not condition:
        raise UserError(message)


def check_whole(owner: str, least: int, **values: object) -> None:
    """Refuse a value that is not a whole number of at least `least`."""
    for name, value in values.items():
        whole = isinstance(value, Integral) and not isinstance(value, bool)  # NumPy's too
        if not whole or int(value) < least:  # type: ignore[call-overload] # it is whole
            raise UserError(f"{owner}: {name}={value!r}. Give a whole number of at least {least}.")


def check_one_of(owner: str, known: tuple[str, ...], **values: object) -> None:
    """Refuse a value that is none of the known texts."""
    for name, value in values.items():
        if value not in known:
            given = f"{owner}: {name}={value!r}"
            raise UserError(f"{given}. Give {' or '.join(map(repr, known))}.")


def first_line(error: BaseException) -> str:
    """Return the first line of what a library says of a failure; its name if it says nothing."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return shorten(lines[0].rstrip(". "), 120, placeholder=" …")  # some quote the whole file


def nearest(name: str, known: Iterable[str]) -> str:
    """Return which known names are close to `name`, as the end of an error message."""
    names = sorted(known)
    closeness = {n: difflib.SequenceMatcher(None, name.lower(), n.lower()).ratio() for n in names}
    best = max(closeness.values(), default=0.0)
    if best < 0.6:
        return f"Known: {', '.join(names)}."
    return f"Did you mean {' or '.join(n for n in names if closeness[n] > best - 0.1)}?"
