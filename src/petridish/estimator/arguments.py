"""Reading an estimator's parameters when it is fitted, and showing how far the fit is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from numbers import Integral, Real

import numpy as np

from petridish.bars import terminal_bar
from petridish.errors import UserError, nearest


def whole(estimator: object, name: str, *, least: int = 1, otherwise: str = "") -> int:
    """Read a whole number of at least `least`; `otherwise` names a word that may stand for it."""
    value = getattr(estimator, name)
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        words = f", or {otherwise!r}" if otherwise else ""
        raise UserError(
            _refusal(estimator, name, f"Give a whole number of at least {least}{words}.")
        )
    return int(value)


def choice(estimator: object, name: str) -> bool:
    """Read True or False."""
    value = getattr(estimator, name)
    if not isinstance(value, bool | np.bool_):
        raise UserError(_refusal(estimator, name, "Give True or False."))
    return bool(value)


def number(estimator: object, name: str, *, otherwise: str = "") -> float:
    """Read a finite number of at least 0; `otherwise` as in `whole`."""
    value = getattr(estimator, name)
    if not _is_number(value) or not 0 <= value < inf:
        words = f", or {otherwise!r}" if otherwise else ""
        raise UserError(_refusal(estimator, name, f"Give a finite number of at least 0{words}."))
    return float(value)


def share(estimator: object, name: str) -> float:
    """Read a number from 0 to 1, both included."""
    value = getattr(estimator, name)
    if not _is_number(value) or not 0 <= value <= 1:
        raise UserError(_refusal(estimator, name, "Give a number from 0 to 1."))
    return float(value)


def part(estimator: object, name: str) -> float:
    """Read a number from 0 to below 1."""
    value = getattr(estimator, name)
    if not _is_number(value) or not 0 <= value < 1:
        raise UserError(_refusal(estimator, name, "Give a number from 0 to below 1."))
    return float(value)


def word(estimator: object, name: str, known: Sequence[str]) -> str:
    """Read one of a few words."""
    value = getattr(estimator, name)
    if value not in known:
        raise UserError(_refusal(estimator, name, nearest(str(value), known)))
    return str(value)


def reads_as_number(text: str) -> bool:
    """Return whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _refusal(estimator: object, name: str, what_to_do: str) -> str:
    return f"{type(estimator).__name__}: {name}={getattr(estimator, name)!r}. {what_to_do}"


@contextmanager
def progress(title: str, total: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function of how many of `total` are done; if shown, it moves a progress bar."""
    if not shown:
        yield lambda done: None
        return
    with terminal_bar(title) as move:
        yield lambda done: move(done / total, f"{done / total:.0%}")
        move(1.0, "100%")  # also where members stopped early
