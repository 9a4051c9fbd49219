"""Tables of Markdown pages that are written by the program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Return a text for a cell of a table: its signs are no markup, but for code in backticks."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"[|*_<\[\]]", r"\\\g<0>", part) for part in parts[::2]]
    return "`".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, with a line after it; cells are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
