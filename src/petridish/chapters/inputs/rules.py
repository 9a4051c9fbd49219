"""Measures of FL: errors beside chance and beside linear rules, cosines beside their formula."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.models import MLP
from petridish.rules import AtEnd, Each, LastOf, Measure, Median, PairedBySeed, Rule
from petridish.rules.specs import with_specs
from petridish.tasks import Dictionary, Hypercube
from petridish.theory.inputs.coverage import random_coverage
from petridish.theory.inputs.steps import best_linear_error, step_cosine

if TYPE_CHECKING:
    import polars as pl

    from petridish.training import RunSpec

Floats = NDArray[np.float64]
ERROR = AtEnd("test_error")
TUNED = frozenset({"tangent kernel", "random features"})
"""The arms of FL-1 and FL-2 that have several rates, of which rules take the best."""


def each(measure: Measure, *arms: str, **decision: Any) -> Rule:
    """Judge the median over seeds of each of some arms by itself."""
    layout = Each(("arm",), only={"arm": arms}, best_over=_rates(*arms))
    return Rule(measure, layout, Median(), **decision)


def against(top: str, bottom: str, measure: Measure = ERROR, **decision: Any) -> Rule:
    """Compare two arms seed by seed: the median of `top` minus `bottom`."""
    layout = PairedBySeed(top, bottom, best_over=_rates(top, bottom))
    return Rule(measure, layout, Median(), **decision)


def _rates(*arms: str) -> tuple[str, ...]:
    return () if TUNED.isdisjoint(arms) else ("training.learning_rate",)


@dataclass(frozen=True)
class FromChance(Measure):
    """|test error − ½|: how far a classifier is from chance, to either side."""

    columns = AtEnd("test_error").columns
    label = "distance of the test error from ½"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        return np.abs(AtEnd("test_error", math.nan).of(table) - 0.5)


@dataclass(frozen=True)
class AboveLinear(Measure):
    """The test error minus that of the best linear rule on the relevant patterns.

    NaN where the task is no parity of a `Dictionary`.
    """

    columns = (*AtEnd("test_error").columns, "cell")
    label = "test error above that of the best linear rule"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        known = with_specs(table, linear=_linear_error)["linear"].to_numpy()
        return np.asarray(AtEnd("test_error").of(table) - known)


def _linear_error(spec: RunSpec) -> float:
    task = spec.task
    if not isinstance(task, Dictionary) or task.positive is not None or task.negatives is not None:
        return math.nan
    return best_linear_error(task.k, task.structured)


@dataclass(frozen=True)
class ReadingAt(Measure):
    """The reading of a curve at one step, less that at an earlier one if it is named.

    NaN for a run that kept no such curve, or was not evaluated there.
    """

    curve: str
    step: int
    less: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return "curve.step", f"curve.{self.curve}"

    @property
    def label(self) -> str:
        """What is measured, in words."""
        less = "" if self.less is None else f" minus that at step {self.less}"
        return f"{self.curve} at step {self.step}{less}"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        at = self._at(table, self.step)
        return at if self.less is None else at - self._at(table, self.less)

    def _at(self, table: pl.DataFrame, step: int) -> Floats:
        found = []
        for steps, values in table.select(*self.columns).iter_rows():
            known = dict(zip(steps or (), values or (), strict=True))
            value = known.get(step)
            found.append(math.nan if value is None else float(value))
        return np.array(found, np.float64)


@dataclass(frozen=True)
class CosineGap(Measure):
    """The largest cosine with Σ M_j minus `step_cosine`, what a forgetting step leaves.

    NaN where the task is no `Dictionary` with structure.
    """

    columns = (*LastOf("direction_cosine").columns, "cell")
    label = "cosine minus its formula"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        known = with_specs(table, cosine=_cosine)["cosine"].to_numpy()
        return np.asarray(LastOf("direction_cosine").of(table) - known)


def _cosine(spec: RunSpec) -> float:
    task = spec.task
    if not isinstance(task, Dictionary) or task.correlation <= 0:
        return math.nan
    n, k = int(spec.data.m), task.k
    return step_cosine(n, k, task.patterns, task.correlation, task.background)


@dataclass(frozen=True)
class BesideConstant(Measure):
    """The test error over that of the better constant answer; 1 for a constant classifier.

    Of a `Dictionary`, whose shares of classes are known.
    """

    columns = (*AtEnd("test_error").columns, "cell")
    label = "test error / that of a constant"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        known = with_specs(table, constant=_constant_error)["constant"].to_numpy()
        return np.asarray(AtEnd("test_error").of(table) / known)


def _constant_error(spec: RunSpec) -> float:
    task = spec.task
    return (1 - abs(task.mean_label)) / 2 if isinstance(task, Dictionary) else math.nan


@dataclass(frozen=True)
class CoverageAboveChance(Measure):
    """The cosine of the worst-covered centre, minus what random directions reach once in 100.

    The directions are as many as the neurons, within the span of the corners of a `Hypercube`; NaN
    on other tasks.
    """

    columns = (*LastOf("centre_cosine").columns, "cell")
    label = "worst cosine with a centre above that of random directions"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        known = with_specs(table, chance=_chance_of_coverage)["chance"].to_numpy()
        return np.asarray(LastOf("centre_cosine", math.nan).of(table) - known)


def _chance_of_coverage(spec: RunSpec) -> float:
    if not isinstance(spec.task, Hypercube) or not isinstance(spec.model, MLP):
        return math.nan
    return float(np.quantile(random_coverage(spec.model.width, spec.task.k, 500), 0.99))
