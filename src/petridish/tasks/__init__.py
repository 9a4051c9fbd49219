"""What is to be learned, one file a family."""

from petridish.tasks.base import Examples, Finite, Task
from petridish.tasks.boolean import SparseAnd, SparseMajority, SparseOr, TruthTable
from petridish.tasks.group import GroupProduct
from petridish.tasks.parity import SparseParity
from petridish.tasks.table import Table

TASKS: dict[str, type] = {
    task.name: task
    for task in (
        *(SparseParity, SparseAnd, SparseOr, SparseMajority, TruthTable, Table, GroupProduct),
    )
}

__all__ = [
    "TASKS",
    "Examples",
    "Finite",
    "GroupProduct",
    "SparseAnd",
    "SparseMajority",
    "SparseOr",
    "SparseParity",
    "Table",
    "Task",
    "TruthTable",
]
