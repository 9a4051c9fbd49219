"""Claims, and the rules that judge them: tables in, findings out."""

from petridish.rules.claims import Claim, Finding, Judgement, Judges, Reads, Verdict, nothing
from petridish.rules.comparisons import BestOrTied
from petridish.rules.layouts import Each, Layout, PairedBySeed, Sides, Trend
from petridish.rules.measures import (
    AtEnd,
    BestOf,
    Field,
    InOrder,
    LastOf,
    Measure,
    Over,
    ReachedAt,
    Solved,
    SolvedAt,
    TimeTo,
)
from petridish.rules.outcome_classes import Groks
from petridish.rules.outcome_table import OutcomeTable, outcome_table
from petridish.rules.outcome_text import outcome_text
from petridish.rules.rule import Rule
from petridish.rules.success import Beats, FrontierShrinks, NeverDecreases
from petridish.rules.times import Quicker, SlowAtTheEdge
from petridish.rules.varying import varying
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
    "LastOf",
    "Layout",
    "Mean",
    "Measure",
    "Median",
    "NeverDecreases",
    "OutcomeTable",
    "Over",
    "PairedBySeed",
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
    "Verdict",
    "nothing",
    "outcome_table",
    "outcome_text",
    "varying",
]
