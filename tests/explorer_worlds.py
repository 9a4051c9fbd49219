"""Stores for the explorer's tests, and a server of them on a port of its own."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import polars as pl
import uvicorn

from petridish.chapters import EXPERIMENTS
from petridish.explorer.answers import Explorer
from petridish.explorer.run_sets import RunSets
from petridish.explorer.server import bind, make_app
from petridish.store import Store
from petridish.store.requests import note_request
from petridish.sweeps import run_sweep
from tests.conftest import SmokeStore, copy_runs

HARMFUL = "<img src=x onerror=window.harmed=1>"


@dataclass(frozen=True)
class Served:
    """A running server."""

    port: int

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.port}/"

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of a path, sent as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest("GET", path, skip_host="Host" in headers)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            reply = connection.getresponse()
            return reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read()
        finally:
            connection.close()

    def ask(self, what: str, /, **asked: str) -> dict[str, Any]:
        """Return an answer; an error is returned too."""
        found: dict[str, Any] = json.loads(self.get(f"/api/{what}?{urlencode(asked)}")[2])
        return found


@contextmanager
def served(*stores: Path, records: Path | None = None, token: str = "") -> Iterator[Served]:
    """Serve the page of some stores, in a thread."""
    listening = bind("127.0.0.1", 0)
    app = make_app(Explorer(RunSets(stores, records)), token=token)
    config = uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield Served(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        listening.close()


def fill(folder: Path, smoke_store: SmokeStore, *names: str) -> Path:
    """Fill a store with the smoke runs of experiments, noted as if they had been asked for."""
    for place, name in enumerate(names):
        if place == 0:
            copy_runs(smoke_store(name), folder)
        else:
            for shard in Store(smoke_store(name)).shards():
                (folder / shard.name).write_bytes(shard.read_bytes())
        note_request(folder, name, "smoke")
    return folder


TRADED = ("seed=0..7", "m=100,300", "init=sparse(2)")


def with_mixtures(folder: Path) -> Path:
    """Train enough seeds of PF-1's smallest cells for a calculator, noted with these settings."""
    sweep = EXPERIMENTS["PF-1"].sweep("smoke").narrowed(TRADED)
    run_sweep(sweep, Store(folder), executor="inline")
    note_request(folder, "PF-1", "smoke", TRADED)
    return folder


def with_harmful_task(folder: Path, to: Path) -> Path:
    """Copy the runs of a store, with a task whose class is gone and has markup for a name."""
    Store(to).prepare()
    table = Store(folder).read(columns="all").table.cast({pl.Categorical: pl.String})
    changed = pl.col("cell").str.replace(
        '"type": "SparseParity"', f'"type": "{HARMFUL}"', literal=True
    )
    other = table.with_columns(changed, key=pl.col("key").str.reverse())
    Store(to).write_table(other.with_columns(pl.col("cell").cast(pl.Categorical)))
    return to
