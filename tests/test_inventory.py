"""Every figure, table, statement and finding of the papers is found by its number."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

from petridish.chapters import EXPERIMENTS
from petridish.chapters.inventory import Item, ShownBy, find_items, inventory, is_place
from petridish.errors import UserError
from tests.conftest import Command

ROOT = Path(__file__).parent.parent
COMMANDS = ("run", "plan", "verdicts", "figure", "frontier", "report", "bench", "list", "tabular")


def gone(shown: ShownBy) -> bool:
    """Return whether what an inventory names does not exist."""
    if shown.experiment:
        experiment = EXPERIMENTS.get(shown.experiment)
        if experiment is None or (shown.scale and shown.scale not in experiment.scales):
            return True
        claims = [claim.name for claim in experiment.claims]
        known = {"figure": experiment.figures, "claim": claims, "table": experiment.tables}
        return bool(shown.part) and shown.name not in known[shown.part]
    if shown.text.startswith("petridish "):
        return shown.text.split()[1] not in COMMANDS
    if shown.text.startswith("petridish."):
        module, name, _ = shown.function
        try:
            return not hasattr(import_module(module), name)
        except ModuleNotFoundError:
            return True
    path, _, inside = shown.text.partition("::" if shown.text.startswith("tests/") else "#")
    if not (ROOT / path).is_file():
        return True
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.startswith("tests/"):
        return bool(inside) and f"def {inside}(" not in text
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
    return bool(inside) and inside not in anchors


@pytest.mark.parametrize("item", inventory(), ids=lambda item: f"{item.name}, {item.what}")
def test_what_an_item_names_exists(item: Item) -> None:
    """Experiments, figures, claims, tables, scales, functions, tests, pages and commands."""
    assert [shown.text for shown in item.by if gone(shown)] == []


@pytest.mark.parametrize("item", inventory(), ids=lambda item: f"{item.name}, {item.what}")
def test_what_is_not_shown_whole_has_a_reason(item: Item) -> None:
    """And what is shown, in part or whole, says by what."""
    assert item.mark == "full" or item.reason
    assert item.mark == "none" or item.by


@pytest.mark.parametrize(
    "text",
    [
        *("PF-99", "PF-1 figure nothing", "PF-1 claim z", "PF-1 table nothing", "PF-1 at moon"),
        *("petridish.theory.lower_bounds.nothing", "petridish.theory.nowhere.sq_bound"),
        *("tests/test_nothing.py", "tests/test_inventory.py::test_nothing", "petridish nothing"),
        *("docs/no.thing.md", "docs/reference/theory.md#nothing"),
    ],
)
def test_what_is_gone_is_noticed(text: str) -> None:
    """The test above can fail."""
    assert gone(ShownBy.read(text))


CASES = sorted(
    {
        shown.text
        for item in inventory()
        for shown in item.by
        if shown.text.startswith("petridish.") and shown.function[2]
    }
)


@pytest.mark.parametrize("text", CASES)
def test_a_worked_case_has_a_value(text: str) -> None:
    """What a reader is given to type prints a number, not a mistake or nothing."""
    module, name, case = ShownBy.read(text).function
    value = eval(f"name{case}", {"name": getattr(import_module(module), name)})  # of our own file

    assert value is not None
    assert len(str(value)) > 0


def test_a_function_is_shown_by_its_help_or_by_a_worked_case() -> None:
    """A constant is printed too; what is neither is refused."""
    for text, shows in (
        ("petridish.theory.lower_bounds.sq_bound", "help(sq_bound)"),
        ("petridish.theory.lower_bounds.sq_bound(50, 3)", "print(sq_bound(50, 3))"),
        ("petridish.tasks.benchmark_tables.BENCHMARK", "print(BENCHMARK)"),
    ):
        (command,) = ShownBy.read(text).commands
        assert command.endswith(f'; {shows}"')
    with pytest.raises(UserError) as caught:
        ShownBy.read("petridish.sq_bound(50").commands  # noqa: B018 # a property that refuses
    assert str(caught.value) == (
        "An inventory has by='petridish.sq_bound(50'. Write petridish.module.name, or with a "
        "worked case petridish.module.name(50, 3)."
    )


def test_every_claim_belongs_to_an_item() -> None:
    """A reader who comes from the paper meets every claim; what only we ask is `beyond`."""
    named = {(s.experiment, s.name) for item in inventory() for s in item.by if s.part == "claim"}
    missing = [
        f"{experiment.id} claim {claim.name}"
        for experiment in EXPERIMENTS.values()
        for claim in experiment.claims
        if (experiment.id, claim.name) not in named
    ]

    assert missing == []


@pytest.mark.parametrize("item", inventory(), ids=lambda item: f"{item.name}, {item.what}")
def test_every_place_leads_back_to_its_item(item: Item) -> None:
    """Under each of its spellings, with the short name of its source."""
    for place in item.at:
        assert item in find_items(f"{item.source} {place}")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("PF Fig. 4", "PF Fig. 4"),
        ("pf figure 4", "PF Fig. 4"),
        ("PF fig4", "PF Fig. 4"),
        ("PF Theorem 16", "PF Theorem 4"),
        ("pf thm. 16", "PF Theorem 4"),
        ("PF Proposition 3", "PF Prop. 3"),
        ("PF Figs 2 left", "PF Fig. 2 left"),
        ("PF Appendix C2", "PF App. C.2"),
        ("TH App. D.6.3", "FE §D.6.3"),
        ("HP § B.4.1", "HP App. B.4.1"),
        ("PF Section 4.1 (2)", "PF §4.1 (2)"),
    ],
)
def test_places_are_found_however_they_are_spelled(text: str, first: str) -> None:
    """Short or whole words, with or without points and spaces, upper or lower case."""
    assert is_place(text)
    assert find_items(text)[0].name == first


def test_one_place_of_several_papers_is_named_by_its_paper() -> None:
    """Candidates are named; a number of the dissertation is one of its chapters'."""
    with pytest.raises(UserError) as caught:
        find_items("table 2")
    assert str(caught.value) == (
        "'table 2' is in several places: FL Table 2, PF Table 2. Give one of them."
    )
    assert [item.source for item in find_items("TH Fig. 8.2")] == ["IH"]
    assert find_items("HP Fig. B.10") == find_items("fig b10") == find_items("th figure B.10")
    assert find_items("HP Figure 4 left") == find_items("HP Fig. 5.4 left")


