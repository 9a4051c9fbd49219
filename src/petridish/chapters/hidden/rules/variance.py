"""How much of the spread of a time the initialisation explains [HP §5.2]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from petridish.chapters.hidden.rules.table_rule import TableRule, refuse_mixed
from petridish.choices import describe
from petridish.errors import require
from petridish.models import Seeded
from petridish.rules.claims import Finding, by_interval
from petridish.rules.specs import specs_of
from petridish.statistics.log_times import LogTimes
from petridish.statistics.random_effects import FEWEST, explained_share

if TYPE_CHECKING:
    import polars as pl


def log_times(table: pl.DataFrame, by: str = "init") -> LogTimes:
    """Lay the times of a table out, one group for each value of `by`.

    Evaluations come every `evaluation.every` steps; without that column, times are taken as they
    stand, to a step.
    """
    every = table.get_column("evaluation.every", default=None)
    gaps = [1] * len(table) if every is None else every.to_list()
    groups: dict[str, list[tuple[float, float]]] = {key: [] for key in sorted(set(table[by]))}
    columns = table.select(by, "solved_at", "training.steps").iter_rows()
    for (key, time, budget), gap in zip(columns, gaps, strict=True):
        if time is None:
            groups[key].append((math.log(budget), math.inf))
        else:
            before = math.log(time - gap) if time > gap else -math.inf
            groups[key].append((before, math.log(max(time, 1))))
    longest = max(map(len, groups.values()), default=0)
    ends = np.full((len(groups), longest, 2), (-np.inf, np.inf))
    for row, known in zip(ends, groups.values(), strict=True):
        row[: len(known)] = sorted(known)  # the order of the table's rows must not matter
    return LogTimes(ends[..., 0], ends[..., 1])


def _kind(init: object) -> str:
    """Return the text of an initialisation without the seed that some runs share."""
    return f"{init.name}({describe(init.base)})" if isinstance(init, Seeded) else describe(init)


@dataclass(frozen=True)
class InitialisationExplains(TableRule):
    """More than `share` of the variance of log t_c lies between initialisations [HP §3.2].

    The centre of Fig. 5.2. Runs that share `by` share their initialisation, and differ in the seed
    of SGD. The estimate is `explained_share`'s: a time is known up to an evaluation, and a run that
    is not solved, or diverged, is later than its budget. Supported if the interval lies above
    `share`, contradicted if below. Whatever comes with the seed of SGD counts as its noise, also
    what it does to all initialisations alike. With more than half of the runs not solved, the model
    would say more than the runs do, and nothing is decided.
    """

    share: float = 0.5
    by: str = "init"
    width: int | None = None  # the runs of this width alone

    @property
    def quantity(self) -> str:
        """What the estimate measures, in words."""
        where = "" if self.width is None else f", r = {self.width}"
        return f"share of the variance of log t_c between initialisations{where}"

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        if self.width is not None:
            table = table.filter(table["model.width"] == self.width)
        refuse_mixed(table, [self.by])
        require(table["task"].n_unique() <= 1, "several tasks: choose one by --set")
        kinds = sorted({_kind(spec.init) for spec in specs_of(table).values()})
        require(len(kinds) <= 1, f"several kinds of initialisation: {', '.join(kinds)}")
        times = log_times(table, self.by)
        runs = int(times.runs.sum())
        require(
            len(times.runs) >= FEWEST and max(times.runs) > 1,
            f"needs {FEWEST} initialisations with two seeds of SGD each",
        )
        require(times.unsolved <= runs / 2, f"{times.unsolved} of {runs} runs are not solved")
        found = explained_share(times, coverage=1 - level)
        least, most = int(min(times.runs)), int(max(times.runs))
        each = f"{least}" if least == most else f"{least} to {most}"
        remark = (
            f"{len(times.runs)} initialisations with {each} seeds of SGD; log t_c varies "
            f"by ±{found.fit.between:.2g} between initialisations and ±{found.fit.within:.2g} "
            f"within one; {times.unsolved} runs not solved; likelihood alone "
            f"[{found.likelihood[0]:.3g}, {found.likelihood[1]:.3g}], jackknife alone "
            f"[{found.jackknife[0]:.3g}, {found.jackknife[1]:.3g}]"
        )
        if "task.support" in table.columns and table["task.support"].is_null().any():
            remark += "; each seed of SGD draws its own support, which counts as its noise"
        judgement = by_interval(found.low, found.high, self.share)
        numbers = found.fit.share, found.low, found.high
        return Finding(judgement, *numbers, self.quantity, runs, remark)
