"""Sentences beside a table of outcomes or a verdict, on the runs that it is made of."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from petridish.rules.cells import split
from petridish.rules.measures import AtEnd, LastOf, Measure
from petridish.rules.rule import Rule
from petridish.statistics.known import Known

if TYPE_CHECKING:
    import polars as pl

    from petridish.rules.claims import Judges
    from petridish.training import RunSpec

AT_EQUAL_STEPS = "Set {}=none to compare at equal steps."


def diverged(table: pl.DataFrame) -> list[str]:
    """Return how many runs diverged, as text; nothing where none did."""
    count = int((table["outcome"] == "DIVERGED").sum())
    return [f"{count} of {len(table)} runs diverged."] if count else []


def stopped_apart(table: pl.DataFrame) -> list[str]:
    """Return how many runs stopped at success, where that makes runs end at different steps."""
    import polars as pl

    if not {"outcome", "steps", "training.steps"} <= set(table.columns):
        return []  # a record keeps what its claims read alone
    stopped = (pl.col("outcome") == "SOLVED") & (pl.col("steps") < pl.col("training.steps"))
    early = table.filter(stopped)["steps"].to_list()
    if not early or table.filter(pl.col("outcome") != "DIVERGED")["steps"].n_unique() == 1:
        return []
    at = " to ".join(dict.fromkeys(f"{step}" for step in (min(early), max(early))))
    by_error = "training.target_error" in table.columns and table["training.target_error"].count()
    cure = AT_EQUAL_STEPS.format("training.target_error" if by_error else "training.stop")
    return [
        f"{len(early)} of {len(table)} runs stopped once they were solved, after {at} steps: "
        f"values at the end are of different steps. {cure}"
    ]


def half_known(known: Known, settings: NDArray[np.int64], *, unsolved: bool) -> list[str]:
    """Return in how many settings the upper one of two middle values is infinite, as text."""
    there = known.there
    count = 0
    groups = list(split(settings))
    for _, rows in groups:
        values = np.sort(known.high[rows][there[rows]])
        n = len(values)
        count += n > 0 and bool(np.isinf(values[n // 2]) and np.isfinite(values[(n - 1) // 2]))
    what = "was not solved" if unsolved else "is infinite"
    return [
        f"In {count} of {len(groups)} settings one of the two middle runs {what}: the median is "
        "the other."
    ] * (count > 0)


def without_value(known: Known, label: str) -> list[str]:
    """Return how many runs have no number, as text; nothing where all have one."""
    count = int((~known.there).sum())
    what = f"{count} of {known.there.size} runs have no value of {label}"
    return [f"{what}: it is NaN, or was not measured."] if count else []


def reads_end(measure: Measure) -> bool:
    """Return whether a measure reads a value at the end of a run, itself or one of its parts."""
    if isinstance(measure, AtEnd | LastOf):
        return getattr(measure, "name", "") not in ("steps", "seconds")
    if not dataclasses.is_dataclass(measure):
        return False
    parts = [getattr(measure, field.name) for field in dataclasses.fields(measure)]
    return any(reads_end(part) for part in parts if isinstance(part, Measure))


def rule_reads_end(rule: Judges) -> bool:
    """Return whether a rule is known to compare values at the end of runs."""
    return isinstance(rule, Rule) and reads_end(rule.measure)


def ends_early(spec: RunSpec) -> str:
    """Return the field by which a run stops at success; "" where none does."""
    if spec.stop is None:
        return ""
    return "training.stop" if spec.training.stop is not None else "training.target_error"
