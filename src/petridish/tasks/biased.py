"""Sparse functions of biased bits, as tokens or as signs [TH §4.6, A.3.1]."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_one_of
from petridish.seeds import Streams
from petridish.tasks.base import Examples, HasHypotheses, HasSupport
from petridish.tasks.domain import Bits, Classes, Domain, Tokens
from petridish.tasks.hypotheses import explaining

Booleans = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Encoding = Literal["tokens", "signs"]
Function = Literal["and", "or", "majority", "parity", "symmetric", "table"]


class _Biased(HasSupport, HasHypotheses):
    """A function of s of n independent bits that are each 1 with probability p."""

    n: int
    s: int
    p: float | None
    support: tuple[int, ...] | None
    encoding: Encoding

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p is not None and not 0 < self.p < 1:
            raise UserError(
                f"{type(self).__name__}: p={self.p}. Give a probability between 0 and 1."
            )
        if self.encoding not in ("tokens", "signs"):
            raise UserError(
                f"{type(self).__name__}: encoding={self.encoding!r}. Give 'tokens' or 'signs'."
            )

    @property
    @abstractmethod
    def table(self) -> Bools:
        """The function's value at each setting of the relevant bits, shape (2, …, 2)."""

    @property
    def share(self) -> float:
        """The probability of a 1: p, or the one with which half of the labels are 1."""
        return balancing(self.table) if self.p is None else self.p

    @property
    def domain(self) -> Domain:
        """Bits as they are encoded, and two classes."""
        inputs = Tokens(2, self.n) if self.encoding == "tokens" else Bits(self.n)
        return Domain(inputs, Classes(2))

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw bits, each from one half-word of the stream, and their labels."""
        halves = Streams(seeds, purpose).halves(start * self.n, count * self.n)
        bits = (halves < round(self.share * 2**32)).reshape(len(seeds), count, self.n)
        relevant = np.take_along_axis(bits, self.supports(seeds)[:, None, :], axis=2)
        labels: Booleans = self.table[tuple(np.moveaxis(relevant, 2, 0).astype(np.intp))].astype(
            np.uint8
        )
        if self.encoding == "tokens":
            return Examples(labels, dense=bits.astype(np.int64))
        return Examples(labels, dense=np.where(bits, np.float32(-1), np.float32(1)))

    def several_explain(self, sample: Examples) -> Bools:
        """Return whether several such functions of s bits have all labels of each run's sample."""
        bits = sample.x == 1 if self.encoding == "tokens" else sample.x == -1
        table = self.table
        return np.array(
            [
                explaining(run, labels == 1, table, most=2) > 1
                for run, labels in zip(bits, sample.labels, strict=True)
            ]
        )


@dataclass(frozen=True)
class BiasedAnd(_Biased):
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
    encoding: Encoding = "tokens"

    @property
    def table(self) -> Bools:
        """True at all ones alone."""
        return _counted(self.s, (*(0,) * self.s, 1))

    @property
    def share(self) -> float:
        """The probability of a 1."""
        return 0.5 ** (1 / self.s) if self.p is None else self.p


