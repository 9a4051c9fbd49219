"""Rules that compare several conditions: the best of many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from petridish.rules.cells import WithinStrata, within_bounds
from petridish.rules.claims import (
    Finding,
    Judgement,
    blind_within,
    nothing,
    remarks,
    seeds_to_exclude,
)
from petridish.rules.success import INCOMPLETE
from petridish.rules.tuning import at_best, tuned_text
from petridish.statistics.intervals import mean_difference

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class BestOrTied(WithinStrata):
    """No other value of `condition` succeeds more often than `candidate`, at equal `within`.

    The estimate is the largest mean gain of another value over the candidate; its interval is
    simultaneous over all the others (Bonferroni). Contradicted if another is significantly better;
    supported if every other one's gain is below `margin`, intervals included.
    With `best_over`, every cell is taken at the best values of these fields, such as
    ``("training.learning_rate",)``: chosen on one half of the seeds, measured on the other.
    """

    condition: str
    candidate: str
    within: tuple[str, ...] = ("task", "data.m", "model.width")
    at_least: Mapping[str, float] = field(default_factory=dict)
    margin: float = 0.1
    best_over: tuple[str, ...] = ()

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        from petridish.rules.cells import compared

        quantity = (
            f"largest gain in success of another {self.condition} over {self.candidate}"
            f"{tuned_text(self.best_over)}"
        )
        table = within_bounds(table, self.at_least)
        if self.candidate not in set(table[self.condition]) or len(set(table[self.condition])) < 2:
            return nothing(quantity, f"{self.candidate} was not run beside another value")
        table = at_best(table, self.best_over, (self.condition, *self.within))
        values, outcome = compared(table, along=self.condition, within=self.within)
        if not len(outcome):
            return nothing(quantity, INCOMPLETE)
        own = outcome[:, values.index(self.candidate)]
        others = [value for value in values if value != self.candidate]
        gains = {
            other: mean_difference(
                outcome[:, values.index(other)], own, coverage=1 - level / len(others)
            )
            for other in others
        }
        # The one that decides: significantly better, or else the one that comes nearest to it.
        best = max(gains, key=lambda other: (gains[other][1] > 0, gains[other][0]))
        judgement = Judgement.UNDECIDED
        if any(low > 0 for _, low, _ in gains.values()):
            judgement = Judgement.CONTRADICTED
        elif all(high < self.margin for _, _, high in gains.values()):
            judgement = Judgement.SUPPORTED
        shares = {value: float(np.nanmean(outcome[:, values.index(value)])) for value in values}
        order = sorted(shares, key=lambda value: -shares[value])
        remark = "success " + ", ".join(f"{value} {shares[value]:.0%}" for value in order)
        n = int((~np.isnan(outcome)).sum())
        note = ""
        if judgement is Judgement.UNDECIDED:
            widest = max(gains, key=lambda other: gains[other][2])
            seeds = outcome.shape[-1]
            blind = blind_within(self.margin, *gains[widest])
            remark = remarks(remark, blind and f"of {widest}: {blind}")
            note = seeds_to_exclude(
                self.margin, *gains[widest], seeds=seeds, of=widest, claimed="below"
            )
        return Finding(judgement, *gains[best], f"{quantity} ({best})", n, remark, note)
