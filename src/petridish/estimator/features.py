"""From a table's columns to a network's inputs: one scale for all, missing values marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, nearest

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Preprocessing = Literal["both", "quantile", "standard", "none"]

LARGEST = 1e6  # standard deviations from the mean: farther is cut, so that nothing overflows
KNOTS = 256  # of a column's quantile function
SOFT = 3.0  # deviations beyond which the second of two views flattens out
RAREST = 1e-6  # probabilities nearer to 0 or 1 count as this: ±4.75 standard deviations


@dataclass(frozen=True)
class Scale:
    """An affine map of each column to mean 0 and standard deviation 1, and back.

    Columns are first brought to [0, 1] by powers of two and their range, so that neither 1e300 nor
    1e16 ± 1 loses what distinguishes its values.

    Attributes
    ----------
    exponent, low, range : array, shape (column,)
        u = (x / 2^exponent − low) / range lies in [0, 1].
    mean, std : array, shape (column,)
        Of u; std is 0 in a column that does not vary.
    """

    exponent: NDArray[np.intc]
    low: Floats
    range: Floats
    mean: Floats
    std: Floats

    @staticmethod
    def fit(x: Floats, weight: Floats) -> Scale:
        """Measure each column over the rows that have a value, each row with its weight."""
        seen = ~np.isnan(x)
        some = seen.any(axis=0)
        largest = np.abs(np.where(seen, x, 0)).max(axis=0, initial=0)
        exponent = np.frexp(largest)[1] + 1  # |x| / 2^exponent ≤ 1/2: a range is at most 1
        small = np.ldexp(x, -exponent)
        low = np.where(some, np.where(seen, small, np.inf).min(axis=0, initial=np.inf), 0.0)
        high = np.where(some, np.where(seen, small, -np.inf).max(axis=0, initial=-np.inf), 0.0)
        width = np.where(high > low, high - low, 1.0)
        u = np.where(seen, (small - low) / width, 0.0)
        shares = np.where(seen, weight[:, None], 0.0)
        shares /= np.where(some, shares.sum(axis=0), 1.0)
        mean = (shares * u).sum(axis=0)
        std = np.sqrt((shares * (u - mean) ** 2).sum(axis=0))
        return Scale(exponent, low, width, mean, std)

    def shrunk(self, x: Floats) -> Floats:
        """Divide x by a power of two, after which no difference overflows; no digit is lost."""
        with np.errstate(over="ignore"):
            smaller: Floats = np.ldexp(x, -self.exponent)
        return smaller

    def unit(self, x: Floats) -> Floats:
        """Bring x to [0, 1], or beyond where it lies outside of what was measured."""
        with np.errstate(over="ignore"):
            unit: Floats = (self.shrunk(x) - self.low) / self.range
        return unit

    def forward(self, x: Floats) -> Floats:
        """Return x in standard deviations from the mean; a column that does not vary becomes 0."""
        varies = self.std > 0
        with np.errstate(over="ignore"):
            z = np.where(varies, (self.unit(x) - self.mean) / np.where(varies, self.std, 1.0), 0.0)
        return np.clip(z, -LARGEST, LARGEST)

    def backward(self, z: Floats) -> Floats:
        """Invert `forward`."""
        with np.errstate(over="ignore"):
            x = np.ldexp((z * self.std + self.mean) * self.range + self.low, self.exponent)
        largest = np.finfo(np.float64).max
        return np.clip(x, -largest, largest)


def mid_ranks(values: NDArray[np.floating[Any]], weight: Floats) -> Floats:
    """Compute the share of the weight below each value, plus half the share of its equals."""
    knots, place = np.unique(values, return_inverse=True)
    shares = np.bincount(place, weight, minlength=len(knots))
    until = np.cumsum(shares)
    ranks: Floats = ((until - shares / 2) / until[-1])[place]
    return ranks


@dataclass(frozen=True)
class Quantiles:
    """A column's map to a normal distribution: piecewise linear through its quantiles."""

    values: Floats
    normals: Floats

    @staticmethod
    def fit(values: Floats, weight: Floats) -> Quantiles:
        """Send each value to the normal quantile of its mid-rank, at no more than 256 of them."""
        from scipy.special import ndtri

        seen = ~np.isnan(values)
        ranks = np.clip(mid_ranks(values[seen], weight[seen]), RAREST, 1 - RAREST)
        knots, first = np.unique(values[seen], return_index=True)
        normals = ndtri(ranks[first])
        if len(knots) > KNOTS:
            grid = np.linspace(normals[0], normals[-1], KNOTS)
            chosen = np.unique(np.searchsorted(normals, grid).clip(0, len(knots) - 1))
            knots, normals = knots[chosen], normals[chosen]
        return Quantiles(knots, normals)

    def forward(self, values: Floats) -> Floats:
        """Return the normal quantiles; a missing value stays missing."""
        mapped: Floats = np.interp(values, self.values, self.normals)
        return mapped


