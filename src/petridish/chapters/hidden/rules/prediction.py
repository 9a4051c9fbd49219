"""Hidden progress: what the weights tell on the plateau of the time that remains."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.table_rule import TableRule
from petridish.chapters.hidden.rules.watched import (
    ERROR,
    LOSS,
    MOVEMENT,
    WORDS,
    WatchedRun,
    watched_pairs,
)
from petridish.errors import require
from petridish.rules.claims import Finding, Reads, by_interval
from petridish.rules.columns import curve_columns
from petridish.statistics.intervals import RESAMPLES
from petridish.statistics.ranks import fisher_z, rank_correlation
from petridish.statistics.transitions import CHANCE

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
Folds = Mapping[str, tuple["_Fold", "_Fold"]]
FEWEST = 8  # runs of a half that are on their plateau; of fewer a rank correlation says nothing


@dataclass(frozen=True)
class _Moment:
    """The runs of one half of the seeds that are on their plateau at one time.

    `remaining` is infinite for a run that was not solved; `budget` is what remained of its budget.
    `left_out` counts the runs whose error had left chance by then.
    """

    seeds: NDArray[np.int64]
    remaining: Floats
    budget: Floats
    readings: dict[str, Floats]
    left_out: int


@dataclass(frozen=True)
class _Fold:
    """What one half of the seeds learns (`fit`), to be scored on the other (`new`)."""

    time: float
    fit: _Moment
    new: _Moment
    noise: dict[int, float]  # by seed: the measure at this time in the run on random labels

    def score(self) -> Floats:
        """Score the predictions by ρ."""
        return _score(self, self.fit.readings[MOVEMENT], self.new.readings[MOVEMENT])


@dataclass(frozen=True)
class Prediction:
    """Remaining steps of held-out runs of a configuration, from a plateau time on.

    `remaining` is infinite for a run that was not solved within its budget, of which `beyond`
    remained; `correlation` is Spearman's, of prediction and truth.
    """

    configuration: str
    time: float
    predicted: Floats
    remaining: Floats
    beyond: Floats
    correlation: float


@dataclass(frozen=True)
class ProgressPredicts(TableRule, Reads):
    r"""ρ at a plateau time predicts the remaining time, out of sample [HP §5, B.3.3].

    The seeds are cut in halves, each of which predicts the other. One half chooses the time t*, a
    `share` of the median time that its runs stay at chance (test error of 45 % and above), and fits

    .. math:: \log(t_c - t^*) = a + b \log ρ(t^*)

    to its runs that are still there at t*; the score is Spearman's correlation of prediction and
    truth over such runs of the other half. A run that is not solved is later than all others, and
    fits as if it had been at the end of its budget. Configurations weigh the same, on Fisher's
    scale. The interval is the wider of two, Fisher's and a jackknife over seeds, and as wide as for
    one half alone, as the two halves' scores are not independent. Supported above 0, contradicted
    below.

    The remark has, by the same procedure: loss and error, as means over the latter half of the
    time up to t*; ρ of runs on random labels, paired at random, where the score must be about 0,
    and with the same seed, that is the same initial weights and inputs; and a permutation test.
    """

    quantity = "held-out rank correlation of the remaining time with its prediction by ρ"
    columns = curve_columns(*WORDS)

    share: float = 0.5

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        folds, unjudged = _folds(watched_pairs(table, list(WORDS)), self.share)
        require(
            bool(folds),
            f"needs {FEWEST} runs in each half of the seeds that are at chance after "
            f"{self.share:g} of their plateau; too few in: {', '.join(unjudged)}",
        )
        own, *others = (_held_out(folds, name) for name in (MOVEMENT, LOSS, ERROR))
        z, half = own.z, own.half_width(level)
        estimate, low, high = (math.tanh(end) for end in (z, z - half, z + half))
        each = ", ".join(
            f"{name} {math.tanh(part):.2f}" for name, part in zip(folds, own.parts, strict=True)
        )
        remarks = [each] if len(folds) > 1 else []
        for name, other in zip((LOSS, ERROR), others, strict=True):
            gain, spread = z - other.z, own.half_width(level, less=other)
            verdict = "better than" if gain > spread else "not clearly better than"
            verdict = "worse than" if gain < -spread else verdict
            remarks.append(
                f"{verdict} the {WORDS[name]} ({math.tanh(other.z):.2f}; "
                f"difference in Fisher's z {gain:.2f} ± {spread:.2f})"
            )
        rng = np.random.default_rng(0)  # the same table gives the same verdict
        remarks.append(_control(folds, rng))
        remarks.append(f"permutation p = {_permutation_test(folds, rng):.2g}")
        new = [fold.new for pair in folds.values() for fold in pair]
        remarks.append(f"{sum(part.left_out for part in new)} runs had left chance by then")
        if unjudged:
            remarks.append(f"too few runs at chance in: {', '.join(unjudged)}")
        n, judgement = sum(len(part.seeds) for part in new), by_interval(low, high, 0.0)
        return Finding(judgement, estimate, low, high, self.quantity, n, "; ".join(remarks))


def held_out_predictions(table: pl.DataFrame, *, share: float = 0.5) -> list[Prediction]:
    """Predict remaining times as `ProgressPredicts` does: two folds for each configuration."""
    pairs = watched_pairs(table, (MOVEMENT, ERROR))
    return [
        Prediction(
            name,
            fold.time,
            _predicted(fold),
            fold.new.remaining,
            fold.new.budget,
            float(fold.score()),
        )
        for name, pair in _folds(pairs, share)[0].items()
        for fold in pair
    ]


def _folds(
    pairs: Mapping[str, tuple[list[WatchedRun], list[WatchedRun]]], share: float
) -> tuple[dict[str, tuple[_Fold, _Fold]], list[str]]:
    """Cut every configuration in halves, the same for all; also name those with too few runs."""
    seeds = sorted({run.seed for parity, _ in pairs.values() for run in parity})
    even = set(seeds[::2])
    found, unjudged = {}, []
    for name, (parity, noise) in pairs.items():
        halves = [[run for run in parity if (run.seed in even) == side] for side in (True, False)]
        if min(map(len, halves)) < FEWEST:
            unjudged.append(name)
            continue
        both = [_fold(order, noise, share) for order in (halves, halves[::-1])]
        if min(len(part.seeds) for fold in both for part in (fold.fit, fold.new)) < FEWEST:
            unjudged.append(name)
        else:
            found[name] = (both[0], both[1])
    return found, unjudged


def _fold(runs: list[list[WatchedRun]], noise: list[WatchedRun], share: float) -> _Fold:
    last_at_chance = [
        np.max(run.steps[run.curves[ERROR] >= CHANCE], initial=0.0) for run in runs[0]
    ]
    steps = np.unique(np.concatenate([run.steps for run in runs[0]]))
    middle = float(np.median(last_at_chance))
    place = max(1, int(np.searchsorted(steps, share * middle, side="right")) - 1)
    time = float(steps[min(place, len(steps) - 1)])
    readings = {run.seed: _reading(run, MOVEMENT, time) for run in noise}
    fit, new = (_moment(half, time) for half in runs)
    return _Fold(time, fit, new, readings)


def _moment(runs: list[WatchedRun], time: float) -> _Moment:
    now = np.array([time])
    here = [
        run
        for run in runs
        if run.steps[-1] >= time and run.solved_at > time and run.at(ERROR, now)[0] >= CHANCE
    ]
    return _Moment(
        np.array([run.seed for run in here], np.int64),
        np.array([run.solved_at - time for run in here]),
        np.array([run.budget - time for run in here]),
        {
            name: np.array([_reading(run, name, time) for run in here])
            for name in (runs[0].curves if runs else ())
        },
        len(runs) - len(here),
    )


def _reading(run: WatchedRun, name: str, time: float) -> float:
    """Return log ρ at a time; of loss and error, which are noisy, the mean since half of it."""
    if name != MOVEMENT:
        return float(run.at(name, np.array([time]), average=True)[0])
    return math.log(max(float(run.at(name, np.array([time]))[0]), 1e-300))


def _known(moment: _Moment) -> Floats:
    """Return the logarithm of the remaining time, of the remaining budget where it is unknown."""
    return np.log(np.minimum(moment.remaining, np.maximum(moment.budget, 1.0)))


def _predicted(fold: _Fold) -> Floats:
    x, y = fold.fit.readings[MOVEMENT], _known(fold.fit)
    spread = float(((x - x.mean()) ** 2).sum())
    slope = float(((x - x.mean()) * y).sum()) / spread if spread > 0 else 0.0
    return np.asarray(np.exp(y.mean() + slope * (fold.new.readings[MOVEMENT] - x.mean())))


def _score(fold: _Fold, x_fit: Floats, x_new: Floats) -> Floats:
    """Compute Spearman's correlation of prediction and truth; readings (…, run), one score each.

    A prediction from one reading orders runs as the reading does, or the other way round: the
    slope's sign is all that the ranks know of the fit.
    """
    return _direction(fold, x_fit) * rank_correlation(x_new, fold.new.remaining)


def _direction(fold: _Fold, x: Floats) -> Floats:
    """Return the sign of the slope that the fitting half finds with these readings."""
    y = _known(fold.fit)
    slope = ((x - x.mean(axis=-1, keepdims=True)) * (y - y.mean())).sum(axis=-1)
    return np.asarray(np.sign(slope))


@dataclass(frozen=True)
class _HeldOut:
    """Scores of one measure on Fisher's scale."""

    parts: list[float]  # for every configuration, the mean of its two halves
    variance: list[float]  # of the mean in each half, by Bonett and Wright, if independent
    without: list[dict[int, float]]  # in each half: the mean without each of its seeds

    @property
    def z(self) -> float:
        return float(np.mean(self.parts))

    def half_width(self, level: float, less: _HeldOut | None = None) -> float:
        """Return half the interval's width; of the difference to another measure by jackknife."""
        from scipy.special import stdtrit  # slow to import

        normal = NormalDist().inv_cdf(1 - level / 2)
        halves = []
        for side, left in enumerate(self.without):
            values = np.array(
                [value - (less.without[side][seed] if less else 0) for seed, value in left.items()]
            )
            n = len(values)
            spread = math.sqrt((n - 1) / n * float(((values - values.mean()) ** 2).sum()))
            half = float(stdtrit(n - 1, 1 - level / 2)) * spread
            halves.append(half if less else max(half, normal * math.sqrt(self.variance[side])))
        return float(np.mean(halves))  # as if the two scores were one: they may be that dependent


