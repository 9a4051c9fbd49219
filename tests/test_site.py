"""The site: its written pages, and the search for dead links that ends `make docs`."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


def script(name: str) -> ModuleType:
    """Return a script of the site as a module; `conf` would need Sphinx."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_has_every_public_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the table of its room or as an entry, functions that remember their results too."""
    written = script("written_pages")
    monkeypatch.setattr(written, "API", tmp_path / "api")
    written.write_reference()
    entries = {
        file.stem: set(
            re.findall(
                r"^(?:   ~[\w.]+\.|\.\. \S+:: )(\w+)$", file.read_text("utf-8"), re.MULTILINE
            )
        )
        for file in (tmp_path / "api").glob("petridish*.md")
    }
    missing = [
        f"{module}.{name}"
        for module, found in entries.items()
        for name in getattr(importlib.import_module(module), "__all__", ())
        if name not in found
    ]

    assert missing == []
    assert "decrease_test" in entries["petridish.statistics"]
    assert "group_margin" in entries["petridish.theory.features.margins"]
    assert {"Streams", "unpack_bits"} <= entries["petridish.seeds"]
    assert "plot_importances" in entries["petridish.figures.importance"]


def test_the_gallery_says_how_each_figure_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings that the record names, the part of the runs, the data of tables, other commands."""
    written = script("written_pages")
    monkeypatch.setattr(written, "GALLERY", tmp_path / "gallery.md")
    written.write_gallery()
    text = (tmp_path / "gallery.md").read_text(encoding="utf-8")
    settings = "PF-1 --scale panel --set r=10,30,100,300,1000,3000"

    assert re.findall(r"^\d+ of \d+ runs", text, re.MULTILINE) == [
        "2 of 6 runs",
        "11 of 13 runs",
        "33880 of 38080 runs",  # networks without an output layer are in both arms
        "1006 of 1206 runs",
        "1850 of 3150 runs",
        "156 of 180 runs",
        "356 of 420 runs",
        "9295 of 10800 runs",
        "230 of 400 runs",
        "363 of 414 runs",
        "4560 of 5180 runs",  # arms that share runs count them twice
        "286 of 1020 runs",
        "1462 of 14300 runs",  # a search
    ]
    assert f"petridish figure {settings}\npetridish frontier {settings} --out" in text
    assert "petridish tabular bench --data DIR --experiment PF-6B --scale nets" in text
    assert not re.search("petridish (run|figure) PF-6", text)
    drawn = {file.as_posix() for file in (ROOT / "records").glob("*/*.png")}
    shown = re.findall(r"^:::\{figure\} \.\./\.\./(\S+)$", text, re.MULTILINE)
    assert {(ROOT / file).as_posix() for file in shown} == drawn


def test_a_dead_link_of_the_site_is_found(tmp_path: Path) -> None:
    """A page, a picture or an anchor that is missing; a page that no link leads to counts not."""
    pages = {
        "index.html": '<a href="a/page.html">a</a><a href="https://elsewhere.invalid/x">b</a>',
        "a/page.html": '<h1 id="here">h</h1><a href="#here">1</a><a href="#lost">2</a>'
        '<img src="../drawn.png"><img src="undrawn.png"><a href="../b.html#x%20y">3</a>'
        '<a href="../gone.html">4</a>',
        "b.html": '<a name="x y"></a><a href="a/page.html#nowhere">5</a>',
        "old.html": '<a href="gone.html">6</a>',
    }
    (tmp_path / "a").mkdir()
    (tmp_path / "drawn.png").touch()
    for name, text in pages.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    assert script("dead_links").dead_links(tmp_path) == [
        "a/page.html -> #lost",
        "a/page.html -> ../gone.html",
        "a/page.html -> undrawn.png",
        "b.html -> a/page.html#nowhere",
    ]
