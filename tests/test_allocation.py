"""Allocation as a value of a sweep: thresholds that are searched for, replayed and priced."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from petridish.errors import UserError
from petridish.models import MLP, Sparse, Uniform
from petridish.publish.records import plain_sweep, read_sweep
from petridish.store import Store
from petridish.sweeps import Arms, AtHalf, FindThreshold, Sweep, run_sweep
from petridish.sweeps.allocation import replay, search_of, simulate
from petridish.sweeps.price import price
from petridish.sweeps.runner import outcomes
from petridish.tasks import SparseParity
from petridish.training import Data, From, RunSpec, Training, run_key

BASE = RunSpec(
    task=SparseParity(8, 2),
    data=Data(m=200, n_test=200),
    model=MLP(16),
    training=Training(steps=300),
)
SIZES = (15, 25, 40, 60, 90)
RULE = FindThreshold("data.m", 0.8, within=("task.n",), first=3, until_solved="restart")
AXES: dict[str, Any] = {
    "task.n": (8, 16),
    "data.m": SIZES,
    "seed": range(6),
    "restart": range(3),
}
WIDE = Sweep(BASE, AXES, allocate=RULE)


def solved_from(least: float) -> Any:
    """Return how runs end if they succeed from a sample size on."""
    return lambda spec: spec.data.m >= least


@pytest.mark.parametrize("place", range(len(SIZES) + 1))
def test_a_clear_threshold_is_found_with_a_part_of_the_runs(place: int) -> None:
    """Wherever it lies: its two neighbours have all of their seeds, other values three at most."""
    least = (*SIZES, 1000)[place]
    search = RULE.search(WIDE)
    made = simulate(search, solved_from(least))
    solved = {key: solved_from(least)(spec) for key, spec in made.items()}
    low = SIZES[place - 1] if place else None
    high = SIZES[place] if place < len(SIZES) else None
    assert search.thresholds(solved) == {(8,): (low, high), (16,): (low, high)}
    assert len(made) < 0.45 * len(WIDE)
    for n in (8, 16):
        for m in SIZES:
            seeds = {s.seed for s in made.values() if s.task.n == n and s.data.m == m}  # type: ignore[attr-defined]
            assert len(seeds) in ((6,) if m in (low, high) else (0, 3))


def test_about_a_quarter_of_the_declared_runs_are_trained() -> None:
    """Of 180, by hand: 3 or 6 seeds at a value that succeeds, three times as many runs else."""
    made = [len(simulate(RULE.search(WIDE), solved_from(m))) for m in (*SIZES, 1000)]
    assert len(WIDE) == 180
    assert made == [18, 54, 66, 48, 66, 72]


@given(
    success=st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=5, max_size=5),
    share=st.sampled_from([0.2, 0.5, 0.8, 1.0]),
)
def test_whatever_the_outcomes_the_search_ends_where_success_begins(
    success: list[list[bool]], share: float
) -> None:
    """By brute force: the value below fails and the value above succeeds, judged by all seeds."""
    rule = FindThreshold("data.m", share, first=2)
    sweep = Sweep(BASE, {"data.m": SIZES, "seed": range(6)}, allocate=rule)
    search = rule.search(sweep)

    def ends(spec: RunSpec) -> bool:
        return success[SIZES.index(int(spec.data.m))][spec.seed]

    made = simulate(search, ends)
    solved = {key: ends(spec) for key, spec in made.items()}
    ((low, high),) = search.thresholds(solved).values()  # type: ignore[misc]
    shares = dict(zip(SIZES, np.mean(success, axis=1), strict=True))
    assert low is None or shares[low] < share
    assert high is None or shares[high] >= share
    assert (low, high) in zip((None, *SIZES), (*SIZES, None), strict=True)


@given(success=st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=5, max_size=5))
@settings(max_examples=40, deadline=None)
def test_a_search_goes_outward_until_both_sides_are_clear(success: list[list[bool]]) -> None:
    """By brute force: beyond the same neighbours all seeds are made as far as was asked."""
    near = FindThreshold("data.m", 0.5, first=2)
    far = replace(near, outward=(0.2, 0.9))

    def made(rule: FindThreshold) -> tuple[Any, dict[float, int]]:
        search = rule.search(Sweep(BASE, {"data.m": SIZES, "seed": range(6)}, allocate=rule))
        specs = simulate(search, lambda s: success[SIZES.index(int(s.data.m))][s.seed])
        solved = {key: success[SIZES.index(int(s.data.m))][s.seed] for key, s in specs.items()}
        (ends,) = search.thresholds(solved).values()
        counts = [sum(s.data.m == m for s in specs.values()) for m in SIZES]
        return ends, dict(zip(SIZES, counts, strict=True))

    ends, counts = made(far)
    assert ends == made(near)[0]
    low, high = (None if end is None else SIZES.index(int(end)) for end in ends)
    shares = np.mean(success, axis=1)
    for start, step, clear in ((low, -1, shares <= 0.2), (high, 1, shares >= 0.9)):
        place = start
        while place is not None and 0 <= place < len(SIZES):
            assert counts[SIZES[place]] == 6
            place = None if clear[place] else place + step


def test_what_was_found_is_said() -> None:
    """A sentence per stratum: found, not in the grid, not known yet."""
    rule = FindThreshold("data.m", 0.8, within=("task.n",))
    sweep = Sweep(BASE, {"task.n": (8, 16), "data.m": SIZES, "seed": range(4)}, allocate=rule)
    search = rule.search(sweep)

    def ends(spec: RunSpec) -> bool:
        return spec.task.n == 8 and spec.data.m >= 40  # type: ignore[attr-defined]

    solved = {key: ends(spec) for key, spec in simulate(search, ends).items()}
    assert search.lines(solved) == [
        "task.n = 8: data.m = 40 is enough for 80%; 25 is not",
        "task.n = 16: no data.m up to 90 is enough",
    ]
    assert search.lines({})[0] == "task.n = 8: the least data.m is not found yet"


def test_a_parent_that_diverged_is_a_trial_that_failed(tmp_path: Path) -> None:
    """The other strata are searched to their end; one sentence names what could not begin."""
    wild = replace(BASE, training=Training(steps=20, learning_rate=1e30))
    rule = FindThreshold("data.m", 0.5, within=("init.run.training.learning_rate",), first=2)
    axes = {
        "init.run.training.learning_rate": (0.1, 1e30),
        "data.m": (5, 400),
        "seed": range(2),
    }
    sweep = Sweep(replace(BASE, init=From(replace(wild, data=BASE.data))), axes, allocate=rule)
    store = Store(tmp_path)
    with pytest.raises(UserError, match=r"^4 runs were not carried out; all others were. The run "):
        run_sweep(sweep, store, executor="inline")
    first, second = rule.search(sweep).lines(outcomes(store.endings()))
    assert "is enough for 50%" in first
    assert "not found yet" in second


def test_what_else_is_stored_plays_no_part() -> None:
    """With all runs known, the search asks for the same as with those alone that it made."""
    search, ends = RULE.search(WIDE), solved_from(40)
    everything = {run_key(spec): ends(spec) for spec in WIDE.specs()}
    made = simulate(search, ends)
    assert search.wanted(everything) == {}
    assert search.thresholds(everything) == search.thresholds(
        {key: everything[key] for key in made}
    )


def test_a_restart_is_made_only_after_a_failure() -> None:
    """The first restart of every seed comes first; a solved seed wants no further one."""
    search = RULE.search(WIDE)
    first = search.wanted({})
    assert {spec.restart for spec in first.values()} == {0}
    assert {spec.data.m for spec in first.values()} == {40.0}
    second = search.wanted({key: spec.seed != 1 for key, spec in first.items()})
    again = [spec for spec in second.values() if spec.data.m == 40.0]
    assert [(spec.seed, spec.restart) for spec in again] == [(1, 1), (1, 1)]


def test_a_search_is_carried_out_resumed_and_replayed(tmp_path: Path) -> None:
    """The threshold of a parity on a small grid, found by trained runs."""
    rule = FindThreshold("data.m", 0.5, first=2)
    sweep = Sweep(BASE, {"data.m": (5, 20, 100, 400), "seed": range(4)}, allocate=rule)
    store = Store(tmp_path)
    done = run_sweep(sweep, store, executor="inline")
    assert done.runs == 16
    assert 6 <= done.done < 16
    assert run_sweep(sweep, store, executor="inline").done == 0
    table = store.read().table
    solved = outcomes(table)
    ((low, high),) = rule.search(sweep).thresholds(solved).values()  # type: ignore[misc]
    assert low < high
    spent = replay(sweep, table, rule.search(sweep))
    assert spent is not None
    assert (spent.runs, spent.all_runs, spent.estimated) == (done.done, 16, 16 - done.done)
    assert replay(sweep, table.head(3), rule.search(sweep)) is None


def test_a_search_is_priced() -> None:
    """From the fewest to the most runs of a clear threshold; the steps are those of the most."""

    class Rates:
        def of(self, spec: RunSpec) -> float:
            return 1.0

    cost = price(WIDE, Rates(), jobs=1)  # type: ignore[arg-type] # a second per step
    assert (cost.runs, cost.chosen) == (180, (18, 72))
    assert cost.model_steps == 72 * 300
    half = replace(WIDE, allocate=AtHalf())
    assert price(half, Rates(), jobs=1).chosen == (180, 180)  # type: ignore[arg-type] # six seeds


def test_parts_and_arms_choose_for_themselves(tmp_path: Path) -> None:
    """One arm is searched, the other carried out whole; the same for parts of a sweep."""
    rule = FindThreshold("data.m", 0.5, first=2)
    axes = {"data.m": (5, 20, 100, 400), "seed": range(4)}
    searched = Sweep(BASE, axes, allocate=rule)
    whole = Sweep(replace(BASE, model=MLP(8)), {"data.m": (5, 400), "seed": range(3)})
    alone = run_sweep(searched, Store(tmp_path / "alone"), executor="inline").done
    for number, both in enumerate(
        (Arms({"a": searched, "b": whole}), replace(whole, also=(searched,)))
    ):
        store = Store(tmp_path / str(number))
        assert run_sweep(both, store, executor="inline").done == alone + 6
        assert run_sweep(both, store, executor="inline").done == 0
        spent = replay(both, store.read().table, search_of(both))
        assert spent is not None
        assert spent.runs == alone + 6
        assert again_written(both).allocate == both.allocate

    class Rates:
        def of(self, spec: RunSpec) -> float:
            return 1.0

    cost, part = (price(s, Rates(), jobs=1) for s in (both, searched))  # type: ignore[arg-type]
    assert part.chosen is not None
    assert cost.chosen == (part.chosen[0] + 6, part.chosen[1] + 6)
    assert cost.runs == 22


def again_written(sweep: Sweep) -> Sweep:
    """Write a sweep, and read it back: every part has its allocation."""
    again = read_sweep(plain_sweep(sweep))
    assert [part.allocate for part in again.grids()] == [part.allocate for part in sweep.grids()]
    return again


def test_an_allocation_is_written_and_read_with_its_sweep() -> None:
    """A record's sweep has it; sweeps of before are written as they were."""
    again = read_sweep(plain_sweep(WIDE))
    assert again.allocate == RULE
    assert list(again.specs()) == list(WIDE.specs())
    assert "allocate" not in plain_sweep(replace(WIDE, allocate=None))
    assert WIDE.narrowed(["seed=0..2"]).allocate == RULE


