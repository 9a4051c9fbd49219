"""Two commands on one store share the work, and one that dies leaves it to the other."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import polars as pl
import pytest

from petridish import RunSpec, SparseParity, Sweep, Training
from petridish.store import Store
from petridish.sweeps import leases, run_sweep
from petridish.sweeps.leases import Claims
from petridish.sweeps.progress import Progress

SCRIPT = """
import sys
import petridish
from petridish import MLP, Data, RunSpec, SparseParity, Sweep, Training

SWEEP = Sweep(
    RunSpec(
        task=SparseParity(50, 20),
        data=Data(n_test=500),
        training=Training(steps=STEPS),
    ),
    {"model.width": (20, 21, 22, 23, 24, 25), "seed": range(10)},
)
runs = petridish.run(SWEEP, store="kept", jobs=2, executor="EXECUTOR")
print(runs.summary.done, runs.summary.skipped, len(runs))
"""


def begin(
    folder: Path, *, executor: str = "inline", steps: int = 500, stderr: int | None = None
) -> subprocess.Popen[str]:
    """Start the script in a process of its own."""
    code = SCRIPT.replace("EXECUTOR", executor).replace("STEPS", str(steps))
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


def stored(folder: Path) -> int:
    """Count the rows of all shards, repeated keys included."""
    return sum(pl.read_parquet(shard, columns=["key"]).height for shard in Store(folder).shards())


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until something holds."""
    for _ in range(12_000):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it never came to hold")


def test_what_others_hold_is_not_claimed(tmp_path: Path) -> None:
    """Until they leave; each run is claimed once."""
    with Claims(tmp_path) as first:
        with Claims(tmp_path) as second:
            assert first.claim({"a", "b"}) == {"a", "b"}
            assert second.claim({"b", "c"}) == {"c"}
            assert first.held() == {"c"}
            assert first.claim({"d"}) == {"d"}
            assert second.held() == {"a", "b", "d"}
        assert first.held() == set()
        assert first.claim({"c"}) == {"c"}
    assert not list((tmp_path / "leases").glob("*.keys"))


def test_what_others_hold_is_not_claimed_while_the_gate_is_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command frozen at the gate delays the others; they respect what is held all the same."""
    monkeypatch.setattr(leases, "GATE_SECONDS", 0.01)
    with Claims(tmp_path) as first, Claims(tmp_path) as second:
        assert first.claim({"a"}) == {"a"}
        with first.gate.acquire():
            assert second.claim({"a", "b"}) == {"b"}


def test_runs_done_elsewhere_before_the_first_batch_are_counted(tmp_path: Path) -> None:
    """Another command may finish everything after this one has read the store."""
    sweep = Sweep(
        RunSpec(task=SparseParity(10, 3), training=Training(steps=10)), {"seed": range(4)}
    )
    store = Store(tmp_path)

    class OtherIsQuicker(Progress):
        def __enter__(self) -> Self:
            run_sweep(sweep, store, executor="inline")
            return self

        def __exit__(self, *_: object) -> None:
            """End nothing: there is nothing to show."""

    summary = run_sweep(sweep, store, executor="inline", progress=OtherIsQuicker())
    assert (summary.runs, summary.skipped, summary.done) == (4, 4, 0)


def test_two_commands_share_the_work(tmp_path: Path) -> None:
    """Together they train 60 of 60 runs, and both see them all."""
    both = [begin(tmp_path, executor=executor) for executor in ("inline", "local")]
    said = [[int(word) for word in (process.communicate()[0]).split()] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum(done for done, _, _ in said) == 60
    assert [done + skipped for done, skipped, _ in said] == [60, 60]
    assert [seen for _, _, seen in said] == [60, 60]
    assert stored(tmp_path / "kept") == 60


def test_a_command_that_is_killed_leaves_its_runs_to_the_other(tmp_path: Path) -> None:
    """The other waits for it while it lives, and finishes the work when it is gone."""
    store = tmp_path / "kept"
    folder = store / "leases"
    first = begin(tmp_path, steps=20_000)
    try:
        wait_for(lambda: any(path.stat().st_size for path in folder.glob("*.keys")))
        first.send_signal(signal.SIGSTOP)  # it holds what it has claimed, and does nothing
        second = begin(tmp_path, steps=20_000)
        wait_for(lambda: len(Store(store).keys()) >= 50 or second.poll() is not None)
        assert second.poll() is None  # ten runs are the first's
    finally:
        first.kill()
        first.communicate()
    done, skipped, seen = map(int, second.communicate()[0].split())
    assert (second.returncode, seen) == (0, 60)
    assert done + skipped == 60
    assert done >= 50
    assert not list(folder.glob("*.keys"))


def test_a_command_that_is_killed_leaves_no_warning(tmp_path: Path) -> None:
    """Python's tracker of semaphores outlives it, tidies up, and says nothing."""
    command = begin(tmp_path, executor="local", steps=20_000, stderr=subprocess.PIPE)
    wait_for(lambda: any((tmp_path / "kept/leases").glob("*.keys")))
    command.kill()
    _, said = command.communicate()  # which ends with the last process that could write
    assert "resource_tracker" not in said
    assert "Warning" not in said


HOLDER = """
import socket, sys, time
from pathlib import Path
socket.gethostname = lambda: "another-machine"
from functools import partial
from petridish.sweeps import leases

leases.LEASE_SECONDS = float(sys.argv[2])
leases.SoftFileLease = partial(leases.SoftFileLease, heartbeat_interval=0.1)
with leases.Claims(Path(sys.argv[1])) as claims:
    claims.claim({"a"})
    print("claimed", flush=True)
    sys.stdin.read()
"""


def test_a_lease_of_another_machine_is_kept_while_it_is_refreshed_and_expires_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process cannot be looked for here: only its signs of life, or their end, can be seen."""
    lease = 2.0  # refreshed often: a machine under load may be late by much of it
    monkeypatch.setattr(leases, "LEASE_SECONDS", lease)
    command = [sys.executable, "-c", HOLDER, str(tmp_path), str(lease)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    holder = subprocess.Popen(command, text=True, **pipes)  # type: ignore[call-overload] # pipes
    try:
        assert holder.stdout.readline() == "claimed\n"
        (lock,) = (tmp_path / "leases").glob("*.lock")
        with Claims(tmp_path) as here:
            assert here.claim({"a", "b"}) == {"b"}
            first, began = lock.stat().st_mtime_ns, time.monotonic()

            def held_while_refreshed() -> bool:
                assert here.held() == {"a"}
                refreshed = lock.stat().st_mtime_ns > first
                return refreshed and time.monotonic() - began > 1.2 * lease

            wait_for(held_while_refreshed)
            holder.kill()
            holder.wait()
            assert here.held() == {"a"}  # it may live for all that can be seen
            wait_for(lambda: not here.held())
            assert here.claim({"a"}) == {"a"}
            assert not lock.exists()
    finally:
        holder.kill()
        holder.communicate()
