"""Layouts: which runs are laid beside which, with seeds as the unit.

A layout groups runs by columns of their table; each group is judged by itself. The column `arm`
stands for the arm of a run. Within a group, a side and a seed there is one run, or the best of
several (`BestOf`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, nearest, require
from petridish.rules.cells import ordered
from petridish.rules.measures import BestOf, Measure, refuse_negative
from petridish.statistics.known import Known, difference, kendall_trend, quotient
from petridish.sweeps.arms import arm_names, by_arm

if TYPE_CHECKING:
    import polars as pl

ARM = "arm"
RESTART = "restart"


@dataclass(frozen=True)
class Group:
    """The values of one group, shape (side, seed).

    `runs` are behind them; `without` are runs of the group to which the measure does not apply.
    """

    name: str
    values: Known
    runs: int
    without: int = 0


@dataclass(frozen=True)
class Layout(ABC):
    """What is laid beside what.

    Attributes
    ----------
    only : mapping of str to value or tuple of values
        Keeps the runs that have one of these values in a column, such as ``{"data.m": 100}``.
    """

    sides: ClassVar[int] = 1
    """Samples per group that an estimator is given."""

    only: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    @abstractmethod
    def conditions(self) -> tuple[str, ...]:
        """The columns by which runs are told apart."""

    @abstractmethod
    def describe(self, measure: str) -> str:
        """Return what is laid out, in words, given those of the measure."""

    @abstractmethod
    def groups(self, table: pl.DataFrame, measure: Measure) -> list[Group]:
        """Lay the runs of a table out."""

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that it names."""
        return tuple(map(str, _tuple(self.only.get(ARM, ()))))

    @property
    def compares(self) -> tuple[str, ...]:
        """The columns whose values are held against each other."""
        return ()

    def chosen(self, table: pl.DataFrame, measure: Measure) -> pl.DataFrame:
        """Return the runs that it speaks of, one row per arm where it speaks of arms."""
        import polars as pl

        measure.check(table)
        names = (*self.conditions, *self.only)
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
            table = table.filter(pl.col(column).is_in(list(_tuple(values))))
        return table


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


