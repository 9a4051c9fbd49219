"""Someone's own table: reading, describing, dividing, fitting, ranking."""

from __future__ import annotations

import datetime
import functools
import gzip
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish import estimator
from petridish.naming import UserError
from petridish.tabular import Comparison, comparison, examine, findings, read_table, standings
from petridish.tabular import methods as fitting
from petridish.tabular.comparison import compare
from petridish.tabular.describe import Examples
from petridish.tabular.methods import FOREST, GUESS, MLP, Fit, fit_one, methods
from petridish.tabular.ranking import Measure, corrected_interval
from petridish.tabular.splits import (
    MOST_TEST,
    MOST_TRAINING,
    divide,
    drawn_rows,
    largest_training,
    test_rows,
    training_sizes,
)
from petridish.tabular.values import write_number

test_rows.__test__ = False  # type: ignore[attr-defined] # a function of ours, not a test


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make forests and networks small: these tests are about what is done with them."""
    monkeypatch.setattr(fitting, "TREES", 10)
    small = {"width": 16, "n_members": 1, "epochs": 2}
    for name in ("SparseMLPClassifier", "SparseMLPRegressor"):
        whole = getattr(estimator, name)
        monkeypatch.setattr(estimator, name, functools.partial(whole, **small), raising=False)


def messy(rows: int = 120, *, classes: int = 3) -> pl.DataFrame:
    """Give a table with every kind of column."""
    rng = np.random.default_rng(1)
    age = rng.normal(40, 12, rows).round(1)
    job = rng.choice(["clerk", "cook", "nurse"], rows)
    y = np.where(age > 45, 2, np.where(job == "nurse", 1, 0)) % classes
    first = datetime.date(2020, 1, 1)
    return pl.DataFrame(
        {
            "customer_id": np.arange(5000, 5000 + rows),
            "age": [None if i % 9 == 0 else float(value) for i, value in enumerate(age)],
            "job": [None if i % 11 == 0 else str(value) for i, value in enumerate(job)],
            "joined": [first + datetime.timedelta(int(i)) for i in rng.integers(0, 900, rows)],
            "member": rng.random(rows) > 0.5,
            "remark": [f"a few words, number {i}" for i in range(rows)],
            "country": ["NL"] * rows,
            "fax": [None] * rows,
            "grade": [("low", "middle", "high")[i] for i in y],
        }
    )


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
    """Give the kind of one column beside a target and another column."""
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
    """Give a table of 60 rows with a column x, and those given."""
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
        "t.csv has no column to predict y from. Give a table with columns that vary.",
    ),
    "no column left": (
        pl.DataFrame({"id": range(60), "empty": [None] * 60, "y": AB}),
        {},
        "t.csv has no column to predict y from (id: numbers the rows; empty: no value in any row). "
        "Give a table with columns that vary.",
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


# Dividing


@given(st.integers(40, 400), st.integers(2, 6), st.integers(0, 2**32), st.integers(0, 9))
def test_parts_are_apart_nested_and_stratified(
    rows: int, classes: int, seed: int, repeat: int
) -> None:
    """No row is in two parts; every part has its share of each class to within one or two."""
    y = np.random.default_rng(seed).integers(0, classes, rows)
    split = divide(y, stratified=True, seed=seed, repeat=repeat)

    assert len(split.test) == test_rows(rows)
    assert len(split.training) == largest_training(rows)
    both = np.concatenate([split.training, split.test])
    assert len(np.unique(both)) == len(both)
    present = len(np.unique(y[split.training]))
    for part in (split.test, *(split.training[:m] for m in (30, rows // 2))):
        counts = np.bincount(y[part], minlength=classes)
        fair = np.bincount(y, minlength=classes) * len(part) / rows
        # A training part begins with one row of each class, which shifts the others.
        assert np.abs(counts - fair).max() <= 2 + classes * (part is not split.test) / 2
    assert len(np.unique(y[split.training[:present]])) == present


def test_repeats_differ_and_seeds_repeat() -> None:
    """A split is a function of seed and repeat."""
    y = np.arange(100) % 2
    first = divide(y, stratified=True, seed=3, repeat=0)
    again = divide(y, stratified=True, seed=3, repeat=0)
    other = divide(y, stratified=True, seed=3, repeat=1)

    np.testing.assert_array_equal(first.training, again.training)
    np.testing.assert_array_equal(first.test, again.test)
    assert set(first.test) != set(other.test)


def test_without_classes_rows_are_drawn_evenly() -> None:
    """Over 400 repeats every row is tested about as often as any: 80 times, five deviations off."""
    y = np.linspace(0, 1, 50)
    times = np.zeros(50)
    for repeat in range(400):
        times[divide(y, stratified=False, seed=0, repeat=repeat).test] += 1

    assert np.abs(times - 80).max() < 5 * math.sqrt(400 * 0.2 * 0.8)


@given(st.integers(40, 10**7), st.integers(0, 50))
def test_sizes_grow_from_small_to_most_of_the_table(rows: int, classes: int) -> None:
    """Two to six sizes, each at least 1.4 times the one before, the last as large as may be."""
    sizes = training_sizes(rows, classes)

    assert 2 <= len(sizes) <= 6
    assert sizes[-1] == min(MOST_TRAINING, rows - math.ceil(0.2 * rows))
    assert all(large >= 1.4 * small for small, large in pairwise(sizes))
    assert sizes[-1] + test_rows(rows) <= rows
    assert test_rows(rows) <= MOST_TEST


def test_the_grid_of_ten_thousand_rows() -> None:
    """As documented."""
    assert training_sizes(10_000) == (50, 100, 400, 1000, 3000, 8000)
    assert training_sizes(40) == (16, 32)


def test_long_tables_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many rows, each once, in the order of the file."""
    monkeypatch.setattr("petridish.tabular.splits.MOST_ROWS", 100)
    drawn = drawn_rows(1000, seed=0)

    assert drawn_rows(100, seed=0) is None
    assert drawn is not None
    assert len(drawn) == 100
    assert (np.diff(drawn) > 0).all()


