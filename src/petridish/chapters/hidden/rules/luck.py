"""Is training a search that may get lucky? Times to success against laws without memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.table_rule import TableRule, decide, refuse_mixed
from petridish.errors import UserError, require
from petridish.rules.claims import Finding
from petridish.statistics.intervals import exact_interval, median_rank

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
CELL = ("task", "model.width")
BUDGETS = ("evaluation.every", "training.steps")


def memoryless(steps: float | Floats, median: float) -> Floats:
    """Compute P(t ≤ steps) = 1 − 2^(−steps / median), the law that forgets how long it has run."""
    return np.asarray(-np.expm1(-math.log(2) * np.asarray(steps) / median))


def guessing(steps: float | Floats, n: int, k: int) -> Floats:
    """Compute P(t ≤ steps) of one guess of the support per step: Geom(1 / C(n, k)) [HP §3.2].

    The first guess is step 1; the paper counts from 0, which moves the law by one step.
    """
    return np.asarray(-np.expm1(np.asarray(steps) * math.log1p(-1 / math.comb(n, k))))


@dataclass(frozen=True)
class Arrivals:
    """When the runs of one cell were first seen solved.

    A run first seen solved at t was solved after t − every. Runs that were not solved within their
    budget, or diverged, are later than all others.
    """

    times: Whole  # in order
    counts: Whole  # of runs first seen solved then
    unsolved: int
    every: int  # steps between two evaluations
    budget: int
    n: int
    k: int

    @property
    def runs(self) -> int:
        """Runs made."""
        return int(self.counts.sum()) + self.unsolved

    def solved_by(self, step: float) -> int:
        """Count the runs solved at or before a step."""
        return int(self.counts[: np.searchsorted(self.times, step, side="right")].sum())

    def ranked(self, rank: int) -> float:
        """Return the time of the run of this rank, from 1 on; infinite if it was not solved."""
        place = int(np.searchsorted(np.cumsum(self.counts), rank))
        return float(self.times[place]) if place < len(self.times) else math.inf

    @property
    def median(self) -> float:
        """The lower median, infinite where more than half of the runs are not solved."""
        return self.ranked((self.runs + 1) // 2)

    def median_interval(self, coverage: float) -> tuple[float, float]:
        """Bound the median by two of the times, whatever their law; 0 and ∞ for too few runs."""
        rank = median_rank(self.runs, coverage)
        if not rank:
            return 0.0, math.inf
        return self.ranked(rank), self.ranked(self.runs - rank + 1)


def arrivals(table: pl.DataFrame) -> dict[tuple[Any, ...], Arrivals]:
    """Count when runs were first seen solved, for every task and width."""
    import polars as pl

    wanted = dict.fromkeys([*CELL, "solved_at", "task.n", "task.k", *BUDGETS])
    found = {}
    narrow = table.select(name for name in wanted if name in table.columns)
    for key, cell in sorted(narrow.partition_by(*CELL, as_dict=True).items()):
        times = cell["solved_at"].drop_nulls().cast(pl.Int64)
        seen = times.value_counts().sort("solved_at")
        first = cell.row(0, named=True)
        steps = seen["solved_at"].to_numpy()
        found[key] = Arrivals(
            steps,
            seen["count"].to_numpy().astype(np.int64),
            len(cell) - len(times),
            first.get("evaluation.every") or max(1, int(np.gcd.reduce(steps))),
            first.get("training.steps") or int(steps.max(initial=0)),
            first["task.n"],
            first["task.k"],
        )
    return found


@dataclass(frozen=True)
class _Tail:
    """A cell's share of runs in a tail, over the share that a law without memory puts there."""

    at: int
    hits: int
    share: float
    law: float
    ratio: float
    low: float
    high: float
    most: float  # the upper bound of the share itself


def _tail(cell: Arrivals, multiple: float, risk: float) -> _Tail:
    """Compare the runs before a fraction of the median, or after a multiple of it.

    The median is itself only known to an interval. Half of the risk goes to it: the ratio's
    interval holds those of every evaluation at which the median may lie. A median seen at one may
    lie anywhere since the one before.
    """
    upper = multiple > 1

    def at(median: float) -> int:  # no run is seen solved before the first evaluation
        return cell.every * max(1, math.floor(multiple * median / cell.every + 1e-9))

    def count(step: int) -> int:
        return cell.runs - cell.solved_by(step) if upper else cell.solved_by(step)

    def law(step: int, median: float) -> float:
        before = float(memoryless(step, median))
        return 1 - before if upper else before

    first, last = cell.median_interval(1 - risk / 2)
    require(math.isfinite(cell.median), "more than half of the runs are not solved")
    require(first >= cell.every and math.isfinite(last), "too few runs to bound the median")
    require(
        upper or 2 * at(cell.median) < cell.median,
        f"evaluations every {cell.every} steps are too coarse for a median of {cell.median:g}",
    )
    require(
        at(last) <= cell.budget,
        f"the budget of {cell.budget} steps ends before {multiple:g} medians",
    )
    lows, highs, most = [], [], 0.0
    for median in np.arange(first, last + 1, cell.every):
        low, high = exact_interval(count(at(median)), cell.runs, coverage=1 - risk / 2)
        laws = [law(at(median), since) for since in (median, median - cell.every) if since > 0]
        lows.append(low / max(laws))
        highs.append(high / min(laws) if min(laws) > 0 else math.inf)
        most = max(most, high)
    step, expected = at(cell.median), law(at(cell.median), cell.median - cell.every / 2)
    share = count(step) / cell.runs
    return _Tail(step, count(step), share, expected, share / expected, min(lows), max(highs), most)


