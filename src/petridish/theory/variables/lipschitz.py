"""How far attention moves with its weights and inputs [TH Lemmas A.6 to A.9, A.13 to A.16].

Norms of rows are the largest over tokens, ‖Xᵀ‖_{2,∞}; ‖W‖ is spectral. Tokens have norms of at
most 1 where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from petridish.theory.variables.heads import project, softmax

Floats = NDArray[np.float64]
SOFTMAX = 2.0


def rows(x: Floats) -> float:
    """Return the largest norm of a row."""
    return float(np.linalg.norm(x, axis=-1).max())


def spectral(w: Floats) -> float:
    """Return the spectral norm."""
    return float(np.linalg.norm(w, 2))


def head_moves(
    scores: float, values: float, *, size: float, lipschitz: float = 1.0, norm: float = SOFTMAX
) -> float:
    """Bound how far a head moves: C_Norm L_out B_in B_X · scores + L_out · values [TH Lemma 4.7].

    `scores` is the largest difference of scores, `values` the largest of φ_in, `size` B_in B_X.
    """
    return norm * lipschitz * size * scores + lipschitz * values


def weights_move(z: Floats, qk: Floats, other_qk: Floats, v: Floats, other_v: Floats) -> float:
    """Bound how far RowSoftmax(Z W_QK Zᵀ) Z W_V moves with its weights [TH Lemma A.13]."""
    return 2 * spectral(v) * rows(z @ (qk - other_qk)) + rows(z @ (v - other_v))


def inputs_move(z: Floats, other: Floats, qk: Floats, v: Floats) -> float:
    """Bound how far it moves with its inputs: ‖W_V‖ (1 + 4 ‖W_QK‖) ‖Z − Ẑ‖ [TH Lemma A.14]."""
    return spectral(v) * (1 + 4 * spectral(qk)) * rows(z - other)


def layer_moves(
    inside: Floats,
    z: Floats,
    other: Floats,
    *,
    qk: tuple[Floats, Floats],
    v: tuple[Floats, Floats],
    c: tuple[Floats, Floats],
) -> float:
    """Bound how far a block moves with its weights and inputs, L_σ = 1 [TH Lemma A.15].

    `inside` is σ(Π(f)) of the other weights at the other inputs.
    """
    size = spectral(c[0]) * spectral(v[0])
    return (
        rows(inside @ (c[0] - c[1]))
        + size * (1 + 4 * spectral(qk[0])) * rows(z - other)
        + 2 * size * rows(other @ (qk[0] - qk[1]))
        + spectral(c[0]) * rows(other @ (v[0] - v[1]))
    )


def scalar_moves(y: Floats, other: Floats, w: Floats, other_w: Floats) -> float:
    """Bound |wᵀy − ŵᵀŷ| by ‖w‖ ‖y − ŷ‖ + |(w − ŵ)ᵀ ŷ| [TH Lemma A.16]."""
    return float(np.linalg.norm(w) * np.linalg.norm(y - other) + abs((w - other_w) @ other))


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Two blocks with near or far weights, on tokens in the unit ball."""

    z: tuple[Floats, Floats]
    qk: tuple[Floats, Floats]
    v: tuple[Floats, Floats]
    c: tuple[Floats, Floats]
    w: tuple[Floats, Floats]

    def attend(self, side: int) -> Floats:
        """Return the attention of one side."""
        return _attend(self.z[side], self.qk[side], self.v[side])

    def inside(self, side: int) -> Floats:
        """Return σ(Π(f)) of one side, with ReLU."""
        return np.maximum(project(self.attend(side)), 0)

    def block(self, side: int) -> Floats:
        """Return the output of one side's block."""
        return project(self.inside(side) @ self.c[side])


def _attend(z: Floats, qk: Floats, v: Floats) -> Floats:
    found: Floats = softmax(z @ qk @ z.T) @ z @ v
    return found


def _draw(rng: np.random.Generator) -> _Drawn:
    t, d, far = int(rng.integers(2, 6)), int(rng.integers(1, 4)), 10 ** rng.uniform(-3, 1)

    def pair(*shape: int) -> tuple[Floats, Floats]:
        first = rng.normal(size=shape) * 10 ** rng.uniform(-1, 0.7)
        return first, first + far * rng.normal(size=shape)

    z = project(2 * rng.normal(size=(t, d)))
    other = project(z + 10 ** rng.uniform(-3, 0.5) * rng.normal(size=z.shape))
    return _Drawn((z, other), pair(d, d), pair(d, d), pair(d, d), pair(d))


def _ratio(moved: float, bound: float) -> float:
    return moved / bound if bound > 1e-12 else float(moved > 1e-9)


def _softmax_ratio(rng: np.random.Generator) -> float:
    a, b = 10 ** rng.uniform(-2, 2) * rng.normal(size=(2, int(rng.integers(2, 8))))
    return _ratio(
        float(np.abs(softmax(a) - softmax(b)).sum()), SOFTMAX * float(np.abs(a - b).max())
    )


def _projection_ratio(rng: np.random.Generator) -> float:
    u, v = rng.normal(size=(2, 3)) * 10 ** rng.uniform(-1, 1, size=(2, 1))
    return _ratio(float(np.linalg.norm(project(u) - project(v))), float(np.linalg.norm(u - v)))


def _head_ratio(rng: np.random.Generator) -> float:
    x = _draw(rng)
    z, (query, _) = x.z[0], x.qk
    scores, other = z @ query @ z[0], z @ x.qk[1] @ z[0]
    values, changed = z @ x.v[0], z @ x.v[1]
    moved = float(np.linalg.norm(softmax(scores) @ values - softmax(other) @ changed))
    bound = head_moves(
        float(np.abs(scores - other).max()), rows(values - changed), size=rows(values)
    )
    return _ratio(moved, bound)


def _weights_ratio(rng: np.random.Generator) -> float:
    x = _draw(rng)
    moved = rows(x.attend(0) - _attend(x.z[0], x.qk[1], x.v[1]))
    return _ratio(moved, weights_move(x.z[0], *x.qk, *x.v))


def _inputs_ratio(rng: np.random.Generator) -> float:
    x = _draw(rng)
    moved = rows(x.attend(0) - _attend(x.z[1], x.qk[0], x.v[0]))
    return _ratio(moved, inputs_move(*x.z, x.qk[0], x.v[0]))


def _layer_ratio(rng: np.random.Generator) -> float:
    x = _draw(rng)
    bound = layer_moves(x.inside(1), *x.z, qk=x.qk, v=x.v, c=x.c)
    return _ratio(rows(x.block(0) - x.block(1)), bound)


def _scalar_ratio(rng: np.random.Generator) -> float:
    x = _draw(rng)
    y, other = x.block(0)[0], x.block(1)[0]
    return _ratio(float(abs(x.w[0] @ y - x.w[1] @ other)), scalar_moves(y, other, *x.w))


RATIOS: Mapping[str, Callable[[np.random.Generator], float]] = {
    "Corollary A.7": _softmax_ratio,
    "Lemma A.9": _projection_ratio,
    "Lemma 4.7": _head_ratio,
    "Lemma A.13": _weights_ratio,
    "Lemma A.14": _inputs_ratio,
    "Lemma A.15": _layer_ratio,
    "Lemma A.16": _scalar_ratio,
}
"""Each draws two networks, and returns how far they are apart over what the statement allows."""
