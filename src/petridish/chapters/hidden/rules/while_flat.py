"""Hidden progress while nothing is seen: what the weights show at the last evaluation at chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from petridish.chapters.hidden.rules.table_rule import TableRule, every_above
from petridish.chapters.hidden.rules.watched import (
    ERROR,
    LOSS,
    MOVEMENT,
    WORDS,
    WatchedRun,
    watched_pairs,
)
from petridish.errors import require
from petridish.rules.claims import Finding, Reads
from petridish.rules.columns import curve_columns
from petridish.statistics.intervals import wilson_interval
from petridish.statistics.transitions import CHANCE

if TYPE_CHECKING:
    import polars as pl

LEAD = "relevant_lead"  # above 0: some neuron's relevant weights exceed all its others
FEWEST_RUNS = 10


def last_flat(run: WatchedRun) -> float:
    """Return the last step of an evaluation at chance, an error of 45 % or more; 0 without any."""
    return float(np.max(run.steps[run.curves[ERROR] >= CHANCE], initial=0.0))


@dataclass(frozen=True)
class TellsWhileFlat(TableRule, Reads):
    """ρ tells a parity from noise while loss and error look flat [HP App. B.3.3, Fig. 5.3 right].

    A parity run looks flat as long as its error is 45 % or more. At the last such evaluation it is
    told from noise if its ρ is above that of `apart` of the runs on random labels at the same step.
    The estimate is the least share of runs that are, over the configurations, with Wilson's
    interval, simultaneous over all (Bonferroni). Supported if each lies above ½, contradicted if
    one lies below; were ρ no different from that of noise, 1 in 20 would be told apart. Runs that
    are flat for longer than the runs on noise were followed are left out, and counted. The remark
    has the same at half of the time, and the training loss at the last evaluation beside that of
    noise.
    """

    quantity = "least share of runs that ρ tells from noise at their last evaluation at chance"
    columns = curve_columns(*WORDS)

    apart: float = 0.95

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        judged = dict(_pairs(table))
        cells, remarks, n = [], [], 0
        for name, (parity, noise) in judged.items():
            until = min(run.budget for run in noise)
            flat = [run for run in parity if 0 < last_flat(run) <= until]
            told = sum(self._told(run, noise, last_flat(run)) for run in flat)
            half = sum(self._told(run, noise, last_flat(run) / 2) for run in flat)
            cells.append(_share(told, len(flat), level / len(judged)))
            middle = float(np.median([last_flat(run) for run in flat])) if flat else 0.0
            ours = [_loss(run, last_flat(run)) for run in flat]
            theirs = [_loss(run, middle) for run in noise]
            late = f", {len(parity) - len(flat)} left out" if len(flat) < len(parity) else ""
            remarks.append(
                f"{name}: {told} of {len(flat)} (at half of the time {half}), training loss "
                f"{np.mean(ours or [np.nan]):.3f} and {np.mean(theirs):.3f} on noise{late}"
            )
            n += len(flat) + len(noise)
        return Finding(every_above(cells, 0.5), *min(cells), self.quantity, n, "; ".join(remarks))

    def _told(self, run: WatchedRun, noise: list[WatchedRun], step: float) -> bool:
        time = np.array([step])
        others = [other.at(MOVEMENT, time)[0] for other in noise]
        return bool(np.mean(run.at(MOVEMENT, time)[0] > others) >= self.apart)


def _loss(run: WatchedRun, step: float) -> float:
    return float(run.at(LOSS, np.array([step]), average=True)[0])


@dataclass(frozen=True)
class LeadsBeforeItShows(TableRule, Reads):
    """Progress shows only once relevant weights exceed all irrelevant ones [HP App. B.3.3].

    Of the parity runs that leave chance, the share in which some neuron has relevant weights that
    are all larger than all its irrelevant ones at the last evaluation before, at an error of 45 %
    or more. The estimate is the least share over the configurations, with Wilson's interval
    (Bonferroni). Supported if each lies above ½, contradicted if one lies below: at the start, one
    neuron in C(n, k) has such weights. The remark says when, beside the last evaluation at chance,
    such a neuron was first seen: the median ratio of the two steps.
    """

    quantity = "least share of runs whose relevant weights lead when the error leaves chance"
    columns = curve_columns(*WORDS, LEAD)

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        judged = dict(_pairs(table, LEAD))
        cells, remarks, n = [], [], 0
        for name, (parity, _) in judged.items():
            left = [run for run in parity if 0 < last_flat(run) < run.steps[-1]]
            leads = [bool(run.at(LEAD, np.array([last_flat(run)]))[0] > 0) for run in left]
            cells.append(_share(sum(leads), len(left), level / len(judged)))
            first = [
                np.min(run.steps[run.curves[LEAD] > 0], initial=np.inf) / last_flat(run)
                for run in left
            ]
            remarks.append(
                f"{name}: {sum(leads)} of {len(left)}, first seen at {np.median(first):.2f} of the "
                "time at chance"
            )
            n += len(left)
        return Finding(every_above(cells, 0.5), *min(cells), self.quantity, n, "; ".join(remarks))


def _pairs(
    table: pl.DataFrame, *more: str
) -> Iterator[tuple[str, tuple[list[WatchedRun], list[WatchedRun]]]]:
    """Yield the configurations with enough runs; refuses a table in which one has fewer."""
    for name, pair in watched_pairs(table, [*WORDS, *more]).items():
        flat = sum(last_flat(run) > 0 for run in pair[0])
        require(
            min(flat, len(pair[1])) >= FEWEST_RUNS,
            f"needs {FEWEST_RUNS} runs on a parity that begin at chance and as many on noise in "
            f"{name}",
        )
        yield name, pair


def _share(part: int, whole: int, level: float) -> tuple[float, float, float]:
    """Return a share with its interval; where there are no runs nothing is known."""
    if not whole:
        return 0.0, 0.0, 1.0
    low, high = wilson_interval(part, whole, coverage=1 - level)
    return part / whole, float(low), float(high)
