"""The process that trains on a worker of a cluster, one batch after another.

A worker of Dask has any number of threads in one process. Each of them hands its batches to one
such process, single-threaded, which can be stopped or killed without harm to the worker, and
has no memory of other callers' classes. It ends with the worker, or when nothing came for a while.
"""

from __future__ import annotations

import io
import os
import queue
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from petridish.errors import UserError
from petridish.store import Store, to_table
from petridish.store.files import StoreError
from petridish.store.weights import packed, unpacked
from petridish.sweeps.batches import Batch
from petridish.sweeps.executors.base import News
from petridish.sweeps.executors.travel import Code, digest_of, read_specs, table_bytes, unpack
from petridish.sweeps.executors.worker import BatchWorker
from petridish.training import Ended, RunRecord, RunSpec, run_key
from petridish.training.devices import find_device

if TYPE_CHECKING:
    import polars as pl

IDLE_SECONDS = 60.0  # without work, after which the process ends
ALIVE_SECONDS = 5.0  # between two signs of life


class _Weights:
    """Weights of parents: those that came with the batch, and those that go to the caller."""

    def __init__(self, parents: dict[str, bytes], store: Store | None) -> None:
        self.parents, self.store = parents, store
        self.returned: dict[str, bytes] = {}

    def read(self, spec: RunSpec) -> Ended:
        """Return the weights of a parent."""
        if self.store is not None:
            return self.store.weights.read(spec)
        key = run_key(spec)
        if key not in self.parents:
            raise UserError(
                f"The run {key[:8]} (seed {spec.seed}), from which another run begins, did not "
                "come with it. A class of your own that needs runs inherits Needs and names them."
            )
        return unpacked(self.parents[key])

    def write(self, key: str, weights: Ended) -> None:
        """Keep the weights of a run from which others begin."""
        if self.store is not None:
            try:
                return self.store.weights.write(key, weights)
            except OSError:
                pass  # no room here: the caller may have some
        self.returned[key] = packed(weights)


class _Records:
    """What stands for a store: one that this worker sees, or the way back to the caller.

    Where the worker cannot write to the store, the caller gets the records too.
    """

    def __init__(self, parents: dict[str, bytes], store: Store | None) -> None:
        self.store, self.weights = store, _Weights(parents, store)
        self.returned: list[pl.DataFrame] = []

    def write(self, records: Sequence[RunRecord]) -> None:
        """Keep records."""
        table = to_table(records)
        if self.store is not None:
            try:
                self.store.write_table(table)
                return
            except StoreError:
                pass
        self.returned.append(table)


class _Said(io.TextIOBase):
    """Standard output or error: what is written goes to the caller."""

    def __init__(self, send: Any) -> None:
        self.send = send

    def write(self, text: str) -> int:
        """Send a text."""
        if text.strip():
            self.send(("said", text))
        return len(text)

    def writable(self) -> bool:
        """Return True."""
        return True


class _Child:
    """The way to and from the worker, and what came over it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.lock = threading.Lock()
        self.orders: queue.Queue[dict[str, Any]] = queue.Queue()
        self.stop = threading.Event()
        self.known = ""  # digest of the classes that were received

    def send(self, message: tuple[str, Any]) -> None:
        with self.lock:
            self.connection.send(message)

    def listen(self) -> None:
        """Receive orders until the worker is gone, then end at once: every shard is whole."""
        while True:
            try:
                message = self.connection.recv()
            except (EOFError, OSError):
                os._exit(1)
            if message == "stop":
                self.stop.set()
            else:
                self.stop.clear()
                self.orders.put(message)

    def live(self) -> None:
        """Send signs of life."""
        while True:
            time.sleep(ALIVE_SECONDS)
            self.send(("alive", None))

    def carry_out(self, order: dict[str, Any]) -> dict[str, Any]:
        """Carry out a batch; return what the caller must know."""
        code = Code(**order["code"])
        if self.known != order["code_digest"]:
            unpack(code)
            self.known = order["code_digest"]
        specs = read_specs(order["cells"])
        if digest_of(specs) != order["keys"]:
            raise UserError(
                "Specs did not arrive as they were sent: written as JSON and read, they are other "
                "runs. Let the fields of your own classes hold numbers, text and other values."
            )
        try:
            find_device(order["device"])
        except UserError as error:
            return {"state": "no device", "message": str(error)}
        folder = order["store"]
        store = Store(folder) if folder and Path(folder, order["probe"]).exists() else None
        kept = _Records(order["weights"], store)
        total = [0, 0, 0.0, 0]

        def report(news: News) -> None:
            for place, number in enumerate(vars(news).values()):
                total[place] += number
            self.send(("news", (total[2], total[3])))

        started = time.perf_counter()
        worker = BatchWorker(kept, report, self.stop.is_set)
        worker.carry_out(Batch(order["engine"], specs, order["parents"], order["device"]))
        return {
            "state": "ended",
            "done": total[0],
            "solved": total[1],
            "cost": total[2],
            "model_steps": total[3],
            "seconds": time.perf_counter() - started,
            "tables": table_bytes(kept.returned),
            "weights": kept.weights.returned,
        }

    def serve(self) -> None:
        """Carry out batches for as long as they come."""
        while True:
            try:
                order = self.orders.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                return
            try:
                result = self.carry_out(order)
            except UserError as error:
                result = {"state": "refused", "message": str(error)}
            except (OSError, MemoryError) as error:  # of this machine, not of the run
                result = {"state": "failed", "message": f"{type(error).__name__}: {error}"}
            except Exception as error:
                result = {
                    "state": "fault",
                    "message": f"{type(error).__name__}: {error}",
                    "traceback": traceback.format_exc(),
                }
            self.send(("ended", result))


def main(descriptor: int) -> None:
    """Serve the worker at the other end of a pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller says when to stop
    child = _Child(Connection(descriptor))
    sys.stdout = sys.stderr = _Said(child.send)
    warnings.showwarning = lambda message, *_, **__: child.send(("said", f"{message}"))
    threading.Thread(target=child.listen, daemon=True).start()
    threading.Thread(target=child.live, daemon=True).start()
    child.serve()


if __name__ == "__main__":
    main(int(sys.argv[1]))
