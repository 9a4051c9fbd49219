"""Plateaus of HP's architectures: most have one, and wide polynomial ones have none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.architectures import NAMES, in_order, with_architectures
from petridish.rules.cells import mixed
from petridish.rules.claims import Finding, Judgement, Reads, nothing
from petridish.statistics.estimate import median_interval
from petridish.statistics.transitions import (
    grokking_delay,
    plateau_fraction,
    plateau_length,
    sharpness,
    transition_length,
    transition_time,
)

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
CONFIGURATION = ("task", "architecture", "training.batch_size", "training.learning_rate")
NO_CURVES = "these runs kept no curves"


def with_plateaus(table: pl.DataFrame) -> pl.DataFrame:
    """Add a column for each measure above, under its name; NaN where a run kept no curves."""
    import polars as pl

    measures = (
        *(transition_time, plateau_length, plateau_fraction),
        *(transition_length, sharpness),
    )
    kept = list(curves(table, "test_error"))
    found = {
        measure.__name__: [math.nan if run is None else measure(*run) for run in kept]
        for measure in measures
    }
    found["grokking_delay"] = [
        grokking_delay(fitted, solved, every=every)
        for fitted, solved, every in table.select(
            "fitted_at", "solved_at", "evaluation.every"
        ).iter_rows()
    ]
    return table.with_columns(
        pl.Series(name, values, dtype=pl.Float64) for name, values in found.items()
    )


# Tables


def curves(table: pl.DataFrame, name: str) -> Iterable[tuple[Floats, Floats] | None]:
    """Give the looks of every run and what the curve `name` was at each; None where not kept."""
    if "curve.step" not in table.columns or f"curve.{name}" not in table.columns:
        return [None] * len(table)
    return [
        None
        if steps is None or values is None
        else (steps.to_numpy().astype(np.float64), values.to_numpy().astype(np.float64))
        for steps, values in zip(table["curve.step"], table[f"curve.{name}"], strict=True)
    ]


def configurations(table: pl.DataFrame) -> dict[tuple[Any, ...], pl.DataFrame]:
    """Give the runs of every configuration, in the source's order of architectures.

    A configuration is a task, an architecture, a batch size and a learning rate.
    """
    if "architecture" not in table.columns:
        table = with_architectures(table)
    parts = table.partition_by(CONFIGURATION, as_dict=True)
    order = in_order(set(table["architecture"]))

    def place(key: tuple[Any, ...]) -> tuple[Any, ...]:
        task, architecture, batch, rate = key
        return task, order.index(architecture), math.inf if batch is None else batch, rate

    return {key: parts[key].sort("seed") for key in sorted(parts, key=place)}


def configuration_names(keys: Sequence[tuple[Any, ...]]) -> list[str]:
    """Name configurations shortly, such as «(i) B = 32, η = 0.5»; the task only where it differs.

    The batch size and the rate are left out where all configurations of an architecture share them.
    """
    tasks = {task for task, *_ in keys}
    models = [(task, architecture) for task, architecture, *_ in keys]
    names = []
    for task, architecture, batch, rate in keys:
        where = f"{task} " if len(tasks) > 1 else ""
        how = f" B = {batch}, η = {rate:g}" if models.count((task, architecture)) > 1 else ""
        names.append(f"{where}{architecture}{how}")
    return names


def full_name(architecture: str) -> str:
    """Write a numeral with what it stands for."""
    return f"{architecture} {NAMES[architecture]}" if architecture in NAMES else architecture


# Rules


@dataclass(frozen=True)
class HasPlateau(Reads):
    """All architectures but the `exceptions` spend most of their time at chance [HP §3.1].

    For every configuration, the median over its runs of the fraction of time spent with an error
    of at least 45 % before it falls to 5 %; the source says «long», which here means that it is
    above `large`. Each median has the exact interval between two order statistics, which assumes
    nothing about how fractions are distributed. Supported if every interval lies above `large`:
    as each must, none needs a correction for their number. Contradicted if one lies below, at the
    level divided by the number of configurations. The estimate is the least median.

    Runs that never fall to 5 % have no fraction. They count as the claim would least like: as 0
    where it is to be supported, as 1 where it is to be contradicted. A configuration in which fewer
    runs fall than could decide at this level, 7 at 2 %, is not judged; while there is one, a claim
    about all cannot be supported.
    """

    columns = ("curve.step", "curve.test_error")

    exceptions: tuple[str, ...] = ("(v)", "(vi)")
    large: float = 0.5

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs that kept their curves."""
        import polars as pl

        table = with_architectures(table) if "architecture" not in table.columns else table
        ordinary = table.filter(~pl.col("architecture").is_in(self.exceptions))
        return _judge(ordinary, level, self.large, sign=1)


