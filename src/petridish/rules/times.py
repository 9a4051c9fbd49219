"""Rules about the time to success; a run that never succeeded is later than all that did."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.rules.cells import WithinStrata, mixed, ordered, sortable, within_bounds
from petridish.rules.claims import (
    Finding,
    blind_within,
    by_interval,
    nothing,
    remarks,
    seeds_to_exclude,
)
from petridish.rules.measures import SolvedAt
from petridish.rules.tuning import at_best, tuned_text
from petridish.statistics.intervals import FEWEST, RESAMPLES

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


def solved_times(
    table: pl.DataFrame, *, along: str, within: Sequence[str], over: Sequence[str] = ()
) -> tuple[list[tuple[Any, ...]], list[Any], Floats]:
    """Lay times to success out, shape (stratum, condition, seed); infinite where unsolved.

    NaN where no run was made. Returns the strata and the conditions too. The settings of the fields
    `over` have an axis of their own before the seeds.
    """
    strata, stratum = ordered(table, within, sortable)
    conditions, condition = ordered(table, (along,))
    settings, setting = ordered(table, over, sortable)
    seeds, seed = ordered(table, ("seed",))
    times = np.full([len(strata), len(conditions), len(settings), len(seeds)], np.nan)
    solved_at = table["solved_at"].cast(float).clip(1).fill_null(math.inf)
    times[stratum, condition, setting, seed] = solved_at.to_numpy()
    return strata, [value for (value,) in conditions], times if over else times[:, :, 0]


def _median(times: Floats) -> Floats:
    """Return the lower median over the last axis: infinite if more than half are, else measured."""
    middle: Floats = np.sort(times, axis=-1)[..., (times.shape[-1] - 1) // 2]
    return middle


def _common(times: Floats) -> Floats:
    """Keep the seeds that every cell has."""
    return times[..., ~np.isnan(times).any(axis=tuple(range(times.ndim - 1)))]


def _log_ratio(over: Floats, under: Floats) -> float:
    """Return the mean of log(over / under) where both are finite; NaN where none are."""
    both = np.isfinite(over) & np.isfinite(under)
    return float(np.mean(np.log(over[both] / under[both]))) if both.any() else math.nan


def _resampled(
    times: Floats, statistic: Callable[[Floats], float], level: float
) -> tuple[float, float, float]:
    """Return exp(statistic) with an interval by drawing seeds with replacement."""
    rng = np.random.default_rng(0)  # the same table gives the same verdict
    seeds = times.shape[-1]
    drawn = [statistic(times[..., rng.integers(seeds, size=seeds)]) for _ in range(RESAMPLES)]
    return _interval(statistic(times), drawn, level)


def _interval(estimate: float, drawn: Sequence[float], level: float) -> tuple[float, float, float]:
    """Return exp(estimate) with the percentiles of what was drawn; NaN if too little is defined."""
    kept = [value for value in drawn if not math.isnan(value)]
    if math.isnan(estimate) or len(kept) < len(drawn) / 2:
        return math.nan, math.nan, math.nan
    low, high = np.quantile(kept, [level / 2, 1 - level / 2])
    return math.exp(estimate), math.exp(min(low, estimate)), math.exp(max(high, estimate))


@dataclass(frozen=True)
class Quicker(WithinStrata):
    """The median time to success falls along `along`, at fixed `within`.

    The estimate is the ratio of the medians at the lowest and at the highest value of `along`,
    geometric mean over the strata in which both are known (a median beyond the budget is not), with
    an interval by drawing seeds anew. Supported above 1, contradicted below. `ends` are two values
    in the place of the lowest and the highest, the slower first; `at_least` and `at_most` keep the
    runs within these bounds: {"model.width": 100} means width 100 and above, or below.
    With `best_over`, every cell is taken at the best values of these fields, such as
    ``("training.learning_rate",)``: chosen on one half of the seeds, measured on the other.
    """

    along: str = "model.width"
    within: tuple[str, ...] = ("task", "init", "data.m")
    best_over: tuple[str, ...] = ()
    ends: tuple[str, str] | None = None
    at_least: Mapping[str, float] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        first, last = self.ends or ("lowest", f"highest {self.along}")
        quantity = f"median time, {first} / {last}{tuned_text(self.best_over)}"
        table = within_bounds(table, self.at_least, self.at_most)
        if table[self.along].n_unique() < 2:
            return nothing(quantity, f"needs two values of {self.along}")
        table = at_best(table, self.best_over, (self.along, *self.within), SolvedAt())
        if clash := mixed(table, (self.along, *self.within)):
            return nothing(quantity, clash)
        _, conditions, times = solved_times(table, along=self.along, within=self.within)
        if any(end not in conditions for end in self.ends or ()):
            return nothing(quantity, f"needs runs with {self.along} = {first} and = {last}")
        places = [conditions.index(end) for end in self.ends] if self.ends else [0, -1]
        ends = times[:, places]
        run_at_both = np.all(np.any(~np.isnan(ends), axis=2), axis=1)
        ends = _common(ends[run_at_both])
        if not ends.size or ends.shape[-1] < FEWEST:
            return nothing(quantity, f"needs {FEWEST} seeds at both ends of a stratum")

        def statistic(sample: Floats) -> float:
            middle = _median(sample)
            return _log_ratio(middle[:, 0], middle[:, 1])

        estimate, low, high = _resampled(ends, statistic, level)
        if math.isnan(estimate):
            return nothing(quantity, "too few strata succeed often enough at both ends")
        known = int(np.all(np.isfinite(_median(ends)), axis=1).sum())
        names = " to ".join(str(conditions[place]) for place in places)
        remark = f"from {names}, {known} of {len(ends)} strata known"
        judgement = by_interval(low, high, 1.0)
        remark = remarks(remark, blind_within(1.0, estimate, low, high))
        note = seeds_to_exclude(1.0, estimate, low, high, seeds=ends.shape[-1], claimed="above")
        return Finding(judgement, estimate, low, high, quantity, ends.size, remark, note)


@dataclass(frozen=True)
class SlowAtTheEdge(WithinStrata):
    """The smallest feasible `along` takes longer than the best: data can be traded for time.

    In each stratum, the median time at the smallest value of `along` at which half of the runs
    succeed, over the least median beyond it; geometric mean over strata. To choose a minimum and to
    measure it with the same runs would find one where there is none: one half of the seeds chooses
    edge and best, the other half measures them, and then the other way round. The interval draws
    the measuring seeds anew. With `best_over`, the half that chooses edge and best also chooses the
    quickest values of these fields there, such as ``("training.learning_rate",)``.
    """

    along: str = "data.m"
    within: tuple[str, ...] = ("task", "init", "model.width")
    best_over: tuple[str, ...] = ()

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        best = tuned_text(self.best_over)
        quantity = f"median time at the smallest feasible {self.along} / at the best{best}"
        over = self.best_over
        if clash := mixed(table, (self.along, *self.within, *over)):
            return nothing(quantity, clash)
        _, _, times = solved_times(table, along=self.along, within=self.within, over=over)
        times = times if over else times[:, :, None]  # (stratum, place, setting, seed)
        made = np.any(~np.isnan(times), axis=3)
        # A setting that a place was not run at, and others were, is not chosen there.
        times[np.any(made, axis=2, keepdims=True) & ~made] = math.inf
        times = _common(times)
        if times.shape[1] < 2 or times.shape[-1] < 2 * FEWEST:
            return nothing(
                quantity, f"needs two values of {self.along} and {2 * FEWEST} seeds in all cells"
            )
        halves = times[..., ::2], times[..., 1::2]
        measured = [  # (stratum, edge or best, seed), each chosen by the other half
            np.stack([measuring[k, places, settings] for k, places, settings in _edges(choosing)])
            for choosing, measuring in (halves, halves[::-1])
            if _edges(choosing)
        ]
        if not measured:
            return nothing(quantity, "no stratum has two feasible cells")
        rng = np.random.default_rng(0)

        def statistic(samples: Sequence[Floats]) -> float:
            middles = [_median(sample) for sample in samples]
            ratios = [_log_ratio(middle[:, 0], middle[:, 1]) for middle in middles]
            known = [ratio for ratio in ratios if not math.isnan(ratio)]
            return float(np.mean(known)) if known else math.nan

        def redrawn(sample: Floats) -> Floats:
            seeds = sample.shape[-1]
            return sample[..., rng.integers(seeds, size=seeds)]

        drawn = [statistic([redrawn(sample) for sample in measured]) for _ in range(RESAMPLES)]
        estimate, low, high = _interval(statistic(measured), drawn, level)
        if math.isnan(estimate):
            return nothing(
                quantity, "no stratum has two feasible cells in both halves of its seeds"
            )
        judgement = by_interval(low, high, 1.0)
        note = seeds_to_exclude(1.0, estimate, low, high, seeds=times.shape[-1], claimed="above")
        n = int(made.sum()) * times.shape[-1]
        remark = blind_within(1.0, estimate, low, high)
        return Finding(judgement, estimate, low, high, quantity, n, remark, note)


def _edges(times: Floats) -> list[tuple[int, list[int], list[int]]]:
    """Return the stratum, first feasible and quickest place beyond it, where there are both.

    And their quickest settings.
    """
    found = []
    for k, medians in enumerate(_median(times)):  # (place, setting)
        row, settings = medians.min(axis=1), medians.argmin(axis=1)
        feasible = np.flatnonzero(np.isfinite(row))
        if len(feasible) > 1:
            places = [int(feasible[0]), int(feasible[1:][np.argmin(row[feasible[1:]])])]
            found.append((k, places, settings[places].tolist()))
    return found
