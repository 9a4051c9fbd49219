"""Kinds of claims: the paper's, ours, and checks that never count as supported."""

from __future__ import annotations

import pytest

from petridish.chapters import EXPERIMENTS
from petridish.errors import UserError
from petridish.rules import Claim, Finding, Judgement, Verdict
from petridish.rules.claims import Simulated
from petridish.rules.times import Valley

OURS = {
    "PF-4": {"s=2"},
    "PF-5": {"more", "sooner"},
    "PF-6": {"3T", "RF"},
    "PF-6B": {"F", "P", "B", "N"},
    "PF-7": {"T4r", "T4m"},
    "HP-1": {"A"},
    "HP-3": {"P", "E"},
    "HP-4": {"N", "H"},
    "HP-6": {"S"},
    "HP-11": {"D"},
    "HP-12": {"S", "P"},
    "HP-13": {"L", "K"},
    "FE-1": {"A"},
    "FE-3": {"A"},
    "FL-1": {"2", "S"},
    "VC-1": {"T"},
    "IH-1": {"plateau", "near", "attention"},
}
CHECKS = {
    "PF-1": {"d"},
    "PF-2": {"descent"},
    "PF-7": {"P3", "T5m", "T5c"},
    "HP-7": {"C"},
    "HP-12": {"F3", "F4"},
    "HP-13": {"R"},
    "FE-4": {"C", "D"},
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_claim_has_its_kind(name: str) -> None:
    """Ours are forms that say more or less than the source; others are the paper's or checks."""
    claims = EXPERIMENTS[name].claims

    assert {claim.name for claim in claims if claim.kind == "ours"} == OURS.get(name, set())
    assert {claim.name for claim in claims if claim.kind == "check"} == CHECKS.get(name, set())


def test_what_no_run_could_contradict_is_a_check() -> None:
    """A verdict that rests on no run, and a rule that can find but not exclude."""
    for experiment in EXPERIMENTS.values():
        for claim in experiment.claims:
            if isinstance(claim.rule, Simulated | Valley):
                assert claim.kind == "check", (experiment.id, claim.name)


def test_a_check_is_never_called_supported() -> None:
    """It holds, fails or is open, in words; its JSON has the kind beside the verdict."""
    words = {}
    for judgement in Judgement:
        finding = Finding(judgement, 2.0, 1.0, 3.0, "ratio", 7)
        for kind in ("paper", "ours", "check"):
            claim = Claim("a", "It is so.", "§1", Valley(), kind=kind)
            verdict = Verdict(claim, finding, 0.05)
            assert verdict.as_json()["kind"] == kind
            assert verdict.as_json()["verdict"] == judgement.value
            words[kind, judgement] = verdict.word
            assert str(verdict) == (
                f"(a, {kind}) {verdict.word.upper()}: ratio = 2 [1, 3], n = 7, level 0.05"
            )
    assert {words["check", judgement] for judgement in Judgement} == {
        "check holds",
        "check fails",
        "check open",
    }
    for kind in ("paper", "ours"):
        assert all(words[kind, judgement] == judgement.value for judgement in Judgement)


def test_an_unknown_kind_is_refused() -> None:
    """With the kinds that there are."""
    with pytest.raises(UserError) as refusal:
        Claim("a", "It is so.", "§1", Valley(), kind="papers")  # type: ignore[arg-type] # a mistake
    assert str(refusal.value) == "Claim: kind='papers'. Did you mean paper?"
