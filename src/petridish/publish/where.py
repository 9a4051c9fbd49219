"""The pages «Where is Figure …?»: the inventories of the papers, one page per source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import get_args

from petridish.chapters.inventory import Item, ItemKind, Mark, ShownBy, place_words
from petridish.publish.markdown import cell, table

TITLES = {
    "FE": "Feature emergence (FE), TH Chapter 7",
    "FL": "Feature learning from inputs (FL)",
    "HP": "Hidden progress (HP)",
    "IH": "Induction heads (IH), TH Chapter 8",
    "PF": "Pareto frontiers (PF)",
    "VC": "Variable creation (VC), TH Chapter 4",
}
HEADINGS = {
    "figure": "Figures",
    "table": "Tables",
    "statement": "Numbered statements",
    "finding": "Findings in words",
    "beyond": "What we ask beyond the paper",
}
MARKS = get_args(Mark)


def where_pages(items: Sequence[Item], records: Path) -> dict[str, str]:
    """Return the pages by file name: an index, and one page per source.

    They belong into docs/results/where/; links to figures lead to the records that have them.
    """
    sources = sorted({item.source for item in items})
    pages = {
        f"{source.lower()}.md": _page(source, [i for i in items if i.source == source], records)
        for source in sources
    }
    kinds = get_args(ItemKind)[:-1]
    rows = []
    for source in sources:
        marks = Counter((item.kind, item.mark) for item in items if item.source == source)
        of = [" / ".join(str(marks[kind, mark]) for mark in MARKS) for kind in kinds]
        rows.append([f"[{TITLES[source]}]({source.lower()}.md)", *of])
    index = [
        "# Where is Figure …?\n",
        "Every figure, table, numbered statement and finding in words of the papers, with what "
        'shows it here, or why nothing does. `petridish list "HP Fig. B.10"` says the same in a '
        "terminal, with the commands to type.\n",
        "Numbers are rows that are shown in full / partly / not at all; one row may stand for "
        "several places. *Full* means that a command, a function or a test has it at some scale, "
        "not that it was run there; [the records](../../../records/README.md) are what was run.\n",
        table(("source", *(HEADINGS[kind].lower() for kind in kinds)), rows),
    ]
    return {"README.md": "\n".join(index), **pages}


def _page(source: str, items: Sequence[Item], records: Path) -> str:
    parts = [
        f"# {TITLES[source]}\n",
        "`petridish run ID` trains an experiment and judges its claims, `petridish figure ID` "
        "draws it; a figure's name leads to the record that has it. Letters in brackets are "
        "claims.\n",
    ]
    for kind, group in groupby(items, lambda item: item.kind):
        parts.append(f"## {HEADINGS[kind]}\n")
        listed = list(group)
        if kind in ("figure", "table"):
            listed.sort(key=_number)
        rows = [
            [
                cell(", ".join(item.at)),
                cell(item.what),
                "<br>".join(filter(None, [_marked(item, records), cell(item.reason)])),
            ]
            for item in listed
        ]
        parts.append(table(("place", "what", "shown by, and what is missing"), rows))
    return "\n".join(parts)


def _number(item: Item) -> list[tuple[int, str]]:
    """Return the order of a place: chapters before appendices, 2 before 10."""
    number = next(word for word in place_words(item.at[0]) if word[-1].isdigit())
    return [(int(p), "") if p.isdigit() else (1_000, p) for p in number.split(".")]


def _marked(item: Item, records: Path) -> str:
    by = "; ".join(_shown(item.by, records))
    return f"**{item.mark}**: {by}" if by else f"**{item.mark}**"


def _shown(by: Sequence[ShownBy], records: Path) -> Iterator[str]:
    """Yield what shows an item; parts of one experiment together."""
    for name, parts in groupby(by, lambda shown: shown.experiment):
        if name:
            said = [_part(shown, records) for shown in parts]
            yield f"{name}: {', '.join(filter(None, said))}" if any(said) else name
            continue
        for shown in parts:
            page = shown.text.removeprefix("docs/")
            linked = f"[{page}](../../{page})"
            yield linked if page != shown.text else f"`{shown.text}`"


def _part(shown: ShownBy, records: Path) -> str:
    scale = f" at `{shown.scale}`" if shown.scale else ""
    if shown.part != "figure":
        part = f"{shown.part} {shown.name}" if shown.part == "table" else f"({shown.name})"
        return (part if shown.part else "") + scale
    drawn = sorted(records.glob(shown.pictures))
    if not drawn:
        return f"figure {shown.name}{scale}"
    record = drawn[-1].parent.name
    return f"figure [{shown.name}](../../../records/{record}/README.md){scale}"
