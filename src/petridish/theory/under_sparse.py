r"""One truncated gradient step from the under-sparse initialisation [PF Theorems 5 and 21].

A neuron starts with s weights of 1 and n − s of ε. If its ones S' lie within the parity's set S,
it is good: the gradient's entries on S ∖ S' are larger than all others, and a step that zeroes
the small ones leaves weights on S alone, up to ε². Good neurons are *constructed* here, not waited
for: the claim is about them, and how rare they are is `neurons.good_chance`.

Inputs and initialisation treat all bits alike, so S is the first k bits, and S' its first s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from petridish.naming import UserError, check_whole
from petridish.theory.gradients import population_gradient, under_sparse_constants
from petridish.theory.over_sparse import parity_of_sum

Floats = NDArray[np.float64]

# Where a gradient is cut to zero. "printed": |ξ| of the irrelevant bits, right for the population's
# gradient only. "midway": half-way between that and |ξ| of the relevant bits, right for a sample's.
Threshold = Literal["printed", "midway"]

# What counts as finding S. "set": the entries that the truncation leaves are those on S ∖ S', all
# with the sign of ξ; watching n bits at once costs a factor log n. "bit": the probability that an
# entry lands on its side of the threshold, the mean of that on S ∖ S' and that outside S.
Found = Literal["set", "bit"]
_GOAL: dict[Found, float] = {"set": 0.5, "bit": 0.9}  # the value whose sample size is asked for

_CHUNK = 2**21  # signs drawn at a time: a few megabytes


@dataclass(frozen=True, kw_only=True)
class UnderSparse:
    """An under-sparse start for the (n, k)-parity: s ones, the other weights ε [PF B.3].

    With n=9, k=4, s=2 and share=0.5, a neuron has two weights of 1 and seven of ε = 1/14.
    """

    n: int
    k: int
    s: int
    share: float = 0.5  # ε as a share of its bound 1 / (n − s)

    def __post_init__(self) -> None:
        check_whole("UnderSparse", 0, n=self.n, k=self.k, s=self.s)
        if self.k % 2 or self.s % 2 or not self.s < self.k < self.n:
            raise UserError(
                f"UnderSparse: n={self.n}, k={self.k}, s={self.s}. "
                "Give even k and s with s < k < n; otherwise the gradients vanish."
            )
        if not 0 < self.share < 1:
            raise UserError(f"UnderSparse: share={self.share}. Give a number between 0 and 1.")

    @property
    def epsilon(self) -> float:
        """The small weight ε, below 1 / (n − s): together these weights never outvote a one."""
        return self.share / (self.n - self.s)

    @property
    def relevant(self) -> float:
        """The gradient ξ on S ∖ S' of a good neuron [PF Lemma 20]."""
        return float(under_sparse_constants(self.n, self.k, self.s)[0])

    @property
    def irrelevant(self) -> float:
        """The gradient ξ outside S of a good neuron [PF Lemma 20]."""
        return float(under_sparse_constants(self.n, self.k, self.s)[1])

    @property
    def biases(self) -> Floats:
        """The k biases: the odd multiples of ε/2k from −(k − 1) to k − 1."""
        return np.arange(1 - self.k, self.k, 2) * self.epsilon / (2 * self.k)

    def threshold(self, kind: Threshold) -> float:
        """Give the truncation γ: entries of at most this size become 0."""
        if kind == "printed":
            return abs(self.irrelevant)
        return (abs(self.irrelevant) + abs(self.relevant)) / 2


@dataclass(frozen=True, eq=False)
class Network:
    """A 2-layer ReLU network f(x) = Σ u_i relu(w_i · x + b_i) + β."""

    weights: Floats  # (width, n)
    biases: Floats  # (width,)
    signs: Floats  # (width,), the second layer u
    output_bias: float = 0.0

    def __call__(self, x: Floats) -> Floats:
        """Give f at the inputs x, shape (example, n)."""
        hidden = np.maximum(x @ self.weights.T + self.biases, 0)  # (example, width)
        output: Floats = hidden @ self.signs + self.output_bias
        return output


