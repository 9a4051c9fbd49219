r"""The over-sparse proof: its second layer, and the sizes it asks for [PF B.2.2, Theorem 16].

After one step a good neuron is a function of s_x = Σ_{j∈S} x_j: relu(±s_x / 2k + β_i), with
β_i = (−k + 2i + o) / 2k and the offset o = 1/16. The second layer has to turn these features and
a constant into the parity, which is +1 at s_x = k and alternates over the k + 1 values
k, k − 2, …, −k.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from petridish.theory.checks import check_even, check_positive
from petridish.theory.pareto.gradients import over_sparse_constants
from petridish.theory.parity_step import parity_of_sum, step_features
from petridish.theory.smallest import steps_solving

Floats = NDArray[np.float64]

OFFSET = 1 / 16  # the paper's


def printed_biases(k: int, *, offset: float = OFFSET) -> Floats:
    """Return β_1 … β_{k/2−1} as printed: none for k = 2, and one too few for every k."""
    return over_sparse_biases(k, offset=offset)[1:]


def over_sparse_biases(k: int, *, offset: float = OFFSET) -> Floats:
    """Return β_0 … β_{k/2−1}, β_i = (−k + 2i + offset) / 2k: the set that represents the parity.

    Neuron i is active from s_x = k − 2i on, so each adds one value to those before it, and the
    system for the second layer is triangular. All lie below −15 / 16k for the paper's offset.
    """
    check_even("over_sparse_biases", k)
    return (-k + 2 * np.arange(k // 2) + offset) / (2 * k)


def feature_matrix(k: int, biases: Floats) -> Floats:
    """Return the features at every s_x: a constant, the rising neurons, the falling ones.

    The shape is (k + 1, 1 + 2 · biases).
    """
    return np.hstack([np.ones((k + 1, 1)), step_features(k, biases, biases)])


def second_layer(k: int, *, offset: float = OFFSET) -> Floats:
    r"""Solve for the second layer ν over the repaired biases, shape (k + 1,).

    Its norm is the proof's :math:`B_k`, which multiplies the sparsity, sample size and number of
    steps that [PF Theorem 16] asks for. With the offset o, B_k / k grows like ((2 − o) / o)^{k/2},
    so by 31 for every two bits; with an offset of 3/4 the bad neurons stay inactive too, and it
    grows by 5/3. (Neuron i has (2j + o) / 2k at its j-th value, and Σ_j (2j + o) z^j vanishes at
    z = −o / (2 − o).)
    """
    matrix = feature_matrix(k, over_sparse_biases(k, offset=offset))
    return np.asarray(np.linalg.solve(matrix, parity_of_sum(k)[1]), np.float64)


def least_error(k: int, biases: Floats) -> float:
    """Return the least probability of a wrong sign over all second layers, by trial.

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


def lemma10_samples(n: int, width: int, *, tau: float, delta: float) -> int:
    r"""Return the sample size :math:`4 \log(4nr/\delta) / \tau^2` [PF Lemma 10].

    With it every derivative of the first layer is within τ of its mean, with probability 1 − δ.
    Hoeffding's inequality for terms in [−1, 1] would do with half of it.
    """
    check_positive(tau=tau, delta=delta)
    return math.ceil(4 * math.log(4 * n * width / delta) / tau**2)


@dataclass(frozen=True, kw_only=True)
class OverSparseSizes:
    """What the proof of [PF Theorem 16] asks for, with its constants worked out."""

    width: int  # r
    neurons: float  # r', good neurons for each bias
    learning_rate: float  # η of the first step
    tau: float  # precision of the first gradient
    n_train: int  # m
    least_sparsity: int  # s
    steps: int  # T


def theorem16_sizes(
    n: int, k: int, s: int, *, epsilon: float, delta: float, offset: float = OFFSET
) -> OverSparseSizes:
    r"""Work out the sizes in the proof of [PF Theorem 16], for a loss of at most 7ε.

    Parameters
    ----------
    n, k, s : int
        Bits, degree of the parity (even), ones of a neuron (s ≥ k).
    epsilon, delta : float
        Loss, and probability of failure of each of the proof's three parts.
    offset : float, default=1/16
        The biases' offset, which sets the second layer's norm B_k.

    Returns
    -------
    sizes : OverSparseSizes
        From the exact :math:`C_{k,s}` and :math:`B_k` instead of the bounds: r as printed in
        Lemma 15; :math:`\eta = 1 / 2k|C|`;
        :math:`\tau = \min(\epsilon / 4 B k r' n \eta, 1 / 16 \eta k n)`; m the larger of Lemmas 10
        and 14; :math:`s \ge 4 k r' B^2 / \epsilon^2`, for which the print asks by
        :math:`s \ge 80 k B^2 \log(2k/\delta) / \epsilon^2`, twice as much; and the smallest T with
        :math:`T / (1 + \log T) \ge 100 (B \|\psi\| + \epsilon)^2 / \epsilon^2`, where the print
        lacks the factor B².
    """
    check_positive(epsilon=epsilon, delta=delta)
    log = math.log(2 * k / delta)
    width = math.ceil(20 * k * (2 * n / s) ** k * log)
    neurons = width / (2 * k) * (s / (2 * n)) ** k
    norm = float(np.linalg.norm(second_layer(k, offset=offset)))
    rate = 1 / (2 * k * abs(float(over_sparse_constants(k, s)[0])))
    tau = min(epsilon / (4 * norm * k * neurons * n * rate), 1 / (16 * rate * k * n))
    features = math.sqrt(8 * k * neurons)
    second = (4 * math.sqrt(2) * norm * features + 1) ** 2 * math.log(2 / delta) / epsilon**2
    return OverSparseSizes(
        width=width,
        neurons=neurons,
        learning_rate=rate,
        tau=tau,
        n_train=max(lemma10_samples(n, width, tau=tau, delta=delta), math.ceil(second)),
        least_sparsity=math.ceil(4 * k * neurons * norm**2 / epsilon**2),
        steps=steps_solving(100 * (norm * features + epsilon) ** 2 / epsilon**2, 1.0),
    )
