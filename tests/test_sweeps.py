"""Sweeps: grids, settings from the command line, batches, and running them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from petridish.errors import UserError
from petridish.models import MLP, Paired, Power, Sparse, Uniform
from petridish.store import Store, to_table
from petridish.sweeps import Summary, Sweep, load_user_file, run_sweep
from petridish.sweeps.batches import cut
from petridish.sweeps.executors import LocalProcesses
from petridish.sweeps.price import Speeds, price
from petridish.sweeps.progress import Progress, Tally, clock, count
from petridish.sweeps.sweep import with_value
from petridish.tasks import GroupProduct, SparseAnd, SparseParity
from petridish.training import (
    ONLINE,
    SGD,
    Adam,
    Data,
    Evaluation,
    Movement,
    Outcome,
    RunRecord,
    RunSpec,
    Square,
    Training,
    run_key,
)
from petridish.user_classes import _learned

TINY = RunSpec(
    task=SparseParity(8, 2),
    data=Data(m=200, n_test=200),
    model=MLP(16),
    training=Training(steps=200),
)
SWEEP = Sweep(TINY, {"model.width": (8, 16), "init": (Uniform(), Sparse(2)), "seed": range(3)})


def test_a_sweep_is_the_product_of_its_axes() -> None:
    """Every combination once, the last axis fastest."""
    specs = list(SWEEP.specs())

    assert len(specs) == len(SWEEP) == 12
    assert [spec.seed for spec in specs[:4]] == [0, 1, 2, 0]
    assert len({run_key(spec) for spec in specs}) == 12
    assert SWEEP.model_steps == 12 * 200
    assert Sweep(TINY, {"training.steps": (10, 20), "seed": (1,)}).model_steps == 30
    assert [list(seeds) for _, seeds in SWEEP.cells()] == [[0, 1, 2]] * 4


def test_settings_narrow_and_widen() -> None:
    """Any path is an axis; short names, ranges, choices and ∞ are read."""
    sweep = SWEEP.narrowed(["r=4,32", "m=50,inf", "seed=0..9", "init=paired(sparse(3)),uniform"])

    assert sweep.axes["model.width"] == (4, 32)
    assert sweep.axes["data.m"] == (50, math.inf)
    assert sweep.axes["seed"] == tuple(range(10))
    assert sweep.axes["init"] == (Paired(Sparse(3)), Uniform())
    assert SWEEP.narrowed(["training.steps=1e3"]).axes["training.steps"] == (1000,)
    assert SWEEP.narrowed(["evaluation.curves=true"]).axes["evaluation.curves"] == (True,)
    assert SWEEP.narrowed(["training.target_error=none"]).axes["training.target_error"] == (None,)


def test_a_setting_is_read_by_the_type_of_its_field() -> None:
    """Floats, tuples, None, words and choices, whatever stands there now."""
    cases: dict[str, tuple[object, ...]] = {
        "lr=1,0.5": (1, 0.5),
        "task.support=(1,2),none": ((1, 2), None),
        "model.deeper=(4,),(4,2)": ((4,), (4, 2)),
        "training.batch_size=none,7": (None, 7),
        "data.draws=distinct": ("distinct",),
        "training.optimiser=adam,sgd(0.5)": (Adam(), SGD(0.5)),
        "model.activation=power(3)": (Power(3),),
        "evaluation.instruments=(movement,)": ((Movement(),),),
    }
    for setting, values in cases.items():
        (axis,) = SWEEP.narrowed([setting]).axes.keys() - SWEEP.axes.keys()
        found = SWEEP.narrowed([setting]).axes[axis]
        assert (repr(found), setting) == (repr(values), setting)
    group = Sweep(replace(TINY, task=GroupProduct("Z5")), {"seed": (0,)})
    assert group.narrowed(["task.group=Z7"]).axes["task.group"] == ("Z7",)


def test_a_users_class_is_a_choice_where_it_has_the_names(tmp_path: Path) -> None:
    """A task of a file that was loaded is a value of `task`, and of nothing else."""
    path = tmp_path / "own.py"
    path.write_text(OWN, encoding="utf-8")
    own = load_user_file(path)
    axes = SWEEP.narrowed(["task=mine(8,2,0.5),sparse_parity(9,2)"]).axes

    assert axes["task"] == (own.Own(8, 2, weight=0.5), SparseParity(9, 2))
    for axis in ("model", "init"):
        with pytest.raises(UserError, match=rf"^There is no {axis} called 'mine'\."):
            SWEEP.narrowed([f"{axis}=mine(8,2)"])
    _learned.clear()


OWN = """
from dataclasses import dataclass
from typing import ClassVar

