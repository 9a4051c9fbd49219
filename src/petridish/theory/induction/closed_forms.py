r"""The closed forms of TH App. E.1, corrected where the print is wrong.

Each is a function of a, b (or their law) and t; `population_gradients` has the same numbers by
sums. docs/results/errata.md, in the repository, lists what was printed, and
tests/test_induction_theory.py has a counterexample for each misprint.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from petridish.theory.induction.population_gradients import Chains

Floats = NDArray[np.float64]
LN2 = math.log(2.0)

# Limits of expectations over a, b uniform on (0, 1).
DIAGONAL_LIMIT = (8 * LN2 - 5) / 12  # (E.24)
OFF_DIAGONAL_LIMIT = (7 - 10 * LN2) / 6  # (E.25)
QUADRATIC_LIMIT = 2 - math.log(4.0)  # of ((a−1)² + (b−1)²)/(λ−1)², below (E.29)
FIRST_LIMIT = (1 - LN2) / 3  # (E.42), of j = 1
SECOND_LIMIT = (7 - 10 * LN2) / 2 + (8 * LN2 - 5) / 6  # (E.43), of j = 2; printed 5 − 8 ln 2


def key_gradient_of_chain(chains: Chains, t: int) -> Floats:
    """Return −∂L/∂W_k over c at a constant start, shape (2, 2, node): (E.17) as printed.

    Where λ is near 0 or 1 the formula divides by numbers near 0, and digits are lost.
    """
    a, b, lam = chains.a, chains.b, chains.eigenvalue
    lam = np.where(lam == 0, 1e-12, lam)  # the formula has 1/λ
    law = chains.law
    rows = np.array([[a, 1 - a], [1 - b, b]])
    # (P^n)_{ij} = (β_ij λ^n + γ_ij) / (λ − 1) (E.15).
    beta = np.array([[a - 1, 1 - a], [1 - b, b - 1]])
    gamma = np.array([[b - 1, a - 1], [b - 1, a - 1]])
    one = (
        (lam - (t + 1) * lam ** (t + 1) + t * lam ** (t + 2)) / (1 - lam) ** 2
        - (1 - lam**t) / ((1 - 1 / lam) * (1 - lam))
        + t / (lam - 1)
    )
    two = lam**2 * (1 - lam**t) / (1 - lam) - lam * t * (t + 3) / 2 + t * (t + 1) / 2
    three = t * lam / (1 - lam) - (lam**2 - lam ** (t + 2)) / (1 - lam) ** 2 - t * (t + 1) / 2
    four = t * (t + 1) * (t + 2) / 6
    found = np.zeros((2, 2, len(a)))
    for m in range(2):
        for other in range(2):
            bracket = (
                (beta[0, m] * beta[other, 0] - beta[1, m] * beta[other, 1]) / (lam - 1) * one
                + (beta[0, m] * gamma[other, 0] - beta[1, m] * gamma[other, 1])
                / (lam - 1) ** 2
                * two
                + (beta[other, 0] * gamma[0, m] - beta[other, 1] * gamma[1, m]) / (lam - 1) * three
                + (gamma[0, m] * gamma[other, 0] - gamma[1, m] * gamma[other, 1]) * four
            )
            found[m, other] = law[other] * (rows[m, 0] - 0.5) / (t * (lam - 1) ** 2) * bracket
    return found


def g_of_chain(chains: Chains, t: int, j: int) -> Floats:
    """Return −∂L/∂v_j over c at W_k = c 11ᵀ, shape (node,): (E.28) as printed."""
    a, b, lam = chains.a, chains.b, chains.eigenvalue
    ways = (t - j + 1) * (t - j + 2) / 2
    straight = ((a - 1) ** 2 + (b - 1) ** 2) / (lam - 1) ** 2 - 0.5
    rest = (lam - lam ** (t - j + 2)) / (1 - lam) - t + j - 1
    return (ways * straight + 2 * lam * (a - 1) * (b - 1) / (lam - 1) ** 3 * rest) / t


def h1_of_chain(chains: Chains, t: int) -> Floats:
    """Return −∂L/∂v_1 at the identity, shape (node,): (E.37) corrected.

    The first bracket is multiplied by λ(a−1)(b−1)/(λ−1)³, printed (a−1)(b−1)/(λ−1)²; the second by
    t(t+1)/2, printed t(t−1)/2.
    """
    a, b, lam = chains.a, chains.b, chains.eigenvalue
    first = ((lam - lam ** (t + 1)) / (1 - lam) - t) * lam * (a - 1) * (b - 1) / (lam - 1) ** 3
    second = ((b - 1) ** 2 * (a - 0.5) + (a - 1) ** 2 * (b - 0.5)) / (lam - 1) ** 2
    return (first + second * t * (t + 1) / 2) / t


def h_of_chain(chains: Chains, t: int, j: int) -> Floats:
    """Return −∂L/∂v_j at the identity for j ≥ 2, shape (node,): (E.38) corrected.

    In the second line (λ − λ^{t−j+2})/(1 − λ), printed over λ − 1.
    """
    a, b, lam = chains.a, chains.b, chains.eigenvalue
    rows = np.array([[a, 1 - a], [1 - b, b]])
    beta = np.array([[a - 1, 1 - a], [1 - b, b - 1]])
    gamma = np.array([[b - 1, a - 1], [b - 1, a - 1]])
    law = chains.law
    one = (lam**j - lam ** (t + 1)) / (1 - lam) - (t - j + 1) * lam ** (j - 1)
    two = (lam - lam ** (t - j + 2)) / (1 - lam) - t + j - 1
    ways = (t - j + 1) * (t - j + 2) / 2
    found = np.zeros(len(a))
    for i in range(2):
        for other in range(2):
            bracket = (
                beta[i, other] * beta[other, i] / (lam - 1) * one
                + beta[i, other] * gamma[other, i] / (lam - 1) * two
                + ways
                * (
                    gamma[i, other] * beta[other, i] * lam ** (j - 1)
                    + gamma[i, other] * gamma[other, i]
                )
            )
            found += law[other] / (lam - 1) ** 2 * (rows[other, i] - 0.5) * bracket
    return found / t


def g_of_equal_chains(t: int) -> Floats:
    """Return g for a = b uniform on (0, 1), shape (t,): (E.45) corrected.

    (1/2t) Σ_{p ≥ j} Σ_{even q ≤ p − j + 1} 1/(q + 1): positive and largest at j = 1, of the order
    ln t. The print replaced λ by λ − 1 and has −(t − j + 1)/2t.
    """
    reach = np.arange(1, t + 1)
    harmonic = np.cumsum(np.where(reach % 2 == 0, 1 / (reach + 1), 0.0))
    return np.cumsum(harmonic)[::-1] / (2 * t)


def hard_key_diagonal(epsilon: float) -> float:
    """Return the diagonal of W_k^(2) over v_init η_2 t in the limit of long sequences: (E.53).

    −⅛ E[(a − ½)/(a − 1)] with a uniform on (½ − ε, ½ + ε), which is ε²/6 + O(ε⁴). The print leaves
    out −⅛ and the density 1/2ε, and calls it O(ε).
    """
    return -(1 - math.log((1 + 2 * epsilon) / (1 - 2 * epsilon)) / (4 * epsilon)) / 8


def hard_moment(j: int, epsilon: float) -> float:
    """Return E[(a − ½)(2a − 1)^{j−1}] for a uniform on (½ − ε, ½ + ε): (E.57) corrected.

    (2ε)^j / 2(j + 1) for even j, 0 for odd ones. The print lacks the density: 2ε times as much.
    """
    return (2 * epsilon) ** j / (2 * (j + 1)) if j % 2 == 0 else 0.0
