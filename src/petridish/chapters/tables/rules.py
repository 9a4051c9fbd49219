"""PF's tabular claims: width, sparse starts, and forests, on the same splits of real tables.

Errors are fractions in a table of runs; findings, tables and margins are in percent or percentage
points. A diverged run errs as chance does, 1 − 1/classes. Tasks are the sample that generalises:
every interval is over tasks (`mean_over_tasks`), and a task's own number is a mean over its sample
sizes, its further conditions and its trials.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from petridish.chapters.tables.error_arrays import (
    SAMPLES,
    TASK,
    Errors,
    Floats,
    Places,
    errors_of,
    even_mlps,
    with_families,
)
from petridish.chapters.tables.gains import (
    DENSE,
    NO_PAIR,
    SPARSE,
    Gains,
    gains_at_ends,
    sparse_gains,
    width_gains,
)
from petridish.chapters.tables.sometimes import Sometimes
from petridish.rules.claims import (
    Finding,
    Judgement,
    blind_within,
    by_interval,
    nothing,
    remarks,
)
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

FEWEST = 3  # tasks that an interval needs: two may agree by chance, as errors are counts
NO_MLP = "no run of an MLP of one width throughout"


def over_tasks(owner: Places, values: Floats, level: float) -> Difference | None:
    """Estimate a mean over tasks in percentage points; None for fewer than three tasks."""
    _, means = task_means(owner, values)
    few = len(means) < FEWEST
    return None if few else mean_over_tasks(means, coverage=1 - level).scaled(100)


def _finding(
    judgement: Judgement,
    found: Difference,
    quantity: str,
    runs: int,
    remark: str,
    *,
    bound: float = 0.0,
) -> Finding:
    ends = found.estimate, found.low, found.high
    if judgement is Judgement.UNDECIDED:
        remark = remarks(remark, blind_within(bound, *ends, ratio=False))
    return Finding(judgement, *ends, quantity, runs, remark)


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
      this side, the others a quarter each. Holm's count exceeds the number of steps that are truly
      worse with at most this risk.
    - Supported if the interval lies above 0 and none of this is so. It means: the error falls from
      end to end, and no more exceptions were found. With ten trials only large ones are found one
      by one; the remark also counts the steps whose mean is worse: half of all where width does
      nothing.
    """

    share: float = 0.1

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = "fall of the error per tenfold width, percentage points"
        errors = even_mlps(table)
        if errors is None:
            return nothing(quantity, NO_MLP)
        ends, steps = width_gains(errors)
        gain = over_tasks(ends.owner, ends.values, level)
        if gain is None:
            return nothing(quantity, f"needs two widths at equal conditions, on {FEWEST} tasks")
        worse = int(significant(paired_test(-steps.values), level / 4).sum())
        averages = _average_steps(steps, level / 4)
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


