"""From a file to a table: CSV of any usual dialect, plain or gzipped, and Parquet."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from pathlib import Path

import polars as pl

from petridish.errors import UserError, first_line

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "?")
"""What counts as no value in a CSV file, in columns of text too."""
SEPARATORS = ",;\t|"
LONGEST_HEADER = 2**20  # bytes that are looked at to find separator and column names

_TABS = (".tsv", ".tab")
_GZIP, _UTF16 = b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff")


def read_table(path: Path) -> pl.DataFrame:
    """Read a table; a file that holds none raises an error that says why.

    Parameters
    ----------
    path : Path
        A Parquet file, or text with one line per row and column names in the first: separated by
        commas, semicolons, tabs or bars, in UTF-8, UTF-16 or Windows-1252, gzipped or not.

    Returns
    -------
    pl.DataFrame
        At least one row; column names are stripped, unique and not empty. Of text, ``MISSING``
        reads as no value; a semicolon-separated file may have decimal commas.
    """
    if path.is_dir():
        raise UserError(f"{path} is a folder. Give a CSV or Parquet file.")
    if not path.exists():
        raise UserError(f"There is no file {path}. Give the path of a CSV or Parquet file.")
    try:
        start = _first_bytes(path)
        parquet = start[:4] == b"PAR1" or path.suffix.lower() in (".parquet", ".pq")
        frame = _read_parquet(path) if parquet else _read_text(path, start)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{path} cannot be read: {reason}. Give a CSV or Parquet file.") from error
    if frame.is_empty():
        raise UserError(f"{path} has column names but no rows. Give a table with rows.")
    return frame


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        start = file.read(LONGEST_HEADER)
    if start[:2] == _GZIP:
        with gzip.open(path) as packed:
            return packed.read(LONGEST_HEADER)
    return start


def _read_parquet(path: Path) -> pl.DataFrame:
    try:
        frame = pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise UserError(
            f"{path} cannot be read as Parquet: {first_line(error)}. Write the file anew."
        ) from error
    return _named(frame, frame.columns, path)


def _read_text(path: Path, start: bytes) -> pl.DataFrame:
    if not start.strip():
        raise UserError(f"{path} is empty. Give a table with column names and rows.")
    wide = start[:2] in _UTF16
    if b"\0" in start and not wide:
        raise UserError(
            f"{path} is not a table: it holds binary data. Export it as CSV or Parquet."
        )
    head = start[: len(start) - len(start) % 2].decode("utf-16" if wide else "utf-8-sig", "replace")
    separator = "\t" if _suffix(path) in _TABS else _separator(head)
    names = next(csv.reader(io.StringIO(head, newline=""), delimiter=separator))
    try:
        frame = _parse(path, separator) if not wide else None
    except pl.exceptions.ComputeError as error:
        if "utf-8" not in str(error):
            raise UserError(_not_a_table(path, separator, error)) from error
        frame = None
    if frame is None:
        text = _all_bytes(path).decode("utf-16" if wide else "cp1252", "replace")
        try:
            frame = _parse(io.BytesIO(text.encode()), separator)
        except pl.exceptions.PolarsError as error:
            raise UserError(_not_a_table(path, separator, error)) from error
        names = next(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    if len(names) != frame.width:  # a header that a plain reader of CSV reads otherwise
        names = frame.columns
    return _without_decimal_commas(_named(frame, names, path), separator)


def _parse(source: Path | io.BytesIO, separator: str) -> pl.DataFrame:
    frame = pl.read_csv(
        source,
        separator=separator,
        infer_schema_length=None,  # the whole column decides on its type, not its first lines
        null_values=list(MISSING),
    )
    return frame.with_columns(
        _dated(frame[name]) for name in frame.columns if frame[name].dtype == pl.String
    )


def _dated(texts: pl.Series) -> pl.Series:
    """Read texts as dates or times, if all are: by the format of the first of them.

    Polars could try while it reads, but then tries every value of every column: 15 times slower.
    """
    first = texts.drop_nulls()[:20].alias("texts").to_frame().write_csv().encode()
    kind = pl.read_csv(io.BytesIO(first), try_parse_dates=True, infer_schema_length=None).dtypes[0]
    if not kind.is_temporal():
        return texts
    try:
        return texts.str.strptime(kind)  # type: ignore[arg-type] # temporal, as was just asked
    except pl.exceptions.PolarsError:
        return texts


def _all_bytes(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if content[:2] == _GZIP else content


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return suffixes[-1] if suffixes else ""


def _separator(head: str) -> str:
    """Take the sign that is most frequent in the first line, outside quotes."""
    first = head.lstrip().splitlines()[0]
    bare = "".join(part for i, part in enumerate(first.split('"')) if i % 2 == 0)
    return max(SEPARATORS, key=bare.count)


def _not_a_table(path: Path, separator: str, error: Exception) -> str:
    """Name the first line that is too long, where that is what is wrong."""
    text = _all_bytes(path).decode("utf-8-sig", "replace")
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        wanted = len(next(lines))
        long = next((line for line in lines if len(line) > wanted), None)
    except csv.Error:  # such as a field of megabytes, after a quote that does not end
        long = None
    if long is not None:
        return (
            f"{path} is not a table: line {lines.line_num} has {len(long)} fields, the first line "
            f"has {wanted}. Give each line as many fields as there are column names."
        )
    if text.count('"') % 2:
        return f"{path} is not a table: a quote is opened and never closed. Close or remove it."
    return f"{path} is not a table: {first_line(error)}. Give a CSV or Parquet file."


def _named(frame: pl.DataFrame, names: list[str], path: Path) -> pl.DataFrame:
    """Return columns with the names of the file, refusing a name that stands twice."""
    plain = [
        " ".join(name.split()) or f"unnamed {place}" for place, name in enumerate(names, start=1)
    ]
    twice = [name for name, times in Counter(plain).items() if times > 1]
    if twice:
        raise UserError(
            f"{path} has several columns called {', '.join(twice)}. Give each column its own name."
        )
    frame.columns = plain
    return frame


def _without_decimal_commas(frame: pl.DataFrame, separator: str) -> pl.DataFrame:
    """Turn 3,14 into a number where semicolons or tabs separate."""
    if separator == ",":
        return frame
    texts = [
        name
        for name in frame.columns
        if frame[name].dtype == pl.String
        and frame[name].str.contains(r"^\s*[+-]?\d*,?\d+([eE][+-]?\d+)?\s*$").all()
        and not frame[name].is_null().all()
    ]
    return frame.with_columns(
        pl.col(name).str.strip_chars().str.replace(",", ".").cast(pl.Float64) for name in texts
    )
