r"""Named random streams: a draw is a pure function of (run seed, stream name, counter).

One generator serves every engine: Philox4x64-10 [Salmon et al. 2011], which turns a 256-bit counter
and a 128-bit key into four 64-bit words. Its layout here is part of the contract, so that another
language draws the same bits:

- key = (run seed, first 8 bytes of SHA-256 of the stream's name, little-endian);
- word ``i`` of a stream is lane ``i % 4`` of the block with counter ``(i // 4, attempt, 0, 0)``,
  where ``attempt`` is 0 but for integers that were rejected;
- half-word ``j`` is the low (even j) or high (odd j) half of word ``j // 2``;
- bit ``b`` is bit ``b % 64`` of word ``b // 64``, lowest first; the bit 1 is the sign −1, so that
  a product of signs is an exclusive or of bits.

Nothing here depends on what was drawn before, by this run or another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError

Words = NDArray[np.uint64]
Floats = NDArray[np.float64]

_LANES = 4  # words per block
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@lru_cache(maxsize=256)
def name_key(name: str) -> int:
    """Return the half of the generator's key that belongs to the stream `name`."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def n_words(n_bits: int) -> int:
    """Count the 64-bit words that hold `n_bits` bits."""
    return -(-n_bits // 64)


class Streams:
    """The random stream `name` of the runs `seeds`: axis 0 of everything drawn is the run.

    Each method says how far it reads: draw i of `uniforms` and `normals` takes word i, draw i of
    `integers` takes half-word i, draw i of `bits` and `signs` takes bit i.
    """

    def __init__(self, seeds: Sequence[int], name: str) -> None:
        outside = [seed for seed in seeds if not 0 <= seed < 2**64]
        if outside:
            raise UserError(
                f"seed={outside[0]} is outside 0 … 2^64 − 1. Give a whole number in that range."
            )
        self.seeds = tuple(seeds)
        self.name = name
        self._bits = np.random.Philox(key=0)
        self._state: Any = self._bits.state
        self._state["buffer_pos"] = _LANES  # nothing buffered: the next word opens a new block

    def words(self, start: int, count: int) -> Words:
        """Draw the words start … start + count − 1, shape (run, count)."""
        drawn = np.empty((len(self.seeds), count), np.uint64)
        for row, seed in zip(drawn, self.seeds, strict=True):
            row[:] = self._words(seed, start, count)
        return drawn

    def _words(self, seed: int, start: int, count: int, attempt: int = 0) -> Words:
        block, skip = divmod(start, _LANES)
        # NumPy's generator counts up before it draws, hence the − 1.
        counter = (block + (attempt << 64) - 1) % 2**256
        state = self._state["state"]
        state["counter"][:] = [counter >> shift & (2**64 - 1) for shift in (0, 64, 128, 192)]
        state["key"][:] = seed, name_key(self.name)
        self._bits.state = self._state
        drawn: Words = self._bits.random_raw(skip + count)[skip:]
        return drawn

    def halves(self, start: int, count: int) -> NDArray[np.uint32]:
        """Draw the half-words start … start + count − 1, shape (run, count)."""
        first, skip = divmod(start, 2)
        words = self.words(first, -(-(skip + count) // 2))
        halves = words.astype("<u8").view("<u4")[:, skip : skip + count]
        return np.ascontiguousarray(halves, dtype=np.uint32)

    def bits(self, start: int, count: int) -> NDArray[np.uint8]:
        """Draw bits (0 or 1), shape (run, count)."""
        first, skip = divmod(start, 64)
        words = self.words(first, n_words(skip + count))
        return unpack_bits(words)[:, skip : skip + count]

    def signs(self, start: int, count: int) -> NDArray[np.int8]:
        """Draw ±1, shape (run, count); the bit 1 is the sign −1."""
        return np.int8(1) - np.int8(2) * self.bits(start, count).astype(np.int8)

    def packed(self, n_bits: int, start: int, count: int) -> Words:
        """Draw vectors of `n_bits` bits, packed, shape (run, count, word).

        Vector i takes the words i·w … (i + 1)·w − 1, with w = ⌈n_bits / 64⌉; the bits above
        `n_bits` are 0.
        """
        width = n_words(n_bits)
        drawn = self.words(start * width, count * width).reshape(-1, count, width)
        if n_bits % 64:
            drawn[..., -1] &= np.uint64(2 ** (n_bits % 64) - 1)
        return drawn

    def uniforms(self, start: int, count: int) -> Floats:
        """Draw numbers uniform on [0, 1) with 53 bits, shape (run, count)."""
        return (self.words(start, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def normals(self, start: int, count: int) -> Floats:
        """Draw standard normals by inverting their distribution function, shape (run, count)."""
        from scipy.special import ndtri  # slow to import, and few runs need it

        # The middle of each of 2^52 equal intervals: never 0 or 1, and exact in a float64.
        drawn: Floats = ndtri(((self.words(start, count) >> np.uint64(12)) + 0.5) * 2.0**-52)
        return drawn

    def integers(
        self, below: int | NDArray[np.integer[Any]], start: int, count: int
    ) -> NDArray[np.int64]:
        """Draw integers uniform on 0 … below − 1, without modulo bias, shape (run, count).

        `below` is a number or an array that broadcasts to the shape. The draw is the high half of
        ``half-word × below`` [Lemire 2019]; where the low half falls into the first
        2^32 mod `below` values the draw is rejected, and taken again from the same place of the
        next attempt: a rejection moves no other draw.
        """
        bound = np.asarray(below)
        if bound.size and not 1 <= bound.min() <= bound.max() <= 2**32:
            raise UserError(
                f"Integers below {below} were asked for. Give a bound between 1 and 2^32."
            )
        shape = (len(self.seeds), count)
        bounds = np.broadcast_to(bound.astype(np.uint64), shape)
        product = self.halves(start, count) * bounds
        rejected = (product & _LOW) < (np.uint64(2**32) % bounds)
        value = (product >> _HALF).astype(np.int64)
        for run, column in np.argwhere(rejected):
            value[run, column] = self._retry(
                self.seeds[run], start + int(column), int(bounds[run, column])
            )
        return value

    def _retry(self, seed: int, place: int, below: int) -> int:
        attempt = 1
        while True:
            word = int(self._words(seed, place // 2, 1, attempt)[0])
            product = (word >> 32 * (place % 2) & 0xFFFFFFFF) * below
            if product & 0xFFFFFFFF >= 2**32 % below:
                return product >> 32
            attempt += 1

    def subsets(self, n: int, size: int, start: int, count: int) -> NDArray[np.int64]:
        """Draw subsets of {0 … n − 1} without replacement, sorted, shape (run, count, size).

        Subset i takes the half-words i·size … (i + 1)·size − 1, by Floyd's algorithm: for
        j = n − size … n − 1 draw t ≤ j, and take t, or j where t is taken already.
        """
        if not 0 <= size <= n:
            raise UserError(
                f"A subset of {size} out of {n} elements was asked for. Give a size from 0 to {n}."
            )
        tops = np.arange(n - size, n)
        drawn = self.integers(np.tile(tops + 1, count), start * size, count * size)
        chosen = drawn.reshape(len(self.seeds), count, size)
        for column in range(1, size):
            taken = (chosen[..., :column] == chosen[..., column, None]).any(axis=-1)
            chosen[..., column] = np.where(taken, tops[column], chosen[..., column])
        return np.sort(chosen, axis=-1)


def unpack_bits(words: Words) -> NDArray[np.uint8]:
    """Turn packed words into bits along the last axis, lowest bit first."""
    octets = np.ascontiguousarray(words).astype("<u8").view(np.uint8)
    return np.unpackbits(octets, axis=-1, bitorder="little")


def pack_bits(bits: NDArray[np.uint8]) -> Words:
    """Pack bits along the last axis into words, the inverse of `unpack_bits`; at least one word."""
    length = 64 * max(1, n_words(bits.shape[-1]))
    padded = np.zeros((*bits.shape[:-1], length), np.uint8)
    padded[..., : bits.shape[-1]] = bits
    return np.packbits(padded, axis=-1, bitorder="little").view("<u8").astype(np.uint64)
