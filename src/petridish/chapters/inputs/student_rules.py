"""Measures of teachers and students: the two parts of a mixture, and where a U-curve is lowest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.rules.claims import Finding, Judgement, Reads, by_interval, nothing
from petridish.rules.measures import AtEnd, LastOf, Measure
from petridish.statistics.intervals import median_interval
from petridish.sweeps.arms import arm

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
ORIGINAL, INJECTED = "test_error_original", "test_error_injected"
LOSS = "test_cross_entropy"


@dataclass(frozen=True)
class PartGap(Measure):
    """The error on the injected part minus that on the original one, at the end."""

    columns = ("outcome", f"final.{ORIGINAL}", f"final.{INJECTED}")
    label = "error on the injected part minus that on the original"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        here, there = (AtEnd(name, math.nan).of(table) for name in (INJECTED, ORIGINAL))
        return here - there


@dataclass(frozen=True)
class OriginalError(Measure):
    """The error on original inputs: of a mixture on that part of it, else on all."""

    columns = ("outcome", f"final.{ORIGINAL}", "test_error")
    label = "error on original inputs"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        part = AtEnd(ORIGINAL, math.nan).of(table)
        return np.where(np.isnan(part), AtEnd("test_error").of(table), part)


@dataclass(frozen=True)
class AboveConstant(Measure):
    """The error on the injected part minus that of the better constant answer to it."""

    columns = ("outcome", f"final.{INJECTED}", "curve.largest_class_injected")
    label = "error on the injected part above that of a constant"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        share = LastOf("largest_class_injected", math.nan).of(table)
        return AtEnd(INJECTED, math.nan).of(table) - (1 - share)


def lowest(table: pl.DataFrame, most: int) -> dict[int, int]:
    """Return the width of at most `most` with the lowest held-out loss, by seed.

    The classical regime of a double descent ends at its peak: where there is one, `most` has to lie
    before the second descent.
    """
    found: dict[int, tuple[float, int]] = {}
    losses = AtEnd(LOSS).of(table)
    for seed, width, loss in zip(table["seed"], table["model.width"], losses, strict=True):
        if width <= most:
            found[seed] = min(found.get(seed, (math.inf, most)), (float(loss), int(width)))
    return {seed: width for seed, (_, width) in found.items()}


@dataclass(frozen=True)
class MinimumMoves(Reads):
    """The width with the lowest loss is larger in arm `top` than in `bottom`, seed by seed.

    The estimate is the median over seeds of the ratio of the two widths; supported above 1.
    """

    top: str
    bottom: str
    most: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return "outcome", f"final.{LOSS}", "model.width", "seed"

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"width of the lowest loss up to {self.most}, {self.top} / {self.bottom}"
        wide, narrow = (lowest(arm(table, name), self.most) for name in (self.top, self.bottom))
        seeds = sorted(wide.keys() & narrow.keys())
        if not seeds:
            return nothing(quantity, "no seed was run in both arms")
        ratios = np.array([wide[seed] / narrow[seed] for seed in seeds])
        low, high = median_interval(ratios, 1 - level)
        judgement = by_interval(low, high, 1.0)
        remark = ""
        if judgement is Judgement.UNDECIDED:
            widths = (sorted(found[seed] for seed in seeds) for found in (wide, narrow))
            remark = "widths {}; {}".format(*(", ".join(map(str, each)) for each in widths))
        estimate = float(np.median(ratios))
        return Finding(judgement, estimate, low, high, quantity, 2 * len(seeds), remark)
