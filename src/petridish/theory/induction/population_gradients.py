r"""The minimal model on chains of two states: exact gradients of its population loss [TH App. E.1].

Where the margin Δ of (8.7) is large, no term of the loss is 0. The loss is then linear in the
outputs, and these are linear in v and in :math:`W_k`: up to a constant

.. math::
    L = -\sum_{j=1}^t v_j \sum_{m,l} (W_k)_{ml}\, G_{ml}(j), \qquad
    G_{ml}(j) = \frac1t \sum_{t' - s = j - 1,\; t' \le p \le t} \mathbb{E} \sum_i
    \Bigl(P_{mi} - \tfrac12\Bigr) \Pr[x_s = l,\, x_{t'} = i,\, x_p = m].

All gradients of the appendix are sums of this tensor, `coupling`: downhill is
:math:`\sum_j v_j G(j)` for :math:`W_k`, and :math:`\langle W_k, G(j) \rangle` for v_j. Expectations
over a and b are by quadrature, those over sequences are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from petridish.errors import check_whole, require
from petridish.theory.chain_predictors import unit_nodes
from petridish.theory.checks import check_positive

Floats = NDArray[np.float64]
NODES = 120  # of each of a and b; the stationary law jumps at a = b = 1


@dataclass(frozen=True)
class Chains:
    """A law of chains of two states by nodes: stay in 0 with probability a, in 1 with b.

    `leave_a` and `leave_b` are 1 − a and 1 − b, without the rounding of a difference.
    """

    leave_a: Floats
    leave_b: Floats
    weights: Floats

    @property
    def a(self) -> Floats:
        """The probabilities of staying in state 0."""
        return 1 - self.leave_a

    @property
    def b(self) -> Floats:
        """The probabilities of staying in state 1."""
        return 1 - self.leave_b

    @property
    def eigenvalue(self) -> Floats:
        """λ = a + b − 1."""
        return 1 - self.leave_a - self.leave_b

    @property
    def law(self) -> Floats:
        """The stationary law, shape (state, node)."""
        out = self.leave_a + self.leave_b
        return np.array([self.leave_b / out, self.leave_a / out])

    def mean(self, values: Floats) -> Floats:
        """Return the expectation over the last axis."""
        found: Floats = values @ self.weights
        return found


def flat_chains(nodes: int = NODES) -> Chains:
    """Return a and b uniform on (0, 1) and independent: the main task, k = 2."""
    u, weights = unit_nodes(nodes)
    first, second = np.meshgrid(u, u, indexing="ij")
    return Chains(first.ravel(), second.ravel(), np.outer(weights, weights).ravel())


def equal_chains(epsilon: float = 0.5, nodes: int = NODES) -> Chains:
    """Return a = b uniform on (½ − ε, ½ + ε), of which unigrams say nothing [TH (E.44)]."""
    require(0 < epsilon <= 0.5, f"epsilon={epsilon}. Give a number above 0, at most 0.5.")
    u, weights = unit_nodes(nodes)
    leave = 0.5 + epsilon * (2 * u - 1)
    return Chains(leave, leave, weights)


def coupling(t: int, chains: Chains) -> Floats:
    """Return G, shape (t, 2, 2): entry (j − 1, m, l) couples v_j with (W_k)_{ml}.

    Parameters
    ----------
    t : int
        Tokens of a sequence.
    chains : Chains
        The law of the matrix.
    """
    check_whole("coupling", 1, t=t)
    law, powers = chains.law, _powers(chains.eigenvalue, t)
    rows = np.array([[chains.a, chains.leave_a], [chains.leave_b, chains.b]])  # (m, i, node)
    # Σ_{d < n} (n − d) and Σ_{d < n} (n − d) λ^d for n = t, t − 1, …, 1: of the ways from t' to p.
    counts = np.arange(t, 0, -1) * np.arange(t + 1, 1, -1) / 2
    weighted = np.cumsum(np.cumsum(powers, axis=0), axis=0)[::-1]
    same = np.eye(2)
    found = np.zeros((t, 2, 2))
    for m in range(2):
        for state in range(2):
            to_m = law[m] * counts[:, None] + (same[state, m] - law[m]) * weighted
            pull = (rows[m, state] - 0.5) * to_m  # (j, node)
            for other in range(2):
                to_state = law[state] + powers * (same[other, state] - law[state])
                found[:, m, other] += chains.mean(pull * law[other] * to_state)
    return found / t


def _powers(eigenvalue: Floats, t: int) -> Floats:
    """Return λ^0 … λ^{t − 1}, shape (t, node)."""
    powers = np.ones((t, len(eigenvalue)))
    np.multiply.accumulate(
        np.concatenate([powers[:1], np.broadcast_to(eigenvalue, (t - 1, len(eigenvalue)))]),
        axis=0,
        out=powers,
    )
    return powers


def key_gradient(tensor: Floats, positions: Floats) -> Floats:
    """Return −∂L/∂W_k at v, shape (2, 2)."""
    found: Floats = np.einsum("j,jml->ml", positions, tensor)
    return found


def position_gradient(tensor: Floats, key: Floats) -> Floats:
    """Return −∂L/∂v at W_k, shape (t,)."""
    found: Floats = np.einsum("ml,jml->j", key, tensor)
    return found


def from_constant(tensor: Floats) -> Floats:
    """Return g: −∂L/∂v at W_k = 11ᵀ, shape (t,) [TH (E.28)]."""
    return position_gradient(tensor, np.ones((2, 2)))


def from_diagonal(tensor: Floats) -> Floats:
    """Return h: −∂L/∂v at the identity, shape (t,) [TH (E.37), (E.38)].

    At W_k = c'11ᵀ + (ρ − c')I the gradient is c'g + (ρ − c')h: what tells the positions apart
    reaches the first layer as far as the second one has become diagonal.
    """
    return position_gradient(tensor, np.eye(2))


@dataclass(frozen=True)
class Weights:
    """Weights of the minimal model: `key` (2, 2) and `positions` (t,)."""

    key: Floats
    positions: Floats


def constant_start(t: int, c: float) -> Weights:
    """Return W_k = c 11ᵀ and v = c 1."""
    return Weights(np.full((2, 2), c), np.full(t, c))


def step(
    weights: Weights, tensor: Floats, rate: float, *, decay: tuple[float, float] = (0.0, 0.0)
) -> Weights:
    """Return the weights after a step on both; `decay` has the λ_wd of W_k and of v."""
    of_key, of_positions = decay
    return Weights(
        (1 - of_key) * weights.key + rate * key_gradient(tensor, weights.positions),
        (1 - of_positions) * weights.positions + rate * position_gradient(tensor, weights.key),
    )


def smallest_rate(t: int) -> float:
    r"""Return the rate above which v_2 is the largest after two steps [TH Lemma 8.4].

    The lemma says «v_2 becomes dominant» for any rate. It does for

    .. math::
        η > \frac{2 (g_1 - g_2)}{(D - A)(h_2 - h_1) - A (g_1 - g_2)},

    with D and A the diagonal and the off-diagonal entry of the first gradient over c, whatever c
    is; infinite where the bracket is not positive.
    """
    tensor = coupling(t, flat_chains())
    g, h = from_constant(tensor), from_diagonal(tensor)
    first = key_gradient(tensor, np.ones(t))
    slope = (first[0, 0] - first[0, 1]) * (h[1] - h[0]) - first[0, 1] * (g[0] - g[1])
    return float(2 * (g[0] - g[1]) / slope) if slope > 0 else float("inf")


def two_steps(
    t: int,
    *,
    epsilon: float,
    rates: tuple[float, float],
    start: tuple[float, float] = (1.0, 1.0),
    decay_of_positions: float = 1.0,
    nodes: int = 60,
) -> Weights:
    """Return the weights after the curriculum of Proposition E.3.

    One step on chains with a and b uniform, one on chains with a = b near ½, at which all weights
    decay to 0 first.

    Parameters
    ----------
    t : int
        Tokens of a sequence.
    epsilon : float
        The second step's a is uniform on (½ − ε, ½ + ε).
    rates : tuple of float
        η_1, of the order 1/t², and η_2, of the order 1/t.
    start : tuple of float
        w_init and v_init.
    decay_of_positions : float
        The decay of v in the second step. Section 8.3.2 has decay «in the 2nd layer» alone; with 0
        here v_init stays, and the model is no bigram: (E.54) has 1.
    nodes : int
        Of the quadrature over each of a and b in the first step.
    """
    check_positive(**{"rates[0]": rates[0], "rates[1]": rates[1]})
    weights = Weights(np.full((2, 2), start[0]), np.full(t, start[1]))
    weights = step(weights, coupling(t, flat_chains(nodes)), rates[0])
    hard = coupling(t, equal_chains(epsilon))
    return step(weights, hard, rates[1], decay=(1.0, decay_of_positions))