from petridish.tasks import SparseParity


@dataclass(frozen=True)
class Own:
    name: ClassVar[str] = "mine"
    n: int
    k: int
    weight: float = 1.0

    @property
    def domain(self):
        return SparseParity(self.n, self.k).domain

    def draw(self, seeds, purpose, start, count):
        return SparseParity(self.n, self.k).draw(seeds, purpose, start, count)
"""


def test_a_setting_that_does_not_survive_is_refused() -> None:
    """A class may set a field by others; a sweep over it would repeat one run."""

    @dataclass(frozen=True)
    class Stubborn:
        name: ClassVar[str] = "stubborn"
        width: int = 4

        def __post_init__(self) -> None:
            object.__setattr__(self, "width", 4)

    stubborn: Any = Stubborn()
    with pytest.raises(UserError) as error:
        with_value(replace(TINY, model=stubborn), "model.width", 8)
    assert str(error.value) == "model.width=8 has no effect here: the value stays 4."
    assert with_value(TINY, "data.m", 7).data.m == 7.0


REFUSED = [
    (
        ["modle.width=3"],
        "There is no axis called 'modle.width' in this sweep. Did you mean model.width?",
    ),
    (["r="], "--set r= gives no values. Write model.width=v1,v2,…"),
    (["r=ten"], "The axis model.width takes numbers, but 'ten' was given. Give a number."),
    (
        ["r=2.5"],
        "The axis model.width takes whole numbers, but '2.5' was given. Give a whole number.",
    ),
    (["init=dense"], "There is no init called 'dense'. "),
    (["init=3"], "There is no init called '3'. "),
    (
        ["training.optimiser=hinge"],
        "There is no optimiser called 'hinge'. Known: adam, adamw, sgd.",
    ),
    (
        ["training.schedule=constant"],
        "The axis training.schedule has no values that can be written here. Set its parts, or "
        "declare the sweep in a file of your own.",
    ),
    (
        ["data=3"],
        "The axis data has no values that can be written here. Set its parts, or "
        "declare the sweep in a file of your own.",
    ),
    (["steps=none"], "The axis training.steps takes numbers, but 'none' was given. Give a number."),
    (
        ["model.deeper=4"],
        "The axis model.deeper takes lists in brackets, but '4' was given. For example: (0,1,2).",
    ),
]


@pytest.mark.parametrize(("settings", "sentence"), REFUSED)
def test_wrong_settings_are_refused(settings: list[str], sentence: str) -> None:
    """The message names what was given; for a choice, the known names follow."""
    with pytest.raises(UserError) as error:
        SWEEP.narrowed(settings)

    text = str(error.value)
    assert text.startswith(sentence) if sentence.endswith(" ") else text == sentence


@pytest.mark.parametrize(
    ("axis", "values", "shown"),
    [
        ("training.learning_rate", (0.1, 0.3, 1e-1), "0.1"),
        ("model.width", (3, 3.0), "3.0"),
        ("seed", (0, 1, 1), "1"),
        ("task", (SparseParity(8, 2), SparseParity(n=8, k=2)), "sparse_parity(8, 2)"),
        ("task.support", ([0, 1], [0, 1]), "[0, 1]"),
    ],
)
def test_an_axis_has_each_value_once(axis: str, values: Any, shown: str) -> None:
    """However they are written: a value that was meant to differ would be missing unsaid."""
    with pytest.raises(UserError) as error:
        Sweep(TINY, {axis: values})
    assert str(error.value) == (
        f"The axis {axis} has the value {shown} more than once, and no run is made twice. Give "
        "each value once."
    )
    with pytest.raises(UserError, match=r"^The axis data\.m has the value 50.0 more than once"):
        SWEEP.narrowed(["m=50,5e1"])


def test_a_wrong_axis_is_refused_when_declared() -> None:
    """The nearest paths are offered; an axis needs values."""
    with pytest.raises(UserError) as error:
        Sweep(TINY, {"model.widht": (1,)})
    assert str(error.value) == ("There is no axis called 'model.widht'. Did you mean model.width?")
    with pytest.raises(UserError) as error:
        Sweep(TINY, {"model.width": ()})
    assert str(error.value) == "The axis model.width has no values. Give at least one."


def fake(spec: RunSpec) -> RunRecord:
    """Make a record without training."""
    return RunRecord(
        spec=spec,
        outcome=Outcome.SOLVED,
        fitted_at=None,
        steps=1,
        train_loss=0.0,
        seconds=0.0,
        engine="torch",
        final={"test_error": 0.0},
    )


SWEEPS = {
    "widths": SWEEP,
    "samples": Sweep(TINY, {"data.m": (10, 200, ONLINE), "seed": range(2)}),
    "tasks": Sweep(TINY, {"task": (SparseParity(8, 2), SparseAnd(8, 2)), "seed": (0,)}),
    "n": Sweep(TINY, {"task.n": (7, 8), "seed": (0, 5)}),
    "support": Sweep(TINY, {"task.support": (None, (0, 1), (2, 3)), "seed": (0,)}),
    "rates": Sweep(TINY, {"training.learning_rate": (0.1, 0.3), "seed": (0,)}),
    "target": Sweep(TINY, {"training.target_error": (None, 0.1), "seed": (0,)}),
    "k within tasks": Sweep(
        TINY, {"task": (SparseParity(8, 2), SparseParity(9, 2)), "task.k": (1, 2), "seed": (0,)}
    ),
    "one seed": Sweep(TINY, {"model.width": (8,)}),
    "curves": Sweep(TINY, {"evaluation": (Evaluation(curves=True),), "seed": (0, 1)}),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_filtering_by_columns_is_filtering_by_keys(name: str) -> None:
    """`among` keeps exactly the runs whose keys the sweep would make, out of all sweeps' runs."""
    specs = {run_key(spec): spec for sweep in SWEEPS.values() for spec in sweep.specs()}
    table = pl.concat([to_table([fake(spec)]) for spec in specs.values()], how="diagonal_relaxed")
    sweep = SWEEPS[name]

    assert set(sweep.among(table)["key"]) == {run_key(spec) for spec in sweep.specs()}


