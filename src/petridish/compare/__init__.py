"""A user's table: what it holds, and which method predicts a column of it best."""

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
