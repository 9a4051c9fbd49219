"""Measures: one number per run, from the columns of a table that each of them names.

NaN means that the number does not apply to a run, ∞ that it was not reached within the budget.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, nearest, require
from petridish.statistics.known import Known, exactly, quotient, within_budget

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
ENDS = ("test_error", "train_loss", "steps", "seconds")  # columns of a run's end without a prefix


class Measure(ABC):
    """One number per run, read from the table: a frozen dataclass with these three members."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What is measured, in words."""

    @abstractmethod
    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run, shape (run,)."""

    def known(self, table: pl.DataFrame) -> Known:
        """Return what is known of the number of every run, where it may lie between two ends."""
        found = np.asarray(self.of(table))
        require(
            found.shape == (len(table),),
            f"The measure «{self.label}» returned values of shape {found.shape} for {len(table)} "
            "runs. Return one number per run.",
        )
        return exactly(found)

    def check(self, table: pl.DataFrame) -> None:
        """Refuse a table that lacks one of the columns."""
        for column in self.columns:
            if column not in table.columns:
                raise UserError(
                    f"There is no column {column!r} among these runs, which the measure «"
                    f"{self.label}» reads. {nearest(column, table.columns)}"
                )


@dataclass(frozen=True)
class Solved(Measure):
    """1 for a run that was solved, 0 for another."""

    columns = ("outcome",)
    label = "success"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        return (table["outcome"] == "SOLVED").to_numpy().astype(np.float64)


@dataclass(frozen=True)
class SolvedAt(Measure):
    """The step at which a run was found solved, at least 1; ∞ where it never was."""

    columns = ("solved_at", "training.steps")
    label = "steps until solved"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        return _steps(table["solved_at"])

    def known(self, table: pl.DataFrame) -> Known:
        """Return the times, unsolved ones beyond the budget."""
        return within_budget(self.of(table), table["training.steps"].to_numpy())


@dataclass(frozen=True)
class ReachedAt(Measure):
    """The step at which a threshold of `evaluation.reached` first held; ∞ where it never did.

    `name` is the threshold's own, such as "test_error <= 0.2".
    """

    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return f"reached.{self.name}", "steps"

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"steps until {self.name}"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        return _steps(table[f"reached.{self.name}"])

    def known(self, table: pl.DataFrame) -> Known:
        """Return the times, those not reached beyond the end of their run."""
        return within_budget(self.of(table), table["steps"].clip(1).to_numpy())


def _steps(column: pl.Series) -> Floats:
    found: Floats = column.cast(float).clip(1).fill_null(math.inf).to_numpy()
    return found


@dataclass(frozen=True)
class AtEnd(Measure):
    """A metric, the training loss or the number of steps at the end of a run.

    A run that diverged has none; it counts as `diverged`, worse than all that did not. Give −∞ for
    a metric that is better the larger it is, NaN to leave such runs out.
    """

    name: str
    diverged: float = math.inf

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return "outcome", self._column

    @property
    def _column(self) -> str:
        return self.name if self.name in ENDS else f"final.{self.name}"

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"{self.name} at the end"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        found = table[self._column].cast(float).fill_null(math.nan).to_numpy()
        diverged = (table["outcome"] == "DIVERGED").to_numpy()
        return np.where(diverged, self.diverged, found)


@dataclass(frozen=True)
class LastOf(Measure):
    """The last reading of a curve: of an instrument, which is measured at evaluations alone.

    A run that diverged counts as `diverged`; NaN for one that kept no such curve.
    """

    curve: str
    diverged: float = math.inf

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return "outcome", f"curve.{self.curve}"

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"{self.curve} at the end"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        import polars as pl

        readings = pl.col(f"curve.{self.curve}").list
        last = table.select(readings.eval(pl.element().drop_nans().drop_nulls()).list.last())
        found = last.to_series().cast(float).fill_null(math.nan).to_numpy()
        diverged = (table["outcome"] == "DIVERGED").to_numpy()
        return np.where(diverged, self.diverged, found)


@dataclass(frozen=True)
class Field(Measure):
    """A number of the spec, by its path, such as "model.width"."""

    path: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return (self.path,)

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return self.path

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        column = table[self.path]
        require(
            column.dtype.is_numeric(),
            f"Field: {self.path} holds {column.dtype}, and a measure is a number. Give the path of "
            "a number.",
        )
        return column.cast(float).fill_null(math.nan).to_numpy()


@dataclass(frozen=True)
class TimeTo(Measure):
    """The first evaluation at which a curve is at most `below`, or at least `above`.

    At least 1; ∞ where no evaluation of the run was there; NaN for a run that kept no such curve.
    """

    curve: str
    below: float | None = None
    above: float | None = None

    def __post_init__(self) -> None:
        require(
            (self.below is None) != (self.above is None),
            f"TimeTo: below={self.below} and above={self.above}. Give one of them.",
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return "curve.step", f"curve.{self.curve}"

    @property
    def label(self) -> str:
        """What is measured, in words."""
        side = f"≤ {self.below:g}" if self.below is not None else f"≥ {self.above:g}"
        return f"steps until {self.curve} {side}"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        return self.known(table).high

    def known(self, table: pl.DataFrame) -> Known:
        """Return the times, those not reached beyond the last evaluation of their run."""
        owner, step, (values,) = _curves(table, (self.curve,))
        there = values <= self.below if self.below is not None else values >= self.above
        kept = np.zeros(len(table), np.bool_)
        kept[owner] = True
        first, last = (np.where(kept, end, np.nan) for end in (np.inf, 0.0))
        np.minimum.at(first, owner[there], step[there])
        np.maximum.at(last, owner, step)
        return within_budget(np.maximum(first, 1), np.maximum(last, 1))


@dataclass(frozen=True)
class InOrder(Measure):
    """1 if each of some curves is the lowest of them at some time, first in this order; else 0.

    With the KL divergences to strategies it says whether a run comes nearest to one after the
    other. At an evaluation with equal curves the one named first counts. NaN for a run that kept
    no such curves.
    """

    curves: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return "curve.step", *(f"curve.{name}" for name in self.curves)

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"{' → '.join(self.curves)} in this order"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        owner, step, values = _curves(table, self.curves)
        measured = ~np.all(np.isnan(values), axis=0)
        owner, step, values = owner[measured], step[measured], values[:, measured]
        lowest = np.argmin(np.where(np.isnan(values), np.inf, values), axis=0)
        first = np.full((len(self.curves), len(table)), np.inf)
        np.minimum.at(first, (lowest, owner), step)
        ordered = np.all(first[1:] > first[:-1], axis=0) & np.isfinite(first[-1])
        kept = np.zeros(len(table), np.bool_)
        kept[owner] = True
        return np.where(kept, ordered.astype(np.float64), np.nan)


def _curves(
    table: pl.DataFrame, names: tuple[str, ...]
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return all evaluations of the runs that kept these curves, one run after the other.

    The row of each, its step, and the curves, shape (curve, evaluation).
    """
    import polars as pl

    columns = [f"curve.{name}" for name in names]
    held = pl.all_horizontal(pl.col("curve.step", *columns).list.len() > 0)
    rows = table.select("curve.step", *columns).with_row_index("row of a run").filter(held)
    flat = rows.explode("curve.step", *columns)
    values = [flat[column].cast(float).fill_null(math.nan).to_numpy() for column in columns]
    owner = flat["row of a run"].cast(int).to_numpy()
    return owner, flat["curve.step"].cast(float).to_numpy(), np.array(values)