def test_filtering_an_empty_store_gives_nothing(tmp_path: Path) -> None:
    """No column is there yet, and no row."""
    assert SWEEP.among(Store(tmp_path / "none").read().table).is_empty()


def comparable(store: Store) -> pl.DataFrame:
    """Return a store's table without what may differ between two equal runs: time, and the tree."""
    table = store.read(columns="all").table.drop("seconds", "commit", "clean").sort("key")
    return table.select(sorted(table.columns))


@pytest.mark.parametrize("executor", ["inline", "local"])
def test_running_skips_what_is_there(executor: str, tmp_path: Path) -> None:
    """A second call trains nothing; a wider sweep trains the difference."""
    store = Store(tmp_path)
    first = run_sweep(SWEEP, store, executor=executor, jobs=2)
    again = run_sweep(SWEEP, store, executor=executor, jobs=2)
    wider = run_sweep(SWEEP.narrowed(["seed=0..3"]), store, executor=executor, jobs=2)

    assert (first.done, first.skipped) == (12, 0)
    assert (again.done, again.skipped) == (0, 12)
    assert (wider.done, wider.skipped) == (4, 12)
    assert first.model_steps == store.read().table.filter(pl.col("seed") < 3)["steps"].sum()
    assert (
        first.solved == (store.read().table.filter(pl.col("seed") < 3)["outcome"] == "SOLVED").sum()
    )


def test_executors_and_worker_numbers_give_one_table(tmp_path: Path) -> None:
    """In this process, in two workers, in three: the same records, bit by bit.

    The stacks are cut differently each time, and odd sizes put a run's weights at every alignment.
    """
    odd = replace(
        TINY,
        task=SparseParity(31, 2),
        training=Training(steps=150, target_error=None, batch_size=8, loss=Square()),
        evaluation=Evaluation(every=10, curves=True),
    )
    sweep = Sweep(odd, {"model.width": (7, 33), "data.m": (60, 200), "seed": range(6)})
    tables = []
    for executor, jobs in (("inline", 1), ("local", 2), ("local", 3)):
        store = Store(tmp_path / f"{executor}{jobs}")
        run_sweep(sweep, store, executor=executor, jobs=jobs)
        tables.append(comparable(store))

    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])


