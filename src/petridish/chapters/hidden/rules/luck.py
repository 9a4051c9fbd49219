"""Is training a search that may get lucky? Times to success against laws without memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.rules.cells import mixed
from petridish.rules.claims import Finding, Judgement, nothing
from petridish.statistics.estimate import exact_interval

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
WITHIN = ("task", "model.width")
LOOKS = ("evaluation.every", "training.steps")


def memoryless(steps: float | Floats, median: float) -> Floats:
    """Give P(t ≤ steps) = 1 − 2^(−steps / median), the law that forgets how long it has run."""
    probability: Floats = -np.expm1(-math.log(2) * np.asarray(steps) / median)
    return probability


def guessing(steps: float | Floats, n: int, k: int) -> Floats:
    """Give P(t ≤ steps) of one uniform guess of the support a step: Geom(1 / C(n, k)) [HP §3.2].

    The first guess is step 1; the source counts from 0, which moves the law by one step.
    """
    probability: Floats = -np.expm1(np.asarray(steps) * math.log1p(-1 / math.comb(n, k)))
    return probability


@dataclass(frozen=True)
class Arrivals:
    """When the runs of one cell were first seen solved.

    Attributes
    ----------
    times, counts : array
        The steps at which runs were first seen solved, in order, and how many were.
    unsolved : int
        Runs that were not solved within their budget, or diverged: later than all others.
    every : int
        Steps between two looks: a run first seen solved at t was solved after t − every.
    budget : int
        Steps after which unsolved runs were given up.
    n, k : int
        Bits of the parity, and how many matter.
    """

    times: Whole
    counts: Whole
    unsolved: int
    every: int
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
        """Give the time of the run of this rank, the first having rank 1; infinite if unsolved."""
        place = int(np.searchsorted(np.cumsum(self.counts), rank))
        return float(self.times[place]) if place < len(self.times) else math.inf

    @property
    def median(self) -> float:
        """The lower median, infinite where more than half of the runs are not solved."""
        return self.ranked((self.runs + 1) // 2)

    def median_interval(self, coverage: float) -> tuple[float, float]:
        """Bound the median by two of the times, whatever their law; 0 and ∞ for too few runs."""
        from scipy.special import bdtr  # slow to import

        runs, tail = self.runs, (1 - coverage) / 2
        below = 0  # most ranks that can be left out on one side: P(Bin(runs, ½) < below) ≤ tail
        step = 1 << max(0, runs.bit_length() - 1)
        while step:
            if below + step <= runs and bdtr(below + step - 1, runs, 0.5) <= tail:
                below += step
            step >>= 1
        if not below:
            return 0.0, math.inf
        return self.ranked(below), self.ranked(runs - below + 1)


def arrivals(
    table: pl.DataFrame, within: Sequence[str] = WITHIN
) -> dict[tuple[Any, ...], Arrivals]:
    """Count when runs were first seen solved, in every cell of `within`."""
    import polars as pl

    wanted = dict.fromkeys([*within, "solved_at", "task.n", "task.k", *LOOKS])
    found = {}
    narrow = table.select(name for name in wanted if name in table.columns)
    for key, cell in sorted(narrow.partition_by(*within, as_dict=True).items()):
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
    shares: tuple[float, float]  # the interval of the share itself


def _lower_tail(cell: Arrivals, fraction: float, risk: float) -> _Tail | str:
    """Compare the runs solved within a fraction of the median; or say why it cannot be done."""

    def at(median: float) -> int:
        looks = math.floor(fraction * median / cell.every + 1e-9)
        return cell.every * max(1, looks)  # no run is seen solved before the first look

    compared = _tail(cell, at, cell.solved_by, memoryless, risk)
    if isinstance(compared, _Tail) and 2 * compared.at >= cell.median:
        return f"looks every {cell.every} steps are too coarse for a median of {cell.median:g}"
    return compared


def _upper_tail(cell: Arrivals, multiple: float, risk: float) -> _Tail | str:
    """Compare the runs not yet solved after a multiple of the median."""

    def at(median: float) -> int:
        return cell.every * math.floor(multiple * median / cell.every + 1e-9)

    def later(step: float) -> int:
        return cell.runs - cell.solved_by(step)

    def law(step: float | Floats, median: float) -> Floats:
        return 1 - memoryless(step, median)

    compared = _tail(cell, at, later, law, risk)
    _, last = cell.median_interval(1 - risk / 2)
    if isinstance(compared, _Tail) and at(last) > cell.budget:
        return f"the budget of {cell.budget} steps ends before {multiple:g} medians"
    return compared


def _tail(
    cell: Arrivals,
    at: Callable[[float], int],
    count: Callable[[float], int],
    law: Callable[[float, float], Floats],
    risk: float,
) -> _Tail | str:
    """Compare a tail that is defined by the median, which is itself only known to an interval.

    Half of the risk goes to the median: the ratio's interval holds those of every look at which it
    may lie. A median seen at a look may lie anywhere since the look before.
    """
    first, last = cell.median_interval(1 - risk / 2)
    if math.isinf(cell.median):
        return "more than half of the runs are not solved"
    if first < cell.every or math.isinf(last):
        return "too few runs to bound the median"
    lows, highs, shares = [], [], []
    for median in np.arange(first, last + 1, cell.every):
        share = exact_interval(count(at(median)), cell.runs, coverage=1 - risk / 2)
        laws = [float(law(at(median), median))]
        laws += [float(law(at(median), median - cell.every))] if median > cell.every else []
        lows.append(share[0] / max(laws))
        highs.append(share[1] / min(laws) if min(laws) > 0 else math.inf)
        shares.append(share)
    place = at(cell.median)
    hits = count(place)
    expected = float(law(place, cell.median - cell.every / 2))
    return _Tail(
        place,
        hits,
        hits / cell.runs,
        expected,
        hits / cell.runs / expected,
        min(lows),
        max(highs),
        (min(low for low, _ in shares), max(high for _, high in shares)),
    )


@dataclass(frozen=True)
class NoEarlyConvergence:
    """Hardly a run is solved in much less than the median time: none gets lucky [HP §3.2].

    The left of Fig. 5.2. In each cell of `within`, the share of runs solved by the last look at or
    before `fraction` of their median, with an exact interval, is held against two laws of search by
    guessing: (a) one guess a step, Geom(1 / C(n, k)); (b) the law without memory that has the
    median of the runs, as a step may be worth more or less than a guess: 1 − 2^(−fraction), 6.7 %
    for a tenth. The estimate is the largest ratio of a cell's share to (b). Supported if in every
    cell the upper bound lies below `thinner` of both laws; contradicted if in one the lower bound
    lies above (b). Looks come every few steps, so that times are rounded up: the laws are read at
    the same look, and the median is taken anywhere between its look and the one before. Each cell
    has an equal share of the level. While a cell cannot be judged, the claim is not supported.
    """

    fraction: float = 0.1
    thinner: float = 0.1
    within: tuple[str, ...] = WITHIN

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from many runs a cell."""
        quantity = (
            f"runs solved within {self.fraction:g} of the median time, over a memoryless law's"
        )
        if clash := mixed(table, self.within):
            return nothing(quantity, clash)
        cells = arrivals(table, self.within)
        risk = level / max(1, len(cells))
        tails = {key: _lower_tail(cell, self.fraction, risk) for key, cell in cells.items()}
        known = {key: tail for key, tail in tails.items() if isinstance(tail, _Tail)}
        thin = {
            key: tail.high < self.thinner
            and tail.shares[1] < self.thinner * float(guessing(tail.at, cells[key].n, cells[key].k))
            for key, tail in known.items()
        }
        remarks = [
            f"{_named(self.within, key)}: {_lower_remark(cells[key], tail)}"
            for key, tail in tails.items()
        ]
        if not known:
            return nothing(quantity, "; ".join(remarks) or "no runs")
        estimate, low, high = (
            max(getattr(tail, part) for tail in known.values()) for part in ("ratio", "low", "high")
        )
        judgement = Judgement.UNDECIDED
        if low > 1:
            judgement = Judgement.CONTRADICTED
        elif len(known) == len(cells) and all(thin.values()):
            judgement = Judgement.SUPPORTED
        n = sum(cell.runs for cell in cells.values())
        return Finding(judgement, estimate, low, high, quantity, n, "; ".join(remarks))


