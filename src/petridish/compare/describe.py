"""What a table holds, and what of it a method can learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from petridish.compare.cautions import further_notes, leaks
from petridish.compare.cleaning import (
    CleanColumn,
    Column,
    balance,
    class_name,
    class_names,
    clean,
    count_rows,
    describe_column,
    shortened,
    write_number,
)
from petridish.errors import UserError, nearest
from petridish.estimator.arguments import reads_as_number
from petridish.pages import percent

Floats = NDArray[np.float64]
Task = Literal["classification", "regression"]

FEWEST_ROWS = 40
FEWEST_OF_A_CLASS = 5
MOST_CLASSES_AS_NUMBERS = 20  # a whole number with more distinct values is a quantity
MOST_CLASSES = 50


@dataclass(frozen=True)
class Description:
    """What was found in a table.

    Attributes
    ----------
    rows, usable : int
        Rows of the file, and those that take part: with a target, of a class that is not too rare.
    columns : tuple of Column
        All but the target, in the order of the file.
    classes : tuple of (name, rows)
        The most frequent first; empty in regression.
    spread : dict
        Least, quartiles, greatest, mean and deviation of the target; empty in classification.
    notes, warnings : tuple of str
        Sentences: what was done to the table, and what may mislead.
    """

    source: str
    rows: int
    usable: int
    target: str
    task: Task
    columns: tuple[Column, ...]
    classes: tuple[tuple[str, int], ...]
    spread: dict[str, float]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that methods see."""
        return tuple(column for column in self.columns if column.used)

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {
            "file": self.source,
            "rows": self.rows,
            "usable_rows": self.usable,
            "target": self.target,
            "task": self.task,
            "columns": [
                {
                    "name": column.name,
                    "kind": column.kind,
                    "missing": column.missing,
                    "distinct": column.distinct,
                    "summary": column.summary,
                    "left_out": column.left_out or None,
                }
                for column in self.columns
            ],
            "classes": dict(self.classes) or None,
            "spread": self.spread or None,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True)
class NumericTable:
    """The table as numbers: what methods are given.

    Attributes
    ----------
    x : array, shape (row, column)
        NaN where a value is missing. A category is the place of its name among the sorted names, a
        date the days since 1970.
    y : array, shape (row,)
        Values; in classification whole numbers, places in `classes`.
    categorical : array of bool, shape (column,)
    """

    names: tuple[str, ...]
    categorical: NDArray[np.bool_]
    x: Floats
    y: NDArray[Any]
    classes: tuple[str, ...]

    @property
    def task(self) -> Task:
        """The kind of prediction."""
        return "classification" if self.classes else "regression"

    def __len__(self) -> int:
        return len(self.y)


def examine(
    frame: pl.DataFrame,
    target: str,
    *,
    source: str = "the table",
    drop: Sequence[str] = (),
    task: Task | None = None,
) -> tuple[Description, NumericTable]:
    """Find out what a table holds, and turn it into numbers.

    Parameters
    ----------
    frame : pl.DataFrame
        The table.
    target : str
        The column to predict.
    source : str
        What sentences call the table.
    drop : sequence of str
        Columns that shall take no part.
    task : {"classification", "regression"}, optional
        If not given: classification of texts, booleans and whole numbers with at most
        ``MOST_CLASSES_AS_NUMBERS`` distinct values, regression otherwise.
    """
    _check_names(frame, target, drop, source)
    goal = clean(frame[target], source)
    kept = goal.series.is_not_null()
    _check_target(goal, target, source)
    task = task or _usual_task(goal)
    notes, warnings = [goal.note] if goal.note else [], []
    lost = len(frame) - int(kept.sum())
    if lost:
        notes.append(f"{count_rows(lost)} without a value of {target} left out.")
    if task == "classification":
        kept, note = _without_rare_classes(goal.series, kept, target, source)
        notes += note
    elif goal.kind == "words":
        raise UserError(
            f"The target {target} of {source} holds texts such as {_example(goal.series)}, which "
            "have no regression. Give --task classification, or a column of numbers."
        )
    frame, y = frame.filter(kept), goal.series.filter(kept)
    _check_varied(y, target, source)
    columns, arrays = _columns(frame, target, drop, source, notes)
    described = Description(
        source=source,
        rows=len(kept),
        usable=len(frame),
        target=target,
        task=task,
        columns=columns,
        classes=balance(y) if task == "classification" else (),
        spread={} if task == "classification" else _spread(y),
        notes=(),
        warnings=(),
    )
    examples = _examples(described, arrays, y)
    notes += further_notes(described, frame.select(*arrays, target))
    warnings += leaks(described, examples)
    return replace(described, notes=tuple(notes), warnings=tuple(warnings)), examples


