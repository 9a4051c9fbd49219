"""Claims: a sentence, its source, and a rule with a level, fixed before the runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import polars as pl

    from petridish.analysis.cells import Grid


class Judgement(Enum):
    """What the runs say about a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Finding:
    """What a rule found.

    Attributes
    ----------
    estimate, low, high : float
        The effect and its interval; NaN where there is nothing to estimate.
    quantity : str
        What the estimate measures.
    n : int
        Runs behind it.
    remark : str
        What else a reader should know, such as the cells that speak against the claim.
    """

    judgement: Judgement
    estimate: float
    low: float
    high: float
    quantity: str
    n: int
    remark: str = ""


class Rule(Protocol):
    """How a claim is judged. The level is the probability of a wrong verdict that it may risk."""

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""


@dataclass(frozen=True)
class Claim:
    """A statement that can come out false."""

    name: str
    text: str
    source: str
    rule: Rule


@dataclass(frozen=True)
class Verdict:
    """A claim with what was found."""

    claim: Claim
    finding: Finding
    level: float

    def as_json(self) -> dict[str, Any]:
        """Give the verdict as JSON can hold it: no NaN and no infinity."""
        finding = self.finding
        return {
            "claim": self.claim.name,
            "verdict": finding.judgement.value,
            "estimate": _finite(finding.estimate),
            "low": _finite(finding.low),
            "high": _finite(finding.high),
            "n": finding.n,
            "level": self.level,
            "text": self.claim.text,
            "source": self.claim.source,
            "quantity": finding.quantity,
            "remark": finding.remark,
        }

    def __str__(self) -> str:
        finding = self.finding
        numbers = f"{finding.estimate:.3g} [{finding.low:.3g}, {finding.high:.3g}]"
        remark = f"; {finding.remark}" if finding.remark else ""
        return (
            f"({self.claim.name}) {finding.judgement.value.upper()}: {finding.quantity} = {numbers}"
            f", n = {finding.n}, level {self.level:.3g}{remark}"
        )


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def nothing(quantity: str, remark: str) -> Finding:
    """Give the finding where there are no runs to judge from."""
    return Finding(Judgement.UNDECIDED, math.nan, math.nan, math.nan, quantity, 0, remark)


def _by_interval(low: float, high: float, neutral: float) -> Judgement:
    if low > neutral:
        return Judgement.SUPPORTED
    if high < neutral:
        return Judgement.CONTRADICTED
    return Judgement.UNDECIDED


@dataclass(frozen=True)
class FrontierShrinks:
    """The smallest `over` with half of the runs solved does not grow along `along`, and shrinks.

    The estimate is the ratio of the frontier at the narrowest and at the widest, geometric mean
    over the strata, with an interval from the cells' posteriors. Supported if the whole interval
    lies above 1 and no step along `along` makes the frontier grow significantly; contradicted if it
    lies below 1 or a step does. A frontier beyond the grid counts as one step beyond it.
    """

    along: str = "model.width"
    over: str = "data.m"
    within: tuple[str, ...] = ("init",)
    draws: int = 20_000

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        import numpy as np

        from petridish.analysis.cells import grid
        from petridish.analysis.frontier import frontier_draws, frontier_index, sample_sizes

        quantity = f"{self.over} at 50 % success, narrowest / widest"
        if table[self.along].n_unique() < 2 or table[self.over].n_unique() < 2:
            return nothing(quantity, f"needs two values of {self.along} and of {self.over}")
        counts = grid(table, rows=self.along, columns=self.over, strata=self.within)
        sizes = sample_sizes(counts.columns)
        rng = np.random.default_rng(0)  # the same table gives the same verdict
        drawn = frontier_draws(counts, draws=self.draws, rng=rng)  # (draw, stratum, row)
        ratio = np.exp(np.mean(np.log(sizes[drawn[..., 0]] / sizes[drawn[..., -1]]), axis=-1))
        low, high = np.quantile(ratio, [level / 2, 1 - level / 2])
        success = counts.solved / np.maximum(counts.runs, 1)
        best = frontier_index(np.where(counts.runs > 0, success, 0.0))
        estimate = np.exp(np.mean(np.log(sizes[best[:, 0]] / sizes[best[:, -1]])))
        grows = (drawn[..., 1:] > drawn[..., :-1]).mean(axis=0)  # (stratum, step)
        growing = np.argwhere(grows > 1 - level / grows.size)
        judgement = _by_interval(float(low), float(high), 1.0)
        if len(growing):
            judgement = Judgement.CONTRADICTED
        remark = _steps(counts, growing, f"the frontier grows from {self.along}")
        return Finding(
            judgement, float(estimate), float(low), float(high), quantity, len(table), remark
        )


