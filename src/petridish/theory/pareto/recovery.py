r"""How much data one truncated step needs to find S, and how that grows with n [PF Theorem 21]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.theory.pareto.under_sparse import Threshold, UnderSparse

Floats = NDArray[np.float64]

# What counts as finding S. "set": the entries that the truncation leaves are those on S ∖ S', all
# with the sign of ξ; watching n bits at once costs a factor log n. "bit": the probability that an
# entry lands on its side of the threshold, the mean of that on S ∖ S' and that outside S.
Found = Literal["set", "bit"]
_GOAL: dict[Found, float] = {"set": 0.5, "bit": 0.9}  # the value whose sample size is asked for

_CHUNK = 2**21  # signs drawn at a time: a few megabytes


def recovery_trials(
    recipe: UnderSparse,
    sample_sizes: Sequence[int],
    *,
    trials: int,
    rng: np.random.Generator,
    threshold: Threshold = "midway",
    found: Found = "set",
) -> Floats:
    """Say for each trial and sample size whether a good neuron's truncated gradient finds S.

    Parameters
    ----------
    recipe : UnderSparse
        The start. The neuron's bias is the smallest positive one.
    sample_sizes : sequence of int
        Rising; the samples of a trial are nested.
    trials : int
        Samples drawn.
    rng : numpy Generator
    threshold : {"midway", "printed"}, default="midway"
    found : {"set", "bit"}, default="set"

    Returns
    -------
    found : array, shape (trial, size)
        1 where S is found and 0 elsewhere, or the share of entries on their side («bit»).
    """
    check_whole("recovery_trials", 1, trials=trials)
    sizes = np.asarray(sample_sizes)
    if sizes.size == 0 or sizes[0] < 1 or np.any(np.diff(sizes) <= 0):
        raise UserError(
            f"recovery_trials: sample_sizes={list(sample_sizes)}. Give rising sizes, from 1 on."
        )
    k, s = recipe.k, recipe.s
    cut, direction = recipe.threshold(threshold), np.sign(recipe.relevant)
    results = np.empty((trials, len(sizes)))
    for trial in range(trials):
        total = np.zeros(recipe.n)
        for column, more in enumerate(np.diff(sizes, prepend=0)):
            total += label_sums(recipe, int(more), rng)
            gradient = direction * total / sizes[column]
            right = np.abs(gradient) <= cut
            right[s:k] = gradient[s:k] > cut
            both_sides = (right[s:k].mean() + right[k:].mean()) / 2
            results[trial, column] = right.all() if found == "set" else both_sides
    return results


def label_sums(recipe: UnderSparse, examples: int, rng: np.random.Generator) -> Floats:
    """Sum y · 1{neuron active} · x over fresh examples, shape (n,)."""
    n, k, s = recipe.n, recipe.k, recipe.s
    total = np.zeros(n)
    rows = max(1, _CHUNK // n)
    for start in range(0, examples, rows):
        count = min(rows, examples - start)
        octets = rng.integers(0, 256, size=-(-count * n // 8), dtype=np.uint8)
        bits = np.unpackbits(octets)[: count * n].reshape(count, n).astype(np.float32)
        # The bit 1 is the sign −1. All numbers are whole and below 2^24, so float32 is exact.
        votes = n - 2 * (bits @ np.ones(n, np.float32))
        # A one outvotes all of the rest; a tie goes to the positive bias.
        votes += np.float32(n) * (s - 2 * bits[:, :s].sum(axis=1))
        label = 1 - 2 * (bits[:, :k].sum(axis=1) % 2)
        signed = label * (votes >= 0)
        total += float(signed.sum()) - 2.0 * (signed @ bits)
    return total


def recovery_curve(
    n: int,
    k: int,
    s: int,
    sample_sizes: Sequence[int],
    trials: int,
    rng: np.random.Generator,
    *,
    threshold: Threshold = "midway",
) -> Floats:
    """Give the share of trials that find S exactly, for each sample size; see `recovery_trials`."""
    recipe = UnderSparse(n=n, k=k, s=s)
    results = recovery_trials(recipe, sample_sizes, trials=trials, rng=rng, threshold=threshold)
    share: Floats = results.mean(axis=0)
    return share


def predicted_recovery(
    recipe: UnderSparse,
    sample_size: float,
    *,
    threshold: Threshold = "midway",
    found: Found = "set",
) -> float:
    r"""Predict the mean of `recovery_trials` for a sample of m.

    The entries of the gradient are taken as independent normals with the population's means and
    the variance (½ − ξ²) / m: k − s must pass the threshold γ, and the others must not.
    """
    from scipy.special import ndtr  # slow to import

    cut = recipe.threshold(threshold)

    def beyond(mean: float) -> float:
        return float(ndtr((mean - cut) / math.sqrt((0.5 - mean**2) / sample_size)))

    def within(mean: float) -> float:
        return 1 - beyond(mean) - beyond(-mean)

    on_support, off_support = beyond(abs(recipe.relevant)), within(abs(recipe.irrelevant))
    if found == "bit":
        return (on_support + off_support) / 2
    return float(
        on_support ** (recipe.k - recipe.s)
        * within(0.0) ** recipe.s
        * off_support ** (recipe.n - recipe.k)
    )


def predicted_size(
    recipe: UnderSparse, *, threshold: Threshold = "midway", found: Found = "set"
) -> float:
    """Give the m at which S is expected to be found: in half of the trials, or 90 % of the bits.

    With the printed threshold the means of the irrelevant bits lie on it, so each is beyond it
    half of the time however large m is; there is no such m where n > k + 1, and this raises.
    """

    def reached(m: float) -> bool:
        return predicted_recovery(recipe, m, threshold=threshold, found=found) >= _GOAL[found]

    high = 1.0
    while not reached(high):
        high *= 2
        if high > 1e30:
            raise UserError(
                f"predicted_size: no sample is large enough at the {threshold} threshold. "
                "Give threshold='midway'."
            )
    low = high / 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


@dataclass(frozen=True, kw_only=True)
class Slope:
    """How the sample size that finds S grows with n, on logarithmic axes."""

    n_values: tuple[int, ...]
    sizes: tuple[float, ...]  # the m at which S is found
    slope: float
    low: float  # bootstrap interval over trials
    high: float
    predicted: float  # slope of `predicted_size` over the same n
    claimed: int  # k − s − 1, for n → ∞ and without the logarithm


def recovery_slope(
    n_values: Sequence[int],
    k: int,
    s: int,
    *,
    trials: int,
    rng: np.random.Generator,
    found: Found = "set",
    coverage: float = 0.95,
    resamples: int = 1000,
) -> Slope:
    r"""Measure the slope of log m against log n, m being the sample size at which S is found.

    Parameters
    ----------
    n_values : sequence of int
        Numbers of bits, at least two.
    k, s : int
        Degree of the parity and ones of a neuron, both even.
    trials : int
        Samples drawn for each n; a grid of nested sizes around the predicted one is read off each.
    rng : numpy Generator
        For the samples and for the bootstrap.
    found : {"set", "bit"}, default="set"
        Whether m finds S exactly in half of the trials, which grows with a further log n, or puts
        90 % of the entries on their side.
    coverage : float, default=0.95
        Coverage of the bootstrap interval.
    resamples : int, default=1000
        Bootstrap resamples of the trials, independent for each n.

    Returns
    -------
    slope : Slope
        Least squares on the logarithms. The theorem's m is :math:`O(n^{k-s-1})`, for large n and
        up to a logarithm; at finite n the slope of `predicted_size` is the one to expect.
    """
    if len(n_values) < 2:
        raise UserError(f"recovery_slope: n_values={list(n_values)}. Give at least two.")
    tables, grids, expected = [], [], []
    for n in n_values:
        recipe = UnderSparse(n=n, k=k, s=s)
        centre = predicted_size(recipe, found=found)
        grid = np.unique(np.rint(centre * 2.0 ** np.linspace(-2, 1.5, 15)).astype(np.int64))
        sizes = [int(m) for m in grid]
        tables.append(recovery_trials(recipe, sizes, trials=trials, rng=rng, found=found))
        grids.append(grid)
        expected.append(centre)
    goal = _GOAL[found]
    measured = [_crossing(t, g, goal) for t, g in zip(tables, grids, strict=True)]
    redrawn = np.empty((resamples, len(n_values)))
    for column, (table, grid) in enumerate(zip(tables, grids, strict=True)):
        for row in range(resamples):
            redrawn[row, column] = _crossing(table[rng.integers(trials, size=trials)], grid, goal)
    slopes = _log_slope(n_values, redrawn)
    low, high = np.quantile(slopes, [(1 - coverage) / 2, (1 + coverage) / 2])
    return Slope(
        n_values=tuple(n_values),
        sizes=tuple(measured),
        slope=float(_log_slope(n_values, np.array([measured]))[0]),
        low=float(low),
        high=float(high),
        predicted=float(_log_slope(n_values, np.array([expected]))[0]),
        claimed=k - s - 1,
    )


def _crossing(results: Floats, grid: NDArray[np.int64], goal: float) -> float:
    """Find where the mean over trials reaches `goal`, linear in log m between grid points."""
    from scipy.optimize import isotonic_regression  # slow to import

    # A sample's mean wobbles; its best rising fit does not cross early by chance.
    share = isotonic_regression(results.mean(axis=0)).x
    above = int(np.searchsorted(share, goal))
    if above in (0, len(grid)):  # beyond the grid: its end, which understates a difference
        return float(grid[min(above, len(grid) - 1)])
    weight = (goal - share[above - 1]) / (share[above] - share[above - 1])
    low, high = math.log(grid[above - 1]), math.log(grid[above])
    return math.exp(low + weight * (high - low))


def _log_slope(n_values: Sequence[int], sizes: Floats) -> Floats:
    """Fit log size = a + slope · log n for each row of `sizes`."""
    centred = np.log(np.asarray(n_values, float))
    centred -= centred.mean()
    slopes: Floats = np.log(sizes) @ centred / float(centred @ centred)
    return slopes
