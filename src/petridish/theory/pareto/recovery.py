r"""How much data one truncated step needs to find S, and how that grows with n [PF Theorem 21]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.theory.pareto.under_sparse import Threshold, UnderSparse
from petridish.theory.parity_step import nested_trials
from petridish.theory.smallest import crossing, first_size

Floats = NDArray[np.float64]

# What counts as finding S. "set": the entries that the truncation leaves are those on S ∖ S', all
# with the sign of ξ; watching n bits at once costs a factor log n. "bit": the probability that an
# entry lands on its side of the threshold, the mean of that on S ∖ S' and that outside S.
Found = Literal["set", "bit"]
_GOAL: dict[Found, float] = {"set": 0.5, "bit": 0.9}  # the value whose sample size is asked for


def recovery_trials(
    recipe: UnderSparse,
    sample_sizes: Sequence[int],
    *,
    trials: int,
    rng: np.random.Generator,
    threshold: Threshold = "midway",
    found: Found = "set",
) -> Floats:
    """Return whether a good neuron's truncated gradient finds S, by trial and sample size.

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
    k, s = recipe.k, recipe.s
    cut, direction = recipe.threshold(threshold), np.sign(recipe.relevant)

    def finds(total: Floats, size: int) -> float:
        gradient = direction * total / size
        right = np.abs(gradient) <= cut
        right[s:k] = gradient[s:k] > cut
        both_sides = (right[s:k].mean() + right[k:].mean()) / 2
        return float(right.all() if found == "set" else both_sides)

    start = recipe.n, k, s
    return nested_trials("recovery_trials", start, sample_sizes, finds, trials=trials, rng=rng)


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
    """Return the share of `recovery_trials` that find S exactly, for each sample size."""
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
    """Return the m at which S is expected to be found: in half of the trials, or 90 % of the bits.

    With the printed threshold the means of the irrelevant bits lie on it, so each is beyond it
    half of the time however large m is; there is no such m where n > k + 1, and this raises.
    """
    size = first_size(
        lambda m: predicted_recovery(recipe, m, threshold=threshold, found=found) >= _GOAL[found]
    )
    if math.isinf(size):
        raise UserError(
            f"predicted_size: no sample is large enough at the {threshold} threshold. "
            "Give threshold='midway'."
        )
    return size


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
    measured = [_found_at(t, g, goal) for t, g in zip(tables, grids, strict=True)]
    redrawn = np.empty((resamples, len(n_values)))
    for column, (table, grid) in enumerate(zip(tables, grids, strict=True)):
        for row in range(resamples):
            redrawn[row, column] = _found_at(table[rng.integers(trials, size=trials)], grid, goal)
    slopes = log_slope(n_values, redrawn)
    low, high = np.quantile(slopes, [(1 - coverage) / 2, (1 + coverage) / 2])
    return Slope(
        n_values=tuple(n_values),
        sizes=tuple(measured),
        slope=float(log_slope(n_values, np.array([measured]))[0]),
        low=float(low),
        high=float(high),
        predicted=float(log_slope(n_values, np.array([expected]))[0]),
        claimed=k - s - 1,
    )


def _found_at(results: Floats, grid: NDArray[np.int64], goal: float) -> float:
    """Find where the mean over trials reaches `goal`."""
    from scipy.optimize import isotonic_regression  # slow to import

    # A noisy mean may cross early by chance; its best rising fit does not.
    return crossing(isotonic_regression(results.mean(axis=0)).x, grid, goal)


def log_slope(n_values: Sequence[float], sizes: Floats) -> Floats:
    """Fit log size = a + slope · log n for each row of `sizes`."""
    centred = np.log(np.asarray(n_values, float))
    centred -= centred.mean()
    slopes: Floats = np.log(sizes) @ centred / float(centred @ centred)
    return slopes
