"""The values that runs can be compared by: success, times, and what was measured at their end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from petridish.errors import UserError, nearest
from petridish.rules.measures import ENDS, AtEnd, LastOf, Measure, ReachedAt, Solved, SolvedAt
from petridish.rules.outcome_classes import GrokkingDelay
from petridish.rules.specs import specs_of
from petridish.values import Gone

if TYPE_CHECKING:
    import polars as pl

    from petridish.training import RunSpec

DELAY = "grokking_delay"
MEASURES: dict[str, type[Measure]] = {"solved": Solved, "time": SolvedAt, DELAY: GrokkingDelay}


def measure_of(value: str, columns: Collection[str]) -> Measure:
    """Return the measure that a name stands for, among the columns that some runs have."""
    if value in MEASURES:
        return MEASURES[value]()
    if value in ENDS or f"final.{value}" in columns:
        return AtEnd(value)
    if f"reached.{value}" in columns:
        return ReachedAt(value)
    if f"curve.{value}" in columns:
        return LastOf(value)
    if f"array.{value}" in columns:
        raise UserError(
            f"{value!r} is an array of every run, and one number of each is compared. Return the "
            "number that is meant from an instrument, such as the array's largest value."
        )
    raise UserError(f"There is no value called {value!r}. {nearest(value, values_of(columns))}")


def values_of(columns: Collection[str]) -> list[str]:
    """Return the names that `value` may have for runs with these columns."""
    kinds = ("final", "reached", "curve")
    parts = (name.partition(".") for name in columns)
    found = [name for kind, _, name in parts if kind in kinds and name != "step"]
    ends = [name for name in ENDS if name in columns]
    return list(dict.fromkeys(["solved", "time", *ends, *found]))


def usual_value(table: pl.DataFrame, fields: Sequence[str]) -> str:
    """Return the most informative of share solved, median time and the metric at the end.

    Of real targets it is the metric, unless every run is solved: a threshold of it says less.
    Where every setting is solved by all or by none of its runs, the median time says that and more;
    where nothing is solved or is to be solved, the metric of the stop rule, or the usual one of the
    task.
    """
    import polars as pl

    from petridish.training import RunSpec

    has_solved = (table["outcome"] == "SOLVED").any()
    all_solved = (table["outcome"] == "SOLVED").all()
    classes = "test_error" in table.columns and table["test_error"].is_finite().any()
    if has_solved and (classes or all_solved):
        solved = (pl.col("outcome") == "SOLVED").mean().alias("share")
        shares = table.group_by(list(fields) or [pl.lit(0)]).agg(solved)["share"]
        if shares.is_between(0, 1, closed="none").any():
            return "solved"
        if "solved_at" in table.columns:
            return "time"
    specs = [spec for spec in specs_of(table).values() if isinstance(spec, RunSpec)]
    # A record keeps what its claims read alone, perhaps no metric at the end.
    ends = values_of(table.columns)
    guess = "test_error" if classes else "test_squared_error"  # of a task that is not here
    names = dict.fromkeys(metric_at_end(spec) or guess for spec in specs)
    return next((name for name in names if name in ends), "solved")


def check_solvable(value: str, specs: Iterable[RunSpec | Gone]) -> None:
    """Refuse success without a stop rule, and shares of errors where no target is a class."""
    from petridish.training import RunSpec

    known = [spec for spec in specs if isinstance(spec, RunSpec)]
    if value in ("solved", "time") and known and all(spec.stop is None for spec in known):
        raise UserError(
            f"{value!r} was asked for, and these runs have no stop rule by which one would be "
            f"solved. Give such as {metric_at_end(known[0]) or 'test_error'!r}, or set "
            "training.stop."
        )
    if value == "test_error" and known and not any(map(has_classes, known)):
        raise UserError(
            "'test_error' was asked for, and the targets of these runs are real numbers, of which "
            f"none is right or wrong. Give such as {known[0].usual_metric('test').column!r}."
        )


def metric_at_end(spec: RunSpec) -> str | None:
    """Return the metric of the stop rule, or the usual one of the task if its class is here."""
    if spec.stop is not None:
        return str(spec.stop.metric.column)
    return None if isinstance(spec.task, Gone) else spec.usual_metric("test").column


def has_classes(spec: RunSpec) -> bool:
    """Return whether a run has classes to be right or wrong about; True of a task that is gone."""
    from petridish.tasks import Classes

    return isinstance(spec.task, Gone) or isinstance(spec.domain.target, Classes)


def answered(columns: Collection[str], specs: Iterable[RunSpec | Gone]) -> list[str]:
    """Return the columns in which runs have something to say: of real targets no `test_error`."""
    from petridish.training import RunSpec

    real = [not has_classes(spec) for spec in specs if isinstance(spec, RunSpec)]
    return [name for name in columns if name != "test_error" or not real or not all(real)]
