"""A followed store: what it has is what a full reading has, however shards come and go."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.bench.explorer_answers import made_runs, made_specs
from petridish.store import Store
from petridish.store.files import Shard
from petridish.store.followed import RUN, FollowedStore
from petridish.training import cell_text

CELLS = [cell_text(spec) for spec in made_specs(4)]


def runs(*numbers: int) -> pl.DataFrame:
    """Return made runs by their numbers, a hundred of each cell."""
    import numpy as np

    parts = [made_runs(CELLS, n, 1, np.random.default_rng(n)) for n in numbers]
    return pl.concat(parts)


def keys(table: pl.DataFrame) -> list[tuple[str, int, int]]:
    """Return which runs a table has, in order."""
    return sorted(
        (str(cell), int(restart), int(seed))
        for cell, restart, seed in table.select(RUN).iter_rows()
    )


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(st.integers(0, 399), min_size=1, max_size=4)),
        st.tuples(st.sampled_from(["merge", "begin to merge", "remove", "look"]), st.just([])),
    ),
    max_size=8,
)


@given(steps=STEPS)
def test_it_has_what_a_full_reading_has(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, list[int]]]
) -> None:
    """Also of runs that several shards have, of which some are merged or removed in between."""
    store = Store(tmp_path_factory.mktemp("store"))
    followed = FollowedStore(store.folder)
    for what, numbers in [*steps, ("look", [])]:
        shards = store.shards()
        if what == "write":
            store.write_table(runs(*numbers))
        elif what == "merge":
            store.merge(shards)
        elif what == "remove" and shards:
            shards[0].unlink()
        elif what == "begin to merge" and shards:
            # The merged shard is there, and those that it replaces are not gone yet.
            kept = {path: path.read_bytes() for path in shards}
            store.merge(shards)
            for path, content in kept.items():
                path.write_bytes(content)
        followed.refresh()
        whole = store.read(columns="all").table

        assert keys(followed.ends) == keys(whole)
        if len(whole):
            read = followed.read(followed.ends, ("seed", "curve.test_error", "cell"))
            assert read["seed"].to_list() == followed.ends["seed"].to_list()
            assert read["cell"].cast(pl.String).to_list() == [*map(str, followed.ends["cell"])]


def test_a_shard_is_read_once_and_only_how_its_runs_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there already is not read again when a sweep adds shards."""
    asked: list[tuple[Path, tuple[str, ...]]] = []
    decode = Shard.columns

    def watched(shard: Shard, *names: str) -> pl.DataFrame:
        asked.append((shard.path, names))
        return decode(shard, *names)

    monkeypatch.setattr(Shard, "columns", watched)
    store, followed = Store(tmp_path), FollowedStore(tmp_path)
    first = store.write_table(runs(1, 2))
    assert followed.refresh() == 1
    assert followed.refresh() == 1
    second = store.write_table(runs(3))
    assert followed.refresh() == 2

    assert [path for path, _ in asked] == [first, second]
    read = {name for _, names in asked for name in names}
    assert not {name for name in read if name.startswith(("curve", "weights", "key"))}


def test_files_that_are_no_shards_are_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    """A torn one, a foreign one, a link that leads out; a torn one that is whole again is read."""
    folder, outside = tmp_path / "store", tmp_path / "outside"
    store = Store(folder)
    store.prepare()
    store.write_table(runs(1))
    torn = store.write_table(runs(2))
    whole = torn.read_bytes()
    torn.write_bytes(whole[:-20])
    (folder / "mine.parquet").write_bytes(b"something")
    Store(outside).prepare()
    secret = Store(outside).write_table(runs(3))
    (folder / secret.name).symlink_to(secret)
    followed = FollowedStore(folder)
    followed.refresh()

    assert sorted(followed.problems) == sorted(
        [
            f"The shard {torn} is torn and was skipped; its runs count as not done. "
            "`petridish store compact` sets it aside.",
            f"{folder / 'mine.parquet'} is not a shard of petridish and was skipped. Move it out "
            "of the store.",
            f"{folder / secret.name} is a link that leads out of the store and was skipped. Remove "
            "it.",
        ]
    )
    assert followed.ends["seed"].to_list() == [1]
    torn.unlink()
    torn.write_bytes(whole)
    followed.refresh()
    assert followed.ends["seed"].to_list() == [1, 2]
    assert len(followed.problems) == 2


def test_a_store_that_goes_is_said_and_comes_back(tmp_path: Path) -> None:
    """One sentence, and no runs; then they are there again."""
    folder = tmp_path / "store"
    Store(folder).prepare()
    Store(folder).write_table(runs(1))
    followed = FollowedStore(folder)
    followed.refresh()
    folder.rename(tmp_path / "elsewhere")
    followed.refresh()

    assert followed.problems == (f"The store {folder} is not there.",)
    assert followed.ends.is_empty()
    (tmp_path / "elsewhere").rename(folder)
    followed.refresh()
    assert len(followed.problems) == 0
    assert len(followed.ends) == 1
