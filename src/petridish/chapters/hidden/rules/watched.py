"""Runs whose weights were watched: their curves, beside a control trained on coins.

The tables have runs with labels from a parity (`data.label_noise` = 0) and a control whose labels
are coins (½), both with their curves and the instrument that is to show progress.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.plateaus import (
    CONFIGURATION,
    NO_CURVES,
    configuration_names,
    configurations,
)
from petridish.rules.cells import mixed

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
MOVEMENT = "first_layer_movement"  # ρ = ‖w_t − w_0‖_∞ of the first layer [HP §5]
LOSS, ERROR = "train_loss", "test_error"
WORDS = {LOSS: "training loss", ERROR: "test error", MOVEMENT: "ρ"}


@dataclass(frozen=True)
class WatchedRun:
    """One run: when it was solved (infinite if never), its budget, and its curves by name."""

    seed: int
    solved_at: float
    budget: int
    steps: Floats
    curves: Mapping[str, Floats]

    def at(self, name: str, times: Floats, *, average: bool = False) -> Floats:
        """Give a curve at the last look before each time, or its mean since half of the time.

        The mean is what a reader of a noisy loss would look at. After its last look a run stays
        as it was.
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


def _read(table: pl.DataFrame, measures: Sequence[str]) -> list[WatchedRun]:
    columns = ["seed", "solved_at", "training.steps"]
    lists = [table["curve.step"], *(table[f"curve.{name}"] for name in measures)]
    found = []
    for (seed, solved_at, budget), *curves in zip(
        table.select(columns).iter_rows(), *lists, strict=True
    ):
        steps, *values = (curve.to_numpy().astype(np.float64) for curve in curves)
        end = math.inf if solved_at is None else float(solved_at)
        found.append(WatchedRun(seed, end, budget, steps, dict(zip(measures, values, strict=True))))
    return found


def watched_pairs(
    table: pl.DataFrame, measures: Sequence[str]
) -> tuple[dict[str, tuple[list[WatchedRun], list[WatchedRun]]], str]:
    """Give every configuration's parity runs and control, or what is wrong with the table."""
    import polars as pl

    if "curve.step" not in table.columns:
        return {}, NO_CURVES
    for name in measures:
        column = f"curve.{name}"
        if column not in table.columns or table[column].is_null().all():
            return {}, f"these runs did not record {name}: ask for it by evaluation.instruments"
    parts = configurations(table.filter(pl.col("curve.step").is_not_null()))
    if clash := mixed(pl.concat(parts.values()), (*CONFIGURATION, "data.label_noise")):
        return {}, clash
    noise = pl.col("data.label_noise")
    return {
        name: (_read(runs.filter(noise == 0), measures), _read(runs.filter(noise == 0.5), measures))
        for name, runs in zip(configuration_names(list(parts)), parts.values(), strict=True)
    }, ""
