"""Rules that hold theorems against measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.choices import name_of
from petridish.rules.cells import grid, mixed
from petridish.rules.claims import Finding, Judgement, Simulated, by_interval, nothing
from petridish.rules.frontier import frontier_draws, frontier_index, sample_sizes
from petridish.rules.specs import where
from petridish.tasks import SparseParity

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
RESAMPLES = 2_000


@dataclass(frozen=True)
class AboveTheBound:
    """No cell succeeds with fewer resources than Proposition 3 asks for [PF §3.1].

    For every cell of a sparse parity in which half of the runs succeed or more: parameters × median
    steps × m, over the share of runs that succeed within these steps and over ½ C(n, k), with τ² =
    1/m. The estimate is the least over the cells; its interval comes from that share's. Online
    there is no m to speak of.
    """

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs on sparse parities."""
        from petridish.statistics.estimate import anytime_interval, censored_median
        from petridish.theory import n_parameters, resource_product, sq_bound

        quantity = "least resource product of a success, over Proposition 3's bound"
        offline = where(
            table, lambda spec: isinstance(spec.task, SparseParity) and not spec.data.online
        )
        ratios = []
        for cell in offline.partition_by("task", "init", "data.m", "model.width"):
            run, times = cell.row(0, named=True), cell["solved_at"].to_list()
            middle = censored_median(times)
            if not math.isfinite(middle):
                continue
            solved = sum(time is not None and time <= middle for time in times)
            n, parameters = run["task.n"], n_parameters(run["model.width"], run["task.n"])
            low, high = anytime_interval(solved, len(times), coverage=1 - level)
            needed = resource_product(parameters, max(middle, 1), run["data.m"] ** -0.5, 1)
            over = needed / sq_bound(n, run["task.k"])
            ratios.append((over * len(times) / solved, over / float(high), over / float(low)))
        if not ratios:
            return nothing(quantity, "no offline cell succeeds in half of its runs")
        estimate, low_end, high_end = min(ratios)
        judgement = by_interval(low_end, high_end, 1.0)
        return Finding(
            judgement,
            estimate,
            low_end,
            high_end,
            quantity,
            len(offline),
            f"over {len(ratios)} cells",
        )


@dataclass(frozen=True)
class FrontierSlope:
    """The smallest `over` that suffices moves along `along`: its slope on logarithmic axes.

    At the largest `at`, the smallest value of `over` at which half of the runs succeed, for every
    value of `along`; a least-squares line through the logarithms, with an interval from the runs'
    posterior (`frontier_draws`). Supported if the slope has the sign that is claimed, contradicted
    if it has the other. Where nothing suffices, or fresh examples alone do, it counts as one step
    beyond the grid.
    """

    along: str
    over: str
    at: str
    sign: Literal["rises", "falls"]
    inits: str = "over_sparse"
    claimed: float = math.nan

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        import polars as pl

        quantity = f"slope of the least {self.over} along {self.along}"
        runs = where(table, lambda spec: name_of(spec.init) == self.inits)
        if runs.is_empty():
            return nothing(quantity, f"no run starts from {self.inits}")
        runs = runs.filter(pl.col(self.at) == runs[self.at].max())
        if clash := mixed(runs, (self.along, self.over)):
            return nothing(quantity, clash)
        whole = grid(runs, rows=self.along, columns=self.over, strata=()).complete()
        along = np.array(whole.rows, np.float64)
        if not whole.strata or len(along) < 2 or len(whole.columns) < 2:
            return nothing(quantity, f"needs two values of {self.along} and {self.over}, two seeds")
        sizes = sample_sizes(whole.columns)

        def slopes(index: NDArray[np.int64]) -> Floats:
            found: Floats = np.polyfit(np.log(along), np.log(sizes[index]).T, 1)[0]
            return np.round(found, 9)

        rng = np.random.default_rng(0)
        drawn = frontier_draws(whole, draws=RESAMPLES, rng=rng)[:, 0]  # (draw, row)
        best = frontier_index(whole.solved / whole.runs)
        estimate = float(slopes(best)[0])
        low, high = np.quantile(slopes(drawn), [level / 2, 1 - level / 2])
        low, high = float(min(low, estimate)), float(max(high, estimate))
        judgement = by_interval(low, high, 0.0)
        if self.sign == "falls":
            judgement = by_interval(-high, -low, 0.0)
        least = sizes[best[0]]
        remark = ", ".join(
            f"{self.along.rpartition('.')[2]} = {a:g}: {size:g}"
            for a, size in zip(along, least, strict=True)
        )
        claimed = "" if math.isnan(self.claimed) else f"; the bound's exponent is {self.claimed:g}"
        return Finding(
            judgement, estimate, low, high, quantity, int(whole.runs.sum()), f"{remark}{claimed}"
        )


@dataclass(frozen=True)
class RecoverySlope(Simulated):
    """The sample from which one truncated step finds the bits of S grows like n^(k−s−1).

    Simulated here, from a fixed seed: no run of the sweep takes part. Supported if the slope's
    interval lies within `tolerance` of the claim, contradicted if it lies outside.
    """

    k: int
    s: int
    n_values: Sequence[int]
    trials: int
    tolerance: float = 0.25

    def simulate(self, level: float) -> Finding:
        """Judge from simulated gradient steps."""
        from petridish.theory import recovery_slope

        rng = np.random.default_rng(0)
        found = recovery_slope(
            self.n_values,
            self.k,
            self.s,
            trials=self.trials,
            rng=rng,
            found="bit",
            coverage=1 - level,
        )
        nearest, farthest = found.claimed - self.tolerance, found.claimed + self.tolerance
        judgement = Judgement.UNDECIDED
        if nearest <= found.low and found.high <= farthest:
            judgement = Judgement.SUPPORTED
        elif found.high < nearest or found.low > farthest:
            judgement = Judgement.CONTRADICTED
        return Finding(
            judgement,
            found.slope,
            found.low,
            found.high,
            f"slope of log m in log n at k = {self.k}, s = {self.s}",
            self.trials * len(self.n_values),
            f"claimed {found.claimed}, expected at these n {found.predicted:.2f}; n = "
            + ", ".join(map(str, self.n_values)),
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
        from petridish.statistics.estimate import student_half_width
        from petridish.theory import UnderSparse, correlation_curve

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
