"""Claims: a sentence, its source, and a rule with a level, fixed before the runs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from petridish.errors import UserError, nearest, require
from petridish.statistics.estimators import Estimate

if TYPE_CHECKING:
    import polars as pl


class Judgement(Enum):
    """What the runs say about a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"


class NoFinding(UserError):
    """A rule returned something other than a finding, or a finding without a judgement."""


@dataclass(frozen=True)
class Finding:
    """The result of a rule.

    Attributes
    ----------
    judgement : Judgement
        What the runs say: Judgement.SUPPORTED, CONTRADICTED or UNDECIDED.
    estimate, low, high : float
        The effect and its interval; NaN where there is nothing to estimate.
    quantity : str
        What the estimate measures.
    n : int
        Runs behind it.
    remark : str
        What else a reader should know, such as the cells that speak against the claim.
    note : str
        What would decide it, or how far its numbers go. Said beside a verdict, not kept with it.
    bound : float, optional
        What the interval is held against. Where nothing is decided the remark then says which
        differences from it are too small to be seen.
    """

    judgement: Judgement
    estimate: float
    low: float
    high: float
    quantity: str
    n: int
    remark: str = ""
    note: str = ""
    bound: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.judgement, Judgement):
            raise NoFinding(
                f"Finding: judgement={self.judgement!r}. Give Judgement.SUPPORTED, "
                "Judgement.CONTRADICTED or Judgement.UNDECIDED."
            )
        if self.bound is not None and self.judgement is Judgement.UNDECIDED:
            blind = blind_within(self.bound, self.estimate, self.low, self.high)
            if blind not in self.remark:
                object.__setattr__(self, "remark", remarks(self.remark, blind))

    def numbers(self) -> str:
        """Write the estimate with its interval, as far as there are any."""
        return Estimate(self.estimate, self.low, self.high).text


class Judges(Protocol):
    """A rule that judges a claim from a table; the level is the allowed risk of a wrong verdict."""

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
        """Return what the simulation finds."""
        return _simulated(self, level)

    @abstractmethod
    def simulate(self, level: float) -> Finding:
        """Simulate, and judge."""


@lru_cache(maxsize=64)
def _simulated(rule: Simulated, level: float) -> Finding:
    return rule.simulate(level)


