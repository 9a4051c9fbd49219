"""The papers' experiments, by id."""

from __future__ import annotations

from petridish.chapters.features.experiments import ADDITION, CONSTRUCTIONS, GROUPS, PARITY
from petridish.chapters.hidden.experiments import curves as hidden_curves
from petridish.chapters.hidden.experiments import space as hidden_space
from petridish.chapters.hidden.experiments import theory as hidden_theory
from petridish.chapters.hidden.experiments import times as hidden_times
from petridish.chapters.induction.experiments import PHASES
from petridish.chapters.inputs.experiments import METHODS
from petridish.chapters.pareto.experiments.frontiers import CURVES, FRONTIER, SLICES, SPARSITY
from petridish.chapters.pareto.experiments.mechanisms import THEORY, TICKETS
from petridish.chapters.tables.experiments import DEFAULT, TABULAR
from petridish.chapters.variables.experiments import SAMPLES
from petridish.errors import UserError, nearest
from petridish.experiment import Experiment

PARETO = (FRONTIER, SLICES, CURVES, SPARSITY, TICKETS, TABULAR, DEFAULT, THEORY)
HIDDEN = (
    *(hidden_space.SPACE, hidden_curves.CURVES, hidden_times.SCALING, hidden_times.LUCK),
    *(hidden_times.STARTS, hidden_curves.PROGRESS, hidden_theory.GAPS, hidden_times.WIDTH),
    *(hidden_space.GROKKING, hidden_curves.NOISE, hidden_space.DEPTH, hidden_theory.DISJOINT),
    hidden_theory.ONE_STEP,
)
FEATURES = (ADDITION, PARITY, GROUPS, CONSTRUCTIONS)
PILOTS = (PHASES, METHODS, SAMPLES)
"""The first experiments of chapters that are yet to come, at smoke scale alone."""
EXPERIMENTS: dict[str, Experiment] = {
    experiment.id: experiment for experiment in (*PARETO, *HIDDEN, *FEATURES, *PILOTS)
}


def find(name: str) -> Experiment:
    """Give the experiment called `name`; upper and lower case are one."""
    if name.upper() not in EXPERIMENTS:
        raise UserError(
            f"There is no experiment called {name!r}. {nearest(name, EXPERIMENTS)} "
            "A file of your own is named by its path, ending in .py."
        )
    found = EXPERIMENTS[name.upper()]
    return found.located() if found.located else found
