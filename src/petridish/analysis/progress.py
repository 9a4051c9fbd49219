"""Hidden progress: what the weights tell before the loss does; and learning from noisy labels.

The tables have runs with labels from a parity (`data.label_noise` = 0) and a control whose labels
are coins (½), both with their curves and the instrument that is to show progress.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.analysis.cells import mixed
from petridish.analysis.claims import Finding, Judgement, by_interval, nothing
from petridish.analysis.plateaus import (
    CHANCE,
    CONFIGURATION,
    NO_CURVES,
    configuration_names,
    configurations,
)

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
MOVEMENT = "first_layer_movement"  # ρ = ‖w_t − w_0‖_∞ of the first layer [HP §5]
LOSS, ERROR = "train_loss", "test_error"
WORDS = {LOSS: "training loss", ERROR: "test error", MOVEMENT: "ρ"}
RESAMPLES = 2_000
LOOKS = 150  # at most so many, evenly on a logarithmic scale
FEWEST_PAIRS = 10  # seeds: of fewer a bootstrap knows too little
FEWEST = 8  # runs of a half that are on their plateau; of fewer a rank correlation says nothing


# Runs


@dataclass(frozen=True)
class _Run:
    """One run: when it was solved (infinite if never), its budget, and its curves by name."""

    seed: int
    solved_at: float
    budget: int
    steps: Floats
    curves: Mapping[str, Floats]

    def at(self, name: str, times: Floats, *, average: bool = False) -> Floats:
        """Give a curve at the last look before each time, or its mean since half of the time.

        The mean is what a reader of a noisy loss would look at. After its last look a run stays
        as it was.
        """
        last = np.searchsorted(self.steps, times, side="right") - 1
        values = self.curves[name]
        if not average:
            return np.asarray(values[last])
        first = np.minimum(np.searchsorted(self.steps, times / 2, side="right"), last)
        known = ~np.isnan(values)  # at step 0 there is no loss yet
        total = np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))])
        count = np.concatenate([[0], np.cumsum(known)])
        sums, counts = total[last + 1] - total[first], count[last + 1] - count[first]
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _runs(table: pl.DataFrame, measures: Sequence[str]) -> list[_Run]:
    columns = ["seed", "solved_at", "training.steps"]
    lists = [table["curve.step"], *(table[f"curve.{name}"] for name in measures)]
    found = []
    for (seed, solved_at, budget), *curves in zip(
        table.select(columns).iter_rows(), *lists, strict=True
    ):
        steps, *values = (curve.to_numpy().astype(np.float64) for curve in curves)
        end = math.inf if solved_at is None else float(solved_at)
        found.append(_Run(seed, end, budget, steps, dict(zip(measures, values, strict=True))))
    return found


def _pairs(
    table: pl.DataFrame, measures: Sequence[str]
) -> tuple[dict[str, tuple[list[_Run], list[_Run]]], str]:
    """Give every configuration's parity runs and control, or what is wrong with the table."""
    import polars as pl

    if "curve.step" not in table.columns:
        return {}, NO_CURVES
    for name in measures:
        column = f"curve.{name}"
        if column not in table.columns or table[column].is_null().all():
            return {}, f"these runs did not record {name}: ask for it by evaluation.instruments"
    parts = configurations(table.filter(pl.col("curve.step").is_not_null()))
    if clash := mixed(pl.concat(parts.values()), (*CONFIGURATION, "data.label_noise")):
        return {}, clash
    noise = pl.col("data.label_noise")
    return {
        name: (_runs(runs.filter(noise == 0), measures), _runs(runs.filter(noise == 0.5), measures))
        for name, runs in zip(configuration_names(list(parts)), parts.values(), strict=True)
    }, ""


# Prediction of the remaining time


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


@dataclass(frozen=True)
class Prediction:
    """Remaining times of held-out runs of a configuration: predicted, and measured.

    Attributes
    ----------
    configuration : str
        Its name.
    time : float
        The plateau time t* at which the prediction is made.
    predicted, remaining : array
        In steps; `remaining` is infinite for a run that was not solved within its budget.
    beyond : array
        What remained of each run's budget.
    correlation : float
        Spearman's, of prediction and truth.
    """

    configuration: str
    time: float
    predicted: Floats
    remaining: Floats
    beyond: Floats
    correlation: float


