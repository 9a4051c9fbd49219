"""Checks that several theorems share: of sizes, degrees and probabilities."""

from __future__ import annotations

from petridish.errors import UserError, check_whole


def check_size(owner: str, n: int, k: int, *, least: int = 0, letter: str = "k") -> None:
    """Refuse more relevant bits k than the n bits there are; `letter` names k in the message."""
    check_whole(owner, 1, n=n)
    check_whole(owner, least, **{letter: k})
    if k > n:
        raise UserError(
            f"{owner}: {letter}={k} relevant bits were asked for, but n={n} has only {n} bits. "
            f"Raise n or lower {letter}."
        )


def check_even(owner: str, k: int) -> None:
    """Refuse an odd number of relevant bits: majorities have no coefficients of even degree."""
    check_whole(owner, 2, k=k)
    if k % 2:
        raise UserError(f"{owner}: k={k} is odd, where the gradient shows nothing. Give an even k.")


def check_positive(**values: float) -> None:
    """Refuse a value that is not above 0."""
    for name, value in values.items():
        if not value > 0:
            raise UserError(f"{name}={value}. Give a number above 0.")


def check_probability(**values: float) -> None:
    """Refuse a value that is not strictly between 0 and 1."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise UserError(f"{name}={value}. Give a number between 0 and 1.")