def test_a_part_of_a_figure_is_in_the_whole() -> None:
    """Where a figure has one row, its panels lead to it; where they have rows, to their own."""
    assert find_items("FE Fig. 7.6 b")[0].at == ("Fig. 7.6",)
    assert [item.at[0] for item in find_items("PF Fig. 1 right")] == ["Fig. 1 right"]


def test_a_part_of_a_number_is_another_number() -> None:
    """Lemma 1 is not Lemma 10; but App. C is the beginning of App. C.1."""
    assert [item.at for item in find_items("PF Lemma 10")] == [("Lemma 10",)]
    assert {item.name for item in find_items("PF App. C")} >= {"PF App. C.2", "PF App. C.4"}
    with pytest.raises(UserError) as caught:
        find_items("PF Lemma 1")
    assert str(caught.value).startswith("No inventory has 'PF Lemma 1'. The nearest are PF Lemma")
    assert str(caught.value).endswith("`petridish list PF` has all.")


def test_a_place_of_a_paper_leads_to_its_commands(inside: Command) -> None:
    """What it is, how far it is shown and why not further, by what, and what to type."""
    done = inside("list", "pf lemma 14")

    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "PF Lemma 14: steps that train the second layer",
        "    mark      partly. Used, repaired, within the sizes of Theorem 16; its gradient "
        "descent (λ = ε/B²) is not run.",
        "    shown by  petridish.theory.pareto.over_sparse.theorem16_sizes(51, 2, 15, epsilon=0.5, "
        "delta=0.01)",
        "              docs/reference/theory.md",
        '    type      python -c "from petridish.theory.pareto.over_sparse import theorem16_sizes; '
        'print(theorem16_sizes(51, 2, 15, epsilon=0.5, delta=0.01))"',
    ]
    (found,) = json.loads(inside("list", "PF Lemma 14", "--json").stdout)
    assert found["at"] == ["Lemma 14"]
    assert found["mark"] == "partly"
    assert found["by"][1] == "docs/reference/theory.md"


