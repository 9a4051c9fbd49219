"""The success frontier: the smallest sample at which a width succeeds half of the time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.rules.cells import Grid
from petridish.sweeps.adaptive import first_seeds

Floats = NDArray[np.float64]


def frontier_index(success: NDArray[Any], *, target: float = 0.5) -> NDArray[np.int64]:
    """Return the first place along the last axis where success reaches `target`.

    The length of the axis where it never does: the frontier lies beyond the grid.
    """
    reached = success >= target
    first = np.argmax(reached, axis=-1)
    index: NDArray[np.int64] = np.where(reached.any(axis=-1), first, success.shape[-1])
    return index


def replayed_frontiers(counts: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the frontier of all runs, and of those that adaptive allocation would have made."""
    made = first_seeds(counts.outcome)
    with np.errstate(invalid="ignore"):
        whole = np.nan_to_num(counts.solved / counts.runs)
    kept = np.where(made, counts.outcome, np.nan)
    part = np.nansum(kept, axis=-1) / np.maximum((~np.isnan(kept)).sum(axis=-1), 1)
    return frontier_index(whole), frontier_index(part)


def sample_sizes(columns: Sequence[float]) -> Floats:
    """Return the sample size of each frontier index; one step beyond the grid for its length."""
    finite = [m for m in columns if math.isfinite(m)]
    ratio = finite[-1] / finite[-2] if len(finite) > 1 else 2.0
    beyond = finite[-1] * ratio
    return np.array([m if math.isfinite(m) else beyond for m in columns] + [beyond])


def frontier_draws(counts: Grid, *, draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw frontiers that the runs allow, shape (draw, stratum, row).

    Seeds are weighed at random (Exp(1) each, a Bayesian bootstrap), the same in all cells, because
    the cells of one seed share its data; and each cell adds Gamma(½) to its solved and to its
    failed weight. A cell alone then has exactly Jeffreys' posterior, Beta(solved + ½, failed + ½),
    whose intervals keep close to their coverage also where all runs succeed or none
    [Brown, Cai & DasGupta 2001]. No cell borrows from its neighbours: nothing is assumed about the
    frontier's shape. A cell may lack seeds: a posterior does not ask why no more were run.
    """
    shape = counts.outcome.shape
    flat = counts.outcome.reshape(-1, shape[-1])  # (cell, seed)
    solved_runs, failed_runs = np.nan_to_num(flat).T, np.nan_to_num(1 - flat).T
    pieces = []
    piece = max(1, 2_000_000 // shape[-1])  # draws at a time, for memory's sake
    for start in range(0, draws, piece):
        size = min(piece, draws - start)
        weights = rng.standard_exponential((size, shape[-1]))
        solved = weights @ solved_runs + rng.gamma(0.5, size=(size, len(flat)))
        failed = weights @ failed_runs + rng.gamma(0.5, size=(size, len(flat)))
        success = solved / (solved + failed)
        pieces.append(frontier_index(success.reshape(size, *shape[:-1])))
    return np.concatenate(pieces)
