"""Someone's own table: reading and describing it."""

from __future__ import annotations

import datetime
import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.compare import examine, read_table
from petridish.compare.cleaning import clean, write_number
from petridish.errors import UserError
from tests.messy_tables import messy

# Reading

ROWS = [("a", 1.5, None), ("é", 2.0, 7), ("c", -3.25, 8)]
PLAIN = "word,number,count\na,1.5,\né,2.0,7\nc,-3.25,8\n"
DIALECTS: dict[str, tuple[str, bytes]] = {
    "commas": ("t.csv", PLAIN.encode()),
    "a byte-order mark": ("t.csv", PLAIN.encode("utf-8-sig")),
    "semicolons and decimal commas": (
        "t.csv",
        "word;number;count\na;1,5;\né;2,0;7\nc;-3,25;8\n".encode(),
    ),
    "tabs": ("t.tsv", PLAIN.replace(",", "\t").encode()),
    "tabs in a file called CSV": ("t.csv", PLAIN.replace(",", "\t").encode()),
    "bars": ("t.txt", PLAIN.replace(",", "|").encode()),
    "gzip": ("t.csv.gz", gzip.compress(PLAIN.encode())),
    "gzip without saying so": ("t.csv", gzip.compress(PLAIN.encode())),
    "Windows-1252": ("t.csv", PLAIN.encode("cp1252")),
    "UTF-16": ("t.csv", PLAIN.replace(",", "\t").encode("utf-16")),
    "names for missing values": ("t.csv", PLAIN.replace("1.5,\n", "1.5,NA\n").encode()),
    "blanks around names": ("t.csv", PLAIN.replace("number,", " number ,").encode()),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_usual_dialect_gives_the_same_table(dialect: str, tmp_path: Path) -> None:
    """Separator, decimal sign, encoding and compression are found out."""
    name, content = DIALECTS[dialect]
    (tmp_path / name).write_bytes(content)

    frame = read_table(tmp_path / name)

    assert frame.columns == ["word", "number", "count"]
    assert frame.rows() == ROWS


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_names_of_columns_are_decoded_like_their_values(encoding: str, tmp_path: Path) -> None:
    """Accents in the header, in every encoding that values may have."""
    (tmp_path / "t.csv").write_bytes("größe,ä,ö\n1,é,3\n".encode(encoding))

    assert read_table(tmp_path / "t.csv").columns == ["größe", "ä", "ö"]


def test_parquet_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    """Whatever the file is called."""
    pl.DataFrame(ROWS, schema=["word", "number", "count"], orient="row").write_parquet(
        tmp_path / "t.csv"
    )

    assert read_table(tmp_path / "t.csv").rows() == ROWS


@given(
    st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False),
            st.one_of(st.none(), st.text(max_size=5).map(lambda word: f"w{word}w")),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_what_was_written_is_read(rows: list[tuple[float, str | None]]) -> None:
    """Numbers to the last bit, words and gaps survive a CSV file."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        words = pl.Series([word for _, word in rows], dtype=pl.String)
        pl.DataFrame({"x": [x for x, _ in rows], "word": words}).write_csv(path)
        found = read_table(path)

    assert found["x"].cast(pl.Float64).to_list() == [x for x, _ in rows]
    assert found["word"].to_list() == words.to_list()


NOT_TABLES: dict[str, tuple[bytes | None, str]] = {
    "none.csv": (None, "There is no file {}. Give the path of a CSV or Parquet file."),
    "empty.csv": (b" \n", "{} is empty. Give a table with column names and rows."),
    "names.csv": (b"a,b\n", "{} has column names but no rows. Give a table with rows."),
    "picture.csv": (
        b"\x89PNG\r\n\x1a\n\0\0\0",
        "{} is not a table: it holds binary data. Export it as CSV or Parquet.",
    ),
    "twice.csv": (
        b"a,b,a\n1,2,3\n",
        "{} has several columns called a. Give each column its own name.",
    ),
    "ragged.csv": (
        b"a,b\n1,2\n1,2,3\n",
        "{} is not a table: line 3 has 3 fields, the first line has 2. Give each line as many "
        "fields as there are column names.",
    ),
    "quote.csv": (
        b'a,b\n"x,2\n3,4\n',
        "{} is not a table: a quote is opened and never closed. Close or remove it.",
    ),
    "torn.parquet": (
        b"PAR1" + 100 * b"x" + b"PAR1",
        "{} cannot be read as Parquet: parquet: File out of specification: The footer size must be "
        "smaller or equal to the file's size. Write the file anew.",
    ),
    "torn.csv.gz": (
        gzip.compress(b"a,b\n1,2\n")[:-6],
        "{} cannot be read: Compressed file ended before the end-of-stream marker was reached. "
        "Give a CSV or Parquet file.",
    ),
}


@pytest.mark.parametrize("name", NOT_TABLES)
def test_what_is_no_table_gets_one_sentence(name: str, tmp_path: Path) -> None:
    """It says what is wrong with the file."""
    content, sentence = NOT_TABLES[name]
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(UserError) as found:
        read_table(path)
    assert str(found.value) == sentence.format(path)


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    """It is named as what it is."""
    with pytest.raises(UserError) as found:
        read_table(tmp_path)
    assert str(found.value) == f"{tmp_path} is a folder. Give a CSV or Parquet file."


# Describing


def test_each_column_is_of_its_kind() -> None:
    """A table with one of each: what takes part, and why the rest does not."""
    described, _ = examine(messy(), "grade")

    assert {column.name: (column.kind, column.left_out) for column in described.columns} == {
        "customer_id": ("identifier", "numbers the rows"),
        "age": ("numeric", ""),
        "job": ("categorical", ""),
        "joined": ("date", ""),
        "member": ("boolean", ""),
        "remark": ("text", "120 different texts in 120 rows"),
        "country": ("constant", "one value in all rows, NL"),
        "fax": ("empty", "no value in any row"),
    }
    missing = {column.name: column.missing for column in described.columns}
    assert (missing["age"], missing["job"], missing["fax"]) == (14, 11, 120)
    assert described.task == "classification"
    assert sum(rows for _, rows in described.classes) == described.usable == 120


def test_values_become_numbers() -> None:
    """Categories by the order of their names, dates in days since 1970, gaps as NaN."""
    frame = messy().with_columns(
        when=pl.Series([datetime.datetime(1970, 1, 2, 12)] * 119 + [datetime.datetime(1970, 1, 1)])
    )
    _, examples = examine(frame, "grade")
    column = dict(zip(examples.names, examples.x.T, strict=True))

    codes = {None: math.nan, "clerk": 0.0, "cook": 1.0, "nurse": 2.0}
    np.testing.assert_array_equal(column["job"], [codes[job] for job in frame["job"]])
    np.testing.assert_array_equal(np.isnan(column["age"]), frame["age"].is_null().to_numpy())
    np.testing.assert_array_equal(column["member"], frame["member"].to_numpy())
    since = [(day - datetime.date(1970, 1, 1)).days for day in frame["joined"]]
    np.testing.assert_array_equal(column["joined"], since)
    assert column["when"][:2].tolist() == [1.5, 1.5]
    assert [examples.classes[i] for i in examples.y] == frame["grade"].to_list()
    assert examples.categorical.tolist() == [name == "job" for name in examples.names]


def column_kind(values: list[Any], name: str = "x") -> str:
    """Return the kind of one column beside a target and another column."""
    rows = len(values)
    frame = pl.DataFrame(
        {name: values, "other": np.arange(rows) ** 0.5, "y": ["a", "b"] * (rows // 2)}
    )
    described, _ = examine(frame, "y")
    return described.columns[0].kind


@pytest.mark.parametrize(
    ("values", "name", "kind"),
    [
        (list(range(60)), "x", "identifier"),  # counts the rows
        (list(range(1960, 2020)), "year", "numeric"),  # all different, but neither called nor so
        (list(range(1960, 2020)), "orderId", "identifier"),
        (list(range(1960, 2020)), "order_id", "identifier"),
        ([7 * i % 61 for i in range(60)], "unnamed 1", "identifier"),  # an index that was written
        ([i / 3 for i in range(60)], "id", "numeric"),  # no whole numbers
        ([f"{i:08x}" for i in range(60)], "x", "identifier"),
        ([f"no {i} of many" for i in range(60)], "x", "text"),
        ([f"level {i % 10}" for i in range(60)], "x", "categorical"),
        (["a"] * 30 + [None] * 30, "x", "categorical"),  # a gap says something too
        ([2.5] * 60, "x", "constant"),
        ([float("nan")] * 60, "x", "empty"),
        ([["a", "b"]] * 60, "x", "nested"),
        ([True, False] * 30, "x", "boolean"),
    ],
)
def test_kinds_at_the_borders(values: list[Any], name: str, kind: str) -> None:
    """Identifiers, texts and categories are told apart by number, spelling and name."""
    assert column_kind(values, name) == kind


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.123456, "0.1235"), (-12.3456, "-12.35"), (123456.7, "123,457"), (12345678.0, "1.235e+07")],
)
def test_values_are_written_shortly(value: float, written: str) -> None:
    """With about four digits, and no powers of ten where people write none."""
    assert write_number(value) == written


def test_numbers_with_a_few_odd_words_are_numbers() -> None:
    """The odd words become gaps, and a note says so."""
    values = [str(i / 2) for i in range(58)] + ["unknown", " "]
    frame = pl.DataFrame({"x": values, "y": ["a", "b"] * 30})

    described, examples = examine(frame, "y")

    assert described.columns[0].kind == "numeric"
    assert described.notes == ("x read as numbers; missing where it says 'unknown' (1 row).",)
    assert examples.x[:4, 0].tolist() == [0.0, 0.5, 1.0, 1.5]
    assert np.isnan(examples.x[58:, 0]).all()


@pytest.mark.parametrize(
    ("target", "task"),
    [
        (["yes", "no"] * 30, "classification"),
        ([True, False] * 30, "classification"),
        ([0, 1] * 30, "classification"),
        ([0.0, 1.0] * 30, "classification"),
        ([i % 20 for i in range(100)], "classification"),
        ([i % 21 for i in range(105)], "regression"),
        ([0.5, 1.5] * 30, "regression"),
    ],
)
def test_the_target_decides_on_the_task(target: list[Any], task: str) -> None:
    """Words, truths and up to 20 whole numbers are classes; other numbers are quantities."""
    frame = pl.DataFrame({"x": np.sqrt(np.arange(len(target))), "y": target})

    described, examples = examine(frame, "y")

    assert described.task == examples.task == task
    assert bool(described.classes) is (task == "classification")


def test_a_task_can_be_asked_for() -> None:
    """Five grades as a quantity."""
    frame = pl.DataFrame({"x": np.sqrt(np.arange(60)), "y": [1, 2, 3, 4, 5] * 12})

    described, examples = examine(frame, "y", task="regression")

    assert examples.classes == ()
    assert examples.y[:3].tolist() == [1.0, 2.0, 3.0]
    assert (described.spread["least"], described.spread["median"]) == (1.0, 3.0)


def test_rows_without_a_target_and_rare_classes_are_left_out() -> None:
    """They are counted, and said."""
    frame = pl.DataFrame(
        {"x": np.sqrt(np.arange(70)), "y": ["a", "b"] * 30 + ["c"] * 4 + [None] * 6}
    )

    described, examples = examine(frame, "y")

    assert (described.rows, described.usable, len(examples)) == (70, 60, 60)
    assert described.notes == (
        "6 rows without a value of y left out.",
        "4 rows left out, of classes with fewer than 5 (c).",
    )
    assert examples.classes == ("a", "b")


def table(**columns: Any) -> pl.DataFrame:
    """Return a table of 60 rows with a column x, and those given."""
    return pl.DataFrame({"x": np.sqrt(np.arange(60)), **columns}, strict=False)


AB = ["a", "b"] * 30
BAD_TABLES: dict[str, tuple[pl.DataFrame, dict[str, Any], str]] = {
    "no such column": (
        table(outcome=AB),
        {"target": "outcom"},
        "t.csv has no column called 'outcom'. Did you mean outcome?",
    ),
    "nothing like it": (
        table(outcome=AB),
        {"target": "price"},
        "t.csv has no column called 'price'. Known: outcome, x.",
    ),
    "nothing like it among many": (
        table(**{f"v{i}": AB for i in range(30)}),
        {"target": "price"},
        "t.csv has no column called 'price'. Known: x, "
        + ", ".join(f"v{i}" for i in range(19))
        + " and 11 more.",
    ),
    "no column names": (
        pl.DataFrame({"1.5": AB, "2": AB}),
        {"target": "y"},
        "t.csv has no column called 'y': its first line holds numbers. Put a line of column names "
        "first.",
    ),
    "drop unknown": (
        table(y=AB),
        {"drop": ["z1"]},
        "t.csv has no column called 'z1'. Known: x, y.",
    ),
    "drop the target": (
        table(y=AB),
        {"drop": ["y"]},
        "The target y is named by --drop as well. Name it once.",
    ),
    "one class": (
        table(y=["a"] * 60),
        {},
        "The target y of t.csv is a in all 60 rows: there is nothing to predict. Give a column "
        "that varies.",
    ),
    "constant quantity": (
        table(y=[1.5] * 60),
        {},
        "The target y of t.csv is 1.5 in all 60 rows: there is nothing to predict. Give a column "
        "that varies.",
    ),
    "free text": (
        table(y=[f"text {i}" for i in range(60)]),
        {},
        "The target y of t.csv has 60 different values in 60 rows: it looks like free text or an "
        "identifier. Give a column with at most 50 classes, or of numbers.",
    ),
    "text as a quantity": (
        table(y=AB),
        {"task": "regression"},
        "The target y of t.csv holds texts such as 'a', which have no regression. Give --task "
        "classification, or a column of numbers.",
    ),
    "a quantity as classes": (
        table(y=np.sqrt(np.arange(60))),
        {"task": "classification"},
        "The target y of t.csv has 60 different values in 60 rows: it looks like free text or an "
        "identifier. Give a column with at most 50 classes, or of numbers.",
    ),
    "all missing": (
        table(y=[None] * 60),
        {},
        "The target y of t.csv has no value in any row. Give another column.",
    ),
    "dates": (
        table(y=[datetime.date(2020, 1, 1)] * 60),
        {},
        "The target y of t.csv holds dates. Give a column of numbers or classes.",
    ),
    "ten rows": (
        table(y=AB).head(10),
        {},
        "t.csv has 10 rows with a usable value of y. A comparison needs at least 40.",
    ),
    "few rows with a target": (
        table(y=["a", "b"] * 10 + [None] * 40),
        {},
        "t.csv has 20 rows with a usable value of y. A comparison needs at least 40.",
    ),
    "rare classes only": (
        table(y=["a"] * 58 + ["b", "c"]),
        {},
        "The target y of t.csv has fewer than two classes with at least 5 rows (60 rows of 3 "
        "classes). Give more rows, or a target with fewer classes.",
    ),
    "no columns": (
        pl.DataFrame({"y": AB}),
        {},
        "t.csv has no column to predict y from. Give a table with columns that vary, and do more "
        "than number or name its rows.",
    ),
    "no column left": (
        pl.DataFrame({"id": range(60), "empty": [None] * 60, "y": AB}),
        {},
        "t.csv has no column to predict y from (id: numbers the rows; empty: no value in any row). "
        "Give a table with columns that vary, and do more than number or name its rows.",
    ),
    "infinite": (
        table(y=AB, z=[float("inf"), float("-inf")] * 2 + [1.0] * 56),
        {},
        "The column z of t.csv holds infinite values (4 rows). Correct them, leave them empty, or "
        "leave the column out with --drop.",
    ),
    "huge": (
        table(y=AB, z=[1e300] + [1.0] * 59),
        {},
        "The column z of t.csv holds numbers beyond 1e+30, such as 1e+300 (1 row). Correct them, "
        "leave them empty, or leave the column out with --drop.",
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_get_one_sentence(name: str) -> None:
    """What was wrong, what was given, what to do."""
    frame, options, sentence = BAD_TABLES[name]

    with pytest.raises(UserError) as found:
        examine(frame, **({"target": "y", "source": "t.csv"} | options))
    assert str(found.value) == sentence


def test_a_dropped_column_may_hold_anything() -> None:
    """What takes no part is not refused."""
    frame = table(y=AB, z=[float("inf")] * 60)

    described, examples = examine(frame, "y", drop=["z"])

    assert examples.names == ("x",)
    assert described.columns[1].left_out == "named by --drop"


@pytest.mark.parametrize(
    ("column", "target", "warned"),
    [
        (AB, AB, True),
        ([{"a": 3, "b": 4}[label] for label in AB], AB, True),  # in other words
        (["c", "d", "e", "d"] * 15, AB, True),  # c and e are always a
        (["c", "c", "e", "d"] * 15, AB, False),
        (np.arange(60) * 2.0 + 1, np.arange(60) * 0.5, True),  # a line runs through
        (np.arange(60) ** 1.5, np.arange(60) * 0.5, False),
    ],
)
def test_a_column_that_gives_the_target_away_is_named(
    column: Any,
    target: Any,
    warned: bool,  # noqa: FBT001 - a row's own column
) -> None:
    """It is warned of, not refused."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"x": rng.normal(size=60), "other": column, "y": target})

    described, _ = examine(frame, "y")

    sentence = (
        "The column other determines y: if it is not known when a prediction is made, leave it out "
        "with --drop other."
    )
    assert described.warnings == ((sentence,) if warned else ())


def test_what_may_mislead_is_noted() -> None:
    """Repeated rows, a class that dominates, dates."""
    dates = [datetime.date(2020, 1, 1) + datetime.timedelta(i % 50) for i in range(60)]
    frame = pl.DataFrame({"day": dates, "y": ["a"] * 54 + ["b"] * 6})

    described, _ = examine(frame, "y")

    assert described.notes == (
        "4 rows (7 %) repeat another one in full: where copies fall into both parts, errors look "
        "smaller than they are.",
        "90 % of the rows are of the class a: a small error is easily had, so look at the area "
        "under the curve (AUC) as well.",
        "Rows are divided at random, not by date: where the future differs from the past, errors "
        "on it may be larger.",
    )


@pytest.mark.parametrize(
    ("texts", "numbers", "note"),
    [
        (["$1,000.50", "-$3.2", "$17"], [1000.5, -3.2, 17.0], "$1,000.50 is 1000.5"),
        (["1.000,50 €", "3,25 €", "1.037 €"], [1000.5, 3.25, 1037.0], "1.000,50 € is 1000.5"),
        (["12.5 %", "3%", "100 %"], [12.5, 3.0, 100.0], "12.5 % is 12.5"),
        (["1,037", "12", "3,000,000"], [1037.0, 12.0, 3e6], "1,037 is 1037"),
        (["EUR 1,200", "EUR 3", ".5"], [1200.0, 3.0, 0.5], "EUR 1,200 is 1200"),
        (["1,5", "2,25", "3"], [1.5, 2.25, 3.0], "1,5 is 1.5"),
        (["(2,346)", "12", "(3.5)"], [-2346.0, 12.0, -3.5], "(2,346) is -2346"),
        (["($2,346.10)", "$12", "$(7)"], [-2346.1, 12.0, -7.0], "($2,346.10) is -2346.1"),
    ],
)
def test_money_percent_and_grouped_digits_are_numbers(
    texts: list[str], numbers: list[float], note: str
) -> None:
    """And the note shows how one of them was read."""
    found = clean(pl.Series("price", [*texts, *map(str, range(20))]), "the table")

    assert found.kind == "number"
    assert found.series[:3].to_list() == numbers
    assert found.note == f"price read as numbers: {note}."


@pytest.mark.parametrize(
    "texts",
    [["$5", "5 €", "7"], ["12.05.2024", "13.05.2024", "1"], ["12 34", "56 78", "9"], ["1,00,0"]],
)
def test_other_texts_with_digits_stay_texts(texts: list[str]) -> None:
    """Amounts in two units, dates and numbers in pieces are no quantity."""
    found = clean(pl.Series("c", [*texts, *map(str, range(20))] * 20), "the table")

    assert found.kind == "words" or found.series[0] is None


def test_odd_texts_among_prices_are_named(tmp_path: Path) -> None:
    """As among other numbers."""
    column = pl.Series("price", [f"${i},000" for i in range(1, 40)] + ["ask"])

    assert clean(column, "the table").note == (
        "price read as numbers: $1,000 is 1000; missing where it says 'ask' (1 row)."
    )