@dataclass(frozen=True)
class NoPlateau(Reads):
    """These architectures leave chance early: most of their time is not a plateau [HP §3.1, B.3.8].

    As `HasPlateau` the other way round: supported if the median fraction of every configuration
    lies below `large`, contradicted if that of one lies above. The estimate is the largest median.
    `at_least` asks about some configurations alone: {"training.batch_size": 32} about those with
    batches of 32 and more, as Fig. B.13 says that large batches make the plateau vanish.
    """

    columns = ("curve.step", "curve.test_error")

    architectures: tuple[str, ...] = ("(v)", "(vi)")
    large: float = 0.5
    at_least: Mapping[str, float] = field(default_factory=dict)

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from runs that kept their curves."""
        import polars as pl

        table = with_architectures(table) if "architecture" not in table.columns else table
        chosen = table.filter(pl.col("architecture").is_in(self.architectures))
        for column, least in self.at_least.items():
            chosen = chosen.filter(pl.col(column) >= least)
        return _judge(chosen, level, self.large, sign=-1)


def _judge(table: pl.DataFrame, level: float, large: float, *, sign: int) -> Finding:
    """Judge whether all medians lie above `large` (sign 1) or all below (sign −1)."""
    which = "least" if sign > 0 else "largest"
    quantity = f"{which} median fraction of time at error ≥ 45 %, over configurations"
    if not len(table):
        return nothing(quantity, "none of these architectures was run")
    if "curve.step" not in table.columns or table["curve.step"].is_null().all():
        return nothing(quantity, NO_CURVES)
    if clash := mixed(table, CONFIGURATION):
        return nothing(quantity, clash)
    parts = configurations(table)
    judged: dict[str, Floats] = {}
    doubtful: dict[str, tuple[Floats, Floats]] = {}  # with the rest at their worst, at their best
    unjudged, never = [], 0
    for name, runs in zip(configuration_names(list(parts)), parts.values(), strict=True):
        found = np.array(
            [
                np.nan if run is None else plateau_fraction(*run)
                for run in curves(runs, "test_error")
            ]
        )
        known, missing = found[~np.isnan(found)], int(np.isnan(found).sum())
        never += missing
        if math.isinf(median_interval(known, 1 - level)[0]):
            unjudged.append(f"{name} ({len(known)} of {len(runs)})")
        else:
            judged[name] = known
            doubtful[name] = (
                np.append(known, np.full(missing, 0.5 - 0.5 * sign)),
                np.append(known, np.full(missing, 0.5 + 0.5 * sign)),
            )
    if not judged:
        return nothing(quantity, f"too few runs fall to 5 % in: {', '.join(unjudged)}")
    medians = {name: float(np.median(values)) for name, values in judged.items()}
    alone = {name: median_interval(worst, 1 - level) for name, (worst, _) in doubtful.items()}
    together = {
        name: median_interval(best, 1 - level / len(judged)) for name, (_, best) in doubtful.items()
    }
    against = [name for name, ends in together.items() if _beyond(ends, large, -sign)]
    open_ = [name for name, ends in alone.items() if not _beyond(ends, large, sign)]
    judgement = Judgement.UNDECIDED if open_ or unjudged else Judgement.SUPPORTED
    if against:
        judgement = Judgement.CONTRADICTED
    worst = min(against or judged, key=lambda name: sign * medians[name])
    low, high = (together if against else alone)[worst]
    side = "below" if sign > 0 else "above"
    remarks = [f"at {worst}", f"{len(judged) - len(open_)} of {len(judged)} configurations agree"]
    if against:
        remarks.append(f"significantly {side} {large:g}: {', '.join(against)}")
    if left := [name for name in open_ if name not in against]:
        remarks.append(f"open: {', '.join(left)}")
    if unjudged:
        remarks.append(f"not judged, too few runs fall to 5 %: {', '.join(unjudged)}")
    if never:
        remarks.append(f"{never} of {len(table)} runs never fell to 5 %")
    n = sum(len(values) for values in judged.values())
    return Finding(
        judgement, medians[worst], max(low, 0.0), min(high, 1.0), quantity, n, "; ".join(remarks)
    )


def _beyond(ends: tuple[float, float], place: float, sign: int) -> bool:
    """Say whether an interval lies above a place (sign 1) or below it (sign −1)."""
    return ends[0] > place if sign > 0 else ends[1] < place
