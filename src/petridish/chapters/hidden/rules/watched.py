"""Runs whose weights were watched: their curves, beside a control trained on random labels.

The tables have runs with labels from a parity (`data.label_noise` = 0) and a control whose labels
are random (½), both with their curves and the instrument that is to show progress.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.architectures import with_architectures
from petridish.chapters.hidden.rules.plateaus import (
    CONFIGURATION,
    configuration_names,
    configurations,
)
from petridish.chapters.hidden.rules.table_rule import refuse_mixed, with_curves

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
MOVEMENT = "first_layer_movement"  # ρ = ‖w_t − w_0‖_∞ of the first layer [HP §5]
LOSS, ERROR = "train_loss", "test_error"
WORDS = {MOVEMENT: "ρ", LOSS: "training loss", ERROR: "test error"}


@dataclass(frozen=True)
class WatchedRun:
    """One run: when it was solved (infinite if never), its budget, and its curves by name."""

    seed: int
    solved_at: float
    budget: int
    steps: Floats
    curves: Mapping[str, Floats]

    def at(self, name: str, times: Floats, *, average: bool = False) -> Floats:
        """Return a curve at the last evaluation before each time, or its mean since half of it.

        The mean is what a reader of a noisy loss would look at. After its last evaluation a run
        stays as it was.
        """
        last = np.searchsorted(self.steps, times, side="right") - 1
        values = self.curves[name]
        if not average:
            return np.asarray(values[last])
        first = np.minimum(np.searchsorted(self.steps, times / 2, side="right"), last)
        known = ~np.isnan(values)  # at step 0 there is no loss yet
        total = np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))])
        count = np.concatenate([[0], np.cumsum(known)])
        sums, counts = total[last + 1] - total[first], count[last + 1] - count[first]
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def watched_pairs(
    table: pl.DataFrame, measures: Sequence[str]
) -> dict[str, tuple[list[WatchedRun], list[WatchedRun]]]:
    """Return every configuration's parity runs and control; refuses a table without them."""
    table = with_architectures(with_curves(table, *measures))
    refuse_mixed(table, (*CONFIGURATION, "data.label_noise"))
    parts = configurations(table)
    return {
        name: (
            _read(runs.filter(runs["data.label_noise"] == 0), measures),
            _read(runs.filter(runs["data.label_noise"] == 0.5), measures),
        )
        for name, runs in zip(configuration_names(list(parts)), parts.values(), strict=True)
    }


def _read(runs: pl.DataFrame, measures: Sequence[str]) -> list[WatchedRun]:
    found = []
    for seed, solved_at, budget, *lists in runs.select(
        *("seed", "solved_at", "training.steps", "curve.step"),
        *(f"curve.{name}" for name in measures),
    ).iter_rows():
        steps, *values = (np.array(each, np.float64) for each in lists)
        end = math.inf if solved_at is None else float(solved_at)
        found.append(WatchedRun(seed, end, budget, steps, dict(zip(measures, values, strict=True))))
    return found
