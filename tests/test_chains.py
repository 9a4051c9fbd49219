"""Runs that need runs: going on from one, being taught by one."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from torch import nn

from petridish.choices import describe
from petridish.errors import UserError
from petridish.models import MLP, Constant, Own
from petridish.store import Store, check
from petridish.sweeps import Sweep, run_sweep
from petridish.sweeps.batches import check_all
from petridish.sweeps.price import price
from petridish.tasks import Domain, Reals, SparseParity, Values
from petridish.tasks.base import Examples
from petridish.testing import check_engine, check_task
from petridish.training import (
    SGD,
    CrossEntropy,
    Data,
    Evaluation,
    From,
    Needs,
    Piece,
    RunSpec,
    Schedule,
    Square,
    Taught,
    Training,
    cell_text,
    ended,
    flat,
    load_engine,
    parents_of,
    read_spec,
    run_key,
    spec_text,
)
from petridish.training.chains import finding
from petridish.training.data import initial_weights, training_examples

FIRST = RunSpec(
    task=SparseParity(10, 2),
    data=Data(m=50, n_test=40),
    model=MLP(width=8),
    training=Training(steps=6, target_error=None),
    evaluation=Evaluation(every=3),
)
SECOND = replace(
    FIRST,
    init=From(FIRST),
    training=replace(FIRST.training, steps=4, batch_size=None),
    evaluation=Evaluation(every=2, curves=True, weights=True),
)
ENGINES = ["native", "torch", "reference"]


@dataclass(frozen=True)
class Normed:
    """A module with batch normalisation."""

    name: ClassVar[str] = "normed"

    def build(self, domain: Domain, n_outputs: int) -> nn.Module:
        """Normalise eight neurons."""
        return nn.Sequential(
            nn.Linear(domain.n_inputs, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, n_outputs)
        )


@dataclass(frozen=True)
class Circular(Needs):
    """A parity that needs the very run that learns it, or the one of the next seed."""

    name: ClassVar[str] = "circular"

    step: int = 0

    @property
    def domain(self) -> Domain:
        """A parity's."""
        return SparseParity(10, 2).domain

    def draw(self, seeds: Any, purpose: str, start: int, count: int) -> Examples:
        """Draw as a parity."""
        return SparseParity(10, 2).draw(seeds, purpose, start, count)

    def parents(self, spec: RunSpec) -> tuple[RunSpec, ...]:
        """Return the run itself, or another without end."""
        return (replace(spec, seed=spec.seed + self.step),)


# Going on


@pytest.mark.parametrize("engine", ["torch", "reference"])
def test_two_runs_of_sgd_are_one_longer_run(engine: str) -> None:
    """Ten steps, and ten more that begin after the examples that were seen, are twenty."""
    whole = replace(
        FIRST,
        data=Data(n_test=40),
        training=Training(batch_size=4, steps=20, target_error=None),
        evaluation=Evaluation(every=10, curves=True, weights=True),
    )
    half = replace(whole, training=replace(whole.training, steps=10))
    rest = replace(half, init=From(half), data=Data(n_test=40, skip=40))
    (one,) = load_engine(engine).run([whole], _silent())
    (two,) = load_engine(engine).run([rest], _silent())
    assert one.weights is not None
    assert two.weights is not None
    for ours, theirs in zip(one.weights, two.weights, strict=True):
        assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def _silent() -> Any:
    from petridish.training import Silent

    return Silent()


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_begins_with_the_parents_weights(engine: str) -> None:
    """The first weights of a run are the last of its parent, of the same seed and restart."""
    specs = [replace(SECOND, seed=3), replace(SECOND, seed=3, restart=1), replace(SECOND, seed=4)]
    start = initial_weights(specs)
    for row, spec in enumerate(specs):
        last = ended(replace(FIRST, seed=spec.seed, restart=spec.restart))
        for values, parameter in zip(start, spec.parameters, strict=True):
            assert np.array_equal(values[row], last[parameter.name])
    short = replace(SECOND, training=replace(SECOND.training, batch_size=8))
    check_engine(load_engine(engine), short)