def _held_out(folds: Folds, name: str) -> _HeldOut:
    parts = np.zeros((len(folds), 2))
    variance, without = [], []
    for side in (0, 1):
        left: list[dict[int, float]] = []
        each = []
        for row, pair in enumerate(folds.values()):
            fold = pair[side]
            x, y, runs = fold.new.readings[name], fold.new.remaining, len(fold.new.seeds)
            sign = _direction(fold, fold.fit.readings[name])
            score = sign * rank_correlation(x, y)
            parts[row, side] = fisher_z(score, runs)
            each.append((1 + float(score) ** 2 / 2) / (runs - 3))
            others = np.array([np.delete(np.arange(runs), i) for i in range(runs)])
            less = fisher_z(sign * rank_correlation(x[others], y[others]), runs - 1)
            left.append(dict(zip(fold.new.seeds.tolist(), less.tolist(), strict=True)))
        variance.append(sum(each) / len(folds) ** 2)
        whole = list(zip(left, parts[:, side], strict=True))
        seeds = sorted(set().union(*left))
        without.append(
            {seed: float(np.mean([kept.get(seed, z) for kept, z in whole])) for seed in seeds}
        )
    return _HeldOut(parts.mean(axis=1).tolist(), variance, without)


def _mean_score(folds: Folds, scores: Iterator[Floats]) -> Floats:
    """Average scores on Fisher's scale, two for each configuration in order."""
    runs = [len(fold.new.seeds) for pair in folds.values() for fold in pair]
    each = [fisher_z(s, n) for s, n in zip(scores, runs, strict=True)]
    return np.asarray(np.mean(each, axis=0))


