"""Hidden progress: when the weights, the loss and the error tell a parity from noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.watched import (
    ERROR,
    LOSS,
    MOVEMENT,
    WORDS,
    WatchedRun,
    watched_pairs,
)
from petridish.rules.claims import Finding, Reads, by_interval, nothing
from petridish.rules.columns import curve_columns

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
RESAMPLES = 2_000
LOOKS = 150  # at most so many, evenly on a logarithmic scale
FEWEST_PAIRS = 10  # seeds: of fewer a bootstrap knows too little


@dataclass(frozen=True)
class ProgressSeparates(Reads):
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

    @property
    def columns(self) -> tuple[str, ...]:
        """The curves that it reads."""
        return curve_columns(self.measure, *self.against, ERROR)

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs with curves and the measure, half of them on random labels."""
        word = WORDS.get(self.measure, self.measure)
        names = " or ".join(WORDS.get(name, name) for name in self.against)
        quantity = f"time until {names} tells parity from noise / until {word} does"
        pairs, wrong = watched_pairs(table, list(dict.fromkeys((self.measure, *self.against))))
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
        self, parity: list[WatchedRun], noise: list[WatchedRun], seeds: list[int], weights: Floats
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


def _looks(runs: list[WatchedRun], *, last: float) -> Floats:
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
