"""Clusters of Dask for tests: schedulers and workers as processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from distributed import Client

from tests.hosts import Host

HERE = Host("here")
# Short, so that what is gone is missed soon; long enough for a machine under load.
SETTINGS = {
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "40s",
    "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "1h",  # a slow machine is no news
    "DASK_LOGGING__DISTRIBUTED": "error",
    "OMP_NUM_THREADS": "1",
}


class ProcessCluster:
    """A scheduler and workers; all of them end with the `with` block."""

    def __init__(self, folder: Path, *, tls: bool = False, **settings: str) -> None:
        self.folder, self.environment = folder, os.environ | SETTINGS | settings
        self.file = folder / "scheduler.json"
        self.protocol = "tls" if tls else "tcp"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        """Return the cluster, in which nothing runs yet."""
        self.folder.mkdir(exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes: those of a worker end with its process group."""
        for process in reversed(self.processes):
            for kill in (lambda p: os.killpg(p.pid, 9), lambda p: p.kill()):
                with suppress(ProcessLookupError, PermissionError):
                    kill(process)
            process.wait()

    def _start(self, command: list[str], host: Host, **environment: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"log-{len(self.processes)}.txt").open("wb") as log:
            process = subprocess.Popen(
                [*host.before, sys.executable, "-m", "dask", *command],
                env=self.environment | environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def start_scheduler(self, host: Host = HERE, *, port: int = 0) -> subprocess.Popen[bytes]:
        """Start the scheduler, and wait until its file is there."""
        self.file.unlink(missing_ok=True)
        address = f"--host {host.address} --port {port} --protocol {self.protocol} --no-dashboard"
        command = ["scheduler", *address.split(), "--scheduler-file", str(self.file)]
        process = self._start(command, host)
        for _ in range(6000):
            if self.file.is_file() and self.file.read_text().endswith("}"):
                return process
            assert process.poll() is None, self.logs()
            time.sleep(0.05)
        raise AssertionError(self.logs())

    def start_worker(
        self,
        host: Host = HERE,
        *more: str,
        threads: int = 1,
        nanny: bool = True,
        environment: dict[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a worker, `more` are options; its nanny starts it again when it dies.

        Without a nanny it is there in half the time.
        """
        command = f"worker --nthreads {threads} --no-dashboard --death-timeout 300"
        command += "" if nanny else " --no-nanny"
        where = f"--host {host.address} --local-directory {self.folder} --protocol {self.protocol}"
        process = self._start(
            [*command.split(), *where.split(), "--scheduler-file", str(self.file), *more],
            host,
            **environment or {},
        )
        self.workers.append(process)
        return process

    def client(self, workers: int = 0, *, seconds: float = 600, **options: Any) -> Any:
        """Return a client, once so many workers have joined; they have some time for it."""
        connect: Any = Client  # Dask has no types
        client = connect(
            scheduler_file=str(self.file), timeout=300, set_as_default=False, **options
        )
        if workers:
            client.wait_for_workers(workers, timeout=seconds)
        return client

    def logs(self) -> str:
        """Return what the processes wrote."""
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("log-*.txt")))
