"""Rules that compare several conditions: the best of many, and tickets with their control."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.analysis.claims import INCOMPLETE, Finding, Judgement, by_interval, nothing
from petridish.analysis.estimate import mean_difference, student_half_width

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class BestOrTied:
    """No other value of `condition` succeeds more often than `candidate`, at equal `within`.

    The estimate is the largest mean gain of another value over the candidate; its interval is
    simultaneous over all the others (Bonferroni). Contradicted if another is significantly better;
    supported if every other one's gain is below `margin`, intervals included.
    """

    condition: str
    candidate: str
    within: tuple[str, ...] = ("task", "data.m", "model.width")
    at_least: Mapping[str, float] = field(default_factory=dict)
    margin: float = 0.1

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        import polars as pl

        from petridish.analysis.cells import compared

        quantity = f"largest gain in success of another {self.condition} over {self.candidate}"
        for column, least in self.at_least.items():
            table = table.filter(pl.col(column) >= least)
        if self.candidate not in set(table[self.condition]) or len(set(table[self.condition])) < 2:
            return nothing(quantity, f"{self.candidate} was not run beside another value")
        values, outcome = compared(table, along=self.condition, within=self.within)
        if not len(outcome) or outcome.shape[-1] < 2:
            return nothing(quantity, INCOMPLETE)
        own = outcome[:, values.index(self.candidate)]
        others = [value for value in values if value != self.candidate]
        gains = {
            other: mean_difference(
                outcome[:, values.index(other)], own, level=1 - level / len(others)
            )
            for other in others
        }
        best = max(gains, key=lambda other: gains[other][0])
        judgement = Judgement.UNDECIDED
        if any(low > 0 for _, low, _ in gains.values()):
            judgement = Judgement.CONTRADICTED
        elif all(high < self.margin for _, _, high in gains.values()):
            judgement = Judgement.SUPPORTED
        shares = {value: float(outcome[:, values.index(value)].mean()) for value in values}
        order = sorted(shares, key=lambda value: -shares[value])
        remark = "success " + ", ".join(f"{value} {shares[value]:.0%}" for value in order)
        return Finding(judgement, *gains[best], f"{quantity} ({best})", outcome.size, remark)


@dataclass(frozen=True)
class TicketsWin:
    """Runs from winning tickets do better than their control of the same size.

    «success»: the difference of the shares solved. «time»: the probability that a ticket's run is
    solved before a control's, runs that never are counting as equally late; ½ is no difference.
    Runs from one parent share their ticket: the interval is Student's over the parents' means.
    """

    score: Literal["success", "time"] = "success"
    ticket: str = "largest"
    control: str = "random"

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs whose init is a ticket."""
        import polars as pl

        quantity = {
            "success": f"share solved, {self.ticket} − {self.control} neurons",
            "time": f"probability that {self.ticket} neurons are solved sooner than {self.control}",
        }[self.score]
        if "init.chosen" not in table.columns:
            return nothing(quantity, "no run begins with a ticket")
        late = table.with_columns(time=pl.col("solved_at").fill_null(math.inf).cast(pl.Float64))
        control = late.filter(pl.col("init.chosen") == self.control)["time"].to_numpy()
        tickets = late.filter(pl.col("init.chosen") == self.ticket)
        parents = [
            part["time"].to_numpy()
            for part in tickets.partition_by("init.seed", maintain_order=True)
        ]
        if len(parents) < 2 or len(control) < 2:
            return nothing(quantity, "needs tickets of two parents, and two runs of the control")
        if self.score == "success":
            own = np.isfinite(control).astype(np.float64)
            means = np.array([np.isfinite(times).mean() for times in parents]) - own.mean()
            neutral = 0.0
        else:
            means = np.array([_sooner(times, control) for times in parents])
            everyone = np.concatenate(parents)
            own = np.array([_sooner(everyone, np.array([time])) for time in control])
            neutral = 0.5
        # What the parents' luck leaves open, and what the control's does.
        half = math.hypot(student_half_width(means, 1 - level), student_half_width(own, 1 - level))
        estimate = float(means.mean())
        solved = sum(int(np.isfinite(times).sum()) for times in parents)
        total = sum(len(times) for times in parents)
        remark = (
            f"{solved} of {total} runs of {len(parents)} tickets solved, "
            f"{int(np.isfinite(control).sum())} of {len(control)} of the control"
        )
        low, high = estimate - half, estimate + half
        judgement = by_interval(low, high, neutral)
        return Finding(judgement, estimate, low, high, quantity, total + len(control), remark)


def _sooner(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Give the share of pairs in which `first` is smaller, ties counting half."""
    a, b = first[:, None], second[None, :]
    return float(np.mean((a < b) + 0.5 * (a == b)))
