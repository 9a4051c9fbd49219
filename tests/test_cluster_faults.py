"""Clusters under fire: what dies, freezes or is cut off costs no run and doubles none in the table.

The quick test is one storm on this machine. The slow one is on hosts of its own without a shared
folder, where the machine lets a test make them.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import psutil
import pytest

from petridish.api.asked import find_experiment
from petridish.store import Store
from petridish.sweeps import run_sweep
from tests.certificates import make_certificates
from tests.clusters import ProcessCluster
from tests.hosts import Host, can_make_hosts, cut_link, hosts
from tests.test_leases import wait_for
from tests.test_sweeps import comparable

FILE = """
from petridish import MLP, Data, RunSpec, SparseParity, Square, Sweep, Training

SWEEP = Sweep(
    RunSpec(
        task=SparseParity(31, 8),
        data=Data(m=300, n_test=300),
        training=Training(steps=STEPS, target_error=None, loss=Square()),
    ),
    {"model.width": (20, 21, 22), "seed": range(SEEDS)},
)
"""


def write_sweep(folder: Path, *, steps: int, seeds: int) -> Any:
    """Write the file of a sweep, and return it."""
    folder.mkdir(exist_ok=True)
    text = FILE.replace("STEPS", str(steps)).replace("SEEDS", str(seeds))
    (folder / "own.py").write_text(text, encoding="utf-8")
    return find_experiment(folder / "own.py").sweep("own")


def begin(
    folder: Path, cluster: ProcessCluster, *more: str, host: Host | None = None
) -> subprocess.Popen[str]:
    """Start the command, on a host."""
    where = host.before if host is not None else ()
    given = ["run", "own.py", "--executor", "dask", "--scheduler", str(cluster.file), *more]
    return subprocess.Popen(
        [*where, sys.executable, "-m", "petridish", *given, "--store", "kept"],
        cwd=folder,
        env=cluster.environment,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def below(process: subprocess.Popen[bytes], what: str) -> list[psutil.Process]:
    """Return the processes below one whose command line contains a text."""
    found = []
    with suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.Error):
                if what in " ".join(child.cmdline()):
                    found.append(child)
    return found


TRAINS, WORKER = "petridish.sweeps.executors.child", "spawn_main"


def rows(folder: Path) -> Counter[str]:
    """Count the rows of each key, over all shards."""
    tables = [pl.read_parquet(shard, columns=["key"]) for shard in Store(folder).shards()]
    return Counter(pl.concat(tables)["key"].to_list()) if tables else Counter()


def test_a_storm(tmp_path: Path) -> None:
    """Processes that train, workers and a caller are killed: the table is that of a quiet run."""
    sweep = write_sweep(tmp_path, steps=4000, seeds=60)
    store = Store(tmp_path / "kept")
    with ProcessCluster(tmp_path / "cluster") as cluster:
        cluster.start_scheduler()
        workers = [cluster.start_worker() for _ in range(2)]
        command = begin(tmp_path, cluster)

        def reached(count: int) -> bool:
            return len(store.keys()) >= count or command.poll() is not None

        for count, worker, what in ((10, 0, TRAINS), (30, 1, WORKER), (60, 0, WORKER)):
            wait_for(partial(reached, count))
            for process in below(workers[worker], what):
                process.kill()
        wait_for(partial(reached, 90))
        command.kill()
        command.communicate()
        again = begin(tmp_path, cluster)
        _, err = again.communicate()

    assert again.returncode == 0, err
    alone = Store(tmp_path / "alone")
    run_sweep(sweep, alone, executor="inline")
    assert comparable(store).equals(comparable(alone))


def test_two_callers_share_one_cluster_and_one_store(tmp_path: Path) -> None:
    """Each run is trained by one of them."""
    sweep = write_sweep(tmp_path, steps=2000, seeds=20)
    with ProcessCluster(tmp_path / "cluster") as cluster:
        cluster.start_scheduler()
        cluster.start_worker(threads=2, nanny=False)
        both = [begin(tmp_path, cluster), begin(tmp_path, cluster)]
        said = [command.communicate()[1] for command in both]

    assert [command.returncode for command in both] == [0, 0], said
    assert rows(tmp_path / "kept") == dict.fromkeys(Store(tmp_path / "kept").keys(), 1)
    assert len(Store(tmp_path / "kept").keys()) == len(sweep)


def test_a_sweep_over_tls(tmp_path: Path) -> None:
    """With certificates made here; a worker without them cannot join."""
    sweep = write_sweep(tmp_path, steps=20, seeds=4)
    settings = make_certificates(tmp_path / "secret")
    with ProcessCluster(tmp_path / "cluster", tls=True, **settings) as cluster:
        cluster.start_scheduler()
        plain = subprocess.Popen(
            [
                *(sys.executable, "-m", "dask", "worker", "--scheduler-file", str(cluster.file)),
                *("--no-dashboard", "--no-nanny", "--host", "127.0.0.1"),
            ],
            cwd=tmp_path,
            env={k: v for k, v in cluster.environment.items() if k not in settings}
            | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        cluster.start_worker(nanny=False)
        command = begin(tmp_path, cluster)
        _, err = command.communicate()
        _, refused = plain.communicate()

    assert command.returncode == 0, err
    assert "1 cores at tls://127.0.0.1" in err
    assert len(Store(tmp_path / "kept").keys()) == len(sweep)
    assert plain.returncode != 0
    assert "TLS" in refused or "ssl" in refused.lower(), refused


class Storm:
    """Faults at random moments while a sweep goes on, and what they were.

    Whoever runs a cluster starts workers again that have ended, with their nannies; so does this.
    """

    def __init__(
        self,
        cluster: ProcessCluster,
        places: list[Host],
        store: Store,
        runs: int,
    ) -> None:
        self.cluster, self.places, self.random = cluster, places, Random(0)
        self.store, self.runs = store, runs
        self.count: Counter[str] = Counter()
        self.over = threading.Event()
        for host in places:
            cluster.start_worker(host)
        for act in (self.revive, self.kill_workers):
            threading.Thread(target=act, daemon=True).start()

    def revive(self) -> None:
        """Start workers again that have ended."""
        while not self.over.wait(0.5):
            for place, host in enumerate(self.places):
                if self.cluster.workers[place].poll() is not None:
                    self.cluster.workers[place] = self.cluster.start_worker(host)
                    self.cluster.workers.pop()
                    self.count["revived"] += 1

    def kill_workers(self) -> None:
        """Kill a worker or a process that trains now and then, from the first runs on."""
        while not self.over.wait(0.2) and len(self.store.keys()) < 0.02 * self.runs:
            pass
        while self.count["killed"] < 40 and not self.over.wait(self.random.uniform(0.2, 2.0)):
            nanny = self.random.choice(self.cluster.workers)
            processes = below(nanny, self.random.choice([TRAINS, WORKER]))
            if processes:
                with suppress(psutil.Error):
                    self.random.choice(processes).send_signal(signal.SIGKILL)
                    self.count["killed"] += 1

    def freeze(self) -> None:
        """Freeze a worker, with what it trains, for a minute: longer than the scheduler waits."""
        processes = below(self.cluster.workers[0], WORKER) + below(self.cluster.workers[0], TRAINS)
        for process in processes:
            with suppress(psutil.Error):
                process.suspend()
        self.count["frozen"] += bool(processes)
        self.over.wait(60)
        for process in processes:
            with suppress(psutil.Error):
                process.resume()

    def cut(self, host: Host) -> None:
        """Cut a link for ten seconds."""
        cut_link(host, up=False)
        self.over.wait(10)
        cut_link(host, up=True)
        self.count["cut"] += 1


FAULTS = (
    (0.1, "freeze"),
    (0.3, "scheduler"),
    (0.5, "cut"),
    (0.6, "caller"),
    (0.75, "scheduler"),
)  # by the share of the runs that are stored


@pytest.mark.long
@pytest.mark.skipif(not can_make_hosts(), reason="making network namespaces needs root")
def test_three_hosts_under_fire(tmp_path: Path) -> None:
    """Up to forty kills, a freeze, a cut link, a scheduler killed twice, a caller killed.

    With `--shared-store no`, as on hosts that share no folder. Every run is in the table once, as
    in an undisturbed one.
    """
    sweep = write_sweep(tmp_path, steps=10_000, seeds=150)
    store = Store(tmp_path / "kept")

    def reached(share: float, command: subprocess.Popen[str]) -> bool:
        return len(store.keys()) >= share * len(sweep) or command.poll() is not None

    def go_on() -> subprocess.Popen[str]:
        return begin(tmp_path, cluster, "--shared-store", "no", host=head)

    with hosts(3, linked=True) as machines, ProcessCluster(tmp_path / "cluster") as cluster:
        head = machines[0]
        scheduler = cluster.start_scheduler(head, port=8786)
        places = [machines[1], machines[2], machines[2]]
        storm = Storm(cluster, places, Store(tmp_path / "kept"), len(sweep))
        try:
            command = go_on()
            for share, fault in FAULTS:
                wait_for(partial(reached, share, command))
                if fault == "freeze":
                    threading.Thread(target=storm.freeze, daemon=True).start()
                elif fault == "cut":
                    storm.cut(machines[1])
                elif fault == "caller":
                    command.kill()
                else:
                    scheduler.kill()
                    scheduler.wait()
                if fault in ("caller", "scheduler"):
                    storm.count[fault] += 1
                    command.communicate()
                    if fault == "scheduler":
                        scheduler = cluster.start_scheduler(head, port=8786)
                    command = go_on()
            _, err = command.communicate()
        finally:
            storm.over.set()
    assert command.returncode == 0, err
    alone = Store(tmp_path / "alone")
    run_sweep(sweep, alone, jobs=2)
    times = rows(tmp_path / "kept")
    lost = len(alone.keys() - times.keys())
    doubled = sum(number > 1 for number in times.values())
    print(f"{dict(storm.count)}; {len(sweep)} runs, {lost} lost, {doubled} stored twice")
    assert comparable(store).equals(comparable(alone))
    assert storm.count["killed"] > 0  # how many depends on how quick the machine is