# Intervals


def test_the_corrected_interval_by_hand() -> None:
    """Values 1, 2, 3: s² = 1, J = 3, and a fifth of the rows in a test part: n_2/n_1 = 1/4."""
    mean, low, high = corrected_interval([1, 2, 3], test_share=0.2)

    half = 4.302652729911275 * math.sqrt(1 / 3 + 1 / 4)  # Student's t with 2 degrees of freedom
    assert mean == 2
    assert (low, high) == pytest.approx((2 - half, 2 + half), rel=1e-9)
    assert corrected_interval([5.0], test_share=0.2) == (5.0, -math.inf, math.inf)


def test_repeats_that_agree_by_chance_claim_no_certainty() -> None:
    """Twice one row of 20: the variance of a difference is at least (0.05 − 0.05²) / 20."""
    mean, low, high = corrected_interval([0.05, 0.05], test_share=0.2, rows=20)

    half = 12.706204736432095 * math.sqrt((1 / 2 + 1 / 4) * 0.8 * (0.05 - 0.05**2) / 20)
    assert (low, high) == pytest.approx((mean - half, mean + half), rel=1e-9)
    assert corrected_interval([0.05, 0.05], test_share=0.2) == (0.05, 0.05, 0.05)
    assert corrected_interval([0.0, 0.0], test_share=0.2, rows=20) == (0.0, 0.0, 0.0)


@given(st.lists(st.integers(0, 10), min_size=20, max_size=20))
def test_the_least_variance_is_that_of_rows_that_differ_one_way(right: list[int]) -> None:
    """No rows with values −1, 0, 1 and the same mean vary less, whatever they are."""
    rows = np.sign(np.array(right) - 5)
    mean = rows.mean()

    assert rows.var() >= abs(mean) - mean**2 - 1e-12


def test_the_correction_keeps_its_level_where_students_does_not() -> None:
    """Mean losses of ten overlapping test parts: of 400 tables, 95 % ± 4 % hold the truth.

    The losses of a row are standard normal whatever was learnt: what remains is that test parts of
    one table share rows. Four standard errors of 400 tables are 4.4 %.
    """
    rng = np.random.default_rng(0)
    covered = {0.0: 0, 0.2: 0}
    for _ in range(400):
        losses = rng.normal(size=100)
        means = [losses[rng.permutation(100)[:20]].mean() for _ in range(10)]
        for share in covered:
            _, low, high = corrected_interval(means, test_share=share)
            covered[share] += low <= 0 <= high

    assert covered[0.2] / 400 > 0.95 - 0.044
    assert covered[0.0] / 400 < 0.85


