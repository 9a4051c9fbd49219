"""Sweeps on the workers of a Dask cluster: real schedulers and workers, as processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import polars as pl
import pytest

import petridish
from petridish import (
    MLP,
    Cluster,
    Data,
    Evaluation,
    From,
    RunSpec,
    SparseParity,
    Square,
    Sweep,
    Training,
)
from petridish.api.asked import find_experiment
from petridish.errors import UserError
from petridish.store import Store
from petridish.sweeps import run_sweep
from petridish.sweeps.executors import remote
from petridish.training import run_key
from tests.clusters import ProcessCluster
from tests.test_leases import wait_for
from tests.test_sweeps import comparable

TINY = RunSpec(
    task=SparseParity(31, 2),
    data=Data(m=200, n_test=200),
    model=MLP(9),
    training=Training(steps=100, target_error=None, loss=Square()),
    evaluation=Evaluation(every=50, curves=True),
)
SWEEP = Sweep(TINY, {"model.width": (7, 33), "data.m": (60, 200), "seed": range(6)})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    """Run two workers, of which one uses the plainest instructions."""
    with ProcessCluster(tmp_path_factory.mktemp("cluster")) as started:
        started.start_scheduler()
        started.start_worker(nanny=False)
        started.start_worker(nanny=False, environment={"PETRIDISH_ISA": "portable"})
        yield started


@pytest.fixture(scope="module")
def client(cluster: ProcessCluster) -> Iterator[Any]:
    """Return a client that knows both workers."""
    found = cluster.client(2)
    yield found
    found.close()


@pytest.mark.parametrize("shared_store", ["auto", "no"])
def test_a_cluster_gives_the_table_of_one_process(
    shared_store: str, client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By whomever records are written, whatever instructions a worker has; and only once."""
    alone, store = Store(tmp_path / "alone"), Store(tmp_path / "kept")
    workers = Cluster(client=client, shared_store=shared_store)
    run_sweep(SWEEP, alone, executor="inline")
    first = run_sweep(SWEEP, store, executor=workers)
    said = capsys.readouterr().err
    again = run_sweep(SWEEP, store, executor=workers)

    assert comparable(store).equals(comparable(alone))
    assert (first.done, first.skipped, again.done, again.skipped) == (24, 0, 0, 24)
    assert first.model_steps == 24 * 100
    how = {
        "auto": "Workers see the store, and write to it themselves.",
        "no": "Workers return their records, and this command writes them.",
    }
    assert said == f"petridish: 2 cores at {client.scheduler.address}. {how[shared_store]}\n"
    assert not list((tmp_path / "kept").glob(".probe*"))


@pytest.mark.parametrize("shared_store", ["yes", "no"])
def test_runs_that_begin_from_others(shared_store: str, client: Any, tmp_path: Path) -> None:
    """The weights of parents go to the workers that need them."""
    child = replace(TINY, task=SparseParity(31, 3), init=From(TINY))
    sweep = Sweep(child, {"seed": range(3)})
    alone, store = Store(tmp_path / "alone"), Store(tmp_path / "kept")
    run_sweep(sweep, alone, executor="inline")
    workers = Cluster(client=client, shared_store=shared_store)
    done = run_sweep(sweep, store, executor=workers)

    assert (done.done, done.parents) == (6, 3)
    assert comparable(store).equals(comparable(alone))
    assert store.weights.keys() == alone.weights.keys()


def test_seeds_are_given_where_success_is_unclear(client: Any, tmp_path: Path) -> None:
    """As without a cluster: what is wanted next follows from what has ended."""
    spec = replace(TINY, training=Training(steps=300))
    sweep = Sweep(spec, {"data.m": (50, 100, 200), "seed": range(12)})
    alone, store = Store(tmp_path / "alone"), Store(tmp_path / "kept")
    run_sweep(sweep, alone, executor="inline", adaptive=True)
    run_sweep(sweep, store, executor=client, adaptive=True)

    assert 0 < len(store.keys()) <= 36
    assert comparable(store).equals(comparable(alone))


