"""`python docs/dead_links.py build/site`: follow every link of the built site from its first page.

Sphinx checks what it resolves itself; links that it takes over as they are, such as those of
figures, are checked here. Fails if a page, a picture or an anchor is missing.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Links(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag leads to, and what leads to it."""
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def dead_links(site: Path) -> list[str]:
    """Return «page -> link» of every link to something that is not there, in order.

    Pages that no other page leads to are left out: a build leaves those of an earlier one behind.
    """
    pages = {(site / "index.html").resolve(): Links(site / "index.html")}
    open_pages = list(pages)
    dead = []
    while open_pages:
        page = open_pages.pop()
        for link in pages[page].links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if target.suffix == ".html" and target.is_file() and target not in pages:
                pages[target] = Links(target)
                open_pages.append(target)
            lost = target in pages and unquote(parts.fragment) not in {"", *pages[target].anchors}
            if lost or not target.is_file():
                dead.append(f"{page.relative_to(site.resolve())} -> {link}")
    return sorted(dead)


if __name__ == "__main__":
    found = dead_links(Path(sys.argv[1]))
    print("\n".join(found))
    sys.exit(f"{len(found)} dead links." if found else 0)
