"""The papers' experiments, by id."""

from __future__ import annotations

from petridish.experiment import Experiment
from petridish.naming import UserError, nearest
from petridish.papers.mechanisms import THEORY, TICKETS
from petridish.papers.pareto import CURVES, FRONTIER, SLICES, SPARSITY

EXPERIMENTS: dict[str, Experiment] = {
    experiment.id: experiment
    for experiment in (FRONTIER, SLICES, CURVES, SPARSITY, TICKETS, THEORY)
}


def find(name: str) -> Experiment:
    """Give the experiment called `name`; upper and lower case are one."""
    if name.upper() not in EXPERIMENTS:
        raise UserError(
            f"There is no experiment called {name!r}. {nearest(name, EXPERIMENTS)} "
            "A file of your own is named by its path, ending in .py."
        )
    return EXPERIMENTS[name.upper()]
