"""Samples of parities, for the tests of solvers."""

from __future__ import annotations

import numpy as np

from petridish.seeds import Words
from petridish.theory.pareto.solvers import Answer, Solver
from petridish.theory.pareto.solvers.sample import Bits


def rng_of(*seed: int) -> np.random.Generator:
    """Return the test's own generator."""
    return np.random.default_rng(seed)


def run(solver: Solver, inputs: Words, labels: Bits, n: int, k: int) -> Answer:
    """Solve with the solver's defaults."""
    extra = {"rng": rng_of(0)} if solver.random else {}
    return solver.solve(inputs, labels, n=n, k=k, **extra)
