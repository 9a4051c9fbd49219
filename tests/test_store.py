"""The store: whole files or none, each key once, trouble by name."""

from __future__ import annotations

import errno
import io
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from petridish.errors import UserError
from petridish.estimator.contenders import RandomForest
from petridish.models import MLP, Sparse
from petridish.store import SCHEMA, Store, StoreError, check, compact, export
from petridish.sweeps import Sweep, load_user_file
from petridish.tasks import SparseParity
from petridish.training import (
    Curves,
    Data,
    Evaluation,
    Outcome,
    RunRecord,
    RunSpec,
    flat,
    forget_code,
    read_cell,
    run_key,
    spec_text,
)
from tests.conftest import forget_files

BASE = RunSpec(task=SparseParity(20, 3), data=Data(m=100), model=MLP(10), init=Sparse(2))


def record(seed: int, **changes: Any) -> RunRecord:
    """Make a record by hand."""
    values: dict[str, Any] = {
        "spec": replace(BASE, seed=seed),
        "outcome": Outcome.SOLVED,
        "fitted_at": 200,
        "steps": 300,
        "final": {"test_error": 0.05},
        "train_loss": 0.3,
        "curves": Curves(),
        "seconds": 0.1,
        "engine": "torch",
    }
    return RunRecord(**(values | changes))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store with four runs in two shards."""
    store = Store(tmp_path / "store")
    store.prepare()
    store.write([record(0), record(1, outcome=Outcome.OUT_OF_STEPS)])
    store.write([record(2), record(3, outcome=Outcome.DIVERGED, final={})])
    return store


def test_records_come_back_as_they_were(store: Store) -> None:
    """Every column: the outcome, the spec's own fields, who made it."""
    table = store.read().table

    assert table["seed"].to_list() == [0, 1, 2, 3]
    assert table["key"].to_list() == [run_key(replace(BASE, seed=seed)) for seed in range(4)]
    assert table["outcome"].to_list() == ["SOLVED", "OUT_OF_STEPS", "SOLVED", "DIVERGED"]
    assert table["solved_at"].to_list() == [300, None, 300, None]
    assert math.isnan(table["test_error"][3])
    for column, value in flat(BASE).items():
        if column != "seed":
            assert table[column].to_list() == [value] * 4, column
    assert table["version"].null_count() == table["engine"].null_count() == 0


def watched(seed: int) -> RunRecord:
    """Return the record of a run that kept its curves."""
    curves = Curves([0, 100], {"train_loss": [math.nan, 0.5], "test_error": [0.5, 0.1]})
    spec = replace(BASE, seed=seed, evaluation=Evaluation(curves=True))
    return record(seed, spec=spec, curves=curves)


def test_curves_are_read_when_asked_for(store: Store) -> None:
    """They are the heavy part of a store, and few questions need them."""
    store.write([watched(9)])

    assert not any(name.startswith("curve.") for name in store.read().table.columns)
    row = store.read(columns="all").table.filter(seed=9)
    assert row["curve.step"].to_list() == [[0, 100]]
    assert row["curve.test_error"].to_list() == [[0.5, 0.1]]


def test_a_repeated_key_counts_once_and_the_first_wins(store: Store) -> None:
    """Two processes may finish the same run; readers see the older record."""
    store.write([record(0, seconds=99.0), record(4)])
    table = store.read().table

    assert table["seed"].to_list() == [0, 1, 2, 3, 4]
    assert table.filter(seed=0)["seconds"].to_list() == [0.1]


def test_specs_of_different_kinds_share_a_store(store: Store) -> None:
    """A column that a run does not have is null for it."""
    store.write([record(5, spec=RunSpec(task=SparseParity(20, 3, (0, 1, 2)), seed=5))])
    table = store.read().table

    assert table.filter(seed=5)["init.s"].to_list() == [None]
    assert table.filter(seed=5)["data.m"].to_list() == [math.inf]
    assert table.filter(seed=5)["task.support"].to_list() == [[0, 1, 2]]


