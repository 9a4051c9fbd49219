r"""Disjoint PolyNets with the correlation loss: gradient flow, and the error along it [HP §4.2].

f(x) = Π_i ⟨w_i, x_{P_i}⟩ over k blocks P_i of n' bits; S has one bit in every block, the first one
here, since all bits of a block are alike. The population gradient is −Π_{j≠i} v_j at the relevant
weight v_i = w_{i,1} and 0 at all others, so gradient flow is v_i' = Π_{j≠i} v_j.

All v_i² rise by the same amount. Let r be the weight that is smallest in modulus, with the sign of
the product of all. Then r' = Π |other v_j| > 0 and v_j² = d_j + r² with constants d_j ≥ 0: r only
grows, also where the product starts below 0, and serves as a clock:

    t(r) = ∫ Π_{j ≠ smallest} (d_j + s²)^{−1/2} ds   from r(0) to r.

This integral gives every time here exactly; `integrate_flow` solves the differential equation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.theory.closed_form import products_of_others

Floats = NDArray[np.float64]
Start = Literal["ones", "signs", "gaussian"]

PLATEAU = 0.49  # the error above which nothing seems to be learned

_MOST_ENUMERATED = 18  # weights whose 2^n sums are listed
_FREQUENCIES = 400
_REACH = 10.0  # in standard deviations; a sum lies beyond it with probability below 1e-21


class SignSum:
    """A sum Σ_j u_j z_j of given weights with independent signs z_j = ±1.

    Exact for weights of one modulus (a binomial) and for up to 18 weights (all sums). Beyond, a
    Fourier series of the distribution function, whose error is of the order 2^(−count / 2) / 100
    for weights in general position; weights on a lattice are refused.
    """

    def __init__(self, weights: Sequence[float] | Floats) -> None:
        sizes = np.abs(np.asarray(weights, np.float64))
        self.sizes = sizes[sizes > 0]
        self.total = float(self.sizes.sum())
        """The largest value, ‖u‖₁."""
        self.deviation = float(np.sqrt((self.sizes**2).sum()))
        """The standard deviation, ‖u‖₂."""
        count = len(self.sizes)
        self._equal = count > 0 and bool(np.all(self.sizes == self.sizes[0]))
        self._sums: Floats | None = None
        if self._equal:
            return
        if count <= _MOST_ENUMERATED:
            sums = np.zeros(1)
            for size in self.sizes:
                sums = np.concatenate([sums + size, sums - size])
            self._sums = np.sort(sums)
            return
        self._period = 2 * _REACH * self.deviation
        # The more weights there are, the sooner the terms vanish, as a Gaussian's would.
        self._orders = np.arange(1, 1 + (_FREQUENCIES if count < 64 else _FREQUENCIES // 4))
        self._angles = 2 * np.pi * self._orders / self._period
        # E cos(angle · sum) = Π cos(angle · u_j)
        self._series: Floats = np.cos(np.multiply.outer(self.sizes, self._angles)).prod(axis=0)
        if np.abs(self._series[len(self._orders) // 2 :]).max() > 0.1:
            raise UserError(
                f"SignSum: {count} weights that lie on a lattice. Give weights of one modulus, at "
                f"most {_MOST_ENUMERATED} weights, or weights in general position."
            )

    @property
    def is_smooth(self) -> bool:
        """Whether its distribution is a series, and not steps at the values that it can have."""
        return not self._equal and self._sums is None

    def split(self, value: float) -> tuple[float, float, float]:
        """Return the probabilities that value + sum is above 0, below 0, and 0."""
        below, at_most = self._distribution(-value)
        return 1 - at_most, below, at_most - below

    def _distribution(self, x: float) -> tuple[float, float]:
        """Return the probabilities that the sum is below x, and that it is at most x."""
        if abs(x) > self.total:
            return (0.0, 0.0) if x < 0 else (1.0, 1.0)
        if self._equal:
            from scipy.special import bdtr  # slow to import

            count = len(self.sizes)
            plus_ones = (x / self.sizes[0] + count) / 2  # where the sum is x
            ends = math.ceil(plus_ones) - 1, math.floor(plus_ones)
            low, high = (float(bdtr(end, count, 0.5)) if end >= 0 else 0.0 for end in ends)
            return low, high
        if self._sums is not None:
            places = (np.searchsorted(self._sums, x, side=side) for side in ("left", "right"))
            low, high = (float(place) / len(self._sums) for place in places)
            return low, high
        if abs(x) >= _REACH * self.deviation:
            return (0.0, 0.0) if x < 0 else (1.0, 1.0)
        waves = self._series * np.sin(self._angles * x) / self._orders
        chance = min(1.0, max(0.0, 0.5 + x / self._period + float(waves.sum()) / math.pi))
        return chance, chance


def polynet_error(relevant: Sequence[float] | Floats, others: Sequence[SignSum]) -> float:
    r"""Return the probability that sign f ≠ χ_S, an output of 0 being wrong, exactly.

    Parameters
    ----------
    relevant : array, shape (k,)
        The relevant weights v_i.
    others : sequence of SignSum
        The irrelevant weights of each block.

    Returns
    -------
    error : float
        :math:`1 - \frac12 [\prod_i (1 - z_i) + \prod_i (c_i - w_i)]`, where a factor has the sign
        of its relevant bit with probability c_i, the other with w_i, and is 0 with z_i. Without
        ties this is :math:`\frac12 (1 - \prod_i (1 - 2 w_i))` [HP, B.11]; with them the printed
        sum of two probabilities counts some inputs twice.
    """
    even, odd = 1.0, 1.0
    for value, rest in zip(relevant, others, strict=True):
        right, wrong, tie = rest.split(float(value))
        even *= 1 - tie
        odd *= right - wrong
    return 1 - (even + odd) / 2


def start_weights(
    kind: Start, k: int, block: int, rng: np.random.Generator | None = None
) -> Floats:
    """Draw the k × n' weights at the start: all ones, random signs, or standard normals."""
    check_whole("start_weights", 1, k=k, block=block)
    if kind == "ones":
        return np.ones((k, block))
    if rng is None:
        raise UserError(f"start_weights: the start {kind!r} is random. Give rng.")
    if kind == "signs":
        return rng.choice([-1.0, 1.0], size=(k, block))
    return rng.standard_normal((k, block))


