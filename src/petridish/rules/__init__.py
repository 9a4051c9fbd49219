"""Tables in, numbers out: estimates with intervals, tests, claims and verdicts."""

from petridish.rules.claims import (
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
from petridish.rules.comparisons import BestOrTied, TicketsWin
from petridish.rules.outcomes import Groks
from petridish.rules.times import Quicker, SlowAtTheEdge, Valley
from petridish.statistics.estimate import (
    anytime_interval,
    bootstrap_median,
    censored_median,
    mean_difference,
    wilson_interval,
)
from petridish.statistics.trend import decrease_test, holm, trend_test

__all__ = [
    "Beats",
    "BestOrTied",
    "Claim",
    "Finding",
    "FrontierShrinks",
    "Groks",
    "Judgement",
    "NeverDecreases",
    "Quicker",
    "Rule",
    "SlowAtTheEdge",
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
