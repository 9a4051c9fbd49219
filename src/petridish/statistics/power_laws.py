"""Power laws through medians of censored times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from petridish.statistics.intervals import FEWEST

Floats = NDArray[np.float64]
RESAMPLES = 20_000  # a redrawn quantile costs one number, whatever the number of runs


@dataclass(frozen=True)
class Cell:
    """The runs of one condition, whose seeds alone differ.

    Attributes
    ----------
    at : float
        The value of the condition, such as n or r.
    times : array
        Steps to success from the soonest on, infinite for a run not solved within the budget.
    every : int
        Steps between two evaluations: a run found solved at t was solved after t − every.
    budget : int
        Steps after which a run counts as not solved.
    """

    at: float
    times: Floats
    every: int
    budget: int

    @property
    def solved(self) -> int:
        """Runs that were solved."""
        return int(np.isfinite(self.times).sum())

    @cached_property
    def spread(self) -> Floats:
        """The times, those that one evaluation found spread evenly over the steps before it.

        Where a run takes tens of steps and an evaluation comes every 10, times rounded up to
        evaluations would bend a power law: by 5 steps on average, much for a short time and little
        for a long one.
        """
        known = self.times[: self.solved]
        _, first, tie, count = np.unique(
            known, return_index=True, return_inverse=True, return_counts=True
        )
        place = (np.arange(len(known)) - first[tie] + 0.5) / count[tie]
        # Solved before the first step: there is no earlier time, and a logarithm needs a number.
        between = np.maximum(known - self.every * (1 - place), 0.5)
        return np.concatenate([between, self.times[self.solved :]])

    def quantile(self, share: float = 0.5) -> float:
        """Return the time by which `share` of the runs are solved; infinite where fewer are."""
        return float(self.spread[_rank(share, len(self.times)) - 1])

    def interval(self, share: float = 0.5, *, coverage: float = 0.95) -> tuple[float, float]:
        r"""Bound a quantile by the percentile bootstrap, exactly; an end may be infinite.

        Of N runs drawn anew, the one of rank i is number :math:`\lfloor N U \rfloor` of the runs
        in order, counted from 0, where U, the i-th smallest of N uniform numbers, has the
        distribution Beta(i, N − i + 1). Its quantiles need no drawing.
        """
        from scipy.special import betaincinv  # slow to import

        runs = len(self.times)
        rank = _rank(share, runs)
        tails = np.array([(1 - coverage) / 2, (1 + coverage) / 2])
        places = np.floor(runs * betaincinv(rank, runs - rank + 1, tails)).astype(int)
        low, high = self.spread[np.minimum(places, runs - 1)]
        return float(low), float(high)

    def redrawn(self, shares: Sequence[float], rng: np.random.Generator) -> Floats:
        """Return quantiles of runs drawn anew, jointly, shape (resample, share); shares rise."""
        runs = len(self.times)
        below, before, drawn = np.zeros(RESAMPLES), 0, []
        for share in shares:
            rank = _rank(share, runs)
            if rank > before:  # the ranks between two are Beta again, in what is left above
                part = rng.beta(rank - before, runs - rank + 1, RESAMPLES)
                below, before = below + (1 - below) * part, rank
            drawn.append(self.spread[np.minimum((runs * below).astype(int), runs - 1)])
        return np.stack(drawn, axis=1)

    def log_error(self) -> float:
        """Return the standard error of the median's logarithm, infinite where it is not known.

        From its 95 % bootstrap interval, to which is added what evaluations do not tell: within the
        steps between two evaluations the median may lie anywhere, the more so the more runs one
        evaluation found.
        """
        middle, (low, high) = self.quantile(), self.interval()
        if not math.isfinite(high):
            return math.inf
        sampling = (math.log(high) - math.log(low)) / (2 * NormalDist().inv_cdf(0.975))
        raw = self.times[_rank(0.5, len(self.times)) - 1]
        spacing = float((self.times == raw).mean()) * self.every / (math.sqrt(12) * middle)
        return math.hypot(sampling, spacing)


def _rank(share: float, runs: int) -> int:
    """Return the rank of a quantile from 1 on; ½ is the lower median."""
    return max(1, math.ceil(share * runs - 1e-9))


@dataclass(frozen=True)
class Points:
    """Medians of a stratum on logarithmic axes, where they are known: log n, log t, errors."""

    x: Floats
    y: Floats
    error: Floats


def known_medians(cells: Sequence[Cell]) -> Points:
    """Gather the medians whose 95 % interval ends within the budget.

    The error of a median of 20 runs is itself known to a third only, and one that is too small by
    luck would pull every fit: an error is not taken to be below the stratum's trend of errors
    (log-linear in log n, for one run), nor below its own.
    """
    errors = [(cell, cell.log_error()) for cell in cells if len(cell.times) >= FEWEST]
    usable = [(cell, error) for cell, error in errors if math.isfinite(error)]
    x = np.log([cell.at for cell, _ in usable])
    y = np.log([cell.quantile() for cell, _ in usable])
    error = np.array([error for _, error in usable])
    if len(usable) > 1:
        runs = np.array([len(cell.times) for cell, _ in usable])
        each = error * np.sqrt(runs)
        design = np.stack([np.ones_like(x), x], axis=1)
        trend = np.exp(design @ np.linalg.lstsq(design, np.log(each), rcond=None)[0])
        trend *= math.sqrt(np.mean((each / trend) ** 2))  # a mean of logarithms lies too low
        error = np.maximum(error, trend / np.sqrt(runs))
    return Points(x, y, error)


@dataclass(frozen=True)
class PowerLaw:
    """A fitted t = factor · n^exponent, the standard error of the exponent, and the cells used."""

    exponent: float
    error: float
    factor: float
    cells: int

    def __call__(self, n: float) -> float:
        """Return the fitted time."""
        return float(self.factor * n**self.exponent)


def fit_power_law(
    cells: Sequence[Cell], *, over: Callable[[float], float] | None = None
) -> PowerLaw | None:
    r"""Fit the median time as a power of n; None with fewer than three known medians.

    With `over`, the median time divided by a function of n, such as the time of another method.

    Weighted least squares of the logarithms. The exponent is a linear function of the medians'
    logarithms, as good as independent of each other: its bootstrap variance is the sum of theirs,
    weighted, and needs no drawing of its own. Where cells scatter around the line by more than
    their errors say, that error grows by :math:`\sqrt{χ² / (\text{cells} - 2)}`.
    """
    points = known_medians(cells)
    if len(points.x) < 3:
        return None
    known = [over(n) for n in np.exp(points.x).round(6)] if over else 1.0
    y = points.y - np.log(known)
    weight = points.error**-2
    centre = (weight * points.x).sum() / weight.sum()
    away = points.x - centre
    spread = (weight * away**2).sum()
    exponent = float((weight * away * y).sum() / spread)
    intercept = float((weight * y).sum() / weight.sum()) - exponent * centre
    residual = (y - intercept - exponent * points.x) / points.error
    scatter = max(1.0, float((residual**2).sum()) / (len(points.x) - 2))
    return PowerLaw(exponent, math.sqrt(scatter / spread), math.exp(intercept), cells=len(points.x))
