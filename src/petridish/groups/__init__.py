"""Finite groups: multiplication tables, conjugacy classes, real representations."""

from petridish.groups.families import (
    alternating,
    cyclic,
    dihedral,
    find_group,
    product,
    quaternion,
    symmetric,
)
from petridish.groups.irreps import Irrep, real_irreps
from petridish.groups.multiplication import Group

__all__ = [
    "Group",
    "Irrep",
    "alternating",
    "cyclic",
    "dihedral",
    "find_group",
    "product",
    "quaternion",
    "real_irreps",
    "symmetric",
]
