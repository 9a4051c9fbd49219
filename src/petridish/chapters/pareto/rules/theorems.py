"""Rules that compare theorems with measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.rules.cells import grid, mixed
from petridish.rules.claims import (
    Finding,
    Judgement,
    Reads,
    Simulated,
    blind_within,
    by_interval,
    nothing,
    remarks,
)
from petridish.rules.specs import where
from petridish.statistics.intervals import RESAMPLES
from petridish.sweeps.arms import by_arm
from petridish.tasks import SparseParity
from petridish.theory.pareto.recovery import log_slope

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AboveTheBound:
    """No cell succeeds with fewer resources than Proposition 3 asks for [PF §3.1].

    The proposition is about SGD with a loss whose derivative is −y + ℓ0(ŷ), gradients of at most 1
    and adversarial noise of at most τ; runs with the hinge loss and without noise are outside of
    it, so that a success below would not refute it, and one above confirms nothing.

    For every cell of a sparse parity in which half of the runs succeed or more: parameters × median
    steps × m, over the share of runs that succeed within these steps and over ½ C(n, k), with τ² =
    1/m. The estimate is the least over the cells; its interval comes from that share's. Online
    runs have no m and are left out.
    """

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs on sparse parities."""
        from petridish.statistics.intervals import anytime_interval, lower_median
        from petridish.theory.lower_bounds import n_parameters, resource_product, sq_bound

        quantity = "least resource product of a success, over Proposition 3's bound"
        offline = where(
            table, lambda spec: isinstance(spec.task, SparseParity) and not spec.data.online
        )
        ratios = []
        for cell in offline.partition_by("task", "init", "data.m", "model.width"):
            run, times = cell.row(0, named=True), cell["solved_at"].to_list()
            middle = lower_median(times)
            if not math.isfinite(middle):
                continue
            solved = sum(time is not None and time <= middle for time in times)
            n, parameters = run["task.n"], n_parameters(run["model.width"], run["task.n"])
            low, high = anytime_interval(solved, len(times), coverage=1 - level)
            needed = resource_product(parameters, max(middle, 1), run["data.m"] ** -0.5, 1)
            over = needed / sq_bound(n, run["task.k"])
            ends = over * len(times) / solved, over / float(high), over / float(low)
            ratios.append(
                (
                    ends,
                    run["task"],
                    f"{run['init']}, m = {run['data.m']:g}, r = {run['model.width']}",
                )
            )
        if not ratios:
            return nothing(quantity, "no offline cell succeeds in half of its runs")
        (estimate, low_end, high_end), task, place = min(ratios)
        judgement = by_interval(low_end, high_end, 1.0)
        least = {
            name: min(ends[0] for ends, task, _ in ratios if task == name)
            for name in dict.fromkeys(sorted(task for _, task, _ in ratios))
        }
        remark = f"over {len(ratios)} cells; least at {task}, {place}; by task " + ", ".join(
            f"{name} {value:.2g}" for name, value in least.items()
        )
        return Finding(judgement, estimate, low_end, high_end, quantity, len(offline), remark)


