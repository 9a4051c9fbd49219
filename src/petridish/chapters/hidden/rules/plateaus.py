"""Plateaus of HP's architectures: most have one, and wide polynomial ones have none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.hidden.rules.architectures import NAMES, in_order, with_architectures
from petridish.chapters.hidden.rules.table_rule import TableRule, decide, refuse_mixed, with_curves
from petridish.errors import require
from petridish.rules.claims import Finding, Reads
from petridish.rules.columns import curve_columns
from petridish.statistics.intervals import median_interval
from petridish.statistics.transitions import plateau_fraction

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
CONFIGURATION = ("task", "architecture", "training.batch_size", "training.learning_rate")


def curves(table: pl.DataFrame, name: str) -> Iterator[tuple[Floats, Floats] | None]:
    """Yield the steps and values of the curve `name` of every run; None where it was not kept."""
    for steps, values in table.select("curve.step", f"curve.{name}").iter_rows():
        kept = steps is not None and values is not None
        yield (np.array(steps, np.float64), np.array(values, np.float64)) if kept else None


def configurations(table: pl.DataFrame) -> dict[tuple[Any, ...], pl.DataFrame]:
    """Return the runs of every configuration, in the paper's order of architectures.

    A configuration is a task, an architecture, a batch size and a learning rate.
    """
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


@dataclass(frozen=True)
class HasPlateau(TableRule, Reads):
    """All architectures but the `exceptions` spend most of their time at chance [HP §3.1].

    For every configuration, the median over its runs of the fraction of time spent with an error
    of at least 45 % before it falls to 5 %; the paper says «long», which here means that it is
    above `large`. Each median has the exact interval between two order statistics. Supported if
    every interval lies above `large`: as each must, none needs a correction for their number.
    Contradicted if one lies below, at the level divided by the number of configurations. The
    estimate is the least median.

    Runs that never fall to 5 % have no fraction. They count as the claim would least like: as 0
    where it is to be supported, as 1 where it is to be contradicted. A configuration in which fewer
    runs fall than could decide at this level, 7 at 2 %, is not judged; while there is one, a claim
    about all cannot be supported. It may be one of the `unstable`, of which the paper itself says
    that runs fail: there only runs that fall count.
    """

    quantity = "least median fraction of time at error ≥ 45 %, over configurations"
    columns = curve_columns("test_error")

    exceptions: tuple[str, ...] = ("(v)", "(vi)")
    large: float = 0.5
    unstable: tuple[tuple[str, int], ...] = ()
    """Architectures at a batch size."""

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        table = with_architectures(table)
        ordinary = table.filter(~table["architecture"].is_in(self.exceptions))
        return _judge(
            ordinary, level, self.large, self.quantity, sign=1, unstable=frozenset(self.unstable)
        )


@dataclass(frozen=True)
class NoPlateau(TableRule, Reads):
    """These architectures leave chance early: most of their time is not a plateau [HP §3.1, B.3.8].

    As `HasPlateau` the other way round: supported if the median fraction of every configuration
    lies below `large`, contradicted if that of one lies above. The estimate is the largest median.
    `at_least` asks about some configurations alone: {"training.batch_size": 32} about those with
    batches of 32 and more, as Fig. B.13 says that large batches make the plateau vanish.
    """

    quantity = "largest median fraction of time at error ≥ 45 %, over configurations"
    columns = curve_columns("test_error")

    architectures: tuple[str, ...] = ("(v)", "(vi)")
    large: float = 0.5
    at_least: Mapping[str, float] = field(default_factory=dict)

    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        table = with_architectures(table)
        chosen = table.filter(table["architecture"].is_in(self.architectures))
        for column, least in self.at_least.items():
            chosen = chosen.filter(chosen[column] >= least)
        return _judge(chosen, level, self.large, self.quantity, sign=-1)


def _judge(
    table: pl.DataFrame,
    level: float,
    large: float,
    quantity: str,
    *,
    sign: int,
    unstable: frozenset[tuple[str, int]] = frozenset(),
) -> Finding:
    """Judge whether all medians lie above `large` (sign 1) or all below (sign −1)."""
    require(len(table) > 0, "none of these architectures was run")
    with_curves(table)
    refuse_mixed(table, CONFIGURATION)
    parts = configurations(table)
    judged: dict[str, Floats] = {}
    doubtful: dict[str, tuple[Floats, Floats]] = {}  # with the rest at their worst, at their best
    unjudged: list[str] = []
    excused: list[str] = []
    never = 0
    for name, (key, runs) in zip(configuration_names(list(parts)), parts.items(), strict=True):
        kept = curves(runs, "test_error")
        found = np.array([np.nan if run is None else plateau_fraction(*run) for run in kept])
        known, missing = found[~np.isnan(found)], int(np.isnan(found).sum())
        never += missing
        fails = key[1:3] in unstable
        if math.isinf(median_interval(known, 1 - level)[0]):
            (excused if fails else unjudged).append(f"{name} ({len(known)} of {len(runs)})")
        else:
            judged[name] = known
            missing = 0 if fails else missing
            doubtful[name] = (
                np.append(known, np.full(missing, 0.5 - 0.5 * sign)),
                np.append(known, np.full(missing, 0.5 + 0.5 * sign)),
            )
    require(bool(judged), f"too few runs fall to 5 % in: {', '.join(unjudged + excused)}")
    medians = {name: float(np.median(values)) for name, values in judged.items()}
    alone = {name: median_interval(worst, 1 - level) for name, (worst, _) in doubtful.items()}
    together = {
        name: median_interval(best, 1 - level / len(judged)) for name, (_, best) in doubtful.items()
    }
    against = [name for name, ends in together.items() if _beyond(ends, large, -sign)]
    open_ = [name for name, ends in alone.items() if not _beyond(ends, large, sign)]
    judgement = decide(contradicted=against, supported=not open_ and not unjudged)
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
    if excused:
        remarks.append(f"unstable by the paper's own word, too few runs fall: {', '.join(excused)}")
    if never:
        remarks.append(f"{never} of {len(table)} runs never fell to 5 %")
    n = sum(len(values) for values in judged.values())
    return Finding(
        judgement, medians[worst], max(low, 0.0), min(high, 1.0), quantity, n, "; ".join(remarks)
    )


def _beyond(ends: tuple[float, float], place: float, sign: int) -> bool:
    """Return whether an interval lies above a place (sign 1) or below it (sign −1)."""
    return ends[0] > place if sign > 0 else ends[1] < place
