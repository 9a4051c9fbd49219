"""What HP's rules share: refusals, which become undecided findings, and decisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from petridish.errors import UserError, require
from petridish.rules.cells import mixed
from petridish.rules.claims import Finding, Judgement, nothing
from petridish.rules.columns import missing_curves
from petridish.statistics.intervals import wilson_interval

if TYPE_CHECKING:
    import polars as pl

FEWEST = 5  # seeds: of fewer a mean knows too little
LETTERS = {"data.m": "m = {:g}", "model.width": "r = {:g}"}


class TableRule(ABC):
    """A rule that judges from the runs of a sweep, and says why where it cannot."""

    @property
    @abstractmethod
    def quantity(self) -> str:
        """What the estimate measures, in words."""

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep; undecided where the table is refused."""
        try:
            return self._judge(table, level)
        except UserError as refusal:
            return nothing(self.quantity, str(refusal))

    @abstractmethod
    def _judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge a table; raises `UserError` with what it lacks."""


def decide(*, contradicted: object, supported: object) -> Judgement:
    """Return the judgement where one of two findings holds, given as anything true or false."""
    if contradicted:
        return Judgement.CONTRADICTED
    return Judgement.SUPPORTED if supported else Judgement.UNDECIDED


def refuse_mixed(table: pl.DataFrame, conditions: Sequence[str]) -> None:
    """Refuse runs that share conditions and a seed, and differ in something else."""
    clash = mixed(table, conditions)
    require(not clash, clash)


def with_curves(table: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Keep the runs that have curves; refuses a table without any, or without those named."""
    missing = missing_curves(table, *names)
    require(not missing, missing)
    return table.filter(table["curve.step"].is_not_null())


def least_share(
    runs: pl.DataFrame, by: Sequence[str], quantity: str, at_least: float, level: float
) -> Finding:
    """Judge whether the share solved lies above `at_least` in every cell.

    The estimate is the least of the shares, its Wilson interval simultaneous over all (Bonferroni).
    """
    refuse_mixed(runs, by)
    parts = runs.partition_by(by, maintain_order=True)
    cells, texts = [], []
    for part in parts:
        solved, made = int((part["outcome"] == "SOLVED").sum()), len(part)
        low, high = map(float, wilson_interval(solved, made, coverage=1 - level / len(parts)))
        cells.append((solved / made, low, high))
        where = ", ".join(LETTERS.get(name, "{}").format(part[name][0]) for name in by)
        texts.append(f"{where}: {solved} of {made}")
    remark = "; ".join(sorted(texts))
    return Finding(every_above(cells, at_least), *min(cells), quantity, len(runs), remark)


def every_above(cells: Sequence[tuple[float, float, float]], neutral: float) -> Judgement:
    """Judge whether every estimate lies above `neutral`, by the intervals."""
    return decide(
        contradicted=any(high < neutral for _, _, high in cells),
        supported=all(low > neutral for _, low, _ in cells),
    )
