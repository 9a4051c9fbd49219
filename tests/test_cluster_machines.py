"""Machines of a cluster that lack something, and those that are reached by SSH."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from petridish.store import Store
from tests.clusters import HERE, ProcessCluster
from tests.hosts import Host, can_make_hosts, hosts
from tests.ssh_host import make_keys
from tests.test_cluster_faults import begin, rows, write_sweep

GREEDY = """
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from petridish import (
    MLP, Data, Domain, Examples, Reals, RunSpec, Square, Streams, Sweep, Training, Values,
)

@dataclass(frozen=True)
class Greedy:
    name: ClassVar[str] = "greedy"
    megabytes: int = 0
    domain = Domain(Reals((3,)), Values(1))

    def draw(self, seeds, purpose, start, count):
        taken = np.ones((self.megabytes, 131_072))
        time.sleep(1.0 if self.megabytes else 0.0)  # so that it can be seen
        x = Streams(seeds, purpose).normals(3 * start, 3 * count).reshape(len(seeds), count, 3)
        return Examples(x.max(-1, keepdims=True) + 0 * taken.sum(), dense=x.astype("float32"))

SWEEP = Sweep(
    RunSpec(
        task=Greedy(MEGABYTES),
        data=Data(m=20, n_test=20),
        model=MLP(4),
        training=Training(loss=Square(), steps=3, target_error=None),
    ),
    {"seed": range(1)},
)
"""


def write_greedy(folder: Path, megabytes: int) -> None:
    """Write the file of a sweep whose runs take memory."""
    folder.mkdir()
    text = GREEDY.replace("MEGABYTES", str(megabytes))
    (folder / "own.py").write_text(f"{text}\n#{'-' * 20_000}\n", encoding="utf-8")


@pytest.mark.slow
def test_a_worker_out_of_memory(tmp_path: Path) -> None:
    """Its process is ended, the run set aside by name; the same command goes on with a larger one.

    Of the limit that the worker was started with, as Dask's own processes.
    """
    write_greedy(tmp_path / "here", 1_000)
    store = Store(tmp_path / "here/kept")
    with ProcessCluster(tmp_path / "cluster") as cluster:
        cluster.start_scheduler()
        small = cluster.start_worker(HERE, "--memory-limit", "900MB")
        first = begin(tmp_path / "here", cluster)
        _, err = first.communicate()
        few = len(store.keys())
        os.killpg(small.pid, signal.SIGKILL)
        small.wait()
        cluster.start_worker(HERE, "--memory-limit", "0")
        again = begin(tmp_path / "here", cluster)
        _, later = again.communicate()

    assert (first.returncode, few) == (2, 0), err
    assert "1 runs were not carried out" in err
    assert "its process needed more memory than the worker has" in err
    assert "Give workers more memory" in err
    assert again.returncode == 0, later
    assert set(rows(tmp_path / "here/kept").values()) == {1}
    assert len(store.keys()) == 1


@pytest.mark.slow
@pytest.mark.skipif(not can_make_hosts(), reason="mounting a small disk needs root")
def test_a_worker_whose_disk_is_full(tmp_path: Path) -> None:
    """The user's file finds no room there: its runs go to the others."""
    write_greedy(tmp_path / "here", 0)
    store = Store(tmp_path / "here/kept")
    disk = tmp_path / "disk"
    disk.mkdir()
    hide = (
        f"mount -t tmpfs -o size=8k tmpfs {disk} && mount -t tmpfs tmpfs {tmp_path / 'here'}"
        ' && exec "$@"'
    )
    full = Host("full", before=("unshare", "--mount", "sh", "-c", hide, "sh"))
    with ProcessCluster(tmp_path / "cluster") as cluster:
        cluster.start_scheduler()
        cluster.start_worker(full, environment={"TMPDIR": str(disk)})
        first = begin(tmp_path / "here", cluster)
        _, err = first.communicate()
        few = len(store.keys())
        cluster.start_worker()
        cluster.client(2).close()
        again = begin(tmp_path / "here", cluster)
        _, later = again.communicate()

    assert (first.returncode, few) == (2, 0), err
    assert "it failed by OSError: [Errno 28] No space left on device on tcp://" in err
    assert "Give that worker what it lacks (room on its disk, memory, a file)" in err
    assert again.returncode == 0, later
    assert set(rows(tmp_path / "here/kept").values()) == {1}
    assert len(store.keys()) == 1


@pytest.mark.slow
@pytest.mark.skipif(not can_make_hosts(), reason="making network namespaces needs root")
def test_a_cluster_over_ssh(tmp_path: Path) -> None:
    """Three hosts with a server of SSH each: workers are started, train, and end with the command.

    A host that is not reached is said in one line, and nothing is left running on the others.
    """
    sweep = write_sweep(tmp_path / "here", steps=200, seeds=4)
    with hosts(3, linked=True) as machines, ExitStack() as servers:
        names = [host.address for host in machines]
        home = make_keys(tmp_path, names)
        for host in machines:
            server = subprocess.Popen(
                [*host.before, sys.executable, "-m", "tests.ssh_host", str(tmp_path), "22"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            servers.callback(server.communicate)
            assert server.stdout is not None
            assert server.stdout.readline() == "listening\n"
        environment = {k: v for k, v in os.environ.items() if not k.startswith("DASK_")}
        environment |= {"HOME": str(home), "OMP_NUM_THREADS": "1"}

        def run(*given: str) -> subprocess.CompletedProcess[str]:
            command = ("run", "own.py", "--executor", "dask", "--cluster", "ssh", *given)
            return subprocess.run(
                [*machines[0].before, sys.executable, "-m", "petridish", *command],
                cwd=tmp_path / "here",
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )

        unknown = run("--hosts", f"{names[0]},10.77.0.99")
        done = run("--hosts", ",".join(names), "--workers", "1", "--store", "kept")
        left = [
            each.pid
            for each in psutil.process_iter(["cmdline"])
            if "dask_spec" in " ".join(each.info["cmdline"] or ())
            and each.environ().get("HOME") == str(home)
        ]

    assert unknown.returncode == 2
    assert unknown.stderr.startswith(
        f"petridish: A cluster on {names[0]}, 10.77.0.99 could not be started: "
    )
    assert len(unknown.stderr.splitlines()) == 1, unknown.stderr
    assert done.returncode == 0, done.stderr
    assert f"petridish: 2 cores at tcp://{names[0]}:" in done.stderr
    assert len(Store(tmp_path / "here/kept").keys()) == len(sweep)
    assert left == []
