"""Whether a curve ever goes below a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.rules.curve_measures import LeastOf

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LeastBelow(LeastOf):
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