# Ranking


def invented(errors: dict[str, dict[int, list[float]]], **changes: Any) -> Comparison:
    """Give a comparison with these errors by method, size and repeat."""
    fits = tuple(
        Fit(name, size, repeat, error, 1 - error, 0.5, 0.5)
        for name, sizes in errors.items()
        for size, values in sizes.items()
        for repeat, error in enumerate(values)
    )
    sizes = tuple(next(iter(errors.values())))
    examples = Examples(
        ("x",), np.array([False]), np.zeros((100, 1)), np.arange(100) % 2, ("a", "b")
    )
    found = Comparison(
        examples=examples,
        rows=100_000,
        test=20_000,
        sizes=sizes,
        repeats=len(errors[GUESS][sizes[0]]),
        seed=0,
        jobs=1,
        seconds=1.0,
        fits=fits,
        notes=(),
    )
    return replace(found, **changes)


STEADY = [0.30, 0.32, 0.28, 0.30]
WORLD = {
    MLP: {50: [0.24, 0.26, 0.22, 0.25], 80: [0.20, 0.22, 0.20, 0.20]},
    FOREST: {50: STEADY, 80: [0.10, 0.12, 0.11, 0.11]},
    "LightGBM": {50: [0.5, 0.2, 0.4, 0.3], 80: [0.14, 0.09, 0.13, 0.10]},
    GUESS: {50: [0.5] * 4, 80: [0.5] * 4},
}


def test_the_ranking_by_hand() -> None:
    """Means in order, paired differences, and ties where the interval holds zero."""
    ranking = standings(invented(WORLD), 80)

    assert [standing.method for standing in ranking] == [FOREST, "LightGBM", MLP]
    assert [standing.tied for standing in ranking] == [True, True, False]
    first, _, last = ranking
    assert first.error == pytest.approx(0.11)
    assert first.difference == 0
    differences = [0.10, 0.10, 0.09, 0.09]
    expected = corrected_interval(differences, test_share=0.2, rows=20_000)
    found = (last.difference, last.difference_low, last.difference_high)
    assert found == pytest.approx(expected)


def described(target: str = "grade") -> Any:
    """Give a description whose target has that name."""
    return examine(messy(), target)[0]


def test_findings_say_when_the_network_loses() -> None:
    """And at which sizes it does not."""
    assert findings(invented(WORLD), described()) == [
        "With 80 training rows, the random forest has the lowest mean test error, 11.0 % "
        "[9.2, 12.8]; not distinguishable from it: LightGBM.",
        "The sparse MLP loses: place 3 of 3, +9.5 [+8.2, +10.8] against the random forest.",
        "Against the best of the others at each size it is better at 50; worse at 80 training "
        "rows.",
    ]


def test_findings_say_when_the_network_wins_or_ties() -> None:
    """With what is next, and with how much certainty."""
    wins = {name: {50: sizes[50]} for name, sizes in WORLD.items()}
    ties = wins | {MLP: {50: [0.29, 0.33, 0.29, 0.31]}}

    assert findings(invented(wins), described())[1] == (
        "The sparse MLP wins: the random forest is next, +5.8 [+4.6, +6.9]."
    )
    assert findings(invented(ties), described())[1] == (
        "The sparse MLP is not distinguishable from the best: place 2 of 3, +0.5 [-1.8, +2.8] "
        "against the random forest."
    )


def test_among_equals_the_house_comes_last() -> None:
    """A tie is not told as a win."""
    same = {name: {50: [0.0] * 4} for name in (MLP, FOREST)}
    world = invented(same | {GUESS: {50: [0.5] * 4}})

    assert [standing.method for standing in standings(world, 50)] == [FOREST, MLP]
    assert findings(world, described())[-1] == (
        "No error at all is rare: look whether a column is made from grade."
    )