def test_what_takes_seconds_is_offered_first(inside: Command) -> None:
    """The smoke scale's run and figure, then the usual ones, each with its size."""
    typed = [
        line.removeprefix("    type").strip()
        for line in inside("list", "FE Fig. 7.6b").stdout.splitlines()
        if "petridish " in line
    ]

    assert typed[:3] == [
        "petridish run FE-3 --scale smoke  # seconds",
        "petridish figure FE-3 --scale smoke",
        "petridish report FE-3 --scale smoke",
    ]
    assert typed[3].startswith("petridish run FE-3 --scale paper  # paper: ")
    assert typed[3].endswith(" steps; plan prices it")
    assert typed[4] == "petridish figure FE-3 --scale paper"
    tables = inside("list", "PF Fig. 6").stdout
    assert "type      petridish tabular bench --experiment PF-6 --scale smoke  # seconds" in tables


def test_a_source_has_all_its_items(inside: Command) -> None:
    """`petridish list PF`."""
    done = inside("list", "pf", "--json")

    assert len(json.loads(done.stdout)) == sum(item.source == "PF" for item in inventory())


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("PF-1 claim a", ("petridish run PF-1",)),
        (
            "PF-1 figure frontier at panel",
            ("petridish run PF-1 --scale panel", "petridish figure PF-1 --scale panel"),
        ),
        ("FE-1 table margins", ("petridish run FE-1", "petridish report FE-1")),
        (
            "PF-6 figure curves",
            ("petridish tabular fetch", "petridish tabular bench --experiment PF-6"),
        ),
        ("tests/test_theorem4.py", ("python -m pytest tests/test_theorem4.py",)),
        ("docs/reference/theory.md", ()),
        ("petridish bench", ("petridish bench",)),
    ],
)
def test_commands(text: str, commands: tuple[str, ...]) -> None:
    """A run comes first and ends with its verdicts; a figure is drawn of what is stored."""
    assert ShownBy.read(text).commands == commands


def test_what_cannot_be_read_is_refused() -> None:
    """Whoever edits an inventory is told what it takes."""
    with pytest.raises(UserError) as caught:
        ShownBy.read("PF-1 picture frontier")
    assert str(caught.value) == (
        "An inventory has by='PF-1 picture frontier'. Give an experiment such as 'PF-1 figure "
        "frontier', a path that begins with petridish., tests/ or docs/, or a command."
    )
    with pytest.raises(UserError) as caught:
        Item("PF", ("PF",), "pareto", "figure", ("Fig. 1",), "a figure", "half")  # type: ignore[arg-type] # wrong on purpose
    assert str(caught.value) == (
        "The inventory of pareto, ('Fig. 1',): mark='half'. Give one of ('full', 'partly', 'none')."
    )


def test_a_wheel_prints_no_command_for_what_only_the_repository_has(
    inside: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its users have neither tests nor pages; they are told where these are."""
    test = "tests/test_theory_bounds.py::test_lemma_6_is_parseval"
    name = "PF Lemma 6: Parseval's bound on the gradients of all parities"
    lines = [name, "    mark      full", f"    shown by  {test}"]
    in_checkout = [*lines, f"    type      python -m pytest {test}"]
    assert inside("list", "PF Lemma 6").stdout.splitlines() == in_checkout

    monkeypatch.setattr("petridish.chapters.inventory.IN_CHECKOUT", False)
    lines[-1] += " (in the repository of petridish)"
    assert inside("list", "PF Lemma 6").stdout.splitlines() == lines
    named = {shown.place for item in inventory() for shown in item.by}
    apart = [place for place in named if place.startswith(("tests/", "docs/"))]
    assert len(apart) > 10
    assert all(place.endswith(" (in the repository of petridish)") for place in apart)
    typed = " ".join(line for item in inventory() for line in item.commands)
    assert not re.search("pytest|docs/", typed)