@dataclass(frozen=True)
class ProgressPredicts:
    r"""ρ at a plateau time predicts the remaining time, out of sample [HP §5, B.3.3].

    The seeds are cut in halves, each of which predicts the other. One half chooses the time t*, a
    `share` of the median time that its runs stay at chance (test error of 45 % and above), and fits

    .. math:: \log(t_c - t^*) = a + b \log ρ(t^*)

    to its runs that are still there at t*; the score is Spearman's correlation of prediction and
    truth over such runs of the other half. A run that is not solved is later than all others, and
    fits as if it had been at the end of its budget.
    Configurations weigh the same, on Fisher's scale. The interval is the wider of two, Fisher's
    and a jackknife over seeds, and as wide as for one half alone, as the two halves' scores are not
    independent. Supported above 0, contradicted below.

    Beside it stand, by the same procedure: loss and error, as means over the latter half of the
    time up to t*; ρ of runs on random labels, paired at random, where the score must be about 0,
    and of the run with the same seed, that is with the same initial weights and inputs; and the
    share of permutations of ρ among the runs that score as high.
    """

    measure: str = MOVEMENT
    against: tuple[str, ...] = (LOSS, ERROR)
    share: float = 0.5

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs with curves and the measure."""
        word = WORDS.get(self.measure, self.measure)
        quantity = f"held-out rank correlation of the remaining time with its prediction by {word}"
        measures = list(dict.fromkeys((self.measure, *self.against, ERROR)))
        pairs, wrong = _pairs(table, measures)
        if wrong:
            return nothing(quantity, wrong)
        folds, unjudged = _folds(pairs, self.measure, self.share)
        if not folds:
            return nothing(
                quantity,
                f"needs {FEWEST} runs in each half of the seeds that are at chance after "
                f"{self.share:g} of their plateau; too few in: {', '.join(unjudged)}",
            )
        scores = {name: _held_out(folds, name) for name in (self.measure, *self.against)}
        own = scores[self.measure]
        z, half = own.z, own.half_width(level)
        estimate, low, high = (math.tanh(end) for end in (z, z - half, z + half))
        each = ", ".join(
            f"{name} {math.tanh(part):.2f}" for name, part in zip(folds, own.parts, strict=True)
        )
        remarks = [each] if len(folds) > 1 else []
        for name in self.against:
            gain, spread = z - scores[name].z, own.half_width(level, less=scores[name])
            verdict = "better than" if gain > spread else "not clearly better than"
            verdict = "worse than" if gain < -spread else verdict
            remarks.append(
                f"{verdict} the {WORDS.get(name, name)} ({math.tanh(scores[name].z):.2f}; "
                f"difference in Fisher's z {gain:.2f} ± {spread:.2f})"
            )
        rng = np.random.default_rng(0)  # the same table gives the same verdict
        remarks += _controls(folds, self.measure, rng)
        p = _permutation_test(folds, self.measure, rng)
        remarks.append(f"permutation p = {p:.2g}")
        n = sum(len(fold.new.seeds) for pair in folds.values() for fold in pair)
        out = sum(fold.new.left_out for pair in folds.values() for fold in pair)
        remarks.append(f"{out} runs had left chance by then")
        if unjudged:
            remarks.append(f"too few runs at chance in: {', '.join(unjudged)}")
        judgement = by_interval(low, high, 0.0)
        return Finding(judgement, estimate, low, high, quantity, n, "; ".join(remarks))


def held_out_predictions(
    table: pl.DataFrame, *, measure: str = MOVEMENT, share: float = 0.5
) -> list[Prediction]:
    """Predict remaining times as `ProgressPredicts` does: two folds for each configuration."""
    pairs, _ = _pairs(table, list(dict.fromkeys((measure, ERROR))))
    folds, _ = _folds(pairs, measure, share)
    return [
        Prediction(
            name,
            fold.time,
            _predicted(fold, measure),
            fold.new.remaining,
            fold.new.budget,
            float(_score(fold, fold.fit.readings[measure], fold.new.readings[measure])),
        )
        for name, pair in folds.items()
        for fold in pair
    ]


def _folds(
    pairs: Mapping[str, tuple[list[_Run], list[_Run]]], measure: str, share: float
) -> tuple[dict[str, tuple[_Fold, _Fold]], list[str]]:
    """Cut every configuration in halves, the same for all; gives those with too few runs too."""
    seeds = sorted({run.seed for parity, _ in pairs.values() for run in parity})
    even = set(seeds[::2])
    found, unjudged = {}, []
    for name, (parity, noise) in pairs.items():
        halves = [[run for run in parity if (run.seed in even) == side] for side in (True, False)]
        if min(map(len, halves)) < FEWEST:
            unjudged.append(name)
            continue
        both = tuple(_fold(fit, new, noise, measure, share) for fit, new in (halves, halves[::-1]))
        if min(len(part.seeds) for fold in both for part in (fold.fit, fold.new)) < FEWEST:
            unjudged.append(name)
        else:
            found[name] = (both[0], both[1])
    return found, unjudged


def _fold(fit: list[_Run], new: list[_Run], noise: list[_Run], measure: str, share: float) -> _Fold:
    middle = float(np.median([_last_at_chance(run) for run in fit]))
    looks = np.unique(np.concatenate([run.steps for run in fit]))
    place = max(1, int(np.searchsorted(looks, share * middle, side="right")) - 1)
    time = float(looks[min(place, len(looks) - 1)])
    readings = {run.seed: _reading(run, measure, time, measure) for run in noise}
    return _Fold(time, _moment(fit, time, measure), _moment(new, time, measure), readings)


def _last_at_chance(run: _Run) -> float:
    """Give the last look that found a run at chance; 0 if none did."""
    return float(np.max(run.steps[run.curves[ERROR] >= CHANCE], initial=0.0))


def _moment(runs: list[_Run], time: float, measure: str) -> _Moment:
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
            name: np.array([_reading(run, name, time, measure) for run in here])
            for name in (runs[0].curves if runs else ())
        },
        len(runs) - len(here),
    )


def _reading(run: _Run, name: str, time: float, measure: str) -> float:
    """Give log ρ at a time; of loss and error, which are noisy, the mean since half of it."""
    if name != measure:
        return float(run.at(name, np.array([time]), average=True)[0])
    return math.log(max(float(run.at(name, np.array([time]))[0]), 1e-300))


def _known(moment: _Moment) -> Floats:
    """Give the logarithm of the remaining time, of the remaining budget where it is unknown."""
    return np.log(np.minimum(moment.remaining, np.maximum(moment.budget, 1.0)))


def _predicted(fold: _Fold, measure: str) -> Floats:
    x, y = fold.fit.readings[measure], _known(fold.fit)
    spread = float(((x - x.mean()) ** 2).sum())
    slope = float(((x - x.mean()) * y).sum()) / spread if spread > 0 else 0.0
    return np.asarray(np.exp(y.mean() + slope * (fold.new.readings[measure] - x.mean())))


def _score(fold: _Fold, x_fit: Floats, x_new: Floats) -> Floats:
    """Give Spearman's correlation of prediction and truth; readings (…, run), one score each.

    A prediction from one reading orders runs as the reading does, or the other way round: the
    slope's sign is all that the ranks know of the fit.
    """
    return _direction(fold, x_fit) * _rank_correlation(x_new, fold.new.remaining)


def _direction(fold: _Fold, x: Floats) -> Floats:
    """Give the sign of the slope that the fitting half finds with these readings."""
    y = _known(fold.fit)
    slope = ((x - x.mean(axis=-1, keepdims=True)) * (y - y.mean())).sum(axis=-1)
    return np.asarray(np.sign(slope))


def _rank_correlation(x: Floats, y: Floats) -> Floats:
    """Give Spearman's correlation over the last axis; 0 where a side is constant."""
    from scipy.stats import rankdata  # slow to import

    a, b = (rankdata(side, axis=-1) - (y.shape[-1] + 1) / 2 for side in (x, y))
    size = np.sqrt((a**2).sum(axis=-1) * (b**2).sum(axis=-1))
    return np.asarray((a * b).sum(axis=-1) / np.where(size > 0, size, 1.0))


