"""How rows are divided: growing training parts inside one another, and a test part apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from petridish.seeds import Streams

MOST_ROWS = 200_000  # of a table: more would only take memory
MOST_TRAINING = 20_000
MOST_TEST = 10_000
TEST_SHARE = 0.2
SMALLEST = 50  # training rows, in a table that has more
MOST_SIZES = 6

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Places of rows; the first m of `training` are the training part of m rows."""

    training: Places
    test: Places


def largest_training(rows: int) -> int:
    """Count the rows that are left for training."""
    return min(MOST_TRAINING, rows - math.ceil(TEST_SHARE * rows))


def test_rows(rows: int) -> int:
    """Count the rows kept for tests."""
    return min(MOST_TEST, math.ceil(TEST_SHARE * rows))


def training_sizes(rows: int, classes: int = 0) -> tuple[int, ...]:
    """Choose sizes a factor of about 2.5 apart or more, all but the last rounded to one digit.

    From 50 rows, five per class if that is more, to 80 % of all or 20 000. A table of 10 000 rows
    gives 50, 100, 400, 1000, 3000 and 8000.
    """
    last = largest_training(rows)
    first = min(max(SMALLEST, 5 * classes), last // 2)
    steps = min(MOST_SIZES, max(2, round(math.log(last / first, 2.5)) + 1))
    between = [_one_digit(size) for size in np.geomspace(first, last, steps)[1:-1]]
    return tuple(sorted({first, *(size for size in between if first < size < last), last}))


def _one_digit(size: float) -> int:
    unit = float(10 ** int(math.log10(size)))
    return round(round(size / unit) * unit)


def divide(y: NDArray[Any], *, stratified: bool, seed: int, repeat: int) -> Split:
    """Draw the parts of one repeat.

    In stratified parts, and in each training part, every class has its share of rows to within one;
    the training parts begin with one row of each class.
    """
    luck = Streams([seed], f"split {repeat}").uniforms(0, len(y))[0]
    groups = y if stratified else np.zeros(len(y), np.int64)
    place, count = _places(groups, luck)
    order = np.lexsort((luck, (place + 0.5) / count))
    test, rest = np.split(order, [test_rows(len(y))])
    place, count = _places(groups[rest], luck[rest])
    share = np.where((place == 0) & stratified, -1.0, (place + 0.5) / count)
    training = rest[np.lexsort((luck[rest], share))]
    return Split(training[: largest_training(len(y))], test)


def _places(groups: NDArray[Any], luck: NDArray[np.float64]) -> tuple[Places, Places]:
    """Return each row's random place among those of its group, and the group's rows."""
    order = np.lexsort((luck, groups))
    _, starts, counts = np.unique(groups[order], return_index=True, return_counts=True)
    place, count = np.empty(len(groups), np.int64), np.empty(len(groups), np.int64)
    place[order] = np.arange(len(groups)) - np.repeat(starts, counts)
    count[order] = np.repeat(counts, counts)
    return place, count


def drawn_rows(rows: int, *, seed: int) -> Places | None:
    """Draw the rows of a table that is too long, in the order of the file; None if it is not."""
    if rows <= MOST_ROWS:
        return None
    luck = Streams([seed], "rows").uniforms(0, rows)[0]
    return np.sort(np.argsort(luck)[:MOST_ROWS])
