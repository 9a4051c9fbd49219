"""Attention as the text defines it: a general head, a Transformer layer, a scalar [TH §4.3]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Map = Callable[[Floats], Floats]


def identity(rows: Floats) -> Floats:
    """Return rows as they are: no activation."""
    return rows


def softmax(scores: Floats) -> Floats:
    """Return the shares of scores, along the last axis."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return shares


def project(rows: Floats) -> Floats:
    """Return Π_norm: rows, those longer than 1 shortened to it [TH §4.4.3]."""
    found: Floats = rows / np.maximum(1.0, np.linalg.norm(rows, axis=-1, keepdims=True))
    return found


def attention_head(
    x: Floats,
    z: Floats,
    *,
    score: Callable[[Floats, Floats], Floats],
    value: Map,
    out: Map,
    norm: Map = softmax,
) -> Floats:
    r"""Return :math:`φ_{out}(φ_{in}(X)^⊤ Norm(Score(X, z)))` [TH Definition 4.3].

    Parameters
    ----------
    x, z : array, shapes (…, T, d) and (d,)
        The input and the context.
    score : function
        Of (…, T, d) and z to (…, T).
    value, out : function
        φ_in of tokens, and φ_out of their mixture.
    norm : function
        From scores to shares that add up to 1.
    """
    mixed: Floats = np.einsum("...t,...tk->...k", norm(score(x, z)), value(x))
    return out(mixed)


@dataclass(frozen=True, eq=False)
class Layer:
    """The weights of one layer, W_Q, W_K, W_V (d × k) and W_C (k × d), and σ."""

    query: Floats
    key: Floats
    value: Floats
    output: Floats
    activation: Map = identity

    def attend(self, x: Floats) -> Floats:
        """Return f(Z) = RowSoftmax(Z W_Q (Z W_K)ᵀ) Z W_V, shape (…, T, k)."""
        scores = (x @ self.query) @ np.swapaxes(x @ self.key, -1, -2)
        found: Floats = softmax(scores) @ (x @ self.value)
        return found

    def __call__(self, x: Floats) -> Floats:
        """Return Y = σ(f(X)) W_C, the outputs at all T tokens [TH Definition 4.4]."""
        found: Floats = self.activation(self.attend(x)) @ self.output
        return found


def blocks(x: Floats, layers: Sequence[Layer]) -> Floats:
    """Return g(X) after some layers, each Π_norm(σ(Π_norm(f(Z))) W_C) [TH §4.4.3]."""
    for layer in layers:
        x = project(layer.activation(project(layer.attend(x))) @ layer.output)
    return x


def scalar_output(y: Floats, readout: Floats) -> Floats:
    """Return wᵀ y at [CLS], the last token [TH §4.3.2]."""
    found: Floats = y[..., -1, :] @ readout
    return found
