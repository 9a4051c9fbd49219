"""Trouble: killed processes, Ctrl-C, two at once, a full disk. Nothing is lost, nothing twice."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from petridish.store import Store
from petridish.sweeps.executors.local import worker_ended
from tests.conftest import Command
from tests.test_sweeps import comparable

FILE = '''
"""A sweep of several seconds."""
from petridish.models import MLP
from petridish.sweeps import Sweep
from petridish.tasks import SparseParity
from petridish.training import Data, Evaluation, RunSpec, Training

SWEEP = Sweep(
    RunSpec(
        task=SparseParity(20, 6),
        data=Data(m=500, n_test=200),
        training=Training(steps=STEPS),
        evaluation=Evaluation(every=50),
    ),
    {"model.width": (3, 5, 7, 9), "seed": range(30)},
)
'''


# Of 2 workers; many would have done it all before a signal reaches them.
LONG = FILE.replace("STEPS", "200").replace("range(30)", "range(2000)")


@pytest.fixture
def sweep_file(tmp_path: Path) -> Path:
    """Write a user's file whose sweep has 120 runs."""
    path = tmp_path / "own.py"
    path.write_text(FILE.replace("STEPS", "400"), encoding="utf-8")
    return path


def start(file: Path, store: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start `petridish run` as a process group of its own; its errors go beside the store."""
    command = [sys.executable, "-m", "petridish.cli.main", "run", file, "--store", store]
    with store.with_suffix(".err").open("w", encoding="utf-8") as errors:
        return subprocess.Popen(
            [*map(str, command), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            encoding="utf-8",
            start_new_session=True,
        )


def errors_of(store: Path) -> str:
    """Return what the last `start` on a store wrote to standard error."""
    return store.with_suffix(".err").read_text(encoding="utf-8")


def keys(store: Path) -> int:
    """Count the runs in a store."""
    return len(Store(store).read().table)


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until something holds, however busy the machine is."""
    end = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.01)


def wait_for_shard(store: Path, process: subprocess.Popen[str], *, beyond: int = 0) -> None:
    """Wait until a store has more shards than that, or the process has ended."""
    wait_for(lambda: len(Store(store).shards()) > beyond or process.poll() is not None)


