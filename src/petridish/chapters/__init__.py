"""The papers' experiments, by id."""

from __future__ import annotations

from petridish.chapters.features.experiments import ADDITION, CONSTRUCTIONS, PARITY
from petridish.chapters.features.group_margins import BEYOND, GROUPS
from petridish.chapters.hidden.experiments import convergence_times as hidden_times
from petridish.chapters.hidden.experiments import findings as hidden_findings
from petridish.chapters.hidden.experiments import small_transformer as hidden_transformer
from petridish.chapters.hidden.experiments import space as hidden_space
from petridish.chapters.hidden.experiments import theorems as hidden_theory
from petridish.chapters.hidden.experiments import training_curves as hidden_curves
from petridish.chapters.induction.distributions import MIXTURES
from petridish.chapters.induction.minimal import MINIMAL
from petridish.chapters.induction.more_states import MORE_STATES
from petridish.chapters.induction.orders import NGRAMS, ONE_LAYER
from petridish.chapters.induction.phases import LAYERS, PHASES
from petridish.chapters.induction.second_drop import SECOND_DROP
from petridish.chapters.induction.variants import VARIANTS
from petridish.chapters.inputs.centres import CENTRES
from petridish.chapters.inputs.experiments import METHODS
from petridish.chapters.inputs.first_steps import FIRST_TWO
from petridish.chapters.inputs.frontier import STRUCTURE
from petridish.chapters.inputs.image_clusters import IMAGES
from petridish.chapters.inputs.injected_images import OTHER_IMAGES
from petridish.chapters.inputs.interval_labels import INTERVALS
from petridish.chapters.inputs.lemmas import LEMMAS
from petridish.chapters.inputs.planes import PLANES
from petridish.chapters.inputs.residual_filters import FILTERS
from petridish.chapters.inputs.residual_students import RESIDUAL_STUDENTS
from petridish.chapters.inputs.students import STUDENTS
from petridish.chapters.inputs.varied_settings import VARIED
from petridish.chapters.pareto.experiments.findings import FINDINGS
from petridish.chapters.pareto.experiments.frontiers import CURVES, FRONTIER, SLICES, SPARSITY
from petridish.chapters.pareto.experiments.mechanisms import THEORY, TICKETS
from petridish.chapters.tables.experiments import DEFAULT, TABULAR
from petridish.chapters.tables.recipe_choices import CHOICES
from petridish.chapters.variables.bound_checks import BOUNDS
from petridish.chapters.variables.experiments import SAMPLES
from petridish.chapters.variables.functions import FUNCTIONS
from petridish.chapters.variables.inside import ATTENTION
from petridish.chapters.variables.parities import PARITIES
from petridish.errors import UserError, nearest
from petridish.experiment import Experiment

PARETO = (
    *(FRONTIER, SLICES, CURVES, SPARSITY, TICKETS, TABULAR, DEFAULT, CHOICES, THEORY),
    FINDINGS,
)
HIDDEN = (
    *(hidden_space.SPACE, hidden_curves.CURVES, hidden_times.SCALING, hidden_times.LUCK),
    *(hidden_times.STARTS, hidden_curves.PROGRESS, hidden_theory.GAPS, hidden_times.WIDTH),
    *(hidden_space.GROKKING, hidden_curves.NOISE, hidden_space.DEPTH, hidden_theory.DISJOINT),
    *(hidden_theory.ONE_STEP, hidden_findings.FINDINGS, hidden_transformer.SMALL_TRANSFORMER),
)
FEATURES = (ADDITION, PARITY, GROUPS, CONSTRUCTIONS, BEYOND)
INPUTS = (
    *(METHODS, INTERVALS, PLANES, CENTRES, IMAGES, STUDENTS, LEMMAS, STRUCTURE),
    *(VARIED, FILTERS, OTHER_IMAGES, FIRST_TWO, RESIDUAL_STUDENTS),
)
VARIABLES = (SAMPLES, ATTENTION, PARITIES, BOUNDS, FUNCTIONS)
INDUCTION = (
    *(PHASES, LAYERS, MINIMAL, MIXTURES, NGRAMS, ONE_LAYER, SECOND_DROP, MORE_STATES),
    VARIANTS,
)
EXPERIMENTS: dict[str, Experiment] = {
    experiment.id: experiment
    for experiment in (*PARETO, *HIDDEN, *FEATURES, *INPUTS, *INDUCTION, *VARIABLES)
}


def find(name: str) -> Experiment:
    """Return the experiment called `name`; upper and lower case are one."""
    if name.upper() not in EXPERIMENTS:
        chapter = name.upper().partition("-")[0]
        others = [known for known in EXPERIMENTS if known.partition("-")[0] == chapter]
        hint = f"Of {chapter} there are {', '.join(others)}." if others else ""
        raise UserError(
            f"There is no experiment called {name!r}. {hint or nearest(name, EXPERIMENTS)} "
            "A file of your own is named by its path, ending in .py."
        )
    found = EXPERIMENTS[name.upper()]
    return found.located() if found.located else found