class Flow:
    """Gradient flow of a disjoint PolyNet from `weights`, shape (k, n'), relevant bits first.

    Its clock is r (`position`): the smallest relevant weight, signed by the product of all.
    """

    def __init__(self, weights: Sequence[Sequence[float]] | Floats) -> None:
        table = np.asarray(weights, np.float64)
        if table.ndim != 2 or len(table) < 2 or not np.all(table[:, 0]):
            raise UserError(
                f"Flow: weights of shape {table.shape}. Give k ≥ 2 rows of n' weights, the "
                "relevant one first and not 0."
            )
        self.start: Floats = table[:, 0]
        self.k, self.block = int(table.shape[0]), int(table.shape[1])
        self.others = [SignSum(row[1:]) for row in table]
        self._least = int(np.argmin(np.abs(self.start)))
        self._gaps: Floats = self.start**2 - self.start[self._least] ** 2  # the d_j
        self.position = float(abs(self.start[self._least]) * np.prod(np.sign(self.start)))
        """The clock r at time 0."""

    @property
    def learns(self) -> bool:
        """Whether r ever passes 0; from below it does not if two weights are the smallest."""
        return self.position > 0 or int(np.sum(self._gaps == 0)) == 1

    def relevant(self, position: float) -> Floats:
        """Return the relevant weights v_i where the clock stands at `position`."""
        values: Floats = np.sign(self.start) * np.sqrt(self._gaps + position**2)
        if position * self.position < 0:  # the smallest weight has changed its sign
            values[self._least] *= -1
        return values

    def time(self, position: float, *, since: float | None = None) -> float:
        """Return the time from the start, or from the position `since`, to `position`."""
        begin = self.position if since is None else since
        if position <= begin:
            return 0.0
        if not self.learns and position >= 0:
            return math.inf
        gaps = np.delete(self._gaps, self._least)
        if not gaps.any():  # all of one size: r' = r^(k−1)
            if self.k == 2:
                return abs(math.log(position / begin))
            power = 2.0 - self.k
            return abs(math.pow(abs(begin), power) - math.pow(abs(position), power)) / -power
        from scipy.integrate import quad  # slow to import

        terms = [float(gap) for gap in gaps]

        def slowness(s: float) -> float:
            return 1 / math.sqrt(math.prod([term + s * s for term in terms]))

        # In pieces between the scales of the integrand, so that no peak is missed.
        marks = np.sqrt(gaps[gaps > 0])
        inner = sorted({*(-marks).tolist(), 0.0, *marks.tolist(), 10 * float(marks.max())})
        ends = [begin, *(mark for mark in inner if begin < mark < position), position]
        return float(
            sum(
                quad(slowness, low, high, epsabs=0.0, epsrel=1e-11, limit=200)[0]
                for low, high in pairwise(ends)
            )
        )

    @property
    def blow_up(self) -> float:
        """The time at which the weights are infinite; never for k = 2."""
        return math.inf if self.k == 2 else self.time(math.inf)

    def at(self, time: float) -> float:
        """Return the position at a time before the blow-up."""
        if not 0 <= time < self.blow_up:
            raise UserError(f"Flow: time={time}. Give a time from 0 to below {self.blow_up:.6g}.")
        from scipy.optimize import brentq  # slow to import

        low = high = self.position
        while self.time(high) < time:  # from below 0 it may never pass 0
            high = high + max(1.0, abs(high)) if self.learns else high / 2
        return float(brentq(lambda r: self.time(r) - time, low, high, xtol=1e-14, rtol=1e-13))

    def error(self, position: float) -> float:
        """Return the error at a position, an output of 0 being wrong."""
        return polynet_error(self.relevant(position), self.others)

    def _error_after(self, position: float) -> float:
        """Return the error just after a position above 0, where no output is 0 any more."""
        values = np.abs(self.relevant(position))
        odd = 1.0
        for value, rest in zip(values, self.others, strict=True):
            odd *= 1 - 2 * rest.split(float(value))[1]
        return (1 - odd) / 2

    def reaches(self, error: float) -> float:
        """Return the first position from which the error is at most `error`, below ½, or ∞.

        The error never rises except at moments when some output is 0; these are ignored.
        """
        if not 0 <= error < 0.5:
            raise UserError(f"Flow: error={error}. Give an error from 0 to below 0.5.")
        if not self.learns:
            return math.inf
        totals = np.array([rest.total for rest in self.others])
        least = max(self.position, 0.0)
        # No mistake is left when every relevant weight outweighs its whole block.
        high = max(least, math.sqrt(max(0.0, float(np.max(totals**2 - self._gaps)))))
        if error == 0:
            return high
        low = least
        if self._error_after(low) <= error:
            return low
        if all(rest.is_smooth for rest in self.others):
            from scipy.optimize import brentq  # slow to import

            found = brentq(
                lambda r: self._error_after(r) - error, low, high, xtol=1e-14 * high, rtol=1e-14
            )
            return float(found)
        for _ in range(200):
            middle = (low + high) / 2
            if high - low <= 1e-14 * high:
                break
            low, high = (low, middle) if self._error_after(middle) <= error else (middle, high)
        return high

    def time_to(self, error: float) -> float:
        """Return T(ε): the time from which the error stays at most `error` [HP Thm 5.7].

        The appendix's T(α) is the last time with an error of at least α; T(0) would then be the end
        of the flow, a little later than here.
        """
        position = self.reaches(error)
        return math.inf if math.isinf(position) else self.time(position)

    def remainder(self, error: float = PLATEAU) -> float:
        """Return 1 − T(ε) / T(0): the share of the time to zero error that is spent below ε.

        The difference is integrated, not subtracted, so that a tiny share keeps its digits.
        """
        last, whole = self._zero_error
        if math.isinf(last) or last <= self.position:
            return math.nan
        first = self.reaches(error)
        return self.time(last, since=max(first, self.position)) / whole

    @cached_property
    def _zero_error(self) -> tuple[float, float]:
        """The position from which there is no error, and the time T(0) until then."""
        last = self.reaches(0.0)
        return last, math.inf if math.isinf(last) else self.time(last)

    def curve(self, points: int = 200) -> tuple[Floats, Floats]:
        """Return times and errors from the start to just after the last mistake, for drawing.

        The points lie evenly in the logarithm of the growing weights.
        """
        last = self.reaches(0.0)
        if math.isinf(last):
            raise UserError("Flow: this start never learns. Give one with a positive product.")
        reach = last - self.position
        scale = max(1e-3, abs(self.position))
        positions = self.position + scale * (np.geomspace(1, 1 + 1.02 * reach / scale, points) - 1)
        times = np.array([self.time(float(p)) for p in positions])
        errors = np.array([self.error(float(p)) for p in positions])
        return times, errors


