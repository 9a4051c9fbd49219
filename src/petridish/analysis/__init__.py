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
)

__all__ = [
    "Beats",
    "Claim",
    "Finding",
    "FrontierShrinks",
    "Judgement",
    "NeverDecreases",
    "Rule",
    "Verdict",
]
