"""Numbers of training rows: the paper's fractions of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

from petridish.tasks import Table

FRACTIONS = (
    *(1, 0.6, 0.3, 0.2, 0.1, 0.06, 0.03, 0.02, 0.01, 0.006, 0.003, 0.002, 0.001),
    *(0.0006, 0.0003, 0.0002, 0.0001),
)


def samples(table: Table, near: Sequence[int] = ()) -> list[int]:
    """Return numbers of training rows.

    Those of all the paper's fractions; or, of the fractions that leave 50 to 2000 rows, those
    nearest to the numbers asked for.
    """
    rows = [round(fraction * table.n_train_rows) for fraction in FRACTIONS]
    if near:
        fitting = [m for m in rows if 50 <= m <= 2000]
        nearest = [sorted(fitting, key=lambda m: abs(math.log(m / wanted))) for wanted in near]
        rows = [found[0] for found in nearest if found]
    return sorted({m for m in rows if m >= 2})


def at(tables: Sequence[Table], near: Sequence[int] = ()) -> list[tuple[Table, int]]:
    """Return pairs of a table and a number of training rows, as `samples` chooses them."""
    return [(table, m) for table in tables for m in samples(table, near)]


def at_fractions(
    tables: Sequence[Table], fractions: Sequence[float], most: float = math.inf
) -> list[tuple[Table, int]]:
    """Return pairs of a table and a fraction of its training rows, at most `most` rows."""
    cells = [(t, round(fraction * t.n_train_rows)) for t in tables for fraction in fractions]
    return [(table, m) for table, m in cells if m <= most]
