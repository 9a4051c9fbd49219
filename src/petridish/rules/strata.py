"""Which runs speak for a claim and which against it: each stratum of its rule, judged alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from petridish.errors import UserError
from petridish.rules.cells import WithinStrata, as_tuple
from petridish.rules.claims import Judgement, Judges
from petridish.rules.layouts import ARM
from petridish.rules.rule import Rule

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class JudgedStratum:
    """The runs that have some values, and what they say of a claim by themselves."""

    values: dict[str, Any]
    judgement: Judgement


def strata_of(rule: Judges) -> tuple[str, ...]:
    """Return the fields within whose values a rule compares runs; none if it says none."""
    if isinstance(rule, Rule):
        layout = rule.layout
        return tuple(n for n in layout.conditions if n not in (*layout.compares, ARM, "seed"))
    if isinstance(rule, WithinStrata):
        return as_tuple(rule.within)  # type: ignore[attr-defined] # its subclasses have it
    return ()


def judge_strata(rule: Judges, table: pl.DataFrame, level: float) -> list[JudgedStratum]:
    """Judge every stratum of a rule by its own runs; the strata share the level.

    A rule without strata has one, of all its runs.
    """
    fields = [name for name in strata_of(rule) if name in table.columns]
    if not fields:
        return [JudgedStratum({}, _judged(rule, table, level))]
    parts = table.partition_by(fields, as_dict=True, maintain_order=True)
    return [
        JudgedStratum(dict(zip(fields, key, strict=True)), _judged(rule, part, level / len(parts)))
        for key, part in parts.items()
    ]


def _judged(rule: Judges, table: pl.DataFrame, level: float) -> Judgement:
    try:
        return rule.judge(table, level).judgement
    except UserError:  # a rule that needs runs of other strata too
        return Judgement.UNDECIDED