def test_a_table_that_says_nothing_is_told_so() -> None:
    """The best method is set against a constant guess."""
    noise = {name: {50: [0.5, 0.48, 0.53, 0.5]} for name in (MLP, FOREST)}
    world = invented(noise | {GUESS: {50: [0.5] * 4}})

    assert findings(world, described())[-1] == (
        "No method is distinguishable from a constant guess: these columns may say nothing about "
        "grade."
    )


def test_two_repeats_do_not_say_that_nothing_was_learned() -> None:
    """20 % against 45 %: the interval of two repeats holds 0, which is its own fault."""
    found = {name: {50: [0.1, 0.3]} for name in (MLP, FOREST)}
    world = invented(found | {GUESS: {50: [0.45] * 2}})
    said = findings(world, described())

    assert not any("say nothing" in sentence for sentence in said)
    assert said[-1] == (
        "The repeats are too few to tell any method from a constant guess. Give more --repeats."
    )


def test_a_method_that_fails_is_named_and_not_ranked() -> None:
    """The others go on without it."""
    world = invented(WORLD)
    fits = tuple(
        replace(fit, error=math.nan, failure="ValueError: no") if fit.method == "LightGBM" else fit
        for fit in world.fits
    )
    world = replace(world, fits=fits)

    assert [standing.method for standing in standings(world, 80)] == [FOREST, MLP]
    assert findings(world, described())[-1] == (
        "LightGBM failed in 8 fits (training rows: 50, 80) and is not ranked there: ValueError: no"
    )


@pytest.mark.parametrize(
    ("guess", "value", "written"),
    [(1.8, 0.88, "0.880"), (2500.0, 812.34, "812"), (40.0, 3.14159, "3.1"), (1e9, 2e8, "2e+08")],
)
def test_errors_are_written_with_sensible_digits(guess: float, value: float, written: str) -> None:
    """About three digits of an error of the size that matters."""
    world = invented({GUESS: {50: [guess] * 4}})
    examples = replace(world.examples, y=np.linspace(0, 1, 100), classes=())

    assert Measure.of(replace(world, examples=examples)).write(value) == written


# Fitting


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", methods())
@pytest.mark.usefixtures("quick")
def test_every_method_copes_with_every_column(name: str, task: str) -> None:
    """Gaps, categories a training part lacks, a column empty there, classes with few rows."""
    frame = messy(90).with_columns(
        rare=pl.Series([None] * 85 + [1.0, 2.0, 3.0, 4.0, 5.0]),
        many=pl.Series([f"c{i % 20}" for i in range(90)]),
        price=pl.Series(np.sqrt(np.arange(90.0))),
    )
    _, examples = examine(frame, {"classification": "grade", "regression": "price"}[task])

    for size in (16, 60):
        fit = fit_one(examples, name, size, 1, seed=2)

        assert fit.failure == ""
        assert 0 <= fit.error < 10
        assert (fit.method, fit.size, fit.repeat) == (name, size, 1)
        assert fit.score <= 1


@pytest.mark.usefixtures("quick")
def test_only_training_rows_are_learnt_from() -> None:
    """Test rows with other values leave the trained network as it was, to the last bit."""
    _, examples = examine(messy(), "grade")
    split = divide(examples.y, stratified=True, seed=0, repeat=0)
    changed = examples.x.copy()
    changed[split.test] = 1e6
    changed[split.training[60:]] = -1e6

    usual = fit_one(examples, MLP, 60, 0, seed=0)
    other = fit_one(replace(examples, x=changed), MLP, 60, 0, seed=0)

    assert usual.importance is not None
    assert other.importance is not None
    np.testing.assert_array_equal(usual.importance, other.importance)


@pytest.mark.usefixtures("quick")
def test_a_failing_library_is_a_result() -> None:
    """Its message is kept; nothing is raised."""
    _, examples = examine(messy(), "grade")
    broken = replace(examples, x=np.full_like(examples.x, np.inf))

    fit = fit_one(broken, "linear model", 60, 0, seed=0)

    assert math.isnan(fit.error)
    assert fit.failure.startswith("ValueError: Input X contains infinity")


def test_a_guess_errs_on_all_but_the_most_frequent_class() -> None:
    """Which is what methods have to beat."""
    y = np.array([0] * 60 + [1] * 40)
    examples = Examples(("x",), np.array([False]), np.zeros((100, 1)), y, ("a", "b"))

    assert fit_one(examples, GUESS, 50, 0, seed=0).error == pytest.approx(0.4)


