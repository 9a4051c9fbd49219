"""Shards are merged while others read, write and die, and no row is ever missing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import SoftFileLease

from petridish import RunSpec, SparseParity, Sweep, Training
from petridish import run as run_and_return
from petridish.store import Store, StoreError, compact, files, maintenance, tidy
from tests.test_store import record

SEEDS = range(6)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store with six runs in six shards, and one of them twice."""
    store = Store(tmp_path / "store")
    store.prepare()
    for seed in SEEDS:
        store.write([record(seed)])
    store.write([record(2, seconds=99.0)])
    return store


def seeds(store: Store) -> list[int]:
    """Return the seeds of all runs as a new reader sees them, in the order of the table."""
    return Store(store.folder).read().table["seed"].to_list()


@pytest.mark.parametrize("moment", range(8))
def test_a_reader_meets_a_compaction(
    store: Store, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any of its shards is opened: the table is the same, and so are keys and endings."""
    before = Store(store.folder).read(columns="all").table
    opened = files._open
    count = 0

    def open_late(path: Path) -> Any:
        nonlocal count
        count += 1
        if count == moment + 1:
            monkeypatch.setattr(files, "_open", opened)
            compact(Store(store.folder))
        return opened(path)

    for ask in (
        lambda reader: reader.read(columns="all").table.equals(before),
        lambda reader: len(reader.keys()) == len(SEEDS),
        lambda reader: len(reader.endings()) == len(SEEDS),
    ):
        monkeypatch.setattr(files, "_open", open_late)
        count = 0
        assert ask(Store(store.folder))


def test_a_reader_lists_a_folder_that_changes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing may miss both the shards that go and the one that comes."""
    listed = Store.shards
    answers: list[list[Path]] = [[]]
    monkeypatch.setattr(Store, "shards", lambda self: answers.pop() if answers else listed(self))
    assert Store(store.folder).read().table["seed"].to_list() == [*SEEDS]


def test_one_who_knew_the_keys_reads_the_merged_shard_once(store: Store) -> None:
    """Its rows are not counted twice."""
    reader = Store(store.folder)
    assert len(reader.endings()) == len(SEEDS)
    compact(Store(store.folder))
    assert len(reader.endings()) == len(reader.keys()) == len(SEEDS)


class Died(BaseException):
    """Stands for the end of a process."""


@pytest.mark.parametrize("do", [compact, tidy])
@pytest.mark.parametrize("call", ["os.fsync", "Path.replace", "Path.unlink"])
@pytest.mark.parametrize("earlier", range(8))
def test_dying_at_any_moment_leaves_every_row(
    store: Store,
    do: Callable[[Store], object],
    call: str,
    earlier: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At any flush, rename or removal; the next compaction ends what this one began."""
    monkeypatch.setattr(maintenance, "MANY_SHARDS", 1)
    before = Store(store.folder).read(columns="all").table
    owner: Any = os if call == "os.fsync" else Path
    name = call.partition(".")[2]
    real = getattr(owner, name)
    left = earlier

    def die(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        if "lock" in str(arguments[0]):  # the lease of `tidy`, which other processes free
            return real(*arguments, **options)
        if not left:
            raise Died
        left -= 1
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, die)
    try:
        do(store)
    except Died:
        pass
    else:
        assert call != "Path.unlink" or earlier >= len(SEEDS)
    monkeypatch.undo()

    assert Store(store.folder).read(columns="all").table.equals(before)
    assert compact(store).shards == 1
    assert Store(store.folder).read(columns="all").table.equals(before)


def test_two_compactions_at_once_keep_every_row(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins and ends between the first one's reading and writing."""
    put = Store._put

    def put_late(self: Store, *arguments: Any, **options: Any) -> Path:
        monkeypatch.setattr(Store, "_put", put)
        compact(Store(self.folder))
        Store(self.folder).write([record(9)])
        return put(self, *arguments, **options)

    monkeypatch.setattr(Store, "_put", put_late)
    compact(store)
    assert sorted(seeds(store)) == [*SEEDS, 9]


def test_no_name_of_a_shard_is_used_twice(store: Store) -> None:
    """Else one who has merged the first could remove the second, written since."""
    compact(store)
    first = store.shards()
    compact(store)
    assert not {*first} & {*store.shards()}


def test_a_repeated_key_has_the_same_first_row_after_a_compaction(store: Store) -> None:
    """Also where a newer shard with the key is left as it is."""
    store.merge(store.shards()[:4])
    assert len(store.shards()) == 4
    assert 99.0 not in store.read().table["seconds"]
    assert seeds(store) == [*SEEDS]


@pytest.mark.parametrize("many", [5, 6, 7])
def test_small_shards_are_merged_where_there_are_many(
    store: Store, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven shards can become six fewer."""
    monkeypatch.setattr(maintenance, "MANY_SHARDS", many)
    before = store.read(columns="all").table
    tidy(store)
    assert len(store.shards()) == (1 if many <= 6 else 7)
    assert store.read(columns="all").table.equals(before)


def test_large_shards_stay_as_they_are(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The small ones before and after a large one are merged, up to a size."""
    sizes = [path.stat().st_size for path in store.shards()]
    large = store.write([record(seed) for seed in range(100, 400)])
    for seed in range(10, 14):
        store.write([record(seed)])
    assert large.stat().st_size > max(sizes)
    monkeypatch.setattr(maintenance, "MANY_SHARDS", 5)
    monkeypatch.setattr(maintenance, "SMALL_BYTES", max(sizes) + 1)
    monkeypatch.setattr(maintenance, "MERGED_BYTES", sum(sizes[:4]))
    before = store.read().table
    tidy(store)
    assert len(store.shards()) == 4  # 4 and 3 of the first seven, the large one, and the last 4
    assert large in store.shards()
    assert store.read().table.equals(before)


def test_what_cannot_be_merged_stays(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torn shard, a full disk, another command that merges: `tidy` leaves the store as it is."""
    monkeypatch.setattr(maintenance, "MANY_SHARDS", 1)
    with SoftFileLease(store.folder / ".tidy.lock"):
        tidy(store)
    assert len(store.shards()) == 7

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        tidy(store)
        assert len(store.shards()) == 7
        with pytest.raises(StoreError) as error:
            compact(store)
    assert str(error.value) == (
        f"The store {store.folder} cannot be compacted: No space left on device. It is as it was. "
        "A compacted store is written before the old files are removed: make room for it."
    )
    assert not list(store.folder.glob(".*.part"))
    torn = store.shards()[0]
    torn.write_bytes(b"")
    tidy(store)
    assert torn in store.shards()
    assert len(store.shards()) == 2
    assert seeds(store) == [*SEEDS][1:]


def test_run_merges_small_shards_at_its_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing was left to train."""
    monkeypatch.setattr(maintenance, "MANY_SHARDS", 5)
    sweep = Sweep(RunSpec(task=SparseParity(10, 3), training=Training(steps=1)), {"seed": (0, 1)})
    runs = run_and_return(sweep, store=store.folder, executor="inline", progress="none")
    assert (len(runs), len(store.shards())) == (2, 1)
    assert len(seeds(store)) == len(SEEDS) + 2


WORKER = """
import sys
from pathlib import Path
from petridish.store import Store, compact, tidy, maintenance
from tests.test_store import record

maintenance.MANY_SHARDS = 2
what, folder, first = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
store = Store(folder)
print("ready", flush=True)
if what == "write":
    for seed in range(first, first + 40):
        store.write([record(seed)])
        print(seed, flush=True)
elif what == "read":
    known = set()
    for _ in range(60):
        now = set(Store(folder).read().table["seed"])
        assert known <= now, known - now
        assert len(store.keys()) >= len(known)
        known = now
else:
    while True:
        for do in (compact, tidy):
            do(store)
            print("done", flush=True)
"""


def test_readers_writers_and_compactions_that_are_killed(tmp_path: Path) -> None:
    """Two write, two read, two merge and are killed again and again: every row is there."""
    store = Store(tmp_path / "store")
    store.prepare()

    def begin(what: str, first: int = 0) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WORKER, what, str(store.folder), str(first)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    others = [begin("write", 0), begin("write", 100), begin("read"), begin("read")]
    for kill in range(4):
        merging = [begin("merge"), begin("merge")]
        for process in merging:
            for _ in range(1 + kill):
                assert process.stdout is not None
                assert process.stdout.readline() == "done\n"
            process.kill()
            process.communicate()
    for process in others:
        process.communicate()
        assert process.returncode == 0
    written = {*range(40), *range(100, 140)}
    assert set(seeds(store)) == written
    assert (compact(store).shards, len(seeds(store))) == (1, 80)
