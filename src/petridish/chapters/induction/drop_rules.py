"""Rules of IH-7: exponents of the time of the second drop, its spread, and what foretells it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.induction.measures import OF_GAP, GapTime
from petridish.errors import UserError, require
from petridish.rules.claims import Finding, Judgement, Reads, by_interval, nothing
from petridish.rules.columns import curve_columns
from petridish.rules.laid_out import ValueGroup, lay_out
from petridish.rules.layouts import Trend
from petridish.rules.measures import Measure
from petridish.statistics.known import Known
from petridish.statistics.log_times import LogTimes
from petridish.statistics.random_effects import FEWEST, explained_share
from petridish.statistics.ranks import fisher_z, rank_correlation
from petridish.sweeps.arms import arm_names

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
DROP = GapTime(0.5)
"""The time of the second drop: the loss is half-way from unigrams to bigrams."""

FEWEST_RUNS = 8  # that are still on their plateau; of fewer a rank correlation says nothing


@dataclass(frozen=True)
class Exponent(Trend):
    """The exponent of a measure as a power of a field, seed by seed.

    The value of a seed is the slope of the logarithms, by least squares. Of a seed with a time
    beyond its budget nothing is known: it counts as anything from −∞ to ∞.
    """

    def describe(self, measure: str) -> str:
        """Return what is laid out, in words."""
        return f"exponent of {measure} in {self.along}"

    def groups(self, table: pl.DataFrame, measure: Measure) -> list[ValueGroup]:
        """Lay the runs of a table out."""
        runs = self.chosen(table, measure)
        require(
            runs[self.along].n_unique() > 1,
            f"An exponent in {self.along} needs two values of it, and these runs have fewer.",
        )
        laid = lay_out(runs, measure, self.within, (self.along,))
        x = np.log(np.array(laid.sides, np.float64))
        found = []
        for place, name in enumerate(laid.groups):
            values, made = laid.values[place], laid.runs[place]  # (side, seed)
            slopes = [_slope(x, values[:, seed]) for seed in range(made.shape[1])]
            known = Known(*(np.array(end, np.float64) for end in zip(*slopes, strict=True)))
            group = ValueGroup(name, known[None, :], int(made.sum()), laid.without[place])
            found.append(group)
        return found


def _slope(x: Floats, values: Known) -> tuple[float, float]:
    """Return what is known of the slope of log values: NaN where a value is not there."""
    if not values.there.all():
        return math.nan, math.nan
    if not values.exact.all():
        return -math.inf, math.inf
    # Equal times have the exponent 0, whatever the last digits of a processor's logarithms.
    slope = round(float(np.polyfit(x, np.log(values.low), 1)[0]), 12) + 0.0
    return slope, slope


@dataclass(frozen=True)
class Early(Measure):
    """1 if the second drop comes before a fraction of the median of runs with as many states."""

    fraction: float = 0.5

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return (*OF_GAP, "task.k")

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"second drop before {self.fraction:g} of the median time"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        times, states = DROP.of(table), table["task.k"].to_numpy()
        found = np.full(len(times), math.nan)
        for k in np.unique(states):
            of_k = states == k
            ordered = np.sort(times[of_k])  # NaN comes last
            there = int((~np.isnan(ordered)).sum())
            if there:
                middle = ordered[(there - 1) // 2]
                early = (times[of_k] < self.fraction * middle).astype(float)
                found[of_k] = np.where(np.isnan(times[of_k]), math.nan, early)
        return found


@dataclass(frozen=True)
class StartExplains(Reads):
    """More than `share` of the variance of the logarithm of the second drop's time is the start's.

    Of the arm's runs, those that share `init` share their initial weights and differ in their data.
    A time is known up to an evaluation. The estimate is `explained_share`'s.
    """

    arm: str
    share: float = 0.5
    quantity = "share of the variance of the log time of the second drop between starts"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return (*OF_GAP, "init", "evaluation.every")

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        try:
            return self._judge(_of_arm(table, self.arm), level)
        except UserError as refusal:
            return nothing(self.quantity, str(refusal))

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        known, gaps = DROP.known(table), table["evaluation.every"].to_numpy()
        low = np.where(known.exact, np.maximum(known.low - gaps, 1), known.low)
        groups: dict[str, list[tuple[float, float]]] = {}
        inits = table["init"].to_list()
        for init, first, last in zip(inits, np.log(low), np.log(known.high), strict=True):
            if not math.isnan(first):
                groups.setdefault(init, []).append((float(first), float(last)))
        longest = max(map(len, groups.values()), default=0)
        require(
            len(groups) >= FEWEST and longest > 1, f"needs {FEWEST} starts with two seeds of each"
        )
        ends = np.full((len(groups), longest, 2), (-np.inf, np.inf))
        for row, name in zip(ends, sorted(groups), strict=True):
            row[: len(groups[name])] = sorted(groups[name])
        times = LogTimes(ends[..., 0], ends[..., 1])
        runs = int(times.runs.sum())
        require(times.unsolved <= runs / 2, f"{times.unsolved} of {runs} runs have no second drop")
        found = explained_share(times, coverage=1 - level)
        remark = (
            f"{len(groups)} starts with up to {longest} seeds; the log time varies by "
            f"±{found.fit.between:.2g} between starts and ±{found.fit.within:.2g} within one"
        )
        judgement = by_interval(found.low, found.high, self.share)
        numbers = found.fit.share, found.low, found.high
        return Finding(judgement, *numbers, self.quantity, runs, remark)


@dataclass(frozen=True)
class Foretells(Reads):
    """A curve on the plateau says which runs drop sooner: a rank correlation above 0 in every arm.

    The curve is read at the last evaluation up to `share` of the arm's median time of the second
    drop, over the runs that have not dropped by then, and correlated with how soon they do:
    Spearman's ρ with minus the time that remains. A run without a drop is later than all others.
    """

    curve: str
    arms: tuple[str, ...]
    share: float = 0.5

    @property
    def quantity(self) -> str:
        """What the estimate measures, in words."""
        return f"rank correlation of {self.curve} on the plateau and how soon the second drop comes"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return *OF_GAP, *curve_columns(self.curve)

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        try:
            found = [self._of_arm(_of_arm(table, arm), level) for arm in self.arms]
        except UserError as refusal:
            return nothing(self.quantity, str(refusal))
        sides = [by_interval(low, high, 0.0) for _, low, high, _, _ in found]
        judgement = Judgement.UNDECIDED
        if Judgement.CONTRADICTED in sides:
            judgement = Judgement.CONTRADICTED
        elif all(side is Judgement.SUPPORTED for side in sides):
            judgement = Judgement.SUPPORTED
        least = min(found)
        remark = "; ".join(
            f"{arm}: {value:.2f} [{low:.2f}, {high:.2f}], {runs} runs at step {at:g}"
            for arm, (value, low, high, runs, at) in zip(self.arms, found, strict=True)
        )
        return Finding(judgement, *least[:3], self.quantity, sum(f[3] for f in found), remark)

    def _of_arm(self, table: pl.DataFrame, level: float) -> tuple[float, float, float, int, float]:
        times = DROP.of(table)
        ordered = np.sort(times[~np.isnan(times)])
        require(len(ordered) >= FEWEST_RUNS, f"needs {FEWEST_RUNS} runs, and has {len(ordered)}")
        until = self.share * ordered[(len(ordered) - 1) // 2]
        require(math.isfinite(until), "more than half of the runs have no second drop")
        x, y, at = [], [], 0.0
        rows = table.select("curve.step", f"curve.{self.curve}").rows()
        for (steps, curve), time in zip(rows, times, strict=True):
            place = int(np.searchsorted(steps or (), until, side="right")) - 1
            if steps and curve and time > steps[place]:
                at = float(steps[place])
                x.append(curve[place])
                y.append(at - time)
        n = len(x)
        require(n >= FEWEST_RUNS, f"needs {FEWEST_RUNS} runs on their plateau, and has {n}")
        value = float(rank_correlation(np.array(x, np.float64), np.array(y, np.float64)))
        middle = float(fisher_z(np.array(value), n))
        normal = NormalDist().inv_cdf(1 - level / len(self.arms) / 2)
        half = normal * math.sqrt((1 + value**2 / 2) / (n - 3))
        return value, math.tanh(middle - half), math.tanh(middle + half), n, at


def _of_arm(table: pl.DataFrame, arm: str) -> pl.DataFrame:
    import polars as pl

    require(arm in arm_names(table), f"There is no arm called {arm!r} among these runs.")
    return table.filter(pl.col("arms").list.contains(arm))
