"""Estimates and intervals of shares, differences of shares, means and medians, from arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from petridish.statistics.known import Known

Floats = NDArray[np.float64]
FEWEST = 5  # seeds: of fewer a bootstrap knows too little
RESAMPLES = 2_000  # of a bootstrap


def wilson_interval(
    solved: int | NDArray[Any], runs: int | NDArray[Any], *, coverage: float = 0.95
) -> tuple[Floats, Floats]:
    r"""Bound the probability that a run solves its task.

    Parameters
    ----------
    solved, runs : int or array
        Runs that solved the task, and runs made.
    coverage : float, default=0.95
        Coverage of the two-sided interval.

    Returns
    -------
    low, high : array
        The two :math:`p` with :math:`|\hat p - p| = z \sqrt{p (1 - p) / n}` [Wilson 1927], which
        keeps its width where sweeps often end: no run solved, or all of them. Without runs, 0 to 1.
    """
    s, n = np.asarray(solved, np.float64), np.asarray(runs, np.float64)
    z2 = NormalDist().inv_cdf(0.5 + coverage / 2) ** 2
    centre = (s + z2 / 2) / (n + z2)
    safe = np.maximum(n, 1)
    half = np.sqrt(z2 * (s * (safe - s) / safe + z2 / 4)) / (n + z2)
    low = np.where(s == 0, 0.0, centre - half)  # exactly, where rounding would say 1e-17
    high = np.where(s == n, 1.0, centre + half)
    return low, high


def anytime_interval(
    solved: int | NDArray[Any], runs: int | NDArray[Any], *, coverage: float = 0.95
) -> tuple[Floats, Floats]:
    r"""Bound a success probability whenever one stopped, for whatever reason.

    Parameters
    ----------
    solved, runs : int or array
        Runs that solved the task, and runs made.
    coverage : float, default=0.95
        Probability that no interval of the whole sequence, after 1, 2, 3 … runs, misses.

    Returns
    -------
    low, high : array
        The ends of all :math:`p` with :math:`B(s + ½, f + ½) / (B(½, ½)\, p^s (1 - p)^f) <
        1 / (1 - coverage)` for s runs solved and f not: a likelihood ratio that under p is a
        martingale of mean 1 [Ville 1939; Robbins 1970]. Wider than Wilson's, as it must be.
    """
    from scipy.special import betaln, xlog1py, xlogy  # slow to import

    s, n = np.broadcast_arrays(np.asarray(solved, np.float64), np.asarray(runs, np.float64))
    mixture = betaln(s + 0.5, n - s + 0.5) - betaln(0.5, 0.5) + np.log(1 - coverage)

    def outside(p: Floats) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = mixture - xlogy(s, p) - xlog1py(n - s, -p) >= 0
        return found

    best = np.where(n > 0, s / np.maximum(n, 1), 0.5)  # the ratio falls to here, then rises
    ends = []
    for edge in (0.0, 1.0):
        out, inside = np.full(s.shape, edge), best.copy()
        for _ in range(50):
            middle = (out + inside) / 2
            beyond = outside(middle)
            out, inside = np.where(beyond, middle, out), np.where(beyond, inside, middle)
        ends.append(np.where((best == edge) | (n == 0), edge, inside))
    return ends[0], ends[1]


def mean_difference(
    better: Floats, worse: Floats, *, coverage: float = 0.95
) -> tuple[float, float, float]:
    """Compare two conditions over many cells: the mean difference of their success probabilities.

    Parameters
    ----------
    better, worse : array, shape (cell, seed)
        Outcomes, 1 for solved and 0 for not, NaN where no run was made; at least two runs in every
        cell, on both sides.
    coverage : float
        Coverage of the two-sided interval.

    Returns
    -------
    estimate, low, high : float
        Each cell weighs the same. The interval is the wider, to each side, of two: Student's over
        seeds, which are independent of each other though the cells of one seed are not; and the one
        that adds the squares of the cells' distances to their bounds [Newcombe 1998; Zou & Donner
        2008], which keeps its width where all seeds agree. The bounds are Wilson's, or, where
        cells differ in their number of runs because they were stopped when clear, those that hold
        under stopping. Neither end lies beyond -1 or 1.
    """
    runs = [(~np.isnan(side)).sum(axis=1) for side in (better, worse)]
    solved = [np.nansum(side, axis=1) for side in (better, worse)]
    p1, p2 = (s / n for s, n in zip(solved, runs, strict=True))
    estimate = float(np.mean(p1 - p2))
    half = _clustered_half_width(better, worse, coverage)
    equal = len(set(np.concatenate(runs).tolist())) == 1
    interval = wilson_interval if equal else anytime_interval
    low1, high1 = interval(solved[0], runs[0], coverage=coverage)
    low2, high2 = interval(solved[1], runs[1], coverage=coverage)
    down = math.sqrt(np.sum((p1 - low1) ** 2 + (high2 - p2) ** 2)) / len(p1)
    up = math.sqrt(np.sum((high1 - p1) ** 2 + (p2 - low2) ** 2)) / len(p1)
    low, high = estimate - max(down, half), estimate + max(up, half)
    return estimate, max(low, -1.0), min(high, 1.0)  # Student's knows no bounds


def _clustered_half_width(better: Floats, worse: Floats, coverage: float) -> float:
    """Return half the width of Student's interval with seeds as clusters.

    A seed's pull on the mean difference is the sum of its runs' residuals, each over its cell's
    number of runs. With all seeds in all cells this is Student's interval for the seeds' own mean
    differences; with fewer seeds in some, seeds count by their weight in the design.
    """
    from scipy.special import stdtrit  # slow to import

    cells, seeds = better.shape
    pull, weight = np.zeros(seeds), np.zeros(seeds)
    for side, sign in ((better, 1), (worse, -1)):
        made = ~np.isnan(side)
        runs = made.sum(axis=1, keepdims=True)
        residual = np.where(made, side - np.nansum(side, axis=1, keepdims=True) / runs, 0.0)
        pull += sign * (residual / runs).sum(axis=0) / cells
        weight += (made / runs).sum(axis=0)
    effective = weight.sum() ** 2 / (weight**2).sum()
    if effective <= 1:
        return math.inf
    variance = float((pull**2).sum()) * effective / (effective - 1)
    return float(stdtrit(effective - 1, 0.5 + coverage / 2)) * math.sqrt(variance)


def student_half_width(values: Floats, coverage: float) -> float:
    """Return half the width of Student's interval for a mean; infinite for a single value."""
    from scipy.special import stdtrit  # slow to import

    if len(values) < 2:
        return math.inf
    quantile = float(stdtrit(len(values) - 1, 0.5 + coverage / 2))
    return quantile * float(values.std(ddof=1)) / math.sqrt(len(values))


