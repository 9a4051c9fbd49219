"""Drawings in one style, functions of tables. matplotlib is imported when something is drawn."""

from petridish.figures.curves import training_curves
from petridish.figures.heat_map import success_heat_map
from petridish.figures.mixtures import mixture_front
from petridish.figures.style import save

__all__ = ["mixture_front", "save", "success_heat_map", "training_curves"]
