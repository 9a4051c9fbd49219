"""What one column holds: numbers, truths, words or dates, and whether one can learn from it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from petridish.errors import UserError

Kind = Literal[
    "numeric",
    "boolean",
    "categorical",
    "date",
    "text",
    "identifier",
    "constant",
    "empty",
    "nested",
    "dropped",
]

MOST_LEVELS = 255  # of a categorical column: what HistGradientBoosting takes
HUGE = 1e30  # its square still fits where methods compute

_ID_NAME = re.compile(r"(?i)^(.*[\s_.-])?(id|idx|index|key|uuid|guid|row|nr)$|^unnamed \d+$")
_SIGN = r"([$€£¥₹%]|\b(?:USD|EUR|GBP|CHF|JPY)\b)"  # of money, or percent
_ENGLISH = r"^[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d*)?$|^[+-]?\.\d+$"  # 1,000.50
_CONTINENTAL = r"^[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d*)?$"  # 1.000,50
_NEGATIVE = r"^\(\s*([^()+-]*?)\s*\)$"  # (2,346), as in accounts
_ID_CAMEL = re.compile(r"[a-z](Id|ID)$")


@dataclass(frozen=True)
class Column:
    """One column, and why it takes no part if it does not."""

    name: str
    kind: Kind
    missing: int
    distinct: int
    summary: str
    left_out: str = ""

    @property
    def used(self) -> bool:
        """Whether methods see it."""
        return not self.left_out


@dataclass(frozen=True)
class CleanColumn:
    """A column, cleaned: of floats, booleans or texts, null where missing."""

    kind: Literal["number", "truth", "words", "date", "nothing", "nested"]
    series: pl.Series
    summary: str = ""
    note: str = ""


def clean(series: pl.Series, source: str) -> CleanColumn:
    """Bring a column to floats, booleans or texts."""
    kind = series.dtype
    if kind.is_nested() or kind in (pl.Binary, pl.Object):
        return CleanColumn("nested", series)
    if kind in (pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
    if series.dtype == pl.String:
        return _clean_words(series, source)
    if series.is_null().all():
        return CleanColumn("nothing", series)
    if kind == pl.Boolean:
        return CleanColumn("truth", series)
    if kind.is_temporal():
        return CleanColumn("date", _days(series), summary=f"{series.min()!s} to {series.max()!s}")
    numbers = series.cast(pl.Float64).fill_nan(None)
    if numbers.is_null().all():
        return CleanColumn("nothing", series)
    _check_numbers(numbers, source)
    return CleanColumn("number", numbers)


def _days(series: pl.Series) -> pl.Series:
    """Turn dates into days since 1970, times and durations into days."""
    if series.dtype == pl.Date:
        return series.to_physical().cast(pl.Float64)
    if series.dtype == pl.Time:
        return series.to_physical().cast(pl.Float64) / 86400e9
    unit: str = series.dtype.time_unit  # type: ignore[attr-defined] # a Datetime or a Duration
    return (
        series.to_physical().cast(pl.Float64) / {"ms": 86400e3, "us": 86400e6, "ns": 86400e9}[unit]
    )


def _clean_words(series: pl.Series, source: str) -> CleanColumn:
    """Strip texts; take them for numbers where all but a few odd ones are."""
    words = series.str.strip_chars()
    words = words.set(words == "", None)
    present = words.drop_nulls()
    if present.is_empty():
        return CleanColumn("nothing", series)
    numbers, note = _read_numbers(words)
    odd = words.filter(numbers.is_null() & words.is_not_null())
    if len(odd) > 0.1 * len(present) or odd.n_unique() > 3 or numbers.n_unique() <= 10:
        return CleanColumn("words", words)
    _check_numbers(numbers, source)
    if len(odd):
        texts = ", ".join(repr(text) for text in odd.unique(maintain_order=True))
        note += f"; missing where it says {texts} ({count_rows(len(odd))})"
    return CleanColumn(
        "number", numbers, note=f"{series.name} read as numbers{note}." if note else ""
    )


def _read_numbers(words: pl.Series) -> tuple[pl.Series, str]:
    """Read texts as numbers: $1,000.50, 1.000,50 €, 12.5 %, (2,346); and what a note says of it.

    All must have the same sign of money or percent, if any: amounts in two units are no quantity.
    """
    usual = words.cast(pl.Float64, strict=False).fill_nan(None)
    signs = words.str.extract(_SIGN).drop_nulls().n_unique()
    if usual.null_count() == words.null_count() or signs > 1:
        return usual, ""
    bare = words.str.replace(_SIGN, "").str.strip_chars().str.replace(_NEGATIVE, "-$1")
    styles = ((",", ".", _ENGLISH), (".", ",", _CONTINENTAL))
    group, point, form = max(styles, key=lambda style: bare.str.contains(style[2]).sum())
    fits = bare.set(~bare.str.contains(form), None)
    plain = fits.str.replace_all(group, "", literal=True).str.replace(point, ".", literal=True)
    numbers = plain.cast(pl.Float64, strict=False)
    new = numbers.is_not_null() & usual.is_null()
    if not new.any():
        return usual, ""
    place = int(new.arg_max() or 0)
    return numbers.fill_null(usual), f": {words[place]} is {numbers[place]:.12g}"


def _check_numbers(numbers: pl.Series, source: str) -> None:
    """Refuse what methods cannot compute with."""
    outside = numbers.filter((numbers.abs() > HUGE).fill_null(value=False))
    if outside.is_empty():
        return
    endless = bool(outside.is_infinite().any())
    what = "infinite values" if endless else f"numbers beyond {HUGE:g}, such as {outside[0]:g}"
    raise UserError(
        f"The column {numbers.name} of {source} holds {what} ({count_rows(len(outside))}). Correct "
        "them, leave them empty, or leave the column out with --drop."
    )


def describe_column(name: str, values: CleanColumn) -> Column:
    """Return of which kind a column is, and why it takes no part if it does not."""
    series = values.series
    if values.kind in ("nothing", "nested"):
        kind: Kind = "empty" if values.kind == "nothing" else "nested"
        missing = len(series) if kind == "empty" else series.null_count()
        reason = "no value in any row" if kind == "empty" else "lists or records, not values"
        return Column(name, kind, missing, 0, "", reason)
    present = series.drop_nulls()
    distinct, missing = present.n_unique(), series.null_count()
    summary = values.summary or _summary(present)
    if distinct == 1 and not missing:
        return Column(name, "constant", 0, 1, summary, f"one value in all rows, {present[0]}")
    if values.kind == "words":
        return _words_column(name, present, missing, distinct, summary)
    if values.kind == "number" and _is_identifier(name, present, missing, distinct):
        return Column(name, "identifier", 0, distinct, summary, "numbers the rows")
    kinds: dict[str, Kind] = {"number": "numeric", "truth": "boolean", "date": "date"}
    return Column(name, kinds[values.kind], missing, distinct, summary)


def _words_column(
    name: str, present: pl.Series, missing: int, distinct: int, summary: str
) -> Column:
    if distinct <= MOST_LEVELS and distinct <= max(10, len(present) / 4):
        return Column(name, "categorical", missing, distinct, summary)
    words = present.str.count_matches(r"\S+").mean()
    assert isinstance(words, float), "there are texts"
    summary = f"such as {shortened(present[0])}"
    if distinct >= 0.95 * len(present) and words < 2:
        return Column(name, "identifier", missing, distinct, summary, "names the rows")
    reason = f"{distinct:,} different texts in {len(present):,} rows"
    return Column(name, "text", missing, distinct, summary, reason)


def _is_identifier(name: str, present: pl.Series, missing: int, distinct: int) -> bool:
    """Return whether whole numbers name rows: all different; so called, or counting from 0 or 1."""
    if missing or distinct < len(present) or not (present == present.floor()).all():
        return False
    numbers = present.to_numpy()
    counts = numbers.min() in (0, 1) and np.ptp(numbers) == distinct - 1
    return bool(counts) or bool(_ID_NAME.search(name) or _ID_CAMEL.search(name))


def _summary(present: pl.Series) -> str:
    if present.dtype == pl.Float64:
        low, middle, high = np.quantile(present.to_numpy(), [0, 0.5, 1])
        return f"{write_number(low)} to {write_number(high)}, median {write_number(middle)}"
    top = balance(present)
    shown = ", ".join(
        f"{shortened(level)} {100 * rows / len(present):.0f} %" for level, rows in top[:3]
    )
    return shown + (", …" if len(top) > 3 else "")


def write_number(value: float) -> str:
    """Write a value with about four digits: 0.1235, 12.35, 123,457, 1.235e+07."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.4g}"


def shortened(text: str, length: int = 24) -> str:
    """Cut a long text."""
    return text if len(text) <= length else text[: length - 1] + "…"


def balance(values: pl.Series) -> tuple[tuple[str, int], ...]:
    """Count each value, the most frequent first, ties in order of their names."""
    counts = values.value_counts(name="rows")
    pairs = [(class_name(value), int(rows)) for value, rows in counts.iter_rows()]
    return tuple(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))


def class_name(value: object) -> str:
    """Write a class: 3.0 is 3, True is true."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def class_names(y: pl.Series) -> pl.Series:
    """Write every class as text."""
    values = y.drop_nulls().unique()
    return y.replace_strict(values, [class_name(value) for value in values], return_dtype=pl.String)


def count_rows(count: int) -> str:
    """Write a number of rows."""
    return f"{count:,} row{'s' * (count != 1)}"