def censored_median(times: Sequence[float | None]) -> float:
    """Return the median of times of which some are only known to lie beyond the budget.

    A run that never converged is censored (None), not dropped: it counts as later than all others.
    With an even number of runs it is the mean of the two middle values, or the lower of them where
    the other is infinite. It is infinite where more than half of the runs did not converge.
    """
    ordered = np.sort([math.inf if time is None else time for time in times])
    n = len(ordered)
    return float(between_middles(ordered[(n - 1) // 2], ordered[n // 2])) if n else math.nan


def lower_median(times: Sequence[float | None]) -> float:
    """Return the median, of an even number the lower of the two middle values: one measured.

    The estimate of rules, where intervals are between order statistics too.
    """
    ordered = sorted(math.inf if time is None else time for time in times)
    return ordered[(len(ordered) - 1) // 2] if ordered else math.nan


def between_middles(lower: ArrayLike, upper: ArrayLike) -> Floats:
    """Return the mean of two middle values; the lower one where the upper one is infinite."""
    low, high = np.asarray(lower, float), np.asarray(upper, float)
    both = np.isfinite(low) & np.isfinite(high)
    found: Floats = low + np.subtract(high, low, where=both, out=np.zeros_like(low)) / 2
    return found


def bootstrap_median(
    times: Sequence[float | None],
    *,
    coverage: float = 0.95,
    resamples: int = 2000,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Bound a censored median by the percentile bootstrap; an end may be infinite."""
    if not times:
        return math.nan, math.nan
    values = np.array([math.inf if time is None else time for time in times])
    drawn = np.sort(rng.choice(values, (resamples, len(values))), axis=1)
    medians = between_middles(drawn[:, (len(values) - 1) // 2], drawn[:, len(values) // 2])
    tail = (1 - coverage) / 2
    low, high = np.quantile(medians, [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)


def median_interval(values: Floats, coverage: float) -> tuple[float, float]:
    r"""Bound a median by two order statistics, whatever the distribution.

    Parameters
    ----------
    values : array
        Independent draws.
    coverage : float
        Least coverage of the two-sided interval.

    Returns
    -------
    low, high : float
        The i-th smallest and the i-th largest value, for the largest i with
        :math:`P(\mathrm{Bin}(n, ½) < i) \le (1 - \text{coverage}) / 2`; infinite if there is
        none, as with fewer than six values at 95 %.
    """
    rank = median_rank(len(values), coverage)
    if not rank:
        return -math.inf, math.inf
    ordered = np.sort(values)
    return float(ordered[rank - 1]), float(ordered[-rank])


def grouped_medians(
    values: Known, groups: NDArray[np.integer], count: int, *, coverage: float = 0.95
) -> tuple[Floats, Floats, Floats]:
    """Return the median of every group with its interval, as `median_interval` bounds one.

    Parameters
    ----------
    values : Known
        One number per run; those that are not there are left out. A time beyond a budget counts as
        later than all others, so that a median may be infinite. Of an even number the median is
        as `censored_median` says.
    groups : array of int
        The group of each number, from 0 to `count` − 1.
    count : int
        Groups.
    coverage : float, default=0.95
        Least coverage of each two-sided interval.

    Returns
    -------
    median, low, high : array, shape (group,)
        NaN without numbers; both ends are NaN where there are too few of them.
    """
    there = values.there
    low, high, group = values.low[there], values.high[there], np.asarray(groups)[there]
    sizes = np.bincount(group, minlength=count)
    starts = np.cumsum(sizes) - sizes
    low, high = _sorted_within(group, low), _sorted_within(group, high)
    ranks = {n: median_rank(n, coverage) for n in np.unique(sizes).tolist() if n}
    rank = np.array([ranks.get(n, 0) for n in sizes.tolist()], np.int64)
    found = np.full((3, count), math.nan)
    some, enough = sizes > 0, rank > 0
    middles = (high[(starts + place)[some]] for place in ((sizes - 1) // 2, sizes // 2))
    found[0, some] = between_middles(*middles)
    found[1, enough] = low[(starts + rank - 1)[enough]]
    found[2, enough] = high[(starts + sizes - rank)[enough]]
    return found[0], found[1], found[2]


def _sorted_within(group: NDArray[np.integer], values: Floats) -> Floats:
    """Return values in the order of their groups, and within each by size."""
    by_size = np.argsort(values)
    small = np.uint16 if group.max(initial=0) < 2**16 else np.int64  # which is sorted by its digits
    by_group = np.argsort(group[by_size].astype(small), kind="stable")
    found: Floats = values[by_size][by_group]
    return found


def median_rank(n: int, coverage: float) -> int:
    """Return the largest i with P(Bin(n, ½) < i) ≤ (1 − coverage) / 2; 0 for too few values."""
    from scipy.special import bdtrik  # slow to import

    tail = (1 - coverage) / 2
    return 0 if 0.5**n > tail else 1 + math.floor(bdtrik(tail, n, 0.5) + 1e-9)


def exact_interval(hits: int, runs: int, *, coverage: float = 0.95) -> tuple[float, float]:
    """Bound a probability by inverting the binomial test [Clopper & Pearson 1934].

    Never misses more often than it says, for a probability of 1e-6 as for one half: with no hit in
    10^6 runs the 95 % interval is [0, 3.7e-6].
    """
    from scipy.special import betaincinv  # slow to import

    tail = (1 - coverage) / 2
    low = betaincinv(hits, runs - hits + 1, tail) if hits else 0.0
    high = betaincinv(hits + 1, runs - hits, 1 - tail) if hits < runs else 1.0
    return float(low), float(high)
