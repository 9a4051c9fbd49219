"""Someone's own table: what it holds, and which method predicts a column of it best."""

from petridish.tabular.comparison import Comparison, compare
from petridish.tabular.describe import Description, Examples, examine
from petridish.tabular.page import comparison_page
from petridish.tabular.ranking import Standing, findings, standings
from petridish.tabular.reading import read_table

__all__ = [
    "Comparison",
    "Description",
    "Examples",
    "Standing",
    "compare",
    "comparison_page",
    "examine",
    "findings",
    "read_table",
    "standings",
]
