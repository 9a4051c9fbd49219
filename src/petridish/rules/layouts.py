"""Layouts: which runs are laid beside which, with seeds as the unit.

A layout groups runs by columns of their table; each group is judged by itself. The column `arm`
stands for the arm of a run. Within a group, a side and a seed there is one run, or the best of
several (`BestOf`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from petridish.errors import UserError, nearest, require
from petridish.rules.cells import as_tuple, having
from petridish.rules.laid_out import LaidOut, ValueGroup, lay_out, medians_text
from petridish.rules.measures import Measure, refuse_negative
from petridish.rules.tuning import Best, tuned
from petridish.statistics.known import difference, kendall_trend, quotient
from petridish.sweeps.arms import arm_names, by_arm

if TYPE_CHECKING:
    import polars as pl

ARM = "arm"


@dataclass(frozen=True)
class Layout(ABC):
    """Which runs are compared with which.

    Attributes
    ----------
    only : mapping of str to value or tuple of values
        Keeps the runs that have one of these values in a column, such as ``{"data.m": 100}``.
    best_over : tuple of str
        Fields of which every group and side takes its best value, such as
        ``("training.learning_rate",)``: chosen on one half of the seeds, measured on the other.
    best : "least" or "most", optional
        Which end of the measure is the better one; left out, most successes and the least of all
        else.
    """

    sides: ClassVar[int] = 1
    """Samples per group that an estimator is given."""

    only: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    best_over: tuple[str, ...] = field(default=(), kw_only=True)
    best: Best | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "best_over", as_tuple(self.best_over))
        named = isinstance(self.only, Mapping) and all(isinstance(name, str) for name in self.only)
        require(
            named,
            f"{type(self).__name__}: only={self.only!r}. Give columns with the values to be kept, "
            'such as {"data.m": (100, 200)}.',
        )
        for name, values in self.only.items():
            require(
                len(as_tuple(values)) > 0,
                f"{type(self).__name__}: only={{{name!r}: {values!r}}} keeps no run. Give a value.",
            )
        require(
            self.best in (None, "least", "most"),
            f"{type(self).__name__}: best={self.best!r}. Give 'least' or 'most'.",
        )

    @property
    @abstractmethod
    def conditions(self) -> tuple[str, ...]:
        """The columns that distinguish runs."""

    @abstractmethod
    def describe(self, measure: str) -> str:
        """Return what is laid out, in words, given those of the measure."""

    @abstractmethod
    def groups(self, table: pl.DataFrame, measure: Measure) -> list[ValueGroup]:
        """Lay the runs of a table out."""

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that it names."""
        return tuple(map(str, as_tuple(self.only.get(ARM, ()))))

    @property
    def compares(self) -> tuple[str, ...]:
        """The columns whose values are compared with each other."""
        return ()

    @property
    def named(self) -> tuple[tuple[str, Any], ...]:
        """The values that it names beside `only`, each with its column."""
        return ()

    def chosen(self, table: pl.DataFrame, measure: Measure) -> pl.DataFrame:
        """Return the runs that it speaks of, one row per arm where it speaks of arms."""
        measure.check(table)
        names = (*self.conditions, *self.only, *self.best_over)
        if ARM in names:
            known = arm_names(table)
            for name in self.arms:
                require(
                    name in known,
                    f"There is no arm called {name!r} among these runs. {nearest(name, known)}"
                    if known
                    else f"There is no arm called {name!r}: these runs have no arms. Declare the "
                    "sweep as Arms({…}).",
                )
            require(
                bool(known), "These runs have no arms. Declare the sweep as Arms({name: Sweep(…)})."
            )
            table = by_arm(table)
        for column in names:
            if column not in table.columns:
                raise UserError(
                    f"There is no column {column!r} among these runs. "
                    f"{nearest(column, table.columns)}"
                )
        for column, values in self.only.items():
            table = having(table, column, values)
        if not self.best_over or table.is_empty():
            return table
        over, within = self.best_over, self.conditions
        return tuned(table, measure, over=over, within=within, best=self.best).table


