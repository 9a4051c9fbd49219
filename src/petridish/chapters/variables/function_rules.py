"""Rules about the least samples of several functions and models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from petridish.chapters.variables.rules import ThresholdExponent
from petridish.chapters.variables.sample_thresholds import Thresholds, thresholds_of
from petridish.rules.claims import Finding, Judgement, Reads, nothing
from petridish.sweeps.arms import by_arm

if TYPE_CHECKING:
    import polars as pl

NAMES = {"00000001": "AND", "00010111": "majority", "01101001": "parity"}
COLUMNS = ("outcome", "drawn.attempts", "task.n", "data.m", "seed", "restart")


def written(values: Any) -> str:
    """Return a table of values as digits, whatever a column holds them as."""
    return "".join(character for character in str(values) if character in "01")


def with_functions(table: pl.DataFrame) -> pl.DataFrame:
    """Add the column `function`: a table's digits, or "" for the AND of VC-1."""
    import polars as pl

    if "task.values" not in table.columns:
        return table.with_columns(function=pl.lit(""))
    cells = ["" if values is None else written(_plain(values)) for values in table["task.values"]]
    return table.with_columns(function=pl.Series(cells, dtype=pl.String))


def _plain(values: Any) -> Any:
    return values.to_list() if hasattr(values, "to_list") else values


def least_of(table: pl.DataFrame, function: str) -> Thresholds | None:
    """Return the threshold of one function of attention, or None without runs."""
    own = with_functions(by_arm(table, "attention"))
    own = own.filter(own["function"] == function)
    return thresholds_of(own) if len(own) else None


def by_function(table: pl.DataFrame) -> pl.DataFrame:
    """Return the least sample of each function and of each T of the MLPs.

    `enough` is false where no size that was tried is; m is then the largest of them.
    """
    import polars as pl

    rows = []
    for arm in ("attention", "MLP"):
        own = with_functions(by_arm(table, arm))
        for function in sorted(set(own["function"])):
            known = thresholds_of(own.filter(own["function"] == function))
            name = NAMES.get(function, function) or "AND"
            for length, (low, high) in zip(known.lengths, known.found, strict=True):
                rows.append(
                    {
                        "arm": arm,
                        "function": name,
                        "T": int(length),
                        "m": high if math.isfinite(high) else low,
                        "enough": math.isfinite(high),
                        "trials": known.trials,
                    }
                )
    schema = {
        "arm": pl.String,
        "function": pl.String,
        "T": pl.Int64,
        "m": pl.Float64,
        "enough": pl.Boolean,
        "trials": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema)


@dataclass(frozen=True)
class EasierThan(Reads):
    """The least sample of one function over that of another, at most 1.

    The ends of both intervals give those of the ratio.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]

    columns: ClassVar[tuple[str, ...]] = (*COLUMNS, "task.values")
    over: ClassVar[tuple[str, ...]] = ("restart", "task.values", "task.p", "task.of")
    arms: ClassVar[tuple[str, ...]] = ("attention",)

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        names = [NAMES[written(values)] for values in (self.first, self.second)]
        quantity = f"least m of {names[0]} / of {names[1]}"
        known = [least_of(table, written(values)) for values in (self.first, self.second)]
        if known[0] is None or known[1] is None:
            return nothing(quantity, "one of the functions has no runs")
        (low, high), (other_low, other_high) = (k.interval(0, level / 2) for k in known if k)
        least = low / other_high if math.isfinite(other_high) else 0.0
        most = high / other_low if other_low > 0 else math.inf
        judgement = (
            Judgement.SUPPORTED
            if most <= 1
            else Judgement.CONTRADICTED
            if least > 1
            else Judgement.UNDECIDED
        )
        exact = known[0].exact and known[1].exact
        ratio = float(known[0].found[0, 1] / known[1].found[0, 1]) if exact else math.nan
        remark = f"{names[0]}: {known[0].text}; {names[1]}: {known[1].text}"
        trials = known[0].trials + known[1].trials
        return Finding(judgement, ratio, least, most, quantity, trials, remark)


@dataclass(frozen=True)
class MlpExponent(ThresholdExponent):
    """The exponent of T in the least sample of the arm of MLPs."""

    arms: ClassVar[tuple[str, ...]] = ("MLP",)

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        return super().judge(by_arm(table, "MLP"), level)
