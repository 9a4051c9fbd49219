"""The scoreboard counts the paper's claims, ours and checks apart."""

from __future__ import annotations

import json
import re
from pathlib import Path

from petridish.chapters import EXPERIMENTS
from petridish.chapters.inventory import inventory
from petridish.explorer.judged import claims_of, scoreboard_of
from petridish.explorer.run_sets import RunSets
from petridish.publish.markdown import cell, table
from petridish.publish.scoreboard import (
    CHECKS_HEAD,
    CLAIMS_HEAD,
    Score,
    Written,
    counts,
    recorded,
    scoreboard_page,
    scores,
)
from petridish.publish.where import where_pages
from petridish.store.requests import note_request
from tests.conftest import Command, SmokeStore, copy_runs

RECORDS = Path(__file__).parent.parent / "records"
FOUND = scores(EXPERIMENTS.values(), recorded(RECORDS))


def test_every_claim_is_on_it_with_every_record() -> None:
    """Once for each record that judged it, or once without a record."""
    written = [
        (json.loads((file.parent / "spec.json").read_text("utf-8"))["id"], each["claim"], each["n"])
        for file in RECORDS.glob("*/verdicts.json")
        for each in json.loads(file.read_text("utf-8"))
    ]
    declared = {(e.id, claim.name) for e in EXPERIMENTS.values() for claim in e.claims}
    judged = [(s.experiment, s.claim, s.n) for s in FOUND if s.record]

    assert sorted(judged) == sorted(each for each in written if each[:2] in declared)
    assert {(score.experiment, score.claim) for score in FOUND} == declared


def test_a_check_is_counted_as_nothing_but_a_check() -> None:
    """Whatever its verdict: «supported» is said of claims alone."""
    checks = [score for score in FOUND if score.kind == "check"]

    assert checks
    assert {s.word for s in checks} <= {"check holds", "check fails", "check open", "no record"}
    made_up = [
        Score("PF-1", "a", "paper", "", "supported"),
        Score("PF-1", "a", "paper", "", "undecided", largest=False),
        Score("PF-1", "b", "paper", ""),
        Score("PF-1", "c", "ours", "", "contradicted"),
        Score("PF-1", "d", "check", "", "check holds"),
        Score("PF-6B", "F", "ours", "", "supported"),
        Score("PF-6", "2T", "paper", ""),
        Score("PF-6", "2T", "paper", "", "contradicted", largest=False, arm=True),
    ]
    assert counts(made_up, ("paper", "ours")) == [
        ["Pareto frontiers", "paper", "2", "1", "1", "0", "0"],
        ["Pareto frontiers", "ours", "1", "0", "0", "1", "0"],
        ["Tables", "paper", "1", "1", "0", "0", "0"],
        ["Tables", "ours", "1", "0", "1", "0", "0"],
    ]
    assert counts(made_up, ("check",)) == [["Pareto frontiers", "1", "0", "1", "0", "0"]]


def test_a_verdict_of_an_arm_stands_below_and_does_not_count() -> None:
    """Of PF-6 (RB): one with another optimiser alone leaves it without a record, however large."""
    claim = next(claim for claim in EXPERIMENTS["PF-6"].claims if claim.name == "RB")
    found = [score for score in FOUND if (score.experiment, score.claim) == ("PF-6", "RB")]
    verdict = {"claim": "RB", "kind": "paper", "estimate": 1.0, "low": None, "high": None, "n": 5}
    own = Written("PF-6", "own", 2, {**verdict, "verdict": "undecided"})
    arm = Written("PF-6", "arm", 9, {**verdict, "kind": "ours", "verdict": "supported"})
    both = [s for s in scores([EXPERIMENTS["PF-6"]], [arm, own]) if s.claim == "RB"]

    assert claim.kind == "paper"
    assert (found[0].word, found[0].arm, found[0].largest) == ("no record", False, True)
    assert {(s.arm, s.largest, s.shown_kind) for s in found[1:]} == {(True, False, "ours, an arm")}
    assert [(s.record, s.largest, s.arm) for s in both] == [
        ("own", True, False),
        ("arm", False, True),
    ]
    assert both[1].as_json()["kind"] == "ours"


