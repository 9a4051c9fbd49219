"""Adaptive allocation: seeds go where it is unclear on which side of ½ a cell's success lies.

A cell is looked at after a fixed series of numbers of seeds, taken in their order. It is settled
once the evidence against «success is ½» reaches 1/level: the likelihood ratio of Jeffreys'
mixture, B(s + ½, f + ½) / B(½, ½) · 2^(s + f), for s runs solved and f not. Under success ½ it is a
martingale of mean 1, so that it ever exceeds 1/level with probability at most `level`, however
often it is evaluated [Ville 1939; Robbins 1970]. A cell that stays unclear gets its full seeds. No
cell borrows from another: nothing is assumed of the frontier's shape, above all no monotonicity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, lgamma, log, pi
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.sweeps.allocation import Allocates, Search, Solved
from petridish.training import RunSpec, run_key

if TYPE_CHECKING:
    from petridish.sweeps.sweep import Sweep

LEVEL = 0.05  # probability that a cell whose success is exactly ½ is ever called settled


def evidence_against_half(solved: int, runs: int) -> float:
    """Return the logarithm of the mixture's likelihood ratio against a success of ½."""
    failed = runs - solved
    return lgamma(solved + 0.5) + lgamma(failed + 0.5) - lgamma(runs + 1) - log(pi) + runs * log(2)


def is_settled(solved: int, runs: int, *, level: float = LEVEL) -> bool:
    """Return whether it is clear on which side of ½ a cell's success lies."""
    return evidence_against_half(solved, runs) >= -log(level)


def evaluated_at(seeds: int, *, level: float = LEVEL) -> list[int]:
    """Return the numbers of seeds after which a cell is evaluated, up to its full number.

    The first is the least that can settle anything; each further one is half as many again.
    """
    first = next((n for n in range(1, seeds) if is_settled(0, n, level=level)), seeds)
    found = [first]
    while found[-1] < seeds:
        found.append(min(seeds, ceil(1.5 * found[-1])))
    return found


def seeds_wanted(outcomes: Sequence[bool | None], *, level: float = LEVEL) -> int:
    """Return how many of a cell's seeds are to be run, given what is known of them.

    Parameters
    ----------
    outcomes : sequence of bool or None
        Whether each seed's run was solved, in order; None where it has not been run.

    Returns
    -------
    int
        The first number of `evaluated_at` whose runs are not all there, or at which the cell is
        settled. What later seeds say plays no part, so that the answer does not depend on how the
        runs came to be there.
    """
    for number in evaluated_at(len(outcomes), level=level):
        seen = outcomes[:number]
        if None in seen or is_settled(sum(map(bool, seen)), number, level=level):
            return number
    return len(outcomes)


@dataclass(frozen=True)
class AtHalf(Allocates):
    """Further seeds only for cells whose success may lie on either side of ½.

    `level` is the probability that a cell whose success is exactly ½ is ever called settled.
    """

    name: ClassVar[str] = "at_half"

    level: float = LEVEL

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise UserError(f"AtHalf: level={self.level}. Give a probability between 0 and 1.")

    def check(self, sweep: Sweep) -> None:
        """Refuse cells that no run can solve."""
        cells = [spec for spec, _ in sweep.cells()]
        if endless := sum(spec.stop is None for spec in cells):
            raise UserError(
                "Adaptive allocation gives seeds where it is unclear on which side of ½ success "
                f"lies, and {endless} of the {len(cells)} settings have no stop rule by which a "
                "run would be solved. Leave --adaptive out, or set training.stop."
            )

    def search(self, sweep: Sweep) -> SeedSearch:
        """Lay the sweep out by cells."""
        return SeedSearch(self.level, sweep)


class SeedSearch(Search):
    """The cells of a sweep, each with its seeds in order."""

    def __init__(self, level: float, sweep: Sweep) -> None:
        self.level = level
        self.cells = [
            {run_key(each): each for each in (replace(spec, seed=seed) for seed in seeds)}
            for spec, seeds in sweep.cells()
        ]

    def wanted(self, solved: Solved) -> dict[str, RunSpec]:
        """Return the seeds that each cell lacks up to its next evaluation."""
        missing: dict[str, RunSpec] = {}
        for cell in self.cells:
            number = seeds_wanted([solved.get(key) for key in cell], level=self.level)
            first = islice(cell.items(), number)
            missing |= {key: spec for key, spec in first if key not in solved}
        return missing

    def settled(self, solved: Solved) -> int:
        """Count the cells whose success is known to lie above, or below, ½."""
        found = 0
        for cell in self.cells:
            outcomes = [solved.get(key) for key in cell]
            seen = outcomes[: seeds_wanted(outcomes, level=self.level)]
            whole = None not in seen
            found += whole and is_settled(sum(map(bool, seen)), len(seen), level=self.level)
        return found


def first_seeds(outcome: NDArray[np.float64], *, level: float = LEVEL) -> NDArray[np.bool_]:
    """Mark the runs of a finished grid that adaptive allocation would have made.

    `outcome` has the seed as its last axis: 1 for solved, 0 for not, NaN where none was run.
    """
    flat = outcome.reshape(-1, outcome.shape[-1])
    wanted = [
        seeds_wanted([None if np.isnan(run) else bool(run) for run in cell], level=level)
        for cell in flat
    ]
    made: NDArray[np.bool_] = np.arange(outcome.shape[-1]) < np.array(wanted)[:, None]
    return made.reshape(outcome.shape)
