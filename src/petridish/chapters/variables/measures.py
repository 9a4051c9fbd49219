"""Whether a curve ever goes below a value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.rules.measures import Measure

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Least(Measure):
    """The least value of a curve; NaN for a run that kept no such curve."""

    curve: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return (f"curve.{self.curve}",)

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"least {self.curve}"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        least = table[f"curve.{self.curve}"].list.min().cast(float)
        return least.fill_null(math.nan).to_numpy()


@dataclass(frozen=True)
class LeastBelow(Least):
    """1 if the curve is below a value at some evaluation, else 0."""

    value: float

    @property
    def label(self) -> str:
        """What is measured, in words."""
        return f"{self.curve} < {self.value:g} at some time"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        least = super().of(table)
        return np.where(np.isnan(least), np.nan, (least < self.value).astype(np.float64))
