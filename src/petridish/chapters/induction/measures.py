"""Measures of IH: a network's loss placed between those of the unigram and the bigram strategy.

The loss is KL(truth ‖ network) at the last token. The gap is what unigrams lose more than bigrams
on the same held-out sequences: one gap above the bigrams' loss is that of unigrams.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.rules.measures import Measure
from petridish.statistics.known import Known, within_budget

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
LOSS, UNIGRAM, BIGRAM = (f"curve.test_kl_{name}" for name in ("truth", "of_unigram", "of_bigram"))


OF_GAP = ("curve.step", LOSS, UNIGRAM, BIGRAM)


class _OfGap(Measure):
    """A measure of the loss in units of the gap."""

    columns: tuple[str, ...] = OF_GAP

    def gaps(self, table: pl.DataFrame, best: str = BIGRAM) -> list[tuple[Floats, Floats]]:
        """Return the steps and the losses above the bigrams' in gaps, of every run."""
        return gaps_of(table, best)


def gaps_of(table: pl.DataFrame, best: str = BIGRAM) -> list[tuple[Floats, Floats]]:
    """Return the steps and the losses above the bigrams' in gaps, of every run.

    Both are empty for a run without curves. What strategies lose is read at step 0. `best` is
    the column of another strategy in the place of bigrams.
    """
    found = []
    for steps, loss, unigram, bigram in table.select("curve.step", LOSS, UNIGRAM, best).rows():
        if not steps or not loss or not unigram or not bigram:
            found.append((np.empty(0), np.empty(0)))
            continue
        losses = np.array(loss, np.float64)  # None becomes NaN
        found.append((np.array(steps, np.float64), (losses - bigram[0]) / (unigram[0] - bigram[0])))
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

    above: Literal["bigram", "bayes"] = "bigram"

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override] # it reads one more
        """The columns of a table that it reads."""
        return "outcome", "curve.step", LOSS, UNIGRAM, self._best

    @property
    def _best(self) -> str:
        return f"curve.test_kl_of_{self.above}"

    @property
    def label(self) -> str:
        """What is measured, in words."""
        whose = "bigrams" if self.above == "bigram" else "Bayes"
        return f"loss at the end above that of {whose}, in gaps"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        last = [
            losses[-1] if len(losses) else math.nan for _, losses in self.gaps(table, self._best)
        ]
        return np.where((table["outcome"] == "DIVERGED").to_numpy(), math.inf, last)


@dataclass(frozen=True)
class AtGap(_OfGap):
    """Another curve at the first evaluation at which the loss is at most `at_most` gaps.

    Divided by its value at the start if `relative`. NaN where the loss never was there.
    """

    curve: str
    at_most: float
    relative: bool = False

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override] # it reads one more
        """The columns of a table that it reads."""
        return *_OfGap.columns, f"curve.{self.curve}"

    @property
    def label(self) -> str:
        """What is measured, in words."""
        start = ", over its start," if self.relative else ""
        return f"{self.curve}{start} when the loss is first at most {self.at_most:g} gaps"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        found = []
        values = table[f"curve.{self.curve}"].to_list()
        for (_, losses), kept in zip(self.gaps(table), values, strict=True):
            there = np.flatnonzero(losses <= self.at_most)
            if not len(there) or not kept:
                found.append(math.nan)
                continue
            curve = np.array(kept, np.float64)
            found.append(float(curve[there[0]] / (curve[0] if self.relative else 1.0)))
        return np.array(found)


@dataclass(frozen=True)
class ChangeOverDrop(_OfGap):
    """How much a curve changes over the second drop: from ¾ to 0.4 of a gap above bigrams.

    NaN where the loss does not fall so far.
    """

    curve: str

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override] # it reads one more
        """The columns of a table that it reads."""
        return *_OfGap.columns, f"curve.{self.curve}"

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"change of {self.curve} over the second drop"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        before, after = (AtGap(self.curve, gap).of(table) for gap in (0.75, 0.4))
        found: Floats = after - before
        return found


@dataclass(frozen=True)
class Stages(Measure):
    """1 if each of some curves is the lowest for a while, one after the other; else 0.

    Until the last of them is first the lowest, at T, those before are the lowest in their order
    without going back, each at evaluations over a share of T of at least `dwell`; from T on the
    last is the lowest at nine of ten evaluations. NaN for a run that kept no such curves.
    """

    curves: tuple[str, ...]
    dwell: tuple[float, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return "curve.step", *(f"curve.{name}" for name in self.curves)

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"{' → '.join(self.curves)}, each for a while"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        return np.array([self._of_run(row) for row in table.select(self.columns).rows()])

    def _of_run(self, row: tuple[list[float] | None, ...]) -> float:
        if any(not curve for curve in row):
            return math.nan
        steps, *curves = (np.array(curve, np.float64) for curve in row)
        # A diverged run has NaN at its end: nothing is the lowest there.
        lowest = np.argmin(np.where(np.isnan(curves), np.inf, curves), axis=0)
        last = len(self.curves) - 1
        there = np.flatnonzero(lowest == last)
        if not len(there) or np.isnan(curves).any():
            return 0.0
        first = there[0]
        before = lowest[:first]
        spent = np.diff(steps[: first + 1])  # until the next evaluation
        shares = (
            [spent[before == stage].sum() / steps[first] for stage in range(last)] if first else []
        )
        ordered = bool(first) and bool((np.diff(before) >= 0).all())
        long = (
            all(share >= least for share, least in zip(shares, self.dwell, strict=True))
            if first
            else False
        )
        return float(ordered and long and (lowest[first:] == last).mean() >= 0.9)


@dataclass(frozen=True)
class ShareOfTime(Measure):
    """The share of evaluations at which a curve is at most `below`; NaN for a run without it."""

    curve: str
    below: float

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return (f"curve.{self.curve}",)

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"share of evaluations with {self.curve} ≤ {self.below:g}"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        curves = table[self.columns[0]].to_list()
        return np.array(
            [np.mean(np.array(c, np.float64) <= self.below) if c else math.nan for c in curves]
        )