def _fisher(correlation: Floats, runs: int) -> Floats:
    """Give Fisher's z; a perfect correlation of so many runs is a little less than perfect."""
    most = 1 - 1 / runs**2
    return np.arctanh(np.clip(correlation, -most, most))


@dataclass(frozen=True)
class _HeldOut:
    """Scores of one measure on Fisher's scale.

    Attributes
    ----------
    parts : list of float
        A score for every configuration, the mean of its two halves.
    variance : list of float
        Of the mean over configurations in each half, by Bonett and Wright, if configurations were
        independent.
    without : list of dict
        For each half and each of its seeds, the mean over configurations without that seed.
    """

    parts: list[float]
    variance: list[float]
    without: list[dict[int, float]]

    @property
    def z(self) -> float:
        return float(np.mean(self.parts))

    def half_width(self, level: float, less: _HeldOut | None = None) -> float:
        """Give half the interval's width; of the difference to another measure by jackknife."""
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


def _held_out(folds: Mapping[str, tuple[_Fold, _Fold]], name: str) -> _HeldOut:
    parts = np.zeros((len(folds), 2))
    variance, without = [], []
    for side in (0, 1):
        left: list[dict[int, float]] = []
        each = []
        for row, pair in enumerate(folds.values()):
            fold = pair[side]
            x, y, runs = fold.new.readings[name], fold.new.remaining, len(fold.new.seeds)
            sign = _direction(fold, fold.fit.readings[name])
            score = sign * _rank_correlation(x, y)
            parts[row, side] = _fisher(score, runs)
            each.append((1 + float(score) ** 2 / 2) / (runs - 3))
            others = np.array([np.delete(np.arange(runs), i) for i in range(runs)])
            less = _fisher(sign * _rank_correlation(x[others], y[others]), runs - 1)
            left.append(dict(zip(fold.new.seeds.tolist(), less.tolist(), strict=True)))
        variance.append(sum(each) / len(folds) ** 2)
        seeds = sorted(set().union(*left))
        without.append(
            {
                seed: float(
                    np.mean(
                        [kept.get(seed, z) for kept, z in zip(left, parts[:, side], strict=True)]
                    )
                )
                for seed in seeds
            }
        )
    return _HeldOut(parts.mean(axis=1).tolist(), variance, without)


