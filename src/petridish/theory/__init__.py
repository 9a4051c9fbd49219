"""Theory as plain functions on numbers: what the papers prove, made to be computed and checked.

`fourier` and `majority` belong to no paper. `pareto` has PF's theory, whose functions can be
imported from here: exact population gradients, how likely good neurons are, what resources must at
least be, what the two upper bounds build (docs/theory.md), and classical solvers. `hidden` has HP's
(docs/theory-hidden.md), `features` the maximum margins of TH Ch. 7 (docs/theory-margins.md).
"""

from petridish.theory.majority import (
    half_coefficient,
    limit_weight,
    majority_coefficient,
    majority_weight,
    rho,
    step_coefficient,
)
from petridish.theory.pareto.bounds import (
    OverSparseSizes,
    ambiguity,
    least_parameters,
    least_samples,
    least_steps,
    lemma10_samples,
    most_success,
    n_parameters,
    resource_product,
    sq_bound,
    statistical_limit,
    theorem16_sizes,
)
from petridish.theory.pareto.gradients import (
    over_sparse_constants,
    population_gradient,
    under_sparse_constants,
)
from petridish.theory.pareto.neurons import (
    chance_of_good,
    chance_within,
    draws_for_good,
    good_chance,
    good_init_width,
    lemma7_bound,
    lemma15_width,
)
from petridish.theory.pareto.over_sparse import (
    least_error,
    least_hinge_loss,
    over_sparse_biases,
    printed_biases,
    second_layer,
)
from petridish.theory.pareto.recovery import (
    Slope,
    predicted_recovery,
    predicted_size,
    recovery_curve,
    recovery_slope,
    recovery_trials,
)
from petridish.theory.pareto.under_sparse import (
    UnderSparse,
    best_correlation,
    correlation_curve,
    untrained_correlation,
)

__all__ = [
    "OverSparseSizes",
    "Slope",
    "UnderSparse",
    "ambiguity",
    "best_correlation",
    "chance_of_good",
    "chance_within",
    "correlation_curve",
    "draws_for_good",
    "good_chance",
    "good_init_width",
    "half_coefficient",
    "least_error",
    "least_hinge_loss",
    "least_parameters",
    "least_samples",
    "least_steps",
    "lemma7_bound",
    "lemma10_samples",
    "lemma15_width",
    "limit_weight",
    "majority_coefficient",
    "majority_weight",
    "most_success",
    "n_parameters",
    "over_sparse_biases",
    "over_sparse_constants",
    "population_gradient",
    "predicted_recovery",
    "predicted_size",
    "printed_biases",
    "recovery_curve",
    "recovery_slope",
    "recovery_trials",
    "resource_product",
    "rho",
    "second_layer",
    "sq_bound",
    "statistical_limit",
    "step_coefficient",
    "theorem16_sizes",
    "under_sparse_constants",
    "untrained_correlation",
]
