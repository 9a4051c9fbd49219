"""The random streams of `petridish.seeds`, drawn by the device on which a stack lies.

The same bits: word for word Philox4x64-10 as `seeds` lays it out. Words are int64, whose sums and
products wrap around as those of unsigned words do; a product's high half is put together from
products of 32-bit pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from petridish.seeds import n_words, name_key
from petridish.training.devices import Device, holds

ROUNDS = 10
_LOW = 0xFFFFFFFF


def _signed(word: int) -> int:
    """Return the whole number of 64 bits with a sign that has the bits of a word."""
    word %= 2**64
    return word - 2**64 if word >= 2**63 else word


# Of Philox4x64: [Salmon et al. 2011], Table 2 and §4.3.
FACTORS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)


def _shifted(word: Tensor, by: int) -> Tensor:
    """Shift an unsigned word to the right: the sign's copies that `>>` shifts in are cut off."""
    shifted: Tensor = (word >> by) & (2 ** (64 - by) - 1)
    return shifted


def _high_half(word: Tensor, factor: int) -> Tensor:
    """Return the upper 64 bits of the product of unsigned words."""
    low, high = factor & _LOW, factor >> 32
    word_low, word_high = word & _LOW, _shifted(word, 32)
    # Neither sum is above 2^64 − 1: (2^32 − 1)^2 + 2^32 − 1 = 2^64 − 2^32.
    middle = word_high * low + _shifted(word_low * low, 32)
    other = word_low * high + (middle & _LOW)
    return word_high * high + _shifted(middle, 32) + _shifted(other, 32)


class DeviceStreams:
    """The random stream `name` of the runs `seeds` on a device: axis 0 is the run.

    Its methods return the bits of those of `petridish.seeds.Streams`.
    """

    def __init__(self, seeds: Sequence[int], name: str, device: Device) -> None:
        self.device = device
        self.key = torch.tensor([[_signed(seed)] for seed in seeds], device=device.name)  # (run, 1)
        self.name_key = name_key(name)

    def words(self, start: int, count: int) -> Tensor:
        """Draw the words start … start + count − 1 as int64, shape (run, count)."""
        return self._words(start, count, 0)

    def _words(self, start: int, count: int, attempt: int) -> Tensor:
        first, skip = divmod(start, 4)
        blocks = -(-(skip + count) // 4)
        where = self.device.name
        # Four lanes, each (run, block); three of the counter's words are alike in all blocks.
        a = torch.arange(first, first + blocks, device=where).expand(len(self.key), -1)
        b = torch.full((1, 1), attempt, dtype=torch.int64, device=where)
        c = d = torch.zeros((1, 1), dtype=torch.int64, device=where)
        for turn in range(ROUNDS):
            ours = self.key + _signed(turn * STEPS[0])
            named = _signed(self.name_key + turn * STEPS[1])
            a, b, c, d = (
                _high_half(c, FACTORS[1]) ^ b ^ ours,
                c * _signed(FACTORS[1]),
                _high_half(a, FACTORS[0]) ^ d ^ named,
                a * _signed(FACTORS[0]),
            )
        lanes = torch.stack([a, b, c, d], dim=2)  # (run, block, lane)
        return lanes.flatten(1)[:, skip : skip + count]

    def halves(self, start: int, count: int) -> Tensor:
        """Draw half-words as int64 from 0 to 2^32 − 1, shape (run, count)."""
        return self._halves(start, count, 0)

    def _halves(self, start: int, count: int, attempt: int) -> Tensor:
        first, skip = divmod(start, 2)
        words = self._words(first, -(-(skip + count) // 2), attempt)
        both = torch.stack([words & _LOW, _shifted(words, 32)], dim=2)
        return both.flatten(1)[:, skip : skip + count]

    def packed(self, n_bits: int, start: int, count: int) -> Tensor:
        """Draw vectors of bits, packed, shape (run, count, word)."""
        width = n_words(n_bits)
        drawn = self.words(start * width, count * width).reshape(-1, count, width)
        if n_bits % 64:
            drawn = drawn.contiguous()
            drawn[..., -1] &= 2 ** (n_bits % 64) - 1
        return drawn

    def integers(self, below: Tensor, start: int, count: int) -> Tensor:
        """Draw whole numbers from 0 to below − 1, where `below` (run, 1) is at most 2^31.

        The host waits once, to learn whether a draw was rejected: of numbers below m, each is with
        a probability below m / 2^32.
        """
        limit = 2**32 % below
        product = self._halves(start, count, 0) * below
        rejected = (product & _LOW) < limit
        attempt = 1
        while holds(rejected.any(), usual=False):
            again = self._halves(start, count, attempt) * below
            product = torch.where(rejected, again, product)
            rejected = rejected & ((again & _LOW) < limit)
            attempt += 1
        return _shifted(product, 32)

    def fractions(self, start: int, count: int) -> Tensor:
        """Draw whole numbers from 0 to 2^53 − 1: the numerators of `Streams.uniforms`."""
        return _shifted(self.words(start, count), 11)

    def uniforms(self, start: int, count: int) -> Tensor:
        """Draw numbers uniform on [0, 1), rounded to float32 as NumPy rounds them."""
        return self.fractions(start, count).float() * 2.0**-53

    def normals(self, start: int, count: int) -> Tensor:
        """Draw standard normals in float32, from the words of `Streams.normals`.

        PyTorch's inverse of the distribution function agrees with SciPy's but for its last digits.
        """
        inside = (_shifted(self.words(start, count), 12).double() + 0.5) * 2.0**-52
        found: Tensor = torch.special.ndtri(inside)
        return found.float()

    def lanes(self, start: int, count: int) -> Tensor:
        """Draw 16-bit lanes, four to a word, lowest first, as int32; `start` counts words."""
        words = self.words(start, -(-count // 4)).contiguous()
        lanes: Tensor = words.view(torch.int16).int() & 0xFFFF
        return lanes[:, :count]

    def order(self, start: int, count: int) -> Tensor:
        """Return the order that sorts the words start … start + count − 1 of each run."""
        # Signed numbers sort as unsigned ones once the uppermost bit is turned over.
        turned: Tensor = self.words(start, count) ^ _signed(2**63)
        return turned.argsort(dim=1, stable=True)


@lru_cache(maxsize=32)  # asked at every step: keys are copied to the device once
def device_streams(seeds: tuple[int, ...], name: str, device: Device) -> DeviceStreams:
    """Return the stream `name` of some runs."""
    return DeviceStreams(seeds, name, device)
