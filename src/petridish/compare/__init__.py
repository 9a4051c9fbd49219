"""A user's table: what it holds, and which method predicts a column of it best.

Workers import the fits alone: what draws and judges loads with its names.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from petridish.compare.comparison import Comparison, compare
    from petridish.compare.describe import Description, NumericTable, examine
    from petridish.compare.page import comparison_page
    from petridish.compare.ranking import Standing, findings, standings
    from petridish.compare.reader import read_table

__all__ = [
    "Comparison",
    "Description",
    "NumericTable",
    "Standing",
    "compare",
    "comparison_page",
    "examine",
    "findings",
    "read_table",
    "standings",
]
_HOMES = {
    **dict.fromkeys(("Comparison", "compare"), "comparison"),
    **dict.fromkeys(("Description", "NumericTable", "examine"), "describe"),
    **dict.fromkeys(("Standing", "findings", "standings"), "ranking"),
    "comparison_page": "page",
    "read_table": "reader",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"petridish.compare.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