def test_runs_kept_before_a_choice_existed_have_its_default(store: Store) -> None:
    """A shard without a column that came later says nothing else than one with its default."""
    (path, *_) = store.shards()
    old = pl.read_parquet(path).drop("data.draws", "training.precision", "training.penalty.power")
    path.unlink()
    store.write_table(old)
    table = store.read().table

    assert len(table) == 4
    assert table["data.draws"].to_list() == ["independent"] * 4
    assert table["training.precision"].to_list() == ["float32"] * 4
    assert table["training.penalty.power"].to_list() == [2.0] * 4


def test_a_torn_shard_is_named_and_passed_over(store: Store) -> None:
    """The other shards are read; `check` tells, `compact` sets it aside and loses nothing."""
    torn = store.shards()[0]
    torn.write_bytes(torn.read_bytes()[:100])
    sentence = (
        f"The shard {torn} is torn (100 bytes) and was skipped; its runs count as not done. "
        "`petridish store compact` sets it aside."
    )

    reading = store.read()
    assert reading.table["seed"].to_list() == [2, 3]
    assert reading.problems == (sentence,)
    assert check(store).problems == (sentence,)
    assert compact(store).problems == (sentence,)
    assert check(store).problems == ()
    assert check(store).runs == 2
    assert (store.folder / "aside" / torn.name).stat().st_size == 100


@pytest.mark.parametrize("place", [0, 50, -20, -1])
def test_a_flipped_byte_is_seen(store: Store, place: int) -> None:
    """A shard's name carries its digest: no damage passes for data."""
    path = store.shards()[0]
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))

    assert store.read().table["seed"].to_list() == [2, 3]


def test_a_foreign_file_is_named_and_passed_over(store: Store) -> None:
    """Somebody else's Parquet is not read as runs; other files are no matter."""
    foreign = store.folder / "mine.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(foreign)
    (store.folder / "notes.txt").write_text("hello", encoding="utf-8")
    reading = store.read()

    assert len(reading.table) == 4
    assert reading.problems == (
        f"{foreign} is not a shard of petridish and was skipped. Move it out of the store.",
    )


