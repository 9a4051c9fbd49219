"""Dictionaries of patterns, and the law of how many relevant ones are present [FL §3, App. F]."""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from petridish.seeds import Streams

Floats = NDArray[np.float64]
GRAIN = 2.0**40  # entries of a dictionary are multiples of its inverse
UNIFORM, STRUCTURED = 0, 1  # the parts of a mixture, by their places


def below(probability: float) -> int:
    """Return the number below which a half-word lies with a probability."""
    return round(probability * 2**32)


@lru_cache(maxsize=64)
def orthonormal(d: int, patterns: int, seed: int) -> Floats:
    """Draw orthonormal columns, uniformly: those of a matrix of normals, made orthonormal."""
    q, r = np.linalg.qr(_normals(d, patterns, seed))
    return _kept(q * np.sign(np.diag(r)))


@lru_cache(maxsize=64)
def directions_at_random(d: int, patterns: int, seed: int) -> Floats:
    """Draw independent unit columns, uniform on the sphere: inner products of about 1/√d."""
    columns = _normals(d, patterns, seed)
    return _kept(columns / np.linalg.norm(columns, axis=0))


def _normals(d: int, patterns: int, seed: int) -> Floats:
    return Streams([seed], "dictionary").normals(0, d * patterns).reshape(d, patterns)


def _kept(columns: Floats) -> Floats:
    """Round to the grain, and protect: the array is shared by all draws."""
    found: Floats = np.round(columns * GRAIN) / GRAIN
    found.flags.writeable = False
    return found


@lru_cache(maxsize=256)
def count_law(
    k: int, positive: tuple[int, ...], share: float, relevant: float, negatives: float | None
) -> Floats:
    """Return the probability of each part and number of relevant patterns, shape (2, k + 1).

    The part `uniform` has each of k patterns with probability `relevant`, the part `structured`
    all or none. `negatives` is the share of the class y = −1 in each part, if it is set; the class
    is y = +1 where the number is in `positive`.
    """
    counts = np.arange(k + 1)
    free = np.array([comb(k, t) * relevant**t * (1 - relevant) ** (k - t) for t in counts])
    all_or_none = np.isin(counts, (0, k)) / 2
    law = np.stack([(1 - share) * free, share * all_or_none])
    if negatives is not None:
        plus = np.isin(counts, positive)
        for part, weight in ((UNIFORM, 1 - share), (STRUCTURED, share)):
            for chosen, wanted in ((plus, 1 - negatives), (~plus, negatives)):
                there = law[part, chosen].sum()
                if there > 0:
                    law[part, chosen] *= weight * wanted / there
    law.flags.writeable = False
    return law


def draw_counts(law: Floats, chances: NDArray[np.uint32], part: NDArray[np.bool_]) -> Floats:
    """Return a number of relevant patterns for each half-word, by the law of its part."""
    found = np.empty(chances.shape)
    for place in (UNIFORM, STRUCTURED):
        ends = np.cumsum(law[place]) / max(law[place].sum(), np.finfo(float).tiny)
        drawn = np.searchsorted(np.round(ends * 2**32), chances, side="right")
        found = np.where(part == bool(place), drawn.clip(max=law.shape[1] - 1), found)
    return found


def members(counts: Floats, chances: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return which of the patterns are present: `counts` of them, those of the least half-words."""
    ranks = np.argsort(np.argsort(chances, axis=-1, kind="stable"), axis=-1, kind="stable")
    return ranks < counts[..., None]


def taken(start: int, count: int, share: float) -> NDArray[np.bool_]:
    """Return which of the examples start … start + count − 1 are of a kind with a share.

    Example i is where ⌊(i + 1) · share⌋ exceeds ⌊i · share⌋: every sample has the share exactly, up
    to one example, and what example i is depends on i alone.
    """
    return np.diff(first_taken(np.arange(start, start + count + 1), share)) > 0


def first_taken(places: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """Return how many of the examples before each place are of the kind: ⌊i · share⌋."""
    found: NDArray[np.int64] = np.floor(places * share + 1e-9).astype(np.int64)
    return found
