"""The success frontier: the smallest sample from which on a width succeeds half of the time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.analysis.cells import Grid

Floats = NDArray[np.float64]


def frontier_index(success: NDArray[Any], *, target: float = 0.5) -> NDArray[np.int64]:
    """Give the first place along the last axis where success reaches `target`.

    The length of the axis where it never does: the frontier lies beyond the grid.
    """
    reached = success >= target
    first = np.argmax(reached, axis=-1)
    index: NDArray[np.int64] = np.where(reached.any(axis=-1), first, success.shape[-1])
    return index


def sample_sizes(columns: Sequence[float]) -> Floats:
    """Give the sample size of each frontier index; one step beyond the grid for its length."""
    finite = [m for m in columns if math.isfinite(m)]
    ratio = finite[-1] / finite[-2] if len(finite) > 1 else 2.0
    beyond = finite[-1] * ratio
    return np.array([m if math.isfinite(m) else beyond for m in columns] + [beyond])


def frontier_draws(counts: Grid, *, draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw frontiers that the counts allow, shape (draw, stratum, row).

    Each cell's success probability is drawn from its posterior under Jeffreys' prior,
    Beta(solved + ½, failed + ½), independently: no cell borrows from its neighbours, so that
    nothing is assumed about the frontier's shape. Intervals from it keep close to their nominal
    coverage for one probability [Brown, Cai & DasGupta 2001], also at 0 and at all solved.
    """
    shape = (draws, *counts.solved.shape)
    drawn = rng.beta(counts.solved + 0.5, counts.runs - counts.solved + 0.5, size=shape)
    return frontier_index(drawn)