def test_a_newer_schema_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older version cannot know what a newer one means, so it touches nothing."""
    monkeypatch.setattr("petridish.store.files.SCHEMA", SCHEMA + 1)
    newer = store.write([record(7)])
    monkeypatch.undo()

    with pytest.raises(StoreError) as error:
        store.read()
    assert str(error.value) == (
        f"The shard {newer} has schema {SCHEMA + 1}, written by a newer petridish; this one reads "
        f"up to schema {SCHEMA}. Upgrade petridish or give another --store."
    )


def test_a_part_file_is_not_read(store: Store) -> None:
    """What a killed writer left aside is no shard."""
    whole = store.shards()[0]
    (store.folder / f".{whole.name}.part").write_bytes(whole.read_bytes()[:50])

    assert len(store.read().table) == 4
    assert store.read().problems == ()


def test_field_names_with_two_meanings_share_a_store(store: Store) -> None:
    """A number here, a text there: the column becomes text, and nothing is lost."""
    for seed, features in enumerate((3, "sqrt", None), start=20):
        model = RandomForest(max_features=features)
        store.write([record(seed, spec=replace(BASE, model=model, seed=seed))])
    table = store.read().table

    assert table["seed"].to_list() == [0, 1, 2, 3, 20, 21, 22]
    assert table["model.max_features"].to_list() == [*[None] * 4, "3", "sqrt", None]
    assert compact(store).runs == 7


def test_the_cell_and_the_seed_are_the_run(store: Store) -> None:
    """From a row back to the object; a seed may need all of its 64 bits."""
    store.write([record(2**64 - 1)])
    table = store.read().table
    specs = [
        replace(read_cell(cell), seed=seed)
        for cell, seed in table.select("cell", "seed").iter_rows()
    ]

    assert specs == [replace(BASE, seed=seed) for seed in (0, 1, 2, 3, 2**64 - 1)]
    assert [run_key(spec) for spec in specs] == table["key"].to_list()
    assert table["cell"].n_unique() == 1
    assert Sweep(BASE, {"seed": (1, 2**64 - 1)}).among(table)["seed"].to_list() == [1, 2**64 - 1]


def test_shards_that_hold_whole_specs_are_read(store: Store) -> None:
    """As schema 2 had them: the same runs in the same cells."""
    before = store.read().table
    for path in store.shards():
        specs = [spec_text(replace(BASE, seed=seed)) for seed in pl.read_parquet(path)["seed"]]
        old = pl.read_parquet(path).with_columns(spec=pl.Series(specs))
        path.unlink()
        store.write_table(old.drop("cell"))
    assert "cell" not in pl.read_parquet_schema(store.shards()[0])

    assert store.read().table.equals(before)
    assert compact(store).runs == 4
    assert store.read().table.equals(before)


def test_shards_with_columns_of_nulls_are_read(store: Store) -> None:
    """Earlier shards have every curve's column, also where no run kept it; beside newer ones."""
    store.write([watched(9)])
    before = store.read(columns="all").table
    floats, names = pl.List(pl.Float64), ("train_loss", "train_error", "test_error", "movement")
    columns: dict[str, pl.DataType] = {
        "curve.step": pl.List(pl.Int64),
        **{f"curve.{name}": floats for name in names},
        "weights": pl.List(pl.List(pl.Float32)),
        "weights.of": pl.List(pl.Struct({"name": pl.String, "shape": pl.List(pl.Int64)})),
    }
    for path in store.shards()[:2]:
        old = pl.read_parquet(path)
        nulls = [pl.lit(None, kind).alias(name) for name, kind in columns.items()]
        path.unlink()
        store.write_table(old.with_columns(nulls))
    table = store.read(columns="all").table.sort("seed")

    assert table.select(before.columns).equals(before.sort("seed"))
    assert table["curve.movement"].is_null().all()
    assert table["weights"].is_null().all()
    assert store.read(columns=("curve.step",)).table.drop("curve.step").equals(store.read().table)


def test_only_what_runs_kept_has_a_column(store: Store) -> None:
    """A shard of runs without curves has none of theirs."""
    store.write([watched(9)])
    first, *_, last = (pl.read_parquet_schema(path) for path in store.shards())

    assert not [name for name in first if name.startswith(("curve.", "weights"))]
    assert {"curve.step", "curve.test_error"} <= set(last)
    assert "weights" not in last


def test_a_class_that_is_gone_has_the_columns_that_it_had(store: Store, tmp_path: Path) -> None:
    """Its text is as its class wrote it; the others' columns are made from their objects."""
    path = tmp_path / "mine.py"
    path.write_text(MINE, encoding="utf-8")
    module = load_user_file(path)
    store.write([record(7, spec=replace(BASE, task=module.Mine(20, 3, tries=4), seed=7))])
    here = store.read().table
    forget_files()
    forget_code()
    gone = store.read().table

    assert gone.filter(seed=7)["task"].to_list() == ["mine(20, 3, None, 4)"]
    assert gone.equals(here)
    assert compact(store).runs == 5
    assert store.read().table.equals(here)


MINE = """
from dataclasses import dataclass
from typing import ClassVar

from petridish.tasks import SparseParity


@dataclass(frozen=True)
class Mine(SparseParity):
    name: ClassVar[str] = "mine"
    tries: int = 1
"""


def test_a_cell_of_a_newer_petridish_is_refused(store: Store) -> None:
    """Its shard is named; nothing is done that rests on half of a store."""
    shard = store.shards()[0]
    table = pl.read_parquet(shard)
    newer = table.with_columns(pl.col("cell").str.replace('"width": 10', '"wings": 2'))
    shard.unlink()
    shard = store.write_table(newer)

    with pytest.raises(StoreError) as error:
        store.read()
    assert str(error.value) == (
        f"The shard {shard} cannot be read. This spec has MLP with the field 'wings', which this "
        "petridish does not know: a newer one wrote it. Upgrade petridish."
    )
    assert len(store.keys()) == 4


