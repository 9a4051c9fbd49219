"""Rules about success over two axes: frontiers, orders, and one start against another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from petridish.rules.cells import WithinStrata, having, within_bounds
from petridish.rules.claims import (
    Finding,
    Judgement,
    blind_within,
    by_interval,
    nothing,
    remarks,
    seeds_to_exclude,
)
from petridish.rules.tuning import at_best, tuned_text

if TYPE_CHECKING:
    import polars as pl

    from petridish.rules.cells import Grid

INCOMPLETE = "no stratum has two runs at every value: run the sweep to its end"


@dataclass(frozen=True)
class FrontierShrinks(WithinStrata):
    """The smallest `over` with half of the runs solved does not grow along `along`, and shrinks.

    The estimate is the ratio of the frontier at the narrowest and at the widest, geometric mean
    over the strata, with an interval from the runs' posterior. Supported if the whole interval lies
    above 1 and no step along `along` is found to make the frontier grow; contradicted if it lies
    below 1 or a step is. Frontiers are places on the grid: an interval of no width says which, not
    where between two. A frontier beyond the grid counts as one step beyond it. Strata with
    cells that were not run are left out. `ends` are two values of `along` in the place of the
    narrowest and the widest; `at_least` keeps runs from a bound on, as in `Beats`.
    With `best_over`, every cell is taken at the best values of these fields, such as
    ``("training.learning_rate",)``: chosen on one half of the seeds, measured on the other.
    """

    along: str = "model.width"
    over: str = "data.m"
    within: tuple[str, ...] = ("init",)
    draws: int = 8_000
    best_over: tuple[str, ...] = ()
    ends: tuple[Any, Any] | None = None
    at_least: Mapping[str, float] = field(default_factory=dict)

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        import numpy as np

        from petridish.rules.cells import grid
        from petridish.rules.frontier import frontier_draws, frontier_index, sample_sizes

        first, last = self.ends or ("narrowest", "widest")
        quantity = f"{self.over} at 50 % success, {first} / {last}{tuned_text(self.best_over)}"
        table = within_bounds(table, self.at_least)
        if table[self.along].n_unique() < 2 or table[self.over].n_unique() < 2:
            return nothing(quantity, f"needs two values of {self.along} and of {self.over}")
        table = at_best(table, self.best_over, (self.along, self.over, *self.within))
        whole = grid(table, rows=self.along, columns=self.over, strata=self.within)
        if any(end not in whole.rows for end in self.ends or ()):
            return nothing(quantity, f"needs runs with {self.along} = {first} and = {last}")
        counts = (whole.of_rows(self.ends) if self.ends else whole).complete()
        if not counts.strata:
            return nothing(quantity, "no stratum has two runs in every cell: run it to its end")
        sizes = sample_sizes(counts.columns)
        rng = np.random.default_rng(0)  # the same table gives the same verdict
        drawn = frontier_draws(counts, draws=self.draws, rng=rng)  # (draw, stratum, row)
        ratio = np.exp(np.mean(np.log(sizes[drawn[..., 0]] / sizes[drawn[..., -1]]), axis=-1))
        low, high = np.quantile(ratio, [level / 2, 1 - level / 2])
        best = frontier_index(counts.solved / counts.runs)
        estimate = np.exp(np.mean(np.log(sizes[best[:, 0]] / sizes[best[:, -1]])))
        grows = (drawn[..., 1:] > drawn[..., :-1]).mean(axis=0)  # (stratum, step)
        growing = np.argwhere(grows > 1 - level / grows.size)
        judgement = by_interval(float(low), float(high), 1.0)
        if len(growing):
            judgement = Judgement.CONTRADICTED
        ends = float(estimate), float(min(low, estimate)), float(max(high, estimate))
        return Finding(
            judgement,
            *ends,
            quantity,
            int(counts.runs.sum()),
            _steps(counts, growing, f"the frontier grows from {self.along}")
            or blind_within(1.0, *ends),
            f"a frontier is one of the {len(counts.columns)} values of {self.over}: the ratio "
            "moves in whole steps of that grid; a finer grid refines it, more seeds do not",
        )


@dataclass(frozen=True)
class NeverDecreases(WithinStrata):
    """Success rises along `along` at fixed `within`, and no step along it lowers it.

    The estimate is the mean rise from the narrowest to the widest over the strata. Contradicted if
    a step between neighbours lowers success on average over the strata, or in one stratum (Fisher's
    exact test, Holm over all), or the trend falls: each at a third of the level. Supported if the
    trend test finds a rise and every step's interval excludes a mean fall of more than `margin`.
    Strata that were not run at every value of `along` are left out.
    With `best_over`, every cell is taken at the best values of these fields, such as
    ``("training.learning_rate",)``: chosen on one half of the seeds, measured on the other.
    """

    along: str = "model.width"
    within: tuple[str, ...] = ("data.m", "init")
    margin: float = 0.1
    best_over: tuple[str, ...] = ()

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        import numpy as np

        from petridish.rules.cells import compared
        from petridish.statistics.intervals import mean_difference
        from petridish.statistics.trend import decrease_test, holm, trend_test

        quantity = f"rise of success along {self.along}{tuned_text(self.best_over)}"
        if table[self.along].n_unique() < 2:
            return nothing(quantity, f"needs two values of {self.along}")
        table = at_best(table, self.best_over, (self.along, *self.within))
        _, outcome = compared(table, along=self.along, within=self.within)
        if not len(outcome):
            return nothing(quantity, INCOMPLETE)
        third = level / 3
        estimate, low, high = mean_difference(outcome[:, -1], outcome[:, 0], coverage=1 - level)
        rise = trend_test(outcome, np.arange(outcome.shape[1], dtype=np.float64))
        pairs = list(pairwise(np.moveaxis(outcome, 1, 0)))  # neighbours, each (stratum, seed)
        steps = [
            mean_difference(wider, narrower, coverage=1 - third / len(pairs))
            for narrower, wider in pairs
        ]
        falls = holm(
            [
                decrease_test(_counts(before), _counts(after))
                for narrower, wider in pairs
                for before, after in zip(narrower, wider, strict=True)
            ]
        )
        lower = sum(p < third for p in falls)
        worst = min(steps)
        judgement = Judgement.UNDECIDED
        if lower or 1 - rise < third or any(step_high < 0 for _, _, step_high in steps):
            judgement = Judgement.CONTRADICTED
        elif rise < level and all(step_low > -self.margin for _, step_low, _ in steps):
            judgement = Judgement.SUPPORTED
        remark = (
            f"trend p = {rise:.2g}; the least step is {worst[0]:+.3f} [{worst[1]:.3f}, "
            f"{worst[2]:.3f}]; {lower} of {len(falls)} single steps lower success significantly"
        )
        n = int((~np.isnan(outcome)).sum())
        note = ""
        if judgement is Judgement.UNDECIDED:
            seeds = outcome.shape[-1]
            parts = [f"the trend is not significant at {level:.2g}"] if rise >= level else []
            near = min(steps, key=lambda step: step[1])  # whose interval goes furthest down
            blind = blind_within(-self.margin, *near)
            remark = remarks(
                remark, blind_within(0.0, estimate, low, high), blind and f"of a step: {blind}"
            )
            if near[1] <= -self.margin:
                parts.append(
                    seeds_to_exclude(-self.margin, *near, seeds=seeds, of="a step's fall")
                    or f"a step may lower success by more than {self.margin:g}"
                )
            note = "; ".join(parts)
        return Finding(judgement, estimate, low, high, quantity, n, remark, note)


@dataclass(frozen=True)
class Beats(WithinStrata):
    """One value of `condition` succeeds more often than another, at equal `within`.

    The estimate is the mean difference of success over the cells where both were run and
    `at_least` holds: {"model.width": 100} means width 100 and above.
    With `best_over`, every cell is taken at the best values of these fields, such as
    ``("training.learning_rate",)``: chosen on one half of the seeds, measured on the other.
    """

    condition: str
    better: str
    worse: str
    within: tuple[str, ...] = ("data.m", "model.width")
    at_least: Mapping[str, float] = field(default_factory=dict)
    best_over: tuple[str, ...] = ()

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        import numpy as np

        from petridish.rules.cells import compared
        from petridish.statistics.intervals import mean_difference

        quantity = f"success of {self.better} − {self.worse}{tuned_text(self.best_over)}"
        table = within_bounds(table, self.at_least)
        table = having(table, self.condition, (self.better, self.worse))
        if table[self.condition].n_unique() < 2:
            limits = " and ".join(f"{name} ≥ {value:g}" for name, value in self.at_least.items())
            cell = f"cell with {limits}" if limits else "cell"
            return nothing(quantity, f"no {cell} was run with both values of {self.condition}")
        table = at_best(table, self.best_over, (self.condition, *self.within))
        values, outcome = compared(table, along=self.condition, within=self.within)
        if not len(outcome):
            return nothing(quantity, INCOMPLETE)
        better, worse = (outcome[:, values.index(side)] for side in (self.better, self.worse))
        estimate, low, high = mean_difference(better, worse, coverage=1 - level)
        gain = np.nanmean(better, axis=1) - np.nanmean(worse, axis=1)
        remark = f"{(gain > 0).sum()} of {len(gain)} cells higher, {(gain < 0).sum()} lower"
        judgement = by_interval(low, high, 0.0)
        n = int((~np.isnan(outcome)).sum())
        remark = remarks(remark, blind_within(0.0, estimate, low, high))
        note = seeds_to_exclude(
            *(0.0, estimate, low, high), seeds=outcome.shape[-1], claimed="above"
        )
        return Finding(judgement, estimate, low, high, quantity, n, remark, note)


def _counts(cell: Any) -> tuple[int, int]:
    """Return the runs solved and made of a cell, NaN standing for none."""
    import numpy as np

    return int(np.nansum(cell)), int((~np.isnan(cell)).sum())


def _steps(counts: Grid, places: Any, text: str) -> str:
    named = [
        f"{text} {counts.rows[row]} to {counts.rows[row + 1]} at "
        f"{', '.join(map(str, counts.strata[stratum]))}"
        for stratum, row in places
    ]
    return "; ".join(named)