def test_a_large_sweep_puts_few_tasks_on_the_scheduler(client: Any, tmp_path: Path) -> None:
    """Two batches per core at most, the costliest first, whatever the number of runs."""
    from petridish.sweeps.executors.dask import DaskWorkers
    from petridish.sweeps.executors.drive import AHEAD, Drive

    seen: list[tuple[int, float]] = []

    class Counted(DaskWorkers):
        task = staticmethod(pretended())

    submit = Drive._submit

    def counted(self: Drive, batch: Any, kills: tuple[str, ...]) -> None:
        submit(self, batch, kills)
        seen.append((len(self.under_way), batch.cost))

    sweep = Sweep(
        replace(TINY, training=Training(steps=10_000)),
        {"model.width": (8, 64), "seed": range(2000)},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Drive, "_submit", counted)
        summary = run_sweep(sweep, Store(tmp_path), executor=Counted(client))

    assert summary.done == 4000
    assert max(number for number, _ in seen) == AHEAD * 2
    costs = [cost for _, cost in seen]
    assert len(costs) > 20
    assert min(costs[:3]) > max(costs[-3:])


def test_a_worker_that_fails_costs_no_run(client: Any, tmp_path: Path) -> None:
    """Such as one whose disk is full: its batches go to others, busy as these may be."""
    from petridish.sweeps.executors.dask import DaskWorkers

    broken = next(iter(client.nthreads()))
    fine = pretended()

    def fail(order: dict[str, Any]) -> dict[str, Any]:
        from time import sleep

        from distributed import get_worker

        if get_worker().address != broken:
            sleep(0.1)
            return fine(order)  # type: ignore[no-any-return] # it has no types
        told = "OSError: [Errno 28] No space left on device"
        return {"state": "failed", "message": told, "worker": broken}

    class Failing(DaskWorkers):
        task = staticmethod(fail)

    summary = run_sweep(SWEEP, Store(tmp_path), executor=Failing(client))
    assert summary.done == 24


def test_a_worker_without_the_device_is_named(client: Any, tmp_path: Path) -> None:
    """What is meant for a GPU is not trained elsewhere unsaid."""
    from petridish.sweeps.executors.dask import DaskWorkers

    class Placed(DaskWorkers):
        def run(self, work: Any) -> None:
            placed = [replace(batch, device="cuda:7") for batch in work.batches]
            super().run(replace(work, batches=placed))

    with pytest.raises(UserError) as error:
        run_sweep(SWEEP, Store(tmp_path), executor=Placed(client), engine="torch")
    said = str(error.value)
    assert said.startswith("The worker tcp://127.0.0.1:")
    assert " lacks a device. --device cuda:7 was given, and PyTorch " in said
    assert not Store(tmp_path).shards()


def test_a_batch_does_not_wait_for_workers_that_have_left() -> None:
    """One that failed elsewhere is bound to the others; without them it is sent anew."""
    from petridish.sweeps.batches import Batch
    from petridish.sweeps.executors.drive import Drive, _Sent

    cancelled: list[Any] = []
    batch = Batch("native", (TINY,))
    drive: Any = Drive.__new__(Drive)
    drive.client = SimpleNamespace(nthreads=lambda: {"here": 1}, cancel=cancelled.extend)
    drive.work = SimpleNamespace(report=lambda news: None)
    drive.under_way = {
        "lost": _Sent(batch, 0, ("bad",), frozenset({"gone"})),
        "bound": _Sent(batch, 1, ("bad",), frozenset({"gone", "here"})),
        "free": _Sent(batch, 2),
    }
    drive.todo, drive.left, drive.looked, drive.number = [], 0.0, float("-inf"), count()
    drive._free_the_bound()

    assert cancelled == ["lost"]
    assert list(drive.under_way) == ["bound", "free"]
    assert [(item[3], item[4]) for item in drive.todo] == [(batch, ("bad",))]