def _mean_score(folds: Mapping[str, tuple[_Fold, _Fold]], scores: Iterator[Floats]) -> Floats:
    """Average scores on Fisher's scale, two for each configuration in order."""
    runs = [len(fold.new.seeds) for pair in folds.values() for fold in pair]
    each = [_fisher(s, n) for s, n in zip(scores, runs, strict=True)]
    return np.asarray(np.mean(each, axis=0))


def _controls(
    folds: Mapping[str, tuple[_Fold, _Fold]], measure: str, rng: np.random.Generator
) -> list[str]:
    """Score the measure in runs on random labels."""
    if not all(len(fold.noise) >= 2 for pair in folds.values() for fold in pair):
        return ["no control on random labels"]

    def drawn(fold: _Fold) -> Floats:
        values = np.array(list(fold.noise.values()))
        fit, new = (
            rng.choice(values, (RESAMPLES, len(part.seeds))) for part in (fold.fit, fold.new)
        )
        return _score(fold, fit, new)

    def same(fold: _Fold) -> Floats:
        fit, new = (
            np.array([fold.noise[seed] for seed in part.seeds.tolist()])
            for part in (fold.fit, fold.new)
        )
        return _score(fold, fit, new)

    every = [fold for pair in folds.values() for fold in pair]
    by_chance = float(np.mean(_mean_score(folds, map(drawn, every))))
    text = f"with random labels {math.tanh(by_chance):.2f}"
    if all(set(part.seeds.tolist()) <= set(f.noise) for f in every for part in (f.fit, f.new)):
        paired = math.tanh(float(_mean_score(folds, map(same, every))))
        text += f", with random labels and the same seed {paired:.2f}"
    return [text]


