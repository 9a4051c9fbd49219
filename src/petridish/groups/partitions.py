"""Characters of the symmetric groups from partitions, without a multiplication table.

Representations and conjugacy classes of S_n are both named by the partitions of n: (4, 1) is the
standard representation of S5, (2, 1, 1, 1) the standard times the sign and the class of (1 2).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from petridish.errors import check_whole

Partition = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SymmetricTable:
    """The character table of S_n.

    Attributes
    ----------
    partitions : tuple
        Of n, from (n) to (1, …, 1): the representations, and by the lengths of cycles the classes.
    characters : array, shape (representation, class)
        Whole numbers; the last class is that of e.
    sizes : array
        The number of elements of each class.
    """

    partitions: tuple[Partition, ...]
    characters: NDArray[np.int64]
    sizes: NDArray[np.int64]


@cache
def symmetric_characters(n: int) -> SymmetricTable:
    """Return the character table of S_n by the rule of Murnaghan and Nakayama."""
    check_whole("symmetric_characters", 1, n=n)
    found = tuple(_partitions(n, n))
    table = np.array([[_character(shape, cycles) for cycles in found] for shape in found])
    sizes = np.array([math.factorial(n) // _centraliser(cycles) for cycles in found])
    return SymmetricTable(found, table, sizes)


def _partitions(n: int, largest: int) -> Iterator[Partition]:
    if n == 0:
        yield ()
    for part in range(min(n, largest), 0, -1):
        for rest in _partitions(n - part, part):
            yield (part, *rest)


def _character(shape: Partition, cycles: Partition) -> int:
    return _removed(frozenset(part + place for place, part in enumerate(reversed(shape))), cycles)


@cache
def _removed(beads: frozenset[int], cycles: Partition) -> int:
    """Add up the signs of all ways to take rim hooks of these lengths from a diagram.

    A diagram is a set of beads, its parts plus 0, 1, 2, … from the smallest on; to take a hook of
    length k is to move a bead k places down to a free one, with a sign for each bead passed.
    """
    if not cycles:
        return 1
    length, rest = cycles[0], cycles[1:]
    return sum(
        (-1) ** sum(bead - length < other < bead for other in beads)
        * _removed(beads - {bead} | {bead - length}, rest)
        for bead in beads
        if bead >= length and bead - length not in beads
    )


def _centraliser(cycles: Partition) -> int:
    """Return how many elements commute with one of these cycles."""
    counts = Counter(cycles)
    return math.prod(size**many * math.factorial(many) for size, many in counts.items())
