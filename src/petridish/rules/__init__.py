"""Claims, and the rules that judge them: tables in, findings out."""

from petridish.rules.claims import Claim, Finding, Judgement, Judges, Reads, Verdict, nothing
from petridish.rules.comparisons import BestOrTied
from petridish.rules.layouts import Each, Layout, Paired, Sides, Trend
from petridish.rules.measures import (
    AtEnd,
    BestOf,
    Field,
    InOrder,
    Measure,
    Over,
    ReachedAt,
    Solved,
    SolvedAt,
    TimeTo,
)
from petridish.rules.outcomes import Groks
from petridish.rules.rule import Rule
from petridish.rules.success import Beats, FrontierShrinks, NeverDecreases
from petridish.rules.times import Quicker, SlowAtTheEdge, Valley
from petridish.statistics.estimators import Mean, Median, RatioOfMedians, Share

__all__ = [
    "AtEnd",
    "Beats",
    "BestOf",
    "BestOrTied",
    "Claim",
    "Each",
    "Field",
    "Finding",
    "FrontierShrinks",
    "Groks",
    "InOrder",
    "Judgement",
    "Judges",
    "Layout",
    "Mean",
    "Measure",
    "Median",
    "NeverDecreases",
    "Over",
    "Paired",
    "Quicker",
    "RatioOfMedians",
    "ReachedAt",
    "Reads",
    "Rule",
    "Share",
    "Sides",
    "SlowAtTheEdge",
    "Solved",
    "SolvedAt",
    "TimeTo",
    "Trend",
    "Valley",
    "Verdict",
    "nothing",
]