def test_a_process_that_needs_too_much_memory_is_ended() -> None:
    """Before the system ends another one for it."""
    working = SimpleNamespace(state="executing")
    worker: Any = SimpleNamespace(
        get_current_task=lambda: "task",
        state=SimpleNamespace(tasks={"task": working}),
        memory_manager=SimpleNamespace(memory_limit=1),
    )
    process = remote._Process()
    result = process.carry_out({"session": "s", "code": {}, "code_digest": ""}, worker)

    assert result["state"] == "killed"
    assert result["message"] == "needed more memory than the worker has"
    assert process.ended()


def pretended() -> Any:
    """Return a task whose runs take no time; it travels by value, as workers have no tests."""

    def pretend(order: dict[str, Any]) -> dict[str, Any]:
        runs = sum(len(seeds) for _, seeds in order["cells"])
        ended = {"done": runs, "solved": 0, "cost": 0.0, "model_steps": 0, "seconds": 0.0}
        return {"state": "ended", **ended, "tables": [], "weights": {}, "said": [], "worker": ""}

    return pretend


FILE = """
import sys, time, warnings
from dataclasses import dataclass
from typing import ClassVar

from beside import DOUBLE
from petridish import (
    MLP, Data, Domain, Examples, Reals, RunSpec, Square, Streams, Sweep, Training, Values,
)

NOISE = 1.0

@dataclass(frozen=True)
class Scaled:
    name: ClassVar[str] = "scaled"
    kills: tuple[int, ...] = ()
    seconds: float = 0.0
    domain = Domain(Reals((3,)), Values(1))

    def draw(self, seeds, purpose, start, count):
        import os, signal, time
        if "petridish.sweeps.executors.child" in sys.orig_argv:
            print("hello from a worker")
            warnings.warn("beware of this task")
            if set(self.kills) & set(map(int, seeds)):
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(self.seconds)
        x = Streams(seeds, purpose).normals(3 * start, 3 * count).reshape(len(seeds), count, 3)
        return Examples(x.max(-1, keepdims=True) * NOISE * DOUBLE, dense=x.astype("float32"))

SWEEP = Sweep(
    RunSpec(
        task=Scaled(),
        data=Data(m=20, n_test=20),
        model=MLP(4),
        training=Training(loss=Square(), steps=3, target_error=None),
    ),
    {"seed": range(8)},
)
"""


def write_file(folder: Path, **changes: str) -> Path:
    """Write a file with a task of its own, and one beside it."""
    text = FILE
    for old, new in changes.items():
        text = text.replace(*{"task": ("task=Scaled()", f"task={new}")}.get(old, (old, new)))
    beside = f"beside_{uuid4().hex}"  # of its own: Python imports a name once in a process
    (folder / f"{beside}.py").write_text("DOUBLE = 2.0\n", encoding="utf-8")
    text = text.replace("from beside import", f"from {beside} import")
    (folder / "own.py").write_text(text, encoding="utf-8")
    return folder / "own.py"


def file_sweep(folder: Path) -> Sweep:
    """Return the sweep of that file."""
    found: Sweep = find_experiment(folder / "own.py").sweep("own")
    return found


def on(cluster: ProcessCluster) -> tuple[str, ...]:
    """Return the options for a cluster."""
    return "--executor", "dask", "--scheduler", str(cluster.file)