def _permutation_test(
    folds: Mapping[str, tuple[_Fold, _Fold]], measure: str, rng: np.random.Generator
) -> float:
    """Give the share of permutations of the runs' readings that score as high, fits and all.

    Runs change places within their half, at both halves' times alike.
    """

    def score(pair: tuple[_Fold, _Fold]) -> list[Floats]:
        fit, new = {}, {}
        for half in (0, 1):  # it fits its own fold, and is scored in the other
            mine, other = pair[half].fit, pair[1 - half].new
            _, here, there = np.intersect1d(mine.seeds, other.seeds, return_indices=True)
            order = rng.permuted(np.tile(np.arange(len(here)), (RESAMPLES, 1)), axis=1)
            fit[half] = np.tile(mine.readings[measure], (RESAMPLES, 1))
            new[1 - half] = np.tile(other.readings[measure], (RESAMPLES, 1))
            fit[half][:, here] = mine.readings[measure][here][order]
            new[1 - half][:, there] = other.readings[measure][there][order]
        return [_score(pair[side], fit[side], new[side]) for side in (0, 1)]

    scores = _mean_score(folds, (s for pair in folds.values() for s in score(pair)))
    plain = (
        _score(fold, fold.fit.readings[measure], fold.new.readings[measure])
        for pair in folds.values()
        for fold in pair
    )
    return float((1 + np.sum(scores >= _mean_score(folds, plain) - 1e-12)) / (1 + len(scores)))


# Separation from noise


