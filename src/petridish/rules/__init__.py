"""Claims, and the rules that judge them: tables in, findings out."""

from petridish.rules.claims import Claim, Finding, Judgement, Rule, Verdict, nothing
from petridish.rules.comparisons import BestOrTied
from petridish.rules.outcomes import Groks
from petridish.rules.success import Beats, FrontierShrinks, NeverDecreases
from petridish.rules.times import Quicker, SlowAtTheEdge, Valley

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
    "Valley",
    "Verdict",
    "nothing",
]
