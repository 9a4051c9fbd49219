"""Categorical columns of a data frame as numbers: one input per category."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OneHotEncoder

from petridish.errors import UserError
from petridish.estimator.arguments import reads_as_number

_AMOUNT = re.compile(r"^[^\w]*\d[\d.,\s]*([eE][+-]?\d+)?\W*(USD|EUR|GBP|CHF|JPY)?$")
MOST = 30  # inputs per column; rarer categories share the last


@dataclass(frozen=True)
class Categories:
    """What `fit` has found in a data frame with columns that are not numbers.

    Attributes
    ----------
    numeric, categorical : tuple of str
        The names of the columns.
    encoder : OneHotEncoder
        Fitted to the categorical columns. A missing value is a category; one that `fit` has not
        seen counts as rare where there are rare ones, and else as none.
    owner : array of int, shape (input,)
        The column of the frame that each number comes from.
    """

    numeric: tuple[str, ...]
    categorical: tuple[str, ...]
    encoder: OneHotEncoder
    owner: NDArray[np.intp]

    @classmethod
    def of(cls, frame: Any) -> Categories | None:
        """Return the categories of a pandas or Polars frame; None if all of X is numbers."""
        if not hasattr(frame, "columns") or not hasattr(frame, "dtypes"):
            return None
        names = list(frame.columns)
        other = [name for name in names if not _is_numeric(frame[name])]
        if not other or not all(isinstance(name, str) for name in names):
            return None
        for name in other:
            _refuse_numbers(frame[name])
        numeric = [name for name in names if name not in other]
        encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist", max_categories=MOST, sparse_output=False
        ).fit(_texts(frame, other))
        widths = [
            len(encoder._compute_transformed_categories(place)) for place in range(len(other))
        ]
        places = [names.index(name) for name in numeric]
        places += np.repeat([names.index(name) for name in other], widths).tolist()
        return cls(tuple(numeric), tuple(other), encoder, np.array(places, np.intp))

    def numbers(self, frame: Any) -> NDArray[np.float64]:
        """Return a frame as numbers: the numeric columns, then one column per category."""
        missing = [n for n in (*self.numeric, *self.categorical) if n not in _names(frame)]
        if missing:
            raise UserError(
                f"The model was fitted to a data frame, and X has no column {missing[0]!r}. Give a "
                f"data frame with the columns {', '.join((*self.numeric, *self.categorical))}."
            )
        columns = [np.asarray(frame[name], np.float64) for name in self.numeric]
        return np.column_stack([*columns, self.encoder.transform(_texts(frame, self.categorical))])

    def per_column(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum the values of encoded columns to one value per column of the frame."""
        sums = np.zeros(len(self.numeric) + len(self.categorical))
        np.add.at(sums, self.owner, values)
        return sums


def _names(X: Any) -> list[Any]:
    """Return the names of the columns of a data frame; none of an array."""
    return list(X.columns) if hasattr(X, "columns") else []


def refuse_texts(X: Any) -> None:
    """Refuse an array with texts that are no numbers: only a data frame names its categories."""
    kinds = [X.dtype] if hasattr(X, "dtype") else getattr(X, "dtypes", [np.dtype(object)])
    if not any(getattr(kind, "kind", "") in ("O", "U", "T") for kind in kinds):
        return
    values = np.asarray(X, object)
    for place, column in enumerate(values.T if values.ndim == 2 else ()):
        for value in column:
            if isinstance(value, str) and not reads_as_number(value):
                raise UserError(
                    f"The column {place} of X holds the text {value!r}. Give a pandas or Polars "
                    "data frame whose columns are named by texts, which may hold categories; or "
                    "turn the column into numbers."
                )


def refuse_missing(y: Any) -> None:
    """Refuse a target of texts with missing values, which NumPy could not sort."""
    values = np.asarray(y)
    if values.dtype != object or not values.ndim:
        return
    missing = sum(v is None or type(v).__name__ == "NAType" or v != v for v in values.ravel())
    if missing:
        raise UserError(
            f"y has no value in {missing} of {len(values)} rows. Leave these rows out of X and y."
        )


def _refuse_numbers(column: Any) -> None:
    """Refuse amounts written as texts, which would become categories by the hundred."""
    if "categor" in str(column.dtype).lower() or "enum" in str(column.dtype).lower():
        return
    texts = {str(value) for value in column.to_list() if isinstance(value, str)}
    numbers = sorted(text for text in texts if _AMOUNT.search(text))
    if len(texts) > MOST and len(numbers) > 0.9 * len(texts):
        raise UserError(
            f"The column {column.name} holds {len(texts)} different texts that look like numbers, "
            f"such as {numbers[0]!r}. Turn them into numbers; or into categories, if they are."
        )


def _is_numeric(column: Any) -> bool:
    kind = column.dtype
    if hasattr(kind, "is_temporal"):  # Polars
        dates, numeric = kind.is_temporal(), kind.is_numeric() or str(kind) == "Boolean"
    else:
        dates, numeric = kind.kind in "mM", kind.kind in "biuf"
    if dates:
        raise UserError(
            f"The column {column.name} holds dates or times. Turn it into numbers, such as days "
            "since a date, or leave it out."
        )
    if not numeric and getattr(kind, "kind", "") == "O" and str(kind) == "object":
        try:  # numbers that pandas keeps as objects
            np.asarray(column, np.float64)
        except (TypeError, ValueError):
            return False
        return True
    return bool(numeric)


def _texts(frame: Any, names: list[str] | tuple[str, ...]) -> NDArray[Any]:
    """Return columns as texts, None where a value is missing, shape (row, column)."""
    columns = []
    for name in names:
        column = frame[name]
        missing = np.asarray(column.is_null() if hasattr(column, "is_null") else column.isna())
        values = column.to_list() if hasattr(column, "to_list") else list(column)
        columns.append([None if gone else str(v) for v, gone in zip(values, missing, strict=True)])
    return np.array(columns, object).T
