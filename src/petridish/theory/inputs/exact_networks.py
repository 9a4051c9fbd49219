"""Networks of 3(k + 1) truncated ReLUs that have every label right [FL Lemmas 5, 35]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from petridish.errors import require

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ExactNetwork:
    """f(x) = Σ a_i σ(⟨w, x⟩ + b_i) for the truncated ReLU σ; all neurons share their weights w.

    Attributes
    ----------
    scale : float
        w = σ_x Σ_{j ∈ A} M_j / scale, for inputs divided by σ_x.
    outputs, biases : array, shape (3(k + 1),)
        a* and b*.
    shift : float
        0 for the first form of the lemma, ¼ for the second.
    """

    scale: float
    outputs: Floats
    biases: Floats
    shift: float

    def of_count(self, along: ArrayLike) -> Floats:
        """Return f where σ_x ⟨Σ_{j ∈ A} M_j, x⟩, the centred number of patterns, is `along`."""
        z = np.asarray(along, np.float64)[..., None] / self.scale + self.biases
        return np.asarray(np.clip(z, 0, 1) @ self.outputs)


def exact_network(
    k: int, positive: Sequence[int], mean: float, *, lemma: int = 5, shift: float | None = None
) -> ExactNetwork:
    """Build Lemma 5's network, or Lemma 35's, which bears errors of 1/8 in the count.

    A tent of height at least 1 stands on every number p = 0 … k, up for p ∈ P and down for others;
    each tent is three ReLUs. Lemma 5 has slopes of 2 (form 1) or 4 (form 2, whose tents stand at
    p + ¼) and the scale 4k; Lemma 35 has slopes of 4 or 8 and the scale 8k. Of the two forms one
    has all biases at least 1/8 before scaling, and is taken if `shift` does not say.

    Lemma 35 prints |a*| ≤ 64k, which its second form does not keep: a slope of 8 makes it 128k.

    Parameters
    ----------
    k : int
        Relevant patterns.
    positive : sequence of int
        P.
    mean : float
        Σ_{j ∈ A} E φ_j of the distribution itself: with that of a sample the tents stand aside.
    lemma : 5 or 35
    shift : 0 or 0.25, optional
        The form.
    """
    require(
        k >= 1
        and {*positive} <= set(range(k + 1))
        and lemma in (5, 35)
        and shift in (None, 0, 0.25),
        f"exact_network: k={k}, positive={tuple(positive)}, lemma={lemma}, shift={shift}. Give "
        "numbers from 0 to k, lemma 5 or 35, and a shift of 0 or 0.25.",
    )
    forms = [_form(k, positive, mean, lemma, each) for each in (0.0, 0.25)]
    if shift is not None:
        return forms[int(shift > 0)]
    return max(forms, key=lambda form: float(np.abs(form.biases).min()))


def _form(k: int, positive: Sequence[int], mean: float, lemma: int, shift: float) -> ExactNetwork:
    slope = (2.0 if lemma == 5 else 4.0) * (2 if shift else 1)
    scale = (4.0 if lemma == 5 else 8.0) * k
    outputs, biases = [], []
    for p in range(k + 1):
        sign = 1.0 if p in positive else -1.0
        centre = p - mean + shift
        for weight, side in ((1.0, 0.5), (-2.0, 0.0), (1.0, -0.5)):
            outputs.append(sign * slope * weight * scale)
            biases.append((side - centre) / scale)
    return ExactNetwork(scale, np.array(outputs), np.array(biases), shift)
