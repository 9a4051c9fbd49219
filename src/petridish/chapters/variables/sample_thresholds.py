"""The least sample that suffices, for every T, with what the trials leave open of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.variables.trials import trials
from petridish.statistics.thresholds import monotone, threshold, weighed_shares

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
DRAWS = 4_000
SUCCESS = 0.8  # the share of trials that the paper asks for


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Least sample sizes by T, each known by two ends: equal, or 0 below and ∞ above the grid.

    Attributes
    ----------
    lengths : array, shape (T,)
    found : array, shape (T, end)
        From the shares as they are.
    drawn : array, shape (T, end, draw)
        From the trials' posterior.
    trials : int
        How many there are.
    """

    lengths: Floats
    found: Floats
    drawn: Floats
    trials: int

    @property
    def text(self) -> str:
        """Each T with its threshold."""
        return ", ".join(
            f"T = {length:g}: m {_ends(low, high)}"
            for length, (low, high) in zip(self.lengths, self.found, strict=True)
        )

    @property
    def exact(self) -> bool:
        """Whether every threshold is one of the sizes that were tried."""
        return bool((self.found[:, 0] == self.found[:, 1]).all())

    def interval(self, place: int, level: float) -> tuple[float, float]:
        """Return an interval of one threshold: it has the found one in it."""
        low, high = self.drawn[place]
        return (
            min(float(np.quantile(low, level / 2, method="lower")), float(self.found[place, 0])),
            max(
                float(np.quantile(high, 1 - level / 2, method="higher")),
                float(self.found[place, 1]),
            ),
        )


def _ends(low: float, high: float) -> str:
    return f"≤ {high:g}" if low == 0 else f"> {low:g}" if math.isinf(high) else f"= {high:g}"


def thresholds_of(table: pl.DataFrame, success: float = SUCCESS) -> Thresholds:
    """Return the thresholds of some runs.

    Success is taken to rise along m, as the search for the threshold takes it: shares are made
    monotone (isotonic regression, weighted by trials), and m(T) is the least m of those tried at
    which they reach `success`. In the posterior seeds are weighed at random, Exp(1) each, the same
    at every m, and every sample size adds Gamma(½) to its solved and to its failed weight.
    """
    each = trials(table)
    lengths = np.array(sorted(set(each["task.n"])), np.float64)
    rng = np.random.default_rng(0)
    seeds = np.unique(each["seed"].to_numpy())
    weights = rng.standard_exponential((DRAWS, len(seeds)))
    found, drawn = [], []
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
        found.append(threshold(monotone(shares, counts), sizes, success)[:, 0])
        drawn.append(threshold(monotone(np.stack(posterior, axis=1), counts), sizes, success))
    return Thresholds(lengths, np.array(found), np.array(drawn), len(each))


def box_cox(lengths: Floats, sizes: Floats) -> Floats:
    """Return the γ of the least-squares curve a + b (T^γ − 1)/γ through each column of sizes.

    γ = 0 is a line in log T, 1 one in T. It is searched from −3 to 3; sizes that are all equal
    fit every γ and have none, NaN. Sizes have the shape (T, draw).
    """
    grid = np.linspace(-3, 3, 241)
    rest = np.empty((len(grid), sizes.shape[1]))
    for place, power in enumerate(grid):
        rising = np.log(lengths) if abs(power) < 1e-9 else (lengths**power - 1) / power
        basis, _ = np.linalg.qr(np.stack([np.ones_like(rising), rising], axis=1))
        rest[place] = ((sizes - basis @ (basis.T @ sizes)) ** 2).sum(axis=0)
    best: Floats = grid[rest.argmin(axis=0)].astype(np.float64)
    best[np.ptp(sizes, axis=0) == 0] = np.nan
    return best
