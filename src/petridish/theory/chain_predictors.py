r"""The exact Bayes predictor of a chain that begins with its stationary law [TH Remark 8.1].

Given the first token and counts of transitions, rows of a matrix with Dirichlet(α) rows are
independent a posteriori but for one factor, the stationary probability of the first token. The
bigram strategy leaves it out. With it

.. math::
    P(x_{p+1} = j \mid x_1 … x_p) = m_j + \operatorname{Cov}(π_{x_1}, P_{x_p j}) / E[π_{x_1}],

where m is the bigram strategy's prediction, and the covariance and the mean are over the rows as
the bigram strategy takes them.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from petridish.theory.stationary import stationary

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
NODES = 64  # of each of two quadratures, beside half of the largest count
DRAWS = 512  # of matrices, for more than two states
CHUNK, DRAWN = 2**22, 2**18  # numbers held at a time; of draws, which stay in the cache


def transition_counts(tokens: Counts, k: int, at: Counts) -> Counts:
    """Return the transitions up to some positions, shape (…, position, from, to)."""
    pairs = tokens[..., :-1] * k + tokens[..., 1:]
    if len(at) == 1:  # each sequence's pairs are counted at once
        n = math.prod(tokens.shape[:-1])
        own = np.arange(n)[:, None] * k * k + pairs[..., : at[0]].reshape(n, at[0])
        return np.bincount(own.reshape(-1), minlength=n * k * k).reshape(
            *tokens.shape[:-1], 1, k, k
        )
    hot = (pairs[..., None] == np.arange(k * k)).astype(np.int64)  # (…, position − 1, pair)
    summed = np.cumsum(hot, axis=-2)
    summed = np.concatenate([np.zeros_like(summed[..., :1, :]), summed], axis=-2)
    if tokens.shape[-1] == 1:
        summed = np.zeros((*tokens.shape, k * k), np.int64)
    return summed[..., at, :].reshape(*tokens.shape[:-1], len(at), k, k)


def posterior_of_staying(counts: Counts, epsilon: float) -> Floats:
    """Return E[a] of symmetric chains with a uniform on (½ − ε, ½ + ε), given counts (…, k, k).

    The posterior is a Beta law cut to that interval: a ratio of incomplete Beta functions.
    """
    from scipy.special import betainc

    stays = np.trace(counts, axis1=-2, axis2=-1) + 1.0
    moves = counts.sum(axis=(-2, -1)) - stays + 2.0
    low, high = 0.5 - epsilon, 0.5 + epsilon

    def mass(p: Floats, q: Floats) -> Floats:
        # Of two differences the one that keeps more digits: near 0, or near 1.
        lower = betainc(p, q, high) - betainc(p, q, low)
        upper = betainc(q, p, 1 - low) - betainc(q, p, 1 - high)
        found: Floats = np.where(betainc(p, q, low) < 0.5, lower, upper)
        return found

    mean: Floats = stays / (stays + moves) * mass(stays + 1, moves) / mass(stays, moves)
    return mean


def posterior_predictions(
    counts: Counts, first: Counts, here: Counts, alpha: float = 1.0
) -> Floats:
    """Return the Bayes predictions of the next token for Dirichlet(α) rows, stationary start.

    Two states: by quadrature, to eight digits (a test halves the nodes). More: the covariance by
    512 draws of matrices, the same at every call; a probability is then known to about 0.2 /
    √512 times the standard deviation of the row, a loss to 10⁻⁵.

    Parameters
    ----------
    counts : array of int, shape (…, position, k, k)
        Transitions seen up to each position.
    first, here : array of int, shape (…, 1) and (…, position)
        The first token, and that of each position.
    """
    k = counts.shape[-1]
    shape = here.shape
    keys = np.concatenate(
        [
            counts.reshape(-1, k * k),
            np.broadcast_to(first, shape).reshape(-1, 1),
            here.reshape(-1, 1),
        ],
        axis=1,
    )
    # What was seen comes again in many sequences: each is computed once.
    distinct, place = np.unique(keys, axis=0, return_inverse=True)
    matrices = distinct[:, : k * k].reshape(-1, k, k)
    begun, now = distinct[:, -2], distinct[:, -1]
    found = np.empty((len(distinct), k))
    one = (NODES + int(matrices.max(initial=0)) // 2) ** 2 if k == 2 else DRAWS * k * k
    step = max(1, (CHUNK if k == 2 else DRAWN) // one)
    for low in range(0, len(distinct), step):
        part = slice(low, low + step)
        answer = _by_quadrature if k == 2 else _by_draws
        found[part] = answer(matrices[part] + alpha, begun[part], now[part])
    return found[place.reshape(-1)].reshape(*shape, k)


@lru_cache(maxsize=8)
def unit_nodes(n: int) -> tuple[Floats, Floats]:
    """Return the n nodes and weights of Gauss–Legendre quadrature on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return (nodes + 1) / 2, weights / 2