def test_parts_are_taken_over_and_the_rest_is_drawn() -> None:
    """Layer 1 comes from the parent, the rest by `base`, or as usual."""
    part = replace(SECOND, init=From(FIRST, ("layer1.*",), Constant(0.5)))
    last, usual = ended(FIRST), initial_weights([FIRST])
    weight, bias, output, shift = (each[0] for each in initial_weights([part]))
    assert np.array_equal(weight, last["layer1.weight"])
    assert np.array_equal(bias, last["layer1.bias"])
    assert (output == 0.5).all()
    assert (shift == 0.5).all()
    free = initial_weights([replace(SECOND, init=From(FIRST, ("layer1.*",)))])
    assert np.array_equal(free[2], usual[2])


def test_a_parent_may_have_a_seed_of_its_own() -> None:
    """Then runs of all seeds begin alike."""
    one = replace(SECOND, init=From(FIRST, seed=7))
    first, second = (initial_weights([replace(one, seed=seed)]) for seed in (0, 1))
    for ours, theirs in zip(first, second, strict=True):
        assert np.array_equal(ours, theirs)
    assert parents_of(replace(one, seed=3)) == (replace(FIRST, seed=7),)


@pytest.mark.parametrize("engine", ["torch", "reference"])
def test_running_means_are_taken_over(engine: str) -> None:
    """A module goes on with its buffers: with a rate of 0 only they have moved further."""
    training = replace(FIRST.training, loss=CrossEntropy())
    first = replace(FIRST, model=Normed(), init=Own(), training=training)
    still = replace(
        first,
        init=From(first),
        training=replace(first.training, steps=1, learning_rate=0.0),
        evaluation=Evaluation(every=1, weights=True),
    )
    (record,) = load_engine(engine).run([still], _silent())
    assert record.weights is not None
    assert record.weights_of is not None
    names = [name for name, _ in record.weights_of]
    found = dict(zip(names, record.weights, strict=True))
    last = ended(first)
    assert found["1.num_batches_tracked"] == [7.0]
    assert last["1.num_batches_tracked"] == 6
    assert found["0.weight"] == last["0.weight"].ravel().tolist()
    assert found["1.running_mean"] != last["1.running_mean"].tolist()


def test_frozen_layers_stay_the_parents() -> None:
    """A classifier on top of learned features: layer 1 does not move, layer 2 does."""
    top = replace(
        SECOND,
        training=replace(
            SECOND.training, schedule=Schedule((Piece(0, (("layer1.*", 0.0), ("*", 1.0))),))
        ),
    )
    last, end = ended(FIRST), ended(top)
    assert np.array_equal(end["layer1.weight"], last["layer1.weight"])
    assert not np.array_equal(end["layer2.weight"], last["layer2.weight"])


# The store


@pytest.mark.parametrize("executor", ["inline", "local"])
def test_parents_are_trained_once(executor: str, tmp_path: Path) -> None:
    """Two children of three seeds share three parents; a second call finds everything."""
    other = replace(SECOND, training=replace(SECOND.training, learning_rate=0.05))
    sweep = Sweep(SECOND, {"seed": range(3)}, also=(Sweep(other, {"seed": range(3)}),))
    store = Store(tmp_path)
    done = run_sweep(sweep, store, executor=executor, jobs=2)
    assert (done.runs, done.done, done.parents, done.skipped) == (6, 9, 3, 0)
    again = run_sweep(sweep, store, executor=executor, jobs=2)
    assert (again.runs, again.done, again.parents, again.skipped) == (6, 0, 0, 6)
    table = store.read(columns="all").table
    assert len(table) == 9
    assert len(sweep.among(table)) == 6
    assert Sweep(FIRST, {"seed": range(3)}).among(table)["weights"].is_null().all()
    for seed in range(3):
        alone = ended(replace(FIRST, seed=seed))
        for name, values in store.weights.read(replace(FIRST, seed=seed)).items():
            assert np.allclose(values, alone[name], rtol=1e-5)


