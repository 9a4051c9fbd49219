"""The scoreboard: every claim of every chapter with its verdicts, the kinds counted apart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from petridish.experiment import Experiment
from petridish.publish.markdown import cell, table
from petridish.rules.claims import CHECKED, Claim, Judgement, Kind

# By the beginning of an experiment's id; the longest counts.
CHAPTERS = {
    "PF": "Pareto frontiers",
    "PF-6": "Tables",
    "HP": "Hidden progress",
    "FE": "Feature emergence",
    "IH": "Induction heads",
    "FL": "Input structure",
    "VC": "Variable creation",
}
NO_RECORD = "no record"
WORDS = tuple(judgement.value for judgement in Judgement)


@dataclass(frozen=True)
class Score:
    """A claim with one of its verdicts; without a record its word is «no record».

    Attributes
    ----------
    record : str
        The record, or the store with scale and settings, that it was judged from.
    runs : int
        How many runs that has.
    paper : str
        What the paper reports.
    largest : bool
        Whether it is the verdict that counts: of the record with most runs, or, where there is no
        record, of the store's scale with most runs; one in which there was nothing to judge counts
        only if there is no other. Others are shown beside it.
    arm : bool
        Whether it is of a scale at which the claim is not of its kind: an arm of ours, which does
        not count.
    """

    experiment: str
    claim: str
    kind: Kind
    text: str
    word: str = NO_RECORD
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    record: str = ""
    runs: int = 0
    paper: str = ""
    largest: bool = True
    arm: bool = False

    @property
    def shown_kind(self) -> str:
        """Its kind; of a verdict at a scale at which the claim is not of its kind, an arm."""
        return "ours, an arm" if self.arm else self.kind

    @property
    def chapter(self) -> str:
        """The title of its chapter."""
        return CHAPTERS[max((p for p in CHAPTERS if self.experiment.startswith(p)), key=len)]

    @property
    def numbers(self) -> str:
        """The estimate with its interval, as far as there are any."""
        if self.estimate is None:
            return ""
        if self.low is None and self.high is None:
            return f"{self.estimate:.3g}"
        low, high = (
            end if number is None else f"{number:.3g}"
            for number, end in ((self.low, "−∞"), (self.high, "∞"))
        )
        return f"{self.estimate:.3g} [{low}, {high}]"

    def as_json(self) -> dict[str, Any]:
        """Describe it as `scoreboard --json` does; the verdict of a check is no claim's."""
        return {
            "id": self.experiment,
            "claim": self.claim,
            "kind": "ours" if self.arm else self.kind,
            "text": self.text,
            "verdict": self.word,
            "estimate": self.estimate,
            "low": self.low,
            "high": self.high,
            "n": self.n,
            "record": self.record,
            "runs": self.runs,
            "paper": self.paper,
            "largest": self.largest,
            "arm": self.arm,
        }


@dataclass(frozen=True)
class Written:
    """A verdict as JSON has it, with the experiment, the record or stored scale, and its runs."""

    experiment: str
    place: str
    runs: int
    verdict: dict[str, Any]
    recorded: bool = True

    def is_arm_of(self, claim: Claim) -> bool:
        """Return whether it is of a scale at which the claim is not of its kind."""
        return bool(self.verdict.get("kind", claim.kind) != claim.kind)

    @property
    def judged(self) -> bool:
        """Whether any of its runs was one that the claim speaks of."""
        return bool(self.verdict["n"])


