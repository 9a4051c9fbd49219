"""Properties of a table that can make a comparison on it misleading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from petridish.compare.cleaning import count_rows, shortened

if TYPE_CHECKING:
    from petridish.compare.describe import Description, Floats, NumericTable, Task

MOST_LEVELS_OF_A_LEAK = 50


def further_notes(described: Description, frame: pl.DataFrame) -> list[str]:
    """Return what of a table may mislead: copies of rows, a frequent class, dates."""
    notes = []
    repeated = len(frame) - frame.n_unique()
    if repeated > 0.01 * len(frame):
        notes.append(
            f"{count_rows(repeated)} ({100 * repeated / len(frame):.0f} %) repeat another one in "
            "full: where copies fall into both parts, errors look smaller than they are."
        )
    if described.classes and described.classes[0][1] > 0.8 * described.usable:
        name, rows = described.classes[0]
        notes.append(
            f"{100 * rows / described.usable:.0f} % of the rows are of the class {shortened(name)}"
            ": a small error is easily had, so look at the area under the curve (AUC) as well."
        )
    if any(column.kind == "date" for column in described.used):
        notes.append(
            "Rows are divided at random, not by date: where the future differs from the past, "
            "errors on it may be larger."
        )
    return notes


def leaks(described: Description, examples: NumericTable) -> list[str]:
    """Return a warning for each column that is the target in other words."""
    warnings = []
    for name, values in zip(examples.names, examples.x.T, strict=True):
        present = ~np.isnan(values)
        if present.sum() > 0.5 * len(values) and _tells(
            values[present], examples.y[present], examples.task
        ):
            warnings.append(
                f"The column {name} determines {described.target}: if it is not known when a "
                f"prediction is made, leave it out with --drop {name}."
            )
    return warnings


def _tells(values: Floats, y: NDArray[Any], task: Task) -> bool:
    """Return whether a column fixes the target: one class per value, or all on a line."""
    if task == "regression":
        if len(np.unique(y)) < 2 or len(np.unique(values)) < 2:
            return False
        return bool(abs(np.corrcoef(values, y)[0, 1]) > 1 - 1e-9)
    levels = np.unique(values)
    if not 1 < len(levels) <= min(MOST_LEVELS_OF_A_LEAK, len(values) / 10):
        return False
    pairs = np.unique(np.column_stack([values, y]), axis=0)
    return len(pairs) == len(levels)
