"""Sparse AND of biased bits, as tokens or as signs [TH §4.6, A.3.1]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.seeds import Streams
from petridish.tasks.base import Examples, HasHypotheses, HasSupport
from petridish.tasks.domain import Bits, Classes, Domain, Tokens

Booleans = NDArray[np.uint8]


@dataclass(frozen=True)
class BiasedAnd(HasSupport, HasHypotheses):
    """1 where all s relevant bits are 1, for n independent bits that are each 1 with probability p.

    With support=(0, 3), the input (1, 0, 0, 1, 0) has the label 1, and (1, 1, 1, 0, 1) the label 0.

    Attributes
    ----------
    n, s : int
        Bits (the paper's T) and relevant bits.
    p : float, optional
        Probability of a 1; (1/2)^(1/s) if not given, with which half of the labels are 1.
    encoding : "tokens" or "signs"
        Whether the bits are tokens 0 and 1, for models that embed them, or the signs +1 and −1.
    """

    name: ClassVar[str] = "biased_and"

    n: int
    s: int = 3
    p: float | None = None
    support: tuple[int, ...] | None = None
    encoding: Literal["tokens", "signs"] = "tokens"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p is not None and not 0 < self.p < 1:
            raise UserError(f"BiasedAnd: p={self.p}. Give a probability between 0 and 1.")
        if self.encoding not in ("tokens", "signs"):
            raise UserError(f"BiasedAnd: encoding={self.encoding!r}. Give 'tokens' or 'signs'.")

    @property
    def domain(self) -> Domain:
        """Bits as they are encoded, and two classes."""
        inputs = Tokens(2, self.n) if self.encoding == "tokens" else Bits(self.n)
        return Domain(inputs, Classes(2))

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw bits, each from one half-word of the stream, and their labels."""
        share = 0.5 ** (1 / self.s) if self.p is None else self.p
        halves = Streams(seeds, purpose).halves(start * self.n, count * self.n)
        bits = (halves < round(share * 2**32)).reshape(len(seeds), count, self.n)
        relevant = np.take_along_axis(bits, self.supports(seeds)[:, None, :], axis=2)
        labels: Booleans = np.all(relevant, axis=2).astype(np.uint8)
        if self.encoding == "tokens":
            return Examples(labels, dense=bits.astype(np.int64))
        return Examples(labels, dense=np.where(bits, np.float32(-1), np.float32(1)))

    def several_explain(self, sample: Examples) -> NDArray[np.bool_]:
        """Return whether several ANDs of s bits have all labels of each run's sample."""
        bits = sample.x == 1 if self.encoding == "tokens" else sample.x == -1
        return np.array(
            [self._several(run, labels) for run, labels in zip(bits, sample.labels, strict=True)]
        )

    def _several(self, bits: NDArray[np.bool_], labels: Booleans) -> bool:
        """Return whether two sets of s bits explain one sample, bits (example, place).

        A set does if its bits are 1 in every example of the label 1, and one of them is 0 in each
        of the label 0. The first condition leaves few places, of which all sets are tried.
        """
        places = np.flatnonzero(bits[labels == 1].all(axis=0))
        zero = ~bits[labels == 0][:, places]  # (example, place)
        found = 0
        for chosen in combinations(range(len(places)), self.s):
            found += bool(zero[:, list(chosen)].any(axis=1).all())
            if found > 1:
                return True
        return False
