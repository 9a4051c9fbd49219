"""The pages that `make docs` writes anew, which `python docs/written_pages.py` does without a site.

The reference of the public names, the gallery, the scoreboard, «Where is Figure …?», and the
explorer's page of some records.
"""

from __future__ import annotations

import json
import pkgutil
import re
import shutil
from importlib import import_module
from inspect import isclass, isroutine, unwrap
from pathlib import Path
from typing import Any

import petridish.theory
from petridish.chapters import EXPERIMENTS
from petridish.chapters.inventory import inventory
from petridish.explorer.one_file import write_file
from petridish.publish.markdown import cell
from petridish.publish.scoreboard import recorded, scoreboard_page, scores
from petridish.publish.where import where_pages

ROOT = Path(__file__).parent.parent
# Written at each build; git ignores them.
API = ROOT / "docs/reference/api"
GALLERY = ROOT / "docs/results/gallery.md"
SCOREBOARD = ROOT / "docs/results/scoreboard.md"
WHERE = ROOT / "docs/results/where"
EXPLORER = ROOT / "build/explorer/explorer.html"
LINK = '<a href="../../explorer.html">Some of the records as a page to explore</a>.'
EXPLORED = (  # records of grids
    *("2026-11-16-PF-1-panel", "2026-11-16-PF-2-laptop", "2026-11-16-PF-3-laptop"),
    *("2026-11-18-PF-4-laptop", "2026-11-16-HP-9-grid"),
)
ROOMS = ["tasks", "models", "training", "sweeps", "store", "statistics", "rules", "figures"]
ROOMS += ["figures.importance", "experiment", "testing", "seeds", "groups"]
THEORY = [
    found.name
    for found in pkgutil.walk_packages(petridish.theory.__path__, "petridish.theory.")
    if not found.ispkg
]
MODULES = ["petridish", *(f"petridish.{room}" for room in ROOMS), *THEORY]


def kind_of(value: object) -> str:
    """Return what autodoc calls a value; a function that remembers its results is one, too."""
    if isclass(value):
        return "class"
    return "function" if callable(value) and isroutine(unwrap(value)) else "data"


def public_names(module: Any) -> list[str]:
    """Return what a module offers: its `__all__`, or else the classes and functions it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if name[0] != "_"
        and kind_of(value) != "data"
        and getattr(value, "__module__", None) == module.__name__
    ]


def about_module(module: str) -> str:
    """Return the first line of a module's docstring, for Markdown."""
    return cell((import_module(module).__doc__ or "").strip().splitlines()[0])


def constant(name: str, value: object) -> str:
    """Return the entry of a constant: a dictionary's keys, or the value itself."""
    keys = isinstance(value, dict) and all(isinstance(key, str) for key in value)
    shown = ", ".join(f"``{each}``" for each in value) if keys else f"``{value!r}``"
    return f".. py:data:: {name}\n\n   {'By name: ' if keys else ''}{shown}\n"


def write_reference() -> None:
    """Write one page per public module: its names with their first sentence, then each in full.

    A name that a room has already described is in the table of `petridish` alone, with a link.
    """
    shutil.rmtree(API, ignore_errors=True)
    API.mkdir()
    described: dict[int, str] = {}
    for module in [*MODULES[1:], MODULES[0]]:
        loaded = import_module(module)
        rows, full = [], []
        for name in public_names(loaded):
            value = getattr(loaded, name)
            kind = kind_of(value)
            if kind == "data":
                full.append(f".. py:currentmodule:: {module}\n\n{constant(name, value)}")
                continue
            if id(value) not in described:
                described[id(value)] = f"{module}.{name}"
                full.append(f".. auto{kind}:: {name}\n")
            rows.append(f"   ~{described[id(value)]}")
        about = f".. automodule:: {module}\n   :no-members:\n"
        body = "\n".join([about, ".. autosummary::\n   :nosignatures:\n", *rows, "", *full])
        (API / f"{module}.md").write_text(
            f"# {module}\n\n```{{eval-rst}}\n{body}\n```\n", encoding="utf-8"
        )
    links = "\n".join(f"- [{module}]({module}.md): {about_module(module)}" for module in MODULES)
    (API / "README.md").write_text(f"# API\n\nThe public names, by module.\n\n{links}\n")