@dataclass(frozen=True)
class Each(Layout):
    """Every value of `by` by itself; all runs as one group without it.

    ``Each(("arm",))`` has one group per arm, ``Each(("task.n", "model.width"))`` one per pair.
    """

    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", _tuple(self.by))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The columns by which runs are told apart."""
        return self.by

    def describe(self, measure: str) -> str:
        """Return what is laid out, in words."""
        return measure

    def groups(self, table: pl.DataFrame, measure: Measure) -> list[Group]:
        """Lay the runs of a table out."""
        laid = _lay_out(self.chosen(table, measure), measure, self.by, ())
        return [
            Group(name, laid.values[place], int(laid.runs[place].sum()), laid.without[place])
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
        object.__setattr__(self, "within", _tuple(self.within))
        require(
            self.top != self.bottom,
            f"{type(self).__name__}: {self.top!r} is to be compared with itself. Give two sides.",
        )

    @property
    def conditions(self) -> tuple[str, ...]:
        """The columns by which runs are told apart."""
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

    def both(self, table: pl.DataFrame, measure: Measure) -> _Laid:
        """Lay out the two sides, in the strata that have both."""
        import polars as pl

        runs = self.chosen(table, measure)
        known = runs[self.along].unique().to_list()
        for side in (self.top, self.bottom):
            if side not in known:
                names = sorted(map(str, known))
                raise UserError(f"No run has {self.along} = {side}. {nearest(str(side), names)}")
        kept = runs.filter(pl.col(self.along).is_in([self.top, self.bottom]))
        laid = _lay_out(kept, measure, self.within, (self.along,))
        order = [laid.sides.index(side) for side in (self.top, self.bottom)]
        full = np.flatnonzero(np.all(laid.runs[:, order].sum(axis=2) > 0, axis=1))
        return laid.part(full, order)


@dataclass(frozen=True)
class Paired(_TwoSides):
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

    def groups(self, table: pl.DataFrame, measure: Measure) -> list[Group]:
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
            found.append(Group(name, pairs[None, :], runs, laid.without[place]))
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

    def groups(self, table: pl.DataFrame, measure: Measure) -> list[Group]:
        """Lay the runs of a table out."""
        laid = self.both(table, measure)
        return [
            Group(name, laid.values[place], int(laid.runs[place].sum()), laid.without[place])
            for place, name in enumerate(laid.groups)
        ]


@dataclass(frozen=True)
class Trend(Layout):
    """How steadily a measure rises along a field, seed by seed, in every stratum `within`.

    The value of a seed is Kendall's τ over its runs: 1 where the measure rises at every step, −1
    where it falls at every one. An order that censoring hides is not guessed.
    """

    along: str
    within: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "within", _tuple(self.within))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The columns by which runs are told apart."""
        return (*self.within, self.along)

    @property
    def compares(self) -> tuple[str, ...]:
        """The column of the trend."""
        return (self.along,)

    def describe(self, measure: str) -> str:
        """Return what is laid out, in words."""
        return f"τ of {measure} along {self.along}"

    def groups(self, table: pl.DataFrame, measure: Measure) -> list[Group]:
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
        laid = _lay_out(runs, measure, self.within, (self.along,))
        found = []
        for place, name in enumerate(laid.groups):
            tau = kendall_trend(laid.values[place])
            runs_of = int(laid.runs[place][:, tau.there].sum())
            found.append(Group(name, tau[None, :], runs_of, laid.without[place]))
        return found


@dataclass(frozen=True)
class _Laid:
    """Values of shape (group, side, seed), the runs behind each, and those without a value."""

    groups: list[str]
    sides: list[Any]
    values: Known
    runs: NDArray[np.int64]
    without: list[int]

    def part(self, groups: NDArray[np.int64], sides: Sequence[int]) -> _Laid:
        """Return some groups and some sides."""
        place = np.ix_(groups, np.asarray(sides))
        return _Laid(
            [self.groups[group] for group in groups],
            [self.sides[side] for side in sides],
            self.values[place],
            self.runs[place],
            [self.without[group] for group in groups],
        )


def _lay_out(
    table: pl.DataFrame, measure: Measure, by: tuple[str, ...], along: tuple[str, ...]
) -> _Laid:
    """Lay runs out by groups, sides and seeds, the best of several where the measure takes it."""
    known = measure.known(table)
    counted = known.there
    _refuse_doubles(table.filter(counted), measure, (*by, *along))
    groups, group = ordered(table, by, _sortable)
    sides, side = ordered(table, along, _sortable)
    seeds, seed = ordered(table, ("seed",))
    shape = len(groups), len(sides), len(seeds)
    place = np.ravel_multi_index((group, side, seed), shape)[counted]
    most = isinstance(measure, BestOf) and measure.best == "most"
    ends = []
    for end in (known.low[counted], known.high[counted]):
        found = np.full(shape, -np.inf if most else np.inf).ravel()
        (np.maximum if most else np.minimum).at(found, place, end)
        ends.append(found)
    runs = np.bincount(place, minlength=ends[0].size)
    low, high = (np.where(runs > 0, end, np.nan).reshape(shape) for end in ends)
    names = [
        ", ".join(f"{column} = {_text(value)}" for column, value in zip(by, values, strict=True))
        for values in groups
    ]
    at = [value for (value,) in sides] if along else []
    without = np.bincount(group[~counted], minlength=len(groups)).tolist()
    return _Laid(names, at, Known(low, high), runs.reshape(shape), without)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _sortable(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((str(type(part)), part) for part in key)


def _refuse_doubles(table: pl.DataFrame, measure: Measure, conditions: tuple[str, ...]) -> None:
    """Refuse runs that share their conditions and their seed, and would stand for each other."""
    import polars as pl

    over = (measure.over,) if isinstance(measure, BestOf) and measure.over in table.columns else ()
    columns = list(dict.fromkeys([*conditions, *over, "seed"]))
    double = table.filter(table.select(columns).is_duplicated())
    if double.is_empty():
        return
    alike = double.filter(
        pl.all_horizontal(pl.col(name).eq_missing(double[name][0]) for name in columns)
    )
    fields = [
        name
        for name in alike.columns
        if name == RESTART or name.startswith(("task", "data", "model", "init", "training"))
    ]
    varied = [name for name in fields if alike[name].n_unique() > 1]
    if RESTART in varied:
        raise UserError(
            f"Several restarts of a seed are counted as seeds by «{measure.label}». Judge "
            'BestOf(…, over="restart"), or choose one by --set restart=0.'
        )
    differ = f" and differ in {', '.join(varied)}" if varied else ""
    raise UserError(
        f"Several runs share {', '.join(columns)}{differ}. Lay them apart by the rule's layout, "
        "judge BestOf over it, or choose one value by --set."
    )
