r"""Irreducible representations over the reals, by orthogonal matrices.

They are found in the regular representation, in which G permutes its own elements by multiplication
from the left. Multiplications from the right commute with it, and the eigenspaces of a random
symmetric combination of them are irreducible pieces. How often an equivalent piece occurs depends
on what commutes with it: real numbers, complex numbers or quaternions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from petridish.groups.multiplication import Group, Places

Floats = NDArray[np.float64]
Kind = Literal["real", "complex", "quaternionic"]
KINDS: dict[int, Kind] = {1: "real", 2: "complex", 4: "quaternionic"}


@dataclass(frozen=True, eq=False)
class Irrep:
    r"""A real irreducible representation R of a group.

    Attributes
    ----------
    name : str
        "trivial", or the dimension with a letter where several share it: 4d_a, 4d_b.
    matrices : array, shape (|G|, d, d)
        Orthogonal, with :math:`R(a) R(b) = R(ab)`.
    kind : "real", "complex" or "quaternionic"
        What commutes with it. Over the complex numbers the first stays irreducible; the others fall
        into two halves, conjugate or equal.
    """

    name: str
    matrices: Floats
    kind: Kind

    @property
    def dimension(self) -> int:
        """The size d of the matrices."""
        return len(self.matrices[0])

    @cached_property
    def character(self) -> Floats:
        """The trace χ(g) of every element's matrix."""
        traces: Floats = np.einsum("gii->g", self.matrices)
        return traces

    @property
    def basis(self) -> Floats:
        """The functions on G that are entries of the matrices, shape (d², |G|) [TH §7.6.1]."""
        return self.matrices.reshape(len(self.matrices), -1).T


@lru_cache(maxsize=32)  # a margin asks for them several times
def real_irreps(group: Group) -> tuple[Irrep, ...]:
    """Find every real irreducible representation once: the trivial first, then by dimension."""
    pieces: list[tuple[Floats, Floats]] = []  # characters and matrices, all inequivalent
    for basis in _invariant_spaces(group):
        moved = basis[group.table[group.inverse]]  # row g: the basis after g has acted
        matrices = np.einsum("xi,gxj->gij", basis, moved)
        character = np.einsum("gii->g", matrices)
        if not any(abs(character @ known) > 0.5 * group.order for known, _ in pieces):
            pieces.append((character, matrices))
    # Rounded, so that the order does not depend on the last digits.
    pieces.sort(key=lambda piece: (len(piece[1][0]), tuple(-piece[0].round(6) + 0.0)))
    return _named(group, pieces)


def _invariant_spaces(group: Group) -> list[Floats]:
    """Cut the regular representation into irreducible pieces, each an orthonormal basis."""
    rng = np.random.default_rng(0)
    chances = rng.normal(size=group.order)
    matrix = chances[group.table[group.inverse]]  # (x, y) of a function of x⁻¹y: from the right
    values, vectors = np.linalg.eigh(matrix + matrix.T)
    gaps = [place for place, (a, b) in enumerate(pairwise(values), 1) if b - a > 1e-6]
    return np.split(vectors, gaps, axis=1)


def _named(group: Group, pieces: list[tuple[Floats, Floats]]) -> tuple[Irrep, ...]:
    kinds = [KINDS[round(float(chi @ chi) / group.order)] for chi, _ in pieces]
    trivial = [bool(np.allclose(chi, 1)) for chi, _ in pieces]
    # Each representation was found once: their matrix entries span all functions on G.
    spanned = sum(
        matrices.shape[1] ** 2 // {"real": 1, "complex": 2, "quaternionic": 4}[kind]
        for kind, (_, matrices) in zip(kinds, pieces, strict=True)
    )
    if spanned != group.order or not trivial[0]:
        raise AssertionError(f"{group.name}: found representations that span {spanned} functions")
    several = Counter(m.shape[1] for (_, m), one in zip(pieces, trivial, strict=True) if not one)
    letters: Counter[int] = Counter()
    found = []
    for (_, matrices), kind, one in zip(pieces, kinds, trivial, strict=True):
        size = matrices.shape[1]
        name = "trivial" if one else f"{size}d"
        if not one and several[size] > 1:
            name += f"_{_letter(letters[size])}"
            letters[size] += 1
        found.append(Irrep(name, matrices, kind))
    return tuple(found)


def _letter(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else str(place + 1)


def class_sums(irrep: Irrep, classes: tuple[Places, ...]) -> Floats:
    r"""Return :math:`\sum_{g \in C} R(g)` for each conjugacy class, shape (class, d, d).

    Of real kind it is :math:`|C| \chi(C) / d` times the identity: entries off the diagonal are 0,
    those on it equal [TH Lemma D.10 (3), (4)].
    """
    return np.stack([irrep.matrices[members].sum(axis=0) for members in classes])


def on_classes(irreps: tuple[Irrep, ...], classes: tuple[Places, ...]) -> Floats:
    """Return the character table: representations by rows, conjugacy classes by columns."""
    first = [members[0] for members in classes]
    return np.stack([irrep.character[first] for irrep in irreps])