def _average_steps(steps: Gains, level: float) -> dict[tuple[float, float], Difference]:
    """Return every step's mean over tasks, one-sided at its share of the level."""
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

    The estimate is the error of the dense start minus that of the sparse one at equal task, m,
    width, depth and training, for the widest net of one width throughout that was run with both. By
    its interval.
    """

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"error of {DENSE} − {SPARSE} at the widest, percentage points"
        gains = sparse_gains(even_mlps(table))
        if gains is None:
            return nothing(quantity, NO_PAIR)
        gain = over_tasks(gains.owner, gains.values, level)
        if gain is None:
            return nothing(quantity, f"needs runs of {FEWEST} tasks")
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

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = (
            f"gain of {SPARSE} over {DENSE} at the smallest m − at the largest, percentage points"
        )
        errors = even_mlps(table)
        if errors is None:
            return nothing(quantity, NO_MLP)
        owner, ends, runs = gains_at_ends(errors)
        if not len(owner):
            return nothing(quantity, "no net was run with both starts at two m")
        gain = over_tasks(owner, ends[:, :1] - ends[:, 1:], level)
        if gain is None:
            return nothing(quantity, f"needs runs of {FEWEST} tasks")
        at = [100 * float(task_means(owner, side[:, None])[1].mean()) for side in ends.T]
        remark = (
            f"{_tally(gain, 'more at the smallest', 'less')}; the gain is {_signed(at[0])} at the "
            f"smallest and {_signed(at[1])} at the largest m"
        )
        judgement = by_interval(gain.low, gain.high, 0.0)
        return _finding(judgement, gain, quantity, runs, remark)


# (RF), (RB) Forests


@dataclass(frozen=True)
class _OfTwoFamilies:
    """A claim about the best of one family and the best of another, its rival."""

    family: str = "mlp"
    than: str = "random_forest"

    @property
    def unlike(self) -> str:
        """The remark where too few tasks have runs of both."""
        return f"needs {FEWEST} tasks with runs of both {self.family} and {self.than}"

    def crossed(self, table: pl.DataFrame) -> tuple[Errors, Floats]:
        """Return the difference of the two best in every cell, shape (cell, trial)."""
        import polars as pl

        runs = with_families(table).filter(pl.col("family").is_in([self.family, self.than]))
        if runs.is_empty():
            return Errors([], runs, np.empty((0, 0, 0))), np.empty((0, 0))
        errors = errors_of(runs)
        own, rival = (
            crossed_best(errors.error[:, errors.of(name)]) for name in (self.family, self.than)
        )
        return errors, own - rival


@dataclass(frozen=True)
class Competitive(_OfTwoFamilies):
    """The best of one family errs at most `margin` more than the best of another [PF §4.2 (2T)].

    «Best» is the least median over trials at each task and m, as in the paper, but chosen on one
    half of the trials and measured on the other, both ways round, so that a larger grid is no
    advantage. Supported if the whole interval of the mean difference lies below `margin` percentage
    points, contradicted if above.
    """

    margin: float = 1.0

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"error of the best {self.family} − {self.than}, percentage points"
        errors, both = self.crossed(table)
        difference = over_tasks(errors.owner, both, level)
        if difference is None:
            return nothing(quantity, self.unlike)
        judgement = by_interval(-difference.high, -difference.low, -self.margin)
        names = [errors.tasks[task] for task in task_means(errors.owner, both)[0]]
        by_task = sorted(zip(difference.means, names, strict=True))
        (least, first), (most, last) = by_task[0], by_task[-1]
        remark = (
            f"{_tally(difference, 'higher', 'lower')}; from {_signed(least)} ({first}) to "
            f"{_signed(most)} ({last}); margin {self.margin:g}"
        )
        runs = 2 * int((~np.isnan(both)).sum())
        return _finding(judgement, difference, quantity, runs, remark, bound=self.margin)


@dataclass(frozen=True)
class SometimesBeats(_OfTwoFamilies):
    """At some task and m the best of one family errs less than the best of another.

    The estimate is the share of cells (task and m) in which it does, «best» as in `Competitive`.
    The interval reaches from the share in which it errs significantly less to that in which a gain
    of `least` percentage points is not excluded (paired t tests over trials, Holm over all cells,
    half of the level for each side). Supported if it lies above 0; contradicted if it is 0: the
    gain is smaller everywhere.
    """

    least: float = 1.0

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        quantity = f"share of cells in which the best {self.family} errs less than {self.than}"
        errors, both = self.crossed(table)
        made = np.flatnonzero(~np.isnan(both).all(axis=1))
        if not len(made):
            return nothing(quantity, f"no cell has runs of both {self.family} and {self.than}")
        values = both[made]
        found = Sometimes.of(-values, level, self.least, correlation=CROSSED)
        higher = significant(paired_test(values, correlation=CROSSED), level / 2)
        means = np.nanmean(values, axis=1)
        lowest = [made[i] for i in np.argsort(means, kind="stable") if found.better[i]][:5]
        listed = ", ".join(
            f"{errors.cells[cell][0]} m = {errors.cells[cell][1]:g} "
            f"{_signed(100 * np.nanmean(both[cell]))}"
            for cell in lowest
        )
        remark = remarks(
            f"of {len(made)} cells significantly lower in {int(found.better.sum())}, higher in "
            f"{int(higher.sum())}{'; lowest: ' if listed else ''}{listed}",
            found.blind,
        )
        runs = 2 * int((~np.isnan(values)).sum())
        return Finding(found.judgement, found.share, found.low, found.high, quantity, runs, remark)


@dataclass(frozen=True)
class LowerError(_OfTwoFamilies):
    """One method errs less than the best of a rival family, on average over tasks and m.

    The estimate compares it with the rival's configuration whose mean error is least at each task
    and m on the very trials that are compared: a choice in hindsight, favourable to the rival. That
    favour must not count against the method, so the interval reaches from the lower end of the
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

    tasks: tuple[str, ...] = ()
    samples: tuple[float, float] = (0.0, math.inf)
    margin: float = 0.0

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        import polars as pl

        quantity = f"error of {self.family} − best {self.than}, percentage points"
        runs = with_families(table).filter(
            pl.col("family").is_in([self.than, self.family]) | (pl.col("model") == self.family),
            pl.col(SAMPLES).is_between(*self.samples),
            pl.col(TASK).is_in(self.tasks) if self.tasks else pl.lit(value=True),
        )
        if runs.is_empty():
            return nothing(quantity, self.unlike)
        errors = errors_of(runs)
        models = (errors.configurations["model"] == self.family).to_numpy()
        own = np.flatnonzero(models) if models.any() else errors.of(self.family)
        if (~np.isnan(errors.error[:, own]).all(axis=2)).sum(axis=1).max(initial=0) > 1:
            return nothing(quantity, f"several configurations of {self.family} were run: name one")
        mine = crossed_best(errors.error[:, own])  # (cell, trial)
        rivals = errors.error[:, np.setdiff1d(errors.of(self.than), own)]
        # A rival is chosen by the trials in which it is compared.
        rivals = np.where(np.isnan(mine)[:, None], np.nan, rivals)
        hindsight = mine - best_in_hindsight(rivals)
        difference = over_tasks(errors.owner, hindsight, level)
        other = over_tasks(errors.owner, mine - crossed_best(rivals), level)
        if difference is None or other is None:
            return nothing(quantity, self.unlike)
        low = min(difference.low, other.low)
        names = [errors.tasks[task] for task in task_means(errors.owner, hindsight)[0]]
        above = sorted(
            (-mean, name) for name, mean in zip(names, difference.means, strict=True) if mean > 0
        )
        remark = (
            f"{_tally(difference, 'higher', 'lower')}; against {self.than} chosen on other trials "
            f"{_signed(other.estimate)} [{_signed(other.low)}, {_signed(other.high)}]"
        )
        if above:
            remark += f"; higher on {', '.join(f'{name} {_signed(-mean)}' for mean, name in above)}"
        judgement = by_interval(-difference.high, -low, -self.margin)
        n = 2 * int((~np.isnan(hindsight)).sum())
        ends = difference.estimate, low, difference.high
        if judgement is Judgement.UNDECIDED:
            remark = remarks(remark, blind_within(self.margin, *ends, ratio=False))
        return Finding(judgement, *ends, quantity, n, remark)