def test_the_record_with_most_runs_counts_and_records_come_before_stores() -> None:
    """Each claim counts once; its other verdicts are shown after that one."""
    claim = EXPERIMENTS["PF-1"].claims[0]
    verdict = {"claim": claim.name, "estimate": 1.0, "low": None, "high": None, "n": 5}
    written = [
        Written("PF-1", "small", 10, {**verdict, "verdict": "undecided"}),
        Written("PF-1", "store", 99, {**verdict, "verdict": "contradicted"}, recorded=False),
        Written("PF-1", "large", 20, {**verdict, "verdict": "supported"}),
    ]
    found = scores([EXPERIMENTS["PF-1"]], written)

    assert [(s.record, s.word, s.largest) for s in found[:3]] == [
        ("large", "supported", True),
        ("small", "undecided", False),
        ("store", "contradicted", False),
    ]
    assert {score.paper for score in found[:3]} == {claim.paper} != {""}
    assert sum(int(row[2]) for row in counts(found, ("paper", "ours", "check"))) == len(
        EXPERIMENTS["PF-1"].claims
    )


def test_a_record_without_anything_to_judge_counts_only_if_there_is_no_other() -> None:
    """Of FE-5 (S): the larger record has no run at the λ that the claim compares."""
    verdict = {"claim": "S", "estimate": 1.0, "low": None, "high": None}
    empty = Written("FE-5", "larger", 20, {**verdict, "n": 0, "verdict": "undecided"})
    stored = Written(
        "FE-5", "store", 10, {**verdict, "n": 10, "verdict": "supported"}, recorded=False
    )
    both = [s for s in scores([EXPERIMENTS["FE-5"]], [empty, stored]) if s.claim == "S"]
    alone = [s for s in scores([EXPERIMENTS["FE-5"]], [empty]) if s.claim == "S"]
    kept = [s for s in FOUND if (s.experiment, s.claim) == ("FE-5", "S") and s.largest]

    assert [(s.record, s.largest) for s in both] == [("store", True), ("larger", False)]
    assert [(s.record, s.largest) for s in alone] == [("larger", True)]
    assert [(s.word, s.n) for s in kept] == [("supported", 10)]


def test_numbers_are_written_as_far_as_there_are_any() -> None:
    """An end that JSON cannot hold is infinite; without both ends there is no interval."""
    assert Score("HP-8", "N", "paper", "", "undecided", 0.103, 0.039, None).numbers == (
        "0.103 [0.039, ∞]"
    )
    assert Score("HP-8", "N", "paper", "", "undecided", 0.5).numbers == "0.5"
    assert Score("HP-8", "N", "paper", "").numbers == ""


def test_the_page_has_a_row_for_every_verdict_and_leads_to_its_record() -> None:
    """The signs of a claim's text are no markup."""
    text = scoreboard_page(FOUND, "../../records")
    rows = re.findall(r"^\| [A-Z]+-\w+ \(.*$", text, re.MULTILINE)

    assert len(rows) == len(FOUND)
    assert all(len(re.split(r"(?<!\\)\|", row)) == 9 for row in rows)
    links = re.findall(r"\(\.\./\.\./records/(\S+)/README\.md\)", text)
    assert {*links} == {score.record for score in FOUND if score.record}


def test_the_command_prints_and_counts_them(inside: Command) -> None:
    """As a table, and as one JSON document."""
    done = inside("scoreboard", "--records", RECORDS)

    assert done.returncode == 0
    words = [line for line in done.stdout.splitlines() if line.startswith("    ")]
    lines = [line for line in done.stdout.splitlines() if not line.startswith("    ")]
    assert [line.split()[0] for line in lines[: len(FOUND)]] == [s.experiment for s in FOUND]
    for score in FOUND:
        assert f"    {score.text}" in words
        assert f"    The paper: {score.paper}" in words or not score.paper
    assert any(line.startswith("Hidden progress    paper") for line in lines)
    document = json.loads(inside("scoreboard", "--records", RECORDS, "--json").stdout)
    of = [score for score in FOUND if score.largest and score.kind == "paper"]
    for row in document["counts"]:
        assert set(row) in ({*CLAIMS_HEAD}, {*CHECKS_HEAD})
        if row.get("kind") == "paper":
            assert row["claims"] == sum(score.chapter == row["chapter"] for score in of)
    home = scoreboard_of(RECORDS, [])["counts"]
    shown = [tuple(row) for table in home for row in table["rows"]]
    assert shown == [tuple(map(str, row.values())) for row in document["counts"]]
    listed = document["claims"]
    assert [each["verdict"] for each in listed] == [score.word for score in FOUND]
    assert [each["paper"] for each in listed] == [score.paper for score in FOUND]


