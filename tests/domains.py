"""Domains for tests."""

from __future__ import annotations

from petridish.tasks import Bits, Classes, Domain, Reals


def bits(n: int) -> Domain:
    """Return the domain of a function of n bits."""
    return Domain(Bits(n), Classes(2))


def reals(n: int, classes: int = 2) -> Domain:
    """Return the domain of a classification of n real features."""
    return Domain(Reals((n,)), Classes(classes))
