"""The bounds of TH Chapter 4 and Appendix A by the text's own numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, nearest
from petridish.theory.variables import capacity, generalisation, lipschitz, shattering
from petridish.theory.variables.capacity import HeadNorms, head_cover
from petridish.theory.variables.constructions import Head, embeddings, mean_head

Floats = NDArray[np.float64]

BOUNDS: Mapping[str, Callable[..., Any]] = {
    "Lemma 4.2": generalisation.gap_bound,
    "Theorem 4.6": capacity.attention_cover,
    "Lemma 4.7": lipschitz.head_moves,
    "Prop. 4.8": shattering.shattered_sequences,
    "Cor. 4.9": capacity.head_cover,
    "Lemma 4.10": capacity.matrix_cover,
    "Theorem 4.11": capacity.layers_cover,
    "Lemma A.2": generalisation.rademacher_bound,
    "Cor. A.3": generalisation.closed_rademacher,
    "Theorem A.4": generalisation.gap_bound,
    "Lemma A.5": generalisation.gap_bound,
    "Lemma A.8": capacity.best_split,
    "Lemma A.10": capacity.linear_cover,
    "Lemma A.11": capacity.head_cover,
    "Lemma A.12": capacity.heads_cover,
    "Lemma A.13": lipschitz.weights_move,
    "Lemma A.14": lipschitz.inputs_move,
    "Lemma A.15": lipschitz.layer_moves,
    "Lemma A.16": lipschitz.scalar_moves,
    "Theorem A.17": capacity.layers_cover,
}
"""Two numbers may be one function: Lemma A.5 is 4.2 restated, A.11 is Cor. 4.9 with B_X + B_P."""


def find_bound(name: str) -> Callable[..., Any]:
    """Return the function of a statement, such as "Cor. 4.9"."""
    if name not in BOUNDS:
        raise UserError(f"There is no bound called {name!r}. {nearest(name, BOUNDS)}")
    return BOUNDS[name]


def norms_of(head: Head, inputs: float) -> HeadNorms:
    """Return the norms of a head's collapsed matrices, W_Q W_Kᵀ and W_V W_C."""
    scores, values = head.query @ head.key.T, head.value @ head.output
    return HeadNorms(
        value=lipschitz.spectral(values),
        value_columns=float(np.linalg.norm(values, axis=0).sum()),
        scores=float(np.linalg.norm(scores.T, axis=0).sum()),
        inputs=inputs,
        d=len(scores),
    )


def implied_sample(length: int, sparsity: int = 3, *, gap: float = 0.5) -> float:
    """Return the sample that Cor. 4.9 asks for at the norms of Lemma A.19's head, orthogonal.

    A Lipschitz constant of 1 and a gap of ½ are granted; labels say nothing beyond that gap.
    """
    made = embeddings(length, length + 3)
    norms = norms_of(mean_head(made, tuple(range(sparsity))), math.sqrt(2))
    return generalisation.sufficient_sample(
        lambda radius, m: head_cover(norms, radius, m, length), gap=gap
    )
