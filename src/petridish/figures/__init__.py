"""Drawings in one style, functions of tables. matplotlib is imported when something is drawn."""

from petridish.figures.curves import frontier_and_curves, training_curves
from petridish.figures.heat_map import class_map, over_sparse_map, success_heat_map
from petridish.figures.mixtures import mixture_front
from petridish.figures.slices import success_slices
from petridish.figures.sparsity import sparsity_curves
from petridish.figures.style import NothingToDraw, save
from petridish.figures.theorems import bounds_and_solvers, recovery_curves
from petridish.figures.tickets import ticket_curves

__all__ = [
    "NothingToDraw",
    "bounds_and_solvers",
    "class_map",
    "frontier_and_curves",
    "mixture_front",
    "over_sparse_map",
    "recovery_curves",
    "save",
    "sparsity_curves",
    "success_heat_map",
    "success_slices",
    "ticket_curves",
    "training_curves",
]
