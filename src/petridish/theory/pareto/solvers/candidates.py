r"""All sets of k columns, in an order in which many sets share their lower columns.

In colexicographic order (by the largest member first) the t-sets whose members are all below j are
the first C(j, t) of the list. So one table, of the exclusive ors of all t-sets of columns, serves
every choice of the k − t upper columns: those that go with the uppers :math:`u_1 < u_2 < \dots` are
its first :math:`\binom{u_1}{t}` entries, and one exclusive or with a constant makes each of them a
candidate. The work is C(n, k) operations on contiguous words, where the k columns of each candidate
alone would take k C(n, k) at random places.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.seeds import Words

TABLE_WORDS = 2**18  # 2 MB: a table that stays in the cache while the uppers change


def lower_size(n: int, k: int, width: int = 1, *, most: int = TABLE_WORDS) -> int:
    """Choose the largest t < k whose table, `width` words per set, has at most `most` words."""
    t = 0
    while t < k - 1 and comb(n, t + 1) * width <= most:
        t += 1
    return t


def subset_xors(columns: Words, t: int) -> Words:
    """Take the exclusive or of every t-set of `columns` (n, word), in order, as (word, set)."""
    n, width = columns.shape
    table = np.zeros((width, 1), np.uint64)  # of the empty set
    for size in range(1, t + 1):
        parts = [table[:, : comb(j, size - 1)] ^ columns[j, :, None] for j in range(size - 1, n)]
        table = np.concatenate(parts, axis=1)
    return table


def table_operations(n: int, t: int) -> int:
    """Count the operations of `subset_xors`, for each word: Σ_{s=1}^{t} C(n, s)."""
    return sum(comb(n, size) for size in range(1, t + 1))


def upper_sets(n: int, k: int, t: int) -> Iterator[tuple[list[int], int]]:
    """Yield every choice of upper columns, and how many first entries of the table go with it."""
    for upper in combinations(range(t, n), k - t):
        yield list(upper), comb(upper[0] if upper else n, t)


def unrank(ranks: NDArray[np.int64], n: int, t: int) -> NDArray[np.int64]:
    r"""Return the t-sets at the places `ranks` of the order, rising, shape (rank, t).

    A set :math:`c_1 < \dots < c_t` has the place :math:`\sum_i \binom{c_i}{i}`, so each member is
    the largest that leaves the rest nonnegative.
    """
    members = np.empty((len(ranks), t), np.int64)
    left = ranks.copy()
    for size in range(t, 0, -1):
        places = np.array([comb(c, size) for c in range(n)])
        members[:, size - 1] = np.searchsorted(places, left, side="right") - 1
        left -= places[members[:, size - 1]]
    return members


def check_candidates(owner: str, n: int, k: int, most: int) -> None:
    """Refuse more candidates than `most`."""
    if comb(n, k) > most:
        raise UserError(
            f"{owner}: n={n}, k={k} has {comb(n, k):.2e} candidates, and max_candidates={most:.2e} "
            "allows fewer. Raise max_candidates if the time is no matter, or lower n or k."
        )