def test_the_area_under_the_curve_is_a_share_of_pairs() -> None:
    """Of a row of the class and one of another, the first has the higher share; ties count half."""
    rng = np.random.default_rng(0)
    y, shares = rng.integers(0, 3, 40), rng.integers(0, 5, (40, 4)) / 5
    areas = []
    for one in range(3):
        ours, theirs = shares[y == one, one], shares[y != one, one]
        pairs = [(a > b) + (a == b) / 2 for a in ours for b in theirs]
        areas.append(np.mean(pairs))

    assert fitting.mean_auc(y, shares) == pytest.approx(np.mean(areas))
    assert math.isnan(fitting.mean_auc(np.zeros(5, np.int64), shares[:5]))


@pytest.mark.usefixtures("quick")
def test_importances_belong_to_columns_of_the_table() -> None:
    """Those of one-hot columns add up; shares sum to one."""
    _, examples = examine(messy(), "grade")
    model = methods()[MLP].build("classification", 0, examples.categorical)
    model.fit(examples.x, examples.y)
    raw = model.named_steps["model"].feature_importances_
    found = fitting.movement(model, len(examples.names))

    assert found is not None
    assert examples.names == ("age", "job", "joined", "member")
    # Numbers come first, then clerk, cook, nurse and the gap.
    by_hand = np.array([raw[0], raw[3:].sum(), raw[1], raw[2]])
    np.testing.assert_allclose(found, by_hand / by_hand.sum())
    assert len(raw) == 3 + 4


@pytest.mark.usefixtures("quick")
def test_a_shuffled_column_hurts_if_it_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deciding column does, by about half; one that is not tried has no number."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    x[:, 2] = np.where(rng.random(400) < 0.2, np.nan, x[:, 2])
    y = (x[:, 1] > 0).astype(np.int64)
    examples = Examples(("a", "b", "c"), np.zeros(3, bool), x, y, ("no", "yes"))

    fit = fit_one(examples, FOREST, 300, 0, seed=0, shuffle=True)
    assert fit.importance is not None
    assert 0.3 < fit.importance[1] < 0.7
    assert np.abs(fit.importance[[0, 2]]).max() < 0.05

    monkeypatch.setattr(fitting, "SHUFFLED_COLUMNS", 1)
    fit = fit_one(examples, FOREST, 300, 0, seed=0, shuffle=True)
    assert fit.importance is not None
    assert np.isnan(fit.importance).tolist() == [True, False, True]


# The whole


@pytest.mark.usefixtures("quick")
def test_the_same_seed_gives_the_same_errors_whatever_the_processes() -> None:
    """Every method at every size in every repeat, in order."""
    _, examples = examine(messy(), "grade")
    one = compare(examples, sizes=(60, 30), repeats=2, seed=5, jobs=1)
    two = compare(examples, sizes=(30, 60), repeats=2, seed=5, jobs=1)

    assert [(fit.repeat, fit.size, fit.method) for fit in one.fits] == [
        (repeat, size, name) for repeat in (0, 1) for size in (30, 60) for name in methods()
    ]
    assert [fit.error for fit in one.fits] == [fit.error for fit in two.fits]
    assert one.sizes == (30, 60)
    shuffled = [
        (fit.size, fit.repeat)
        for fit in one.fits
        if fit.method == FOREST and fit.importance is not None
    ]
    assert shuffled == [(60, 1)]


