"""Measures of IH: a network's loss placed between those of the unigram and the bigram strategy.

The loss is KL(truth ‖ network) at the last token. The gap is what unigrams lose more than bigrams
on the same held-out sequences: one gap above the bigrams' loss is that of unigrams.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.rules.measures import Measure
from petridish.statistics.known import Known, within_budget

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
LOSS, UNIGRAM, BIGRAM = (f"curve.test_kl_{name}" for name in ("truth", "of_unigram", "of_bigram"))


class _OfGap(Measure):
    """A measure of the loss in units of the gap."""

    columns: tuple[str, ...] = ("curve.step", LOSS, UNIGRAM, BIGRAM)

    def gaps(self, table: pl.DataFrame) -> list[tuple[Floats, Floats]]:
        """Return the steps and the losses above the bigrams' in gaps, of every run.

        Both are empty for a run without curves. What strategies lose is read at step 0.
        """
        found = []
        for steps, loss, unigram, bigram in table.select(_OfGap.columns).rows():
            if not steps or not loss or not unigram or not bigram:
                found.append((np.empty(0), np.empty(0)))
                continue
            losses = np.array(loss, np.float64)  # None becomes NaN
            found.append(
                (np.array(steps, np.float64), (losses - bigram[0]) / (unigram[0] - bigram[0]))
            )
        return found


@dataclass(frozen=True)
class GapTime(_OfGap):
    """The first evaluation at which the loss is at most `at_most` gaps above that of bigrams.

    At least 1; ∞ where no evaluation of the run was there; NaN for a run that kept no curves.
    """

    at_most: float

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"steps until the loss is at most {self.at_most:g} gaps above that of bigrams"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        return self.known(table).high

    def known(self, table: pl.DataFrame) -> Known:
        """Return the times, those not reached beyond the last evaluation of their run."""
        first, last = [], []
        for steps, losses in self.gaps(table):
            there = steps[losses <= self.at_most]
            first.append(max(1.0, there[0]) if len(there) else math.inf if len(steps) else math.nan)
            last.append(max(1.0, steps[-1]) if len(steps) else math.nan)
        return within_budget(first, last)


@dataclass(frozen=True)
class GapAtEnd(_OfGap):
    """The loss at the end above that of bigrams, in gaps: 1 is that of unigrams.

    NaN for a run that kept no curves; ∞ for one that diverged.
    """

    columns = ("outcome", *_OfGap.columns)
    label = "loss at the end above that of bigrams, in gaps"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        last = [losses[-1] if len(losses) else math.nan for _, losses in self.gaps(table)]
        return np.where((table["outcome"] == "DIVERGED").to_numpy(), math.inf, last)