def scores(experiments: Iterable[Experiment], verdicts: Sequence[Written]) -> list[Score]:
    """Return every claim with each of its verdicts, in the order of the experiments.

    Of a claim's verdicts the one that counts comes first: those with anything to judge, then
    records before stores, then most runs.
    """
    found = []
    for experiment in experiments:
        for claim in experiment.claims:
            base = (experiment.id, claim.name, claim.kind, claim.text)
            of = [
                each
                for each in verdicts
                if (each.experiment, each.verdict["claim"]) == (experiment.id, claim.name)
            ]
            of.sort(
                key=lambda each: (
                    *(each.is_arm_of(claim), not each.judged),
                    *(not each.recorded, -each.runs),
                )
            )
            if all(each.is_arm_of(claim) for each in of):  # as of its kind it is not judged
                found.append(Score(*base, paper=claim.paper))
            found += [
                Score(
                    *base,
                    word=CHECKED[Judgement(each.verdict["verdict"])]
                    if claim.kind == "check"
                    else each.verdict["verdict"],
                    record=each.place,
                    runs=each.runs,
                    paper=claim.paper,
                    largest=each is of[0] and not each.is_arm_of(claim),
                    arm=each.is_arm_of(claim),
                    **{name: each.verdict[name] for name in ("estimate", "low", "high", "n")},
                )
                for each in of
            ]
    return found


def recorded(records: Path) -> list[Written]:
    """Return the verdicts of all records in a folder; a test judges each record again."""
    found = []
    for folder in sorted(path.parent for path in records.glob("*/verdicts.json")):
        spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
        for each in json.loads((folder / "verdicts.json").read_text(encoding="utf-8")):
            found.append(Written(spec["id"], folder.name, spec["runs"], each))
    return found


def counts(found: Sequence[Score], kinds: Sequence[Kind]) -> list[list[str]]:
    """Return one row per chapter and kind: claims, those without a record, and verdicts by word.

    Each claim counts once, by the verdict that counts.
    """
    rows = []
    for chapter in CHAPTERS.values():
        for kind in kinds:
            of = [s for s in found if (s.chapter, s.kind) == (chapter, kind) and s.largest]
            if not of:
                continue
            words = Counter(score.word for score in of)
            shown = CHECKED.values() if kind == "check" else WORDS
            numbers = [len(of), words[NO_RECORD], *(words[word] for word in shown)]
            rows.append([chapter, *([] if kinds == ("check",) else [kind]), *map(str, numbers)])
    return rows


CLAIMS_HEAD = ("chapter", "kind", "claims", NO_RECORD, *WORDS)
CHECKS_HEAD = ("chapter", "checks", NO_RECORD, *CHECKED.values())
COUNTED: tuple[tuple[tuple[str, ...], tuple[Kind, ...]], ...] = (
    (CLAIMS_HEAD, ("paper", "ours")),
    (CHECKS_HEAD, ("check",)),
)
"""The tables of counts: what is at their head, and the kinds of claims that they count."""


def scoreboard_page(found: Sequence[Score], records: str) -> str:
    """Return the page as Markdown; `records` leads from it to the records."""
    parts = [
        "# Scoreboard\n",
        "Every claim with its verdict in the record with most runs, of those with anything to "
        "judge, which is the one that the tables count; verdicts of further records, if there are "
        "any, stand below it. *paper* is the paper's statement, no stronger and no weaker; *ours* "
        "is a form or a question of our own. A *check* is a statement that no run could "
        "contradict: it holds, fails or is open, and is never counted as supported. An *arm* is a "
        "verdict on a paper's claim at a scale without the paper's recipe, grid or theorem: it "
        "stands below and does not count. *No record*: none is kept; tables of runs without one "
        "are on the pages of results.\n",
        table(CLAIMS_HEAD, counts(found, ("paper", "ours"))),
        table(CHECKS_HEAD, counts(found, ("check",))),
    ]
    for chapter in CHAPTERS.values():
        rows = [
            [
                f"{score.experiment} ({score.claim}) {cell(score.text)}"
                if score.largest
                else f"{score.experiment} ({score.claim}), further",
                cell(score.paper) if score.largest else "",
                score.shown_kind,
                score.word,
                score.numbers,
                str(score.n or ""),
                f"[{score.record[11:]}]({records}/{score.record}/README.md)"
                if score.record
                else "",
            ]
            for score in found
            if score.chapter == chapter
        ]
        parts.append(f"## {chapter}\n")
        parts.append(
            table(("claim", "the paper", "kind", "verdict", "estimate", "n", "record"), rows)
        )
    return "\n".join(parts)
