"""Rows of text in aligned columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from petridish.text_columns import in_columns

CELLS = st.text("abc0123456789", min_size=1, max_size=6)


def test_a_table_by_hand() -> None:
    """Numbers to the right, names to the left; a line ends with its last letter."""
    rows = [("n", "name", ""), ("100", "a", "x")]

    assert in_columns(rows, left={1, 2}) == ["  n  name", "100  a     x"]
    assert in_columns(rows) == ["  n  name", "100     a  x"]


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5))
def test_lines_have_the_cells_of_their_rows_below_each_other(
    rows: list[tuple[str, str, str]],
) -> None:
    """Right-aligned columns end at one place in every line, left-aligned ones begin at one."""
    lines = in_columns(rows, left={1})

    assert [tuple(line.split()) for line in lines] == rows
    first, second = (max(len(row[place]) for row in rows) for place in (0, 1))
    for line, row in zip(lines, rows, strict=True):
        assert line[:first].endswith(row[0])
        assert line[first + 2 :].startswith(row[1])
        assert line[first + second + 4 :].strip() == row[2]
