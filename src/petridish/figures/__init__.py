"""Drawings in one style, functions of tables. matplotlib is imported when something is drawn."""

from petridish.figures.curves import frontier_and_curves, training_curves
from petridish.figures.heat_map import class_map, success_heat_map
from petridish.figures.mixture_front import mixture_front
from petridish.figures.outcome_map import outcome_map
from petridish.figures.slices import success_slices
from petridish.figures.style import NothingToDraw, save

__all__ = [
    "NothingToDraw",
    "class_map",
    "frontier_and_curves",
    "mixture_front",
    "outcome_map",
    "save",
    "success_heat_map",
    "success_slices",
    "training_curves",
]