@dataclass(frozen=True)
class Columns:
    """How the columns of a table become inputs; `Columns.fit` learns it from training rows.

    Columns that do not vary are left out. A missing value becomes 0, the column's mean or median,
    and each column that had both values and gaps when fitted adds an input that is 1 in its gaps.

    Attributes
    ----------
    n_features : int
        Columns of the table.
    used, marked : array of int
        Columns that become inputs, and columns whose gaps do.
    scale : Scale or None
        Of the used columns; None leaves them as they are.
    quantiles : tuple of Quantiles
        One a used column, from `scale.shrunk` to normal quantiles; empty without them.
    two_views : bool
        Whether used columns come twice: as quantiles, and then standardised, z / √(1 + (z/3)²).
    """

    n_features: int
    used: Places
    marked: Places
    scale: Scale | None
    quantiles: tuple[Quantiles, ...] = ()
    two_views: bool = False

    @staticmethod
    def fit(x: Floats, weight: Floats, preprocessing: Preprocessing = "standard") -> Columns:
        """Learn the map from rows with positive weights; NaN is a missing value."""
        if preprocessing not in get_args(Preprocessing):
            raise UserError(
                f"preprocessing={preprocessing!r} is not known. "
                f"{nearest(str(preprocessing), get_args(Preprocessing))}"
            )
        missing = np.isnan(x)
        marked = np.flatnonzero(missing.any(axis=0) & ~missing.all(axis=0))
        scale = Scale.fit(x, weight)
        used = np.flatnonzero(scale.std > 0)
        if preprocessing == "none":
            return Columns(x.shape[1], used, marked, None)
        scale = Scale(*(part[used] for part in vars(scale).values()))
        if preprocessing == "standard":
            return Columns(x.shape[1], used, marked, scale)
        # Not of units: beside one value of 1e30, all others would have the same.
        quantiles = tuple(Quantiles.fit(column, weight) for column in scale.shrunk(x[:, used]).T)
        return Columns(x.shape[1], used, marked, scale, quantiles, preprocessing == "both")

    @property
    def n_seen(self) -> int:
        """Number of inputs of one network; 1, always 0, if no column of the table varies."""
        return max(1, len(self.used) + len(self.marked))

    @property
    def n_inputs(self) -> int:
        """Number of inputs in all; with two views it is more than one network sees."""
        return self.n_seen + self.two_views * len(self.used)

    @property
    def source(self) -> Places:
        """The column that each input comes from."""
        views = [self.used] * (1 + self.two_views)
        return np.concatenate([*views, self.marked])

    def seen(self, view: int) -> NDArray[np.bool_]:
        """Return which inputs a network of the quantiles (0) or the deviations (1) sees."""
        place, count = np.arange(self.n_inputs), len(self.used)
        if not self.two_views:
            return place >= 0
        mine: NDArray[np.bool_] = (place >= 2 * count) | (place // max(1, count) == view)
        return mine

    def inputs(self, x: Floats) -> NDArray[np.float32]:
        """Return the network's inputs for rows of the table, shape (row, n_inputs)."""
        values = x[:, self.used]
        if self.scale is None:
            z = np.clip(values, -LARGEST, LARGEST)
        elif self.quantiles:
            columns = self.scale.shrunk(values).T
            maps = zip(self.quantiles, columns, strict=True)
            z = np.array([quantiles.forward(column) for quantiles, column in maps]).T
            if self.two_views:
                far = self.scale.forward(values)
                z = np.concatenate([z, far / np.sqrt(1 + np.square(far / SOFT))], axis=1)
        else:
            z = self.scale.forward(values)
        inputs = np.zeros((len(x), self.n_inputs), np.float32)
        inputs[:, : z.shape[1]] = np.where(np.isnan(z), 0.0, z)
        inputs[:, z.shape[1] : len(self.source)] = np.isnan(x[:, self.marked])
        return inputs
