"""Means of several methods over the trials that they share, and sample sizes in classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from petridish.statistics.paired import was_made

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
EDGES = (0.0, 100.0, 300.0, 1_000.0, 3_000.0, 10_000.0, 30_000.0, 100_000.0, math.inf)


def means_of_shared_trials(error: Floats, owner: Places) -> tuple[Places, Floats]:
    """Compare the methods that have a value in every cell.

    Parameters
    ----------
    error : array, shape (cell, method, trial)
        NaN where none was run.
    owner : array, shape (cell,)
        The task of each cell.

    Returns
    -------
    there : array
        Places of the methods that were run in all cells.
    means : array, shape (task, method)
        Over the trials that all of these have in a cell (each over its own where they share none),
        then over the cells of the task; tasks in order.
    """
    there = np.flatnonzero(was_made(error).all(axis=0))
    tasks = np.unique(owner)
    if not len(there):
        return there, np.empty((len(tasks), 0))
    part = error[:, there]
    missing = np.any(np.isnan(part), axis=1, keepdims=True)  # (cell, 1, trial)
    apart = np.all(missing, axis=2, keepdims=True)
    means = np.nanmean(np.where(missing & ~apart, np.nan, part), axis=2)
    return there, np.array([means[owner == task].mean(axis=0) for task in tasks])


def size_classes(owner: Sequence[object], sizes: Sequence[float]) -> dict[str, list[int]]:
    """Group cells by their sample size m, in order; a cell is given by its task and its m.

    Each m is a class of its own where more than half of the tasks have it; else the edges are 100,
    300, 1000, 3000 … examples.
    """
    distinct, tasks = sorted(set(sizes)), len(set(owner))
    if all(2 * list(sizes).count(m) > tasks for m in distinct):
        return {f"m = {m:g}": [i for i, size in enumerate(sizes) if size == m] for m in distinct}
    classes = {}
    for low, high in pairwise(EDGES):
        inside = [i for i, size in enumerate(sizes) if low < size <= high]
        if inside:
            label = f"{low:g} < m ≤ {high:g}" if low and high < math.inf else ""
            classes[label or (f"m > {low:g}" if low else f"m ≤ {high:g}")] = inside
    return classes


def whole_classes(owner: Sequence[object], sizes: Sequence[float]) -> dict[str, list[int]]:
    """Return the classes of `size_classes` in which every task occurs.

    Means over other tasks at every size would compare tasks, not sizes.
    """
    return {
        label: places
        for label, places in size_classes(owner, sizes).items()
        if {owner[place] for place in places} == set(owner)
    }
