"""One big step of the first layer, and features that do not move [HP §4.1]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.table_rule import (
    FEWEST,
    TableRule,
    decide,
    least_share,
    refuse_mixed,
)
from petridish.errors import require
from petridish.rules.claims import Finding, Simulated, nothing
from petridish.statistics.intervals import RESAMPLES, student_half_width, wilson_interval
from petridish.sweeps import by_arm

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
FIXED = ("random", "tangent")  # the arms whose features do not move


@dataclass(frozen=True)
class OneStepRecovers(TableRule):
    """After one big step of the first layer, a trained second layer solves the parity [HP Thm 5.5].

    Whether the share of runs solved lies above `at_least` at the largest width and sample of each
    task (`least_share`).
    """

    quantity = "share solved by one step and a second layer, at the largest m and width"

    at_least: float = 0.5

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        import polars as pl

        runs, by = by_arm(table, "one step"), ("task", "data.m", "model.width")
        require(len(runs) > 0, "the arm «one step» has no runs")
        refuse_mixed(runs, by)
        largest = runs.filter(pl.col(name) == pl.col(name).max().over("task") for name in by[1:])
        require(
            largest["task"].n_unique() == runs["task"].n_unique(),
            "the largest m was not run at the largest width",
        )
        return least_share(largest, by, self.quantity, self.at_least, level)


@dataclass(frozen=True)
class FirstGradientShowsTheParity(Simulated):
    """The k largest entries of a neuron's first gradient are S, from about log n / γ² examples.

    Simulated here, from a fixed seed [HP §4.1, Prop. B.7]; γ is the gap of `first_gradient`. For
    each n of `n_values`, samples of `multiples` of log n / γ² are drawn, and the m at which half of
    `trials` show S is read off between them. The estimate is the slope of log m in
    log(log n / γ²), with a percentile bootstrap over trials. The proposition says that O(log n /
    γ²) suffice: supported if the interval lies below 1 + `tolerance` and at every n the share at
    the largest multiple lies above `reliable` (Wilson's bounds); contradicted if the interval lies
    above.
    """

    k: int
    n_values: tuple[int, ...]
    multiples: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    trials: int = 800
    reliable: float = 0.9
    tolerance: float = 0.1

    def simulate(self, level: float) -> Finding:
        """Judge from simulated gradients."""
        from petridish.theory.hidden.one_step import first_gradient
        from petridish.theory.hidden.top_k import predicted_top_k_size, top_k_trials

        quantity = f"slope of the m that shows S half of the time in log n / γ², k = {self.k}"
        rng = np.random.default_rng(0)  # the same claim gives the same verdict
        logs = np.log(self.multiples)
        units, halves, shares, texts = [], [], [], []
        for n in self.n_values:
            inside, outside = map(float, first_gradient(n, self.k))
            unit = math.log(n) / (inside - outside) ** 2
            sizes = [math.ceil(multiple * unit) for multiple in self.multiples]
            found = top_k_trials(n, self.k, sizes, trials=self.trials, rng=rng)  # (trial, size)
            picks = rng.integers(self.trials, size=(RESAMPLES, self.trials))
            drawn = np.vstack([found.mean(axis=0), found[picks].mean(axis=1)])
            # A larger sample shows S more often: what falls between two sizes is chance.
            rising = np.maximum.accumulate(drawn, axis=1)
            if rising[0, 0] >= 0.5 or rising[0, -1] < 0.5:
                return nothing(quantity, f"n = {n}: half of the samples lies beyond the multiples")
            half = np.array([np.interp(0.5, row, logs) for row in rising])
            units.append(math.log(unit))
            halves.append(half + math.log(unit))
            shares.append(int(found[:, -1].sum()))
            texts.append(
                f"n = {n}: half at {math.exp(halves[-1][0]):,.0f} "
                f"({predicted_top_k_size(n, self.k):,.0f} expected), {found[:, -1].mean():.0%} at "
                f"{sizes[-1]:,}"
            )
        centred = np.array(units) - np.mean(units)
        slopes = centred @ np.array(halves) / (centred @ centred)  # the first is the estimate
        low, high = map(float, np.quantile(slopes[1:], [level / 2, 1 - level / 2]))
        made = np.full(len(shares), self.trials)
        lows, _ = wilson_interval(np.array(shares), made, coverage=1 - level)
        judgement = decide(
            contradicted=low > 1 + self.tolerance,
            supported=high < 1 + self.tolerance and np.all(lows > self.reliable),
        )
        estimate = float(slopes[0])
        n_trials = self.trials * len(self.n_values)
        ends = min(low, estimate), max(high, estimate)
        return Finding(judgement, estimate, *ends, quantity, n_trials, "; ".join(texts))


@dataclass(frozen=True)
class FixedFeaturesStayAtChance(TableRule):
    """Random features and tangent kernels stay at chance where trained features learn [HP Thm 5.6].

    Compared are MLPs with a trained first layer and, at the same task, width, sample and rate, runs
    with random features (first layer frozen) and tangent kernels. The estimate is the lowest mean
    test error of a kind of fixed features at the end, with Student's interval over seeds, each seed
    counting by its mean (Bonferroni over kinds and the trained). Supported if every kind's interval
    lies above `chance` and the trained ones' share solved lies above ½; contradicted if a kind's
    lies below `chance`, or the trained ones' below ½. A diverged run has no test error: among the
    fixed ones it counts as 0, against the claim.

    The theorem says less of these runs than the claim: it bounds the hinge loss of weights of a
    norm of at most R over features of norm at most 1, on some parity. The remark has the R to which
    it reaches, ε √(C(n, k) / D), for the most features of each kind.
    """

    quantity = "lowest mean test error of fixed features"

    chance: float = 0.4

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        import polars as pl

        runs = by_arm(table, "trained", *FIXED)
        by = [*("task", "model.width", "data.m"), "training.learning_rate"]
        by = [name for name in by if name in runs.columns]
        compared = (pl.col("arm") == "trained").any() & (pl.col("arm") != "trained").any()
        runs = runs.filter(compared.over(by))
        kinds = [kind for kind in FIXED if kind in set(runs["arm"])]
        require(bool(kinds), "needs trained and fixed features of one task, width and m")
        refuse_mixed(runs, ("arm", *by))
        part = level / (1 + len(kinds))
        trained = runs.filter(arm="trained")
        solved = int((trained["outcome"] == "SOLVED").sum())
        few, many = map(float, wilson_interval(solved, len(trained), coverage=1 - part))
        errors = {kind: seed_means(runs.filter(arm=kind), missing=0.0) for kind in kinds}
        require(
            all(len(values) >= FEWEST for values in errors.values()),
            f"needs {FEWEST} seeds of every kind",
        )
        found = {
            kind: (float(values.mean()), student_half_width(values, 1 - part))
            for kind, values in errors.items()
        }
        judgement = decide(
            contradicted=any(m + half < self.chance for m, half in found.values()) or many < 0.5,
            supported=all(m - half > self.chance for m, half in found.values()) and few > 0.5,
        )
        best = min(found, key=lambda kind: found[kind])
        estimate, half = found[best]
        own = seed_means(trained, missing=0.5)
        remark = f"trained: {solved} of {len(trained)} solved, mean error {own.mean():.3f}"
        for kind, (mean, width) in found.items():
            # The difference of two means, with Welch's interval in its simple form.
            gap = mean - float(own.mean())
            wide = math.hypot(width, student_half_width(own, 1 - part))
            remark += (
                f"; {kind} {mean:.3f} [{mean - width:.3f}, {mean + width:.3f}], "
                f"above trained by {gap:.3f} [{gap - wide:.3f}, {gap + wide:.3f}]"
            )
        if {"task.n", "task.k"} <= set(runs.columns):
            reach = ", ".join(f"{_radius(runs.filter(arm=kind)):.2g} ε ({kind})" for kind in kinds)
            remark += f"; Theorem 5.6 reaches weights of norm {reach}"
        ends = max(0.0, estimate - half), min(1.0, estimate + half)
        quantity = f"{self.quantity} ({best})"
        return Finding(judgement, estimate, *ends, quantity, len(runs), remark)


def _radius(runs: pl.DataFrame) -> float:
    """Return √(C(n, k) / D) for the most features D: neurons, or for a tangent its parameters."""
    n, k, width = (int(runs[name].max()) for name in ("task.n", "task.k", "model.width"))  # type: ignore[arg-type] # whole columns
    features = width if runs["arm"][0] == "random" else width * (n + 2)
    return math.sqrt(math.comb(n, k) / features)


def seed_means(runs: pl.DataFrame, *, missing: float) -> Floats:
    """Return every seed's mean test error; a run without one counts as `missing`."""
    import polars as pl

    error = pl.col("test_error").fill_nan(missing).fill_null(missing).mean()
    return runs.group_by("seed").agg(error).sort("seed")["test_error"].to_numpy()