def test_two_processes_give_what_one_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are a matter of seeds, not of where a fit runs."""
    few = {name: methods()[name] for name in ("HistGradientBoosting", "linear model", GUESS)}
    monkeypatch.setattr(comparison, "methods", lambda: few)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    examples = Examples(
        ("a", "b"), np.zeros(2, bool), x, (x[:, 0] > 0).astype(np.int64), ("no", "yes")
    )
    one, two = (compare(examples, sizes=(20,), repeats=2, seed=1, jobs=jobs) for jobs in (1, 2))

    assert [fit.error for fit in one.fits] == [fit.error for fit in two.fits]
    assert (one.jobs, two.jobs) == (1, 2)


@pytest.fixture
def clockwork(monkeypatch: pytest.MonkeyPatch) -> Examples:
    """Let a fit take a thousandth of a second a row, by a clock that only fits move."""
    now = [0.0]

    def fit(examples: Examples, name: str, size: int, repeat: int, **_: Any) -> Fit:
        now[0] += size / 1000
        return Fit(name, size, repeat, 0.5, 0.5, size / 1000, size / 1000)

    monkeypatch.setattr(comparison, "fit_one", fit)
    monkeypatch.setattr(comparison._Course, "spent", lambda _: now[0])
    y = np.arange(1500) % 2
    return Examples(("x",), np.array([False]), np.zeros((1500, 1)), y, ("a", "b"))


def test_sizes_that_time_does_not_allow_are_left_out(clockwork: Examples) -> None:
    """A repeat of 50, 100, 400 and 1200 rows takes 1.75 s a method; without the last, 0.55 s.

    The fewest repeats of all four are done in their time; in less, those of the first three.
    """
    whole = 1.75 * len(methods()) * comparison.FEWEST_REPEATS
    enough = compare(clockwork, seconds=1.001 * whole, jobs=1)
    less = compare(clockwork, seconds=0.999 * whole, jobs=1)

    assert enough.sizes == (50, 100, 400, 1200)
    assert enough.repeats == 3
    assert less.sizes == (50, 100, 400)
    assert less.notes[0] == (
        f"Training parts of 1,200 rows left out: 3 repeats of them would take longer than "
        f"{0.999 * whole:g} s; a longer --seconds includes them."
    )


def test_two_sizes_are_always_done(clockwork: Examples) -> None:
    """However short the time, with the fewest repeats."""
    found = compare(clockwork, seconds=0.001, jobs=1)

    assert (found.sizes, found.repeats) == ((50, 100), 3)
    assert [note.partition(" rows left out")[0] for note in found.notes] == [
        "Training parts of 400, 1,200",
        "3 of 10 repeats made in the time of 0.001 s; a longer --seconds gives more, and narrower "
        "intervals.",
    ]


def test_repeats_end_with_the_time(clockwork: Examples) -> None:
    """As many as end early enough, of ten; said in a note."""
    one = len(methods()) * 1.75
    found = compare(clockwork, seconds=7.5 * one, jobs=1)

    assert found.repeats == 7
    assert len(found.fits) == 7 * 4 * len(methods())
    assert found.notes == (
        f"7 of 10 repeats made in the time of {7.5 * one:g} s; a longer --seconds gives more, and "
        "narrower intervals.",
    )


def test_what_is_asked_for_is_done(clockwork: Examples) -> None:
    """Repeats and sizes that were named are carried out, whatever the time."""
    found = compare(clockwork, sizes=(700, 1200), repeats=30, jobs=1)

    assert (found.sizes, found.repeats, found.notes) == ((700, 1200), 30, ())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"sizes": (5, 50)},
            "--sizes asks for 5 training rows. Of 1,500 usable rows, give sizes from 10 to 1200: "
            "the rest is for tests.",
        ),
        (
            {"sizes": (50, 1201)},
            "--sizes asks for 1201 training rows. Of 1,500 usable rows, give sizes from 10 to "
            "1200: the rest is for tests.",
        ),
        ({"repeats": 1}, "tabular compare: repeats=1. Give a whole number of at least 2."),
        ({"jobs": 0}, "tabular compare: jobs=0. Give a whole number of at least 1."),
        ({"seed": -1}, "tabular compare: seed=-1. Give a whole number of at least 0."),
        ({"seconds": 0}, "--seconds 0 was given. Give a time above 0."),
    ],
)
def test_bad_options_get_one_sentence(
    options: dict[str, Any], sentence: str, clockwork: Examples
) -> None:
    """Before anything is fitted."""
    with pytest.raises(UserError) as found:
        compare(clockwork, **options)
    assert str(found.value) == sentence


def test_a_text_called_parquet_is_said_not_to_be(tmp_path: Path) -> None:
    """The name says what was meant."""
    path = tmp_path / "table.parquet"
    path.write_text("hi")
    with pytest.raises(UserError) as error:
        read_table(path)
    assert str(error.value).startswith(f"{path} cannot be read as Parquet: ")
    assert str(error.value).endswith(" Write the file anew.")
