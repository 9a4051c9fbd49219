"""Adaptive allocation: seeds go where it is unclear on which side of ½ a cell's success lies.

A cell is looked at after a fixed series of numbers of seeds, taken in their order. It is settled
once the evidence against «success is ½» reaches 1/level: the likelihood ratio of Jeffreys'
mixture, B(s + ½, f + ½) / B(½, ½) · 2^(s + f), for s runs solved and f not. Under success ½ it is a
martingale of mean 1, so that it ever exceeds 1/level with probability at most `level`, however
often one looks [Ville 1939; Robbins 1970]. A cell that stays unclear gets its full seeds. No cell
borrows from another: nothing is assumed of the frontier's shape, above all no monotonicity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, lgamma, log, pi
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.sweeps.sweep import Sweep
from petridish.training import RunSpec, run_key

if TYPE_CHECKING:
    import polars as pl

LEVEL = 0.05  # probability that a cell whose success is exactly ½ is ever called settled


def evidence_against_half(solved: int, runs: int) -> float:
    """Give the logarithm of the mixture's likelihood ratio against a success of ½."""
    failed = runs - solved
    return lgamma(solved + 0.5) + lgamma(failed + 0.5) - lgamma(runs + 1) - log(pi) + runs * log(2)


def is_settled(solved: int, runs: int, *, level: float = LEVEL) -> bool:
    """Say whether it is clear on which side of ½ a cell's success lies."""
    return evidence_against_half(solved, runs) >= -log(level)


def looks(seeds: int, *, level: float = LEVEL) -> list[int]:
    """Give the numbers of seeds after which a cell is looked at, up to its full number.

    The first is the least that can settle anything; each further one is half as many again.
    """
    first = next((n for n in range(1, seeds) if is_settled(0, n, level=level)), seeds)
    found = [first]
    while found[-1] < seeds:
        found.append(min(seeds, ceil(1.5 * found[-1])))
    return found


def seeds_wanted(outcomes: Sequence[bool | None], *, level: float = LEVEL) -> int:
    """Say how many of a cell's seeds are to be run, given what is known of them.

    Parameters
    ----------
    outcomes : sequence of bool or None
        Whether each seed's run was solved, in order; None where it has not been run.

    Returns
    -------
    int
        The next number of looks whose runs are not all there, or that at which the cell was
        settled. What later seeds say plays no part, so that the answer does not depend on how the
        runs came to be there.
    """
    for number in looks(len(outcomes), level=level):
        seen = outcomes[:number]
        if None in seen or is_settled(sum(map(bool, seen)), number, level=level):
            return number
    return len(outcomes)


@dataclass(frozen=True)
class Allocation:
    """What adaptive allocation wants next: the runs missing, and how many cells are settled."""

    missing: dict[str, RunSpec]
    cells: int
    settled: int


def allocate(sweep: Sweep, table: pl.DataFrame, *, level: float = LEVEL) -> Allocation:
    """Give the runs that a sweep's cells want next, by key, from what is stored."""
    solved = dict(zip(table["key"], table["outcome"] == "SOLVED", strict=True))
    missing: dict[str, RunSpec] = {}
    cells = settled = 0
    for specs in _by_cell(sweep):
        keys = [run_key(spec) for spec in specs]
        outcomes = [solved.get(key) for key in keys]
        wanted = seeds_wanted(outcomes, level=level)
        lacking = {
            key: spec
            for key, spec in zip(keys[:wanted], specs, strict=False)
            if solved.get(key) is None
        }
        missing |= lacking
        cells += 1
        solved_here = sum(map(bool, outcomes[:wanted]))
        settled += not lacking and is_settled(solved_here, wanted, level=level)
    return Allocation(missing, cells, settled)


def _by_cell(sweep: Sweep) -> Iterator[list[RunSpec]]:
    for spec, seeds in sweep.cells():
        yield [replace(spec, seed=seed) for seed in seeds]


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


@dataclass(frozen=True)
class Replay:
    """What adaptive allocation would have spent on a sweep, and what all its seeds cost.

    `estimated` counts the runs that are not stored: they are taken to cost what the stored runs of
    their cell cost on average.
    """

    runs: int
    all_runs: int
    model_steps: int
    all_model_steps: int
    estimated: int

    @property
    def share(self) -> float:
        """Model-steps of the allocation, as a share of the whole sweep's."""
        return self.model_steps / self.all_model_steps


def replay(sweep: Sweep, table: pl.DataFrame, *, level: float = LEVEL) -> Replay | None:
    """Replay the allocation on stored runs; None where a cell lacks runs that it would want."""
    stored = table.select("key", "outcome", "steps").iter_rows()
    known = {key: (outcome == "SOLVED", steps) for key, outcome, steps in stored}
    runs = all_runs = spent = estimated = 0
    whole = 0.0
    for specs in _by_cell(sweep):
        found = [known.get(run_key(spec)) for spec in specs]
        wanted = seeds_wanted([run and run[0] for run in found], level=level)
        made = [run[1] for run in found[:wanted] if run]
        if len(made) < wanted:
            return None
        steps = [run[1] for run in found if run]
        runs += wanted
        all_runs += len(specs)
        spent += sum(made)
        whole += sum(steps) / len(steps) * len(specs)
        estimated += len(specs) - len(steps)
    return Replay(runs, all_runs, spent, round(whole), estimated)
