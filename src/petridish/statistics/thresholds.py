"""Thresholds of success along a grid of sizes, and how they grow."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def weighed_shares(solved: Floats, own: Floats, rng: np.random.Generator) -> Floats:
    """Draw the probability of success from the posterior of trials that are weighed at random.

    `solved` has 1 or 0 for each trial; `own` the trials' weights, shape (draw, trial), Exp(1) each.
    Gamma(½) is added to the solved and to the failed weight (Jeffreys' prior).
    """
    won = own @ solved + rng.gamma(0.5, size=len(own))
    lost = own @ (1 - solved) + rng.gamma(0.5, size=len(own))
    shares: Floats = won / (won + lost)
    return shares


def monotone(shares: Floats, weights: Floats) -> Floats:
    """Return the nearest shares that never fall along the last axis, weighted by its weights.

    Isotonic regression of all rows at once: entry j is the largest over first ≤ j of the least
    over last ≥ j of the weighted mean from first to last.
    """
    found = np.full_like(shares, -math.inf)
    for first in range(len(weights)):
        summed = np.cumsum((weights * shares)[..., first:], axis=-1)
        means = summed / np.cumsum(weights[first:])  # from first to each last
        least = np.minimum.accumulate(means[..., ::-1], axis=-1)[..., ::-1]
        np.maximum(found[..., first:], least, out=found[..., first:])
    return found


def threshold(shares: Floats, sizes: Sequence[float], success: float) -> Floats:
    """Return two ends between which each least size lies that suffices, shape (end, draw).

    They are equal but where the first size suffices (the lower end is 0) or none does (∞).
    """
    enough = shares >= success - 1e-9
    place = np.where(enough.any(axis=-1), enough.argmax(axis=-1), len(sizes))
    low = np.array([0.0, *sizes[1:], sizes[-1]])
    high = np.array([*sizes, math.inf])
    return np.stack([low[place], high[place]])


def exponents(lengths: Floats, thresholds: Floats) -> tuple[Floats, Floats]:
    """Return the least and the largest slope of log m in log T that thresholds allow.

    Thresholds have the shape (T, end, draw), slopes (draw,).
    """
    centred = np.log(lengths) - np.log(lengths).mean()
    pull = centred / (centred @ centred)
    with np.errstate(divide="ignore"):
        ends = np.log(thresholds)
    used = pull != 0  # a T in the middle does not count, and 0 · ∞ is no number
    terms = np.sort(pull[used, None, None] * ends[used], axis=1).sum(axis=0)  # (end, draw)
    low, high = np.round(terms, 9)  # so that equal thresholds have equal slopes
    return low, high


def outer_quantile(values: Floats, share: float) -> float:
    """Return a quantile of values that may be infinite: one of them, on the safe side."""
    return float(np.quantile(values, share, method="lower" if share < 0.5 else "higher"))
