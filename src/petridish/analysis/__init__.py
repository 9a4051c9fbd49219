"""Tables in, numbers out: estimates with intervals, tests, claims and verdicts."""

from petridish.analysis.claims import (
    Beats,
    Claim,
    Finding,
    FrontierShrinks,
    Judgement,
    NeverDecreases,
    Rule,
    Verdict,
    nothing,
)
from petridish.analysis.comparisons import BestOrTied, TicketsWin
from petridish.analysis.estimate import (
    anytime_interval,
    bootstrap_median,
    censored_median,
    mean_difference,
    wilson_interval,
)
from petridish.analysis.outcomes import Groks
from petridish.analysis.theorems import (
    AboveTheBound,
    FrontierSlope,
    RecoverySlope,
    SubnetworkAgrees,
)
from petridish.analysis.times import Quicker, SlowAtTheEdge, Valley
from petridish.analysis.trend import decrease_test, holm, trend_test

__all__ = [
    "AboveTheBound",
    "Beats",
    "BestOrTied",
    "Claim",
    "Finding",
    "FrontierShrinks",
    "FrontierSlope",
    "Groks",
    "Judgement",
    "NeverDecreases",
    "Quicker",
    "RecoverySlope",
    "Rule",
    "SlowAtTheEdge",
    "SubnetworkAgrees",
    "TicketsWin",
    "Valley",
    "Verdict",
    "anytime_interval",
    "bootstrap_median",
    "censored_median",
    "decrease_test",
    "holm",
    "mean_difference",
    "nothing",
    "trend_test",
    "wilson_interval",
]