@dataclass(frozen=True)
class NeverDecreases:
    """Success rises along `along` at fixed `within`, and no step along it lowers it.

    The estimate is the mean rise from the narrowest to the widest over the strata. Contradicted if
    a step between neighbours lowers success significantly (Fisher's exact test, Holm over all
    steps) or the trend falls; supported if the stratified trend test finds a rise and none does.
    """

    along: str = "model.width"
    within: tuple[str, ...] = ("data.m", "init")

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        import numpy as np

        from petridish.analysis.cells import grid
        from petridish.analysis.estimate import mean_difference
        from petridish.analysis.trend import decrease_test, holm, trend_test

        quantity = f"rise of success along {self.along}"
        if table[self.along].n_unique() < 2:
            return nothing(quantity, f"needs two values of {self.along}")
        first, *rest = self.within
        counts = grid(table, rows=first, columns=self.along, strata=rest)
        solved = counts.solved.reshape(-1, len(counts.columns))  # (stratum, width)
        runs = counts.runs.reshape(-1, len(counts.columns))
        full = (runs > 0).all(axis=1)
        if not full.any():
            return nothing(quantity, f"no setting was run at every {self.along}")
        solved, runs = solved[full], runs[full]
        estimate, low, high = mean_difference(
            (solved[:, -1], runs[:, -1]), (solved[:, 0], runs[:, 0]), level=1 - level
        )
        rise = trend_test(solved, runs, np.arange(len(counts.columns), dtype=np.float64))
        falls = holm(
            [
                decrease_test((int(s[i]), int(n[i])), (int(s[i + 1]), int(n[i + 1])))
                for s, n in zip(solved, runs, strict=True)
                for i in range(len(s) - 1)
            ]
        )
        lower = sum(p < level for p in falls)
        judgement = Judgement.UNDECIDED
        if lower or 1 - rise < level:
            judgement = Judgement.CONTRADICTED
        elif rise < level:
            judgement = Judgement.SUPPORTED
        remark = f"trend p = {rise:.2g}; {lower} of {len(falls)} steps lower success significantly"
        return Finding(judgement, estimate, low, high, quantity, int(runs.sum()), remark)


@dataclass(frozen=True)
class Beats:
    """One value of `condition` succeeds more often than another, at equal `within`.

    The estimate is the mean difference of success over the cells where both were run and
    `at_least` holds: {"model.width": 100} means width 100 and above.
    """

    condition: str
    better: str
    worse: str
    within: tuple[str, ...] = ("data.m", "model.width")
    at_least: Mapping[str, float] = field(default_factory=dict)

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        import polars as pl

        from petridish.analysis.cells import cells
        from petridish.analysis.estimate import mean_difference

        quantity = f"success of {self.better} − {self.worse}"
        for column, least in self.at_least.items():
            table = table.filter(pl.col(column) >= least)
        counted = cells(table, [self.condition, *self.within])
        sides = [
            counted.filter(pl.col(self.condition) == side).drop(self.condition)
            for side in (self.better, self.worse)
        ]
        both = sides[0].join(sides[1], on=self.within, suffix="_worse").sort(self.within)
        if both.is_empty():
            return nothing(quantity, f"no cell was run with both values of {self.condition}")
        better = both["solved"].to_numpy(), both["runs"].to_numpy()
        worse = both["solved_worse"].to_numpy(), both["runs_worse"].to_numpy()
        estimate, low, high = mean_difference(better, worse, level=1 - level)
        n = int(better[1].sum() + worse[1].sum())
        p1, p2 = better[0] / better[1], worse[0] / worse[1]
        remark = f"{int((p1 > p2).sum())} of {len(both)} cells higher, {int((p1 < p2).sum())} lower"
        judgement = _by_interval(low, high, 0.0)
        return Finding(judgement, estimate, low, high, quantity, n, remark)


def _steps(counts: Grid, places: Any, text: str) -> str:
    named = [
        f"{text} {counts.rows[row]} to {counts.rows[row + 1]} at "
        f"{', '.join(map(str, counts.strata[stratum]))}"
        for stratum, row in places
    ]
    return "; ".join(named)
