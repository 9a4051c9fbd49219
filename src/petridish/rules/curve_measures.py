"""Measures of a whole curve of a run."""

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
class LeastOf(Measure):
    """The least value of a curve over a run; NaN for a run that kept no such curve."""

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
        least = table[self.columns[0]].list.min().cast(float)
        return least.fill_null(math.nan).to_numpy()
