"""Samples of a parity in packed form, and the answer that every solver returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.seeds import Words, n_words, pack_bits, unpack_bits
from petridish.theory.checks import check_size

Bits = NDArray[np.uint8]
Support = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer of a solver to a sample, and its cost.

    Attributes
    ----------
    support : tuple of int, optional
        The relevant bits S; None where the solver names no single set.
    fits : int, optional
        How many of all C(n, k) sets explain the labels as well as the best does, where the solver
        knows. Solvers for noiseless labels count the sets that explain every label, so that 0 means
        that no set does.
    disagreements : int, optional
        Labels that the best set gets wrong, where the solver knows.
    gap : int, optional
        Labels that the runner-up gets wrong beyond those, from solvers that rank all sets; 0 is a
        tie. None also where there is no runner-up, C(n, k) = 1.
    operations : int
        Work in 64-bit word operations, the same on every machine: one exclusive or, addition or
        multiply-add, with the test or the bit count of its result. Loads, loops and the packing of
        the sample are not counted.
    """

    support: Support | None
    fits: int | None = None
    disagreements: int | None = None
    gap: int | None = None
    operations: int

    @property
    def unique(self) -> bool:
        """Whether the solver has shown that no other set fits as well."""
        return self.fits == 1


def draw_parity(
    n: int, k: int, m: int, rng: np.random.Generator, *, noise: float = 0.0
) -> tuple[Words, Bits, Support]:
    """Draw a parity and a sample of it: x uniform on {−1, +1}^n, y = ∏_{i ∈ S} x_i [PF §2.1].

    Parameters
    ----------
    n, k, m : int
        Bits, relevant bits, examples.
    rng : numpy Generator
        From an equal generator, a smaller sample is the beginning of a larger one.
    noise : float, default=0.0
        Probability η that a label is flipped.

    Returns
    -------
    inputs : array of uint64, shape (m, word)
        Bit i of an example is bit i % 64 of word i // 64; the bit 1 is the sign −1.
    labels : array of uint8, shape (m,)
        The bit 1 is y = −1.
    support : tuple of int
        The set S, uniform among the C(n, k), in rising order.
    """
    check_size("draw_parity", n, k)
    check_whole("draw_parity", 0, m=m)
    check_noise("draw_parity", noise)
    (flips,) = rng.spawn(1)  # a stream of its own: the flips do not depend on m
    support = tuple(sorted(rng.choice(n, k, replace=False).tolist()))
    inputs = rng.integers(0, 2**64, size=(m, n_words(n)), dtype=np.uint64)
    if n % 64:
        inputs[:, -1] &= np.uint64(2 ** (n % 64) - 1)
    flipped = flips.random(m) < noise
    return inputs, evaluate_parity(inputs, support) ^ flipped, support


def evaluate_parity(inputs: Words, support: Support) -> Bits:
    """Label packed inputs (example, word) by the parity of `support`, as bits."""
    mask = np.zeros(inputs.shape[1], np.uint64)
    for bit in support:
        mask[bit // 64] |= np.uint64(1 << bit % 64)
    ones: Bits = np.bitwise_count(inputs & mask).sum(axis=1, dtype=np.uint8)
    return ones & np.uint8(1)


def pack_columns(inputs: Words, labels: Bits, n: int) -> tuple[Words, Words]:
    """Transpose a sample: columns (n, word) and labels (word,), one bit per example.

    A set S explains the labels if its columns' exclusive or is the labels' vector: 64 examples per
    operation. The bits beyond the m examples are 0 in both, and never disagree.
    """
    return pack_bits(unpack_bits(inputs)[:, :n].T), pack_bits(labels)


def check_sample(owner: str, inputs: Words, labels: Bits, n: int, k: int) -> None:
    """Refuse a sample that is not packed inputs (m, word) and label bits (m,) of an (n, k)."""
    check_size(owner, n, k)
    if inputs.dtype != np.uint64 or inputs.ndim != 2 or inputs.shape[1] != n_words(n):
        raise UserError(
            f"{owner}: inputs of shape {inputs.shape} and type {inputs.dtype}, but n={n} bits are "
            f"packed into words (m, {n_words(n)}) of type uint64. Draw them by draw_parity or by "
            "a task."
        )
    if labels.dtype != np.uint8 or labels.shape != inputs.shape[:1]:
        raise UserError(
            f"{owner}: labels of shape {labels.shape} and type {labels.dtype}, but the "
            f"{len(inputs)} inputs need labels of shape ({len(inputs)},) and type uint8. Give a "
            "bit for each input, 1 for y = −1."
        )
    if labels.max(initial=0) > 1:
        raise UserError(
            f"{owner}: labels up to {labels.max()}. Give a bit for each input, 1 for y = −1."
        )
    if n % 64 and (inputs[:, -1] >> np.uint64(n % 64)).any():
        raise UserError(
            f"{owner}: an input has bits beyond its first n={n}. Clear them, or raise n."
        )


def check_noise(owner: str, noise: float) -> None:
    """Refuse a flip probability of ½ or more, at which labels are noise or inverted."""
    if not 0 <= noise < 0.5:
        raise UserError(f"{owner}: noise={noise}. Give a flip probability from 0 to below 0.5.")
