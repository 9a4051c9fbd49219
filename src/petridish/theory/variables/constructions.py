r"""Attention heads that select s of T positions, as weights [TH §4.5, App. A.2], repaired.

A head maps tokens X (T × d) to :math:`softmax(v_{cls}^⊤ W_Q W_K^⊤ X^⊤) X W_V W_C`. Tokens are
`positions` + E_b (A.19, A.20) or the rows b_t v_t and v_cls (A.21, bag of vectors). What the text
prints fails in places; the weights below hold. docs/reference/theory-variables.md, in the
repository, lists each place with its counterexample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from petridish.errors import UserError, check_whole

Floats = NDArray[np.float64]
Support = tuple[int, ...]
Key = Literal["least-norm", "sum"]


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors of unit norm: E_0, E_1, … and v_cls, orthogonal to each other and to all positions.

    Attributes
    ----------
    positions : array, shape (T, d)
        v_1 … v_T, of which two have an inner product of at most Δ.
    tokens : array, shape (M, d)
        E_0 and E_1; of M symbols as many [TH A.2.4].
    cls : array, shape (d,)
    """

    positions: Floats
    tokens: Floats
    cls: Floats

    @property
    def coherence(self) -> float:
        """Δ, the largest inner product of two positions."""
        products = np.abs(self.positions @ self.positions.T)
        np.fill_diagonal(products, 0)
        return float(products.max())


def embeddings(
    length: int, d: int, rng: np.random.Generator | None = None, *, symbols: int = 2
) -> Embeddings:
    """Return positions of unit norm in d − M − 1 dimensions, and M + 1 vectors beside them.

    The unit vectors where they fit (Δ = 0), or random directions if `rng` is given.
    """
    check_whole("embeddings", 1, length=length)
    check_whole("embeddings", 2, symbols=symbols)
    beside = symbols + 1
    check_whole("embeddings", beside + 1, d=d)
    if rng is None and length > d - beside:
        raise UserError(
            f"embeddings: length={length} positions are not orthogonal in d − {beside} = "
            f"{d - beside} dimensions. Raise d, or give an rng for random directions."
        )
    shape = (length, d - beside)
    places = np.eye(*shape) if rng is None else rng.standard_normal(shape)
    places /= np.linalg.norm(places, axis=1, keepdims=True)
    eye = np.eye(d)
    positions = np.concatenate([np.zeros((length, beside)), places], axis=1)
    return Embeddings(positions, eye[:symbols], eye[symbols])


@dataclass(frozen=True, eq=False)
class Head:
    """The weights of a head, W_Q, W_K, W_V (d × k) and W_C (k × d)."""

    query: Floats
    key: Floats
    value: Floats
    output: Floats

    def attention(self, x: Floats, cls: Floats) -> Floats:
        """Return how the query v_cls attends to the tokens, shape (…, T)."""
        scores = x @ self.key @ self.query.T @ cls
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares: Floats = weights / weights.sum(axis=-1, keepdims=True)
        return shares

    def __call__(self, x: Floats, cls: Floats) -> Floats:
        """Return the head's output, shape (…, d)."""
        mixed = np.einsum("...t,...td->...d", self.attention(x, cls), x)
        out: Floats = mixed @ self.value @ self.output
        return out

    @property
    def norms(self) -> dict[str, float]:
        """Frobenius norms of the four matrices, under the text's names."""
        parts = {"W_Q": self.query, "W_K": self.key, "W_V": self.value, "W_C": self.output}
        return {name: float(np.linalg.norm(matrix)) for name, matrix in parts.items()}


def keys(positions: Floats, support: Support) -> Floats:
    """Return the least vectors whose product with v_i is 1 for their own i in I, 0 for others.

    Shape (s, d), in the order of `support`. Their sum is the key of a head for all of I: every
    relevant score is 1. The text takes the v_i themselves, whose scores differ by (s − 1) Δ, so
    that R makes the mixture of relevant positions uneven.
    """
    found = np.linalg.pinv(positions[list(support)]).T
    return np.asarray(found, np.float64)


def sharpness(positions: Floats, key: Floats, support: Support, error: float) -> float:
    r"""Return the R at which attention is within `error` (sum of differences) of uniform on I.

    Scores are R on I and at most R ρ elsewhere, ρ ≥ 0; then the difference is at most
    :math:`2 (T - s) / (s e^{R (1 - ρ)})` [TH Lemma A.24, with the largest irrelevant score].
    """
    others = np.delete(positions @ key, support)
    if not len(others):
        return 0.0
    most = 2 * len(others) / (len(support) * error)
    return max(0.0, math.log(most)) / (1 - _below_one(others))


def _below_one(others: Floats) -> float:
    """Return ρ, the largest score of an irrelevant position where relevant ones have 1."""
    rho = float(others.max(initial=0.0))
    if rho >= 1:
        raise UserError(
            f"An irrelevant position has the score {rho:.3g} where relevant ones have 1: no R "
            "selects the support. Give positions of a larger dimension, or a smaller support."
        )
    return rho


def _row(d: int, place: int) -> Floats:
    unit = np.zeros(d)
    unit[place] = 1.0
    return unit


def _checked(length: int, support: Support) -> Support:
    known = len(set(support)) == len(support) and all(0 <= i < length for i in support)
    if not support or not known:
        raise UserError(
            f"support={support} of {length} positions. Give different positions from 0 to "
            f"{length - 1}."
        )
    return support


