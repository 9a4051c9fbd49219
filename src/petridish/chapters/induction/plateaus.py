"""Measures of IH that need no strategy: times between a run's own plateaus, ratios of v."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.induction.measures import OF_GAP, gaps_of
from petridish.rules.measures import Measure
from petridish.statistics.known import Known, within_budget

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
END = 0.1  # of a run, whose median is its level in the end
LEFT = 0.15  # of the way from the start to the end, below which a fall has ended


def level_at_end(curve: Floats) -> float:
    """Return the median of the last tenth of a curve."""
    return float(np.median(curve[-max(1, round(END * len(curve))) :]))


def halfway_down(steps: Floats, curve: Floats) -> tuple[int, float]:
    """Return the first evaluation half-way between a run's own plateaus, and that level.

    The fall has ended after the last evaluation that lies above the end by `LEFT` of what lies
    between start and end. The level before it is the median from a quarter to three quarters of the
    time until then, which is a plateau if there is one.
    """
    last = level_at_end(curve)
    above = np.flatnonzero(curve > last + LEFT * (curve[0] - last))
    until = steps[above[-1]] if len(above) else 0.0
    middle = (steps >= until / 4) & (steps <= 3 * until / 4)
    level = (float(np.median(curve[middle])) + last) / 2
    return int(np.argmax(curve <= level)), level


def _curves(table: pl.DataFrame, name: str) -> Iterator[tuple[Floats, Floats]]:
    for steps, curve in table.select("curve.step", f"curve.{name}").rows():
        kept = np.array(curve or (), np.float64)
        yield np.array(steps or (), np.float64)[: len(kept)], kept


@dataclass(frozen=True)
class HalfwayDown(Measure):
    """The step half-way between a run's own plateaus of a loss; see `halfway_down`.

    Times `per_step`: examples of a kind that a step sees, so that runs with other batches compare.
    ∞ where the end is not at most `fallen` of the level before.
    """

    curve: str
    per_step: bool = False
    fallen: float = 0.7

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        more = ("training.batch_size", "task.share") if self.per_step else ()
        return "curve.step", f"curve.{self.curve}", *more

    @property
    def label(self) -> str:
        """What is measured, in words."""
        seen = "doubly stochastic sequences seen" if self.per_step else "steps"
        return f"{seen} until {self.curve} is half-way between its plateaus"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        return self.known(table).high

    def known(self, table: pl.DataFrame) -> Known:
        """Return the times, those not reached beyond the end."""
        first, last = [], []
        for steps, curve in _curves(table, self.curve):
            if not len(curve):
                first.append(math.nan)
                last.append(math.nan)
                continue
            place, level = halfway_down(steps, curve)
            before = 2 * level - level_at_end(curve)
            fell = level_at_end(curve) <= self.fallen * before
            first.append(max(1.0, steps[place]) if fell else math.inf)
            last.append(max(1.0, steps[-1]))
        scale = np.ones(len(table))
        if self.per_step:
            share = table["task.share"].cast(float).fill_null(0.0).to_numpy()
            scale = table["training.batch_size"].cast(float).to_numpy() * (1 - share)
        return within_budget(np.array(first) * scale, np.array(last) * scale)


@dataclass(frozen=True)
class HalfOfOwn(Measure):
    """The first evaluation at which a rising curve is half of what it is in the end."""

    curve: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return "curve.step", f"curve.{self.curve}"

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"steps until {self.curve} is half of its end"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        found = []
        for steps, curve in _curves(table, self.curve):
            there = curve >= level_at_end(curve) / 2 if len(curve) else np.zeros(0, bool)
            found.append(max(1.0, steps[np.argmax(there)]) if there.any() else math.nan)
        return np.array(found)


@dataclass(frozen=True)
class TimeNearUnigram(Measure):
    """The share of the time until the loss falls below ¾ of the gap that it spends near unigrams'.

    Near is within a quarter of the gap; time by evaluations. NaN where the loss never falls so far.
    """

    columns = OF_GAP
    label = "share of the time until the second drop within a quarter of the gap of unigrams"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        found = []
        for _, losses in gaps_of(table):
            below = np.flatnonzero(losses < 0.75)
            if not len(below):
                found.append(math.nan)
                continue
            before = losses[: below[0]]
            found.append(float((np.abs(before - 1) <= 0.25).mean()) if len(before) else 0.0)
        return np.array(found)


@dataclass(frozen=True)
class CurveAt(Measure):
    """A curve at the evaluation at a step; NaN for a run that was not evaluated there."""

    curve: str
    step: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return "curve.step", f"curve.{self.curve}"

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"{self.curve} at step {self.step}"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        found = []
        for steps, curve in _curves(table, self.curve):
            there = np.flatnonzero(steps == self.step)
            found.append(float(curve[there[0]]) if len(there) else math.nan)
        return np.array(found)