UNFIT = "nothing could be judged"  # of runs that do not suit the rule
FAR = 30  # half-widths over distances: of more, a thousand times as many seeds
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
        What the paper reports, for a reader to set beside what was found here.
    kind : "paper", "ours" or "check"
        The paper's statement, no stronger and no weaker; a form or a question of our own; or a
        statement that no run could contradict, which is shown and never counts as supported.
    judged_at : tuple of str
        The scales at which it is judged as of its kind, such as those with the paper's own recipe;
        at every other scale the verdict is one of ours. Empty: at every scale.
    """

    name: str
    text: str
    source: str
    rule: Judges
    paper: str = ""
    kind: Kind = "ours"
    judged_at: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(
            hasattr(self.rule, "judge"),
            f"Claim: rule={self.rule!r} cannot judge. Give a rule, such as "
            'NeverDecreases(along="model.width", within=()).',
        )
        require(
            self.kind in get_args(Kind),
            f"Claim: kind={self.kind!r}. {nearest(str(self.kind), get_args(Kind))}",
        )
        require(
            not isinstance(self.judged_at, str),
            f"Claim: judged_at={self.judged_at!r} is one text. Give a tuple of scales, "
            f"({self.judged_at!r},).",
        )

    def at(self, scale: str) -> Claim:
        """Return the claim as it is judged at a scale: of its kind, or as one of ours."""
        there = not self.judged_at or scale in self.judged_at
        return self if there else replace(self, kind="ours")


@dataclass(frozen=True)
class Verdict:
    """A judged claim: the finding, and the notes shown with it."""

    claim: Claim
    finding: Finding
    level: float
    notes: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """What is said of the claim: a check holds, fails or is open, and is never supported."""
        judgement = self.finding.judgement
        return CHECKED[judgement] if self.claim.kind == "check" else judgement.value

    def as_json(self) -> dict[str, Any]:
        """Return the verdict as JSON can hold it: no NaN and no infinity."""
        finding = self.finding
        notes = {"notes": list(self.notes)} if self.notes else {}
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
            **notes,
        }

    def __str__(self) -> str:
        finding = self.finding
        remark = f"; {finding.remark}" if finding.remark else ""
        said = f"({self.claim.name}, {self.claim.kind}) {self.word.upper()}: {finding.quantity}"
        if finding.quantity == UNFIT:
            return f"{said}{remark}"
        return f"{said} = {finding.numbers()}, n = {finding.n}, level {self.level:.3g}{remark}"


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def nothing(quantity: str, remark: str) -> Finding:
    """Return the finding where there are no runs to judge from."""
    return Finding(Judgement.UNDECIDED, math.nan, math.nan, math.nan, quantity, 0, remark)


def by_interval(low: float, high: float, neutral: float) -> Judgement:
    """Judge an effect by the side of `neutral` on which its interval lies."""
    if low > neutral:
        return Judgement.SUPPORTED
    if high < neutral:
        return Judgement.CONTRADICTED
    return Judgement.UNDECIDED


def seeds_to_exclude(
    bound: float,
    estimate: float,
    low: float,
    high: float,
    *,
    seeds: int,
    of: str = "",
    claimed: Literal["above", "below"] | None = None,
) -> str:
    """Return a sentence on how many seeds would exclude a bound, if the estimate stays.

    `claimed` is the side of the bound on which the claim puts the number: where the estimate lies
    on the other one, the sentence says so.
    Widths fall as one over the root of the seeds: n · (half-width / distance)². Of a ratio, where
    the bound is 1, both are measured on a logarithmic scale.
    """
    at, middle, below, above = bound, estimate, low, high
    if bound == 1.0 and 0 < low <= high < math.inf:
        at, middle, below, above = map(math.log, (bound, estimate, low, high))
    half, distance = (middle - below if middle > at else above - middle), abs(middle - at)
    if seeds < 2 or not (below <= at <= above) or not math.isfinite(half):
        return ""
    what = f"{of}: " if of else ""
    if distance == 0 or half / distance > FAR:
        return f"{what}the estimate is too near to {bound:g} for more seeds to tell them apart"
    needed = math.ceil(seeds * (half / distance) ** 2)
    needed = max(needed, seeds + 1)
    beyond = claimed is not None and (middle > at) != (claimed == "above")
    against = ", and contradict the claim" if beyond else ""
    digits = max(0, len(str(needed)) - 2)  # two digits are more than is known
    needed = math.ceil(needed / 10**digits) * 10**digits
    return (
        f"{what}about {needed} seeds instead of {seeds} would exclude {bound:g}, if the estimate "
        f"stays{against}"
    )


def blind_within(
    bound: float, estimate: float, low: float, high: float, *, ratio: bool = True
) -> str:
    """Return a sentence on the smallest effect that runs with an interval of this width would show.

    A true value whose distance from the bound is less than the larger half of the interval is not
    told from it. Of a ratio, where the bound is 1, the distance is a factor; `ratio` is False for a
    difference that is held against 1.
    """
    if not low <= bound <= high or not all(map(math.isfinite, (estimate, low, high))):
        return ""
    if ratio and bound == 1.0 and low > 0:
        distance = f"a factor of {max(high / estimate, estimate / low):.3g}"
    else:
        distance = f"{max(high - estimate, estimate - low):.3g}"
    return f"differences from {bound:g} below {distance} are too small for these runs to show"


def remarks(*sentences: str) -> str:
    """Join the sentences of a remark, leaving out those that have nothing to say."""
    return "; ".join(filter(None, sentences))