def _by_quadrature(shapes: Floats, first: Counts, here: Counts) -> Floats:
    """Integrate over the two probabilities of leaving a state, u and w.

    The substitution u = s²(3 − 2s) makes Beta densities with α < 1, and the corner u = w = 0 where
    the stationary law jumps, smooth enough for Legendre's nodes.
    """
    s, weights = unit_nodes(NODES + int(shapes.max()) // 2)
    u, log_slope = s**2 * (3 - 2 * s), np.log(weights * 6 * s * (1 - s))

    def density(stay: Floats, leave: Floats) -> Floats:
        logs = (stay - 1)[:, None] * np.log1p(-u) + (leave - 1)[:, None] * np.log(u) + log_slope
        found = np.exp(logs - logs.max(axis=1, keepdims=True))
        normal: Floats = found / found.sum(axis=1, keepdims=True)
        return normal

    laws = density(shapes[:, 0, 0], shapes[:, 0, 1]), density(shapes[:, 1, 1], shapes[:, 1, 0])
    law0 = u[None, :] / (u[:, None] + u[None, :])  # of state 0: w / (u + w)
    # E[π_first] and E[π_first · (probability of leaving the current state)].
    both = []
    for moment in (0, 1):
        left = laws[0] * np.where((here == 0)[:, None], u**moment, 1)
        right = laws[1] * np.where((here == 1)[:, None], u**moment, 1)
        total = left.sum(axis=1) * right.sum(axis=1)
        zero = ((left @ law0) * right).sum(axis=1)
        both.append(np.where(first == 0, zero, total - zero))
    leave = both[1] / both[0]
    found: Floats = np.where(np.arange(2) == here[:, None], 1 - leave[:, None], leave[:, None])
    return found


def _by_draws(shapes: Floats, first: Counts, here: Counts) -> Floats:
    """Estimate the covariance from draws of all rows; the mean is exact."""
    k = shapes.shape[-1]
    # Entries lie first: NumPy is slow where its innermost loop has k turns.
    sizes = np.moveaxis(np.empty((k, k, len(shapes), DRAWS)), (0, 1), (2, 3))
    for into, each in zip(sizes, shapes, strict=True):
        # A generator for each: what one matrix gets does not depend on the others.
        into[...] = np.random.default_rng(0).standard_gamma(each, (DRAWS, k, k))
    rows = sizes / sizes.sum(axis=-1, keepdims=True)
    law = stationary(rows)
    at = np.arange(len(shapes))
    weight = law[at, :, first]  # (matrix, draw)
    row = rows[at, :, here]  # (matrix, draw, k)
    mean = shapes[at, here] / shapes[at, here].sum(axis=-1, keepdims=True)
    change = ((row - mean[:, None]) * weight[..., None]).mean(axis=1)
    found = np.clip(mean + change / weight.mean(axis=1, keepdims=True), 1e-12, None)
    normal: Floats = found / found.sum(axis=-1, keepdims=True)
    return normal