def random_network(recipe: UnderSparse, width: int, rng: np.random.Generator) -> Network:
    """Draw the initialisation as printed: width/2 random neurons, each with a mirrored copy."""
    check_whole("random_network", 2, width=width)
    if width % 2:
        raise UserError(f"random_network: width={width} is odd. Neurons come in pairs: give 2 r.")
    half = width // 2
    order = rng.permuted(np.tile(np.arange(recipe.n), (half, 1)), axis=1)
    weights = np.where(order < recipe.s, 1.0, recipe.epsilon)
    return _mirrored(weights, rng.choice(recipe.biases, half), rng.choice([-1.0, 1.0], half))


def good_network(recipe: UnderSparse) -> Network:
    """Give one good neuron for each of the k biases, with mirrored copies; u = +1 comes first."""
    weights = np.full((recipe.k, recipe.n), recipe.epsilon)
    weights[:, : recipe.s] = 1
    return _mirrored(weights, recipe.biases, np.ones(recipe.k))


def _mirrored(weights: Floats, biases: Floats, signs: Floats) -> Network:
    return Network(
        np.concatenate([weights, weights]),
        np.concatenate([biases, biases]),
        np.concatenate([signs, -signs]),
    )


def sample_gradient(recipe: UnderSparse, network: Network, x: Floats) -> Floats:
    """Give the gradient of the hinge loss by the first layer on the inputs x, shape (width, n).

    A mirrored network computes 0 everywhere, so hinge's derivative is −y: the mean over the sample
    of −y u_i 1{w_i · x + b_i > 0} x.
    """
    label = x[:, : recipe.k].prod(axis=1)
    active = x @ network.weights.T + network.biases > 0  # (example, width)
    # Not a BLAS product: its threads wait for each other where the machine is busy.
    sums: Floats = np.einsum("eh,ei->hi", label[:, None] * active, x)
    return -network.signs[:, None] * sums / len(x)


def mean_gradient(recipe: UnderSparse, network: Network) -> Floats:
    """Give the population's gradient, shape (width, n), by [PF Lemmas 18–20].

    The biases are too small to matter but for ties, which they decide by their sign.
    """
    support = range(recipe.k)
    rows = [
        -u
        * population_gradient(
            recipe.n,
            support,
            [int(i) for i in np.flatnonzero(w == 1)],
            regime="under-sparse",
            at_zero=int(b > 0),
        )
        for w, b, u in zip(network.weights, network.biases, network.signs, strict=True)
    ]
    return np.stack(rows)


def truncated_step(
    recipe: UnderSparse, network: Network, gradient: Floats, *, threshold: Threshold
) -> Network:
    r"""Take the step w ← (1 − λ) w − η trunc(gradient, γ) [PF Theorem 21].

    λ = 1 − ε/2k and η = ε / 2k|ξ|. The print has a minus sign before η, with which the copy that
    it names, u = sign(ξ), goes the wrong way; its mirrored copy then goes the right one.

    Returns
    -------
    network : Network
        On the population's gradient a good neuron with u = sign(ξ) has the weights ε/2k on S',
        (1 + ε) ε/2k on S ∖ S', and ε²/2k elsewhere (printed: ε²/k).
    """
    kept = np.where(np.abs(gradient) > recipe.threshold(threshold), gradient, 0)
    decayed = recipe.epsilon / (2 * recipe.k)
    rate = decayed / abs(recipe.relevant)
    return replace(network, weights=decayed * network.weights - rate * kept)


def bias_features(k: int) -> Floats:
    """Give relu(s_x + c) for the values of s_x and c = k − 1, k − 3, …, 1 − k, shape (k + 1, k).

    In units of ε/2k: what good neurons compute after the step. At s_x = −k all of them are 0, and
    each further value of s_x wakes one more.
    """
    sums = parity_of_sum(k)[0]
    features: Floats = np.maximum(sums[:, None] + np.arange(k - 1, -k, -2), 0)
    return features


def second_layer_weights(k: int, *, output_bias: Literal["zero", "free"]) -> tuple[Floats, float]:
    """Solve for the second layer that makes the parity of the k features, in units of 2k/ε.

    Returns
    -------
    weights : array, shape (k,)
        For the biases from the largest to the smallest.
    output_bias : float
        0 («zero», as in the paper, where the parity is fitted at all values of s_x but −k) or
        1 («free», where it is fitted at all of them).
    """
    parity = parity_of_sum(k)[1]
    constant = float(parity[0]) if output_bias == "free" else 0.0
    weights = np.linalg.solve(bias_features(k)[1:], parity[1:] - constant)
    return np.asarray(weights, np.float64), constant


