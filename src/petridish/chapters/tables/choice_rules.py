"""What PF says of the grid of its networks on tables: depth, sparsity, decay [PF App. C.3].

As in `rules`, runs are compared on the same splits, at conditions that are alike but for what is
compared, and every interval is over tasks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.chapters.tables.error_arrays import Errors, Floats, Places, even_mlps
from petridish.chapters.tables.gains import alike
from petridish.chapters.tables.rules import FEWEST, NO_MLP, over_tasks
from petridish.rules.claims import Finding, Judgement, blind_within, by_interval, nothing, remarks
from petridish.statistics.paired import Difference, paired_test, significant

if TYPE_CHECKING:
    import polars as pl

SAME_NET = {"depth": ("model",)}  # what else differs between two values of a column


def compared(
    errors: Errors, column: str, worse: Any, better: Sequence[Any]
) -> tuple[Places, Floats, int]:
    """Return what each of `better` gains over `worse`, at conditions that are alike.

    The owner of every row, the errors at `worse` less those at `better`, shape (row, trial), and
    the runs behind them.
    """
    values = errors.configurations[column].to_list()
    owner: list[int] = []
    rows: list[Floats] = []
    used: set[tuple[int, int]] = set()  # a cell and a configuration
    for group in alike(errors.configurations, (column, *SAME_NET.get(column, ()))):
        places = {values[place]: int(place) for place in group}
        for value in better if worse in places else ():
            if value not in places:
                continue
            pair = places[worse], places[value]
            gains = errors.error[:, pair[0]] - errors.error[:, pair[1]]  # (cell, trial)
            for cell in np.flatnonzero(~np.isnan(gains).all(axis=1)):
                owner.append(int(errors.owner[cell]))
                rows.append(gains[cell])
                used |= {(int(cell), place) for place in pair}
    runs = sum(int((~np.isnan(errors.error[cell, place])).sum()) for cell, place in used)
    gained = np.array(rows).reshape(-1, errors.error.shape[2])
    return np.array(owner, dtype=np.int64), gained, runs


@dataclass(frozen=True)
class _OfAColumn(ABC):
    """A claim about two or more values of one column."""

    column: str
    worse: Any
    better: tuple[Any, ...]

    @property
    def names(self) -> str:
        """What is compared, as a finding says it."""
        label = {"init": "", "training.weight_decay": "λ = "}.get(self.column, f"{self.column} ")
        better = " or ".join(f"{label}{value}" for value in self.better)
        return f"{label}{self.worse} − {better}"

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"error of {self.names}, percentage points"
        errors = even_mlps(table)
        if errors is None:
            return nothing(quantity, NO_MLP)
        owner, gains, runs = compared(errors, self.column, self.worse, self.better)
        gain = over_tasks(owner, gains, level)
        if gain is None:
            return nothing(quantity, f"needs both at equal conditions, on {FEWEST} tasks")
        judgement, remark = self._decide(gain, gains, level)
        return Finding(judgement, gain.estimate, gain.low, gain.high, quantity, runs, remark)

    @abstractmethod
    def _decide(self, gain: Difference, gains: Floats, level: float) -> tuple[Judgement, str]:
        """Return the judgement and a remark from the mean over tasks and every comparison."""


@dataclass(frozen=True)
class NearlyUniformlyWorse(_OfAColumn):
    """One value is nearly uniformly outperformed by others [PF App. C.3].

    The estimate is the error at that value minus the error at another, with everything else alike.
    «Nearly uniformly» is part of the claim:

    - Contradicted if the interval lies below 0; or if in more than `share` of all comparisons (one
      task, m, and all else) the value that should be worse is significantly better (paired t tests
      over trials, Holm over all, at half of the level; the interval has the other half).
    - Supported if the interval lies above 0 and the value errs less in the mere mean in at most
      `share` of the comparisons.
    """

    share: float = 0.1

    def _decide(self, gain: Difference, gains: Floats, level: float) -> tuple[Judgement, str]:
        exceptions = int(significant(paired_test(-gains), level / 2).sum())
        mere = int((np.nanmean(gains, axis=1) < 0).sum())
        judgement = by_interval(gain.low, gain.high, 0.0)
        if exceptions > self.share * len(gains):
            judgement = Judgement.CONTRADICTED
        elif judgement is Judgement.SUPPORTED and mere > self.share * len(gains):
            judgement = Judgement.UNDECIDED
        remark = remarks(
            f"it errs less in {mere} of {len(gains)} comparisons, significantly in {exceptions}",
            blind_within(0.0, gain.estimate, gain.low, gain.high),
        )
        return judgement, remark


@dataclass(frozen=True)
class HardlyMatters(_OfAColumn):
    """One value errs as much as another, up to a margin [PF App. C.3].

    «Minimal» is read as `margin` percentage points. Supported if the interval of the mean
    difference lies between −margin and margin and in no single comparison the difference is
    significantly larger (paired t tests of either sign, Holm over all, at half of the level);
    contradicted if the interval lies outside, or in more than `share` of the comparisons it is.
    """

    margin: float = 1.0
    share: float = 0.1

    def _decide(self, gain: Difference, gains: Floats, level: float) -> tuple[Judgement, str]:
        larger = sum(
            int(significant(paired_test(sign * gains - self.margin / 100), level / 4).sum())
            for sign in (1, -1)
        )
        judgement = Judgement.UNDECIDED
        outside = gain.low > self.margin or gain.high < -self.margin
        if outside or larger > self.share * len(gains):
            judgement = Judgement.CONTRADICTED
        elif -self.margin < gain.low and gain.high < self.margin and not larger:
            judgement = Judgement.SUPPORTED
        means = 100 * np.nanmean(gains, axis=1)
        remark = (
            f"the largest of {len(gains)} differences is {np.abs(means).max():.2f}, significantly "
            f"more than {self.margin:g} in {larger}"
        )
        return judgement, remark
