r"""One truncated gradient step from the under-sparse initialisation [PF Theorems 5 and 21].

A neuron starts with s weights of 1 and n − s of ε. If its ones S' lie within the parity's set S,
it is good: the gradient's entries on S ∖ S' are larger than all others, and a step that zeroes
the small ones leaves weights on S alone, up to ε². Good neurons are *constructed* here, not
drawn: the claim is about them, and `neurons.good_chance` is how likely one is.

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

from petridish.errors import UserError, check_whole
from petridish.theory.fourier import all_signs
from petridish.theory.pareto.gradients import under_sparse_constants
from petridish.theory.parity_step import parity_of_sum

Floats = NDArray[np.float64]

# Where a gradient is cut to zero. "printed": |ξ| of the irrelevant bits, right for the population's
# gradient only. "midway": half-way between that and |ξ| of the relevant bits, right for a sample's.
Threshold = Literal["printed", "midway"]


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
        """The small weight ε, below 1 / (n − s): the sum of these weights stays below 1."""
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
        """Return the truncation γ: entries of at most this size become 0."""
        if kind == "printed":
            return abs(self.irrelevant)
        return (abs(self.irrelevant) + abs(self.relevant)) / 2


@dataclass(frozen=True, eq=False)
class ReluNetwork:
    """A 2-layer ReLU network f(x) = Σ u_i relu(w_i · x + b_i) + β."""

    weights: Floats  # (width, n)
    biases: Floats  # (width,)
    signs: Floats  # (width,), the second layer u
    output_bias: float = 0.0

    def __call__(self, x: Floats) -> Floats:
        """Return f at the inputs x, shape (example, n)."""
        hidden = np.maximum(x @ self.weights.T + self.biases, 0)  # (example, width)
        return hidden @ self.signs + self.output_bias


def good_network(recipe: UnderSparse) -> ReluNetwork:
    """Return one good neuron for each of the k biases, with mirrored copies; u = +1 comes first."""
    weights = np.full((recipe.k, recipe.n), recipe.epsilon)
    weights[:, : recipe.s] = 1
    return _mirrored(weights, recipe.biases, np.ones(recipe.k))


def _mirrored(weights: Floats, biases: Floats, signs: Floats) -> ReluNetwork:
    return ReluNetwork(
        np.concatenate([weights, weights]),
        np.concatenate([biases, biases]),
        np.concatenate([signs, -signs]),
    )


def sample_gradient(recipe: UnderSparse, network: ReluNetwork, x: Floats) -> Floats:
    """Return the gradient of the hinge loss by the first layer on the inputs x, shape (width, n).

    A mirrored network computes 0 everywhere, so hinge's derivative is −y: the mean over the sample
    of −y u_i 1{w_i · x + b_i > 0} x.
    """
    label = x[:, : recipe.k].prod(axis=1)
    active = x @ network.weights.T + network.biases > 0  # (example, width)
    # Not a BLAS product: its threads wait for each other where the machine is busy.
    sums: Floats = np.einsum("eh,ei->hi", label[:, None] * active, x)
    return -network.signs[:, None] * sums / len(x)


def truncated_step(
    recipe: UnderSparse, network: ReluNetwork, gradient: Floats, *, threshold: Threshold
) -> ReluNetwork:
    r"""Take the step w ← (1 − λ) w − η trunc(gradient, γ) [PF Theorem 21].

    λ = 1 − ε/2k and η = ε / 2k|ξ|. With the printed minus sign before η the copy that the proof
    names, u = sign(ξ), moves away from the parity, and its mirrored copy towards it.

    Returns
    -------
    network : ReluNetwork
        On the population's gradient a good neuron with u = sign(ξ) has the weights ε/2k on S',
        (1 + ε) ε/2k on S ∖ S', and ε²/2k elsewhere (printed: ε²/k).
    """
    kept = np.where(np.abs(gradient) > recipe.threshold(threshold), gradient, 0)
    decayed = recipe.epsilon / (2 * recipe.k)
    rate = decayed / abs(recipe.relevant)
    return replace(network, weights=decayed * network.weights - rate * kept)


def bias_features(k: int) -> Floats:
    """Return relu(s_x + c) for the values of s_x and c = k − 1, k − 3, …, 1 − k, shape (k + 1, k).

    In units of ε/2k: what good neurons compute after the step. At s_x = −k all of them are 0, and
    each further value of s_x activates one more.
    """
    sums = parity_of_sum(k)[0]
    return np.maximum(sums[:, None] + np.arange(k - 1, -k, -2), 0)


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
    """Return E[f χ_S] of the fitted second layer over exact features: 1 − 2^−k, or 1 if β is free.

    Where β = 0 the function is 0 at s_x = −k, which has the probability 2^−k.
    """
    _, parity, chance = parity_of_sum(k)
    weights, constant = second_layer_weights(k, output_bias=output_bias)
    return float(chance @ (parity * (bias_features(k) @ weights + constant)))


def untrained_correlation(
    k: int, s: int, *, output_bias: Literal["zero", "free"] = "zero"
) -> float:
    r"""Return the best cosine between χ_S and a subnetwork whose second layer stays at u = ±1.

    The theorem trains the first layer only. Neurons with u = sign(ξ) compute functions of
    Σ_S x, their mirrored copies functions of Σ_{S'} x − Σ_{S∖S'} x; any number of each may be
    taken, for every S' and bias. The best is a non-negative least-squares fit over the 2^k inputs;
    with a free output bias it is the best correlation, of which a constant is no part.
    """
    from scipy.optimize import nnls  # slow to import

    x = all_signs(k).astype(np.float64)
    direction = np.sign(UnderSparse(n=k + 1, k=k, s=s).relevant)
    shifts = np.arange(k - 1, -k, -2)
    columns = [direction * np.maximum(x.sum(axis=1)[:, None] + shifts, 0)]
    for ones in combinations(range(k), s):
        other = np.where(np.isin(np.arange(k), ones), 1, -1)
        columns.append(-direction * np.maximum((x @ other)[:, None] + shifts, 0))
    if output_bias == "free":
        columns.append(np.tile([1.0, -1.0], (len(x), 1)))
    parity = x.prod(axis=1)
    _, residual = nnls(np.hstack(columns), parity)
    return math.sqrt(max(0.0, 1 - residual**2 / len(parity)))


def subnetwork(
    recipe: UnderSparse, after: ReluNetwork, *, output_bias: Literal["zero", "free"]
) -> ReluNetwork:
    """Pick the good neurons with u = sign(ξ) and put the fitted second layer on them.

    `after` is a good network after its step.
    """
    rows = np.arange(recipe.k) + (0 if recipe.relevant > 0 else recipe.k)
    weights, constant = second_layer_weights(recipe.k, output_bias=output_bias)
    scale = 2 * recipe.k / recipe.epsilon
    return ReluNetwork(
        after.weights[rows], after.biases[rows], scale * weights[::-1], output_bias=constant
    )


def correlation(
    recipe: UnderSparse, network: ReluNetwork, *, examples: int, rng: np.random.Generator
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
    """Return E[sign(f) χ_S] of the good subnetwork after a step on m examples, (trial, size)."""
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
