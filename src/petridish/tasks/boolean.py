"""Sparse Boolean functions: AND, OR, majority, or any truth table, on s of n bits.

The bit 1 (the sign −1) is «true», for inputs and labels alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from petridish.errors import UserError
from petridish.tasks.base import Booleans, OnSupport
from petridish.values import settle


@dataclass(frozen=True)
class _SparseFunction(OnSupport):
    """A function of s of the n bits, for x uniform on {−1, +1}^n."""

    n: int
    s: int
    support: tuple[int, ...] | None = None


class SparseAnd(_SparseFunction):
    """True when all s relevant bits are. With s=2: (1, 1) ↦ 1, (1, 0) ↦ 0."""

    name: ClassVar[str] = "sparse_and"

    def evaluate(self, bits: Booleans) -> Booleans:
        """Take the smallest bit."""
        label: Booleans = np.min(bits, axis=-1)
        return label


class SparseOr(_SparseFunction):
    """True when one of the s relevant bits is. With s=2: (1, 0) ↦ 1, (0, 0) ↦ 0."""

    name: ClassVar[str] = "sparse_or"

    def evaluate(self, bits: Booleans) -> Booleans:
        """Take the largest bit."""
        label: Booleans = np.max(bits, axis=-1)
        return label


class SparseMajority(_SparseFunction):
    """True when more than half of the s relevant bits are, s odd. With s=3: (1, 0, 1) ↦ 1."""

    name: ClassVar[str] = "sparse_majority"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.s % 2 == 0:
            raise UserError(
                f"SparseMajority: s={self.s} is even, and half of the bits are no majority. "
                f"Give an odd s, such as {self.s + 1}."
            )

    def evaluate(self, bits: Booleans) -> Booleans:
        """Compare the sum with s / 2."""
        label: Booleans = (bits.sum(axis=-1) > self.s // 2).astype(np.uint8)
        return label


@dataclass(frozen=True)
class TruthTable(OnSupport):
    """Any Boolean function of s relevant bits, given by its 2^s values.

    Entry i of `table` is the value where the binary digits of i, lowest first, are the bits of the
    support in order. With table=(0, 1, 1, 0) and support=(2, 4): bit 2 xor bit 4.
    """

    name: ClassVar[str] = "truth_table"

    n: int
    table: tuple[int, ...]
    support: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        settle(self)
        if len(self.table) < 2 or len(self.table) & (len(self.table) - 1):
            raise UserError(
                f"TruthTable: table has {len(self.table)} entries. Give 2^s of them, "
                "one for each setting of the s relevant bits."
            )
        if set(self.table) - {0, 1}:
            raise UserError(
                f"TruthTable: table={self.table} has entries other than 0 and 1. Give 0 or 1."
            )
        self.check_support()

    @property
    def n_relevant(self) -> int:
        """The s with 2^s entries."""
        return len(self.table).bit_length() - 1

    def evaluate(self, bits: Booleans) -> Booleans:
        """Look the relevant bits up in the table."""
        index = (bits.astype(np.int64) << np.arange(self.n_relevant)).sum(axis=-1)
        label: Booleans = np.array(self.table, np.uint8)[index]
        return label
