"""Patterns of a dictionary, present or absent, and a label from a few of them [FL §3, E.1, F]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import check_one_of, check_whole, require
from petridish.seeds import Streams
from petridish.tasks import patterns as law
from petridish.tasks.base import Examples, HasDirections, HasParts
from petridish.tasks.domain import Classes, Domain, Reals
from petridish.values import LATER, settle

Floats = NDArray[np.float64]
MOST_BACKGROUND = 2 / 3  # beyond it p_o / (2 − 2 p_o) is no probability


@dataclass(frozen=True)
class Dictionary(HasDirections, HasParts):
    r"""x = (Mφ − E[Mφ] + ζ) / σ, and y = +1 where an odd number of the first k patterns is there.

    M is d × D with orthonormal columns, each run's own, and φ ∈ {0, 1}^D says which of them are
    present; σ² = Σ Var φ_j + d σ_ζ², which gives x a mean square length of 1 if M is orthonormal.
    With D = 4 and k = 3, φ = (1, 1, 1, 0) has the label y = +1 and φ = (1, 0, 1, 1) the label −1.
    As M is drawn at random, the relevant patterns A may be its first.

    With probability p_o all patterns are present independently with probability ½ (the part
    `uniform`). Else (`structured`) all relevant ones are present, or none, with probability ½ each,
    and any other with probability p_o / (2 − 2 p_o), so that it is present with probability p_o
    overall. The paper prints j ∈ A where this must be j ∉ A. Without structure every example is of
    the first kind.

    The paper's p_o is two things at once. With a `share` ρ they are apart: the part `structured`
    has the weight ρ, and patterns outside A are present with probability p_o in both parts. Then
    they are independent of A, as the paper's assumption A2 asks; with its own mixture they are not,
    unless p_o = ½.

    Attributes
    ----------
    d, patterns : int
        Dimension of the inputs, and patterns in the dictionary (the paper's D).
    k : int
        Relevant patterns; odd for parities: for even k, all of them and none have the same label.
    background : float
        The paper's p_o: the probability of an irrelevant pattern, and of the part `uniform`; at
        most ⅔, and at most ½ by the paper's assumption A2.
    structure : bool
        Whether there is a structured part.
    share : float, optional
        ρ, the weight of the structured part, apart from the background; 0 is no structure.
    positive : tuple of int, optional
        The paper's P: the numbers of relevant patterns with y = +1; the odd ones if not given.
        ``tuple(range(20, 31))`` is an interval, ``(2, 3)`` of k = 3 a majority.
    relevant : float
        Probability of a relevant pattern in the part `uniform`.
    negatives : float, optional
        The share of y = −1 in every sample, exactly; left out, as it comes.
    basis : "orthonormal" or "random"
        Random columns are unit vectors with inner products of about 1/√d, and may be more than d.
        The mean square length of x is then about 1 alone, by as much as patterns are correlated
        (0.7 to 1.2 in five seeds, d = 5, D = 10): App. F's equality asks for orthonormal ones.
    noise : float
        σ_ζ: standard deviation of the noise in each of the d coordinates, before scaling.
    space : "inputs" or "patterns"
        Inputs are x, or its D coordinates Mᵀx with a 0 behind them. The 0 stands for all that is
        orthogonal to M: a start that gives its weight the length of a neuron's part there
        (`Projected`) trains as on x, in D + 1 dimensions.
    """

    name: ClassVar[str] = "dictionary"

    d: int
    patterns: int
    k: int
    background: float = 0.5
    structure: bool = True
    share: float | None = field(default=None, metadata=LATER)
    positive: tuple[int, ...] | None = field(default=None, metadata=LATER)
    relevant: float = field(default=0.5, metadata=LATER)
    negatives: float | None = field(default=None, metadata=LATER)
    basis: Literal["orthonormal", "random"] = field(default="orthonormal", metadata=LATER)
    noise: float = field(default=0.0, metadata=LATER)
    space: Literal["inputs", "patterns"] = field(default="inputs", metadata=LATER)

    def __post_init__(self) -> None:
        settle(self)
        check_whole("Dictionary", 1, d=self.d, patterns=self.patterns, k=self.k)
        check_one_of("Dictionary", ("orthonormal", "random"), basis=self.basis)
        check_one_of("Dictionary", ("inputs", "patterns"), space=self.space)
        sizes = f"Dictionary: k={self.k}, patterns={self.patterns}, d={self.d}. Give k relevant "
        require(
            self.k <= self.patterns <= (self.d if self.basis == "orthonormal" else inf),
            sizes + "ones among the patterns, and at most d patterns: they are orthonormal."
            if self.basis == "orthonormal"
            else sizes + "ones among the patterns.",
        )
        self._check_mixture()
        self._check_labels()
        require(
            0 <= self.noise < inf,
            f"Dictionary: noise={self.noise}. Give a standard deviation of at least 0.",
        )
        require(
            self.space == "inputs" or (self.basis == "orthonormal" and self.noise == 0),
            f"Dictionary: space='patterns' with basis={self.basis!r} and noise={self.noise:g}: "
            "only an orthonormal dictionary without noise is known by its coordinates. Give "
            "space='inputs'.",
        )

    def _check_mixture(self) -> None:
        if self.share is None:
            require(
                0 < self.background <= MOST_BACKGROUND,
                f"Dictionary: background={self.background}. Give a probability above 0 and at "
                "most 2/3; with a share of structured examples, any.",
            )
            require(
                self.structure or self.background == 0.5,
                f"Dictionary: background={self.background} has no effect with structure=False, "
                "where every pattern is present with probability 1/2. Leave it out.",
            )
        else:
            require(
                self.structure,
                f"Dictionary: share={self.share} has no effect with structure=False. Leave one of "
                "the two out; share=0 is no structure.",
            )
            require(
                0 <= self.share <= 1,
                f"Dictionary: share={self.share}. Give the share of structured examples, from 0 "
                "to 1.",
            )
            require(
                0 < self.background < 1,
                f"Dictionary: background={self.background}. Give a probability between 0 and 1.",
            )
        require(
            0 < self.relevant < 1,
            f"Dictionary: relevant={self.relevant}. Give a probability between 0 and 1.",
        )
        require(
            self.relevant == 0.5 or self.structured < 1,
            f"Dictionary: relevant={self.relevant} has no effect with share=1, where all relevant "
            "patterns are present, or none. Leave it out.",
        )

    def _check_labels(self) -> None:
        if self.positive is None:
            require(
                self.k % 2 == 1,
                f"Dictionary: k={self.k} is even: all relevant patterns and none would have the "
                f"same label. Give an odd k, such as {self.k + 1}.",
            )
        else:
            known = set(range(self.k + 1))
            given = tuple(sorted(set(self.positive)))
            require(
                0 < len(given) <= self.k and set(given) <= known,
                f"Dictionary: positive={self.positive}. Give some of the numbers 0 to {self.k} of "
                "relevant patterns, and not all.",
            )
            require(
                self.structured == 0 or ((0 in given) != (self.k in given)),
                f"Dictionary: positive={self.positive} gives all {self.k} relevant patterns and "
                "none the same label: the structured part has one class. Give one of 0 and "
                f"{self.k}, or share=0.",
            )
            odd = given == tuple(range(1, self.k + 1, 2)) and self.k % 2 == 1
            object.__setattr__(self, "positive", None if odd else given)  # one meaning, one key
        require(
            self.negatives is None or 0 < self.negatives < 1,
            f"Dictionary: negatives={self.negatives}. Give a share of y = -1 between 0 and 1.",
        )

    @property
    def domain(self) -> Domain:
        """Vectors of d numbers, or of D + 1, and two classes."""
        size = self.d if self.space == "inputs" else self.patterns + 1
        return Domain(Reals((size,)), Classes(2))

    @property
    def structured(self) -> float:
        """ρ, the weight of the structured part."""
        if self.share is not None:
            return self.share
        return 1 - self.background if self.structure else 0.0

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the mixture; none without structure."""
        return ("uniform", "structured") if self.structured else ()

    @property
    def counts(self) -> Floats:
        """The probability of each part and number of relevant patterns, shape (2, k + 1)."""
        plus = self._plus
        return law.count_law(self.k, plus, self.structured, self.relevant, self.negatives)

    @property
    def _plus(self) -> tuple[int, ...]:
        return tuple(range(1, self.k + 1, 2)) if self.positive is None else self.positive

    @property
    def _label_of_count(self) -> Floats:
        return np.where(np.isin(np.arange(self.k + 1), self._plus), 1.0, -1.0)

    @property
    def present_in_a(self) -> float:
        """E φ_j of a relevant pattern j."""
        return float(self.counts.sum(axis=0) @ np.arange(self.k + 1) / self.k)

    @property
    def variance(self) -> float:
        """The paper's σ² = Σ Var φ_j + d σ_ζ²: for its mixture k/4 + (D − k) p_o (1 − p_o)."""
        inside = self.present_in_a * (1 - self.present_in_a)
        rest = self.background * (1 - self.background)
        return self.k * inside + (self.patterns - self.k) * rest + self.d * self.noise**2

    @property
    def correlation(self) -> float:
        """The paper's γ = E[yφ_j] − E[y] E[φ_j] of a relevant pattern j: (1 − p_o) / 2.

        For parities it is ρ/2; without structure it is 0 for k > 1, and ½ for k = 1.
        """
        y, chances = self._label_of_count, self.counts.sum(axis=0)
        with_label = float((y * chances) @ np.arange(self.k + 1) / self.k)
        found = with_label - self.mean_label * self.present_in_a
        return 0.0 if abs(found) < 1e-15 else found

    @property
    def mean_label(self) -> float:
        """E y."""
        return float(self._label_of_count @ self.counts.sum(axis=0))

    def assumptions(self) -> dict[str, bool]:
        """Return which of the paper's assumptions hold.

        A0: the classes are balanced. A1: relevant patterns are correlated with the label, γ > 0.
        A2: the others are independent of them, and present with probability at most ½. The
        paper's own mixture violates A2 for p_o ≠ ½: background patterns share its part with A.
        How incoherent a random dictionary is, each run's own matter, `coherence` says: App. F asks
        for D μ / √d of at most 1/16, which more columns than dimensions never have.
        """
        apart = self.share is not None or self.background == 0.5 or self.patterns == self.k
        return {
            "A0": abs(self.mean_label) < 1e-12,
            "A1": self.correlation > 1e-12,
            "A2": apart and self.background <= 0.5,
        }

    def dictionary(self, seed: int) -> Floats:
        """Return the dictionary M of a run, shape (d, D)."""
        draw = law.orthonormal if self.basis == "orthonormal" else law.directions_at_random
        return draw(self.d, self.patterns, seed)

    def coherence(self, seed: int) -> float:
        """Return the paper's μ of a run's dictionary: √d times the largest |⟨M_i, M_j⟩|."""
        columns = self.dictionary(seed)
        products = np.abs(columns.T @ columns - np.eye(self.patterns))
        return float(products.max() * sqrt(self.d))

    def directions(self, seeds: Sequence[int]) -> Floats:
        """Return the k relevant patterns of each run, shape (run, k, input)."""
        if self.space == "patterns":
            return np.tile(np.eye(self.k, self.patterns + 1), (len(seeds), 1, 1))
        return np.stack([self.dictionary(seed)[:, : self.k].T for seed in seeds])

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw patterns, their sum and the label; an example takes D + 2 half-words, or D + 3."""
        size = self.patterns + (2 if self.negatives is None else 3)
        halves = Streams(seeds, purpose).halves(start * size, count * size)
        chances = halves.reshape(len(seeds), count, size)
        bits, structured = self.present(chances, start)
        means = np.full(self.patterns, self.background)
        means[: self.k] = self.present_in_a
        scale = sqrt(self.variance)
        x = np.zeros((len(seeds), count, self.domain.n_inputs), np.float32)
        for run, seed in enumerate(seeds):
            if self.space == "patterns":
                x[run, :, :-1] = (bits[run] - means) / scale
                continue
            pattern = self.dictionary(seed).T
            # Sums of multiples of 2^-40 are exact in every order: an example does not depend on
            # the others drawn with it.
            x[run] = (bits[run] @ pattern - means @ pattern) / scale
        if self.noise:
            noise = Streams(seeds, f"{purpose}/noise").normals(start * self.d, count * self.d)
            x += (self.noise / scale * noise.reshape(x.shape)).astype(np.float32)
        plus = self._label_of_count[bits[..., : self.k].sum(axis=2).astype(int)] > 0
        facts = {"part": structured.astype(np.int64)} if self.parts else {}
        return Examples((~plus).astype(np.uint8), dense=x, facts=facts)  # class 0 is y = +1

    def present(
        self, chances: NDArray[np.uint32], start: int = 0
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Return φ and whether it is structured, from the half-words of examples from `start`."""
        mixed, last = chances[..., self.patterns], chances[..., self.patterns + 1]
        bits = chances[..., : self.patterns]
        uniform_share = self.background if self.share is None else 1 - self.share
        structured = mixed >= law.below(uniform_share)
        if not self.structured:
            structured = np.zeros_like(structured)
        coupled = self.share is None and self.structure
        inside, outside = self.background / (2 - 2 * self.background), 0.5
        if not coupled:
            inside = outside = self.background
        q = np.where(structured, law.below(inside), law.below(outside))[..., None]
        found = bits < q
        if self.negatives is None:
            free = bits[..., : self.k] < law.below(self.relevant)
            every = (last < law.below(0.5))[..., None]
            found[..., : self.k] = np.where(structured[..., None], every, free)
        else:
            found[..., : self.k] = self._of_a_class(chances, structured, start)
        return found.astype(np.float64), structured

    def _of_a_class(
        self, chances: NDArray[np.uint32], structured: NDArray[np.bool_], start: int
    ) -> NDArray[np.bool_]:
        """Return φ_A where the class of an example follows from its number."""
        assert self.negatives is not None, "the class is set"
        minus = law.taken(start, chances.shape[1], self.negatives)  # (example,)
        counts, y = np.zeros(structured.shape), self._label_of_count
        for chosen, sign in ((minus, -1.0), (~minus, 1.0)):
            of_class = self.counts * (y == sign)
            drawn = law.draw_counts(of_class, chances[..., -1], structured)
            counts = np.where(chosen, drawn, counts)
        return law.members(counts, chances[..., : self.k])
