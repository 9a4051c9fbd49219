"""Measures of IH for any set of strategies: order, and where a loss ends between two of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.induction.plateaus import level_at_end
from petridish.rules.measures import InOrder, Measure

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class InOrderOf(Measure):
    """1 if a network comes nearest to some strategies one after the other, in this order; else 0.

    By KL(strategy ‖ network) at the last token; NaN for a run that kept no such curves.
    """

    strategies: tuple[str, ...]

    @property
    def _measure(self) -> InOrder:
        return InOrder(tuple(f"test_kl_{name}" for name in self.strategies))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return self._measure.columns

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"nearest to {', '.join(self.strategies)} in this order"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        return self._measure.of(table)


@dataclass(frozen=True)
class EndBetween(Measure):
    """The loss in the end between that of two strategies: 1 is the worse one's, 0 the better one's.

    The median of the last tenth of the evaluations. NaN for a run that kept no curves; ∞ for one
    that diverged.
    """

    worse: str
    better: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        sides = (f"curve.test_kl_of_{name}" for name in (self.worse, self.better))
        return "outcome", "curve.test_kl_truth", *sides

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"loss at the end above that of {self.better}s, {self.worse}s having 1"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        found = []
        for outcome, loss, worse, better in table.select(self.columns).rows():
            if outcome == "DIVERGED":
                found.append(math.inf)
            elif not loss or not worse or not better:
                found.append(math.nan)
            else:
                end = level_at_end(np.array(loss, np.float64))
                found.append((end - better[0]) / (worse[0] - better[0]))
        return np.array(found)