def _columns(
    frame: pl.DataFrame, target: str, drop: Sequence[str], source: str, notes: list[str]
) -> tuple[tuple[Column, ...], dict[str, pl.Series]]:
    """Describe all columns but the target; return the values of those that take part too."""
    columns, arrays = [], {}
    for name in frame.columns:
        if name == target:
            continue
        if name in drop:
            columns.append(Column(name, "dropped", 0, 0, "", left_out="named by --drop"))
            continue
        values = clean(frame[name], source)
        column = describe_column(name, values)
        columns.append(column)
        if column.used:
            arrays[name] = values.series
            notes += [values.note] if values.note else []
    if not arrays:
        why = "; ".join(f"{column.name}: {column.left_out}" for column in columns[:5])
        more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
        raise UserError(
            f"{source} has no column to predict {target} from"
            + (f" ({why}{more})" if columns else "")
            + ". Give a table with columns that vary, and do more than number or name its rows."
        )
    return tuple(columns), arrays


# The target


def _check_names(frame: pl.DataFrame, target: str, drop: Sequence[str], source: str) -> None:
    for name in (target, *drop):
        if name in frame.columns:
            continue
        if all(reads_as_number(column) for column in frame.columns):
            raise UserError(
                f"{source} has no column called {name!r}: its first line holds numbers. Put a line "
                "of column names first."
            )
        hint = nearest(name, frame.columns)
        if hint.startswith("Known") and frame.width > 20:
            hint = f"Known: {', '.join(frame.columns[:20])} and {frame.width - 20} more."
        raise UserError(f"{source} has no column called {name!r}. {hint}")
    if target in drop:
        raise UserError(f"The target {target} is named by --drop as well. Name it once.")


def _check_target(goal: CleanColumn, target: str, source: str) -> None:
    if goal.kind == "nothing":
        raise UserError(
            f"The target {target} of {source} has no value in any row. Give another column."
        )
    if goal.kind in ("nested", "date"):
        what = "lists or records" if goal.kind == "nested" else "dates"
        raise UserError(
            f"The target {target} of {source} holds {what}. Give a column of numbers or classes."
        )
    _check_rows(int(goal.series.is_not_null().sum()), target, source)


def _check_rows(rows: int, target: str, source: str) -> None:
    if rows < FEWEST_ROWS:
        raise UserError(
            f"{source} has {count_rows(rows)} with a usable value of {target}. A comparison needs "
            f"at least {FEWEST_ROWS}."
        )


def _check_varied(y: pl.Series, target: str, source: str) -> None:
    if y.n_unique() == 1:
        raise UserError(
            f"The target {target} of {source} is {class_name(y[0])} in all {count_rows(len(y))}: "
            "there is nothing to predict. Give a column that varies."
        )


def _usual_task(goal: CleanColumn) -> Task:
    if goal.kind in ("words", "truth"):
        return "classification"
    present = goal.series.drop_nulls()
    whole = (present == present.floor()).all()
    few = present.n_unique() <= MOST_CLASSES_AS_NUMBERS
    return "classification" if whole and few else "regression"


