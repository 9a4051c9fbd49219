"""A thousand simulated workers on a real scheduler: no run is trained, all else is as it is."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from petridish import Sweep, Training
from petridish.store import Store
from petridish.sweeps import run_sweep
from petridish.sweeps.executors.drive import AHEAD
from petridish.sweeps.progress import Log
from tests.clusters import ProcessCluster
from tests.test_cluster import TINY

WORKERS = int(os.environ.get("PETRIDISH_SIMULATED_WORKERS", "1000"))
RUNS = int(os.environ.get("PETRIDISH_SIMULATED_RUNS", "1000000"))
RUN_SECONDS = float(
    os.environ.get("PETRIDISH_SIMULATED_SECONDS", "0.06")
)  # of each, in which a worker sleeps
PER_PROCESS = 250
# So many workers on two cores answer late, and none of them is gone for it.
PATIENT: dict[str, Any] = {
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "1h",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10m",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "10m",
}


def slept() -> Any:
    """Return a task that takes as long as its runs would; it travels by value."""
    each = RUN_SECONDS

    def sleep(order: dict[str, Any]) -> dict[str, Any]:
        from time import sleep

        runs = sum(len(seeds) for _, seeds in order["cells"])
        sleep(each * runs)
        ended = {"done": runs, "solved": 0, "cost": 0.0, "model_steps": 0}
        left = {"tables": [], "weights": {}, "said": [], "worker": ""}
        return {"state": "ended", "seconds": each * runs, **ended, **left}

    return sleep


class Watched:
    """The largest memory of some processes, and their seconds of CPU."""

    def __init__(self, scheduler: int, workers: list[int]) -> None:
        self.processes = {"scheduler": psutil.Process(scheduler), "caller": psutil.Process()}
        self.workers = [psutil.Process(each) for each in workers]
        self.began = self.now()
        self.most = dict(self.began)
        self.cpu_began = self.cpu()
        self.over = threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def now(self) -> dict[str, float]:
        """Return their megabytes."""
        return {name: each.memory_info().rss / 1e6 for name, each in self.processes.items()}

    def cpu(self) -> dict[str, float]:
        """Return the seconds of CPU of each, and of all workers."""
        every = {**{name: [each] for name, each in self.processes.items()}, "workers": self.workers}
        return {
            name: sum(sum(each.cpu_times()[:2]) for each in some) for name, some in every.items()
        }

    def _look(self) -> None:
        while not self.over.wait(0.5):
            self.most = {name: max(most, self.now()[name]) for name, most in self.most.items()}


@pytest.mark.long
def test_a_thousand_workers_drain_a_million_runs(tmp_path: Path) -> None:
    """The scheduler knows two tasks per core, and its memory does not grow with the runs."""
    from petridish.sweeps.executors.dask import DaskWorkers
    from petridish.sweeps.executors.drive import Drive

    sent: list[int] = []
    first = 0.0

    class Simulated(DaskWorkers):
        task = staticmethod(slept())

    submit = Drive._submit

    def counted(self: Drive, batch: Any, kills: tuple[str, ...]) -> None:
        nonlocal first
        first = first or time.perf_counter()
        submit(self, batch, kills)
        sent.append(len(self.under_way))

    spec = replace(TINY, training=Training(steps=10_000))
    sweep = Sweep(spec, {"model.width": (8, 16, 32, 64), "seed": range(RUNS // 4)})
    with ProcessCluster(tmp_path / "cluster", **PATIENT) as cluster:
        scheduler, workers = cluster.start_scheduler(), list[int]()
        for _ in range(-(-WORKERS // PER_PROCESS)):
            count = str(min(PER_PROCESS, WORKERS))
            where = (str(cluster.file), count, str(tmp_path))
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.simulated_workers", *where],
                env=cluster.environment,
                stdout=subprocess.DEVNULL,
            )
            cluster.processes.append(process)
            workers.append(process.pid)
        client = cluster.client(WORKERS, seconds=3600)
        watched = Watched(scheduler.pid, workers)
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Drive, "_submit", counted)
                began = time.perf_counter()
                summary = run_sweep(
                    sweep,
                    Store(tmp_path / "kept"),
                    executor=Simulated(client),
                    progress=Log(sys.stderr),
                )
                ended, spent = time.perf_counter(), watched.cpu()
        finally:
            watched.over.set()
            client.close()
    print(
        f"\n{WORKERS} workers, {summary.done} runs of {RUN_SECONDS} s in {len(sent)} tasks: "
        f"{first - began:.0f} s until the first was sent, then {ended - first:.0f} s "
        f"({RUNS * RUN_SECONDS / WORKERS:.0f} s if nothing else cost anything), "
        f"{len(sent) / (ended - first):.0f} tasks per second. Megabytes before and at most: "
        + ", ".join(f"{n} {watched.began[n]:.0f}, {watched.most[n]:.0f}" for n in watched.most)
        + ". Seconds of CPU: "
        + ", ".join(f"{name} {spent[name] - watched.cpu_began[name]:.0f}" for name in spent)
    )
    assert summary.done == RUNS
    assert max(sent) <= AHEAD * WORKERS
    assert watched.most["scheduler"] < watched.began["scheduler"] + 1000
    assert watched.most["caller"] < watched.began["caller"] + 300 + 200e-6 * RUNS
