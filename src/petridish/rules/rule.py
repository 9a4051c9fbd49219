"""Rules as declarations: a measure, a layout, an estimator and a decision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from petridish.errors import require
from petridish.rules.claims import (
    Finding,
    Judgement,
    Reads,
    blind_within,
    nothing,
    remarks,
    seeds_to_exclude,
)
from petridish.rules.laid_out import ValueGroup
from petridish.rules.layouts import Layout
from petridish.rules.measures import BestOf, Measure
from petridish.rules.tuning import tuned_text
from petridish.statistics.estimators import Estimate, Estimator

if TYPE_CHECKING:
    import polars as pl

SUPPORTED, CONTRADICTED, UNDECIDED = (
    Judgement.SUPPORTED,
    Judgement.CONTRADICTED,
    Judgement.UNDECIDED,
)
RANK = {CONTRADICTED: 0, UNDECIDED: 1, SUPPORTED: 2}
MOST_NAMED = 12  # groups in a remark


@dataclass(frozen=True)
class Rule(Reads):
    """A number above, below or between what the claim says, in every group or in some.

    ``Rule(SolvedAt(), Paired("two step", "network", by="ratio"), Median(), below=1.0)`` says that
    the two steps are sooner for most seeds.

    The level is the risk of a wrong verdict. The groups share it: each is estimated with an
    interval of coverage 1 − level / groups. Claimed of every group, it is supported if every
    interval lies on the claim's side, and contradicted if one lies on the other; of some, the other
    way round. Else it is undecided, and says what is missing. The numbers are those of the group
    that decides: the worst for a claim about every group, the best for one about some.
    """

    measure: Measure
    layout: Layout
    estimator: Estimator
    above: float | None = None
    below: float | None = None
    between: tuple[float, float] | None = None
    holds_in: Literal["every", "some"] = "every"

    def __post_init__(self) -> None:
        given = [name for name in ("above", "below", "between") if getattr(self, name) is not None]
        require(
            len(given) == 1,
            f"Rule: {' and '.join(given) or 'no decision'} was given. Give one of above, below and "
            "between.",
        )
        ends = (self.above, self.below, *(self.between or ()))
        require(
            all(end is None or (_is_number(end) and not math.isnan(end)) for end in ends),
            f"Rule: {given[0]}={getattr(self, given[0])!r}. Give a number.",
        )
        require(
            self.holds_in in ("every", "some"),
            f"Rule: holds_in={self.holds_in!r}. Give 'every' or 'some'.",
        )
        require(
            self.between is None or self.between[0] < self.between[1],
            f"Rule: between={self.between}. Give the lower end first.",
        )
        apart = [name for name in self.layout.best_over if name in self.layout.conditions]
        require(
            not apart,
            f"Rule: the layout tells runs apart by {', '.join(apart)} and takes the best over it. "
            "Give one of the two.",
        )
        needs, has = self.estimator.sides, self.layout.sides
        require(
            needs == has,
            f"Rule: the estimator {type(self.estimator).__name__} takes {needs} "
            f"{'sample' if needs == 1 else 'samples'} per group, and the layout "
            f"{type(self.layout).__name__} has {has}. Give another layout or estimator.",
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that it reads, arms apart."""
        named = (*self.layout.conditions, *self.layout.only, *self.layout.best_over)
        layout = (name for name in named if name != "arm")
        return tuple(dict.fromkeys((*self.measure.columns, *layout, "seed")))

    @property
    def over(self) -> tuple[str, ...]:
        """The fields of which it takes the best value, or keeps the values apart."""
        best = (self.measure.over,) if isinstance(self.measure, BestOf) else ()
        return (*best, *self.layout.conditions, *self.layout.only, *self.layout.best_over)

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that it names."""
        return self.layout.arms

    @property
    def quantity(self) -> str:
        """What the estimate measures, in words."""
        laid_out = self.layout.describe(self.measure.label)
        over = self.layout.best_over
        return f"{self.estimator.label} of {laid_out}{tuned_text(over)}"

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge from the runs of a sweep."""
        groups = self.layout.groups(table, self.measure)
        if not groups:
            return nothing(self.quantity, "no run is as the rule asks for")
        coverage = 1 - level / len(groups)
        found = [self.estimator.estimate(group.values, coverage) for group in groups]
        sides = [self.side(estimate) for estimate in found]
        judgement = self._together(sides)
        order = sorted(range(len(groups)), key=lambda i: (RANK[sides[i]], self._margin(found[i])))
        chosen = order[0 if self.holds_in == "every" else -1]
        name = f" ({groups[chosen].name})" if len(groups) > 1 else ""
        decides = found[chosen]
        return Finding(
            judgement,
            decides.value,
            decides.low,
            decides.high,
            self.quantity + name,
            sum(group.runs for group in groups),
            self._remark(judgement, groups, found, chosen),
            self._note(groups[chosen], decides) if judgement is UNDECIDED else "",
        )

    def _note(self, group: ValueGroup, estimate: Estimate) -> str:
        """Return a sentence on how many seeds would decide, in the group that does."""
        if estimate.missing or math.isnan(estimate.low):
            return ""
        seeds = int(group.values.there.any(axis=0).sum())
        ends = (estimate.value, estimate.low, estimate.high)
        bounds = [end for end in self._ends if end is not None]
        said = [seeds_to_exclude(bound, *ends, seeds=seeds, of=group.name) for bound in bounds]
        return "; ".join(sentence for sentence in said if sentence)

    def side(self, estimate: Estimate) -> Judgement:
        """Return what an interval says of the decision."""
        floor, ceiling = self._ends
        if estimate.missing:
            return UNDECIDED
        if (floor is None or estimate.low > floor) and (ceiling is None or estimate.high < ceiling):
            return SUPPORTED
        if (floor is not None and estimate.high < floor) or (
            ceiling is not None and estimate.low > ceiling
        ):
            return CONTRADICTED
        return UNDECIDED

    @property
    def _ends(self) -> tuple[float | None, float | None]:
        """The two ends between which the claim puts the number; None where there is none."""
        return self.between or (self.above, self.below)

    def _margin(self, estimate: Estimate) -> float:
        """Return how far the interval lies on the claim's side; of no interval, the least."""
        floor, ceiling = self._ends
        margins = [estimate.low - floor] if floor is not None else []
        margins += [ceiling - estimate.high] if ceiling is not None else []
        return -math.inf if math.isnan(estimate.value) else min(margins)

    def _together(self, sides: list[Judgement]) -> Judgement:
        one, whole = CONTRADICTED, SUPPORTED
        if self.holds_in == "some":
            one, whole = whole, one
        if one in sides:
            return one
        return whole if all(side is whole for side in sides) else UNDECIDED

    def _remark(
        self, judgement: Judgement, groups: list[ValueGroup], found: list[Estimate], chosen: int
    ) -> str:
        """Return sentences on what is missing where nothing is decided, and on other groups."""
        parts = []
        if judgement is UNDECIDED:
            bounds = [end for end in self._ends if end is not None]
            ends = " and ".join(f"{end:g}" for end in bounds)
            wide = f"the interval does not exclude {ends}: more seeds would narrow it"
            parts.append(found[chosen].missing or wide)
            of = (found[chosen].value, found[chosen].low, found[chosen].high)
            parts += [] if found[chosen].missing else [blind_within(end, *of) for end in bounds]
        if len(groups) > 1:
            named = [
                f"{group.name}: {estimate.text}{f' ({group.behind})' if group.behind else ''}"
                for group, estimate in zip(groups[:MOST_NAMED], found, strict=False)
            ]
            rest = [f"{len(groups) - MOST_NAMED} more"] if len(groups) > MOST_NAMED else []
            parts.append(", ".join([*named, *rest]))
        else:
            parts.append(groups[0].behind)
        values = sum(int(group.values.there.sum()) for group in groups)
        censored = sum(int((group.values.low < group.values.high).sum()) for group in groups)
        if censored:
            parts.append(f"{censored} of {values} values are bounds, from runs beyond their budget")
        if without := sum(group.without for group in groups):
            parts.append(f"{without} runs have no value")
        return remarks(*parts)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
