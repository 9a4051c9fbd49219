"""Claims: a sentence, its source, and a rule with a level, fixed before the runs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from petridish.errors import nearest, require
from petridish.statistics.estimators import Estimate

if TYPE_CHECKING:
    import polars as pl


class Judgement(Enum):
    """What the runs say about a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Finding:
    """What a rule found.

    Attributes
    ----------
    estimate, low, high : float
        The effect and its interval; NaN where there is nothing to estimate.
    quantity : str
        What the estimate measures.
    n : int
        Runs behind it.
    remark : str
        What else a reader should know, such as the cells that speak against the claim.
    """

    judgement: Judgement
    estimate: float
    low: float
    high: float
    quantity: str
    n: int
    remark: str = ""

    def numbers(self) -> str:
        """Write the estimate with its interval, as far as there are any."""
        return Estimate(self.estimate, self.low, self.high).text


class Judges(Protocol):
    """How a claim is judged. The level is the probability of a wrong verdict that it may risk."""

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""


class Reads(ABC):
    """A rule that says what it reads beside how runs ended: curves, weights, metrics of one's own.

    What it names is read from a store for its verdict, and kept by a record. A rule that is no
    `Reads` is given neither curves nor weights.
    """

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""

    @property
    def over(self) -> tuple[str, ...]:
        """The fields of which it takes the best value, or keeps the values apart.

        With "restart" among them, the restarts of a seed are not counted as seeds.
        """
        return ()


def columns_of(rule: Judges) -> tuple[str, ...]:
    """Return the columns that a rule says it reads."""
    return rule.columns if isinstance(rule, Reads) else ()


class Simulated(ABC):
    """A rule that judges from a simulation of its own, in which no run of the sweep takes part.

    Its seed is fixed, so that a process simulates once for each rule and level.
    """

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Give what the simulation finds."""
        return _simulated(self, level)

    @abstractmethod
    def simulate(self, level: float) -> Finding:
        """Simulate, and judge."""


@lru_cache(maxsize=64)
def _simulated(rule: Simulated, level: float) -> Finding:
    return rule.simulate(level)


Kind = Literal["paper", "ours", "check"]
CHECKED = {
    Judgement.SUPPORTED: "check holds",
    Judgement.CONTRADICTED: "check fails",
    Judgement.UNDECIDED: "check open",
}


@dataclass(frozen=True)
class Claim:
    """A statement, and how it is judged.

    Attributes
    ----------
    name, text, source : str
        A letter within its experiment, the sentence, and where it comes from.
    rule : Judges
        How it is judged.
    paper : str
        What the source reports, for a reader to set beside what was found here.
    kind : "paper", "ours" or "check"
        The source's statement, no stronger and no weaker; a form or a question of our own; or a
        statement that no run could contradict, which is shown and never counts as supported.
    """

    name: str
    text: str
    source: str
    rule: Judges
    paper: str = ""
    kind: Kind = "ours"

    def __post_init__(self) -> None:
        require(
            self.kind in get_args(Kind),
            f"Claim: kind={self.kind!r}. {nearest(str(self.kind), get_args(Kind))}",
        )


@dataclass(frozen=True)
class Verdict:
    """A claim with what was found."""

    claim: Claim
    finding: Finding
    level: float

    @property
    def word(self) -> str:
        """What is said of the claim: a check holds, fails or is open, and is never supported."""
        judgement = self.finding.judgement
        return CHECKED[judgement] if self.claim.kind == "check" else judgement.value

    def as_json(self) -> dict[str, Any]:
        """Give the verdict as JSON can hold it: no NaN and no infinity."""
        finding = self.finding
        return {
            "claim": self.claim.name,
            "kind": self.claim.kind,
            "verdict": finding.judgement.value,
            "estimate": _finite(finding.estimate),
            "low": _finite(finding.low),
            "high": _finite(finding.high),
            "n": finding.n,
            "level": self.level,
            "text": self.claim.text,
            "paper": self.claim.paper,
            "source": self.claim.source,
            "quantity": finding.quantity,
            "remark": finding.remark,
        }

    def __str__(self) -> str:
        finding = self.finding
        numbers = finding.numbers()
        remark = f"; {finding.remark}" if finding.remark else ""
        return (
            f"({self.claim.name}, {self.claim.kind}) {self.word.upper()}: {finding.quantity} = "
            f"{numbers}, n = {finding.n}, level {self.level:.3g}{remark}"
        )


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def nothing(quantity: str, remark: str) -> Finding:
    """Give the finding where there are no runs to judge from."""
    return Finding(Judgement.UNDECIDED, math.nan, math.nan, math.nan, quantity, 0, remark)


def by_interval(low: float, high: float, neutral: float) -> Judgement:
    """Judge an effect by the side of `neutral` on which its interval lies."""
    if low > neutral:
        return Judgement.SUPPORTED
    if high < neutral:
        return Judgement.CONTRADICTED
    return Judgement.UNDECIDED
