"""Which curves, arrays and weights the figures and tables of an experiment read.

They are most of what a store holds, and few ask for them: a command decodes what is declared and no
more. A function declares by `@reads(…)`, and is given all that its runs keep if it declares
nothing; a rule declares by inheriting `Reads`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    import polars as pl

Function = TypeVar("Function", bound=Callable[..., Any])
NO_CURVES = "these runs kept no curves"


def reads(*columns: str) -> Callable[[Function], Function]:
    """Declare the curves, arrays and weights that a figure or a table reads."""

    def declared(function: Function) -> Function:
        vars(function)["columns"] = columns
        return function

    return declared


def curve_columns(*names: str) -> tuple[str, ...]:
    """Return the columns of curves, and that of the steps at which they were measured."""
    return ("curve.step", *(f"curve.{name}" for name in dict.fromkeys(names)))


def missing_curves(table: pl.DataFrame, *names: str) -> str:
    """Return what is missing where no run kept curves, or none a curve of these names; else ""."""
    for column in curve_columns(*names):
        if column not in table.columns or table[column].is_null().all():
            name = column.removeprefix("curve.")
            missing = f"these runs did not record {name}: name it in evaluation.instruments"
            return NO_CURVES if name == "step" else missing
    return ""


def columns_read(parts: Iterable[object]) -> tuple[str, ...] | Literal["all"]:
    """Return the columns that figures or tables read; "all" where one declares nothing."""
    found: dict[str, None] = {}
    for part in parts:
        own = part.func if isinstance(part, partial) else part
        columns = getattr(own, "columns", None)
        if columns is None:
            return "all"
        found |= dict.fromkeys(columns)
    return tuple(found)
