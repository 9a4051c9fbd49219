"""Three layers of ReLUs, exact near given points [TH Lemmas A.22, A.23, A.25], repaired."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from petridish.errors import UserError

Floats = NDArray[np.float64]
RAMPS = np.array([2.0, 1.0, -1.0, -2.0])
SIGNS = np.array([1.0, -1.0, -1.0, 1.0])


@dataclass(frozen=True, eq=False)
class Readout:
    """Weights of ((y W₁ + b₁)₊ W₂ + b₂)₊ w."""

    first: Floats
    first_bias: Floats
    second: Floats
    second_bias: Floats
    last: Floats

    def __call__(self, y: ArrayLike) -> Floats:
        """Return the value at points, shape (…,) of (…, d)."""
        hidden = np.maximum(np.asarray(y, np.float64) @ self.first + self.first_bias, 0)
        found: Floats = np.maximum(hidden @ self.second + self.second_bias, 0) @ self.last
        return found

    @property
    def norms(self) -> dict[str, float]:
        """Largest entries of W₁ and W₂ with their biases, and of w."""
        largest = [
            max(np.abs(self.first).max(), np.abs(self.first_bias).max()),
            max(np.abs(self.second).max(), np.abs(self.second_bias).max()),
            np.abs(self.last).max(),
        ]
        return dict(zip(("W_1", "W_2", "w"), map(float, largest), strict=True))


def exact_near(points: ArrayLike, values: ArrayLike, delta: float) -> Readout:
    r"""Return a network that has the value f(x_i) within δ (every coordinate) of each x_i.

    Points differ by at least 4δ in some coordinate. In each, a bump, with u = (x − x_i)/δ,

    .. math:: (u + 2)_+ - (u + 1)_+ - (u - 1)_+ + (u - 2)_+,

    is 1 for |u| ≤ 1 and 0 for |u| ≥ 2 (as printed, with 2δ − x in the place of the last two, it is
    0 for |u| ≤ 1). A point's bumps add up to d_f near it, and to at most d_f − 1 near another, so
    that :math:`(Σ - d_f + 1)_+ - (Σ - d_f)_+` tells them apart with weights of 1, where the text
    has 1/δ, which needs δ ≤ 1.
    """
    x, f = np.asarray(points, np.float64), np.asarray(values, np.float64)
    if x.ndim != 2 or f.shape != x.shape[:1]:
        raise UserError(
            f"exact_near: points of shape {x.shape} and values of shape {f.shape}. Give points "
            "(n, d) and n values."
        )
    apart = np.abs(x[:, None] - x[None]).max(axis=-1)
    np.fill_diagonal(apart, np.inf)
    if not delta > 0 or (len(x) > 1 and apart.min() < 4 * delta * (1 - 1e-12)):
        raise UserError(
            f"exact_near: delta={delta!r}, and the nearest two points are {apart.min():.3g} apart. "
            "Give a positive delta of at most a quarter of that."
        )
    n, d = x.shape
    # Hidden units by (point, coordinate, ramp).
    first = np.zeros((d, n, d, 4))
    for coordinate in range(d):
        first[coordinate, :, coordinate] = 1 / delta
    first_bias = RAMPS - x[:, :, None] / delta
    own = np.eye(n)[:, None, None, :] * SIGNS[:, None]
    sums = np.broadcast_to(own, (n, d, 4, n)).reshape(n * d * 4, n)
    return Readout(
        first.reshape(d, n * d * 4),
        first_bias.reshape(n * d * 4),
        np.concatenate([sums, sums], axis=1),
        np.concatenate([np.full(n, 1.0 - d), np.full(n, -float(d))]),
        np.concatenate([f, -f]),
    )


def symmetric_readout(means: ArrayLike, values: ArrayLike, gamma: float) -> Readout:
    """Return f(r) from a strictly monotone g(r) known to γ/4 [TH Lemma A.22], δ = γ/4.

    `means` are g(0) … g(s), `values` f(0) … f(s). With the printed δ = γ/8 most of what γ/4 admits
    is answered wrongly.
    """
    return exact_near(np.asarray(means, np.float64)[:, None], values, gamma / 4)


def any_readout(codes: ArrayLike, values: ArrayLike, gamma: float) -> Readout:
    """Return f(b) from a γ-injective g(b) known to γ/4 [TH Lemma A.23], δ = γ/4.

    `codes` are g at the 2^s settings of the relevant bits, shape (2^s, s).
    """
    return exact_near(codes, values, gamma / 4)