@dataclass(frozen=True)
class FlowPath:
    """A solution of the differential equation at the solver's own steps."""

    times: Floats
    relevant: Floats  # shape (time, k)
    ended: bool  # whether a weight reached `largest` before the time asked for


def integrate_flow(
    relevant: Sequence[float] | Floats, until: float, *, largest: float = 1e6
) -> FlowPath:
    """Solve v_i' = Π_{j≠i} v_j numerically; the run ends early where a weight reaches `largest`."""
    from scipy.integrate import solve_ivp  # slow to import

    def slope(_: float, v: Floats) -> Floats:
        return products_of_others(v)

    def escape(_: float, v: Floats) -> float:
        return float(np.abs(v).max()) - largest

    escape.terminal = True  # type: ignore[attr-defined] # how SciPy is told to stop there
    found = solve_ivp(
        slope,
        (0.0, until),
        np.asarray(relevant, np.float64),
        method="DOP853",
        events=escape,
        rtol=1e-11,
        atol=1e-13,
    )
    return FlowPath(found.t, found.y.T, bool(found.status == 1))


def all_ones_weight(k: int, time: float) -> float:
    """Return v(t) from the all-ones start: (1 − (k − 2) t)^{−1/(k − 2)}, or e^t for k = 2."""
    check_whole("all_ones_weight", 2, k=k)
    if k == 2:
        return math.exp(time)
    left = 1 - (k - 2) * time
    return left ** (-1 / (k - 2)) if left > 0 else math.inf


def population_descent(
    weights: Sequence[Sequence[float]] | Floats, rate: float, steps: int
) -> Floats:
    """Take steps of gradient descent on the population's correlation loss.

    Returns the relevant weights before every step and after the last, shape (steps + 1, k); weights
    that overflow are infinite. The other weights do not change.
    """
    check_whole("population_descent", 0, steps=steps)
    path = np.empty((steps + 1, len(np.asarray(weights))))
    path[0] = np.asarray(weights, np.float64)[:, 0]
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(steps):
            moved = path[step] + rate * products_of_others(path[step])
            path[step + 1] = np.where(np.isnan(moved), path[step], moved)
    return path
