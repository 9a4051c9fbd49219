r"""Spectra of functions on a group: how much of one lies in each representation [TH §7.4, §7.6].

The entries of an irreducible representation span a space of functions on G; all of these spaces are
orthogonal, and together they are everything. On a cyclic group they are the frequencies.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from petridish.groups.irreps import real_irreps
from petridish.groups.multiplication import Group

Floats = NDArray[np.float64]


def is_modular(group: Group) -> bool:
    """Whether the group is addition modulo |G|, its elements in order: then it has frequencies."""
    places = np.arange(group.order)
    return bool((group.table == (places[:, None] + places) % group.order).all())


def feature_names(group: Group) -> tuple[str, ...]:
    """Name the features: frequencies from 0 on, or representations, the trivial first."""
    if is_modular(group):
        return tuple(map(str, range(group.order // 2 + 1)))
    return tuple(irrep.name for irrep in real_irreps(group))


def power(group: Group, functions: NDArray[np.floating]) -> Floats:
    r"""Return the squared norm of functions' parts in each feature, shape (…, feature).

    `functions` has the shape (…, |G|). The powers of one function add up to its squared norm; a
    real function's frequencies j and -j are one.
    """
    values = np.asarray(functions, np.float64)
    if is_modular(group):
        size = group.order
        squares: Floats = np.abs(np.fft.rfft(values)) ** 2 / size
        squares[..., 1 : (size + 1) // 2] *= 2
        return squares
    parts = [np.square(values @ basis).sum(axis=-1) for basis in _bases(group)]
    return np.stack(parts, axis=-1)


@lru_cache(maxsize=8)
def _bases(group: Group) -> tuple[Floats, ...]:
    """Return an orthonormal basis of each representation's functions, shape (|G|, dimension)."""
    found = []
    for irrep in real_irreps(group):
        left, sizes, _ = np.linalg.svd(irrep.basis.T, full_matrices=False)
        # Of complex or quaternionic kind, ½ or ¾ of the entries follow from the others.
        found.append(left[:, sizes > 1e-6 * sizes[0]])
    return tuple(found)


def largest_share(group: Group, functions: NDArray[np.floating]) -> Floats:
    r"""Return the maximum normalised power :math:`\max_i |\hat u[i]|^2 / \sum_j |\hat u[j]|^2`.

    It is 1 for a function of one frequency or representation [TH Fig. 7.4, 7.6]; NaN for 0.
    """
    parts = power(group, functions)
    with np.errstate(invalid="ignore"):
        share: Floats = parts.max(axis=-1) / parts.sum(axis=-1)
    return share
