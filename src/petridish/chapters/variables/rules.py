"""How the sample that suffices grows with the number of variables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from petridish.chapters.variables.trials import TRIAL, trials
from petridish.rules.claims import Finding, Reads, by_interval, nothing
from petridish.statistics.thresholds import (
    exponents,
    monotone,
    outer_quantile,
    threshold,
    weighed_shares,
)

if TYPE_CHECKING:
    import polars as pl

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

    columns: ClassVar[tuple[str, ...]] = ("outcome", "drawn.attempts", *TRIAL, "restart")
    over: ClassVar[tuple[str, ...]] = ("restart",)  # one that succeeds stands for its seed

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
        weights = rng.standard_exponential((DRAWS, len(seeds)))  # the same seeds at every m
        found, drawn, named = [], [], []
        for length in lengths:
            cells = each.filter(each["task.n"] == length).partition_by("data.m")
            sizes = [float(cell["data.m"][0]) for cell in cells]
            counts = np.array([len(cell) for cell in cells], np.float64)
            shares = np.array([[cell["solved"].mean() for cell in cells]], np.float64)
            posterior = [
                weighed_shares(
                    cell["solved"].to_numpy().astype(np.float64),
                    weights[:, np.searchsorted(seeds, cell["seed"].to_numpy())],
                    rng,
                )
                for cell in cells
            ]
            found.append(threshold(monotone(shares, counts), sizes, self.success)[:, 0])
            drawn.append(
                threshold(monotone(np.stack(posterior, axis=1), counts), sizes, self.success)
            )
            low, high = found[-1]
            at = f"≤ {high:g}" if low == 0 else f"> {low:g}" if math.isinf(high) else f"= {high:g}"
            named.append(f"T = {length:g}: m {at}")
        low_end, high_end = exponents(lengths, np.stack(drawn))
        best_low, best_high = exponents(lengths, np.stack(found)[..., None])
        low = min(outer_quantile(low_end, level / 2), float(best_low[0]))
        high = max(outer_quantile(high_end, 1 - level / 2), float(best_high[0]))
        estimate = float(best_low[0]) if best_low[0] == best_high[0] else math.nan
        remark = f"{', '.join(named)}; {len(each)} trials of {len(table)} runs"
        judgement = by_interval(-high, -low, -self.below)
        return Finding(judgement, estimate, low, high, quantity, len(each), remark)
