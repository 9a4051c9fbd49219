r"""Covering numbers of attention of bounded norm, with explicit constants [TH §4.4, App. A.1].

The text hides constants behind ≲. Here they are those of Lemma A.10 (Zhang's linear classes) and of
Maurey's sparsification, carried through the proofs, so that a bound on :math:`\log N_\infty` is a
number, and so is the sample that it asks for. Every function returns a valid upper bound; where a
radius has to be split between parts, the best split found is taken, and any other would be valid.

Norms are those of the text: ‖W‖ is the spectral norm, :math:`\|W\|_{2,1}` the sum of the norms of
columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from petridish.errors import UserError, check_one_of, check_whole

Floats = NDArray[np.float64]
Skips = Literal["none", "attention"]
Cover = Callable[[float], float]
"""The logarithm of a covering number as a function of the radius ε."""

SOFTMAX = 2.0  # the constant of a softmax's Jacobian [TH Corollary A.7]
ZHANG = 36.0  # the constant of Lemma A.10
SPLITS = 60  # radii tried where Lemma A.8 does not apply exactly


def _positive(owner: str, **values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise UserError(f"{owner}: {name}={value!r}. Give a positive number.")


def best_split(alphas: ArrayLike, betas: ArrayLike, total: float = 1.0) -> tuple[Floats, float]:
    r"""Return the x with :math:`\sum β_i x_i = C` and the least :math:`\sum α_i / x_i^2`, and that.

    :math:`x_i = (C/γ) (α_i/β_i)^{1/3}` and the least sum is :math:`γ^3 / C^2`, where
    :math:`γ = \sum_i α_i^{1/3} β_i^{2/3}` [TH Lemma A.8].
    """
    alpha, beta = np.asarray(alphas, np.float64), np.asarray(betas, np.float64)
    if (alpha < 0).any() or (beta <= 0).any() or not alpha.any():
        raise UserError(
            f"best_split: alphas={alpha.tolist()}, betas={beta.tolist()}. Give alphas of at least "
            "0, not all of them 0, and positive betas."
        )
    gamma = (alpha ** (1 / 3) * beta ** (2 / 3)).sum()
    return total / gamma * (alpha / beta) ** (1 / 3), float(gamma**3 / total**2)


def linear_cover(norm: float, inputs: float, epsilon: float, points: float) -> float:
    r"""Bound :math:`\log N_\infty` of x ↦ v·x, ‖v‖ ≤ B₁, on N points of norm at most B₂.

    :math:`36 \frac{B_1^2 B_2^2}{ε^2} \log(2 ⌈4 B_1 B_2/ε + 2⌉ N + 1)` [TH Lemma A.10]. One function
    is a cover where ε ≥ B₁B₂.
    """
    _positive("linear_cover", norm=norm, inputs=inputs, epsilon=epsilon, points=points)
    if epsilon >= norm * inputs:
        return 0.0
    ratio = norm * inputs / epsilon
    return ZHANG * ratio**2 * math.log(2 * math.ceil(4 * ratio + 2) * points + 1)


def matrix_cover(norm: float, inputs: float, epsilon: float, rows: int, points: float) -> float:
    r"""Bound :math:`\log N_\infty` of x ↦ Wx, where the norms of the rows of W add up to ≤ B_W.

    Norms of rows are covered to ε₁ by Maurey's sparsification,
    :math:`⌈B_W^2/ε_1^2⌉ \log(2 d_1 + 1)`, and rows of given norms to ε₂ by `linear_cover`, with
    :math:`ε = ε_2 + B_X ε_1`; the proof's sum over rows runs over the d₁ rows [TH Lemma 4.10].
    """
    check_whole("matrix_cover", 1, rows=rows)
    _positive("matrix_cover", norm=norm, inputs=inputs, epsilon=epsilon, points=points)
    if epsilon >= norm * inputs:
        return 0.0
    share = np.linspace(0, 1, SPLITS + 2)[1:-1]
    norms = np.ceil((norm * inputs / (share * epsilon)) ** 2) * math.log(2 * rows + 1)
    ratio = norm * inputs / ((1 - share) * epsilon)
    given = ZHANG * ratio**2 * np.log(2 * np.ceil(4 * ratio + 2) * points + 1)
    return float((norms + given).min())


def split_cover(parts: Sequence[tuple[float, Cover]], epsilon: float) -> float:
    r"""Bound :math:`\log N_\infty` of a class that moves by β_i ε_i with the radius of each part.

    Parts are β_i with their covers; the radii, :math:`\sum_i β_i ε_i = ε`, are those of Lemma A.8
    for covers that fall like 1/ε², and the bound is the sum of the covers at these.
    """
    _positive("split_cover", epsilon=epsilon)
    betas = np.array([beta for beta, _ in parts], np.float64)
    # One step of a fixed point: what a cover costs at an even split sets its weight α.
    even = epsilon / (len(parts) * betas)
    weights = [cover(x) * x**2 for (_, cover), x in zip(parts, even, strict=True)]
    if not any(weights):
        return 0.0
    # A part that is covered by one function at the even split still gets a thousandth of the rest.
    least = 1e-3 * max(weights)
    radii, _ = best_split(np.maximum(weights, least), betas, epsilon)
    return float(sum(cover(x) for (_, cover), x in zip(parts, radii, strict=True)))


def attention_cover(
    score: Cover, value: Cover, epsilon: float, *, norm: float, lipschitz: float = 1.0
) -> float:
    r"""Bound :math:`\log N_\infty` of any attention head by covers of its scores and values.

    .. math::
        \log N(F_{Score}, αε/(C_{Norm} L_{out} B_{in} B_X)) + \log N(F_{in}, (1-α)ε/L_{out}),

    with the best α found, and C_Norm = 2 of the softmax [TH Theorem 4.6].

    Parameters
    ----------
    score, value : Cover
        On the mT tokens of all samples.
    epsilon : float
        The radius, in the Euclidean norm of the output.
    norm : float
        What the norms of values are at most: :math:`B_{in} B_X`.
    lipschitz : float
        :math:`L_{out}`, of what follows the mixture.
    """
    _positive("attention_cover", norm=norm, lipschitz=lipschitz)
    return split_cover([(SOFTMAX * lipschitz * norm, score), (lipschitz, value)], epsilon)


@dataclass(frozen=True, kw_only=True)
class HeadNorms:
    r"""What bounds a self-attention head, and with it its capacity [TH Corollary 4.9].

    Attributes
    ----------
    value, value_columns, scores : float
        :math:`B_V ≥ \|W_V\|`, :math:`B_V^{2,1} ≥ \|W_V\|_{2,1}` and
        :math:`B_{QK}^{2,1} ≥ \|W_{QK}^⊤\|_{2,1}`.
    inputs : float
        :math:`B_X`, of every token; with positions B_X + B_P [TH Lemma A.11].
    d : int
        Dimension of a token.
    lipschitz : float
        :math:`L_σ`.
    """

    value: float
    value_columns: float
    scores: float
    inputs: float = 1.0
    d: int = 64
    lipschitz: float = 1.0

    def __post_init__(self) -> None:
        check_whole("HeadNorms", 1, d=self.d)
        _positive(
            "HeadNorms",
            value=self.value,
            value_columns=self.value_columns,
            scores=self.scores,
            inputs=self.inputs,
            lipschitz=self.lipschitz,
        )


def head_cover(norms: HeadNorms, epsilon: float, m: float, length: int) -> float:
    r"""Bound :math:`\log N_\infty` of a self-attention head on m samples of `length` tokens.

    The scores :math:`x_τ^⊤ W_{QK} z` move by ‖x_τ‖ times ‖(W − Ŵ) z‖; so a cover of z ↦ W_QK z to
    ε/B_X is one of the scores to ε, and the product in the text's bound is
    :math:`2 B_{QK}^{2,1} B_V B_X^2`, where Corollary 4.9 has no B_X and its proof one. Of order
    :math:`(L_σ B_X)^2 ((B_V^{2,1})^{2/3} + (2 B_{QK}^{2,1} B_V B_X^2)^{2/3})^3 ε^{-2} \log(dmT)`.
    """
    check_whole("head_cover", 1, length=length)
    _positive("head_cover", epsilon=epsilon, m=m)
    points = m * length

    def score(radius: float) -> float:
        wanted = radius / norms.inputs
        return matrix_cover(norms.scores, norms.inputs, wanted, norms.d, points)

    def value(radius: float) -> float:
        return matrix_cover(norms.value_columns, norms.inputs, radius, norms.d, points)

    size = norms.value * norms.inputs
    return attention_cover(score, value, epsilon, norm=size, lipschitz=norms.lipschitz)


def heads_cover(norms: Sequence[HeadNorms], epsilon: float, m: float, length: int) -> float:
    """Bound the logarithm of the covering number of a sum of heads [TH Lemma A.12].

    The radii of heads add up. Of H equal heads it is H³ times that of one, up to logarithms.
    """

    def cover(head: HeadNorms) -> Cover:
        return lambda radius: head_cover(head, radius, m, length)

    return split_cover([(1.0, cover(head)) for head in norms], epsilon)


def positions_cover(length: int, d: int, norm: float, epsilon: float) -> float:
    r"""Bound the logarithm of a cover of trained positions, each row of P with a norm of at most B.

    Every row has a cover of :math:`(1 + 2B/ε)^d` points, so that the whole has
    :math:`T d \log(1 + 2B/ε)`: linear in T, where fixed positions cost nothing [TH §4.4.2].
    """
    check_whole("positions_cover", 1, length=length, d=d)
    _positive("positions_cover", norm=norm, epsilon=epsilon)
    return length * d * math.log1p(2 * norm / epsilon)


@dataclass(frozen=True, kw_only=True)
class BlockNorms:
    r"""What bounds one layer of a deep transformer with projections to the unit ball [TH A.1.7].

    Attributes
    ----------
    scores, value, output : float
        Spectral norms of :math:`W_K W_Q^⊤`, :math:`W_V` and :math:`W_C`.
    scores_columns, value_columns, output_columns : float
        Their (2, 1) norms.
    """

    scores: float
    value: float
    output: float
    scores_columns: float
    value_columns: float
    output_columns: float


def layers_cover(
    blocks: Sequence[BlockNorms],
    epsilon: float,
    m: float,
    length: int,
    *,
    d: int,
    k: int,
    readout: float = 1.0,
    lipschitz: float = 1.0,
    skips: Skips = "none",
) -> float:
    r"""Bound :math:`\log N_\infty` of L layers and a linear read-out of [CLS], ‖w‖ ≤ B_w.

    Tokens have norms of at most 1, here and, by projection, between layers. A layer's error
    :math:`ε_C + 2 L_σ B_C B_V ε_{QK} + L_σ B_C ε_V` is multiplied by every *later* layer's
    :math:`L_σ B_C B_V (1 + 4 B_{QK})` and by B_w [TH Theorem A.17, whose own recursion gives j > i
    where it prints j < i, and B_w, which it prints outside of the sum].

    The factors d² and k² into which its printed d^{2/3} and k^{2/3} grow are not needed:
    `matrix_cover` has the dimension in the logarithm alone, as Theorem 4.11 says.

    With skips around attention, x + f(x), a layer's factor has 1 + B_V (1 + 4 B_QK) for
    B_V (1 + 4 B_QK) [TH §4.4.2]: for B_V of at least 1 it is at most doubled.
    """
    check_whole("layers_cover", 1, d=d, k=k, length=length)
    check_one_of("layers_cover", get_args(Skips), skips=skips)
    _positive("layers_cover", epsilon=epsilon, m=m, readout=readout, lipschitz=lipschitz)
    points = m * length

    def columns(norm: float, rows: int, inputs: float = 1.0) -> Cover:
        return lambda radius: matrix_cover(norm, inputs, radius, rows, points)

    parts: list[tuple[float, Cover]] = []
    later = readout
    for block in reversed(blocks):
        passes = lipschitz * block.output
        parts += [
            (later, columns(block.output_columns, d, lipschitz)),
            (later * 2 * passes * block.value, columns(block.scores_columns, d)),
            (later * passes, columns(block.value_columns, k)),
        ]
        later *= passes * (block.value * (1 + 4 * block.scores) + (skips == "attention"))
    parts.append((1.0, lambda radius: linear_cover(readout, 1.0, radius, m)))
    return split_cover(parts, epsilon)