@dataclass(frozen=True)
class HeavyUpperTail:
    """More runs take `multiple` medians than a law without memory would have [HP Fig. 5.2].

    In each cell of `within`, the share of runs not solved by `multiple` times their median, over
    2^(−multiple); the estimate is the least over the cells. Supported if the interval lies above
    1 in every cell, contradicted if it lies below 1 in one. Runs without success are beyond any
    multiple that the budget holds. Each cell has an equal share of the level.

    The source calls its tails heavy and says no more. This is a strict reading: times that begin
    with a wait common to all, and are memoryless after it, do not reach 1. The remark says how the
    tail looks without that wait: the share of runs later than the median by more than three
    times the upper quartile's distance from it, 1/16 for a memoryless law after whatever wait.
    """

    multiple: float = 3.0
    within: tuple[str, ...] = WITHIN

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from many runs a cell."""
        quantity = f"runs later than {self.multiple:g} medians, over a memoryless law's"
        if clash := mixed(table, self.within):
            return nothing(quantity, clash)
        cells = arrivals(table, self.within)
        risk = level / max(1, len(cells))
        tails = {key: _upper_tail(cell, self.multiple, risk) for key, cell in cells.items()}
        known = [tail for tail in tails.values() if isinstance(tail, _Tail)]
        remarks = [
            f"{_named(self.within, key)}: {_upper_remark(cells[key], tail)}"
            for key, tail in tails.items()
        ]
        if not known:
            return nothing(quantity, "; ".join(remarks) or "no runs")
        estimate, low, high = (
            min(getattr(tail, part) for tail in known) for part in ("ratio", "low", "high")
        )
        judgement = Judgement.UNDECIDED
        if high < 1:
            judgement = Judgement.CONTRADICTED
        elif len(known) == len(cells) and low > 1:
            judgement = Judgement.SUPPORTED
        n = sum(cell.runs for cell in cells.values())
        return Finding(judgement, estimate, low, high, quantity, n, "; ".join(remarks))


def _named(within: Sequence[str], key: Sequence[Any]) -> str:
    letters = {"task": "", "model.width": "r = "}
    return ", ".join(
        f"{letters.get(name, f'{name} = ')}{value}" for name, value in zip(within, key, strict=True)
    )


def _lower_remark(cell: Arrivals, tail: _Tail | str) -> str:
    if isinstance(tail, str):
        return tail
    late = "unknown"
    if 5 * cell.median <= cell.budget:
        late = f"{1 - cell.solved_by(5 * cell.median) / cell.runs:.2%}"
    guessed = float(guessing(tail.at, cell.n, cell.k))
    return (
        f"{tail.hits} of {cell.runs} runs by step {tail.at} (memoryless {tail.law:.2%}, one guess "
        f"a step {guessed:.2%}); the first at {cell.ranked(1):.0f}, "
        f"median {cell.median:.0f}, {late} after 5 medians (memoryless 3.12%), "
        f"{cell.unsolved / cell.runs:.2%} not solved"
    )


def _upper_remark(cell: Arrivals, tail: _Tail | str) -> str:
    if isinstance(tail, str):
        return tail
    quartile = cell.ranked(math.ceil(0.75 * cell.runs))
    shape = "unknown"
    if (place := cell.median + 3 * (quartile - cell.median)) <= cell.budget:
        shape = f"{1 - cell.solved_by(place) / cell.runs:.2%}"
    return (
        f"{tail.share:.2%} later than {tail.at} steps (memoryless {tail.law:.2%}); from the median "
        f"on {shape} (memoryless 6.25%); {cell.unsolved} of {cell.runs} not solved"
    )