def members(group: int) -> dict[int, list[str]]:
    """Return what the system says of each process of a group that has not ended, by its id."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parts = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            # One that has ended stays in the list until the system's first process takes note.
            if int(parts[2]) == group and parts[0] not in "ZX":
                found[int(entry.name)] = parts
    return found


def assert_no_process_left(group: int) -> None:
    """Before long no process of the group is alive."""
    wait_for(lambda: not members(group))


@pytest.mark.slow
def test_killing_at_random_moments_loses_nothing(sweep_file: Path, tmp_path: Path) -> None:
    """Kill -9 twelve times, then resume: the same table as an undisturbed run.

    Half of the times only the parent dies and its workers must follow; half of the times all die at
    once. A third of the moments lie in the start of a command, the others in its work.
    """
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    assert start(sweep_file, calm).wait(timeout=600) == 0
    dice = random.Random(0)
    kept = [0]
    for kill in range(12):
        before = len(Store(rough).shards())
        process = start(sweep_file, rough)
        if kill % 3:
            wait_for_shard(rough, process, beyond=before)
        time.sleep(dice.uniform(0.0, 0.05 if kill % 3 else 1.0))
        if kill % 2:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
        assert_no_process_left(process.pid)
        kept.append(keys(rough))
        assert kept[-1] >= kept[-2]
        assert Store(rough).read().problems == ()
        if kept[-1] == 120:  # done already: begin anew, so that twelve kills meet a run at work
            for path in Store(rough).shards():
                path.unlink()
            kept.append(0)
    assert start(sweep_file, rough).wait(timeout=600) == 0

    assert comparable(Store(rough)).equals(comparable(Store(calm)))


def test_two_at_once_end_with_every_key_once(sweep_file: Path, tmp_path: Path) -> None:
    """Both finish, and the table is that of one."""
    both, one = tmp_path / "both", tmp_path / "one"
    first, second = start(sweep_file, both), start(sweep_file, both)
    assert first.wait(timeout=600) == second.wait(timeout=600) == 0
    assert start(sweep_file, one).wait(timeout=600) == 0

    table = Store(both).read().table
    assert table["key"].n_unique() == len(table) == 120
    assert comparable(Store(both)).equals(comparable(Store(one)))


@pytest.mark.parametrize("executor", ["local", "inline"])
def test_ctrl_c_keeps_what_has_ended(executor: str, tmp_path: Path) -> None:
    """Exit code 130 before long, one sentence, no traceback; the same command goes on."""
    file, store = tmp_path / "long.py", tmp_path / "store"
    file.write_text(LONG, encoding="utf-8")
    process = start(file, store, "--executor", executor, "--jobs", "2")
    wait_for_shard(store, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to parent and workers alike
    process.wait(timeout=600)
    stderr = errors_of(store)

    assert process.returncode == 130
    assert stderr.splitlines()[-1] == (
        "petridish: interrupted; give the same command again to go on."
    )
    assert "Traceback" not in stderr
    assert 0 < keys(store) < 8000
    assert Store(store).read().problems == ()
    assert_no_process_left(process.pid)


def test_a_batch_system_ends_a_command_as_ctrl_c_does(tmp_path: Path) -> None:
    """SIGTERM to the command alone: what has ended is kept, and Python warns of nothing."""
    file, store = tmp_path / "long.py", tmp_path / "store"
    file.write_text(LONG, encoding="utf-8")
    process = start(file, store, "--jobs", "2")
    wait_for_shard(store, process)
    process.terminate()
    process.wait(timeout=600)
    stderr = errors_of(store)

    assert process.returncode == 130
    assert "leaked" not in stderr
    assert "Traceback" not in stderr
    assert 0 < keys(store) < 8000
    assert_no_process_left(process.pid)


def test_ctrl_c_at_the_very_start(tmp_path: Path) -> None:
    """Before the workers are up, too: no traceback from any of them."""
    file, store = tmp_path / "long.py", tmp_path / "store"  # long enough for a slow Ctrl-C
    file.write_text(LONG, encoding="utf-8")
    process = start(file, store)
    wait_for(lambda: store.is_dir() or process.poll() is not None)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    process.wait(timeout=600)
    stderr = errors_of(store)

    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert_no_process_left(process.pid)


def test_ctrl_c_in_a_callback_is_not_lost(petridish: Command, tmp_path: Path) -> None:
    """Python ignores what is raised there; importing has such callbacks, which no test can hit."""
    (tmp_path / "own.py").write_text(
        "import signal, time, weakref\n"
        "class Short:\n    pass\n"
        "short = Short()\n"
        "ref = weakref.ref(short, lambda _: signal.raise_signal(signal.SIGINT))\n"
        "del short\n"
        "for _ in range(6_000):\n    time.sleep(0.01)\n",
        encoding="utf-8",
    )
    done = petridish("list", "own.py")

    assert done.returncode == 130
    assert done.stderr == "petridish: interrupted; give the same command again to go on.\n"


def test_a_full_disk_stops_cleanly(sweep_file: Path, tmp_path: Path) -> None:
    """Writes really fail (a limit on file size stands in for the disk): one line, exit code 2."""
    store = tmp_path / "store"

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    done = subprocess.run(
        [sys.executable, "-m", "petridish.cli.main", "run", str(sweep_file), "--store", str(store)],
        capture_output=True,
        encoding="utf-8",
        preexec_fn=limit,
    )

    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "takes no more" in line]
    assert line.startswith(f"petridish: The store {store} takes no more: File too large. The last ")
    assert line.endswith("Make room, then give the same command again to go on.")
    assert "Traceback" not in done.stderr
    assert Store(store).shards() == []
    assert list(store.glob(".*")) == []
    assert start(sweep_file, store).wait(timeout=600) == 0  # room again: nothing stands in the way
    assert keys(store) == 120


def test_a_killed_worker_is_reported(tmp_path: Path) -> None:
    """The parent does not hang: it says what to do, and what has ended is kept."""
    file, store = tmp_path / "long.py", tmp_path / "store"
    file.write_text(LONG, encoding="utf-8")
    process = start(file, store, "--jobs", "2")
    wait_for_shard(store, process)
    victim = busiest_worker(process.pid)
    os.kill(victim, signal.SIGKILL)
    process.wait(timeout=600)
    stderr = errors_of(store)

    assert process.returncode == 2
    assert stderr.splitlines()[-1] == (
        "petridish: A worker process was killed, perhaps for want of memory. The runs that had "
        "ended are kept; give the same command again to go on, with a lower --jobs if memory was "
        "short."
    )
    assert keys(store) > 0
    assert_no_process_left(process.pid)


LEAVES = """
from dataclasses import dataclass
from typing import ClassVar
import multiprocessing
import os
from petridish import *