def write_gallery() -> None:
    """Write the page of all figures of the records, each record with its commands."""
    page = [
        "# Gallery\n\nEvery figure of [the records](../../records/README.md), with its command. "
        f"{LINK}\n"
    ]
    for spec in sorted((ROOT / "records").glob("*/spec.json"), key=by_experiment):
        folder, declared = spec.parent, json.loads(spec.read_text(encoding="utf-8"))
        readme = (folder / "README.md").read_text(encoding="utf-8")
        place = f"../../records/{folder.name}"
        title = readme.splitlines()[0].lstrip("# ")
        page.append(f"## [{title}]({place}/README.md), {declared['scale']}\n")
        if declared["runs"] < declared["of"]:
            part = f"{declared['runs']} of {declared['of']} runs"
            page.append(f"{part}; [the record]({place}/README.md) says which.\n")
        commands = commands_of(declared["id"], declared["scale"], readme, folder)
        page.append("```\n" + "\n".join(commands) + "\n```\n")
        page.append(pictures(folder, place))
    GALLERY.write_text("\n".join(page), encoding="utf-8")


def commands_of(name: str, scale: str, readme: str, folder: Path) -> list[str]:
    """Return the commands that train and draw a record, with the settings that its README names."""
    written = " ".join(readme.split())
    asked = re.search(rf"`petridish record {name} [^`]*?((?: --set \S+)+)`", written)
    choice = f"{name} --scale {scale}{asked[1] if asked else ''}"
    bench = re.search(r"`(petridish tabular bench [^`]*)`", written)
    if bench:  # draws what it has run
        return ["petridish tabular fetch --out DIR", bench[1]]
    commands = [f"petridish run {choice}", f"petridish figure {choice}"]
    drawn = {figure.stem for figure in folder.glob("*.png")}
    if "mixtures" in drawn - EXPERIMENTS[name].figures.keys():
        commands.append(f"petridish frontier {choice} --out petridish-out")
    return commands


def pictures(folder: Path, place: str) -> str:
    """Return the figures of a record, beside each other; `place` leads from the page to them."""
    figures = [
        f":::{{figure}} {place}/{figure.name}\n:alt: {folder.name[11:]}, {figure.stem}\n"
        f":loading: lazy\n\n{figure.stem}\n:::\n"
        for figure in sorted(folder.glob("*.png"))
    ]
    return "\n".join(["::::{container} gallery\n", *figures, "::::\n"]) if figures else ""


def by_experiment(spec: Path) -> tuple[str, int, str]:
    """Order records by chapter and number: PF-2 comes before PF-10."""
    chapter, number, rest = re.fullmatch(r"[\d-]{10}-(\w+?)-(\d+)(.*)", spec.parent.name).groups()
    return chapter, int(number), rest


def write_scoreboard() -> None:
    """Write the page of all claims with their verdicts in the records."""
    found = scores(EXPERIMENTS.values(), recorded(ROOT / "records"))
    page = scoreboard_page(found, "../../records").replace("\n\n", f"\n\n{LINK}\n\n", 1)
    SCOREBOARD.write_text(page, encoding="utf-8")


def write_explorer() -> None:
    """Write the explorer's page of some records as one file, which the site links to."""
    EXPLORER.parent.mkdir(parents=True, exist_ok=True)
    write_file([], ROOT / "records", EXPLORER, chosen=EXPLORED)


def write_where() -> None:
    """Write the pages that lead from a place in a paper to what shows it."""
    shutil.rmtree(WHERE, ignore_errors=True)
    WHERE.mkdir()
    for name, text in where_pages(inventory(), ROOT / "records").items():
        (WHERE / name).write_text(text, encoding="utf-8")


def write_all() -> None:
    """Write all of them."""
    write_reference()
    write_gallery()
    write_scoreboard()
    write_where()
    write_explorer()


if __name__ == "__main__":
    write_all()