def command(
    folder: Path, cluster: ProcessCluster, *more: str, **options: Any
) -> subprocess.Popen[str]:
    """Start the command line as a user does."""
    given = ["run", "own.py", *on(cluster), *more]
    return subprocess.Popen(
        [sys.executable, "-m", "petridish", *given, "--store", "kept"],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def test_a_users_file_travels_with_the_work(
    cluster: ProcessCluster, client: Any, inside: Any, tmp_path: Path
) -> None:
    """With what it imports from beside it; what workers print arrives once, not in the JSON."""
    write_file(tmp_path)
    given = ("run", "own.py", "--json", "--store")
    here = inside(*given, "alone", "--executor", "inline")
    there = inside(*given, "kept", *on(cluster), "--shared-store", "no")

    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    assert json.loads(there.stdout)["summary"]["done"] == 8
    assert there.stderr.count("hello from a worker") == 1
    assert there.stderr.count("beware of this task") == 1
    alone, kept = Store(tmp_path / "alone"), Store(tmp_path / "kept")
    assert comparable(kept).equals(comparable(alone))


def test_workers_that_live_on_carry_out_the_code_of_now(
    cluster: ProcessCluster, client: Any, inside: Any, tmp_path: Path
) -> None:
    """Two files have a class of one name; a constant that workers compute anew is refused."""
    done = []
    for place, noise in enumerate(("1.0", "5.0", "float(time.time())")):
        folder = tmp_path / str(place)
        folder.mkdir()
        file = write_file(folder, **{"NOISE = 1.0": f"NOISE = {noise}"})
        done.append(inside("run", file, *on(cluster), "--store", "kept"))

    assert [each.returncode for each in done] == [0, 0, 2]
    table = Store(tmp_path / "kept").read().table
    errors = table.group_by("task.code").agg(pl.col("final.test_squared_error").mean())
    assert (len(table), len(errors)) == (16, 2)
    assert errors["final.test_squared_error"].n_unique() == 2
    assert done[2].stderr.splitlines()[-1] == (
        f"petridish: The class Scaled of {tmp_path / '2/own.py'} is not the same on a worker, "
        "which imports the file anew: it uses a constant that is computed there, or changed by the "
        "caller. Make it a field of the class."
    )


def test_a_class_of_a_script_travels_by_value(cluster: ProcessCluster, tmp_path: Path) -> None:
    """A notebook's cells have no file either."""
    head = FILE.replace("from beside import DOUBLE", "DOUBLE = 2.0")
    script = head + (
        "\nimport petridish\nfrom distributed import Client\n"
        f"client = Client(scheduler_file={str(cluster.file)!r})\n"
        "NOISE = 3.0\n"
        "for executor in (client, 'inline'):\n"
        "    store = f'kept-{executor is client}'\n"
        "    runs = petridish.run(SWEEP, store=store, executor=executor, progress='none')\n"
        "    print(runs.summary.done, runs.table['final.test_squared_error'].mean())\n"
        "client.close()\n"
    )
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (there, far), (here, near) = (line.split() for line in done.stdout.splitlines())
    assert (there, here) == ("8", "8")
    assert float(far) == pytest.approx(float(near))


def test_a_run_that_kills_its_process_is_set_aside(
    cluster: ProcessCluster, client: Any, inside: Any, tmp_path: Path
) -> None:
    """By name, after three attempts; the others are carried out, and it is said what to do."""
    write_file(tmp_path, task="Scaled(kills=(5,))")
    done = inside("run", "own.py", *on(cluster), "--engine", "reference", "--store", "kept")

    assert done.returncode == 2, done.stderr
    table = Store(tmp_path / "kept").read().table
    assert sorted(table["seed"]) == [0, 1, 2, 3, 4, 6, 7]
    said = done.stderr.splitlines()[-1]
    key = run_key(replace(next(file_sweep(tmp_path).specs()), seed=5))[:8]
    began, _, ended = said.partition(" on tcp://")
    assert began == (
        f"petridish: 1 runs were not carried out; all others were. The run {key} (seed 5) of "
        "mlp(4) on scaled((5,)) was tried 3 times; the last time its process got SIGKILL, "
        "perhaps for want of memory"
    )
    assert ended.partition(". ")[2] == (
        "Give workers more memory, or try it with --executor inline; then give the same command "
        "again."
    )


def test_an_interrupted_command_keeps_what_has_ended(
    cluster: ProcessCluster, client: Any, tmp_path: Path
) -> None:
    """Exit code 130; the same command goes on."""
    write_file(tmp_path, task="Scaled(seconds=0.2)", **{"range(8)": "range(60)"})
    process = command(tmp_path, cluster, "--engine", "reference")
    store = Store(tmp_path / "kept")
    wait_for(lambda: len(store.keys()) >= 5 or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()

    assert process.returncode == 130, err
    assert err.splitlines()[-1] == ("petridish: interrupted; give the same command again to go on.")
    kept = len(store.keys())
    assert 5 <= kept < 60
    wait_for(lambda: not client.processing() or not any(client.processing().values()))
    assert len(store.keys()) == kept


def test_a_dead_scheduler_ends_the_command_with_one_line(tmp_path: Path) -> None:
    """And what had ended is kept."""
    write_file(tmp_path, task="Scaled(seconds=0.2)", **{"range(8)": "range(60)"})
    with ProcessCluster(tmp_path / "own") as own:
        scheduler = own.start_scheduler()
        own.start_worker(nanny=False)
        process = command(tmp_path, own, "--engine", "reference")
        store = Store(tmp_path / "kept")
        wait_for(lambda: len(store.keys()) >= 3 or process.poll() is not None)
        scheduler.kill()
        _, err = process.communicate()
        address = json.loads(own.file.read_text())["address"]

    assert process.returncode == 2, err
    assert 3 <= len(store.keys()) < 60
    assert err.splitlines()[-1] == (
        f"petridish: The scheduler {address} cannot be reached any more. The runs that had ended "
        "and came back are kept; give the same command again to go on."
    )


def test_another_petridish_is_refused(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one sentence that names the worker: before the sweep, and where one joins later."""
    theirs = remote.identity()
    monkeypatch.setattr(remote, "identity", lambda: ("9.0", "0000"))
    with pytest.raises(UserError) as error:
        run_sweep(SWEEP, Store(tmp_path), executor=client)
    first = next(iter(client.nthreads()))
    assert str(error.value) == (
        f"The worker {first} has petridish {theirs[0]}, and this command has 9.0. Install the same "
        "on both."
    )
    order = {"petridish": ("9.0", "0000")}
    result = client.submit(remote.carry_out, order, workers=[first], pure=False).result()
    assert result == {"state": "refused", "message": str(error.value)}
    assert remote.refusal(("1.0", "ab"), ("1.0", "cd"), "x") == (
        "The worker x has petridish 1.0 with other code (ab against cd), and this command has "
        "1.0. Install the same on both."
    )


def test_a_worker_that_dies_while_it_is_asked_is_no_refusal(client: Any, tmp_path: Path) -> None:
    """The others carry out its batches."""
    from petridish.sweeps.executors.dask import DaskWorkers

    def sync(function: Any, *given: Any, **more: Any) -> Any:
        answers = client.sync(function, *given, **more)
        return answers | {"tcp://gone:1": OSError("Stream is closed")}

    proxy: Any = SimpleNamespace(_run=client._run, sync=sync, nthreads=client.nthreads)
    workers = DaskWorkers.__new__(DaskWorkers)
    workers.client = proxy
    answers = workers._ask("", "")

    assert sorted(answers) == sorted(client.nthreads())


def test_a_scheduler_that_goes_while_it_is_asked() -> None:
    """Its client may not know yet: the sentence is the same."""
    from distributed.comm.core import CommClosedError

    from petridish.sweeps.executors.dask import DaskWorkers

    def sync(*given: Any, **more: Any) -> Any:
        raise CommClosedError("in <TCP (closed)>: Stream is closed")

    scheduler = SimpleNamespace(address="tcp://head:8786")
    proxy: Any = SimpleNamespace(_run=None, sync=sync, status="running", scheduler=scheduler)
    workers = DaskWorkers.__new__(DaskWorkers)
    workers.client = proxy
    with pytest.raises(UserError) as error:
        workers._ask("", "")
    assert str(error.value) == (
        "The scheduler tcp://head:8786 cannot be reached any more. The runs that had ended and "
        "came back are kept; give the same command again to go on."
    )


def test_a_store_that_workers_must_see(client: Any, tmp_path: Path) -> None:
    """What they were asked for was no file of theirs."""
    from petridish.sweeps.executors.dask import DaskWorkers

    class Blind(DaskWorkers):
        def _ask(self, folder: str, probe: str) -> dict[str, Any]:
            return super()._ask(f"{folder}-elsewhere", probe)

    with pytest.raises(UserError) as error:
        run_sweep(SWEEP, Store(tmp_path / "s"), executor=Blind(client, "yes"))
    first = next(iter(client.nthreads()))
    assert str(error.value) == (
        f"The worker {first} does not see the store {tmp_path / 's'}, or cannot write to it. Mount "
        "it there under the same path, or leave --shared-store yes out."
    )
    done = run_sweep(SWEEP, Store(tmp_path / "s"), executor=Blind(client))
    assert done.done == len(Store(tmp_path / "s").keys()) == 24


def test_a_cluster_of_ones_own(inside: Any, tmp_path: Path) -> None:
    """`--cluster local` starts workers and stops them."""
    write_file(tmp_path)
    done = inside(
        *("run", "own.py", "--executor", "dask", "--cluster", "local", "--workers", 1, "--json")
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["done"] == 8


WRONG = [
    (
        ["--executor", "dask"],
        "The executor dask needs one cluster. Give --scheduler ADDRESS, --scheduler FILE, "
        "--cluster local or --cluster ssh; from Python, executor=client.",
    ),
    (["--scheduler", "x:1"], "--scheduler x:1 was given. Give --executor dask with it."),
    (["--workers", "2"], "--workers 2 was given. Give --executor dask with it."),
    (
        ["--executor", "dask", "--scheduler", "x:1", "--workers", "2"],
        "--workers 2 was given. Give at least 1, together with --cluster: a cluster that exists "
        "has the workers that it has.",
    ),
    (
        ["--executor", "dask", "--cluster", "kubernetes"],
        "Cluster: start='kubernetes'. Give 'local' or 'ssh'.",
    ),
    (
        ["--executor", "dask", "--cluster", "ssh", "--hosts", "a"],
        "--cluster ssh needs --hosts A,B,…: the first has the scheduler, the others the workers. "
        "Given: a.",
    ),
    (
        ["--executor", "dask", "--scheduler", "x:1", "--shared-store", "maybe"],
        "Cluster: shared_store='maybe'. Give 'auto' or 'yes' or 'no'.",
    ),
    (
        ["--executor", "dask", "--scheduler", "none.json"],
        "There is no file none.json. `dask scheduler --scheduler-file` makes one; give its path.",
    ),
]


@pytest.mark.parametrize(("options", "sentence"), WRONG)
def test_wrong_options_are_refused(options: list[str], sentence: str, inside: Any) -> None:
    """Before anything is started."""
    done = inside("run", "PF-1", "--scale", "smoke", *options)

    assert (done.returncode, done.stderr) == (2, f"petridish: {sentence}\n")


def test_a_plan_for_several_machines(inside: Any, short_calibration: None) -> None:
    """The time on so many machines, in text and JSON."""
    text = inside("plan", "PF-1", "--scale", "smoke", "--workers", "7")
    data = json.loads(inside("plan", "PF-1", "--scale", "smoke", "--workers", 7, "--json").stdout)
    wrong = inside("plan", "PF-1", "--workers", "0")

    assert "on 7 such machines" in text.stdout
    assert data["workers"] == 7
    assert 0 < data["seconds_on_workers"] <= data["seconds"]
    assert wrong.stderr == "petridish: --workers 0 was given. Give at least 1 machine.\n"


def test_a_cluster_is_given_by_a_client_or_a_value(tmp_path: Path) -> None:
    """Nothing else is taken for one."""
    with pytest.raises(UserError) as error:
        petridish.run(SWEEP, store=tmp_path, executor=3)
    assert str(error.value) == (
        "executor=3 was given. Give 'local', 'inline', a distributed.Client or a Cluster."
    )
    assert not Store(tmp_path).shards()