def test_an_unreadable_shard_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one that belongs to somebody else."""
    secret = store.shards()[0]

    def read(path: Path) -> bytes:
        if path == secret:
            raise PermissionError(errno.EACCES, "Permission denied")
        with path.open("rb") as file:
            return file.read()

    monkeypatch.setattr(Path, "read_bytes", read)
    assert store.read().problems == (
        f"The shard {secret} cannot be read (Permission denied) and was skipped. Make it readable.",
    )


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_shard_is_flushed_aside_and_then_renamed(
    store: Store, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dying at the flush or just before the rename leaves no shard; its bytes are all aside."""

    class Died(BaseException):
        pass

    def die(*_: object) -> None:
        raise Died

    if moment == "fsync":
        monkeypatch.setattr("os.fsync", die)
    else:
        monkeypatch.setattr(Path, "replace", die)
    before = store.shards()
    with pytest.raises(Died):
        store.write([record(8)])

    assert store.shards() == before
    (part,) = store.folder.glob(".*.part")
    assert pl.read_parquet(part)["seed"].to_list() == [8]


def test_compacting_keeps_every_run(store: Store) -> None:
    """One shard, the same table; twice is as good as once."""
    store.write([record(0)])
    before = store.read(columns="all").table
    for _ in range(2):
        health = compact(store)
        assert (health.shards, health.runs) == (1, 4)
        assert store.read(columns="all").table.equals(before)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_exports_read_back(store: Store, tmp_path: Path, ending: str) -> None:
    """Other tools can read what is exported."""
    out = tmp_path / f"out/runs.{ending}"
    readers: dict[str, Any] = {
        "csv": pl.read_csv,
        "jsonl": pl.read_ndjson,
        "parquet": pl.read_parquet,
    }

    assert export(store, out).runs == 4
    table = readers[ending](out)
    assert table["seed"].to_list() == [0, 1, 2, 3]
    assert table["init"].to_list() == ["sparse(2)"] * 4


def test_an_unknown_export_format_is_refused(store: Store, tmp_path: Path) -> None:
    """The message names the formats."""
    with pytest.raises(UserError) as error:
        export(store, tmp_path / "runs.xlsx")

    assert str(error.value) == (
        f"{tmp_path / 'runs.xlsx'} ends in '.xlsx', which is no known format. "
        "Known: .csv, .jsonl, .parquet."
    )


def test_a_full_disk_leaves_no_half_shard(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write fails as one sentence, its part file goes, and the rest of the store stays."""

    class FullDisk(io.BytesIO):
        def write(self, content: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", lambda *_: FullDisk())
    with pytest.raises(StoreError) as error:
        store.write([record(8)])
    monkeypatch.undo()

    assert str(error.value) == (
        f"The store {store.folder} takes no more: No space left on device. The last 1 runs were "
        "not kept, all earlier ones were. Make room, then give the same command again to go on."
    )
    assert len(store.read().table) == 4
    assert list(store.folder.glob(".*")) == []


def test_a_store_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """Before anything is trained."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreError) as error:
        Store(tmp_path / "file" / "store").prepare()

    assert str(error.value) == (
        f"The store {tmp_path / 'file' / 'store'} cannot be written: Not a directory. "
        "Give a folder that can, by --store."
    )


def test_other_tools_see_ordinary_parquet(store: Store) -> None:
    """A shard opens with any reader, its schema number among its metadata."""
    path = store.shards()[0]

    assert pl.read_parquet(path).height == 2
    assert pl.read_parquet_metadata(path)["petridish.schema"] == str(SCHEMA)


def test_keys_follow_what_others_write(store: Store) -> None:
    """A runner asks again and again; what it knew stays known."""
    assert len(store.keys()) == 4
    Store(store.folder).write([record(6)])
    assert set(store.keys()) == {run_key(replace(BASE, seed=seed)) for seed in (0, 1, 2, 3, 6)}
