"""Inputs that gather around centres which decide the label [FL App. E.3]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import comb, inf, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.errors import check_whole, require
from petridish.seeds import Streams
from petridish.tasks.base import Examples, HasCentres, HasDirections
from petridish.tasks.domain import Classes, Domain, Reals
from petridish.tasks.patterns import orthonormal

Floats = NDArray[np.float64]
MOST_CENTRES = 16  # log2 of them


@dataclass(frozen=True)
class HiddenLabels(HasDirections, HasCentres):
    """x = M(φ − ½)/σ; the k relevant patterns are one of 2v binary vectors, and v have y = +1.

    M is d × D with orthonormal columns and σ² = D/4; irrelevant patterns are present with
    probability ½ each. The vectors are each run's own, all different. With k = 2 and v = 1 one run
    has the vectors (1, 0) with y = +1 and (1, 1) with y = −1: an example has one of the two, and a
    label that says which. With the vectors (1, …, 1) and (0, …, 0) it would be the part
    `structured` of a `Dictionary`.

    Attributes
    ----------
    d, patterns, k : int
        Dimension of the inputs, patterns (the paper's D), relevant patterns.
    vectors : int
        The paper's 50: vectors of each label.
    """

    name: ClassVar[str] = "hidden_labels"

    d: int
    patterns: int
    k: int
    vectors: int

    def __post_init__(self) -> None:
        sizes = {"d": self.d, "patterns": self.patterns, "k": self.k, "vectors": self.vectors}
        check_whole("HiddenLabels", 1, **sizes)
        require(
            self.k <= self.patterns <= self.d,
            f"HiddenLabels: k={self.k}, patterns={self.patterns}, d={self.d}. Give k relevant ones "
            "among the patterns, and at most d patterns: they are orthonormal.",
        )
        require(
            self.k > 63 or 2 * self.vectors <= 2**self.k,
            f"HiddenLabels: vectors={self.vectors} of each label, and k={self.k} patterns have "
            f"{2 ** min(self.k, 63)} vectors. Lower vectors or raise k.",
        )

    @property
    def domain(self) -> Domain:
        """Vectors of d numbers, and two classes."""
        return Domain(Reals((self.d,)), Classes(2))

    @property
    def variance(self) -> float:
        """σ² = D/4."""
        return self.patterns / 4

    def codes(self, seed: int) -> NDArray[np.uint8]:
        """Return the vectors of a run, shape (2v, k): first those with y = +1."""
        return _different(self.k, 2 * self.vectors, seed)

    def directions(self, seeds: Sequence[int]) -> Floats:
        """Return the k relevant patterns of each run, shape (run, k, d)."""
        drawn = [orthonormal(self.d, self.patterns, seed)[:, : self.k].T for seed in seeds]
        return np.stack(drawn)

    def centres(self, seeds: Sequence[int]) -> Floats:
        """Return the mean input of each vector, shape (run, 2v, d): first those with y = +1."""
        codes = np.stack([self.codes(seed) for seed in seeds]) - 0.5
        return codes @ self.directions(seeds) / sqrt(self.variance)

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw a vector and the other patterns; an example takes D − k + 1 half-words."""
        rest = self.patterns - self.k
        halves = Streams(seeds, purpose).halves(start * (rest + 1), count * (rest + 1))
        halves = halves.reshape(len(seeds), count, rest + 1)
        which = (halves[..., -1].astype(np.uint64) * np.uint64(2 * self.vectors)) >> np.uint64(32)
        x = np.empty((len(seeds), count, self.d), np.float32)
        for run, seed in enumerate(seeds):
            relevant = self.codes(seed)[which[run].astype(int)]
            phi = np.concatenate([relevant, halves[run, :, :-1] < 2**31], axis=1)
            # Multiples of a power of two are summed exactly, in every order.
            pattern = orthonormal(self.d, self.patterns, seed).T
            x[run] = ((phi - 0.5) @ pattern) / sqrt(self.variance)
        return Examples((which >= self.vectors).astype(np.uint8), dense=x)


@lru_cache(maxsize=64)
def _different(k: int, count: int, seed: int) -> NDArray[np.uint8]:
    """Draw binary vectors that are all different, in a random order."""
    stream = Streams([seed], "codes")
    if k <= 20:
        words = np.argsort(stream.words(0, 2**k)[0], kind="stable")[:count]
        found = (words[:, None] >> np.arange(k) & 1).astype(np.uint8)
    else:  # of so many vectors the first that are different are taken
        drawn = stream.bits(0, 4 * count * k).reshape(4 * count, k)
        _, first = np.unique(drawn, axis=0, return_index=True)
        found = drawn[np.sort(first)[:count]]
    found.flags.writeable = False
    return found


@dataclass(frozen=True)
class Hypercube(HasDirections, HasCentres):
    """x = Σ ε_i M_i + g for k orthonormal M_i and random signs ε; y = Π ε_i [FL (290)].

    The 2^k centres are the corners of a cube, and neighbours have different labels. The noise g
    has the norm σ_r on average: each of the d coordinates has the variance σ_r²/d. With the
    variance σ_r² in each, as the text may be read, the best possible accuracy for its settings
    would be 57 to 76 %.

    Attributes
    ----------
    d, k : int
        Dimension of the inputs, and of the cube.
    spread : float
        The paper's σ_r.
    """

    name: ClassVar[str] = "hypercube"

    d: int
    k: int
    spread: float

    def __post_init__(self) -> None:
        check_whole("Hypercube", 1, d=self.d, k=self.k)
        require(
            self.k <= min(self.d, MOST_CENTRES),
            f"Hypercube: k={self.k}, d={self.d}. Give at most d and at most {MOST_CENTRES}.",
        )
        require(
            0 <= self.spread < inf,
            f"Hypercube: spread={self.spread}. Give a number of at least 0.",
        )

    @property
    def domain(self) -> Domain:
        """Vectors of d numbers, and two classes."""
        return Domain(Reals((self.d,)), Classes(2))

    def directions(self, seeds: Sequence[int]) -> Floats:
        """Return the k columns of M of each run, shape (run, k, d)."""
        return np.stack([orthonormal(self.d, self.k, seed).T for seed in seeds])

    @property
    def corners(self) -> Floats:
        """The signs of the centres, shape (2^k, k)."""
        return np.array(list(product((1.0, -1.0), repeat=self.k)))

    def centres(self, seeds: Sequence[int]) -> Floats:
        """Return the 2^k centres of each run, shape (run, centre, d)."""
        return self.corners @ self.directions(seeds)

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw k signs and the noise of each example, from streams of their own."""
        signs = Streams(seeds, purpose).signs(start * self.k, count * self.k)
        signs = signs.reshape(len(seeds), count, self.k)
        noise = Streams(seeds, f"{purpose}/noise").normals(start * self.d, count * self.d)
        x = self.spread / sqrt(self.d) * noise.reshape(len(seeds), count, self.d)
        for run, columns in enumerate(self.directions(seeds)):
            x[run] += (signs[run] @ columns).astype(np.float64)
        labels = (signs.prod(axis=2) < 0).astype(np.uint8)
        return Examples(labels, dense=x.astype(np.float32))

    def best_error(self) -> float:
        """Return the error of the best classifier: that more signs flip than not, in parity.

        Along each M_i the noise has the standard deviation σ_r/√d, so that a sign is misread with
        the probability q = Φ(−√d/σ_r), and an odd number of them with (1 − (1 − 2q)^k) / 2.
        """
        from scipy.special import ndtr

        q = float(ndtr(-sqrt(self.d) / self.spread)) if self.spread else 0.0
        odd = range(1, self.k + 1, 2)
        return sum(comb(self.k, i) * q**i * (1 - q) ** (self.k - i) for i in odd)
