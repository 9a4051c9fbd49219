"""Theory as plain functions on numbers: what the papers prove, made to be computed and checked.

`majority` and `gradients` give exact Fourier coefficients and population gradients, `neurons` how
likely good neurons are, `bounds` what resources must at least be, `over_sparse` and `under_sparse`
what the two upper bounds build. docs/theory.md says how each is checked, and where a text fails.
HP's theory is in modules of its own, to be named in full: `fourier` and `gaps`, `polynet_flow` and
`polynet_bounds`, `one_step` (docs/theory-hidden.md).
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