def test_batches_hold_one_shape_and_every_run_once() -> None:
    """No batch larger than its engine's stack or than a worker's share."""
    specs = list(SWEEP.narrowed(["seed=0..40"]).specs())
    batches = cut(specs, engine="auto", jobs=2)

    assert sorted(spec.seed for batch in batches for spec in batch.specs) == sorted(
        spec.seed for spec in specs
    )
    assert all(len({spec.model for spec in batch.specs}) == 1 for batch in batches)
    assert max(len(batch.specs) for batch in batches) <= -(-len(specs) // 2)


def test_nothing_is_trained_where_one_run_cannot(tmp_path: Path) -> None:
    """A sweep with an impossible cell is refused whole, before the first step."""
    with pytest.raises(UserError) as error:
        run_sweep(SWEEP.narrowed(["init=sparse(9)"]), Store(tmp_path / "s"), executor="inline")
    assert str(error.value) == (
        "Sparse: s=9 weights per neuron, but there are only 8 inputs. Give s from 1 to 8."
    )
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"executor": "cluster"},
            "There is no executor called 'cluster'. Known: dask, inline, local.",
        ),
        ({"jobs": 0}, "--jobs 0 was given. Give at least 1 worker."),
        ({"shared_by": 0}, "--shared-by 0 was given. Give at least 1 command."),
        (
            {"executor": "dask"},
            "The executor dask was asked for, and no cluster was given. Give --scheduler ADDRESS, "
            "--scheduler FILE or --cluster local; from Python, executor=client.",
        ),
        (
            {"engine": "jax"},
            "There is no engine called 'jax'. Known: fit, native, reference, torch, wide.",
        ),
    ],
)
def test_unknown_ways_to_run_are_refused(
    arguments: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    """The known names are given."""
    with pytest.raises(UserError) as error:
        run_sweep(SWEEP, Store(tmp_path), **arguments)

    assert str(error.value) == sentence


def test_text_is_read_where_text_stands() -> None:
    """Choices by word can be set; the spec refuses words that it does not know."""
    sweep = Sweep(TINY, {"seed": range(2)})
    whole = sweep.narrowed(
        ["training.precision=float64,float32", "data.m=8", "data.draws=distinct"]
    )

    assert len(whole) == 4
    assert {spec.training.precision for spec in whole.specs()} == {"float64", "float32"}
    with pytest.raises(UserError, match=r"precision='half'\. Give 'float32' or 'float64'"):
        list(sweep.narrowed(["training.precision=half"]).specs())


def test_prices_follow_the_calibration() -> None:
    """Runs × steps × seconds a step over the workers; a power law between calibrated points."""
    work = float(32 * (8 * 16 + 16 + 16 + 1))
    flat_rate = Speeds((work,), (1e-3,))
    cost = price(Sweep(TINY, {"seed": range(10)}), flat_rate, jobs=2)

    assert (cost.runs, cost.model_steps) == (10, 2000)
    assert cost.seconds == pytest.approx(10 * 200 * 1e-3 / 2)
    between = Speeds((work / 2, work * 2), (1e-4, 4e-4))
    assert between.of(TINY) == pytest.approx(2e-4)
    above = Speeds((1.0, work / 2), (1e-9, 1e-4))
    assert above.of(TINY) == pytest.approx(2e-4)
    below = Speeds((work * 4, work * 8), (1e-4, 1e-3))
    assert below.of(TINY) == 1e-4


def test_stacks_have_a_price_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten runs on two cores make two stacks of five: calls by the stack, work by the run."""
    from petridish.sweeps import price as prices

    monkeypatch.setattr(prices, "_stack_rates", lambda: (1e-3, 1e-9))
    spec = replace(TINY, training=replace(TINY.training, precision="float64"))
    work = float(32 * (8 * 16 + 16 + 16 + 1))
    cost = price(Sweep(spec, {"seed": range(10)}), Speeds((work,), (1.0,)), jobs=2)

    assert cost.seconds == pytest.approx(200 * (2 * 1e-3 + 10 * 2e-9 * work) / 2)


def test_durations_and_counts_are_written_shortly() -> None:
    """As a person would say them."""
    assert [clock(s) for s in (0, 61, 3600 + 62, 3 * 86400)] == [
        "00:00",
        "01:01",
        "1:01:02",
        "3.0 days",
    ]
    assert [count(n) for n in (12, 12_345, 2_500_000, 1.5e10)] == ["12", "12.3k", "2.5M", "15G"]
    tally = Tally(runs=10, cost=100.0)
    assert "--:-- left" in str(tally)
    tally.add(done=5, solved=2, cost=50.0, model_steps=100)
    assert str(tally).startswith("5/10 runs, 2 solved, ")
    assert "solved" not in str(replace(tally, solvable=False))


def test_time_left_is_that_of_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured from the first report on: workers that start do nothing yet."""
    now = [0.0]
    monkeypatch.setattr("petridish.sweeps.progress.time.perf_counter", lambda: now[0])
    tally = Tally(runs=1, cost=100.0)
    left = []
    for seconds in (60.0, 70.0, 80.0):
        now[0] = seconds
        tally.add(done=0, solved=0, cost=10.0, model_steps=5)
        left.append(tally.seconds_left)
    assert left == [None, 80.0, 70.0]
    assert tally.share == 0.3


@pytest.mark.parametrize("engine", ["native", "torch", "reference"])
def test_progress_is_reported_while_runs_are_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """The share of the work rises before the first run has ended, and ends at 1."""
    monkeypatch.setattr("petridish.sweeps.executors.worker.REPORT_SECONDS", 0.0)
    seen: list[tuple[int, float]] = []

    class Heard(Progress):
        def show(self, tally: Tally) -> None:
            seen.append((tally.done, tally.share))

    run_sweep(
        Sweep(TINY, {"seed": range(2)}),
        Store(tmp_path),
        executor="inline",
        engine=engine,
        progress=Heard(),
    )
    before = [share for done, share in seen if done == 0 and share > 0]
    assert before == sorted(before)
    assert before[0] < 1
    assert seen[-1][0] == 2
    assert seen[-1][1] == pytest.approx(1.0)


def test_a_summary_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep that is complete does not even start a worker."""
    run_sweep(SWEEP, Store(tmp_path), executor="inline")
    monkeypatch.setattr(LocalProcesses, "run", None)
    summary = run_sweep(SWEEP, Store(tmp_path), executor="local")

    assert isinstance(summary, Summary)


def test_axes_may_come_from_numpy() -> None:
    """Arrays and their numbers make the same runs as Python's own."""
    ours = Sweep(TINY, {"model.width": (8, 16), "data.m": (100, 200), "seed": range(3)})
    theirs = Sweep(
        TINY,
        {
            "model.width": np.array([8, 16]),  # type: ignore[dict-item] # as in a notebook
            "data.m": [np.int64(100), np.float32(200)],
            "seed": np.arange(3),  # type: ignore[dict-item]
        },
    )

    assert list(map(run_key, theirs.specs())) == list(map(run_key, ours.specs()))
    assert list(theirs.specs()) == list(ours.specs())


def test_runs_that_differ_in_seed_alone_are_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum is that of all, in a time that hardly grows with the number of seeds."""
    from petridish.sweeps import batches

    specs = [
        replace(TINY, model=MLP(width), training=replace(TINY.training, steps=steps), seed=seed)
        for steps in (10, 40)
        for width in (7, 33)
        for seed in range(50)
    ]
    shared = [replace(specs[50 * at], seed=seed) for at in range(4) for seed in range(50)]
    asked: list[RunSpec] = []
    one = batches.run_cost

    def counted(spec: RunSpec) -> float:
        asked.append(spec)
        return one(spec)

    monkeypatch.setattr(batches, "run_cost", counted)
    assert batches.total_cost(specs) == sum(map(one, specs))
    asked.clear()
    assert batches.total_cost(shared) == sum(map(one, specs))
    assert len(asked) == 4


def test_an_axis_of_functions_is_refused() -> None:
    """As in a model's field; it was a TypeError of the module json, after the call."""
    with pytest.raises(UserError) as error:
        Sweep(RunSpec(task=SparseParity(8, 2)), {"model.activation": (lambda z: z,)})
    assert str(error.value) == (
        "Sweep: the axis model.activation holds a value of the type function, which is no part of "
        "a spec. Give numbers, text, None, frozen dataclasses, or tuples of them."
    )