def test_it_says_what_it_assumes() -> None:
    """A rule must not claim what the search takes for granted."""
    assert RULE.assumes == ("data.m",)
    assert AtHalf().assumes == ()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Sweep(BASE, {"data.m": SIZES}, allocate=FindThreshold("model.width", 0.5)),
            "FindThreshold: 'model.width' is no axis of this sweep. Its axes: data.m.",
        ),
        (
            lambda: Sweep(BASE, AXES, allocate=FindThreshold("data.m", 0.5)),
            "FindThreshold: the sweep varies restart too, and nothing says how. Name it in within, "
            "so that each of its values has a threshold of its own.",
        ),
        (
            lambda: Sweep(BASE, {"data.m": SIZES}, (WIDE,), AtHalf()),
            "The sweep chooses its runs by at_half, and a part of it chooses too. Give allocate to "
            "the whole, or to its parts.",
        ),
        (
            lambda: Sweep(
                BASE, {"init": (Sparse(2), Uniform())}, allocate=FindThreshold("init", 0.5)
            ),
            "FindThreshold: the axis init has values that are no numbers, and bisection needs an "
            "order. Search along an axis of numbers.",
        ),
        (
            lambda: FindThreshold("data.m", 0.0),
            "FindThreshold: success=0.0. Give a share above 0 and at most 1.",
        ),
        (
            lambda: FindThreshold("data.m", 0.5, first=0),
            "FindThreshold: first=0. Give a whole number of at least 1.",
        ),
        (
            lambda: FindThreshold("data.m", 0.5, outward=(0.5, 0.9)),
            "FindThreshold: outward=(0.5, 0.9). Give two shares from 0 to 1, the first below "
            "success=0.5, the second not below it.",
        ),
        (
            lambda: AtHalf(1.0),
            "AtHalf: level=1.0. Give a probability between 0 and 1.",
        ),
        (
            lambda: run_sweep(WIDE, Store(Path("none")), adaptive=True),
            "--adaptive was given, and this sweep chooses its runs by find_threshold(data.m, 0.8, "
            "('task.n',), 3, restart) already. Leave --adaptive out.",
        ),
    ],
    ids=["axis", "others", "both", "order", "success", "first", "outward", "level", "twice"],
)
def test_what_cannot_be_searched(make: Any, message: str) -> None:
    """One sentence each."""
    with pytest.raises(UserError) as refused:
        make()
    assert str(refused.value) == message
