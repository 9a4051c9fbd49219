"""Heads of unbounded norm in three dimensions shatter log₂ T sequences [TH Proposition 4.8]."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole

Floats = NDArray[np.float64]


def shattered_sequences(length: int) -> Floats:
    """Return log₂ T sequences of T tokens: a place on the circle, and a bit of t's expansion.

    Shape (log₂ T, T, 3).
    """
    check_whole("shattered_sequences", 2, length=length)
    bits = int(math.log2(length))
    if 2**bits != length:
        raise UserError(f"shattered_sequences: length={length}. Give a power of 2.")
    places = np.arange(length)
    angles = 2 * np.pi * places / length
    bit = (places[None] >> np.arange(bits)[:, None]) & 1
    circle = np.broadcast_to(np.stack([np.cos(angles), np.sin(angles)], -1), (bits, length, 2))
    return np.concatenate([circle, bit[:, :, None]], axis=-1)


def selecting_outputs(sequences: Floats, place: int) -> Floats:
    """Return f(X) of the head that attends to one place, shape (sequences,).

    Its query is T² (cos, sin, 0) of the place's angle and its value the third coordinate; scores
    are taken relative to their largest, since e^{T²} is beyond any floating-point number.
    """
    length = sequences.shape[1]
    angle = 2 * np.pi * place / length
    scores = sequences @ (length**2 * np.array([np.cos(angle), np.sin(angle), 0.0]))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    found: Floats = (weights * sequences[:, :, 2]).sum(axis=1) / weights.sum(axis=1)
    return found