def _control(folds: Folds, rng: np.random.Generator) -> str:
    """Return a sentence on how the measure scores in runs on random labels."""
    every = [fold for pair in folds.values() for fold in pair]
    if any(len(fold.noise) < 2 for fold in every):
        return "no control on random labels"

    def drawn(fold: _Fold) -> Floats:
        values = np.array(list(fold.noise.values()))
        sizes = ((RESAMPLES, len(part.seeds)) for part in (fold.fit, fold.new))
        return _score(fold, *(rng.choice(values, size) for size in sizes))

    def same(fold: _Fold) -> Floats:
        seeds = (part.seeds.tolist() for part in (fold.fit, fold.new))
        return _score(fold, *(np.array([fold.noise[seed] for seed in part]) for part in seeds))

    by_chance = float(np.mean(_mean_score(folds, map(drawn, every))))
    text = f"with random labels {math.tanh(by_chance):.2f}"
    if all(set(part.seeds.tolist()) <= set(f.noise) for f in every for part in (f.fit, f.new)):
        paired = math.tanh(float(_mean_score(folds, map(same, every))))
        text += f", with random labels and the same seed {paired:.2f}"
    return text


def _permutation_test(folds: Folds, rng: np.random.Generator) -> float:
    """Return the share of permutations of the runs' readings that score as high, fits and all.

    Runs change places within their half, at both halves' times alike.
    """

    def score(pair: tuple[_Fold, _Fold]) -> list[Floats]:
        fit, new = {}, {}
        for half in (0, 1):  # it fits its own fold, and is scored in the other
            mine, other = pair[half].fit, pair[1 - half].new
            _, here, there = np.intersect1d(mine.seeds, other.seeds, return_indices=True)
            order = rng.permuted(np.tile(np.arange(len(here)), (RESAMPLES, 1)), axis=1)
            fit[half] = np.tile(mine.readings[MOVEMENT], (RESAMPLES, 1))
            new[1 - half] = np.tile(other.readings[MOVEMENT], (RESAMPLES, 1))
            fit[half][:, here] = mine.readings[MOVEMENT][here][order]
            new[1 - half][:, there] = other.readings[MOVEMENT][there][order]
        return [_score(pair[side], fit[side], new[side]) for side in (0, 1)]

    scores = _mean_score(folds, (s for pair in folds.values() for s in score(pair)))
    plain = _mean_score(folds, (fold.score() for pair in folds.values() for fold in pair))
    return float((1 + np.sum(scores >= plain - 1e-12)) / (1 + len(scores)))
