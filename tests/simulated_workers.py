"""Many workers of Dask in one process, for tests of scale: they join a real scheduler.

    python -m tests.simulated_workers SCHEDULER_FILE COUNT FOLDER

A worker has one thread, no dashboard and no profile, and takes a megabyte or so.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import dask
from distributed import Worker

TOGETHER = 20  # that join at the same time


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
    await asyncio.gather(*(worker.finished() for worker in workers))


if __name__ == "__main__":
    dask.config.set({"distributed.worker.profile.enabled": False})
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
