"""Rules about the time to success; a run that never succeeded is later than all that did."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.rules.cells import mixed, ordered
from petridish.rules.claims import Finding, Judgement, by_interval, nothing
from petridish.statistics.estimate import FEWEST

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
RESAMPLES = 2_000


def solved_times(
    table: pl.DataFrame, *, along: str, within: tuple[str, ...]
) -> tuple[list[tuple[Any, ...]], list[Any], Floats]:
    """Lay times to success out, shape (stratum, condition, seed); infinite where unsolved.

    NaN where no run was made. Gives the strata and the conditions too.
    """
    strata, stratum = ordered(table, within, _sortable)
    conditions, condition = ordered(table, (along,))
    seeds, seed = ordered(table, ("seed",))
    times = np.full([len(strata), len(conditions), len(seeds)], np.nan)
    solved_at = table["solved_at"].cast(float).clip(1).fill_null(math.inf)
    times[stratum, condition, seed] = solved_at.to_numpy()
    return strata, [value for (value,) in conditions], times


def _sortable(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((str(type(part)), part) for part in key)


def _median(times: Floats) -> Floats:
    """Give the lower median over the last axis: infinite if more than half are, else measured."""
    middle: Floats = np.sort(times, axis=-1)[..., (times.shape[-1] - 1) // 2]
    return middle


def _common(times: Floats) -> Floats:
    """Keep the seeds that every cell has."""
    return times[..., ~np.isnan(times).any(axis=tuple(range(times.ndim - 1)))]


def _log_ratio(over: Floats, under: Floats) -> float:
    """Give the mean of log(over / under) where both are finite; NaN where none are."""
    both = np.isfinite(over) & np.isfinite(under)
    return float(np.mean(np.log(over[both] / under[both]))) if both.any() else math.nan


def _resampled(
    times: Floats, statistic: Callable[[Floats], float], level: float
) -> tuple[float, float, float]:
    """Give exp(statistic) with an interval by drawing seeds with replacement."""
    rng = np.random.default_rng(0)  # the same table gives the same verdict
    seeds = times.shape[-1]
    drawn = [statistic(times[..., rng.integers(seeds, size=seeds)]) for _ in range(RESAMPLES)]
    return _interval(statistic(times), drawn, level)


def _interval(estimate: float, drawn: Sequence[float], level: float) -> tuple[float, float, float]:
    """Give exp(estimate) with the percentiles of what was drawn; NaN if too little is defined."""
    kept = [value for value in drawn if not math.isnan(value)]
    if math.isnan(estimate) or len(kept) < len(drawn) / 2:
        return math.nan, math.nan, math.nan
    low, high = np.quantile(kept, [level / 2, 1 - level / 2])
    return math.exp(estimate), math.exp(min(low, estimate)), math.exp(max(high, estimate))


@dataclass(frozen=True)
class Quicker:
    """The median time to success falls along `along`, at fixed `within`.

    The estimate is the ratio of the medians at the lowest and at the highest value of `along`,
    geometric mean over the strata in which both are known (a median beyond the budget is not), with
    an interval by drawing seeds anew. Supported above 1, contradicted below.
    """

    along: str = "model.width"
    within: tuple[str, ...] = ("task", "init", "data.m")

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"median time, lowest / highest {self.along}"
        if table[self.along].n_unique() < 2:
            return nothing(quantity, f"needs two values of {self.along}")
        if clash := mixed(table, (self.along, *self.within)):
            return nothing(quantity, clash)
        _, conditions, times = solved_times(table, along=self.along, within=self.within)
        ends = times[:, [0, -1]]
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
        remark = f"from {conditions[0]} to {conditions[-1]}, {known} of {len(ends)} strata known"
        judgement = by_interval(low, high, 1.0)
        return Finding(judgement, estimate, low, high, quantity, ends.size, remark)


@dataclass(frozen=True)
class SlowAtTheEdge:
    """The smallest feasible `along` takes longer than the best: data can be traded for time.

    In each stratum, the median time at the smallest value of `along` at which half of the runs
    succeed, over the least median beyond it; geometric mean over strata. To choose a minimum and to
    measure it with the same runs would find one where there is none: one half of the seeds chooses
    edge and best, the other half measures them, and then the other way round. The interval draws
    the measuring seeds anew.
    """

    along: str = "data.m"
    within: tuple[str, ...] = ("task", "init", "model.width")

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"median time at the smallest feasible {self.along} / at the best"
        if clash := mixed(table, (self.along, *self.within)):
            return nothing(quantity, clash)
        _, _, times = solved_times(table, along=self.along, within=self.within)
        times = _common(times)
        if times.shape[1] < 2 or times.shape[-1] < 2 * FEWEST:
            return nothing(
                quantity, f"needs two values of {self.along} and {2 * FEWEST} seeds in all cells"
            )
        halves = times[..., ::2], times[..., 1::2]
        measured = [  # (stratum, edge or best, seed), each chosen by the other half
            np.stack([measuring[k, [edge, best]] for k, edge, best in _edges(choosing)])
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
        return Finding(judgement, estimate, low, high, quantity, int(times.size))


def _edges(times: Floats) -> list[tuple[int, int, int]]:
    """Give stratum, first feasible place and quickest place beyond it, where there are both."""
    found = []
    for k, row in enumerate(_median(times)):
        feasible = np.flatnonzero(np.isfinite(row))
        if len(feasible) > 1:
            found.append((k, int(feasible[0]), int(feasible[1:][np.argmin(row[feasible[1:]])])))
    return found


@dataclass(frozen=True)
class Valley:
    """Somewhere, `score` falls along `along` and rises again, at fixed `within`.

    For «success» it is the share of runs solved, for «time» the time to success. In every stratum
    all pairs of values of `along` are compared (Fisher's exact test, or Mann and Whitney's), Holm's
    correction running over all pairs of all strata. Supported if some stratum has a significant
    fall and, from where it ended, a significant rise. The estimate is the smaller of the two, for
    the deepest valley found: as a difference of success, or as a ratio of medians; it was chosen
    for its depth, and has no interval. That there is none cannot be shown by finding none: without
    a valley the verdict is undecided.
    """

    score: Literal["success", "time"] = "success"
    along: str = "data.m"
    within: tuple[str, ...] = ("task", "init", "model.width")

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        from petridish.statistics.trend import holm

        if clash := mixed(table, (self.along, *self.within)):
            return nothing(f"depth of a valley in {self.score}", clash)
        deep = "success" if self.score == "success" else "median time, as a ratio"
        quantity = f"depth of the deepest valley in {deep}"
        strata, conditions, times = solved_times(table, along=self.along, within=self.within)
        enough = (~np.isnan(times)).sum(axis=2) >= 2  # (stratum, condition)
        pairs = [
            (k, i, j)
            for k in range(len(strata))
            for i, j in itertools.combinations(np.flatnonzero(enough[k]).tolist(), 2)
        ]
        if not pairs:
            return nothing(quantity, f"needs two values of {self.along} with two seeds each")
        cells = [[row[~np.isnan(row)] for row in stratum] for stratum in times]
        falls = [self._p_fall(cells[k][i], cells[k][j]) for k, i, j in pairs]
        rises = [self._p_fall(cells[k][j], cells[k][i]) for k, i, j in pairs]
        corrected = holm([*falls, *rises])
        fell = {pair for pair, p in zip(pairs, corrected, strict=False) if p < level}
        rose = {pair for pair, p in zip(pairs, corrected[len(pairs) :], strict=True) if p < level}
        ends: dict[tuple[int, int], list[int]] = {}
        for k, low, last in rose:
            ends.setdefault((k, low), []).append(last)
        found = [
            (self._depth(cells[k], first, low, last), k, first, low, last)
            for k, first, low in fell
            for last in ends.get((k, low), ())
        ]
        n = int((~np.isnan(times)).sum())
        if not found:
            remark = f"{len(fell)} significant falls and {len(rose)} rises, none after the other"
            nan = math.nan
            return Finding(Judgement.UNDECIDED, nan, nan, nan, quantity, n, remark)
        depth, k, first, low, last = max(found)
        at = ", ".join(map(str, strata[k]))
        remark = (
            f"at {at}: {self._value(cells[k][first])} with {self.along} = {conditions[first]:g}, "
            f"{self._value(cells[k][low])} with {conditions[low]:g}, "
            f"{self._value(cells[k][last])} with {conditions[last]:g}"
        )
        return Finding(Judgement.SUPPORTED, depth, math.nan, math.nan, quantity, n, remark)

    def _p_fall(self, before: Floats, after: Floats) -> float:
        """Test one-sidedly whether the score is lower after than before."""
        from petridish.statistics.trend import decrease_test

        if self.score == "success":
            solved = [int(np.isfinite(side).sum()) for side in (before, after)]
            return decrease_test((solved[0], len(before)), (solved[1], len(after)))
        from scipy.stats import mannwhitneyu

        if np.all(np.isinf(before)) and np.all(np.isinf(after)):
            return 1.0
        big = 1e300  # ranks are all that counts, and infinities have none
        sides = [np.where(np.isinf(side), big, side) for side in (after, before)]
        return float(mannwhitneyu(*sides, alternative="less", method="asymptotic").pvalue)

    def _height(self, cell: Floats) -> float:
        return float(np.isfinite(cell).mean() if self.score == "success" else _median(cell))

    def _depth(self, cells: list[Floats], first: int, low: int, last: int) -> float:
        edge = min(self._height(cells[first]), self._height(cells[last]))
        bottom = self._height(cells[low])
        if self.score == "success":
            return edge - bottom
        # A median beyond the budget counts as the latest time seen: the depth is at least this.
        latest = max(float(t) for cell in cells for t in cell if math.isfinite(t))
        return min(edge, latest) / min(bottom, latest)

    def _value(self, cell: Floats) -> str:
        height = self._height(cell)
        if self.score == "success":
            return f"{height:.0%}"
        return f"{height:,.0f} steps" if math.isfinite(height) else "beyond the budget"
