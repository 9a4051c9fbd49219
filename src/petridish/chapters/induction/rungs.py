"""Measures of IH whose bands mean the same for any number of states.

On the ladder a loss is 0 at that of bigrams, 1 at that of unigrams and 2 where its run started,
straight in between. A quarter of a rung above unigrams is a quarter of the way from the start,
however near uniform predictions are to unigrams; in units of the gap alone, as in `measures`, a
network of eight states starts within a quarter of the unigrams' loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.induction.measures import BIGRAM, AtGap, GapTime, gaps_of

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


def rungs_of(table: pl.DataFrame, best: str = BIGRAM) -> list[tuple[Floats, Floats]]:
    """Return the steps and the places on the ladder, of every run.

    Both are empty for a run without curves, and for one that starts no higher than unigrams.
    """
    found = []
    for steps, losses in gaps_of(table, best):
        if not len(losses) or not losses[0] > 1:
            found.append((np.empty(0), np.empty(0)))
            continue
        above = 1 + (losses - 1) / (losses[0] - 1)
        found.append((steps, np.where(losses > 1, above, losses)))
    return found


@dataclass(frozen=True)
class RungTime(GapTime):
    """The first evaluation at which the loss is at most at this place on the ladder.

    At least 1; ∞ where no evaluation of the run was there; NaN for a run that has no ladder.
    """

    def gaps(self, table: pl.DataFrame, best: str = BIGRAM) -> list[tuple[Floats, Floats]]:
        """Return the steps and the places on the ladder, of every run."""
        return rungs_of(table, best)

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"steps until the loss is at most at {self.at_most:g} on the ladder"


@dataclass(frozen=True)
class AtRung(AtGap):
    """Another curve at the first evaluation at which the loss is at most at this place."""

    def gaps(self, table: pl.DataFrame, best: str = BIGRAM) -> list[tuple[Floats, Floats]]:
        """Return the steps and the places on the ladder, of every run."""
        return rungs_of(table, best)

    @property
    def label(self) -> str:
        """What is measured, in words."""
        start = ", over its start," if self.relative else ""
        return f"{self.curve}{start} when the loss is first at most at {self.at_most:g} rungs"