def _tails(
    table: pl.DataFrame,
    multiple: float,
    level: float,
    describe: Callable[[Arrivals, _Tail], str],
) -> tuple[dict[Any, Arrivals], dict[Any, _Tail], str]:
    """Return the cells, the tails of those that can be judged, and a remark about all."""
    refuse_mixed(table, CELL)
    cells = arrivals(table)
    tails, remarks = {}, []
    for key, cell in cells.items():
        task, width = key
        try:
            tails[key] = _tail(cell, multiple, level / len(cells))
            said = describe(cell, tails[key])
        except UserError as refusal:
            said = str(refusal)
        remarks.append(f"{task}, r = {width}: {said}")
    remark = "; ".join(remarks)
    require(bool(tails), remark or "no runs")
    return cells, tails, remark


@dataclass(frozen=True)
class NoEarlyConvergence(TableRule):
    """Hardly a run is solved in much less than the median time: none gets lucky [HP §3.2].

    For each task and width, the share of runs solved by the last evaluation at or before
    `fraction` of their median, with an exact interval, is held against two laws of search by
    guessing: (a) one guess per step, Geom(1 / C(n, k)); (b) the law without memory that has the
    median of the runs, as a step may be worth more or less than a guess. The estimate is the
    largest ratio of a cell's share to (b). Supported if in every cell the upper bound lies below
    `thinner` of both laws; contradicted if in one the lower bound lies above (b). Each cell has an
    equal share of the level. While a cell cannot be judged, the claim is not supported.
    """

    fraction: float = 0.1
    thinner: float = 0.1

    @property
    def quantity(self) -> str:
        """What the estimate measures, in words."""
        return f"runs solved within {self.fraction:g} of the median time, over a memoryless law's"

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        cells, tails, remark = _tails(table, self.fraction, level, _lower_remark)
        thin = all(
            tail.high < self.thinner and tail.most < self.thinner * _guessed(cells[key], tail)
            for key, tail in tails.items()
        )
        ratio, low, high = (
            max(getattr(tail, part) for tail in tails.values()) for part in ("ratio", "low", "high")
        )
        judgement = decide(contradicted=low > 1, supported=thin and len(tails) == len(cells))
        n = sum(cell.runs for cell in cells.values())
        return Finding(judgement, ratio, low, high, self.quantity, n, remark)


@dataclass(frozen=True)
class HeavyUpperTail(TableRule):
    """More runs take `multiple` medians than a law without memory would have [HP Fig. 5.2].

    For each task and width, the share of runs not solved by `multiple` times their median, over
    2^(−multiple); the estimate is the least over the cells. Supported if the interval lies above
    1 in every cell, contradicted if it lies below 1 in one. Runs without success are beyond any
    multiple that the budget holds. Each cell has an equal share of the level.

    The paper calls its tails heavy and says no more. This is a strict reading: times that begin
    with a wait common to all, and are memoryless after it, do not reach 1. The remark has the tail
    without that wait: the share of runs later than the median by more than three times the upper
    quartile's distance from it, 1/16 for a memoryless law.
    """

    multiple: float = 3.0

    @property
    def quantity(self) -> str:
        """What the estimate measures, in words."""
        return f"runs later than {self.multiple:g} medians, over a memoryless law's"

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        cells, tails, remark = _tails(table, self.multiple, level, _upper_remark)
        ratio, low, high = (
            min(getattr(tail, part) for tail in tails.values()) for part in ("ratio", "low", "high")
        )
        judgement = decide(contradicted=high < 1, supported=low > 1 and len(tails) == len(cells))
        n = sum(cell.runs for cell in cells.values())
        return Finding(judgement, ratio, low, high, self.quantity, n, remark)


def _guessed(cell: Arrivals, tail: _Tail) -> float:
    return float(guessing(tail.at, cell.n, cell.k))


def _later(cell: Arrivals, step: float) -> str:
    if step > cell.budget:
        return "unknown"
    return f"{1 - cell.solved_by(step) / cell.runs:.2%}"


def _lower_remark(cell: Arrivals, tail: _Tail) -> str:
    return (
        f"{tail.hits} of {cell.runs} runs by step {tail.at} (memoryless {tail.law:.2%}, one guess "
        f"a step {_guessed(cell, tail):.2%}); the first at {cell.ranked(1):.0f}, median "
        f"{cell.median:.0f}, {_later(cell, 5 * cell.median)} after 5 medians (memoryless 3.12%), "
        f"{cell.unsolved / cell.runs:.2%} not solved"
    )


def _upper_remark(cell: Arrivals, tail: _Tail) -> str:
    quartile = cell.ranked(math.ceil(0.75 * cell.runs))
    shape = _later(cell, cell.median + 3 * (quartile - cell.median))
    return (
        f"{tail.share:.2%} later than {tail.at} steps (memoryless {tail.law:.2%}); from the median "
        f"on {shape} (memoryless 6.25%); {cell.unsolved} of {cell.runs} not solved"
    )