def test_weights_are_made_again_only_where_they_are_needed(tmp_path: Path) -> None:
    """Without the folder of weights nothing is trained again, until another child wants them."""
    store, sweep = Store(tmp_path), Sweep(SECOND, {"seed": range(2)})
    run_sweep(sweep, store, executor="inline")
    for path in store.weights.folder.iterdir():
        path.unlink()
    assert run_sweep(sweep, store, executor="inline").done == 0
    more = replace(SECOND, training=replace(SECOND.training, steps=5))
    done = run_sweep(Sweep(more, {"seed": range(2)}), store, executor="inline")
    assert (done.done, done.parents) == (4, 2)


def test_a_parent_with_weights_and_no_row_is_carried_out_anew(tmp_path: Path) -> None:
    """A process may be killed after it has kept the one and before it keeps the other."""
    store, killed = Store(tmp_path / "a"), Store(tmp_path / "b")
    run_sweep(Sweep(SECOND, {"seed": range(2)}), store, executor="inline")
    killed.prepare()
    store.weights.folder.rename(killed.weights.folder)
    done = run_sweep(Sweep(SECOND, {"seed": range(2)}), killed, executor="inline")
    assert (done.done, done.parents) == (4, 2)
    assert len(killed.read().table) == 4


def test_a_parent_that_is_asked_for_too_is_one_run(tmp_path: Path) -> None:
    """Run before its child by itself, it is trained again for its weights, and has one row."""
    store = Store(tmp_path)
    run_sweep(Sweep(FIRST, {"seed": range(2)}), store, executor="inline")
    both = Sweep(SECOND, {"seed": range(2)}, also=(Sweep(FIRST, {"seed": range(2)}),))
    assert run_sweep(both, store, executor="inline").runs == 4
    assert len(store.read().table) == 4


def test_grandparents_come_first(tmp_path: Path) -> None:
    """A chain of three runs is carried out in its order."""
    third = replace(SECOND, init=From(SECOND))
    store = Store(tmp_path)
    done = run_sweep(Sweep(third, {"seed": range(2)}), store, executor="inline")
    assert (done.done, done.parents) == (6, 4)


def test_children_of_diverged_runs_are_left_out(tmp_path: Path) -> None:
    """All other runs are carried out; one sentence says which were not, and why."""
    wild = replace(FIRST, training=replace(FIRST.training, learning_rate=1e30))
    child, grandchild = replace(SECOND, init=From(wild)), None
    grandchild = replace(SECOND, init=From(child))
    sweep = Sweep(SECOND, {"seed": range(2)}, also=(Sweep(grandchild, {"seed": range(2)}),))
    store = Store(tmp_path)
    for _ in range(2):  # what is known to diverge is not tried again
        with pytest.raises(UserError) as refused:
            run_sweep(sweep, store, executor="inline")
        key = run_key(wild)[:8]
        assert str(refused.value) == (
            "4 runs were not carried out; all others were. "
            f"The run {key} (seed 0) diverged, and another run begins from its last weights. Lower "
            "its training.learning_rate, or leave this seed out."
        )
        assert len(store.read().table) == 6


def test_plan_prices_parents_too() -> None:
    """A parent's steps are counted once for all of its children."""
    other = replace(SECOND, training=replace(SECOND.training, learning_rate=0.05))
    sweep = Sweep(SECOND, {"seed": range(3)}, also=(Sweep(other, {"seed": range(3)}),))

    class Rates:
        def of(self, spec: RunSpec) -> float:
            return 1.0

    cost = price(sweep, Rates(), jobs=1)  # type: ignore[arg-type] # a second per step
    assert (cost.runs, cost.parents) == (6, 3)
    assert cost.model_steps == 6 * 4 + 3 * 6


# Teachers


def test_a_student_sees_the_teachers_answers() -> None:
    """Labels are those that the teacher's network gives; it makes no error on its own task."""
    teacher = replace(FIRST, training=replace(FIRST.training, steps=50))
    task = Taught(SparseParity(10, 3), teacher)
    check_task(task)
    spec = replace(FIRST, task=task, init=From(teacher, seed=0))
    spec = replace(spec, evaluation=Evaluation(every=1, curves=True))
    for engine in ("torch", "reference"):
        (record,) = load_engine(engine).run([spec], _silent())
        assert record.curves["test_error"][0] == 0
        assert record.curves["train_error"][0] == 0
    labels = training_examples([spec], 0, 50).labels
    assert 0 < labels.mean() < 1