@dataclass(frozen=True)
class BiasedBits(_Biased):
    """Any function of s relevant bits, for n independent bits that are 1 with probability p.

    With of="majority" and support=(0, 3, 4), the input (1, 0, 0, 1, 0) has the label 1.

    Attributes
    ----------
    n, s : int
        Bits (the paper's T) and relevant bits.
    of : "and", "or", "majority", "parity", "symmetric" or "table"
        The function: 1 where all, one, more than half, an odd number of the relevant bits are 1;
        by `values` if it is "symmetric" or a "table".
    values : tuple of int
        Of a symmetric function its value at 0, 1, …, s ones; of a table its 2^s values, where the
        binary digits of a place, lowest first, are the relevant bits in their order.
    p : float, optional
        Probability of a 1; if not given, the one nearest to ½ with which half of the labels are 1.
    encoding : "tokens" or "signs"
        Whether the bits are tokens 0 and 1, for models that embed them, or the signs +1 and −1.
        Both have the same bits and supports.
    """

    name: ClassVar[str] = "biased_bits"

    n: int
    s: int = 3
    of: Function = "majority"
    values: tuple[int, ...] = ()
    p: float | None = None
    support: tuple[int, ...] | None = None
    encoding: Encoding = "tokens"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("BiasedBits", get_args(Function), of=self.of)
        wanted = {"symmetric": self.s + 1, "table": 2**self.s}.get(self.of, 0)
        if len(self.values) != wanted:
            cure = {
                "symmetric": f"s + 1 = {wanted} of them, one for each number of ones",
                "table": f"2^s = {wanted} of them, one for each setting of the relevant bits",
            }.get(self.of, "none: the function's name says them")
            raise UserError(
                f"BiasedBits: values has {len(self.values)} entries for of={self.of!r} and "
                f"s={self.s}. Give {cure}."
            )
        if set(self.values) - {0, 1}:
            raise UserError(
                f"BiasedBits: values={self.values} has entries other than 0 and 1. Give 0 or 1."
            )
        if self.of == "majority" and self.s % 2 == 0:
            raise UserError(
                f"BiasedBits: s={self.s} is even, and half of the bits are no majority. Give an "
                f"odd s, such as {self.s + 1}."
            )
        if self.p is None and not _balances(self.table):
            raise UserError(
                f"BiasedBits: no p gives as many labels 1 as 0 of {self.of} with "
                f"values={self.values}. Give a p."
            )

    @property
    def table(self) -> Bools:
        """The function's value at each setting of the relevant bits."""
        if self.of == "table":
            whole = np.array(self.values, np.bool_).reshape((2,) * self.s)
            return whole.transpose(range(self.s)[::-1])  # the first bit is the lowest digit
        s, ones = self.s, range(self.s + 1)
        named: dict[str, tuple[int, ...]] = {
            "and": tuple(int(count == s) for count in ones),
            "or": tuple(int(count > 0) for count in ones),
            "majority": tuple(int(2 * count > s) for count in ones),
            "parity": tuple(count % 2 for count in ones),
        }
        return _counted(s, named.get(self.of, self.values))


@lru_cache
def _counted(s: int, values: tuple[int, ...]) -> Bools:
    """Return the table of a function of the number of ones."""
    found: Bools = np.array(values, np.bool_)[np.indices((2,) * s).sum(axis=0)]
    return found


def _weights(table: Bools) -> NDArray[np.int64]:
    """Count the settings with each number of ones at which a table is true."""
    ones = np.indices(table.shape).sum(axis=0)
    return np.bincount(ones[table], minlength=table.ndim + 1)


def chance_of_one(table: Bools, p: float) -> float:
    """Return the probability that a function of independent bits is 1, each 1 with p."""
    ones = np.arange(table.ndim + 1)
    return float((_weights(table) * p**ones * (1 - p) ** (table.ndim - ones)).sum())


def _balances(table: Bools) -> list[float]:
    """Return the p with which half of the labels are 1, the nearest to ½ first."""
    from numpy.polynomial import Polynomial

    s, heads, tails = table.ndim, Polynomial([0, 1]), Polynomial([1, -1])
    chance = sum(
        (
            int(count) * heads**ones * tails ** (s - ones)
            for ones, count in enumerate(_weights(table))
        ),
        start=Polynomial([-0.5]),
    )
    if abs(chance(0.5)) < 1e-12:
        return [0.5]
    roots = chance.trim(1e-12).roots()
    real = [float(root.real) for root in roots if abs(root.imag) < 1e-9]
    return sorted((p for p in real if 0 < p < 1), key=lambda p: (abs(p - 0.5), p))


def balancing(table: Bools) -> float:
    """Return the p nearest to ½ with which half of the labels are 1."""
    return _balances(table)[0]
