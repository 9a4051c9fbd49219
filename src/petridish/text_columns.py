"""Rows of text in aligned columns, as commands print them."""

from __future__ import annotations

from collections.abc import Container, Sequence


def in_columns(rows: Sequence[Sequence[str]], *, left: Container[int] = ()) -> list[str]:
    """Return one line per row: the columns in `left` are aligned to the left, others to the right.

    >>> in_columns([("n", "name"), ("100", "a")], left={1})
    ['  n  name', '100  a']
    """
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.ljust(size) if place in left else text.rjust(size)
            for place, (text, size) in enumerate(zip(row, sizes, strict=True))
        ).rstrip()
        for row in rows
    ]
