"""HP's finite samples, where some runs grok [HP §5, App. B.3.5]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from petridish.chapters.hidden.rules.table_rule import TableRule, decide, refuse_mixed
from petridish.errors import require
from petridish.rules.cells import grid
from petridish.rules.claims import Finding
from petridish.rules.frontier import frontier_draws, frontier_index, sample_sizes
from petridish.rules.outcome_classes import CLASSES, with_classes
from petridish.statistics.intervals import wilson_interval
from petridish.statistics.shares import binomial_at_least, binomial_at_most
from petridish.statistics.trend import decrease_test

if TYPE_CHECKING:
    import polars as pl

DECAY = "training.weight_decay"
CELL = ("task", DECAY, "data.m")
DRAWS = 8_000
AT_ONCE, GROKKED = CLASSES[:2]


def printed_decay(table: pl.DataFrame, decay: float) -> float:
    """Return λ as HP writes it, w ← (1 − λ) w − η g [HP Eq. 5.1]: η times the decay of a run.

    A run's own decay is PyTorch's, w ← (1 − η λ) w − η g. Refuses runs of several rates, in which
    one decay has several λ.
    """
    rates = table["training.learning_rate"].unique().to_list()
    require(len(rates) == 1, f"the runs have the learning rates {sorted(rates)}: give one of them")
    return decay * float(rates[0])


@dataclass(frozen=True)
class _SampleSize:
    """What became of the runs at one sample size."""

    m: float
    runs: int
    solved: int
    grokked: int
    at_once: int


@dataclass(frozen=True)
class GrokkingBand(TableRule):
    """There are sample sizes between too few and plenty at which runs grok [HP §5, Fig. B.11].

    A run groks if it is solved at least twice as late as it has fitted its sample (`with_classes`).
    A size m is in the band, at one task and weight decay, if

    - more than `least` of its runs grok (exact binomial test);
    - at the largest sample fewer grok, and more are solved at once (Fisher's exact tests);
    - at the smallest sample fewer are solved (Fisher's), and not significantly more than `least`.

    Supported if some m between the smallest and the largest meets all of it (its p-value is the
    largest of the tests'; Bonferroni over sizes, decays and tasks). Contradicted if at every size
    and decay less than `least` of the runs grok, bounds included (each at the whole level: were one
    above, it would have to pass its own bound), though in some cell most runs are solved.
    The estimate is the share of runs that grok where the evidence is strongest. Online runs have no
    sample to fit, and are left out.
    """

    quantity = "share of runs that grok, at the best sample size and weight decay"

    least: float = 0.2

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        finite = table.filter(table["data.m"].is_finite())
        refuse_mixed(finite, CELL)
        require(
            not finite["fitted_at"].is_null().all(),
            "no run was asked when it had fitted its sample, or none had",
        )
        rows = band_rows(finite)
        found = [
            (self._p(cell, cells, level), key, cell, cells)
            for key, cells in rows.items()
            for cell in cells[1:-1]
        ]
        require(bool(found), "needs three sample sizes at some weight decay")
        best, (task, decay), cell, cells = min(
            found, key=lambda each: (each[0], -each[2].grokked / each[2].runs)
        )
        everywhere = [each for row in rows.values() for each in row]
        rare = all(binomial_at_most(c.grokked, c.runs, self.least) <= level for c in everywhere)
        learned = any(binomial_at_least(c.solved, c.runs, 0.5) <= level for c in everywhere)
        judgement = decide(contradicted=rare and learned, supported=best * len(found) <= level)
        low, high = wilson_interval(cell.grokked, cell.runs, coverage=1 - level / len(found))
        first, last = cells[0], cells[-1]
        inside = [c.m for c in cells if c.grokked >= self.least * c.runs]
        band = f"from m = {inside[0]:g} to {inside[-1]:g}" if inside else "nowhere"
        remark = (
            f"{task}, λ = {printed_decay(finite, decay):g}: {first.solved} of {first.runs} solved "
            f"at m = {first.m:g}, "
            f"{cell.grokked} of {cell.runs} grok at {cell.m:g}, {last.grokked} of {last.runs} at "
            f"{last.m:g} ({last.at_once} solved at once); {self.least:.0%} or more grok {band}"
        )
        estimate = cell.grokked / cell.runs
        ends = float(low), float(high)
        return Finding(judgement, estimate, *ends, self.quantity, len(finite), remark)

    def _p(self, cell: _SampleSize, cells: Sequence[_SampleSize], level: float) -> float:
        """Return the p-value of a size's being in the band: the largest of its tests'."""
        first, last = cells[0], cells[-1]
        if binomial_at_least(first.solved, first.runs, self.least) <= level:
            return 1.0  # the smallest sample is no lower edge: runs generalise from it
        return max(
            float(binomial_at_least(cell.grokked, cell.runs, self.least)),
            decrease_test((cell.grokked, cell.runs), (last.grokked, last.runs)),
            decrease_test((last.at_once, last.runs), (cell.at_once, cell.runs)),
            decrease_test((cell.solved, cell.runs), (first.solved, first.runs)),
        )


def band_rows(table: pl.DataFrame) -> dict[tuple[str, float], list[_SampleSize]]:
    """Count what became of the runs, for every task and weight decay, by sample size."""
    import polars as pl

    counts = (
        with_classes(table)
        .group_by(CELL)
        .agg(
            runs=pl.len(),
            solved=(pl.col("outcome") == "SOLVED").sum(),
            grokked=(pl.col("class") == GROKKED).sum(),
            at_once=(pl.col("class") == AT_ONCE).sum(),
        )
        .sort(CELL)
    )
    rows: dict[tuple[str, float], list[_SampleSize]] = {}
    for task, decay, *numbers in counts.iter_rows():
        rows.setdefault((task, decay), []).append(_SampleSize(*numbers))
    return rows


@dataclass(frozen=True)
class DecayWidens(TableRule):
    """Weight decay lets smaller samples suffice, until optimisation fails [HP App. B.3.5].

    The smallest sample at which half of the runs are solved, at the least weight decay (0, if it
    was run), over that at another one, geometric mean over the tasks; and the success at the
    largest sample, there and at the largest decay. Supported if for some decay between the least
    and the largest both hold: the ratio is above 1 (by `frontier_draws`, the runs' posterior), and
    success at the largest sample is lower at the largest decay (Fisher's exact test); the worse of
    the two counts, Bonferroni over decays. Contradicted if at no decay, the largest included, the
    ratio is above 1 with a posterior probability of more than the level: decay wins no step of the
    grid. The estimate is the ratio where the evidence is strongest. Frontiers are places on the
    grid, and one beyond it counts as one step beyond.
    """

    quantity = "smallest m at 50 % success, without decay / with the best decay"

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        finite = table.filter(table["data.m"].is_finite())
        refuse_mixed(finite, CELL)
        require(
            finite[DECAY].n_unique() > 2 and finite["data.m"].n_unique() > 1,
            "needs three weight decays and two sample sizes",
        )
        counts = grid(finite, rows=DECAY, columns="data.m", strata=["task"]).complete()
        require(bool(counts.strata), "no task has two runs in every cell: run it to its end")
        sizes = np.log(sample_sizes(counts.columns))
        rng = np.random.default_rng(0)  # the same table gives the same verdict
        drawn = sizes[frontier_draws(counts, draws=DRAWS, rng=rng)].mean(axis=1)  # (draw, decay)
        gain = np.round(drawn[:, :1] - drawn[:, 1:], 9)  # log of the ratio, for each other decay
        wider = ((gain > 0).sum(axis=0) + 0.5) / (DRAWS + 1)
        solved, runs = counts.solved[:, :, -1].sum(axis=0), counts.runs[:, :, -1].sum(axis=0)
        end = (int(solved[-1]), int(runs[-1]))
        p = [
            max(1 - chance, decrease_test((int(s), int(n)), end))
            for chance, s, n in zip(wider[:-1], solved[1:-1], runs[1:-1], strict=True)
        ]
        places = sizes[frontier_index(counts.solved / counts.runs)].mean(axis=0)  # (decay,)
        best = min(range(len(p)), key=lambda i: (p[i], places[i + 1]))
        won = p[best] * len(p) <= level
        judgement = decide(contradicted=(wider <= level).all(), supported=won)
        tail = level / len(p) / 2
        low, high = np.exp(np.quantile(gain[:, best], [tail, 1 - tail]))
        estimate = math.exp(places[0] - places[best + 1])
        names = [f"{printed_decay(finite, decay):g}" for decay in counts.rows]
        remark = (
            f"best λ = {names[best + 1]}; smallest m "
            + ", ".join(
                f"{_size(m, counts.columns[-1])} at {name}"
                for m, name in zip(places, names, strict=True)
            )
            + f"; at m = {counts.columns[-1]:g}, {solved[best + 1]} of {runs[best + 1]} are solved "
            f"with it and {end[0]} of {end[1]} with λ = {names[-1]}"
        )
        n = int(counts.runs.sum())
        low, high = float(min(low, estimate)), float(max(high, estimate))
        return Finding(judgement, estimate, low, high, self.quantity, n, remark)


def _size(log_m: float, largest: float) -> str:
    """Write a sample size; one beyond the grid stands for all that are larger."""
    m = math.exp(log_m)
    return f"{m:.0f}" if m < 1.001 * largest else f"above {largest:g}"