@dataclass(frozen=True)
class Over(Measure):
    """One measure over another within a run: paired by construction. Both are at least 0.

    Of a time that was reached over one that was not it is known that it is small: 0, and at most
    the time over the budget. NaN where neither was reached.
    """

    top: Measure
    bottom: Measure

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return tuple(dict.fromkeys((*self.top.columns, *self.bottom.columns)))

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"({self.top.label}) / ({self.bottom.label})"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.top.of(table) / self.bottom.of(table)

    def known(self, table: pl.DataFrame) -> Known:
        """Return what is known of the ratios."""
        top, bottom = self.top.known(table), self.bottom.known(table)
        refuse_negative(self.label, top, bottom)
        return quotient(top, bottom)


def refuse_negative(label: str, *sides: Known) -> None:
    """Refuse a ratio of numbers below 0, of which it says nothing."""
    for side in sides:
        least = float(np.nanmin(side.low, initial=0.0))
        require(
            least >= 0,
            f"A ratio was asked for of «{label}», of which one value is {least:g}. Give numbers of "
            "at least 0, or a difference.",
        )


@dataclass(frozen=True)
class BestOf(Measure):
    """The least or the most of a measure over the runs of a seed that differ in `over` alone.

    The best restart, or the best of some rates, then stands for its seed, which stays the unit. The
    layout takes the best; of a single run the measure is what it was.
    """

    measure: Measure
    best: Literal["least", "most"]
    over: str = "restart"

    def __post_init__(self) -> None:
        require(
            self.best in ("least", "most"),
            f"BestOf: best={self.best!r}. Give 'least' or 'most'.",
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads; runs that cannot be restarted lack `restart`."""
        own = () if self.over == "restart" else (self.over,)
        return tuple(dict.fromkeys((*self.measure.columns, *own)))

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"{self.best} {self.measure.label} over {self.over}"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        return self.measure.of(table)

    def known(self, table: pl.DataFrame) -> Known:
        """Return what is known of the number of every run."""
        return self.measure.known(table)