@dataclass(frozen=True)
class Waves:
    """Real targets: the sine of a sum."""

    name: ClassVar[str] = "waves"

    @property
    def domain(self) -> Domain:
        """Three reals and one target."""
        return Domain(Reals((3,)), Values(1))

    def draw(self, seeds: Any, purpose: str, start: int, count: int) -> Examples:
        """Draw normal inputs."""
        from petridish.seeds import Streams

        x = Streams(seeds, purpose).normals(3 * start, 3 * count).reshape(len(seeds), count, 3)
        x = x.astype(np.float32)
        return Examples(np.sin(x.sum(axis=2, keepdims=True)), dense=x)


def test_a_teacher_of_a_regression() -> None:
    """Going on from the teacher, the student's squared error is 0 up to rounding."""
    teacher = RunSpec(
        task=Waves(),
        data=Data(m=30, n_test=30),
        model=MLP(6),
        training=Training(loss=Square(), optimiser=SGD(), steps=5, target_error=None),
        evaluation=Evaluation(fitted_error=None),
    )
    task = Taught(Waves(), teacher, seed=None)
    spec = replace(teacher, task=task, init=From(teacher), seed=2)
    spec = replace(spec, evaluation=Evaluation(every=1, curves=True))
    (record,) = load_engine("torch").run([spec], _silent())
    assert record.curves["test_squared_error"][0] < 1e-10
    assert parents_of(spec) == (replace(teacher, seed=2),)


def test_students_wait_for_their_teacher(tmp_path: Path) -> None:
    """One teacher for all seeds, trained first, in other processes too."""
    student = replace(FIRST, task=Taught(SparseParity(10, 3), FIRST))
    store = Store(tmp_path)
    done = run_sweep(Sweep(student, {"seed": range(4)}), store, jobs=2)
    assert (done.done, done.parents) == (5, 1)


# Keys, text, columns


def test_a_chain_has_one_key_and_comes_back_from_its_json() -> None:
    """The parent stands in the child with seed 0, whatever the child's seed."""
    child = replace(SECOND, seed=5, restart=2)
    again = read_spec(spec_text(child))
    assert again == child
    assert run_key(again) == run_key(child)
    inside = json.loads(spec_text(child))["init"]["run"]
    assert inside["type"] == "RunSpec"
    assert inside["seed"] == 0
    assert cell_text(child) == cell_text(SECOND)


def test_a_parent_in_text_and_columns_is_its_key() -> None:
    """Eight digits of it, and none of its fields, however long the chain."""
    third = replace(SECOND, init=From(SECOND))
    columns = flat(third)
    assert describe(third.init) == f"from({run_key(SECOND)[:8]})"
    assert columns["init.run"] == run_key(SECOND)[:8]
    assert not [name for name in columns if name.startswith("init.run.")]


def test_the_parents_settings_are_axes() -> None:
    """A sweep reaches into the parent by its path."""
    sweep = Sweep(SECOND, {"init.run.training.steps": (2, 3), "seed": range(2)})
    assert len({run_key(parent) for spec in sweep.specs() for parent in parents_of(spec)}) == 4


# What is refused

