"""Rules about disjoint PolyNets (HP-12) and about one big step and fixed features (HP-13)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.models import DisjointPolyNet
from petridish.rules.cells import mixed
from petridish.rules.claims import Finding, Judgement, Reads, Simulated, nothing
from petridish.rules.specs import where
from petridish.statistics.estimate import student_half_width, wilson_interval
from petridish.sweeps import by_arm
from petridish.training import Correlation

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
RESAMPLES = 2_000
FEWEST = 5  # seeds: of fewer a mean knows too little
PLATEAU = 0.49
AROUND = 16

Features = Literal["trained", "random", "tangent", "one step"]


# Disjoint PolyNets


@dataclass(frozen=True)
class PlateauShare(Simulated):
    """Gradient flow spends all but O(n'^{1−k/2}) of its time above an error of 0.49 [HP Thm 5.7].

    From the all-ones start, exactly: no sampling error, and no interval. The value sought is the
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
        constants = {  # by block, for each n'
            n: {block: plateau_constant(self.k, block, error=PLATEAU) for block in _around(n)}
            for n in self.n_values
        }
        on_it = [
            n
            for n, found in constants.items()
            if all(value < block**power for block, value in found.items())
        ]
        if len(on_it) < 3:
            return nothing(quantity, "needs three n' above which all blocks begin above 0.49")
        worst = np.array([max(constants[n].values()) for n in on_it])
        slope = float(_log_slope(np.array(on_it), worst[None])[0]) - power
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


def _around(n: int) -> list[int]:
    """Give blocks from n to 2n, even and odd."""
    return [int(block) for block in np.unique(np.rint(np.geomspace(n, 2 * n, AROUND)))]


@dataclass(frozen=True)
class GaussianPlateau(Simulated):
    """The same from Gaussian weights with a positive product [HP Thm 5.7, full statement].

    The median of 1 − T(.49) / T(0) over `draws` stands for each n'; the estimate is its slope on
    logarithmic axes, with an interval by drawing the starts anew. Supported if the interval lies
    below 1 − k/2 + `tolerance`, contradicted if it lies above.
    """

    k: int
    n_values: tuple[int, ...]
    draws: int = 100
    tolerance: float = 0.05

    def simulate(self, level: float) -> Finding:
        """Judge from drawn starts; no run takes part."""
        quantity = f"slope of log(1 − T(.49)/T(0)) in log n', Gaussian start, k = {self.k}"
        if len(self.n_values) < 3:
            return nothing(quantity, "needs three n'")
        blocks = np.array(self.n_values, np.float64)
        drawn = np.stack([self._left(block) for block in self.n_values])  # (block, draw)
        estimate = float(_log_slope(blocks, np.median(drawn, axis=1)[None])[0])
        rng = np.random.default_rng(0)  # the same claim gives the same verdict
        picks = rng.integers(self.draws, size=(RESAMPLES, *drawn.shape))
        medians = np.median(np.take_along_axis(drawn[None], picks, axis=2), axis=2)
        low, high = np.quantile(_log_slope(blocks, medians), [level / 2, 1 - level / 2])
        limit = 1 - self.k / 2 + self.tolerance
        judgement = Judgement.UNDECIDED
        if high <= limit:
            judgement = Judgement.SUPPORTED
        elif low > limit:
            judgement = Judgement.CONTRADICTED
        shares = ", ".join(
            f"{1 - middle:.4g} at n' = {block}"
            for block, middle in zip(self.n_values, np.median(drawn, axis=1), strict=True)
        )
        remark = f"claimed at most {1 - self.k / 2:g}; median T(.49)/T(0) {shares}"
        low, high = float(min(low, estimate)), float(max(high, estimate))
        return Finding(judgement, estimate, low, high, quantity, drawn.size, remark)

    def _left(self, block: int) -> Floats:
        """Give 1 − T(.49) / T(0) for every draw."""
        from petridish.theory.hidden.polynet_flow import Flow, start_weights

        rng = np.random.default_rng(block)
        found = np.empty(self.draws)
        for draw in range(self.draws):
            weights = start_weights("gaussian", self.k, block, rng)
            weights[:, 0] = np.abs(weights[:, 0])  # as the theorem has it: a positive product
            found[draw] = Flow(weights).remainder(PLATEAU)
        return found


def _log_slope(blocks: NDArray[Any], values: Floats) -> Floats:
    """Fit log value = a + slope · log n' for each row of `values`."""
    centred = np.log(blocks.astype(np.float64))
    centred -= centred.mean()
    slopes: Floats = np.log(values) @ centred / float(centred @ centred)
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
class LearnsDisjoint:
    """SGD with B = 1 learns the disjoint parity [HP Thm 5.8].

    The share of runs that are solved, for each task and start; the estimate is the least of them,
    its Wilson interval simultaneous over all (Bonferroni). Supported if every share lies above
    `at_least`, contradicted if one lies below. The theorem promises ½ for weights of random signs,
    which start with a negative product half of the time.
    """

    at_least: float = 0.5

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs of disjoint PolyNets."""
        quantity = "least share of runs of a disjoint PolyNet solved by SGD with B = 1"
        runs = disjoint_runs(table)
        if not len(runs):
            return nothing(quantity, "no run of disjoint_polynet with correlation loss and B = 1")
        if clash := mixed(runs, ("task", "init")):
            return nothing(quantity, clash)
        return _least_share(runs, ("task", "init"), quantity, self.at_least, level)


@dataclass(frozen=True)
class PlateauOfSGD(Reads):
    """SGD with B = 1 spends most of its time to solution at an error of 0.49 or more [HP Fig. B.1].

    Read off the runs' curves: each look stands for the steps to the next one, so that the noise of
    the held-out sample, which now and then takes chance for less, costs a few percent and no more.
    The estimate is the mean share at the largest block n', with Student's interval over seeds;
    where several starts or k share that n', the least of them, intervals being simultaneous.
    Supported above `share`, contradicted below; undecided if less than half of the runs there were
    solved, since the time to solution of the others is not known.
    """

    columns = ("curve.step", "curve.test_error")

    share: float = 0.5

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs that kept their curves."""
        import polars as pl

        quantity = "share of SGD's time to solution with an error of 0.49 or more"
        runs = disjoint_runs(table)
        if "curve.step" in runs.columns:
            runs = runs.filter(pl.col("curve.step").is_not_null())
        if "curve.step" not in runs.columns or not len(runs):
            return nothing(quantity, "no run of disjoint_polynet with B = 1 kept its curve")
        if clash := mixed(runs, ("task", "init")):
            return nothing(quantity, clash)
        runs = runs.with_columns(block=pl.col("task.n") // pl.col("task.k"))
        cells = [
            (part["block"][0], part["task.k"][0], part["init"][0], plateau_shares(part), len(part))
            for part in runs.sort("block", "task.k", "init").partition_by(
                "block", "task.k", "init", maintain_order=True
            )
        ]
        remark = "; ".join(
            f"n' = {block}, k = {k}, {init}: "
            + (f"{shares.mean():.3f}, " if len(shares) else "")
            + f"{len(shares)} of {made} solved"
            for block, k, init, shares, made in cells
        )
        largest = [(shares, made) for block, *_, shares, made in cells if block == cells[-1][0]]
        if any(len(shares) < max(FEWEST, made / 2) for shares, made in largest):
            return nothing(quantity, f"too few solved runs at the largest n'; {remark}")
        found = []
        for shares, _ in largest:
            half = student_half_width(shares, 1 - level / len(largest))
            mean = float(shares.mean())
            found.append((mean, max(0.0, mean - half), min(1.0, mean + half)))
        n = sum(made for _, made in largest)
        return Finding(_every(found, self.share), *min(found), quantity, n, remark)


def plateau_shares(runs: pl.DataFrame, error: float = PLATEAU) -> Floats:
    """Give the share of its time to solution that every solved run spent at `error` or more."""
    found = []
    columns = ["solved_at", "curve.step", "curve.test_error"]
    for solved_at, steps, errors in runs.sort("seed").select(columns).iter_rows():
        if solved_at is None or not steps:
            continue
        looks = np.array([step for step in steps if step < solved_at] + [solved_at], np.float64)
        high = np.array(errors[: len(looks) - 1]) >= error
        found.append(float(np.diff(looks)[high].sum() / solved_at) if solved_at else 0.0)
    return np.array(found)


# One big step, and fixed features

FIXED = ("random", "tangent")  # the arms whose features do not move


@dataclass(frozen=True)
class OneStepRecovers:
    """After one big step of the first layer, a trained second layer solves the parity [HP Thm 5.5].

    The share of runs solved at the largest width and sample of each task; the estimate is the
    least, with a Wilson interval (Bonferroni over tasks). Supported above `at_least`, contradicted
    below.
    """

    at_least: float = 0.5

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of the arm «one step»."""
        import polars as pl

        quantity = "share solved by one step and a second layer, at the largest m and width"
        runs = by_arm(table, "one step")
        if not len(runs):
            return nothing(quantity, "the arm «one step» has no runs")
        if clash := mixed(runs, ("task", "data.m", "model.width")):
            return nothing(quantity, clash)
        largest = runs.filter(
            (pl.col("data.m") == pl.col("data.m").max().over("task"))
            & (pl.col("model.width") == pl.col("model.width").max().over("task"))
        )
        by = ("task", "data.m", "model.width")
        if largest["task"].n_unique() < runs["task"].n_unique():
            return nothing(quantity, "the largest m was not run at the largest width")
        return _least_share(largest, by, quantity, self.at_least, level)


@dataclass(frozen=True)
class FirstGradientShowsTheParity(Simulated):
    """The k largest entries of a neuron's first gradient are S, once the sample is large enough.

    Simulated here, from a fixed seed [HP §4.1, Prop. B.7]. The estimate is the share of samples of
    the largest m that show S, with a Wilson interval. Supported if it lies above `reliable`, and
    the share at the smallest m lies below ½, so that S was not there for the taking; contradicted
    if it lies below `reliable` although m is at least what Proposition B.7 asks for.
    """

    n: int
    k: int
    m_values: tuple[int, ...]
    trials: int
    reliable: float = 0.9

    def simulate(self, level: float) -> Finding:
        """Judge from simulated gradients."""
        from petridish.theory.hidden.one_step import gap_samples, predicted_top_k_size, top_k_trials

        rng = np.random.default_rng(0)
        found = top_k_trials(self.n, self.k, self.m_values, trials=self.trials, rng=rng)
        counts = found.sum(axis=0).astype(np.int64)
        lows, highs = wilson_interval(counts, np.full(len(counts), self.trials), coverage=1 - level)
        enough = gap_samples(self.n, self.k, delta=1 - self.reliable)
        low, high = float(lows[-1]), float(highs[-1])
        judgement = Judgement.UNDECIDED
        if low > self.reliable and float(highs[0]) < 0.5:
            judgement = Judgement.SUPPORTED
        elif high < self.reliable and self.m_values[-1] >= enough:
            judgement = Judgement.CONTRADICTED
        shares = ", ".join(
            f"{m:,}: {count / self.trials:.0%}"
            for m, count in zip(self.m_values, counts, strict=True)
        )
        half = predicted_top_k_size(self.n, self.k)
        return Finding(
            judgement,
            float(counts[-1] / self.trials),
            low,
            high,
            f"share of samples whose gradient shows S at ({self.n}, {self.k}), largest m",
            self.trials * len(self.m_values),
            f"m = {shares}; half expected at {half:,.0f}, {self.reliable:.0%} proved at {enough:,}",
        )


@dataclass(frozen=True)
class FixedFeaturesStayAtChance:
    """Random features and tangent kernels stay at chance where trained features learn [HP Thm 5.6].

    Compared are MLPs with a trained first layer and, at the same task, width, sample and rate, runs
    with random features (first layer frozen) and tangent kernels. The estimate is the lowest mean
    test error of a kind of fixed features at the end, with Student's interval over seeds, each seed
    counting by its mean (Bonferroni over kinds and the trained). Supported if every kind's interval
    lies above `chance` and the trained ones' share solved lies above ½; contradicted if a kind's
    lies below `chance`, or the trained ones' below ½. A diverged run has no test error: among the
    fixed ones it counts as 0, against the claim.
    """

    chance: float = 0.4

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the arms «trained», «random» and «tangent»."""
        import polars as pl

        quantity = "lowest mean test error of fixed features"
        runs = by_arm(table, "trained", *FIXED)
        by = ["task", "model.width", "data.m"]
        by += [rate for rate in ("training.learning_rate",) if rate in runs]
        compared = (pl.col("arm") == "trained").any() & (pl.col("arm") != "trained").any()
        runs = runs.filter(compared.over(by))
        kinds = [kind for kind in FIXED if kind in set(runs["arm"])]
        trained = runs.filter(pl.col("arm") == "trained")
        if not kinds or not len(trained):
            return nothing(quantity, "needs trained and fixed features of one task, width and m")
        if clash := mixed(runs, ("arm", *by)):
            return nothing(quantity, clash)
        part = level / (1 + len(kinds))
        solved = int((trained["outcome"] == "SOLVED").sum())
        low_solved, high_solved = (
            float(end) for end in wilson_interval(solved, len(trained), coverage=1 - part)
        )
        errors = {
            kind: seed_means(runs.filter(pl.col("arm") == kind), missing=0.0) for kind in kinds
        }
        if min(len(values) for values in errors.values()) < FEWEST:
            return nothing(quantity, f"needs {FEWEST} seeds of every kind")
        found = {
            kind: (float(values.mean()), student_half_width(values, 1 - part))
            for kind, values in errors.items()
        }
        judgement = Judgement.UNDECIDED
        if any(mean + half < self.chance for mean, half in found.values()) or high_solved < 0.5:
            judgement = Judgement.CONTRADICTED
        elif all(mean - half > self.chance for mean, half in found.values()) and low_solved > 0.5:
            judgement = Judgement.SUPPORTED
        best = min(found, key=lambda kind: found[kind])
        estimate, half = found[best]
        own = seed_means(trained, missing=0.5)
        remark = f"trained: {solved} of {len(trained)} solved, mean error {own.mean():.3f}"
        for kind, (mean, width) in found.items():
            difference = _difference(errors[kind], own, part)
            remark += f"; {kind} {mean:.3f} [{mean - width:.3f}, {mean + width:.3f}], {difference}"
        low, high = max(0.0, estimate - half), min(1.0, estimate + half)
        return Finding(judgement, estimate, low, high, f"{quantity} ({best})", len(runs), remark)


def seed_means(runs: pl.DataFrame, *, missing: float) -> Floats:
    """Give every seed's mean test error; a run without one counts as `missing`."""
    import polars as pl

    error = pl.col("test_error").fill_nan(missing).fill_null(missing)
    means = runs.group_by("seed").agg(error.mean().alias("error")).sort("seed")
    return means["error"].to_numpy()


def _difference(fixed: Floats, trained: Floats, level: float) -> str:
    """Write the difference of two means, with Welch's interval in its simple form."""
    gap = float(fixed.mean() - trained.mean())
    half = math.hypot(*(student_half_width(side, 1 - level) for side in (fixed, trained)))
    return f"above trained by {gap:.3f} [{gap - half:.3f}, {gap + half:.3f}]"


def _least_share(
    runs: pl.DataFrame, by: Sequence[str], quantity: str, at_least: float, level: float
) -> Finding:
    """Judge whether the share solved lies above `at_least` in every cell."""
    parts = runs.partition_by(list(by), maintain_order=True)
    cells, texts = [], []
    for part in parts:
        solved, made = int((part["outcome"] == "SOLVED").sum()), len(part)
        low, high = map(float, wilson_interval(solved, made, coverage=1 - level / len(parts)))
        cells.append((solved / made, low, high))
        where = ", ".join(_written(name, part[name][0]) for name in by)
        texts.append(f"{where}: {solved} of {made}")
    remark = "; ".join(sorted(texts))
    return Finding(_every(cells, at_least), *min(cells), quantity, len(runs), remark)


def _every(cells: Sequence[tuple[float, float, float]], neutral: float) -> Judgement:
    """Judge whether every estimate lies above `neutral`, by the intervals."""
    if any(high < neutral for _, _, high in cells):
        return Judgement.CONTRADICTED
    above = all(low > neutral for _, low, _ in cells)
    return Judgement.SUPPORTED if above else Judgement.UNDECIDED


def _written(name: str, value: object) -> str:
    letters = {"data.m": "m", "model.width": "r"}
    return f"{letters[name]} = {value:g}" if name in letters else str(value)
