"""Well-known groups, and how they are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import permutations
from math import factorial, prod

import numpy as np

from petridish.errors import UserError, check_whole
from petridish.groups.multiplication import Group

MOST = 720  # elements: the table of a larger group is checked for minutes
Permutation = tuple[int, ...]


def cyclic(n: int) -> Group:
    """Return the cyclic group Z_n: addition modulo n."""
    check_whole("cyclic", 1, n=n)
    _check_order(f"Z{n}", n)
    places = np.arange(n)
    return Group(f"Z{n}", (places[:, None] + places) % n)


def dihedral(n: int) -> Group:
    """Return the dihedral group D_n of 2n elements: the symmetries of a polygon with n corners."""
    check_whole("dihedral", 1, n=n)
    _check_order(f"D{n}", 2 * n)
    turn, flip = np.arange(2 * n) % n, np.arange(2 * n) // n
    # The element of turn r and flip f sends x to r + (-1)^f x.
    turns = (turn[:, None] + np.where(flip[:, None], -turn, turn)) % n
    flips = flip[:, None] ^ flip
    rotations = ["e", "r", *(f"r{power}" for power in range(2, n))][:n]
    names = (*rotations, *(f"{r}s" if r != "e" else "s" for r in rotations))
    return Group(f"D{n}", turns + n * flips, names)


def symmetric(n: int) -> Group:
    """Return the symmetric group S_n: all permutations of n things; ab does b first."""
    check_whole("symmetric", 1, n=n)
    _check_order(f"S{n}", factorial(min(n, 20)))
    return _of_permutations(f"S{n}", list(permutations(range(n))))


def alternating(n: int) -> Group:
    """Return the alternating group A_n: the even permutations of n things."""
    check_whole("alternating", 1, n=n)
    _check_order(f"A{n}", factorial(min(n, 20)) // 2)
    return _of_permutations(f"A{n}", [p for p in permutations(range(n)) if _is_even(p)])


def quaternion() -> Group:
    """Return the quaternion group Q8: ±1, ±i, ±j, ±k."""
    units = np.array(
        [  # of 1, i, j, k, as signed places: the product of rows and columns
            [(1, 0), (1, 1), (1, 2), (1, 3)],
            [(1, 1), (-1, 0), (1, 3), (-1, 2)],
            [(1, 2), (-1, 3), (-1, 0), (1, 1)],
            [(1, 3), (1, 2), (-1, 1), (-1, 0)],
        ]
    )
    unit, minus = np.arange(8) % 4, np.arange(8) // 4
    sign, place = np.moveaxis(units[unit[:, None], unit], -1, 0)
    minuses = (minus[:, None] + minus + (sign < 0)) % 2
    names = ("1", "i", "j", "k")
    return Group("Q8", place + 4 * minuses, (*names, *(f"-{name}" for name in names)))


def product(*factors: Group) -> Group:
    """Return the direct product of groups: pairs of elements, multiplied one by one."""
    if not factors:
        raise UserError("product: no group was given. Give at least one.")
    name = "x".join(group.name for group in factors)
    _check_order(name, prod(group.order for group in factors))
    whole = factors[0]
    for group in factors[1:]:
        rows, columns = np.divmod(np.arange(whole.order * group.order), group.order)
        table = group.order * whole.table[rows[:, None], rows]
        table = table + group.table[columns[:, None], columns]
        names = tuple(f"{a},{b}" for a in whole.elements for b in group.elements)
        whole = Group(name, table, names)
    return whole


FAMILIES: dict[str, Callable[[int], Group]] = {
    "Z": cyclic,
    "D": dihedral,
    "S": symmetric,
    "A": alternating,
}


def find_group(name: str) -> Group:
    """Find a group by its name: Z71, D4 (of 8 elements), S5, A4, Q8, or a product such as Z2xS3."""
    factors = [_find_one(part, name) for part in name.split("x")]
    return factors[0] if len(factors) == 1 else product(*factors)


def _find_one(part: str, whole: str) -> Group:
    if part == "Q8":
        return quaternion()
    written = re.fullmatch(r"([ZDSA])([1-9][0-9]{0,5})", part)
    if written is None:
        raise UserError(
            f"There is no group called {whole!r}. Write Z71, D4 (the symmetries of a square), S5, "
            "A4, Q8, or a product such as Z2xS3."
        )
    return FAMILIES[written[1]](int(written[2]))


def _of_permutations(name: str, members: Sequence[Permutation]) -> Group:
    images = np.array(members)  # (member, thing)
    digits = len(images[0]) ** np.arange(len(images[0]))
    codes = images @ digits  # one number per permutation
    order = np.argsort(codes)
    products = images[:, images] @ digits  # of a and b: i goes to a(b(i))
    table = order[np.searchsorted(codes, products, sorter=order)]
    return Group(name, table, tuple(map(_cycles, members)))


def _cycles(permutation: Permutation) -> str:
    """Write a permutation in cycles, of things from 1 on: (1 2)(3 4)."""
    seen: set[int] = set()
    text = ""
    for first in range(len(permutation)):
        cycle, at = [], first
        while at not in seen:
            seen.add(at)
            cycle.append(str(at + 1))
            at = permutation[at]
        if len(cycle) > 1:
            text += f"({' '.join(cycle)})"
    return text or "e"


def _is_even(permutation: Permutation) -> bool:
    pairs = ((a, b) for at, b in enumerate(permutation) for a in permutation[:at])
    return sum(a > b for a, b in pairs) % 2 == 0


def _check_order(name: str, order: int) -> None:
    if order > MOST:
        raise UserError(
            f"{name} has {order if order < 10**12 else 'very many'} elements. Give a group of at "
            f"most {MOST}."
        )