def test_what_a_store_has_is_judged_too(
    inside: Command, tmp_path: Path, smoke_store: SmokeStore
) -> None:
    """But not at smoke scale, at which verdicts mean nothing."""
    small = ("--set", "r=10", "--set", "m=100", "--set", "seed=0..1", "--set", "steps=100")
    assert inside("run", "PF-1", "--scale", "laptop", *small).returncode == 0
    done = inside("scoreboard", "--records", tmp_path, "--json")

    judged = [each for each in json.loads(done.stdout)["claims"] if each["verdict"] != "no record"]
    assert [each["claim"] for each in judged] == [
        claim.name for claim in EXPERIMENTS["PF-1"].claims
    ]
    assert {each["record"] for each in judged} == {
        "petridish-store, laptop r=10 m=100 seed=0..1 steps=100"
    }
    store = smoke_store("PF-1")
    listed = json.loads(
        inside("scoreboard", "--records", RECORDS, "--store", store, "--json").stdout
    )["claims"]
    assert len(listed) == len(FOUND)


def test_a_part_of_an_experiment_is_not_judged(
    inside: Command, tmp_path: Path, smoke_store: SmokeStore
) -> None:
    """Of one setting claims say nothing: neither on the scoreboard nor in the explorer."""
    experiment = EXPERIMENTS["PF-1"]
    for settings, part in (
        (["m=400", "r=10"], True),
        (["m=400,600"], True),
        (["seed=0..3"], False),
        (["m=410"], False),
        ([], False),
    ):
        sweep = experiment.sweep("demo").narrowed(settings)
        assert experiment.is_part("demo", settings, sweep) is part

    store = tmp_path / "store"
    copy_runs(smoke_store("PF-1"), store)
    note_request(store, "PF-1", "smoke")
    note_request(store, "PF-1", "smoke", ["data.m=100"])
    whole, some, _ = RunSets([store], None).all().values()
    assert claims_of(whole, whole.snapshot())["claims"] != []
    found = claims_of(some, some.snapshot())
    assert found["claims"] == []
    assert found["why"] == (
        "These are some of the settings of PF-1 at smoke scale. Its claims are about all of them, "
        "and are not judged on a part."
    )
    note_request(tmp_path / "other", "PF-1", "demo", ["m=400", "r=10"])
    done = inside("scoreboard", "--records", tmp_path, "--store", tmp_path / "other")
    assert done.returncode == 2


def test_without_records_it_says_where_they_are(inside: Command, tmp_path: Path) -> None:
    """An installed package has none."""
    done = inside("scoreboard", "--records", tmp_path)

    assert done.returncode == 2
    assert done.stderr == (
        f"petridish: There are no records in {tmp_path}, and no runs in petridish-store at a "
        "scale above smoke, which shows no verdict. Give --records a folder of records, such as "
        "the repository's, or fill a store by `petridish run`.\n"
    )


def test_cells_keep_their_signs() -> None:
    """Markup is escaped, but not within code."""
    assert cell("|u_j| of `a_b|c` [γ*]") == r"\|u\_j\| of `a_b|c` \[γ\*\]"
    assert table(("a", "b"), [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"


def test_a_page_per_source_has_every_place() -> None:
    """With its mark, what shows it and why not more; figures lead to a record that has them."""
    pages = where_pages(inventory(), RECORDS)

    assert set(pages) == {f"{i.source.lower()}.md" for i in inventory()} | {"README.md"}
    for item in inventory():
        rows = [row for row in pages[f"{item.source.lower()}.md"].splitlines() if row[:1] == "|"]
        (row,) = (
            r for r in rows if r.startswith(f"| {cell(', '.join(item.at))} | {cell(item.what)}")
        )
        assert f"| **{item.mark}**" in row
        assert cell(item.reason) in row
        assert all(shown.name in row for shown in item.by)
    for text in pages.values():
        linked = re.findall(r"\(\.\./\.\./\.\./records/(\S+?)\)", text)
        assert all((RECORDS / file).is_file() for file in linked)
    assert "records/" in pages["pf.md"]
    counted = re.findall(r"(\d+) / (\d+) / (\d+)", pages["README.md"])
    assert [sum(int(row[place]) for row in counted) for place in range(3)] == [
        sum(item.mark == mark and item.kind != "beyond" for item in inventory())
        for mark in ("full", "partly", "none")
    ]


def test_figures_come_in_the_order_of_the_paper() -> None:
    """Those of two chapters of ours, too; 9 before 10, and appendices last."""
    text = where_pages(inventory(), RECORDS)
    figures = {
        name: re.findall(r"^\| Fig\. ([A-H\d.]+)", text[name].split("\n## ")[1], re.MULTILINE)
        for name in ("pf.md", "hp.md")
    }

    assert list(dict.fromkeys(figures["pf.md"])) == ["1", "2", "3", "4", "5", "6"]
    found = list(dict.fromkeys(figures["hp.md"]))
    assert found[:4] == ["5.1", "5.2", "5.3", "5.4"]
    assert found[-3:] == ["B.12", "B.13", "B.14"]
