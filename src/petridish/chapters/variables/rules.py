"""How the sample that suffices grows with the number of variables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.variables.trials import TRIAL, trials
from petridish.rules.claims import Finding, Judgement, Reads, nothing

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
DRAWS = 4_000


@dataclass(frozen=True)
class ThresholdExponent(Reads):
    """γ in m(T) ∝ T^γ, where m(T) is the least sample with which a share of the trials succeeds.

    A trial is a seed with its restarts. Success is taken to rise along m, as the search for the
    threshold takes it: shares are made monotone (isotonic regression, weighted by trials), and m(T)
    is the least m of those tried at which they reach `success`. γ is the slope of a least-squares
    line through the logarithms.

    The interval comes from the trials' posterior: seeds are weighed at random, Exp(1) each, and
    every sample size adds Gamma(½) to its solved and to its failed weight. A threshold below the
    first m that was tried, or beyond the last, is only known to lie there, and the interval is as
    wide as that allows. Supported if it lies below `below`, contradicted if above.
    """

    success: float = 0.8
    below: float = 0.3

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return ("outcome", "drawn.attempts", *TRIAL, "restart")

    @property
    def over(self) -> tuple[str, ...]:
        """One restart that succeeds stands for its seed."""
        return ("restart",)

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = (
            f"exponent of T in the least m with which {100 * self.success:g} % of trials succeed"
        )
        each = trials(table)
        lengths = np.array(sorted(set(each["task.n"])), np.float64)
        if len(lengths) < 2:
            return nothing(quantity, "needs two values of task.n")
        rng = np.random.default_rng(0)
        seeds = np.unique(each["seed"].to_numpy())
        weights = rng.standard_exponential((DRAWS, len(seeds)))
        found, drawn, named = [], [], []
        for length in lengths:
            cells = each.filter(each["task.n"] == length).partition_by("data.m")
            sizes = [float(cell["data.m"][0]) for cell in cells]
            counts = np.array([len(cell) for cell in cells], np.float64)
            shares = np.array([[cell["solved"].mean() for cell in cells]], np.float64)
            posterior = np.stack([_posterior(cell, seeds, weights, rng) for cell in cells], axis=1)
            found.append(threshold(monotone(shares, counts), sizes, self.success)[:, 0])
            drawn.append(threshold(monotone(posterior, counts), sizes, self.success))
            low, high = found[-1]
            at = f"≤ {high:g}" if low == 0 else f"> {low:g}" if math.isinf(high) else f"= {high:g}"
            named.append(f"T = {length:g}: m {at}")
        low_end, high_end = exponents(lengths, np.stack(drawn))
        best_low, best_high = exponents(lengths, np.stack(found)[..., None])
        known = best_low[0] == best_high[0]
        low = min(_quantile(low_end, level / 2), float(best_low[0]))
        high = max(_quantile(high_end, 1 - level / 2), float(best_high[0]))
        judgement = Judgement.UNDECIDED
        if high < self.below:
            judgement = Judgement.SUPPORTED
        elif low > self.below:
            judgement = Judgement.CONTRADICTED
        restarts = f"{len(each)} trials of {len(table)} runs"
        return Finding(
            judgement,
            float(best_low[0]) if known else math.nan,
            low,
            high,
            quantity,
            len(each),
            "; ".join([", ".join(named), restarts]),
        )


def _posterior(
    cell: pl.DataFrame, seeds: NDArray[np.int64], weights: Floats, rng: np.random.Generator
) -> Floats:
    """Draw the probability with which trials of one T and m succeed, from weights of all seeds."""
    own = weights[:, np.searchsorted(seeds, cell["seed"].to_numpy())]  # (draw, trial)
    solved = cell["solved"].to_numpy().astype(np.float64)
    won = own @ solved + rng.gamma(0.5, size=len(own))
    lost = own @ (1 - solved) + rng.gamma(0.5, size=len(own))
    shares: Floats = won / (won + lost)
    return shares


def monotone(shares: Floats, weights: Floats) -> Floats:
    """Return the nearest shares that never fall along the last axis, weighted by its weights."""
    from scipy.optimize import isotonic_regression

    found: Floats = np.apply_along_axis(
        lambda row: isotonic_regression(row, weights=weights).x, -1, shares
    )
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


def _quantile(values: Floats, share: float) -> float:
    """Return a quantile of values that may be infinite: one of them, on the safe side."""
    return float(np.quantile(values, share, method="lower" if share < 0.5 else "higher"))
