"""Patterns of a dictionary, present or absent, and the parity of a few of them [FL §3, E.1.1]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.seeds import Streams
from petridish.tasks.base import Examples, HasDirections, HasParts
from petridish.tasks.domain import Classes, Domain, Reals

Floats = NDArray[np.float64]
GRAIN = 2.0**40  # entries of a dictionary are multiples of its inverse


@dataclass(frozen=True)
class Dictionary(HasDirections, HasParts):
    r"""x = (Mφ − E[Mφ]) / σ, and y = +1 where an odd number of the first k patterns are present.

    M is d × D with orthonormal columns, each run's own, and φ ∈ {0, 1}^D says which of them are
    present; σ² is the variance of Mφ, summed over its entries. With D = 4 and k = 3, φ = (1, 1, 1,
    0) has the label y = +1 and φ = (1, 0, 1, 1) the label −1. As M is drawn at random, it is no
    loss that the relevant patterns A are its first.

    With probability p_o all patterns are present independently with probability ½ (the part
    `uniform`). Else (`structured`) all relevant ones are present, or none, with probability ½ each,
    and any other with probability p_o / (2 − 2 p_o), so that it is present with probability p_o in
    all. The text prints j ∈ A where this must be j ∉ A. Without structure every example is of the
    first kind.

    Attributes
    ----------
    d, patterns : int
        Dimension of the inputs, and patterns in the dictionary (the paper's D).
    k : int
        Relevant patterns, an odd number: for even k, all of them and none have the same label.
    background : float
        The paper's p_o: the probability of an irrelevant pattern, and of the part `uniform`.
    structure : bool
        Whether there is a structured part.
    """

    name: ClassVar[str] = "dictionary"

    d: int
    patterns: int
    k: int
    background: float = 0.5
    structure: bool = True

    def __post_init__(self) -> None:
        check_whole("Dictionary", 1, d=self.d, patterns=self.patterns, k=self.k)
        if not self.k <= self.patterns <= self.d:
            raise UserError(
                f"Dictionary: k={self.k}, patterns={self.patterns}, d={self.d}. Give k relevant "
                "ones among the patterns, and at most d patterns: they are orthonormal."
            )
        if self.k % 2 == 0:
            raise UserError(
                f"Dictionary: k={self.k} is even: all relevant patterns and none would have the "
                f"same label. Give an odd k, such as {self.k + 1}."
            )
        if not 0 < self.background <= 0.5:
            raise UserError(
                f"Dictionary: background={self.background}. Give a probability above 0 and at "
                "most 1/2."
            )
        if not self.structure and self.background != 0.5:
            raise UserError(
                f"Dictionary: background={self.background} has no effect with structure=False, "
                "where every pattern is present with probability 1/2. Leave it out."
            )

    @property
    def domain(self) -> Domain:
        """Vectors of d numbers, and two classes."""
        return Domain(Reals((self.d,)), Classes(2))

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the mixture; none without structure."""
        return ("uniform", "structured") if self.structure else ()

    @property
    def variance(self) -> float:
        """The paper's σ² = k/4 + (D − k) p_o (1 − p_o)."""
        rest = self.background * (1 - self.background)
        return self.k / 4 + (self.patterns - self.k) * rest

    @property
    def correlation(self) -> float:
        """The paper's γ = E[yφ_j] − E[y] E[φ_j] of a relevant pattern j: (1 − p_o) / 2.

        Without structure it is 0 for k > 1, and ½ for k = 1.
        """
        if self.k == 1:
            return 0.5
        return (1 - self.background) / 2 if self.structure else 0.0

    def dictionary(self, seed: int) -> Floats:
        """Return the dictionary M of a run, shape (d, D)."""
        return _dictionary(self.d, self.patterns, seed)

    def directions(self, seeds: Sequence[int]) -> Floats:
        """Return the k relevant patterns of each run, shape (run, k, d)."""
        return np.stack([self.dictionary(seed)[:, : self.k].T for seed in seeds])

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw patterns, their sum and the label; an example takes D + 2 half-words."""
        size = self.patterns + 2
        halves = Streams(seeds, purpose).halves(start * size, count * size)
        chances = halves.reshape(len(seeds), count, size)
        present, structured = self.present(chances)
        means = np.full(self.patterns, self.background)
        means[: self.k] = 0.5
        x = np.empty((len(seeds), count, self.d), np.float32)
        for run, seed in enumerate(seeds):
            pattern = self.dictionary(seed).T
            # Sums of multiples of 2^-40 are exact in every order: an example is the same whoever
            # asks for it.
            x[run] = (present[run] @ pattern - means @ pattern) / sqrt(self.variance)
        labels = (present[..., : self.k].sum(axis=2) % 2 == 0).astype(np.uint8)  # class 0 is y = +1
        facts = {"part": structured.astype(np.int64)} if self.structure else {}
        return Examples(labels, dense=x, facts=facts)

    def present(self, chances: NDArray[np.uint32]) -> tuple[Floats, NDArray[np.bool_]]:
        """Return φ and whether it is structured, from D + 2 half-words per example."""
        bits, mixed, all_present = chances[..., :-2], chances[..., -2], chances[..., -1]
        present = bits < _below(0.5)
        structured = mixed >= _below(self.background)
        if not self.structure:
            return present.astype(np.float64), np.zeros_like(structured)
        around = bits < _below(self.background / (2 - 2 * self.background))
        around[..., : self.k] = (all_present < _below(0.5))[..., None]
        return np.where(structured[..., None], around, present).astype(np.float64), structured


def _below(probability: float) -> int:
    """Return the number below which a half-word lies with a probability."""
    return round(probability * 2**32)


@lru_cache(maxsize=64)
def _dictionary(d: int, patterns: int, seed: int) -> Floats:
    """Draw orthonormal columns, uniformly: those of a matrix of normals, made orthonormal."""
    normals = Streams([seed], "dictionary").normals(0, d * patterns).reshape(d, patterns)
    q, r = np.linalg.qr(normals)
    columns: Floats = np.round(q * np.sign(np.diag(r)) * GRAIN) / GRAIN
    columns.flags.writeable = False  # shared by all draws
    return columns
