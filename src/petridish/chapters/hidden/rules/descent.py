"""How continuously a run descends: its time at chance, as a measure of single runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.rules.columns import curve_columns
from petridish.rules.measures import Measure
from petridish.statistics.transitions import plateau_fraction

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PlateauFraction(Measure):
    """The share of the time until an error of 5 % that is spent at 45 % or more [HP App. B.3.8].

    NaN for a run that never falls to 5 %, or that kept no curves.
    """

    columns = curve_columns("test_error")
    label = "share of the time at an error of 45 % or more"

    def of(self, table: pl.DataFrame) -> Floats:
        """Return the number of every run."""
        curves = table.select(self.columns).iter_rows()
        return np.array(
            [math.nan if None in curve else plateau_fraction(*curve) for curve in curves]
        )
