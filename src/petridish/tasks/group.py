"""Composition in a finite group: modular addition, permutations, and others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.groups import Group, find_group
from petridish.seeds import Streams
from petridish.tasks.base import Examples, Finite
from petridish.tasks.domain import Classes, Domain, OneHot

Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class GroupProduct(Finite):
    """The label of (a, b) is ab, for a and b uniform in a finite group G [TH §7.6].

    In Z5, addition modulo 5, the input (3, 4) has the label 2. An input is two one-hot vectors side
    by side, of 2|G| entries in all.

    Attributes
    ----------
    group : str or tuple of tuple of int
        The group's name, such as Z71, D4, S5, Q8 or Z2xS3, or its multiplication table: in row a
        and column b the place of ab, from 0 to |G| − 1.
    """

    name: ClassVar[str] = "group_product"

    group: str | Rows

    def __post_init__(self) -> None:
        if not isinstance(self.group, str):
            object.__setattr__(self, "group", _rows(self.group))
        self.structure()

    def structure(self) -> Group:
        """Return the group itself."""
        return _structure(self.group)

    @property
    def order(self) -> int:
        """The number |G| of elements."""
        return self.structure().order

    @property
    def domain(self) -> Domain:
        """Two one-hot vectors, and one class per element."""
        return Domain(OneHot(2 * self.order, 2), Classes(self.order))

    @property
    def n_possible(self) -> int:
        """The number of pairs."""
        return self.order**2

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Draw uniform pairs and their products."""
        return self.at(seeds, Streams(seeds, purpose).integers(self.n_possible, start, count))

    def at(self, seeds: Sequence[int], places: NDArray[np.int64]) -> Examples:
        """Return the pairs of the numbers `places`, a|G| + b."""
        order = self.order
        a, b = np.divmod(np.asarray(places, np.int64), order)
        hot = np.stack([a, b + order], axis=-1)
        return Examples(self.structure().table[a, b], n_bits=2 * order, hot=hot)


def _rows(table: object) -> Rows:
    """Read a table given as rows of whole numbers, NumPy's among them."""
    lines = list(table) if isinstance(table, Iterable) else []
    if not lines or not all(isinstance(line, Iterable) for line in lines):
        raise UserError(
            f"GroupProduct: group={table!r} is neither a name nor a table. Give a name such as S4, "
            "or rows of whole numbers."
        )
    rows = [[int(x) if isinstance(x, Integral) else x for x in line] for line in lines]
    if len({len(row) for row in rows}) > 1:
        raise UserError(
            "GroupProduct: the rows of the table differ in length. Give as many rows as columns, "
            "or a name such as S4."
        )
    return tuple(tuple(row) for row in rows)


@lru_cache(maxsize=32)
def _structure(group: str | Rows) -> Group:
    return find_group(group) if isinstance(group, str) else Group("own", np.array(group))