@dataclass(frozen=True)
class Each(Layout):
    """Every value of `by` by itself; all runs as one group without it.

    ``Each(("arm",))`` has one group per arm, ``Each(("task.n", "model.width"))`` one per pair.
    """

    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "by", as_tuple(self.by))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The columns that distinguish runs."""
        return self.by

    def describe(self, measure: str) -> str:
        """Return what is laid out, in words."""
        return measure

    def groups(self, table: pl.DataFrame, measure: Measure) -> list[ValueGroup]:
        """Lay the runs of a table out."""
        laid = lay_out(self.chosen(table, measure), measure, self.by, ())
        return [
            ValueGroup(name, laid.values[place], int(laid.runs[place].sum()), laid.without[place])
            for place, name in enumerate(laid.groups)
        ]


@dataclass(frozen=True)
class _TwoSides(Layout):
    """One value of `along`, `top`, beside another, `bottom`, in every stratum `within`."""

    top: Any
    bottom: Any
    along: str = ARM
    within: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "within", as_tuple(self.within))
        require(
            self.top != self.bottom,
            f"{type(self).__name__}: {self.top!r} is to be compared with itself. Give two sides.",
        )

    @property
    def conditions(self) -> tuple[str, ...]:
        """The columns that distinguish runs."""
        return (*self.within, self.along)

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that it names."""
        own = (self.top, self.bottom) if self.along == ARM else ()
        return (*own, *super().arms)

    @property
    def compares(self) -> tuple[str, ...]:
        """The column of the two sides."""
        return (self.along,)

    @property
    def named(self) -> tuple[tuple[str, Any], ...]:
        """The two sides."""
        return (self.along, self.top), (self.along, self.bottom)

    def both(self, table: pl.DataFrame, measure: Measure) -> LaidOut:
        """Lay out the two sides, in the strata that have both."""
        runs = self.chosen(table, measure)
        known = runs[self.along].unique().to_list()
        for side in (self.top, self.bottom):
            if side not in known:
                names = sorted(map(str, known))
                raise UserError(f"No run has {self.along} = {side}. {nearest(str(side), names)}")
        kept = having(runs, self.along, (self.top, self.bottom))
        laid = lay_out(kept, measure, self.within, (self.along,))
        order = [laid.sides.index(side) for side in (self.top, self.bottom)]
        full = np.flatnonzero(np.all(laid.runs[:, order].sum(axis=2) > 0, axis=1))
        return laid.part(full, order)


@dataclass(frozen=True)
class PairedBySeed(_TwoSides):
    """One arm against another, seed by seed where both were run: `top` − `bottom`, or their ratio.

    With ``along="init"`` the two are values of that field instead of arms.
    """

    by: Literal["difference", "ratio"] = "difference"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.by in ("difference", "ratio"),
            f"Paired: by={self.by!r}. Give 'difference' or 'ratio'.",
        )

    def describe(self, measure: str) -> str:
        """Return what is laid out, in words."""
        sign = "/" if self.by == "ratio" else "−"
        return f"{measure}, {self.top} {sign} {self.bottom}"

    def groups(self, table: pl.DataFrame, measure: Measure) -> list[ValueGroup]:
        """Lay the runs of a table out."""
        laid = self.both(table, measure)
        found = []
        for place, name in enumerate(laid.groups):
            top, bottom = laid.values[place, 0], laid.values[place, 1]
            if self.by == "ratio":
                refuse_negative(measure.label, top, bottom)
                pairs = quotient(top, bottom)
            else:
                pairs = difference(top, bottom)
            runs = int(laid.runs[place][:, pairs.there].sum())
            found.append(ValueGroup(name, pairs[None, :], runs, laid.without[place]))
        return found


@dataclass(frozen=True)
class Sides(_TwoSides):
    """One arm beside another, kept apart: for estimators of two samples, such as `RatioOfMedians`.

    With ``along="init"`` the two are values of that field instead of arms.
    """

    sides: ClassVar[int] = 2

    def describe(self, measure: str) -> str:
        """Return what is laid out, in words."""
        return f"{measure}, {self.top} / {self.bottom}"

    def groups(self, table: pl.DataFrame, measure: Measure) -> list[ValueGroup]:
        """Lay the runs of a table out."""
        laid = self.both(table, measure)
        return [
            ValueGroup(name, laid.values[place], int(laid.runs[place].sum()), laid.without[place])
            for place, name in enumerate(laid.groups)
        ]


@dataclass(frozen=True)
class Trend(Layout):
    """How steadily a measure rises along a field, seed by seed, in every stratum `within`.

    The value of a seed is Kendall's τ over its runs: 1 where the measure rises at every step, −1
    where it falls at every one. An order that censoring hides is not guessed. One large step can
    outweigh a small one the other way: along three values and more the medians are said too.
    """

    along: str
    within: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "within", as_tuple(self.within))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The columns that distinguish runs."""
        return (*self.within, self.along)

    @property
    def compares(self) -> tuple[str, ...]:
        """The column of the trend."""
        return (self.along,)

    def describe(self, measure: str) -> str:
        """Return what is laid out, in words."""
        return f"τ of {measure} along {self.along}"

    def groups(self, table: pl.DataFrame, measure: Measure) -> list[ValueGroup]:
        """Lay the runs of a table out."""
        runs = self.chosen(table, measure)
        require(
            runs.schema[self.along].is_numeric() and not runs[self.along].has_nulls(),
            f"A trend along {self.along} needs numbers, which have an order, and these runs have "
            f"others there. Compare two of its values by Paired(…, along={self.along!r}).",
        )
        require(
            runs[self.along].n_unique() > 1,
            f"A trend along {self.along} needs two values of it, and these runs have one.",
        )
        laid = lay_out(runs, measure, self.within, (self.along,))
        found = []
        for place, name in enumerate(laid.groups):
            tau = kendall_trend(laid.values[place])
            runs_of = int(laid.runs[place][:, tau.there].sum())
            behind = medians_text(laid.values[place][:, tau.there]) if len(laid.sides) > 2 else ""
            found.append(ValueGroup(name, tau[None, :], runs_of, laid.without[place], behind))
        return found
