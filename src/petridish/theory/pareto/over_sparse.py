r"""The second layer that the over-sparse proof asks for [PF B.2.2, Lemma 11].

After one step a good neuron is a function of s_x = Σ_{j∈S} x_j: relu(±s_x / 2k + β_i), with
β_i = (−k + 2i + o) / 2k and the offset o = 1/16. The second layer has to turn these features and
a constant into the parity, which is +1 at s_x = k and alternates over the k + 1 values
k, k − 2, …, −k.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole

Floats = NDArray[np.float64]

OFFSET = 1 / 16  # the paper's


def printed_biases(k: int, *, offset: float = OFFSET) -> Floats:
    """Give β_1 … β_{k/2−1} as printed: none for k = 2, and one too few for every k."""
    return over_sparse_biases(k, offset=offset)[1:]


def over_sparse_biases(k: int, *, offset: float = OFFSET) -> Floats:
    """Give β_0 … β_{k/2−1}, β_i = (−k + 2i + offset) / 2k: the set that represents the parity.

    Neuron i is active from s_x = k − 2i on, so each adds one value to those before it, and the
    system for the second layer is triangular. All lie below −15 / 16k for the paper's offset.
    """
    check_whole("over_sparse_biases", 2, k=k)
    if k % 2:
        raise UserError(f"over_sparse_biases: k={k} is odd. Give an even k.")
    return (-k + 2 * np.arange(k // 2) + offset) / (2 * k)


def parity_of_sum(k: int) -> tuple[Floats, Floats, Floats]:
    """Give the values of s_x from −k to k, the parity at each, and its probability.

    The parity is (−1)^((k − s_x) / 2). The paper's «s_x mod 2» is the same for all of them.
    """
    minus = np.arange(k, -1, -1).astype(np.float64)  # how many of the k bits are −1
    chance = np.array([math.comb(k, j) / (1 << k) for j in range(k, -1, -1)], np.float64)
    return k - 2 * minus, 1 - 2 * (minus % 2), chance


def feature_matrix(k: int, biases: Floats) -> Floats:
    """Give the features at every s_x: a constant, the rising neurons, the falling ones.

    The shape is (k + 1, 1 + 2 · biases).
    """
    sums = parity_of_sum(k)[0][:, None] / (2 * k)
    return np.hstack(
        [np.ones((k + 1, 1)), np.maximum(sums + biases, 0), np.maximum(-sums + biases, 0)]
    )


def second_layer(k: int, *, offset: float = OFFSET) -> Floats:
    r"""Solve for the second layer ν over the repaired biases, shape (k + 1,).

    Its norm is the proof's :math:`B_k`, which multiplies the sparsity, sample size and number of
    steps that [PF Theorem 16] asks for. With the offset o, B_k / k grows like ((2 − o) / o)^{k/2},
    so by 31 for every two bits; an offset of 3/4 leaves the bad neurons silent too, and it grows
    by 5/3. (Neuron i has (2j + o) / 2k at its j-th value, and Σ_j (2j + o) z^j vanishes at
    z = −o / (2 − o).)
    """
    matrix = feature_matrix(k, over_sparse_biases(k, offset=offset))
    return np.asarray(np.linalg.solve(matrix, parity_of_sum(k)[1]), np.float64)


def least_hinge_loss(k: int, biases: Floats) -> float:
    """Give the least expected hinge loss of any second layer over `biases`, by linear program."""
    from scipy.optimize import linprog  # slow to import

    _, parity, chance = parity_of_sum(k)
    margins = parity[:, None] * feature_matrix(k, biases)
    # Variables: the second layer, then one slack for each value of s_x, with margin + slack ≥ 1.
    result = linprog(
        np.concatenate([np.zeros(margins.shape[1]), chance]),
        A_ub=-np.hstack([margins, np.eye(k + 1)]),
        b_ub=-np.ones(k + 1),
        bounds=[(None, None)] * margins.shape[1] + [(0, None)] * (k + 1),
        method="highs",
    )
    return float(result.fun)


def least_error(k: int, biases: Floats) -> float:
    """Give the least probability of a wrong sign over all second layers, by trying sets to fit.

    For every set of values of s_x a linear program says whether one second layer is right on all
    of them; 2^(k + 1) programs, so k ≤ 8 is quick.
    """
    from scipy.optimize import linprog  # slow to import

    _, parity, chance = parity_of_sum(k)
    margins = parity[:, None] * feature_matrix(k, biases)
    kept = [np.array(keep, bool) for keep in itertools.product((0, 1), repeat=k + 1)]
    for keep in sorted(kept, key=lambda keep: -float(chance[keep].sum())):
        rows = -margins[keep]
        free = [(None, None)] * margins.shape[1]
        found = linprog(
            np.zeros(margins.shape[1]), A_ub=rows, b_ub=-np.ones(len(rows)), bounds=free
        )
        if found.status == 0:
            return float(chance[~keep].sum())
    raise AssertionError("the empty set is always right")
