"""Hidden progress: when the weights, the loss and the error tell a parity from noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

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
from petridish.statistics.ranks import expanded_tail, share_below, weighted_medians

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
MOST_TIMES = 150  # evaluations that are compared, evenly on a logarithmic scale
FEWEST_PAIRS = 10  # seeds: of fewer a bootstrap knows too little


@dataclass(frozen=True)
class ProgressSeparates(TableRule, Reads):
    """ρ tells training on a parity from training on noise before loss and error do [HP §5, B.3.3].

    At each evaluation, the share of runs on random labels that have a smaller ρ than a parity run,
    or a larger loss, or a larger test error. A measure tells them apart from the first evaluation
    on from which the share stays at `apart` or above; one that never does, from the last. Loss and
    error are taken as they are and as means over the latter half of the time, and the soonest of
    these four counts, so that ρ does not win because the loss is read from few examples. A solved
    run is told from noise by anything. The estimate is the time of the soonest of loss and error
    over the time of ρ, geometric mean over configurations. With unit «run» it is the median over
    the parity runs' own times, which is not moved by the few runs that are ahead of the noise by
    chance; with «population» there is one time for all, from the mean of their shares, which the
    slowest runs decide. The interval draws seeds anew, a seed's runs together, and is widened for
    few seeds. Supported above 1, contradicted below.
    """

    quantity = "time until training loss or test error tells parity from noise / until ρ does"
    columns = curve_columns(*WORDS)

    unit: Literal["run", "population"] = "run"
    apart: float = 0.95

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        pairs = watched_pairs(table, list(WORDS))
        judged = {
            name: pair
            for name, pair in pairs.items()
            if min(map(len, pair)) >= FEWEST_PAIRS and any(run.steps[-1] > 0 for run in pair[0])
        }
        unjudged = [name for name in pairs if name not in judged]
        require(bool(judged), f"needs {FEWEST_PAIRS} runs on a parity and as many on noise")
        seeds = sorted({run.seed for pair in judged.values() for runs in pair for run in runs})
        rng = np.random.default_rng(0)  # the same table gives the same verdict
        drawn = rng.multinomial(len(seeds), np.full(len(seeds), 1 / len(seeds)), RESAMPLES)
        weights = np.concatenate([np.ones((1, len(seeds))), drawn])  # first, the runs as they are
        ratios, remarks = [], []
        for name, (parity, noise) in judged.items():
            ratio, times = self._ratio(parity, noise, seeds, weights)
            ratios.append(ratio)
            each = zip(WORDS.values(), times, strict=True)
            said = ", ".join(f"{word} {time:,.0f}" for word, time in each)
            remarks.append(f"{name}: {said} steps")
        ratio = np.mean(ratios, axis=0)
        tail = expanded_tail(level / 2, len(seeds))
        low, high = np.quantile(ratio[1:], [tail, 1 - tail])
        low, high = min(low, ratio[0]), max(high, ratio[0])
        if unjudged:
            remarks.append(f"too few runs in: {', '.join(unjudged)}")
        n = sum(len(runs) for pair in judged.values() for runs in pair)
        judgement = by_interval(float(low), float(high), 0.0)
        estimate, bottom, top = (math.exp(end) for end in (ratio[0], low, high))
        ends, remark = (estimate, bottom, top), "; ".join(remarks)
        return Finding(judgement, *ends, self.quantity, n, remark, bound=1.0)

    def _ratio(
        self, parity: list[WatchedRun], noise: list[WatchedRun], seeds: list[int], weights: Floats
    ) -> tuple[Floats, list[float]]:
        """Return the logarithm of the ratio of times for every weighting of the seeds.

        And, as the runs are, the times of the measure and of what it is compared with.
        """
        place = {seed: i for i, seed in enumerate(seeds)}
        over, under = (weights[:, [place[run.seed] for run in runs]] for runs in (parity, noise))
        over, under = (  # equal weights where a draw of seeds has none of the runs
            np.where(side.sum(axis=1, keepdims=True) == 0, 1.0, side).T for side in (over, under)
        )
        solved_at = np.array([[run.solved_at] for run in parity])
        times = _times(parity, last=min(run.budget for run in noise))

        def since(name: str, sign: int, *, average: bool) -> Floats:
            a, b = (
                sign * np.array([run.at(name, times, average=average) for run in runs])
                for runs in (parity, noise)
            )
            a[np.isnan(a)] = -np.inf  # a run that diverged before its first evaluation
            a[times >= solved_at] = np.inf
            first, stays = np.full((1, 1), times[-1]), np.full((1, 1), fill_value=True)
            for i in reversed(range(len(times))):
                shares = share_below(a[:, i], b[:, i], under)  # (run, weighting)
                if self.unit == "population":
                    shares = ((over * shares).sum(axis=0) / over.sum(axis=0))[None]
                stays = stays & (shares >= self.apart)
                first = np.where(stays, times[i], first)
            return first

        own = since(MOVEMENT, 1, average=False)
        others = [
            np.minimum(since(name, -1, average=False), since(name, -1, average=True))
            for name in (LOSS, ERROR)
        ]
        weighing = over if self.unit == "run" else np.ones_like(own)
        ratio = weighted_medians(np.log(np.min(others, axis=0) / own), weighing)
        return ratio, [float(np.median(each[:, 0])) for each in (own, *others)]


def _times(runs: list[WatchedRun], *, last: float) -> Floats:
    """Return at most `MOST_TIMES` evaluations of these runs after step 0."""
    every = np.unique(np.concatenate([run.steps for run in runs]))
    every = every[(every > 0) & (every <= last)]
    wanted = np.geomspace(every[0], every[-1], MOST_TIMES)
    places = np.minimum(np.searchsorted(every, wanted), len(every) - 1)
    return np.asarray(every[np.unique(places)])
