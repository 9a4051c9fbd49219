"""Classical solvers of the (n, k)-sparse parity problem, their costs, and the sample they need.

Each is a function `solve(inputs, labels, *, n, k, …)` that returns an `Answer`: `inputs` and
`labels` are a packed sample as `draw_parity` draws it, n and k its bits and relevant bits.
`SOLVERS` has them by name, with the formulas of their costs; `sample_cost` measures them, and
docs/reference/solvers.md in the repository compares them.
"""

from petridish.theory.pareto.solvers.costs import (
    decoder_success,
    elimination_samples,
    guess_success,
    information_limit,
)
from petridish.theory.pareto.solvers.exact import eliminate, guess, search
from petridish.theory.pareto.solvers.measure import (
    SOLVERS,
    Point,
    SampleCost,
    Solver,
    find_solver,
    sample_cost,
)
from petridish.theory.pareto.solvers.noisy import decode, regress, walsh_decode
from petridish.theory.pareto.solvers.sample import Answer, draw_parity

__all__ = [
    "SOLVERS",
    "Answer",
    "Point",
    "SampleCost",
    "Solver",
    "decode",
    "decoder_success",
    "draw_parity",
    "eliminate",
    "elimination_samples",
    "find_solver",
    "guess",
    "guess_success",
    "information_limit",
    "regress",
    "sample_cost",
    "search",
    "walsh_decode",
]
