"""Sparse parities: the label is the product of k of the n input signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.seeds import Words
from petridish.tasks.base import Booleans, OnSupport


@dataclass(frozen=True)
class SparseParity(OnSupport):
    """y = ∏_{i ∈ S} x_i for x uniform on {−1, +1}^n, |S| = k [PF §2].

    With n=5 and support=(0, 3), the input (+1, −1, −1, −1, +1) has the label −1.

    Attributes
    ----------
    n, k : int
        Number of bits, and of relevant bits (the paper's n and k).
    support : tuple of int, optional
        The relevant bits S; each run draws its own from its stream "support" if none are given.
    """

    name: ClassVar[str] = "sparse_parity"
    letter: ClassVar[str] = "k"

    n: int
    k: int
    support: tuple[int, ...] | None = None

    def evaluate(self, bits: Booleans) -> Booleans:
        """Take the exclusive or: a product of signs."""
        label: Booleans = np.bitwise_xor.reduce(bits, axis=-1)
        return label

    def label(self, packed: Words, supports: NDArray[np.int64]) -> Booleans:
        """Count the relevant ones of whole words: many times faster than taking out the bits."""
        mask = np.zeros((len(supports), packed.shape[-1]), np.uint64)
        runs = np.arange(len(supports))
        for bit in supports.T:
            mask[runs, bit // 64] |= np.uint64(1) << (bit % 64).astype(np.uint64)
        ones: Booleans = np.bitwise_count(packed & mask[:, None, :]).sum(axis=-1, dtype=np.uint8)
        return ones & np.uint8(1)
