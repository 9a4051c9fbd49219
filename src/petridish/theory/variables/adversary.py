"""The bit strings on which the constructed heads are worst, exactly, at any T [TH App. A.2]."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from petridish.theory.variables.constructions import Embeddings, Head, Support, bag_of

Floats = NDArray[np.float64]


def worst_mean_error(head: Head, given: Embeddings, support: Support) -> float:
    """Return the largest error of a mean over I over all bit strings [TH Lemma A.19].

    Attention does not depend on the bits and the output is Σ a_t χ_t, so that the string with
    χ_t = sign(a_t − 1[t ∈ I]/s) is the worst.
    """
    shares = head.attention(given.positions, given.cls)
    wanted = np.zeros(len(shares))
    wanted[list(support)] = 1 / len(support)
    return float(np.abs(shares - wanted).sum())


def extreme_of_bag(
    head: Head, given: Embeddings, support: Support, relevant: Floats, sign: int
) -> float:
    """Return the largest first output (times `sign`) over all irrelevant bits [TH Lemma A.21].

    Output is a mixture whose irrelevant tokens have the weight e^score and their own value if their
    bit is 1, else 1 and 0: the best bits for a ratio, by Dinkelbach's iteration, which is exact.
    """
    length = len(given.positions)
    bits = np.zeros(length)
    bits[list(support)] = relevant
    free = np.delete(np.arange(length), support)
    all_on = bag_of(given, np.ones(length))
    scores = (all_on @ head.key @ head.query.T @ given.cls)[:-1]
    values = sign * (all_on @ head.value @ head.output)[:-1, 0]
    ratio = -np.inf
    while True:
        now = float(sign * head(bag_of(given, bits), given.cls)[0])
        if now <= ratio + 1e-13:
            return now
        ratio = now
        top = max(scores.max(), 0.0)
        gain_on = np.exp(scores - top) * (values - ratio)
        gain_off = np.exp(-top) * (0.0 - ratio)
        bits[free] = (gain_on > gain_off)[free]


def worst_bag_error(head: Head, given: Embeddings, support: Support) -> float:
    """Return the largest error of (r − s)/(r + 1) over all bit strings [TH Lemma A.21]."""
    s, worst = len(support), 0.0
    for relevant in itertools.product((0.0, 1.0), repeat=s):
        wanted = (sum(relevant) - s) / (sum(relevant) + 1)
        for sign in (1, -1):
            found = sign * extreme_of_bag(head, given, support, np.array(relevant), sign)
            worst = max(worst, abs(found - wanted))
    return worst