@dataclass(frozen=True)
class Leaves(Instrument):
    name: ClassVar[str] = "leaves"

    def read(self, reading):
        return os._exit(3) if multiprocessing.parent_process() else 0.0  # in workers alone


SWEEP = Sweep(
    RunSpec(
        task=SparseParity(4, 2),
        model=MLP(3),
        data=Data(m=10, n_test=10),
        training=Training(steps=4),
        evaluation=Evaluation(every=2, curves=True, instruments=(Leaves(),)),
    ),
    {"seed": range(2)},
)
"""


def test_a_worker_that_ends_itself_is_not_said_to_be_killed(
    inside: Command, tmp_path: Path
) -> None:
    """The code with which a class of one's own leaves Python is named."""
    file = tmp_path / "leaves.py"
    file.write_text(LEAVES, encoding="utf-8")
    done = inside("run", file, "--store", tmp_path / "store", "--jobs", "2")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "petridish: A worker process left Python with exit code 3: a class of your own, or a "
        "library that it uses, calls os._exit or the like. The runs that had ended are kept; give "
        "the same command again to go on."
    )


@pytest.mark.parametrize(
    ("codes", "beginning"),
    [
        ([None, -15], "A worker process was killed, perhaps for want of memory. "),
        ([-15, -9, 3], "A worker process was killed, perhaps for want of memory. "),
        ([-15, 0, 7], "A worker process left Python with exit code 7: "),
        ([-11, -15], "A worker process crashed in compiled code (SIGSEGV). "),
    ],
)
def test_how_a_worker_ended_is_told_by_its_code(codes: list[int | None], beginning: str) -> None:
    """The others were told to end by SIGTERM, or are not known to have ended."""
    assert worker_ended(codes).startswith(beginning)


def busiest_worker(group: int) -> int:
    """Return the process of a group, other than its leader, that has used most CPU time."""
    times = {
        process: int(parts[11])
        for process, parts in members(group).items()
        if process != group and int(parts[1]) != group
    }
    return max(times, key=lambda process: times[process])


def test_a_diverged_run_is_stored_and_counted(inside: Command, tmp_path: Path) -> None:
    """It is not tried again."""
    file, store = tmp_path / "wild.py", tmp_path / "store"
    text = FILE.replace("STEPS", "100, learning_rate=1e30, loss=Square()")
    text = text.replace("range(30)", "range(2)").replace("RunSpec, ", "RunSpec, Square, ")
    file.write_text(text, encoding="utf-8")
    for _ in range(2):
        assert inside("run", file, "--store", store, "--executor", "inline").returncode == 0
    table = Store(store).read().table

    assert table["outcome"].to_list() == ["DIVERGED"] * 8
    assert table.select(pl.col("solved_at").is_null().all()).item()
    assert len(Store(store).shards()) <= 4
