"""Many workers of Dask in one process, for tests of scale: they join a real scheduler.

    python -m tests.simulated_workers SCHEDULER_FILE COUNT FOLDER

A worker has one thread, no dashboard and no profile, and takes a megabyte or so. It says once a
minute that it lives: two hundred and fifty in one process would do little else.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from typing import Any

import dask
from distributed import Worker
from tornado.ioloop import PeriodicCallback

# What a worker watches in itself fifty times a second would be all that hundreds of them do.
SELDOM = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1m",
    "distributed.admin.tick.cycle": "1m",
    "distributed.admin.system-monitor.interval": "1m",
}
TOGETHER = 20  # that join at the same time
ALIVE_SECONDS = 60.0  # between two signs of life of a worker


async def serve(scheduler_file: str, count: int, folder: str) -> None:
    """Start workers, and serve until the scheduler is gone."""
    make: Any = Worker  # Dask has no types
    workers = [
        make(
            scheduler_file=scheduler_file,
            nthreads=1,
            memory_limit=0,
            dashboard=False,
            host="127.0.0.1",
            local_directory=folder,
        )
        for _ in range(count)
    ]
    for start in range(0, count, TOGETHER):
        await asyncio.gather(*workers[start : start + TOGETHER])
        for worker in workers[start : start + TOGETHER]:
            worker.periodic_callbacks["heartbeat"].stop()
            worker.periodic_callbacks["rarely"] = rarely = PeriodicCallback(
                worker.heartbeat, 1000 * ALIVE_SECONDS
            )
            rarely.start()
    await asyncio.gather(*(worker.finished() for worker in workers))


if __name__ == "__main__":
    warnings.filterwarnings(
        "ignore", "Creating scratch directories"
    )  # two hundred and fifty at once
    dask.config.set(SELDOM)
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