WIDER = replace(FIRST, model=MLP(width=9))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: replace(SECOND, init=From(WIDER)).check(),
            "From: this run has a parameter layer1.weight of the shape (8, 10), and the run "
            f"{run_key(WIDER)[:8]} that it goes on from has one of the shape (9, 10). Give runs of "
            "one shape, or name fewer parameters in take.",
        ),
        (
            lambda: replace(SECOND, model=MLP(8, (8,)), init=From(FIRST, ("layer3.*",))).check(),
            "From: this run has a parameter layer3.weight of the shape (1, 8), and the run "
            f"{run_key(FIRST)[:8]} that it goes on from has none. Give runs of one shape, or name "
            "fewer parameters in take.",
        ),
        (
            lambda: replace(SECOND, init=From(FIRST, ("layer4.*",))).check(),
            "From: take=('layer4.*',) has the pattern 'layer4.*', which fits no parameter. Known: "
            "layer1.weight, layer1.bias, layer2.weight, layer2.bias.",
        ),
        (
            lambda: From(FIRST, base=Constant(0.5)),
            "From: base=constant(0.5) has no effect, since take=('*',) takes all parameters over. "
            "Leave base out, or name fewer parameters in take.",
        ),
        (
            lambda: From(replace(FIRST, seed=3)),
            "From: run has seed=3, and the seed of a parent is the run's own unless From names "
            "one. Give run with seed and restart 0, and seed=3 to From to name it.",
        ),
        (
            lambda: From("PF-1"),  # type: ignore[arg-type]
            "From: run='PF-1' is no RunSpec. Give the run that it needs.",
        ),
        (
            lambda: Taught("x", FIRST),  # type: ignore[arg-type]
            "Taught: inputs='x' is no task. Give one.",
        ),
        (
            lambda: Taught(SparseParity(9, 2), FIRST).domain,
            "Taught: the inputs of sparse_parity(9, 2) are Bits(n=9), and the teacher "
            f"{run_key(FIRST)[:8]} reads Bits(n=10). Give inputs that it reads.",
        ),
    ],
    ids=["shape", "missing", "pattern", "base", "seed", "text", "task", "inputs"],
)
def test_what_cannot_be_gone_on_from(make: Any, message: str) -> None:
    """One sentence each, before anything is trained."""
    with pytest.raises(UserError) as refused:
        make()
    assert str(refused.value) == message


@pytest.mark.parametrize(("step", "way"), [(0, "leads back to itself"), (1, "has no beginning")])
def test_a_chain_without_a_beginning(step: int, way: str) -> None:
    """Refused before anything is trained."""
    spec = replace(FIRST, task=Circular(step))
    with pytest.raises(UserError) as refused:
        check_all([spec])
    told = str(refused.value)
    assert told.endswith(
        f"needs other runs, and their chain {way}. Let a chain begin with a run that needs none."
    )


@pytest.mark.parametrize("content", [b"", b"PK", b"no archive"])
def test_a_file_of_weights_that_is_torn(content: bytes, tmp_path: Path) -> None:
    """It is removed and named, and the same command goes on."""
    store, sweep = Store(tmp_path), Sweep(SECOND, {"seed": range(2)})
    run_sweep(Sweep(SECOND, {"seed": (0,)}), store, executor="inline")
    path = store.weights.folder / f"{run_key(FIRST)}.npz"
    assert check(store).problems == ()
    path.write_bytes(content)
    (problem,) = check(store).problems
    assert problem.startswith(f"The file {path} cannot be read (")
    assert problem.endswith(
        "). Remove it: the run whose weights it held is carried out anew when another begins from "
        "it."
    )
    more = replace(sweep, base=replace(SECOND, training=replace(SECOND.training, steps=5)))
    with pytest.raises(UserError) as refused:
        run_sweep(more, store, executor="inline")
    assert str(refused.value).startswith(f"The file {path} cannot be read (")
    assert str(refused.value).endswith(
        ", and was removed. Give the same command again: the run whose weights it held is carried "
        "out anew."
    )
    assert run_sweep(more, store, executor="inline").parents >= 1


def test_a_parent_that_was_never_run(tmp_path: Path) -> None:
    """A worker does not train it in silence: it says what is missing."""
    store = Store(tmp_path)
    with finding(store.weights.read), pytest.raises(UserError) as refused:
        initial_weights([replace(SECOND, seed=2)])
    assert str(refused.value) == (
        f"The store {tmp_path} has no weights of the run {run_key(replace(FIRST, seed=2))[:8]} "
        "(seed 2), from which another run begins: it was not carried out before. Run both by one "
        "sweep, which carries parents out first; a class of your own that needs runs inherits "
        "Needs and names them."
    )