@dataclass(frozen=True)
class ProgressSeparates:
    """ρ tells training on a parity from training on noise before loss and error do [HP §5, B.3.3].

    At each look, the share of runs on random labels that have a smaller ρ than a parity run, or a
    larger loss, or a larger test error (the area under the curve, by Mann and Whitney). A measure
    tells them apart from the first look on from which the share stays at `apart` or above. Loss and
    error are taken at the look and as means over the latter half of the time, and the soonest of
    these four counts, so that ρ does not win because the loss is read from few examples. A solved
    run is told from noise by anything. The estimate is the time of the soonest of loss and error
    over the time of ρ. With unit «run» it is the median over the parity runs' own times, which is
    not moved by the few runs that are ahead of the noise by chance; with «population» there is one
    time for all, from the mean of their shares, which the slowest runs decide. Over configurations
    the geometric mean is taken. A measure that never tells them apart counts as one that does at
    the last look, which understates the ratio. The interval draws seeds anew, a seed's runs
    together, and is widened for few seeds. Supported above 1, contradicted below.
    """

    measure: str = MOVEMENT
    against: tuple[str, ...] = (LOSS, ERROR)
    unit: Literal["run", "population"] = "run"
    apart: float = 0.95

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs with curves and the measure, half of them on random labels."""
        word = WORDS.get(self.measure, self.measure)
        names = " or ".join(WORDS.get(name, name) for name in self.against)
        quantity = f"time until {names} tells parity from noise / until {word} does"
        pairs, wrong = _pairs(table, list(dict.fromkeys((self.measure, *self.against))))
        if wrong:
            return nothing(quantity, wrong)
        judged = {
            name: pair
            for name, pair in pairs.items()
            if min(map(len, pair)) >= FEWEST_PAIRS and any(run.steps[-1] > 0 for run in pair[0])
        }
        unjudged = [name for name in pairs if name not in judged]
        if not judged:
            return nothing(quantity, f"needs {FEWEST_PAIRS} runs on a parity and as many on noise")
        seeds = sorted({run.seed for pair in judged.values() for runs in pair for run in runs})
        rng = np.random.default_rng(0)  # the same table gives the same verdict
        drawn = rng.multinomial(len(seeds), np.full(len(seeds), 1 / len(seeds)), RESAMPLES)
        weights = np.concatenate([np.ones((1, len(seeds))), drawn])  # first, the runs as they are
        ratios, remarks = [], []
        for name, (parity, noise) in judged.items():
            ratio, times = self._ratio(parity, noise, seeds, weights)
            ratios.append(ratio)
            each = zip((self.measure, *self.against), times, strict=True)
            said = ", ".join(f"{WORDS.get(which, which)} {time:,.0f}" for which, time in each)
            remarks.append(f"{name}: {said} steps")
        ratio = np.mean(ratios, axis=0)
        tail = _expanded(level / 2, len(seeds))
        low, high = np.quantile(ratio[1:], [tail, 1 - tail])
        low, high = min(low, ratio[0]), max(high, ratio[0])
        if unjudged:
            remarks.append(f"too few runs in: {', '.join(unjudged)}")
        n = sum(len(runs) for pair in judged.values() for runs in pair)
        judgement = by_interval(float(low), float(high), 0.0)
        estimate, bottom, top = (math.exp(end) for end in (ratio[0], low, high))
        return Finding(judgement, estimate, bottom, top, quantity, n, "; ".join(remarks))

    def _ratio(
        self, parity: list[_Run], noise: list[_Run], seeds: list[int], weights: Floats
    ) -> tuple[Floats, list[float]]:
        """Give the logarithm of the ratio of times for every weighting of the seeds.

        And, as the runs are, the times of the measure and of what it is compared with.
        """
        place = {seed: i for i, seed in enumerate(seeds)}
        over, under = (
            _some(weights[:, [place[run.seed] for run in runs]]).T for runs in (parity, noise)
        )
        solved_at = np.array([[run.solved_at] for run in parity])
        looks = _looks(parity, last=min(run.budget for run in noise))

        def since(name: str, sign: int, *, average: bool) -> Floats:
            a, b = (
                sign * np.array([run.at(name, looks, average=average) for run in runs])
                for runs in (parity, noise)
            )
            a[np.isnan(a)] = -np.inf  # a run that diverged before its first look
            a[looks >= solved_at] = np.inf
            times, stays = np.full((1, 1), looks[-1]), np.full((1, 1), fill_value=True)
            for i in reversed(range(len(looks))):
                shares = _shares(a[:, i], b[:, i], under)  # (run, weighting)
                if self.unit == "population":
                    shares = ((over * shares).sum(axis=0) / over.sum(axis=0))[None]
                stays = stays & (shares >= self.apart)
                times = np.where(stays, looks[i], times)
            return times

        own = since(self.measure, 1, average=False)
        others = [
            np.minimum(since(name, -1, average=False), since(name, -1, average=True))
            for name in self.against
        ]
        weighing = over if self.unit == "run" else np.ones_like(own)
        ratio = _medians(np.log(np.min(others, axis=0) / own), weighing)
        return ratio, [float(np.median(times[:, 0])) for times in (own, *others)]


def _expanded(tail: float, n: int) -> float:
    """Give the tail at which to cut a bootstrap of n seeds, which is too narrow for few.

    The normal's beyond √(n / (n − 1)) times Student's quantile [Hesterberg 2015]: 0.9 % instead of
    2.5 % for 10 seeds, 1.6 % for 20.
    """
    from scipy.special import stdtrit  # slow to import

    return NormalDist().cdf(math.sqrt(n / (n - 1)) * float(stdtrit(n - 1, tail)))


def _some(weights: Floats) -> Floats:
    """Weigh runs equally where a draw of seeds has none of them."""
    empty = weights.sum(axis=1) == 0
    weights = weights.copy()
    weights[empty] = 1.0
    return weights


def _looks(runs: list[_Run], *, last: float) -> Floats:
    """Give at most `LOOKS` looks of these runs after step 0, evenly on a logarithmic scale."""
    every = np.unique(np.concatenate([run.steps for run in runs]))
    every = every[(every > 0) & (every <= last)]
    wanted = np.geomspace(every[0], every[-1], LOOKS)
    places = np.minimum(np.searchsorted(every, wanted), len(every) - 1)
    return np.asarray(every[np.unique(places)])


def _shares(a: Floats, b: Floats, weights: Floats) -> Floats:
    """Give for each a the weighted share of b below it, ties counting half.

    Weights have the shape (b, weighting), the result (a, weighting).
    """
    order = np.argsort(b)
    below = np.cumsum(weights[order], axis=0)  # the weight of all b up to each
    below = np.concatenate([np.zeros((1, weights.shape[1])), below])
    less, equal = (np.searchsorted(b[order], a, side=side) for side in ("left", "right"))
    return np.asarray((below[less] + below[equal]) / (2 * below[-1]))


def _medians(values: Floats, weights: Floats) -> Floats:
    """Give the weighted lower median of every column."""
    order = np.argsort(values, axis=0)
    up_to = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)
    middle = np.argmax(up_to >= up_to[-1] / 2, axis=0)
    ordered = np.take_along_axis(values, order, axis=0)
    return np.asarray(np.take_along_axis(ordered, middle[None], axis=0)[0])


# Noisy labels


@dataclass(frozen=True)
class ConvergesUnderNoise:
    """Networks solve the parity from labels flipped with any probability p < ½ [HP B.3.6].

    A run is solved when it reaches its target error on the clean held-out sample. For each p the
    share of runs solved is taken at the batch size that solves most. Supported if for every p it
    is above ½ at some batch size, at the level divided by the number of batch sizes, among which
    one may choose; contradicted if for some p it is below ½ at all of them, at the level divided by
    the number of p. Bounds are exact [Clopper & Pearson 1934]: Wilson's would say more of five runs
    solved out of five than they can. The estimate is the least of the best shares. What is not
    solved within its budget may be later: the remark says how far such runs came.
    """

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs at several noise levels and batch sizes."""
        import polars as pl

        quantity = "least share of runs solved over the noise levels, at the best batch size"
        table = table.filter(pl.col("data.label_noise") < 0.5)
        if not len(table):
            return nothing(quantity, "no run with labels flipped less often than ½")
        if clash := mixed(table, ("data.label_noise", "training.batch_size")):
            return nothing(quantity, clash)
        cells: dict[float, dict[Any, tuple[int, int]]] = {}
        for (p, batch), runs in sorted(
            table.partition_by("data.label_noise", "training.batch_size", as_dict=True).items()
        ):
            solved = int((runs["outcome"] == "SOLVED").sum())
            cells.setdefault(p, {})[batch] = (solved, len(runs))
        # «Some batch size» is a choice among several, «some p» too; «every» and «all» are not.
        best = {
            p: max(row, key=lambda b: (row[b][0] / row[b][1], row[b][1]))
            for p, row in cells.items()
        }
        bounds = {
            p: _exact_bounds(*row[best[p]], level=1 - level / len(row)) for p, row in cells.items()
        }
        solving = [
            p
            for p, row in cells.items()
            if any(_exact_bounds(*c, level=1 - level / len(row))[0] > 0.5 for c in row.values())
        ]
        failing = [
            p
            for p, row in cells.items()
            if all(_exact_bounds(*c, level=1 - level / len(cells))[1] < 0.5 for c in row.values())
        ]
        share = {p: row[best[p]][0] / row[best[p]][1] for p, row in cells.items()}
        judgement = Judgement.SUPPORTED if len(solving) == len(cells) else Judgement.UNDECIDED
        if failing:
            judgement = Judgement.CONTRADICTED
        worst = min(failing or share, key=lambda p: share[p])
        low, high = bounds[worst]
        if worst in failing:
            low, high = _exact_bounds(*cells[worst][best[worst]], level=1 - level / len(cells))
        remarks = [f"at p = {worst:g}, B = {best[worst]}"]
        remarks.append(
            "solved: " + ", ".join(f"p = {p:g} {share[p]:.0%} (B = {best[p]})" for p in cells)
        )
        for p in cells:
            if p not in solving:
                runs = table.filter(pl.col("data.label_noise") == p)
                budget = int(runs["training.steps"].max())  # type: ignore[arg-type] # a whole column
                clear = "not solved" if p in failing else "open"
                remarks.append(
                    f"p = {p:g} {clear}: at most {budget:,} steps, smallest "
                    f"test error {_smallest_error(runs):.3f}"
                )
        return Finding(judgement, share[worst], low, high, quantity, len(table), "; ".join(remarks))


def _smallest_error(runs: pl.DataFrame) -> float:
    """Give the smallest test error that any of these runs had at a look, or at its end."""
    ends = runs["test_error"].to_numpy()
    found = [float(np.nanmin(ends))] if np.any(~np.isnan(ends)) else [math.nan]
    if "curve.test_error" in runs.columns:
        found += [float(c.min()) for c in runs["curve.test_error"] if c is not None]
    return float(np.nanmin(found))


def _exact_bounds(solved: int, runs: int, *, level: float) -> tuple[float, float]:
    """Bound a probability by Clopper and Pearson: each tail has at most (1 − level) / 2."""
    from scipy.special import betaincinv  # slow to import

    tail = (1 - level) / 2
    low = float(betaincinv(solved, runs - solved + 1, tail)) if solved else 0.0
    high = float(betaincinv(solved + 1, runs - solved, 1 - tail)) if solved < runs else 1.0
    return low, high
