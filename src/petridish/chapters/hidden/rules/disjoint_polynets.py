"""Disjoint PolyNets: their gradient flow, and SGD with batches of one [HP §4.2]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.table_rule import (
    TableRule,
    decide,
    every_above,
    least_share,
)
from petridish.errors import require
from petridish.models import DisjointPolyNet
from petridish.rules.claims import Finding, Judgement, Simulated, nothing
from petridish.rules.specs import where
from petridish.statistics.intervals import RESAMPLES, exact_interval
from petridish.theory.hidden.polynet_flow import PLATEAU
from petridish.training import Correlation

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
AROUND = 16
CELL = ("task", "init")
NONE = "no run of disjoint_polynet with correlation loss and B = 1"


@dataclass(frozen=True)
class PlateauShare(Simulated):
    """Gradient flow spends all but O(n'^{1−k/2}) of its time above an error of 0.49 [HP Thm 5.7].

    From the all-ones start, exactly: no sampling error, and no interval. The estimate is the
    slope of log(1 − T(.49) / T(0)) in log n', least squares over the blocks n' of `n_values`. As
    sums of ones are whole numbers, (1 − T(.49) / T(0)) n'^{k/2−1} wobbles with n', less and less;
    the largest of `AROUND` blocks from n' to 2n' stands for each n'. Supported if the slope is at
    most 1 − k/2 + `tolerance`; contradicted if it is more, or if a share lies below its proved
    bound (`plateau_bound`). Blocks that begin below 0.49 say nothing; three others are needed.
    """

    k: int
    n_values: tuple[int, ...]
    tolerance: float = 0.05

    def simulate(self, level: float) -> Finding:
        """Judge from the flow itself; no run takes part."""
        from petridish.theory.hidden.polynet_bounds import plateau_bound, plateau_constant

        quantity = f"slope of log(1 − T(.49)/T(0)) in log n', all ones, k = {self.k}"
        power = self.k / 2 - 1
        constants = {}  # by block, for each n'
        for n in self.n_values:
            blocks = np.unique(np.rint(np.geomspace(n, 2 * n, AROUND))).astype(int)  # even and odd
            constants[n] = {b: plateau_constant(self.k, b, error=PLATEAU) for b in blocks.tolist()}
        on_it = [
            n
            for n, found in constants.items()
            if all(value < block**power for block, value in found.items())
        ]
        if len(on_it) < 3:
            return nothing(quantity, "needs three n' above which all blocks begin above 0.49")
        worst = np.array([max(constants[n].values()) for n in on_it])
        slope = float(_log_slope(on_it, worst)) - power
        broken = [
            block
            for found in constants.values()
            for block, value in found.items()
            if 1 - value / block**power < plateau_bound(self.k, block) - 1e-12
        ]
        held = slope <= self.tolerance - power and not broken
        first, last = (1 - constants[n][n] / n**power for n in (on_it[0], on_it[-1]))
        remark = (
            f"claimed at most {-power:g}; T(.49)/T(0) = {first:.4g} at n' = {on_it[0]}, {last:.6g} "
            f"at {on_it[-1]}; (1 − T(.49)/T(0)) n'^{power:g} is at most {worst.max():.3g} from "
            f"n' = {on_it[0]} on, {worst[-1]:.3g} from {on_it[-1]} on"
        )
        if broken:
            remark = f"below the proved bound at n' = {', '.join(map(str, broken))}; {remark}"
        judgement = Judgement.SUPPORTED if held else Judgement.CONTRADICTED
        n_flows = sum(len(found) for found in constants.values())
        return Finding(judgement, slope, math.nan, math.nan, quantity, n_flows, remark)


@dataclass(frozen=True)
class GaussianPlateau(Simulated):
    """The same from Gaussian weights with a positive product [HP Thm 5.7, full statement].

    The statement has every γ in (0, ½): 1 − T(½ − γ) / T(0) is at most of the order n'^{1−k/2}
    γ^{2/k−1}. So (1 − T(½ − γ) / T(0)) γ^{1−2/k} is taken at the worst of `gammas`, and its median
    over `draws` stands for each n'; the estimate is the median's slope on logarithmic axes, with a
    percentile bootstrap over draws. Supported if the interval lies below 1 − k/2 + `tolerance`,
    contradicted if it lies above. A draw is one start of the largest n', of which smaller n' take
    the first bits of each block: what the relevant weights do to all n' alike cancels in the slope.
    The theorem speaks of nearly all starts, with probability 1 − 1/poly(n'); what nine in ten have
    stands in the remark and does not decide. T(0) is the time of zero error, as in `PlateauShare`;
    in the appendix it is the end of the flow, a little later.
    """

    k: int
    n_values: tuple[int, ...]
    gammas: tuple[float, ...] = (0.001, 0.5 - PLATEAU, 0.1)
    draws: int = 400  # at a level of 1 %, an interval of about ± tolerance / 2
    tolerance: float = 0.05

    def simulate(self, level: float) -> Finding:
        """Judge from drawn starts; no run takes part."""
        quantity = (
            f"slope of log max_γ (1 − T(½ − γ)/T(0)) γ^(1 − 2/k) in log n', Gaussian start, "
            f"k = {self.k}"
        )
        if len(self.n_values) < 3:
            return nothing(quantity, "needs three n'")
        rng = np.random.default_rng(0)  # the same claim gives the same verdict
        left = np.stack([self._remainders(rng) for _ in range(self.draws)])  # (draw, n', γ)
        drawn = np.max(left * np.array(self.gammas) ** (1 - 2 / self.k), axis=-1)  # (draw, n')
        estimate = float(_log_slope(self.n_values, np.median(drawn, axis=0)))
        picks = rng.integers(self.draws, size=(RESAMPLES, self.draws))
        slopes = _log_slope(self.n_values, np.median(drawn[picks], axis=1))
        low, high = map(float, np.quantile(slopes, [level / 2, 1 - level / 2]))
        limit = 1 - self.k / 2 + self.tolerance
        middle, most = np.median(left, axis=0), np.quantile(left[:, -1], 0.9, axis=0)  # (n', γ)
        shares = []
        for place, gamma in enumerate(self.gammas):
            each = zip(self.n_values, middle[:, place], strict=True)
            medians = ", ".join(f"{1 - value:.4g} at n' = {n}" for n, value in each)
            shares.append(
                f"median T({0.5 - gamma:g})/T(0) {medians}, where nine in ten starts have at least "
                f"{1 - most[place]:.4g}"
            )
        return Finding(
            decide(contradicted=low > limit, supported=high <= limit),
            estimate,
            min(low, estimate),
            max(high, estimate),
            quantity,
            drawn.size,
            f"claimed at most {1 - self.k / 2:g}; {'; '.join(shares)}",
        )

    def _remainders(self, rng: np.random.Generator) -> list[list[float]]:
        """Draw a start, and return 1 − T(½ − γ) / T(0) for each n' and γ."""
        from petridish.theory.hidden.polynet_flow import Flow, start_weights

        weights = start_weights("gaussian", self.k, max(self.n_values), rng)
        # The theorem's condition, a positive product: signs that change in pairs change no time.
        weights[:, 0] = np.abs(weights[:, 0])
        flows = [Flow(weights[:, :n]) for n in self.n_values]
        return [[flow.remainder(0.5 - gamma) for gamma in self.gammas] for flow in flows]


def _log_slope(n_values: Sequence[int], values: Floats) -> Floats:
    """Return the least-squares slope of log value in log n', n' being the last axis."""
    centred = np.log(n_values) - np.log(n_values).mean()
    slopes: Floats = np.log(values) @ centred / (centred @ centred)
    return slopes


def disjoint_runs(table: pl.DataFrame) -> pl.DataFrame:
    """Keep the runs of disjoint PolyNets with the correlation loss and batches of one."""
    return where(
        table,
        lambda spec: (
            isinstance(spec.model, DisjointPolyNet)
            and isinstance(spec.training.loss, Correlation)
            and spec.training.batch_size == 1
        ),
    )


@dataclass(frozen=True)
class LearnsDisjoint(TableRule):
    """SGD with B = 1 and a constant rate learns the disjoint parity [HP Fig. B.1 right].

    Whether the share of runs solved lies above `at_least` for each task and start (`least_share`).
    Theorem 5.8 has a rate of its own: `LearnsByTheorem58`.
    """

    quantity = "least share of runs of a disjoint PolyNet solved by SGD with B = 1"

    at_least: float = 0.5

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        runs = disjoint_runs(table)
        require(len(runs) > 0, NONE)
        return least_share(runs, CELL, self.quantity, self.at_least, level)


@dataclass(frozen=True)
class LearnsByTheorem58(Simulated):
    """SGD by Theorem 5.8 ends at an error of at most ε: its start, its rate, its steps.

    Simulated, from a fixed seed: B = 1, weights ±1 drawn anew until their product is positive,
    which half of them have, T as printed (`theorem58_steps`), and the error at the end exactly. The
    estimate is the least share of runs within ε over `sizes`, pairs of n' and k, with exact bounds
    (Bonferroni). Supported if every share lies above 1 − δ, contradicted if one lies below. T grows
    like n'^{2k−1}: blocks of two and three bits are what can be run. How many runs keep Claims B.11
    and B.12 at every thousand steps stands in the remark.
    """

    sizes: tuple[tuple[int, int], ...] = ((2, 2), (3, 2))
    epsilon: float = 0.25
    delta: float = 0.1
    runs: int = 100
    hurry: float = 1.0  # the share of the steps that is taken

    def simulate(self, level: float) -> Finding:
        """Judge from simulated runs."""
        rng = np.random.default_rng(0)  # the same claim gives the same verdict
        found = [self._share(block, k, rng, level / len(self.sizes)) for block, k in self.sizes]
        cells = [cell for cell, _ in found]
        quantity = f"least share of runs with an error of at most {self.epsilon:g} after T steps"
        n = self.runs * len(self.sizes)
        remark = "; ".join(text for _, text in found)
        return Finding(every_above(cells, 1 - self.delta), *min(cells), quantity, n, remark)

    def _share(
        self, block: int, k: int, rng: np.random.Generator, level: float
    ) -> tuple[tuple[float, float, float], str]:
        """Return the share of runs that end within ε, with its bounds, and a sentence."""
        from petridish.theory.hidden.polynet_bounds import adaptive_path, claim_b12, theorem58_steps
        from petridish.theory.hidden.polynet_flow import SignSum, polynet_error

        steps = theorem58_steps(block, k, epsilon=self.epsilon, delta=self.delta, version="printed")
        weights = rng.choice([-1.0, 1.0], size=(4 * self.runs, k, block))
        weights = weights[np.prod(weights[:, :, 0], axis=1) > 0][: self.runs]
        signs = np.sign(weights[:, :, 0])
        small, grown = np.ones(self.runs, np.bool_), np.ones(self.runs, np.bool_)
        ended = weights
        for taken, ended in adaptive_path(weights, steps, delta=self.delta, rng=rng):
            small &= np.all(np.abs(ended[:, :, 1:]) <= 1.5, axis=(1, 2))
            least = claim_b12(block, k, taken, steps, delta=self.delta)
            grown &= np.all(signs * ended[:, :, 0] >= least, axis=1)
            if taken >= self.hurry * steps:
                break
        errors = [polynet_error(run[:, 0], [SignSum(row[1:]) for row in run]) for run in ended]
        good = sum(error <= self.epsilon for error in errors)
        low, high = exact_interval(good, self.runs, coverage=1 - level)
        text = (
            f"n' = {block}, k = {k}, T = {steps:,}: {good} of {self.runs}, largest error "
            f"{max(errors):.3g}; Claims B.11 and B.12 hold in {small.sum()} and {grown.sum()}"
        )
        return (good / self.runs, low, high), text


def plateau_shares(runs: pl.DataFrame, error: float = PLATEAU) -> Floats:
    """Return the share of its time to solution that every solved run spent at `error` or more."""
    found = []
    columns = ["solved_at", "curve.step", "curve.test_error"]
    for solved_at, steps, errors in runs.sort("seed").select(columns).iter_rows():
        if solved_at is None or not steps:
            continue
        until = np.array([step for step in steps if step < solved_at] + [solved_at], np.float64)
        high = np.array(errors[: len(until) - 1]) >= error
        found.append(float(np.diff(until)[high].sum() / solved_at) if solved_at else 0.0)
    return np.array(found)
