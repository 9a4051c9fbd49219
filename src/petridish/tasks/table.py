"""Real tables: classify the rows that were set aside after learning from some of the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from petridish.errors import UserError, check_whole
from petridish.seeds import Streams
from petridish.tasks.base import Examples, LimitsData, Sample
from petridish.tasks.benchmark_tables import BENCHMARK
from petridish.tasks.domain import Classes, Domain, Reals
from petridish.tasks.table_files import MOST_CLASSES, Content, find_file, load

TEST_SHARE = 10  # one row in ten is set aside [PF §C.3]


@dataclass(frozen=True)
class Table(LimitsData):
    """Rows of a real table, standardised as a whole [PF §C.3].

    Each run draws a permutation of the rows: the first tenth is its test sample, the rows after
    it are its training rows. With 20 rows and the permutation 7, 3, 12, 0, …, the test sample is
    the rows 7 and 3, and a training sample of m=2 the rows 12 and 0: a larger m only adds rows.

    Attributes
    ----------
    dataset : str
        Its name, by which it is found in the folder that PETRIDISH_DATA names, in the cache, or
        among the tables that come with scikit-learn.
    rows, features, classes : int
        Its size; `features` leaves the target out.
    digest : str
        Of its content (`table_files.content_digest`): a part of a table is another task.
    """

    name: ClassVar[str] = "tabular"

    dataset: str
    rows: int
    features: int
    digest: str
    classes: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.dataset, str) or not re.fullmatch(r"[^\W\d][\w.-]*", self.dataset):
            raise UserError(
                f"Table: dataset={self.dataset!r}. Give a name that begins with a letter and has "
                "letters, digits, '_', '-' and '.' alone."
            )
        check_whole("Table", TEST_SHARE, rows=self.rows)
        check_whole("Table", 1, features=self.features)
        check_whole("Table", 2, classes=self.classes)
        if self.classes > MOST_CLASSES:
            raise UserError(f"Table: classes={self.classes}. Give at most {MOST_CLASSES}.")
        if not isinstance(self.digest, str) or not re.fullmatch("[a-f][0-9a-f]{15}", self.digest):
            raise UserError(
                f"Table: digest={self.digest!r}. Give the 16 hexadecimal digits that find_table "
                "finds."
            )

    @property
    def domain(self) -> Domain:
        """The features, and the classes of the target."""
        return Domain(Reals((self.features,)), Classes(self.classes))

    @property
    def n_test_rows(self) -> int:
        """Rows set aside for the test."""
        return self.rows // TEST_SHARE

    @property
    def n_train_rows(self) -> int:
        """Rows left for training."""
        return self.rows - self.n_test_rows

    def draw(self, seeds: Sequence[int], purpose: str, start: int, count: int) -> Examples:
        """Take rows of each run's own permutation, "train" or "test" ones."""
        rows = {"test": (0, self.n_test_rows), "train": (self.n_test_rows, self.n_train_rows)}
        if purpose not in rows:
            raise UserError(
                f"The table {self.dataset} has training and test rows, and examples of "
                f"{purpose!r} were asked for. A table cannot be drawn anew."
            )
        first, there = rows[purpose]
        if start + count > there:
            raise UserError(
                f"The table {self.dataset} has {there} {purpose} rows, and {start + count} were "
                f"asked for. Ask for at most {there}."
            )
        content = self.content()
        places = slice(first + start, first + start + count)
        chosen = np.empty((len(seeds), count), np.int64)
        for row, seed in zip(chosen, seeds, strict=True):
            row[:] = _permutation(seed, self.rows)[places]
        return Examples(content.labels[chosen], dense=content.x[chosen])

    def content(self) -> Content:
        """Read the table, and refuse one that is not the table described here."""
        content = load(self.dataset)
        if content.digest != self.digest:
            raise UserError(
                f"{content.source} has the digest {content.digest}, but this run is of the table "
                f"{self.dataset} with the digest {self.digest}. Give the folder that holds that "
                "table with --data or PETRIDISH_DATA, or declare the runs anew with this one."
            )
        return content

    def check_data(self, data: Sample) -> None:
        """Refuse a run that asks for more rows than there are."""
        owner, train, test = f"The table {self.dataset}", self.n_train_rows, self.n_test_rows
        if data.m == float("inf"):
            raise UserError(
                f"{owner} has {train} training rows, and data.m=inf asks for fresh ones at each "
                f"step. Give data.m of at most {train}."
            )
        if data.m > train:
            raise UserError(
                f"{owner} has {train} training rows, and data.m={int(data.m)} were asked for. Give "
                f"data.m of at most {train}."
            )
        if data.n_test > test:
            raise UserError(
                f"{owner} has {test} test rows, a tenth of its {self.rows}, and "
                f"data.n_test={data.n_test} were asked for. Give data.n_test of at most {test}."
            )


@lru_cache(maxsize=32)
def _permutation(seed: int, rows: int) -> NDArray[np.int32]:
    """Draw the order of a run's rows: they are sorted by their words of the stream "split"."""
    words = Streams([seed], "split").words(0, rows)[0]
    order = np.argsort(words, kind="stable").astype(np.int32)
    order.flags.writeable = False
    return order


def find_table(dataset: str, folder: Path | None = None) -> Table:
    """Return the task of a table that is there.

    Parameters
    ----------
    dataset : str
        Its name: that of a file NAME.parquet, or of a table that comes with scikit-learn.
    folder : Path, optional
        Where to look; otherwise in the folder that PETRIDISH_DATA names, then in the cache. Runs
        look only there: to train on tables of `folder`, set PETRIDISH_DATA to it.
    """
    content = load(dataset, folder)
    rows, features = content.x.shape
    if rows < TEST_SHARE:
        raise UserError(
            f"{content.source} has {rows} rows. Give a table of at least {TEST_SHARE} rows."
        )
    return Table(dataset, rows, features, content.digest, content.n_classes)


def find_tables(folder: Path | None = None) -> list[Table]:
    """Return the tasks of the benchmark's tables that are there, in the benchmark's order."""
    return [find_table(t.name, folder) for t in BENCHMARK if find_file(t.name, folder) is not None]