def best_correlation(k: int, *, output_bias: Literal["zero", "free"]) -> float:
    """Give E[f χ_S] of the fitted second layer over exact features: 1 − 2^−k, or 1 if β is free.

    Where β = 0 the function is 0 at s_x = −k, which has the probability 2^−k.
    """
    _, parity, chance = parity_of_sum(k)
    weights, constant = second_layer_weights(k, output_bias=output_bias)
    return float(chance @ (parity * (bias_features(k) @ weights + constant)))


def untrained_correlation(k: int, s: int) -> float:
    r"""Give the best cosine between χ_S and a subnetwork whose second layer stays at u = ±1.

    The theorem trains the first layer only. Neurons with u = sign(ξ) compute functions of
    Σ_S x, their mirrored copies functions of Σ_{S'} x − Σ_{S∖S'} x; any number of each may be
    taken, for every S' and bias. The best is a non-negative least-squares fit over the 2^k inputs.
    """
    from scipy.optimize import nnls  # slow to import

    x = _cube(k)
    direction = np.sign(UnderSparse(n=k + 1, k=k, s=s).relevant)
    shifts = np.arange(k - 1, -k, -2)
    columns = [direction * np.maximum(x.sum(axis=1)[:, None] + shifts, 0)]
    for ones in combinations(range(k), s):
        other = np.where(np.isin(np.arange(k), ones), 1, -1)
        columns.append(-direction * np.maximum((x @ other)[:, None] + shifts, 0))
    parity = x.prod(axis=1)
    _, residual = nnls(np.hstack(columns), parity)
    return math.sqrt(max(0.0, 1 - residual**2 / len(parity)))


def subnetwork(
    recipe: UnderSparse, after: Network, *, output_bias: Literal["zero", "free"]
) -> Network:
    """Pick the good neurons with u = sign(ξ) and put the fitted second layer on them.

    `after` is a good network after its step.
    """
    rows = np.arange(recipe.k) + (0 if recipe.relevant > 0 else recipe.k)
    weights, constant = second_layer_weights(recipe.k, output_bias=output_bias)
    scale = 2 * recipe.k / recipe.epsilon
    return Network(
        after.weights[rows], after.biases[rows], scale * weights[::-1], output_bias=constant
    )


def correlation(
    recipe: UnderSparse, network: Network, *, examples: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Estimate E[f χ_S] and E[sign(f) χ_S] on fresh inputs; sign(0) counts as 0."""
    x = rng.choice([-1.0, 1.0], size=(examples, recipe.n))
    label = x[:, : recipe.k].prod(axis=1)
    output = network(x)
    return float(np.mean(output * label)), float(np.mean(np.sign(output) * label))


def correlation_curve(
    recipe: UnderSparse,
    sample_sizes: Sequence[int],
    *,
    trials: int,
    rng: np.random.Generator,
    threshold: Threshold = "midway",
    output_bias: Literal["zero", "free"] = "zero",
    examples: int = 2000,
) -> Floats:
    """Give E[sign(f) χ_S] of the good subnetwork after a step on m examples, (trial, size)."""
    before = good_network(recipe)
    curve = np.empty((trials, len(sample_sizes)))
    for trial, column in np.ndindex(curve.shape):
        x = rng.choice([-1.0, 1.0], size=(sample_sizes[column], recipe.n))
        after = truncated_step(
            recipe, before, sample_gradient(recipe, before, x), threshold=threshold
        )
        net = subnetwork(recipe, after, output_bias=output_bias)
        curve[trial, column] = correlation(recipe, net, examples=examples, rng=rng)[1]
    return curve


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
    level: float = 0.95,
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
    level : float, default=0.95
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
    low, high = np.quantile(slopes, [(1 - level) / 2, (1 + level) / 2])
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


def _cube(n: int) -> Floats:
    """Give all of {±1}^n, shape (2^n, n)."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return 1 - 2 * bits.astype(np.float64)
