r"""What PF and HP share: a parity as a function of the sum of its bits, and one gradient on it.

S is the first k of n bits. A function of s_x = Σ_{j∈S} x_j meets the parity at k + 1 values; a
neuron's first gradient on a sample is a sum over the examples for which it is active.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole

Floats = NDArray[np.float64]

_CHUNK = 2**21  # signs drawn at a time: a few megabytes


def parity_of_sum(k: int) -> tuple[Floats, Floats, Floats]:
    """Return the values of s_x from −k to k, the parity at each, and its probability.

    The parity is (−1)^((k − s_x) / 2). The paper's «s_x mod 2» is the same for all of them.
    """
    minus = np.arange(k, -1, -1).astype(np.float64)  # how many of the k bits are −1
    chance = np.array([math.comb(k, j) / (1 << k) for j in range(k, -1, -1)], np.float64)
    return k - 2 * minus, 1 - 2 * (minus % 2), chance


def step_features(
    k: int, rising: Sequence[float] | Floats, falling: Sequence[float] | Floats = ()
) -> Floats:
    """Return relu(s_x / 2k + b) for rising neurons, relu(−s_x / 2k + b) for falling ones.

    At s_x = −k, −k + 2, …, k; the shape is (k + 1, neurons).
    """
    sums = parity_of_sum(k)[0][:, None] / (2 * k)
    up, down = np.asarray(rising, np.float64), np.asarray(falling, np.float64)
    return np.maximum(np.hstack([sums + up, -sums + down]), 0)


def least_hinge_loss(features: Floats, parity: Floats, chance: Floats) -> float:
    """Return the least expected hinge loss of any second layer over `features`, without a bias.

    `features` has one row per kind of input; `parity` and `chance` are its label and probability.
    """
    from scipy.optimize import linprog  # slow to import

    margins = parity[:, None] * features
    rows, columns = margins.shape
    # Variables: the second layer, then one slack for each row, with margin + slack ≥ 1.
    found = linprog(
        np.concatenate([np.zeros(columns), chance]),
        A_ub=-np.hstack([margins, np.eye(rows)]),
        b_ub=-np.ones(rows),
        bounds=[(None, None)] * columns + [(0, None)] * rows,
        method="highs",
    )
    return float(found.fun)


def label_sums(n: int, k: int, s: int, examples: int, rng: np.random.Generator) -> Floats:
    """Sum y · 1{neuron active} · x over fresh examples, shape (n,).

    The neuron has s weights of 1, on the first bits of S, and small equal ones elsewhere; with
    s = 0 its derivative is a majority.
    """
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


def nested_trials(
    owner: str,
    start: tuple[int, int, int],
    sample_sizes: Sequence[int],
    read: Callable[[Floats, int], float],
    *,
    trials: int,
    rng: np.random.Generator,
) -> Floats:
    """Return `read(label_sums, m)` of samples of rising sizes m, shape (trial, size).

    `start` is (n, k, s) of `label_sums`; the samples of a trial are nested.
    """
    check_whole(owner, 1, trials=trials)
    sizes = np.asarray(sample_sizes)
    if sizes.size == 0 or sizes[0] < 1 or np.any(np.diff(sizes) <= 0):
        raise UserError(
            f"{owner}: sample_sizes={list(sample_sizes)}. Give rising sizes, from 1 on."
        )
    results = np.empty((trials, len(sizes)))
    for trial in range(trials):
        total = np.zeros(start[0])
        for column, more in enumerate(np.diff(sizes, prepend=0)):
            total += label_sums(*start, int(more), rng)
            results[trial, column] = read(total, sample_sizes[column])
    return results
