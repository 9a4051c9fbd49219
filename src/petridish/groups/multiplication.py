"""A finite group as its multiplication table."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from petridish.errors import UserError

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Group:
    """A finite group G, given by its table [TH §7.6].

    Made from any table of whole numbers, which is checked: with (0, 1) and (1, 0) as rows it is the
    group of two elements.

    Attributes
    ----------
    name : str
        What it is called, such as S4.
    table : array, shape (|G|, |G|)
        The place of ab at row a, column b.
    elements : tuple of str
        Names of the elements, for people; their places by default.
    """

    name: str
    table: Places
    elements: tuple[str, ...] = field(default=())

    def __init__(self, name: str, table: ArrayLike, elements: tuple[str, ...] = ()) -> None:
        try:
            given = np.asarray(table)
        except ValueError:  # rows of several lengths
            raise UserError(
                f"The rows of the table of {name} differ in length. Give as many rows as columns."
            ) from None
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "table", _checked(name, given, elements))
        names = elements or tuple(map(str, range(len(given))))
        object.__setattr__(self, "elements", names)
        self.table.setflags(write=False)

    @property
    def order(self) -> int:
        """The number of elements |G|."""
        return len(self.table)

    @cached_property
    def identity(self) -> int:
        """The place of e."""
        return int(_identities(self.table)[0])

    @cached_property
    def inverse(self) -> Places:
        """The place of each element's inverse."""
        places: Places = np.argmax(self.table == self.identity, axis=1)
        return places

    @cached_property
    def classes(self) -> tuple[Places, ...]:
        """The conjugacy classes {gag⁻¹}, that of e first, then by their smallest element."""
        conjugates = self.table[self.table, self.inverse[:, None]]  # row g, column a: gag⁻¹
        found = {tuple(np.unique(column)) for column in conjugates.T}
        ordered = sorted(found, key=lambda members: (self.identity not in members, members))
        return tuple(np.array(members) for members in ordered)


def _checked(name: str, table: NDArray[Any], elements: tuple[str, ...]) -> Places:
    """Refuse a table that is not a group's, naming the elements that show it."""
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
        raise UserError(
            f"The table of {name} has the shape {table.shape}. Give as many rows as columns, at "
            "least one."
        )
    order = len(table)
    if elements and (len(elements) != order or len(set(elements)) != order):
        raise UserError(
            f"{name} has {order} elements, but {len(set(elements))} different names for them. Name "
            "each, or none."
        )
    if not np.issubdtype(table.dtype, np.integer):
        raise UserError(f"The table of {name} holds {table.dtype}. Give whole numbers.")
    names = elements or tuple(map(str, range(order)))
    outside = np.argwhere((table < 0) | (table >= order))
    if len(outside):
        a, b = outside[0]
        raise UserError(
            f"{name} is not closed: {names[a]} · {names[b]} is {table[a, b]}, but its elements are "
            f"0 to {order - 1}. Give a table of these."
        )
    places = table.astype(np.intp)
    if not len(_identities(places)):
        raise UserError(
            f"{name} has no identity: no element e has ea = ae = a for every a. Mend the table."
        )
    identity = int(_identities(places)[0])
    both = (places == identity) & (places == identity).T
    if not both.any(axis=1).all():
        lonely = int(np.argmin(both.any(axis=1)))
        raise UserError(
            f"{name} is no group: {names[lonely]} has no inverse, no b with {names[lonely]} · b = "
            f"b · {names[lonely]} = {names[identity]}. Mend the table."
        )
    # If (ab)c = a(bc) for generators b it holds for their products: Light's test.
    for b in _generators(places):
        wrong = np.argwhere(places[places[:, b]] != places[:, places[b]])  # at row a, column c
        if len(wrong):
            a, c = wrong[0]
            x, y, z = names[a], names[b], names[c]
            raise UserError(
                f"{name} is not associative: ({x} · {y}) · {z} is "
                f"{names[places[places[a, b], c]]}, but {x} · ({y} · {z}) is "
                f"{names[places[a, places[b, c]]]}. Mend the table."
            )
    return places


def _identities(table: Places) -> Places:
    everyone = np.arange(len(table))
    neutral = (table == everyone).all(axis=1) & (everyone == table.T).all(axis=1)
    return np.flatnonzero(neutral)


def _generators(table: Places) -> list[int]:
    """Return elements that generate the group: each is the first that those before do not."""
    chosen: list[int] = []
    made = np.zeros(len(table), np.bool_)
    while not made.all():
        chosen.append(int(np.argmin(made)))
        made[chosen[-1]] = True
        while True:
            members = np.flatnonzero(made)
            made[table[np.ix_(members, members)]] = True
            if made.sum() == len(members):
                break
    return chosen
