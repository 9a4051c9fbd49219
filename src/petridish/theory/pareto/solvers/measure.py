"""The solvers by name, and the sample size that each needs, measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from petridish.errors import UserError, check_whole, nearest
from petridish.theory.checks import check_size
from petridish.theory.pareto.solvers import costs
from petridish.theory.pareto.solvers.exact import eliminate, guess, search
from petridish.theory.pareto.solvers.noisy import decode, regress, walsh_decode
from petridish.theory.pareto.solvers.sample import Answer, check_noise, draw_parity
from petridish.theory.smallest import first_true


@dataclass(frozen=True)
class Solver:
    """A classical solver and what is known of its costs.

    Attributes
    ----------
    name : str
        Its key in `SOLVERS`.
    solve : callable
        `solve(inputs, labels, *, n, k, …)` returns an `Answer`; further keywords are its options.
    samples : callable
        `samples(n, k, *, noise=0.0, …)`: the m at which half of the samples are solved.
    operations : callable
        `operations(n, k, m, …)`: expected 64-bit word operations.
    tolerates_noise : bool
        Whether it can still find S where a few labels are flipped.
    random : bool
        Whether `solve` draws, and wants the keyword `rng`.
    """

    name: str
    solve: Callable[..., Answer]
    samples: Callable[..., float]
    operations: Callable[..., float]
    tolerates_noise: bool = False
    random: bool = False


_ALL = (
    Solver("elimination", eliminate, costs.elimination_samples, costs.elimination_operations),
    Solver("exhaustive", search, costs.search_samples, costs.search_operations),
    Solver("guessing", guess, costs.guess_samples, costs.guess_operations, random=True),
    *(
        Solver(name, solve, costs.decoder_samples, operations, tolerates_noise=True)
        for name, solve, operations in (
            ("decoder", decode, costs.decoder_operations),
            ("walsh", walsh_decode, costs.walsh_operations),  # the same decoder by another way
            ("regression", regress, costs.regression_operations),  # close to it while m ≪ C(n, k)
        )
    ),
)
SOLVERS: dict[str, Solver] = {solver.name: solver for solver in _ALL}


def find_solver(name: str) -> Solver:
    """Return the solver called `name`."""
    if name not in SOLVERS:
        raise UserError(f"There is no solver called {name!r}. {nearest(name, SOLVERS)}")
    return SOLVERS[name]


@dataclass(frozen=True)
class Point:
    """How often a solver found S at one sample size, over `trials` parities, and its cost.

    `operations` and `seconds` are medians over the trials, solved or not.
    """

    m: int
    solved: int
    trials: int
    operations: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class SampleCost:
    """The smallest sample at which a solver finds S in at least half of the trials.

    Attributes
    ----------
    solver : str
        Its name.
    n, k, noise
        The problem.
    m50 : int, optional
        The smallest m; None if there was none among those tried.
    curve : tuple of Point
        All sample sizes that were tried, rising.
    """

    solver: str
    n: int
    k: int
    noise: float
    m50: int | None
    curve: tuple[Point, ...]

    @property
    def at_m50(self) -> Point | None:
        """The point at m50, with the operations and seconds there."""
        return next((point for point in self.curve if point.m == self.m50), None)


def sample_cost(
    solver: Solver | str,
    n: int,
    k: int,
    *,
    trials: int,
    rng: np.random.Generator,
    noise: float = 0.0,
    sizes: Sequence[int] | None = None,
    largest: int = 2**12,
    **options: Any,
) -> SampleCost:
    """Measure the smallest m at which at least half of the trials find S.

    A trial draws a parity and one endless sample, of which its sample of size m is the beginning.
    So for a solver that answers as soon as one set is left (elimination, exhaustive search) the
    success can only grow with m.

    Parameters
    ----------
    solver : Solver or str
        A solver, or its name.
    n, k : int
        Bits and relevant bits.
    trials : int
        Parities drawn; the same at every m.
    rng : numpy Generator
        Seeds the trials.
    noise : float, default=0.0
        Probability that a label is flipped.
    sizes : sequence of int, optional
        A grid of sample sizes, all tried; m50 is the smallest of them with half solved. Without it
        m is doubled until half are solved, and then bisected: about 2 log2 m50 sizes.
    largest : int
        The largest m that is tried.
    **options
        Options of the solver, such as the `budget` of guessing.

    Returns
    -------
    cost : SampleCost
        m50, and the curve of all sizes tried.
    """
    solver = find_solver(solver) if isinstance(solver, str) else solver
    check_size("sample_cost", n, k)
    check_whole("sample_cost", 1, trials=trials, largest=largest)
    check_noise("sample_cost", noise)
    if noise and not solver.tolerates_noise:
        tolerant = [name for name, other in SOLVERS.items() if other.tolerates_noise]
        raise UserError(
            f"sample_cost: noise={noise}, but {solver.name} needs labels without noise. "
            f"Give noise=0, or take one of {', '.join(tolerant)}."
        )
    seeds = rng.integers(2**63, size=trials).tolist()
    points: dict[int, Point] = {}

    def solves_half(m: int) -> bool:
        points[m] = _try(solver, n, k, m, noise=noise, seeds=seeds, options=options)
        return 2 * points[m].solved >= trials

    if sizes is None:
        m50 = first_true(solves_half, largest=largest)
    else:
        m50 = min((m for m in sizes if solves_half(m)), default=None)
    curve = tuple(points[m] for m in sorted(points))
    return SampleCost(solver=solver.name, n=n, k=k, noise=noise, m50=m50, curve=curve)


def _try(
    solver: Solver,
    n: int,
    k: int,
    m: int,
    *,
    noise: float,
    seeds: list[int],
    options: dict[str, Any],
) -> Point:
    solved, operations, seconds = 0, [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        inputs, labels, support = draw_parity(n, k, m, rng, noise=noise)
        extra = {**options, "rng": rng} if solver.random else options
        started = perf_counter()
        answer = solver.solve(inputs, labels, n=n, k=k, **extra)
        seconds.append(perf_counter() - started)
        operations.append(answer.operations)
        solved += answer.support == support
    return Point(m, solved, len(seeds), median(operations), median(seconds))
