"""Runs laid out by groups, sides and seeds: the numbers behind a layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.rules.cells import RESTART, differing, ordered, sortable
from petridish.rules.measures import BestOf, Measure
from petridish.statistics.known import Known

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class ValueGroup:
    """The values of one group, shape (side, seed).

    `runs` are behind them; `without` are runs of the group to which the measure does not apply.
    `behind` is what the values alone do not show, in words.
    """

    name: str
    values: Known
    runs: int
    without: int = 0
    behind: str = ""


@dataclass(frozen=True)
class LaidOut:
    """Values of shape (group, side, seed), the runs behind each, and those without a value."""

    groups: list[str]
    sides: list[Any]
    values: Known
    runs: NDArray[np.int64]
    without: list[int]

    def part(self, groups: NDArray[np.int64], sides: Sequence[int]) -> LaidOut:
        """Return some groups and some sides."""
        place = np.ix_(groups, np.asarray(sides))
        return LaidOut(
            [self.groups[group] for group in groups],
            [self.sides[side] for side in sides],
            self.values[place],
            self.runs[place],
            [self.without[group] for group in groups],
        )


def lay_out(
    table: pl.DataFrame, measure: Measure, by: tuple[str, ...], along: tuple[str, ...]
) -> LaidOut:
    """Lay runs out by groups, sides and seeds, the best of several where the measure takes it."""
    known = measure.known(table)
    counted = known.there
    _refuse_doubles(table.filter(counted), measure, (*by, *along))
    groups, group = ordered(table, by, sortable)
    sides, side = ordered(table, along, sortable)
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
    return LaidOut(names, at, Known(low, high), runs.reshape(shape), without)


def medians_text(values: Known) -> str:
    """Return the median over seeds of every side, in words, of values of shape (side, seed)."""
    said = []
    for low, high in zip(values.low, values.high, strict=True):
        there = ~np.isnan(low)
        ends = [f"{np.median(end[there]):.3g}" for end in (low, high)] if there.any() else ["–"]
        said.append(" to ".join(dict.fromkeys(ends)).replace("inf", "∞"))
    return f"medians {', '.join(said)}"


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _refuse_doubles(table: pl.DataFrame, measure: Measure, conditions: tuple[str, ...]) -> None:
    """Refuse runs that share their conditions and their seed, and would stand for each other."""
    over = (measure.over,) if isinstance(measure, BestOf) and measure.over in table.columns else ()
    columns = list(dict.fromkeys([*conditions, *over, "seed"]))
    if table.select(columns).is_unique().all():
        return
    varied = differing(table, columns)
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
