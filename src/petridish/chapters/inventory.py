"""Inventories: every figure, table, statement and finding of a paper, and what shows it.

Each chapter keeps its own as data, in `inventory.toml`: one block per item, under the name of its
kind, `[[figure]]`, `[[table]]`, `[[statement]]`, `[[finding]]`, or `[[beyond]]` for what we ask
and the paper does not. A block has

- `at`: its places as the paper numbers them, every document's own spelling;
- `what`: what it is, in a few words;
- `mark`: "full", "partly" or "none";
- `by`: what shows it. `"PF-1"`, `"PF-1 figure frontier"`, `"PF-1 claim a"`, `"PF-6 table table-2"`,
  each also with a scale, `"PF-1 figure frontier at paper"`; a function or class by its path,
  `"petridish.theory.lower_bounds.sq_bound"`, of which the command prints the help, or with the
  arguments of a worked case, `"petridish.theory.lower_bounds.sq_bound(50, 3)"`, which it prints;
  `"tests/test_theorem4.py::test_…"`; a page, `"docs/reference/theory.md"`; or a command,
  `"petridish bench"`;
- `reason`: what is missing and why; needed unless the mark is "full".
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from petridish.errors import UserError, require

# Tests and pages are in the repository alone; the wheel has neither.
IN_CHECKOUT = (Path(__file__).parents[3] / "tests/test_inventory.py").is_file()
Mark = Literal["full", "partly", "none"]
ItemKind = Literal["figure", "table", "statement", "finding", "beyond"]
BY_EXPERIMENT = re.compile(
    r"(?P<id>[A-Z]+-\w+)(?: (?P<part>figure|claim|table) (?P<name>\S+))?(?: at (?P<scale>\S+))?"
)

BY_FUNCTION = re.compile(r"(?P<module>petridish(?:\.\w+)+)\.(?P<name>\w+)(?P<case>\(.*\))?")


@dataclass(frozen=True)
class ShownBy:
    """What shows an item: an experiment or a part of it; else `text` alone says it."""

    text: str
    experiment: str = ""
    part: str = ""
    name: str = ""
    scale: str = ""

    @classmethod
    def read(cls, text: str) -> ShownBy:
        """Read it as an inventory writes it."""
        if text.startswith(("petridish", "tests/", "docs/")):
            return cls(text)
        found = BY_EXPERIMENT.fullmatch(text)
        require(
            found is not None,
            f"An inventory has by={text!r}. Give an experiment such as 'PF-1 figure frontier', a "
            "path that begins with petridish., tests/ or docs/, or a command.",
        )
        assert found is not None
        return cls(text, *(found[part] or "" for part in ("id", "part", "name", "scale")))

    @property
    def function(self) -> tuple[str, str, str]:
        """Module, name and arguments in brackets, if any, of a function, class or constant."""
        found = BY_FUNCTION.fullmatch(self.text)
        require(
            found is not None,
            f"An inventory has by={self.text!r}. Write petridish.module.name, or with a worked "
            "case petridish.module.name(50, 3).",
        )
        assert found is not None
        return found["module"], found["name"], found["case"] or ""

    @property
    def place(self) -> str:
        """The text; outside a checkout it says that tests and pages are in the repository."""
        kept = self.text.startswith(("tests/", "docs/")) and not IN_CHECKOUT
        return f"{self.text} (in the repository of petridish)" if kept else self.text

    @property
    def pictures(self) -> str:
        """Where records have the figure, as a pattern."""
        return f"*-{self.experiment}-{self.scale or '*'}/{self.name}.png"

    @property
    def commands(self) -> tuple[str, ...]:
        """What to type: the runs come first, and a run ends with its verdicts.

        Nothing for a test or a page outside a checkout: see `place`.
        """
        if self.text.startswith("petridish "):
            return (self.text,)
        if self.text.startswith("petridish."):
            module, name, case = self.function
            # A constant or a worked case has a value; of a function or class alone there is help.
            shows = "print" if case or name.isupper() else "help"
            return (f'python -c "from {module} import {name}; {shows}({name}{case})"',)
        if self.text.startswith("tests/"):
            return (f"python -m pytest {self.text}",) if IN_CHECKOUT else ()
        if not self.experiment:
            return ()
        asked = f"{self.experiment} --scale {self.scale}" if self.scale else self.experiment
        if self.experiment.startswith("PF-6"):  # draws, judges and tabulates what it has run
            scale = f" --scale {self.scale}" if self.scale else ""
            bench = f"petridish tabular bench --experiment {self.experiment}{scale}"
            return "petridish tabular fetch", bench
        after = {"figure": f"petridish figure {asked}", "table": f"petridish report {asked}"}
        return (f"petridish run {asked}", *([after[self.part]] if self.part in after else []))


@dataclass(frozen=True)
class Item:
    """One figure, table, statement or finding of a paper."""

    source: str
    documents: tuple[str, ...]
    chapter: str
    kind: ItemKind
    at: tuple[str, ...]
    what: str
    mark: Mark
    by: tuple[ShownBy, ...] = ()
    reason: str = ""

    def __post_init__(self) -> None:
        owner = f"The inventory of {self.chapter}, {self.at}"
        require(bool(self.at) and bool(self.what), f"{owner}: at and what are empty. Fill both.")
        known = get_args(Mark)
        require(self.mark in known, f"{owner}: mark={self.mark!r}. Give one of {known}.")

    @property
    def name(self) -> str:
        """Its source and first place, as a user asks for it."""
        return f"{self.source} {self.at[0]}"

    @property
    def commands(self) -> tuple[str, ...]:
        """What to type to see it, each command once."""
        return tuple(dict.fromkeys(line for shown in self.by for line in shown.commands))

    def as_json(self) -> dict[str, Any]:
        """Describe the item as `list --json` does."""
        return {
            "source": self.source,
            "kind": self.kind,
            "at": list(self.at),
            "what": self.what,
            "mark": self.mark,
            "by": [shown.place for shown in self.by],
            "reason": self.reason,
            "commands": list(self.commands),
        }


@cache
def inventory() -> tuple[Item, ...]:
    """Return the items of all chapters, by source, kind and as each chapter lists them."""
    found = []
    for file in sorted(Path(__file__).parent.glob("*/inventory.toml")):
        written = tomllib.loads(file.read_text(encoding="utf-8"))
        source, documents = written.pop("source"), tuple(written.pop("documents"))
        kinds: tuple[ItemKind, ...] = get_args(ItemKind)
        unknown = sorted(written.keys() - {*kinds})
        require(not unknown, f"{file} has {unknown}. Give tables of {', '.join(kinds)}.")
        for kind in kinds:
            found += [
                Item(
                    source,
                    documents,
                    file.parent.name,
                    kind,
                    tuple(row.pop("at")),
                    by=tuple(map(ShownBy.read, row.pop("by", ()))),
                    **row,
                )
                for row in written.get(kind, ())
            ]
    order = get_args(ItemKind)
    return tuple(sorted(found, key=lambda item: (item.source, order.index(item.kind))))


# Words that name one thing, and those that say nothing about the place.
SPELLINGS = {
    **dict.fromkeys(("figure", "figures", "figs"), "fig"),
    **dict.fromkeys(("tables", "tab"), "table"),
    **dict.fromkeys(("theorem", "theorems", "thms"), "thm"),
    **dict.fromkeys(("lemmas", "lem"), "lemma"),
    **dict.fromkeys(("proposition", "propositions", "props"), "prop"),
    **dict.fromkeys(("corollary", "corollaries", "cors"), "cor"),
    **dict.fromkeys(("definition", "definitions", "defs"), "def"),
    **dict.fromkeys(("claims",), "claim"),
    **dict.fromkeys(("equation", "equations", "eqs", "eqn"), "eq"),
    # An appendix is numbered by letters: what the text calls §D.6.3 is found as App. D.6.3 too.
    **dict.fromkeys(("section", "sections", "sec", "sect", "§§", "app", "appendix"), "§"),
    **dict.fromkeys(("algorithm",), "alg"),
    **dict.fromkeys(("center", "middle"), "centre"),
}
SILENT = {"the", "of", "in", "and", "neurips", "dissertation", "paper"}
PARTS = {"left", "right", "centre", "top", "bottom", *"abcdefgh"}
WORD = re.compile(r"(?:[a-h]\.?)?\d+(?:\.\d+)*|§+|[a-z]+")


def place_words(text: str) -> list[str]:
    """Return the words of a place, however it is spelled: «Fig. B10 left» has fig, b.10, left."""
    found = [re.sub(r"^([a-h])\.?(?=\d)", r"\1.", word) for word in WORD.findall(text.lower())]
    return [SPELLINGS.get(word, word) for word in found if word not in SILENT]


def is_place(text: str) -> bool:
    """Return whether a text names a source or a place in one, rather than an experiment."""
    if re.fullmatch(r"[A-Za-z]+-\w+|.*\.py", text.strip()):
        return False
    words = place_words(text)
    return any(word in _documents() or _is_number(word) for word in words)


def find_items(text: str) -> list[Item]:
    """Return the items at a place: «HP Fig. B.10», «fig b10», «PF Theorem 4», or a whole source.

    All parts of one figure or statement are one place; a place that several papers have is refused.
    """
    words = place_words(text)
    asked = [word for word in words if word in _documents()]
    wanted = [word for word in words if word not in asked]
    among = [
        item
        for item in inventory()
        if all(word in map(str.lower, item.documents) for word in asked)
    ]
    if not wanted:
        return among
    places = [(item, place) for item in among for place in item.at]
    found = [(item, place) for item, place in places if _fits(wanted, place)]
    if not found:  # «App. B.3» is also the beginning of App. B.3.8
        begun = [item for item, place in places if _fits(wanted, place, begins=True)]
        if begun:
            return list(dict.fromkeys(begun))
        raise UserError(f"No inventory has {text!r}. {_nearest(text, among or list(inventory()))}")
    heads = sorted({f"{item.source} {_head(place)}" for item, place in found})
    if len(heads) > 1:
        raise UserError(f"{text!r} is in several places: {', '.join(heads)}. Give one of them.")
    return list(dict.fromkeys(item for item, _ in found))


@cache
def _documents() -> set[str]:
    return {name.lower() for item in inventory() for name in item.documents}


def _is_number(word: str) -> bool:
    return word[-1].isdigit()


def _fits(wanted: list[str], place: str, *, begins: bool = False) -> bool:
    """Return whether a place has all words wanted: as its first number the one that they name."""
    words = place_words(place)
    number, of_place = (next(filter(_is_number, each), "") for each in (wanted, words))
    if number and number != of_place and not (begins and of_place.startswith(f"{number}.")):
        return False
    rest = {*wanted} - {number, *words}
    if number and not PARTS & {*words}:  # the whole figure has each of its parts
        rest -= PARTS
    return not rest or (begins and all(of_place.startswith(f"{word}.") for word in rest))


def _head(place: str) -> str:
    """Return a place up to its number: its parts, such as left and right, are one place."""
    found = re.search(r"(?:§|\b[A-Za-z]+\.? )(?:[A-H]\.)?\d+(?:\.\d+)*", place)
    return found[0] if found else place


def _nearest(text: str, among: list[Item]) -> str:
    """Return the places whose spelling is nearest, as the end of a message."""
    words = place_words(text)
    alike = {
        f"{item.source} {_head(place)}": SequenceMatcher(
            None, words, [item.source.lower(), *place_words(place)]
        ).ratio()
        + SequenceMatcher(None, " ".join(words), " ".join(place_words(place))).ratio()
        for item in among
        for place in item.at
    }
    best = sorted(alike, key=lambda name: -alike[name])[:4]
    return f"The nearest are {', '.join(best)}. `petridish list {among[0].source}` has all."
