"""PF's tabular claims: width, sparse starts, and forests, on the same splits of real tables.

Errors are fractions in a table of runs; findings, tables and margins are in percent or percentage
points. A diverged run errs as chance does, 1 − 1/classes. Tasks are the sample that generalises:
every interval is over tasks (`mean_over_tasks`), and a task's own number is a mean over its sample
sizes, its further conditions and its trials.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.tables.paired_errors import SAMPLES, TASK, Errors, errors_of, with_families
from petridish.rules.claims import Finding, Judgement, by_interval, nothing
from petridish.statistics.paired import (
    CROSSED,
    Difference,
    best_in_hindsight,
    crossed_best,
    mean_over_tasks,
    paired_test,
    significant,
    task_means,
)

if TYPE_CHECKING:
    import polars as pl


Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Compared = tuple[int, tuple[float, float], Floats]  # cell, the two widths, gains by trial
MLP, FOREST = "mlp", "random_forest"
SPARSE, DENSE = "sparse(2)", "uniform"
FRACTIONS = {"full": 1.0, "10 %": 0.1, "1 %": 0.01}  # of the training part, nine rows in ten
TRAINING_PART = 0.9
FEWEST = 3  # tasks that an interval over tasks needs: two may agree by chance, as errors are counts
FEW_TASKS = f"needs runs of {FEWEST} tasks"


# (2T) Width


@dataclass(frozen=True)
class WidthHelps:
    """Wider MLPs err less, nearly without exception [PF §4.2 (2T)].

    The estimate is the fall of the error from the narrowest to the widest net per tenfold width, at
    equal task, m, init, depth and training. Only nets of one width throughout count. «Nearly
    monotonic» is part of the claim:

    - Contradicted if the interval lies below 0; or if a step between two neighbouring widths
      raises the error on average over tasks (Student's test over tasks, Bonferroni over the steps);
      or if more than `share` of all single steps (one task, m, init and depth) are significantly
      worse (paired t tests over trials, Holm over all). The interval risks half of the level on
      this side, the others a quarter each. Holm's count is with confidence not above the number of
      steps that are truly worse.
    - Supported if the interval lies above 0 and none of this is so. It means: the error falls from
      end to end, and no more exceptions were found. With ten trials only large ones are found one
      by one; the remark also counts the steps that are worse in the mere mean, of which noise alone
      makes half where width does nothing.
    """

    share: float = 0.1

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = "fall of the error per tenfold width, percentage points"
        errors = _even_mlps(table)
        if errors is None:
            return nothing(quantity, "no run of an MLP of one width throughout")
        ends, steps = width_gains(errors)
        tasks, means = task_means(ends.owner, ends.values)
        if len(tasks) < FEWEST:
            return nothing(quantity, f"needs two widths at equal conditions, on {FEWEST} tasks")
        gain = mean_over_tasks(means, coverage=1 - level).scaled(100)
        quarter = level / 4
        worse = int(significant(paired_test(-steps.values), quarter).sum())
        averages = _average_steps(steps, quarter)
        falls = [
            pair for pair, step in averages.items() if step.high < 0 and len(step.means) >= FEWEST
        ]
        judgement = by_interval(gain.low, gain.high, 0.0)
        if falls or worse > self.share * len(steps.values):
            judgement = Judgement.CONTRADICTED
        lower = int((np.nanmean(steps.values, axis=1) < 0).sum())
        mean_steps = ", ".join(
            f"{narrow:g} to {wide:g} {_signed(step.estimate)}"
            for (narrow, wide), step in averages.items()
        )
        remark = (
            f"{_tally(gain, 'width helps', 'harms')}; {worse} of {len(steps.values)} single steps "
            f"are significantly worse, {lower} in the mere mean; mean steps {mean_steps}"
        )
        if falls:
            harmful = ", ".join(f"{narrow:g} to {wide:g}" for narrow, wide in falls)
            remark += f"; significantly worse on average: {harmful}"
        return _finding(judgement, gain, quantity, ends.runs, remark)


@dataclass(frozen=True)
class Rows:
    """Differences between two runs on one split: a row a comparison, a column a trial.

    Attributes
    ----------
    owner, cell : array, shape (row,)
        Places of the task and of the cell.
    pair : list of (float, float)
        What is compared: two widths.
    values : array, shape (row, trial)
        NaN where one of the two was not run.
    """

    owner: Places
    cell: Places
    pair: list[tuple[float, float]]
    values: Floats

    @property
    def runs(self) -> int:
        """Runs behind the differences."""
        return 2 * int((~np.isnan(self.values)).sum())


def width_gains(errors: Errors) -> tuple[Rows, Rows]:
    """Give what width gains: from the narrowest to the widest per tenfold, and step by step.

    Both at equal task, m, init, depth and training, for every cell in which two widths were run.
    """
    ends: list[Compared] = []
    steps: list[Compared] = []
    width = errors.configurations["model.width"].cast(float).to_numpy()
    for group in alike(errors.configurations, ("model", "model.width")):
        places = group[np.argsort(width[group])]
        part = errors.error[:, places]  # (cell, width, trial)
        for cell in range(len(part)):
            there = np.flatnonzero((~np.isnan(part[cell])).any(axis=1))
            for kept, pairs in ((ends, [there[[0, -1]]]), (steps, list(pairwise(there)))):
                for narrow, wide in pairs if len(there) > 1 else ():
                    gain = part[cell, narrow] - part[cell, wide]
                    if not np.isnan(gain).all():
                        kept.append((cell, (width[places[narrow]], width[places[wide]]), gain))
    return (
        _rows(errors, [(c, (r, s), gain / math.log10(s / r)) for c, (r, s), gain in ends]),
        _rows(errors, steps),
    )


def _rows(errors: Errors, kept: Sequence[Compared]) -> Rows:
    cell = np.array([cell for cell, _, _ in kept], dtype=np.int64)
    values = np.array([gain for _, _, gain in kept]).reshape(-1, len(errors.trials))
    return Rows(errors.owner[cell], cell, [(float(a), float(b)) for _, (a, b), _ in kept], values)


def _average_steps(steps: Rows, level: float) -> dict[tuple[float, float], Difference]:
    """Give every step's mean over tasks, one-sided at its share of the level."""
    pairs = sorted(set(steps.pair))
    found = {}
    for pair in pairs:
        rows = np.array([other == pair for other in steps.pair])
        _, means = task_means(steps.owner[rows], steps.values[rows])
        found[pair] = mean_over_tasks(means, coverage=1 - 2 * level / len(pairs)).scaled(100)
    return found


# (3T), (3S) Sparse starts


@dataclass(frozen=True)
class SparseHelps:
    """Wide MLPs that start sparse err less than those that start dense [PF §4.2 (3T)].

    The estimate is the error of `dense` minus that of `sparse` at equal task, m, width, depth and
    training, for the widest net of one width throughout that was run with both. By its interval.
    """

    sparse: str = SPARSE
    dense: str = DENSE

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"error of {self.dense} − {self.sparse} at the widest, percentage points"
        errors = _even_mlps(table)
        gains = None if errors is None else sparse_gains(errors, self.sparse, self.dense)
        if errors is None or gains is None or not len(gains.values):
            return nothing(quantity, f"no net was run with both {self.dense} and {self.sparse}")
        tasks, means = task_means(gains.owner, gains.values)
        if len(tasks) < FEWEST:
            return nothing(quantity, FEW_TASKS)
        gain = mean_over_tasks(means, coverage=1 - level).scaled(100)
        better, worse = (
            int(significant(paired_test(sign * gains.values), level / 2).sum()) for sign in (1, -1)
        )
        remark = (
            f"{_tally(gain, 'sparse is better', 'worse')}; significantly better in {better} and "
            f"worse in {worse} of {len(gains.values)} single comparisons"
        )
        judgement = by_interval(gain.low, gain.high, 0.0)
        return _finding(judgement, gain, quantity, gains.runs, remark)


@dataclass(frozen=True)
class MostAtSmallSamples:
    """Sparse starts gain more at the smallest m than at the largest [PF §4.2 (3T)].

    The estimate is the gain of `SparseHelps` at the smallest m of a task minus that at its largest,
    for the widest net that was run with both starts at both m. By its interval.
    """

    sparse: str = SPARSE
    dense: str = DENSE

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = (
            f"gain of {self.sparse} over {self.dense} at the smallest m − at the largest, "
            "percentage points"
        )
        errors = _even_mlps(table)
        if errors is None:
            return nothing(quantity, "no run of an MLP of one width throughout")
        owner, ends, runs = _ends_of_samples(errors, self.sparse, self.dense)
        if not len(owner):
            return nothing(quantity, "no net was run with both starts at two m")
        tasks, means = task_means(owner, ends[:, :1] - ends[:, 1:])
        if len(tasks) < FEWEST:
            return nothing(quantity, FEW_TASKS)
        gain = mean_over_tasks(means, coverage=1 - level).scaled(100)
        at = [100 * float(task_means(owner, side[:, None])[1].mean()) for side in ends.T]
        remark = (
            f"{_tally(gain, 'more at the smallest', 'less')}; the gain is {_signed(at[0])} at the "
            f"smallest and {_signed(at[1])} at the largest m"
        )
        judgement = by_interval(gain.low, gain.high, 0.0)
        return _finding(judgement, gain, quantity, runs, remark)


def sparse_gains(errors: Errors, sparse: str = SPARSE, dense: str = DENSE) -> Rows:
    """Give what a sparse start gains in every cell, at the widest net that was run with both."""
    kept = []
    for pairs in _starts(errors, sparse, dense):
        for cell in range(len(errors.cells)):
            made = [(width, gain[cell]) for width, gain in pairs if not np.isnan(gain[cell]).all()]
            if made:
                width, gain = max(made, key=lambda pair: pair[0])
                kept.append((cell, (width, width), gain))
    return _rows(errors, kept)


def _starts(errors: Errors, sparse: str, dense: str) -> Iterator[list[tuple[float, Floats]]]:
    """Give, for conditions that are alike but for the width, each width's gains (cell, trial)."""
    configurations = errors.configurations
    width = configurations["model.width"].cast(float).to_numpy()
    init = configurations["init"].to_list()
    for group in alike(configurations, ("model", "model.width", "init")):
        places = {(width[place], init[place]): place for place in group}
        pairs = [
            (float(r), errors.error[:, places[r, dense]] - errors.error[:, places[r, sparse]])
            for r in sorted(set(width[group]))
            if {(r, dense), (r, sparse)} <= set(places)
        ]
        if pairs:
            yield pairs


def _ends_of_samples(errors: Errors, sparse: str, dense: str) -> tuple[Places, Floats, int]:
    """Give tasks, the gains at their smallest and largest m, shape (row, 2), and the runs behind.

    A row is a task at conditions that are alike, at the widest net with both starts at both m.
    """
    owner, ends, runs = [], [], 0
    for pairs in _starts(errors, sparse, dense):
        gains = np.array([gain for _, gain in pairs])  # (width, cell, trial)
        trials = (~np.isnan(gains)).sum(axis=2)
        means = np.nansum(gains, axis=2) / np.maximum(trials, 1)
        for task in range(len(errors.tasks)):
            cells = np.flatnonzero((errors.owner == task) & (trials.sum(axis=0) > 0))
            outer = cells[[0, -1]] if len(cells) > 1 else cells  # cells are in the order of m
            widths = np.flatnonzero((trials[:, outer] > 0).all(axis=1))
            if len(outer) > 1 and len(widths):
                owner.append(task)
                ends.append(means[widths[-1], outer])
                runs += 2 * int(trials[widths[-1], outer].sum())
    return np.array(owner, dtype=np.int64), np.array(ends).reshape(-1, 2), runs


# (RF), (RB) Forests


@dataclass(frozen=True)
class Competitive:
    """The best of one family errs at most `margin` more than the best of another [PF §4.2 (2T)].

    «Best» is the least median over trials at each task and m, as in the source, but chosen on one
    half of the trials and measured on the other, both ways round: so that the larger grid is not
    flattered. Supported if the whole interval of the mean difference lies below `margin` percentage
    points, contradicted if above.
    """

    family: str = MLP
    than: str = FOREST
    margin: float = 1.0

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"error of the best {self.family} − {self.than}, percentage points"
        errors, both = _crossed(table, self.family, self.than)
        tasks, means = task_means(errors.owner, both)
        if len(tasks) < FEWEST:
            return nothing(quantity, _unlike(self.family, self.than))
        difference = mean_over_tasks(means, coverage=1 - level).scaled(100)
        judgement = by_interval(-difference.high, -difference.low, -self.margin)
        names = [errors.tasks[task] for task in tasks]
        by_task = sorted(zip(difference.means, names, strict=True))
        (least, first), (most, last) = by_task[0], by_task[-1]
        remark = (
            f"{_tally(difference, 'higher', 'lower')}; from {_signed(least)} ({first}) to "
            f"{_signed(most)} ({last}); margin {self.margin:g}"
        )
        runs = 2 * int((~np.isnan(both)).sum())
        return _finding(judgement, difference, quantity, runs, remark)


@dataclass(frozen=True)
class SometimesBeats:
    """At some task and m the best of one family errs less than the best of another.

    The estimate is the share of cells (task and m) in which it does, «best» as in `Competitive`.
    The interval reaches from the share in which it errs significantly less to that in which it does
    not err significantly more (paired t tests over trials, Holm over all cells, half of the level
    for each side), so that it covers the true share at the level. Supported if it lies above 0,
    contradicted if it is 0: the other errs significantly less everywhere.
    """

    family: str = MLP
    than: str = FOREST

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"share of cells in which the best {self.family} errs less than {self.than}"
        errors, both = _crossed(table, self.family, self.than)
        made = np.flatnonzero(~np.isnan(both).all(axis=1))
        if not len(made):
            return nothing(quantity, f"no cell has runs of both {self.family} and {self.than}")
        values = both[made]
        lower, higher = (
            significant(paired_test(sign * values, correlation=CROSSED), level / 2)
            for sign in (-1, 1)
        )
        means = np.nanmean(values, axis=1)
        low, high = float(lower.mean()), 1 - float(higher.mean())
        judgement = Judgement.UNDECIDED
        if low > 0:
            judgement = Judgement.SUPPORTED
        elif high <= 0:
            judgement = Judgement.CONTRADICTED
        order = [place for place in np.argsort(means, kind="stable") if lower[place]]
        listed = [
            f"{errors.cells[made[place]][0]} m = {errors.cells[made[place]][1]:g} "
            f"{_signed(100 * means[place])}"
            for place in order[:5]
        ]
        remark = (
            f"of {len(made)} cells significantly lower in {int(lower.sum())}, higher in "
            f"{int(higher.sum())}"
        )
        if listed:
            remark += f"; lowest: {', '.join(listed)}"
        runs = 2 * int((~np.isnan(values)).sum())
        estimate = float((means < 0).mean())
        return Finding(judgement, estimate, low, high, quantity, runs, remark)


@dataclass(frozen=True)
class LowerError:
    """One method errs less than the best of a rival family, on average over tasks and m.

    The estimate compares it with the rival's configuration whose mean error is least at each task
    and m on the very trials that are compared: a choice in hindsight, favourable to the rival. That
    favour must not speak against the method, so the interval reaches from the lower end of the
    difference to a rival chosen on the other half of the trials, to the upper end of that in
    hindsight. Supported if it lies below `margin`, contradicted if above.

    Attributes
    ----------
    family : str
        The method: a family with one configuration, or a model's whole text.
    than : str
        The rival's family.
    tasks : tuple of str
        Which tasks count, such as those that took no part in a choice; all where empty.
    samples : (float, float)
        The least and the largest m that counts.
    margin : float
        Percentage points; 0 asks for a lower error, 1 for one that is within 1.
    """

    family: str
    than: str
    tasks: tuple[str, ...] = ()
    samples: tuple[float, float] = (0.0, math.inf)
    margin: float = 0.0

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"error of {self.family} − best {self.than}, percentage points"
        runs = self._runs(table)
        if runs.is_empty():
            return nothing(quantity, _unlike(self.family, self.than))
        errors = errors_of(runs)
        own = self._own(errors)
        several = (~np.isnan(errors.error[:, own]).all(axis=2)).sum(axis=1).max(initial=0) > 1
        if several:
            return nothing(quantity, f"several configurations of {self.family} were run: name one")
        hindsight, crossed = self._differences(errors, own)
        tasks, means = task_means(errors.owner, hindsight)
        fair_tasks, fair = task_means(errors.owner, crossed)
        if min(len(tasks), len(fair_tasks)) < FEWEST:
            return nothing(quantity, _unlike(self.family, self.than))
        difference = mean_over_tasks(means, coverage=1 - level).scaled(100)
        other = mean_over_tasks(fair, coverage=1 - level).scaled(100)
        low = min(difference.low, other.low)
        judgement = by_interval(-difference.high, -low, -self.margin)
        above = sorted(
            (-mean, errors.tasks[task])
            for task, mean in zip(tasks, difference.means, strict=True)
            if mean > 0
        )
        remark = (
            f"{_tally(difference, 'higher', 'lower')}; against {self.than} chosen on other trials "
            f"{_signed(other.estimate)} [{_signed(other.low)}, {_signed(other.high)}]"
        )
        if above:
            listed = ", ".join(f"{task} {_signed(-mean)}" for mean, task in above)
            remark += f"; higher on {listed}"
        n = 2 * int((~np.isnan(hindsight)).sum())
        return Finding(judgement, difference.estimate, low, difference.high, quantity, n, remark)

    def _runs(self, table: pl.DataFrame) -> pl.DataFrame:
        """Keep the runs of the two that count."""
        import polars as pl

        runs = with_families(table).filter(
            (pl.col("family") == self.than)
            | (pl.col("family") == self.family)
            | (pl.col("model") == self.family)
        )
        runs = runs.filter(pl.col(SAMPLES).is_between(*self.samples))
        return runs.filter(pl.col(TASK).is_in(self.tasks)) if self.tasks else runs

    def _own(self, errors: Errors) -> Places:
        """Give the places of the method."""
        models = (errors.configurations["model"] == self.family).to_numpy()
        return np.flatnonzero(models) if models.any() else errors.of(self.family)

    def _differences(self, errors: Errors, own: Places) -> tuple[Floats, Floats]:
        """Give the differences in each cell, to a rival in hindsight and to one chosen fairly."""
        mine = crossed_best(errors.error[:, own])  # (cell, trial)
        rivals = errors.error[:, np.setdiff1d(errors.of(self.than), own)]
        # A rival is chosen by the trials in which it is compared.
        rivals = np.where(np.isnan(mine)[:, None], np.nan, rivals)
        return mine - best_in_hindsight(rivals), mine - crossed_best(rivals)


def _crossed(table: pl.DataFrame, family: str, than: str) -> tuple[Errors, Floats]:
    """Give the difference of the two best in every cell, shape (cell, trial)."""
    import polars as pl

    runs = with_families(table).filter(pl.col("family").is_in([family, than]))
    if runs.is_empty():
        return Errors([], runs, [], np.empty((0, 0, 0))), np.empty((0, 0))
    errors = errors_of(runs)
    own, rival = (crossed_best(errors.error[:, errors.of(name)]) for name in (family, than))
    return errors, own - rival


# What several share


def _even_mlps(table: pl.DataFrame) -> Errors | None:
    """Lay out the MLPs of one width throughout; None where there is none."""
    import polars as pl

    runs = with_families(table).filter((pl.col("family") == MLP) & pl.col("even"))
    return errors_of(runs) if len(runs) else None


def alike(configurations: pl.DataFrame, apart: Sequence[str]) -> list[Places]:
    """Group configurations that are alike but for the columns `apart`; give their places."""
    import polars as pl

    rest = [name for name in configurations.columns if name not in apart]
    groups = (
        configurations.with_row_index("place")
        .group_by(rest, maintain_order=True)
        .agg(pl.col("place"))
    )
    return [np.array(places, dtype=np.int64) for places in groups["place"].to_list()]


def _finding(
    judgement: Judgement, difference: Difference, quantity: str, runs: int, remark: str
) -> Finding:
    return Finding(
        judgement, difference.estimate, difference.low, difference.high, quantity, runs, remark
    )


def _tally(difference: Difference, above: str, below: str) -> str:
    """Count the tasks on either side of 0."""
    up = sum(mean > 0 for mean in difference.means)
    down = sum(mean < 0 for mean in difference.means)
    return (
        f"{above} on {up} of {len(difference.means)} tasks, {below} on {down} "
        f"(signed-rank p = {difference.p:.2g})"
    )


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _unlike(family: str, than: str) -> str:
    return f"needs {FEWEST} tasks with runs of both {family} and {than}"
