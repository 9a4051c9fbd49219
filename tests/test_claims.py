"""Kinds of claims: the paper's, ours, and checks that never count as supported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from petridish.chapters import EXPERIMENTS
from petridish.errors import UserError
from petridish.experiment import Experiment
from petridish.rules import Claim, Finding, Judgement, Verdict
from petridish.rules.claims import Simulated
from petridish.rules.success import FrontierShrinks
from petridish.rules.times import Quicker

OURS = {
    "PF-1": {"c-narrow", "gone-dense", "gone-sparse"},
    "PF-2": {"gone-dense", "gone-sparse"},
    "PF-4": {"tied"},
    "PF-5": {"more", "sooner"},
    "PF-6": {"3M", "RF"},
    "PF-6B": {"F", "P", "B", "N"},
    "PF-7": {"T4e", "T4rs", "T4rn", "T4ms", "T4mn", "T4mp"},
    "HP-1": {"A"},
    "HP-3": {"P", "Z"},
    "HP-4": {"N", "H"},
    "HP-6": {"S"},
    "HP-7": {"S"},
    "HP-8": {"N"},
    "HP-11": {"D"},
    "HP-12": {"C"},
    "HP-13": {"L", "K"},
    "HP-14": {"Q", "X", "E", "P"},
    "HP-15": {"T", "4", "S"},
    "FE-1": {"N", "L"},
    "FE-2": {"L"},
    "FE-3": {"N", "L"},
    "FE-5": {"E", "X", "S"},
    "FL-1": {*"2SLCRZDT"},
    "FL-2": {"S"},
    "FL-3": {"C", "K"},
    "FL-4": {"U", "H"},
    "FL-5": {"usual", "shuffled", "learned", "labels"},
    "FL-6": {"constant"},
    "FL-7": {"24"},
    "FL-8": {"half", "much", "time"},
    "FL-9": {"M", "3", "R", "D", "D2"},
    "FL-10": {"start", "shuffled", "learned"},
    "FL-11": {"constant"},
    "FL-12": {"E", "EC", "W8", "W9", "WC"},
    "FL-13": {"constant", "certain"},
    "IH-1": {"stages", "plateau", "near", "bayes", "independent", "doubly"},
    "IH-2": {"back", "successors", "attention", "any-token"},
    "IH-3": {"ratio", "near", "doubly"},
    "IH-4": {"half-steps", "extra-doubly"},
    "IH-5": {"near", "stages-smaller-rate", "one-head-smaller-rate", "one-head-bigrams"},
    "IH-6": {"unigrams"},
    "IH-7": {"states", "length", "dimension", "heads", "rate", "spread", "start", "foretold"},
    "IH-8": {
        *("order", "order-eight", "plateau", "leaves", "comes", "near", "near-eight"),
        *("independent", "doubly"),
    },
    "IH-9": {"order", "later", "near", "second-first", "odd-back", "any-token", "log-nearer"},
    "VC-1": {"T", "L"},
    "VC-2": {"above", "below", "U", "I"},
    "VC-3": {"P", "20", "50"},
    "VC-4": {"H"},
    "VC-5": {"M", "E"},
}
CHECKS = {
    "PF-6C": {"decay"},
    "PF-7": {"P3", "T5m", "T5c", "T5o"},
    "HP-7": {"C"},
    "HP-12": {"F3", "F4", "G3", "G4", "S"},
    "HP-13": {"R"},
    "FE-4": {"C", "B", "D"},
    "FL-3": {"H"},
    "IH-2": {"even"},
    "IH-6": {"two-layers"},
    "VC-4": {*"FANPLVIMS"},
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_claim_has_its_kind(name: str) -> None:
    """Ours are forms that say more or less than the source; others are the paper's or checks."""
    claims = EXPERIMENTS[name].claims

    assert {claim.name for claim in claims if claim.kind == "ours"} == OURS.get(name, set())
    assert {claim.name for claim in claims if claim.kind == "check"} == CHECKS.get(name, set())


def test_what_no_run_could_contradict_is_a_check() -> None:
    """A verdict that rests on no run."""
    for experiment in EXPERIMENTS.values():
        for claim in experiment.claims:
            if isinstance(claim.rule, Simulated):
                assert claim.kind == "check", (experiment.id, claim.name)


def test_a_check_is_never_called_supported() -> None:
    """It holds, fails or is open, in words; its JSON has the kind beside the verdict."""
    words = {}
    for judgement in Judgement:
        finding = Finding(judgement, 2.0, 1.0, 3.0, "ratio", 7)
        for kind in ("paper", "ours", "check"):
            claim = Claim("a", "It is so.", "§1", Quicker(), kind=kind)
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


def test_a_claim_is_of_its_kind_at_its_scales_alone() -> None:
    """PF-6's (2T) is the paper's with the paper's optimiser, and one of ours with another."""
    for name, claim_name, there, elsewhere in (
        ("PF-6", "2T", "sgd", "laptop"),
        ("PF-6", "RB", "paper", "sgd"),
        ("PF-1", "d", "panel", "laptop"),
        ("FE-3", "F", "laptop", "others"),
    ):
        experiment = EXPERIMENTS[name]
        claim = next(c for c in experiment.claims if c.name == claim_name)
        assert claim.at(there) is claim
        assert (claim.kind, claim.at(elsewhere).kind) == ("paper", "ours")
        assert {there, elsewhere} <= experiment.scales.keys()
    everywhere = Claim("a", "It is so.", "§1", Quicker(), kind="paper")
    assert everywhere.at("laptop") is everywhere


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_claim_names_scales_that_there_are(name: str) -> None:
    """Those at which it is judged as of its kind."""
    experiment = EXPERIMENTS[name]
    assert {at for claim in experiment.claims for at in claim.judged_at} <= {*experiment.scales}


def test_an_unknown_scale_is_refused() -> None:
    """Before anything is trained; and a text in the place of several."""
    sweep = EXPERIMENTS["PF-1"].scales["smoke"]
    claim = Claim("a", "It is so.", "§1", FrontierShrinks(), judged_at=("labtop",))
    with pytest.raises(UserError) as refusal:
        Experiment("own", "", "", {"laptop": sweep}, (claim,)).check(sweep)
    assert str(refusal.value) == (
        "own (a): judged_at=('labtop',), but there is no scale called 'labtop'. Did you mean "
        "laptop?"
    )
    with pytest.raises(UserError) as refusal:
        Claim("a", "It is so.", "§1", Quicker(), judged_at="laptop")  # type: ignore[arg-type] # a mistake
    assert str(refusal.value) == (
        "Claim: judged_at='laptop' is one text. Give a tuple of scales, ('laptop',)."
    )


def test_what_is_not_seen_is_said_once() -> None:
    """Of an undecided finding with a bound, also when it is made anew."""
    open_, decided = (
        Finding(judgement, 0.5, -1.0, 2.0, "gain", 7, "so", bound=0.0)
        for judgement in (Judgement.UNDECIDED, Judgement.SUPPORTED)
    )
    said = "so; differences from 0 below 1.5 are too small for these runs to show"
    assert (open_.remark, decided.remark) == (said, "so")
    assert replace(open_, n=8).remark == said


def test_an_unknown_kind_is_refused() -> None:
    """With the kinds that there are."""
    with pytest.raises(UserError) as refusal:
        Claim("a", "It is so.", "§1", Quicker(), kind="papers")  # type: ignore[arg-type] # a mistake
    assert str(refusal.value) == "Claim: kind='papers'. Did you mean paper?"