def _without_rare_classes(
    y: pl.Series, kept: pl.Series, target: str, source: str
) -> tuple[pl.Series, list[str]]:
    """Leave out classes too rare for a training and a test part."""
    present = y.filter(kept)
    classes = balance(present)
    if len(classes) > MOST_CLASSES:
        raise UserError(
            f"The target {target} of {source} has {len(classes):,} different values in "
            f"{count_rows(len(present))}: it looks like free text or an identifier. Give a column "
            f"with at most {MOST_CLASSES} classes, or of numbers."
        )
    rare = [name for name, rows in classes if rows < FEWEST_OF_A_CLASS]
    if not rare or len(classes) == 1:
        return kept, []
    left = kept & ~class_names(y).is_in(rare).fill_null(value=False)
    rows = int(kept.sum()) - int(left.sum())
    if len(classes) - len(rare) < 2:
        raise UserError(
            f"The target {target} of {source} has fewer than two classes with at least "
            f"{FEWEST_OF_A_CLASS} rows ({count_rows(len(present))} of {len(classes)} classes). "
            "Give more rows, or a target with fewer classes."
        )
    _check_rows(int(left.sum()), target, source)
    shown = ", ".join(shortened(name) for name in rare[:5]) + (", …" if len(rare) > 5 else "")
    return left, [
        f"{count_rows(rows)} left out, of classes with fewer than {FEWEST_OF_A_CLASS} ({shown})."
    ]


def _example(series: pl.Series) -> str:
    return repr(shortened(str(series.drop_nulls()[0])))


def _spread(y: pl.Series) -> dict[str, float]:
    values = y.to_numpy()
    quartiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    names = ("least", "lower_quartile", "median", "upper_quartile", "greatest")
    found = dict(zip(names, map(float, quartiles), strict=True))
    return found | {"mean": float(values.mean()), "deviation": float(values.std(ddof=1))}


# Numbers


def _examples(described: Description, arrays: dict[str, pl.Series], y: pl.Series) -> NumericTable:
    columns = [_codes(series)[0] for series in arrays.values()]
    classes: tuple[str, ...] = ()
    goal: NDArray[Any] = y.cast(pl.Float64).to_numpy() if not described.classes else np.array([])
    if described.classes:
        codes, classes = _codes(class_names(y))
        goal = codes.astype(np.int64)
    kinds = {column.name: column.kind for column in described.columns}
    return NumericTable(
        names=tuple(arrays),
        categorical=np.array([kinds[name] == "categorical" for name in arrays]),
        x=np.column_stack(columns),
        y=goal,
        classes=classes,
    )


def _codes(series: pl.Series) -> tuple[Floats, tuple[str, ...]]:
    """Return values as floats: of texts, their places among the sorted ones."""
    if series.dtype != pl.String:
        return series.cast(pl.Float64).fill_null(float("nan")).to_numpy(), ()
    levels = series.drop_nulls().unique().sort()
    places = series.replace_strict(levels, np.arange(len(levels)), return_dtype=pl.Float64)
    return places.fill_null(float("nan")).to_numpy(), tuple(levels)


def target_line(description: Description) -> str:
    """Return a sentence on what is to be predicted, and how its values lie."""
    if description.classes:
        shares = [
            f"{name} {percent(rows / description.usable)}" for name, rows in description.classes[:8]
        ]
        more = f" and {len(description.classes) - 8} more" if len(description.classes) > 8 else ""
        return (
            f"{description.target} has {len(description.classes)} classes: "
            f"{', '.join(shares)}{more}."
        )
    found = {name: write_number(value) for name, value in description.spread.items()}
    return (
        f"{description.target} runs from {found['least']} to {found['greatest']}, median "
        f"{found['median']}, middle half {found['lower_quartile']} to {found['upper_quartile']}, "
        f"standard deviation {found['deviation']}."
    )