def mean_head(
    given: Embeddings, support: Support, *, gamma: float | None = None, key: Key = "least-norm"
) -> Head:
    r"""Return a head that is within γ/4 of the mean of χ_i over I, fixed positions [TH Lemma A.19].

    χ_i is +1 where b_i = 1 and −1 where b_i = 0, so that the mean increases with the number of ones
    (the text's values, E_0 − E_1, make it decrease where «monotone» means increasing). It is
    (2/s)-strictly monotone: γ = 2/s unless given. With key="sum" the key is the text's Σ v_i, with
    the R of its norm bound, :math:`\log(8T/γ)/(1 - sΔ)`.
    """
    positions = given.positions
    support = _checked(len(positions), support)
    s, (length, d) = len(support), positions.shape
    gamma = 2 / s if gamma is None else gamma
    if key == "sum":
        chosen = positions[list(support)].sum(axis=0)
        free = 1 - s * given.coherence
        if free <= 0:
            raise UserError(
                f"mean_head: key='sum' asks for Δ < 1/s = {1 / s:.3g}, and these positions have "
                f"Δ = {given.coherence:.3g}. Give key='least-norm'."
            )
        rate = math.log(8 * length / gamma) / free
    else:
        chosen = keys(positions, support).sum(axis=0)
        rate = sharpness(positions, chosen, support, gamma / 4)
    first = _row(1, 0)
    return Head(
        np.outer(rate * given.cls, first),
        np.outer(chosen, first),
        np.outer(given.tokens[1] - given.tokens[0], first),
        np.outer(first, _row(d, 0)),
    )


def bit_heads(given: Embeddings, support: Support, *, gamma: float = 2.0) -> tuple[Head, ...]:
    """Return s heads whose sum is within γ/4 of (χ_i for i in I), fixed positions [TH Lemma A.19].

    Head b writes χ of its own position into coordinate b. W_V ends in the coordinate from which W_C
    reads: the text has e_2 in one and e_1 in the other, whose product is 0. Of M symbols χ is
    spaced evenly from −1 to 1, which is 2/(M − 1)-injective: give that as γ [TH A.2.4].
    """
    positions = given.positions
    support = _checked(len(positions), support)
    d, first = positions.shape[1], _row(1, 0)
    heads = []
    for place, i in enumerate(support):
        own = positions[i]
        rate = sharpness(positions, own, (i,), gamma / 4)
        heads.append(
            Head(
                np.outer(rate * given.cls, first),
                np.outer(own, first),
                np.outer(np.linspace(-1, 1, len(given.tokens)) @ given.tokens, first),
                np.outer(first, _row(d, place)),
            )
        )
    return tuple(heads)


def chosen_positions(given: Embeddings, support: Support) -> Embeddings:
    """Return trained positions: one vector for all of I and 0 elsewhere [TH Lemma A.20]."""
    positions = np.zeros_like(given.positions)
    positions[list(_checked(len(positions), support))] = given.positions[0]
    return Embeddings(positions, given.tokens, given.cls)


def bag_head(
    given: Embeddings,
    support: Support,
    *,
    gamma: float | None = None,
    output: Literal["bits", "sum"] = "bits",
) -> Head:
    r"""Return a head on the bag of vectors b_t v_t and v_cls [TH Lemma A.21].

    With r ones in I, its first s coordinates are within γ/4 of :math:`(b_i - 1)/(r + 1)`, which is
    (1/s)-injective; with output="sum" the first one is within γ/4 of their sum,
    :math:`(r - s)/(r + 1)`, which is (1/s)-strictly monotone. γ = 1/s unless given. Keys and values
    are those of `keys`; with the text's, the v_i themselves, values are off by up to sΔ.
    """
    positions = given.positions
    support = _checked(len(positions), support)
    s, (length, d) = len(support), positions.shape
    gamma = 1 / s if gamma is None else gamma
    duals = keys(positions, support)
    key = duals.sum(axis=0)
    others = np.delete(positions, support, axis=0)
    columns = np.eye(s, d) if output == "bits" else np.outer(np.ones(s), _row(d, 0))
    # v_cls has the score R whatever the bits are. A token that is irrelevant or 0 has at most R ρ,
    # and moves an output by its value and by that of the relevant tokens whose share it takes.
    largest = 1.0 if output == "bits" else float(s)
    moves = largest + np.abs(others @ duals.T @ columns).max(initial=0.0)
    rate = math.log(4 * length * moves / gamma) / (1 - _below_one(others @ key))
    return Head(
        np.outer(rate * given.cls, _row(1, 0)),
        np.outer(key + given.cls, _row(1, 0)),
        duals.T - np.outer(given.cls, np.ones(s)),
        columns,
    )


def tokens_of(given: Embeddings, bits: ArrayLike) -> Floats:
    """Return the tokens v_t + E_{b_t} of bit strings, shape (…, T, d)."""
    chosen: Floats = given.positions + given.tokens[np.asarray(bits, np.int64)]
    return chosen


def bag_of(given: Embeddings, bits: ArrayLike) -> Floats:
    """Return the tokens b_t v_t and, last, v_cls, shape (…, T + 1, d) [TH A.2.1, diag(b) V]."""
    on = np.asarray(bits, np.float64)[..., None] * given.positions
    cls = np.broadcast_to(given.cls, (*on.shape[:-2], 1, on.shape[-1]))
    return np.concatenate([on, cls], axis=-2)


def influence(length: int, sparsity: int, rate: float) -> float:
    r"""Return how far one relevant bit moves the output of a head whose scores are R on I.

    :math:`2 / (s + (T - s) e^{-R})`: at a constant R it falls like 1/T, and R = log T undoes that
    [TH §4.5].
    """
    check_whole("influence", 1, length=length, sparsity=sparsity)
    return 2 / (sparsity + (length - sparsity) * math.exp(-rate))