@dataclass(frozen=True)
class GrowsNoFaster(Reads):
    """What suffices grows no faster than a theorem's exponent: a slope on log axes.

    For every value of `along` in an arm, the least `size` at which half of the runs succeed: where
    the rising fit to the shares crosses ½, between two values of the grid. A least-squares line
    through the logarithms, with an interval from the runs' posterior (seeds weighed at random, and
    Jeffreys' prior in each cell). A theorem's sizes suffice, with constants that it leaves open:
    supported if the whole interval lies below the exponent and a `tolerance`, contradicted if it
    lies above. If a threshold lies beyond its grid nothing is decided.
    """

    arm: str
    along: str
    size: str
    exponent: float
    tolerance: float = 0.25
    per_log: bool = False  # the bound has a further log n: the size is divided by it

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return self.along, self.size, "task.n", "seed"

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of one arm."""
        from petridish.statistics.thresholds import monotone, weighed_shares
        from petridish.theory.smallest import crossing

        by_log = ", over log n" if self.per_log else ""
        quantity = f"exponent of the least {self.size}{by_log} along {self.along}"
        runs = by_arm(table, self.arm)
        if clash := mixed(runs, (self.along, self.size)):
            return nothing(quantity, clash)
        rng = np.random.default_rng(0)  # the same table gives the same verdict
        values, least, drawn, said, outside = [], [], [], [], []
        for part in runs.sort(self.along).partition_by(self.along, maintain_order=True):
            counts = grid(part, rows=self.along, columns=self.size, strata=()).complete()
            if not counts.strata or len(counts.columns) < 2:
                return nothing(quantity, f"needs two values of {self.size}, two seeds in each cell")
            sizes = np.array(counts.columns, np.float64)
            outcome = counts.outcome[0, 0]  # (size, seed)
            weights = rng.standard_exponential((RESAMPLES, outcome.shape[-1]))
            shares = np.stack(
                [
                    weighed_shares(row[~np.isnan(row)], weights[:, ~np.isnan(row)], rng)
                    for row in outcome
                ],
                axis=-1,
            )  # (draw, size)
            equal = np.ones(len(sizes))
            per = math.log(part["task.n"][0]) if self.per_log else 1.0
            share = monotone(np.nanmean(outcome, axis=-1), equal)
            least.append(crossing(share, sizes, 0.5) / per)
            drawn.append([crossing(row, sizes, 0.5) / per for row in monotone(shares, equal)])
            values.append(float(part[self.along][0]))
            said.append(f"{values[-1]:g}: {least[-1] * per:.3g}")
            if share[0] >= 0.5 or share[-1] < 0.5:
                outside.append(f"{values[-1]:g}")
        if len(values) < 2:
            return nothing(quantity, f"needs two values of {self.along}")
        redrawn: Floats = log_slope(values, np.array(drawn).T)
        slopes = redrawn.round(9)  # so that equal thresholds have equal slopes
        estimate = float(log_slope(values, np.array([least]))[0])
        low, high = (float(q) for q in np.quantile(slopes, [level / 2, 1 - level / 2]))
        low, high = min(low, estimate), max(high, estimate)
        remark = f"least {self.size} by {self.along} " + ", ".join(said)
        most = self.exponent + self.tolerance
        judgement = no_more_than(low, high, most)
        if outside:
            judgement = Judgement.UNDECIDED
            remark += f"; the grid does not bracket it at {', '.join(outside)}"
        remark += f"; the bound's exponent is {self.exponent:g}"
        remark = remarks(remark, blind_within(most, estimate, low, high))
        return Finding(judgement, estimate, low, high, quantity, len(runs), remark)


def no_more_than(low: float, high: float, most: float) -> Judgement:
    """Judge that a number is at most `most`, from its interval."""
    return by_interval(-high, -low, -most)


@dataclass(frozen=True)
class RecoverySlope(Simulated):
    """The sample from which one truncated step finds S grows no faster than n^(k−s−1) log n.

    The theorem's event is the whole set: the entries that the truncation leaves are those on
    S ∖ S'. To watch n entries at once costs a logarithm, which the proof needs and the statement
    lacks; the estimate is the exponent of m / log n. Simulated here, from a fixed seed: no run of
    the sweep takes part. Supported if the whole interval lies below the claim and `tolerance`,
    contradicted if it lies above.
    """

    k: int
    s: int
    n_values: Sequence[int]
    trials: int
    tolerance: float = 0.25

    def simulate(self, level: float) -> Finding:
        """Judge from simulated gradient steps."""
        from petridish.theory.pareto.recovery import recovery_slope

        sizes, rng = (self.n_values, self.k, self.s), np.random.default_rng(0)
        found = recovery_slope(*sizes, trials=self.trials, rng=rng, found="set", coverage=1 - level)
        logarithm = float(log_slope(self.n_values, np.log([self.n_values]))[0])
        estimate, low, high = (end - logarithm for end in (found.slope, found.low, found.high))
        return Finding(
            no_more_than(low, high, found.claimed + self.tolerance),
            estimate,
            low,
            high,
            f"exponent of n in m / log n at k = {self.k}, s = {self.s}",
            self.trials * len(self.n_values),
            f"claimed {found.claimed}; without the logarithm {found.slope:.2f} [{found.low:.2f}, "
            f"{found.high:.2f}], expected at these n {found.predicted:.2f}; n = "
            + ", ".join(map(str, self.n_values)),
        )


@dataclass(frozen=True)
class KeptSigns(Simulated):
    """With the second layer at ±1, some subnetwork's correlation with the parity is ½ or more.

    The theorem's step trains the first layer alone. For every (k, s) the best correlation of any
    subnetwork of good neurons after the population's step, in the limit ε → 0, exact up to the
    solver; the estimate is the least of them, with a free output bias, which can only raise it.
    """

    cases: tuple[tuple[int, int], ...]

    def simulate(self, level: float) -> Finding:
        """Judge from the constructions."""
        from petridish.theory.pareto.under_sparse import untrained_correlation

        found = {c: untrained_correlation(*c, output_bias="free") for c in self.cases}
        least = min(found.values())
        remark = ", ".join(f"(k, s) = ({k}, {s}): {value:.2f}" for (k, s), value in found.items())
        return Finding(
            by_interval(least, least, 0.5),
            least,
            least,
            least,
            "least correlation of the best subnetwork with the parity, u = ±1",
            len(self.cases),
            remark,
        )


@dataclass(frozen=True)
class SubnetworkAgrees(Simulated):
    """After one truncated step on m examples, good neurons agree with the parity by more than ½.

    Simulated here, from a fixed seed. The estimate is the mean of E[sign(f) χ_S] over samples.
    """

    n: int
    k: int
    s: int
    m: int
    trials: int

    def simulate(self, level: float) -> Finding:
        """Judge from simulated gradient steps."""
        from petridish.statistics.intervals import student_half_width
        from petridish.theory.pareto.under_sparse import UnderSparse, correlation_curve

        recipe = UnderSparse(n=self.n, k=self.k, s=self.s)
        rng = np.random.default_rng(0)
        values = correlation_curve(recipe, [self.m], trials=self.trials, rng=rng)[:, 0]
        estimate, half = float(values.mean()), student_half_width(values, 1 - level)
        low, high = estimate - half, estimate + half
        return Finding(
            by_interval(low, high, 0.5),
            estimate,
            low,
            high,
            f"agreement of the subnetwork with the parity at ({self.n}, {self.k}), s = {self.s}",
            self.trials,
            f"m = {self.m:,}",
        )
