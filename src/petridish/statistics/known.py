"""Numbers of which some are only known to lie between two ends: censored times and their ratios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Known:
    """What is known of an array of numbers: each lies between `low` and `high`.

    The two are equal where a number was measured. A time that was not reached within a budget of B
    steps has B and ∞. NaN in both: there is no number, because no run was made or because the
    quantity does not apply.
    """

    low: Floats
    high: Floats

    def __getitem__(self, place: Any) -> Known:
        """Return a part of the numbers, by an index of NumPy's."""
        return Known(self.low[place], self.high[place])

    @property
    def there(self) -> NDArray[np.bool_]:
        """Whether there is a number at all."""
        found: NDArray[np.bool_] = ~np.isnan(self.low)
        return found

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Whether the number was measured, and is finite."""
        found: NDArray[np.bool_] = (self.low == self.high) & np.isfinite(self.low)
        return found


def exactly(values: ArrayLike) -> Known:
    """Return numbers that were measured."""
    found = np.asarray(values, np.float64)
    return Known(found, found)


def within_budget(times: ArrayLike, budget: ArrayLike) -> Known:
    """Return times of which an infinite one lies beyond the budget."""
    found = np.asarray(times, np.float64)
    return Known(np.where(np.isposinf(found), np.asarray(budget, np.float64), found), found)


def quotient(top: Known, bottom: Known) -> Known:
    """Divide numbers of at least 0: what is known of the ratios.

    A time of 30 over one beyond a budget of 100 lies between 0 and 0.3. Nothing is known of a ratio
    of two times beyond their budgets, nor of 0 over 0: it lies between 0 and ∞.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = top.low / bottom.high, top.high / bottom.low
    there = top.there & bottom.there
    return Known(
        np.where(there, np.where(np.isnan(low), 0.0, low), np.nan),
        np.where(there, np.where(np.isnan(high), np.inf, high), np.nan),
    )


def difference(first: Known, second: Known) -> Known:
    """Subtract: what is known of `first` − `second`; between −∞ and ∞ where both are infinite."""
    with np.errstate(invalid="ignore"):
        low, high = first.low - second.high, first.high - second.low
    there = first.there & second.there
    return Known(
        np.where(there, np.where(np.isnan(low), -np.inf, low), np.nan),
        np.where(there, np.where(np.isnan(high), np.inf, high), np.nan),
    )


def kendall_trend(values: Known) -> Known:
    r"""Measure how steadily values rise along the first axis, for every place on the second.

    Parameters
    ----------
    values : Known, shape (condition, seed)
        In the order of the conditions.

    Returns
    -------
    tau : Known, shape (seed,)
        Pairs of conditions that rise less those that fall, over all pairs: Kendall's :math:`τ_a`, 1
        where every later value is larger, 0 for equal ones. A pair whose order is not known, as
        that of two times beyond their budgets, counts −1 in the lower end and 1 in the higher. NaN
        where a seed has less than two conditions.
    """
    first, second = np.triu_indices(len(values.low), k=1)
    before, after = values[first], values[second]  # (pair, seed)
    there = before.there & after.there
    pairs = there.sum(axis=0)
    same = (before.low == after.low) & before.exact & after.exact
    rises, falls = before.high < after.low, before.low > after.high
    known = same | rises | falls
    certain = np.where(there, rises.astype(np.float64) - falls, 0.0).sum(axis=0)
    open_pairs = (there & ~known).sum(axis=0)
    with np.errstate(invalid="ignore"):
        return Known((certain - open_pairs) / pairs, (certain + open_pairs) / pairs)
