"""Lottery tickets against their control [PF App. C.2]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.rules.claims import Finding, by_interval, nothing
from petridish.statistics.estimate import student_half_width, wilson_interval

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class TicketsWin:
    """Runs from winning tickets do better than their control of the same size.

    «success»: the difference of the shares solved. «time»: the probability that a ticket's run is
    solved before a control's, runs that never are counting as equally late; ½ is no difference.
    Runs from one parent share their ticket: the interval is Student's over the parents' means, or
    Wilson's where all parents agree.
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
        late = table.with_columns(
            time=pl.col("solved_at").fill_null(math.inf).cast(pl.Float64)
        ).sort("init.seed", "seed")  # sums of floats depend on their order
        control = late.filter(pl.col("init.chosen") == self.control)["time"].to_numpy()
        tickets = late.filter(pl.col("init.chosen") == self.ticket)
        parents = [
            part["time"].to_numpy()
            for part in tickets.partition_by("init.seed", maintain_order=True)
        ]
        if len(parents) < 3 or len(control) < 3:
            return nothing(quantity, "needs tickets of three parents, and three control runs")
        if self.score == "success":
            own = np.isfinite(control).astype(np.float64)
            means = np.array([np.isfinite(times).mean() for times in parents])
            estimate, neutral = float(means.mean() - own.mean()), 0.0
            control_side = _distances(own, level)[::-1]  # it is taken away
        else:
            means = np.array([_sooner(times, control) for times in parents])
            everyone = np.concatenate(parents)
            own = np.array([_sooner(everyone, np.array([time])) for time in control])
            estimate, neutral = float(means.mean()), 0.5
            control_side = _distances(own, level)
        # What the parents' luck leaves open, and what the control's does.
        below, above = map(math.hypot, _distances(means, level), control_side)
        solved = sum(int(np.isfinite(times).sum()) for times in parents)
        total = sum(len(times) for times in parents)
        remark = (
            f"{solved} of {total} runs of {len(parents)} tickets solved, "
            f"{int(np.isfinite(control).sum())} of {len(control)} of the control"
        )
        low, high = max(estimate - below, 2 * neutral - 1), min(estimate + above, 1.0)
        judgement = by_interval(low, high, neutral)
        return Finding(judgement, estimate, low, high, quantity, total + len(control), remark)


def _sooner(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Give the share of pairs in which `first` is smaller, ties counting half."""
    a, b = first[:, None], second[None, :]
    return float(np.mean((a < b) + 0.5 * (a == b)))


def _distances(shares: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Give the distances from a mean share to its bounds: Student's, or Wilson's if all agree."""
    if shares.std() > 0:
        half = student_half_width(shares, 1 - level)
        return half, half
    low, high = wilson_interval(shares.sum(), np.array(len(shares)), coverage=1 - level)
    return float(shares.mean() - low), float(high - shares.mean())
