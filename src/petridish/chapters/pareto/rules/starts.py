"""One start against others: the best of many, and where one succeeds while another fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from petridish.rules.cells import grid
from petridish.rules.claims import Finding, Judgement, nothing
from petridish.rules.success import Beats
from petridish.rules.times import Quicker
from petridish.sweeps.arms import by_arm

if TYPE_CHECKING:
    import polars as pl

SAME = ("task", "data.m", "model.width")


@dataclass(frozen=True)
class BestStart:
    """One start succeeds more often than every other, or sooner, at equal task, sample and width.

    Against each of the others by `Beats` or by `Quicker`, at the level over their number. Supported
    if it is better than all of them, contradicted if one of them is better; the numbers are those
    of the other that comes nearest.
    """

    candidate: str
    score: Literal["success", "time"] = "success"

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        unit = "gain in success" if self.score == "success" else "gain in time, as a ratio,"
        quantity = f"least {unit} of {self.candidate} over another start"
        others = [init for init in sorted(set(table["init"])) if init != self.candidate]
        if self.candidate not in set(table["init"]) or not others:
            return nothing(quantity, f"{self.candidate} was not run beside another start")
        found = {
            other: (
                Beats("init", self.candidate, other, within=SAME)
                if self.score == "success"
                else Quicker("init", within=SAME, ends=(other, self.candidate))
            ).judge(table, level / len(others))
            for other in others
        }
        nearest = min(found, key=lambda other: (found[other].low, found[other].estimate))
        sides = {finding.judgement for finding in found.values()}
        judgement = Judgement.UNDECIDED
        if Judgement.CONTRADICTED in sides:
            judgement = Judgement.CONTRADICTED
        elif sides == {Judgement.SUPPORTED}:
            judgement = Judgement.SUPPORTED
        if any(np.isnan(finding.low) for finding in found.values()):
            nearest = next(other for other in others if np.isnan(found[other].low))
        decides = found[nearest]
        remark = ", ".join(f"{other}: {finding.numbers()}" for other, finding in found.items())
        n = sum(len(table.filter(table["init"] == init)) for init in (self.candidate, *others))
        ends = decides.estimate, decides.low, decides.high
        bound = 0.0 if self.score == "success" else 1.0
        quantity = f"{quantity} ({nearest})"
        return Finding(judgement, *ends, quantity, n, remark, decides.note, bound)


@dataclass(frozen=True)
class SucceedsWhereFails:
    """Somewhere, one start succeeds in most runs and another fails in most.

    The claim is about tasks and widths at which the start `fails` fails at every sample. Cells of
    equal task, sample and width in some arms; their intervals hold whenever a cell was stopped, at
    the level over twice the cells. Where the one lies below ½ in every cell, supported if the other
    lies above ½ in some cell; contradicted if there are such tasks and widths, the other lies below
    ½ in every cell of all of them, and elsewhere some start lies above ½: where none does, the
    budget was too small for all. Where the premise is not met nothing is decided. The estimate is
    the largest difference of success.
    """

    arms: tuple[str, ...]
    succeeds: str = "sparse(2)"
    fails: str = "uniform"

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of the arms."""
        from petridish.statistics.intervals import anytime_interval

        quantity = f"largest difference of success, {self.succeeds} − {self.fails}"
        runs = by_arm(table, *self.arms).drop("arm")
        if not {self.succeeds, self.fails} <= set(runs["init"]):
            return nothing(quantity, f"needs runs from {self.succeeds} and from {self.fails}")
        both = grid(runs, rows="init", columns="data.m", strata=("task", "model.width"))
        both = both.of_rows((self.succeeds, self.fails))
        made = np.all(both.runs > 0, axis=1)  # (stratum, column)
        if not made.any():
            return nothing(quantity, "no cell was run from both starts")
        coverage = 1 - level / (2 * int(made.sum()))
        low, high = anytime_interval(both.solved, both.runs, coverage=coverage)
        there = made & (low[:, 0] > 0.5) & (high[:, 1] < 0.5)
        met = made.any(axis=1) & np.all(~made | (high[:, 1] < 0.5), axis=1)  # (stratum,)
        judgement = Judgement.UNDECIDED
        if there[met].any():
            judgement = Judgement.SUPPORTED
        elif met.any() and np.all(~made[met] | (high[met, 0] < 0.5)) and (low > 0.5).any():
            judgement = Judgement.CONTRADICTED
        with np.errstate(invalid="ignore", divide="ignore"):
            share = both.solved / both.runs
        gain = np.where(made, share[:, 0] - share[:, 1], -np.inf)
        stratum, column = np.unravel_index(np.argmax(gain + 2 * there), gain.shape)
        estimate = float(gain[stratum, column])
        ends = (
            float(low[stratum, 0, column] - high[stratum, 1, column]),
            float(high[stratum, 0, column] - low[stratum, 1, column]),
        )
        task, width = both.strata[stratum]
        counts = [
            f"{solved} of {runs} from {name}"
            for name, solved, runs in zip(
                both.rows,
                both.solved[stratum, :, column],
                both.runs[stratum, :, column],
                strict=True,
            )
        ]
        remark = (
            f"at {task}, r = {width}, m = {both.columns[column]:g}: {' and '.join(counts)}; so in "
            f"{int(there.sum())} of {int(made.sum())} cells; {self.fails} fails at every m at "
            f"{int(met.sum())} of {len(met)} tasks and widths"
        )
        if not met.any():
            remark += ": the premise is not met"
        n = int(both.runs.sum())
        return Finding(judgement, estimate, *ends, quantity, n, remark, bound=0.0)
