"""What width and sparse starts gain on tables: differences of two runs on the same split."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from petridish.chapters.tables.error_arrays import Errors, Floats, Places

if TYPE_CHECKING:
    import polars as pl

SPARSE, DENSE = "sparse(2)", "uniform"
NO_PAIR = f"no net was run with both {DENSE} and {SPARSE}"
Compared = tuple[int, tuple[float, float], Floats]  # cell, the two widths, gains by trial


@dataclass(frozen=True)
class Gains:
    """Differences between two runs on one split: one row per comparison, one column per trial.

    Attributes
    ----------
    owner, cell : array, shape (row,)
        Places of the task and of the cell.
    pair : list of (float, float)
        What is compared: two widths.
    values : array, shape (row, trial)
        NaN where one of the two was not run.
    """

    owner: Places
    cell: Places
    pair: list[tuple[float, float]]
    values: Floats

    @property
    def runs(self) -> int:
        """Runs behind the differences."""
        return 2 * int((~np.isnan(self.values)).sum())


def _gains(errors: Errors, kept: Sequence[Compared]) -> Gains:
    cell = np.array([cell for cell, _, _ in kept], dtype=np.int64)
    values = np.array([gain for _, _, gain in kept]).reshape(-1, errors.error.shape[2])
    return Gains(errors.owner[cell], cell, [(float(a), float(b)) for _, (a, b), _ in kept], values)


def width_gains(errors: Errors) -> tuple[Gains, Gains]:
    """Return what width gains: from the narrowest to the widest per tenfold, and step by step.

    Both at equal task, m, init, depth and training, for every cell in which two widths were run.
    """
    ends: list[Compared] = []
    steps: list[Compared] = []
    width = errors.configurations["model.width"].cast(float).to_numpy()
    for group in alike(errors.configurations, ("model", "model.width")):
        places = group[np.argsort(width[group])]
        part = errors.error[:, places]  # (cell, width, trial)
        for cell in range(len(part)):
            there = np.flatnonzero((~np.isnan(part[cell])).any(axis=1))
            for kept, pairs in ((ends, [there[[0, -1]]]), (steps, list(pairwise(there)))):
                for narrow, wide in pairs if len(there) > 1 else ():
                    gain = part[cell, narrow] - part[cell, wide]
                    if not np.isnan(gain).all():
                        kept.append((cell, (width[places[narrow]], width[places[wide]]), gain))
    tenfold = [(cell, (r, s), gain / math.log10(s / r)) for cell, (r, s), gain in ends]
    return _gains(errors, tenfold), _gains(errors, steps)


def sparse_gains(errors: Errors | None) -> Gains | None:
    """Return what a sparse start gains in every cell, at the widest net that was run with both.

    None if none was.
    """
    if errors is None:
        return None
    kept = []
    for pairs in _starts(errors):
        for cell in range(len(errors.cells)):
            made = [(width, gain[cell]) for width, gain in pairs if not np.isnan(gain[cell]).all()]
            if made:
                width, gain = max(made, key=lambda pair: pair[0])
                kept.append((cell, (width, width), gain))
    return _gains(errors, kept) if kept else None


def _starts(errors: Errors) -> Iterator[list[tuple[float, Floats]]]:
    """Yield, for conditions that are alike but for the width, each width's gains (cell, trial)."""
    configurations = errors.configurations
    width = configurations["model.width"].cast(float).to_numpy()
    init = configurations["init"].to_list()
    for group in alike(configurations, ("model", "model.width", "init")):
        places = {(width[place], init[place]): place for place in group}
        pairs = [
            (float(r), errors.error[:, places[r, DENSE]] - errors.error[:, places[r, SPARSE]])
            for r in sorted(set(width[group]))
            if {(r, DENSE), (r, SPARSE)} <= set(places)
        ]
        if pairs:
            yield pairs


def gains_at_ends(errors: Errors) -> tuple[Places, Floats, int]:
    """Return tasks, the gains of sparse starts at their smallest and largest m, and the runs.

    Gains have the shape (row, 2). A row is a task at conditions that are alike, at the widest net
    with both starts at both m.
    """
    owner, ends, runs = [], [], 0
    for pairs in _starts(errors):
        gains = np.array([gain for _, gain in pairs])  # (width, cell, trial)
        trials = (~np.isnan(gains)).sum(axis=2)
        means = np.nansum(gains, axis=2) / np.maximum(trials, 1)
        for task in range(len(errors.tasks)):
            cells = np.flatnonzero((errors.owner == task) & (trials.sum(axis=0) > 0))
            outer = cells[[0, -1]] if len(cells) > 1 else cells  # cells are in the order of m
            widths = np.flatnonzero((trials[:, outer] > 0).all(axis=1))
            if len(outer) > 1 and len(widths):
                owner.append(task)
                ends.append(means[widths[-1], outer])
                runs += 2 * int(trials[widths[-1], outer].sum())
    return np.array(owner, dtype=np.int64), np.array(ends).reshape(-1, 2), runs


def alike(configurations: pl.DataFrame, apart: Sequence[str]) -> list[Places]:
    """Group configurations that are alike but for the columns `apart`; return their places."""
    rest = [name for name in configurations.columns if name not in apart]
    groups = configurations.with_row_index("place").group_by(rest, maintain_order=True)
    return [np.array(part["place"], dtype=np.int64) for _, part in groups]
