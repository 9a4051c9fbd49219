"""Comparisons at tuned settings: chosen on one half of the seeds, measured on the other.

The best of several settings looks better than it is by the luck of the runs that chose it, and the
more so the more there are. Each half of the seeds is therefore measured at what the other half
chose: nobody is compared at one arbitrary rate, and the larger grid is not flattered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.rules.cells import as_tuple, ordered, sortable, split
from petridish.rules.measures import AtEnd, BestOf, Measure, Solved, SolvedAt
from petridish.statistics.intervals import censored_median
from petridish.statistics.known import Known

if TYPE_CHECKING:
    import polars as pl

Best = Literal["least", "most"]


@dataclass(frozen=True)
class Tuned:
    """Runs at the best of some settings.

    Attributes
    ----------
    table : DataFrame
        One run per seed and group, at what the other half of the seeds chose.
    chosen : mapping of tuple to list of tuple
        For every group the settings that its two halves chose.
    """

    table: pl.DataFrame
    chosen: dict[tuple[Any, ...], list[tuple[Any, ...]]]


def best_by(measure: Measure) -> Best:
    """Return which end of a measure is the better one: most successes, the least of all else."""
    if isinstance(measure, BestOf):
        return measure.best
    return "most" if isinstance(measure, Solved) else "least"


def check_tuned(over: Sequence[str]) -> None:
    """Refuse a best seed: seeds are what is chosen on and measured on."""
    if "seed" in over:
        raise UserError(
            "The best seed was asked for, and the best of some settings is chosen on one half of "
            "the seeds and measured on the other. Give an axis such as training.learning_rate."
        )


def without_field(table: pl.DataFrame, over: Sequence[str], within: Sequence[str]) -> list[str]:
    """Return the fields `over` that some runs of a group `within` have, and others do not.

    A network without a width is another model, not one more value of the width: the best over both
    would be of two models. Where the whole that has the field is named too, as `init` beside
    `init.fan_in`, the runs without it are one of its values.
    """
    import polars as pl

    named = {*over, *within}
    found = []
    for name in over:
        if name.rpartition(".")[0] in named or not table[name].null_count():
            continue
        there = pl.col(name).is_null()
        groups = table.group_by(list(within)) if within else table.group_by(pl.lit(0))
        if groups.agg((there.any() & ~there.all()).alias("mixed"))["mixed"].any():
            found.append(name)
    return found


def tuned(
    table: pl.DataFrame,
    measure: Measure,
    *,
    over: Sequence[str],
    within: Sequence[str] = (),
    best: Best | None = None,
) -> Tuned:
    """Keep of every group `within` the runs at the best values of the fields `over`.

    Seeds are halved by their order, every second one. A half chooses the setting with the best mean
    of a success, or else the best median; a time beyond the budget counts as later than all others.
    Of settings that are equal in this, as where all runs are solved, the one with the least median
    time to success is taken, then the one with the least median test error at the end, then the
    one in the middle of the list: the end of a list of rates is seldom the best of them.
    """
    import polars as pl

    check_tuned(over)
    within = [name for name in within if name not in over]
    if lacking := without_field(table, over, within):
        whole = lacking[0].rpartition(".")[0]
        raise UserError(
            f"Some of these runs have no {lacking[0]}, and the best over it would take them for "
            f"one more of its values. Lay them apart by {whole}, or by their arm where there are "
            "arms."
        )
    seeds, seed = ordered(table, ("seed",))
    groups, group = ordered(table, within, sortable)
    settings, setting = ordered(table, over, sortable)
    if len(seeds) < 2:
        raise UserError(
            f"The best {' and '.join(over)} is chosen on one half of the seeds and measured on the "
            f"other, and these runs have {len(seeds)} seed. Run two seeds or more."
        )
    half = seed % 2
    known = measure.known(table)
    best = best or best_by(measure)
    shape = len(groups), len(settings), 2
    ties = _tie_breakers(table)
    scores = np.full((*shape, 3 + len(ties)), np.inf)
    scores[..., -1] = np.abs(np.arange(len(settings)) - (len(settings) - 1) / 2)[:, None]
    for place, rows in split(np.ravel_multi_index((group, setting, half), shape)):
        medians = [_median(values[rows]) for values in ties]
        scores[np.unravel_index(place, shape)][:-1] = *_score(known[rows], best), *medians
    # What a half chose is what the other is measured at; the last key of a sort counts most.
    order = np.lexsort(np.moveaxis(scores, -1, 0)[::-1], axis=1)[:, 0, ::-1]  # (group, half)
    kept = setting == order[group, half]
    chosen = {
        name: [settings[option] for option in options]
        for name, options in zip(groups, order, strict=True)
    }
    return Tuned(table.filter(pl.Series(kept)), chosen)


def at_best(
    table: pl.DataFrame,
    over: Sequence[str] | str,
    within: Sequence[str],
    measure: Measure | None = None,
) -> pl.DataFrame:
    """Return the runs of every group at its best settings; all of them over nothing.

    The most successful settings, if no other measure is given.
    """
    fields = as_tuple(over)
    return tuned(table, measure or Solved(), over=fields, within=within).table if fields else table


def tuned_text(over: Sequence[str] | str) -> str:
    """Return a sentence on the fields of which the best value was taken."""
    return f", at the best {' and '.join(as_tuple(over))}" if over else ""


def _score(values: Known, best: Best) -> tuple[float, float]:
    """Return what is to be small: by the median, then by the share that has a finite value."""
    sign = -1 if best == "most" else 1
    sample = (sign * values.high)[values.there]
    if not len(sample):
        return math.inf, math.inf
    if np.isin(sample, (-1.0, 0.0, 1.0)).all():
        return float(sample.mean()), 0.0
    return censored_median(sample.tolist()), float(np.isinf(sample).mean())


def _tie_breakers(table: pl.DataFrame) -> list[NDArray[np.float64]]:
    """Return what decides between equal settings: times to success, and errors at the end."""
    found = []
    if set(SolvedAt.columns) <= set(table.columns):
        found.append(SolvedAt().of(table))
    for name in ("test_error", "final.test_squared_error"):
        if name in table.columns and table[name].is_not_null().any():
            found.append(AtEnd(name.removeprefix("final.")).of(table))
    return found


def _median(values: NDArray[np.float64]) -> float:
    there = values[~np.isnan(values)]
    return censored_median(there.tolist()) if len(there) else math.inf
