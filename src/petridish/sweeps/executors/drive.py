"""Sending the batches of a sweep through a cluster of Dask, and taking in what comes back.

Batches are cut when they are sent: as long as each takes some seconds by the speed measured so far,
the costliest first, and never more than two per core under way. So the scheduler knows few
tasks, however many runs there are.
"""

from __future__ import annotations

import heapq
import io
import queue
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import polars as pl
from distributed import KilledWorker

from petridish.choices import describe
from petridish.errors import UserError
from petridish.store.weights import packed, unpacked
from petridish.sweeps.batches import Batch
from petridish.sweeps.executors import remote, travel
from petridish.sweeps.executors.base import News, Work
from petridish.sweeps.planned import one_of_each_cell
from petridish.training import parents_of, run_key

if TYPE_CHECKING:
    from petridish.sweeps.executors.dask import DaskWorkers

SPEED = 2e9  # multiplications per second of a core, until it is measured
LONGEST, SHORTEST = 30.0, 2.0  # seconds of a batch, if its runs can be cut so
AHEAD = 2  # batches under way per core: one that runs, one that waits
LOOK_SECONDS = 2.0  # between two looks whether workers have left that alone may have a batch
KILLS = 3  # in a row, after which a run is set aside
KEEP_SECONDS = 2.0  # returned records wait at most this long for the disk
STOP_SECONDS = 30.0  # after Ctrl-C, for batches to end and return what they have


MORE_MEMORY = "Give workers more memory, or try it with --executor inline"
MEND = "Give that worker what it lacks (room on its disk, memory, a file), or take it away"


@dataclass
class _Sent:
    """A batch that is under way."""

    batch: Batch
    number: int
    kills: tuple[str, ...] = ()  # the workers on which it failed, in a row
    only: frozenset[str] = frozenset()  # the workers that may have it, if not all
    spent: float = 0.0  # its cost that was reported
    steps: int = 0


class Drive:
    """One set of batches on its way through a cluster."""

    def __init__(
        self, workers: DaskWorkers, work: Work, folder: str, probe: str, events: Any
    ) -> None:
        self.workers, self.work, self.events = workers, work, events
        self.client: Any = workers.client
        self.number = count()
        specs = (spec for batch in work.batches for spec in one_of_each_cell(batch.specs))
        self.code = travel.pack(specs, work.user_file)
        self._check_pythons()
        self.order: dict[str, Any] = {
            "petridish": remote.identity(),
            "session": workers.session,
            "code": self.code.plain(),
            "code_digest": self.code.digest,
            "store": folder,
            "probe": probe,
        }
        self.todo: list[tuple[float, int, bool, Batch, tuple[str, ...]]] = []
        self.left = 0.0  # the cost of `todo`
        for batch in work.batches:
            self._put(batch, claimed=False)
        self.under_way: dict[Any, _Sent] = {}
        self.ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.waiting: list[pl.DataFrame] = []  # returned records that are not on disk yet
        self.news: list[News] = []  # of these
        self.kept = self.looked = time.monotonic()

    def _check_pythons(self) -> None:
        """Refuse workers of another Python if classes travel by value."""
        for address, version in self.workers.pythons.items():
            if self.code.values and tuple(version) != sys.version_info[:2]:
                theirs, ours = (".".join(map(str, v)) for v in (version, sys.version_info[:2]))
                raise UserError(
                    f"The worker {address} has Python {theirs}, and this command Python {ours}: a "
                    "class of a notebook or script cannot travel between them. Put it into a file, "
                    "and give that file to `petridish run`."
                )

    def _put(self, batch: Batch, *, claimed: bool, kills: tuple[str, ...] = ()) -> None:
        cost = batch.cost
        self.left += cost
        item = (-cost, next(self.number), claimed, batch, kills)
        heapq.heappush(self.todo, item)

    def go(self, interrupted: threading.Event) -> None:
        """Keep all cores busy until everything has ended."""
        while (self.todo or self.under_way) and not interrupted.is_set():
            while self.todo and len(self.under_way) < AHEAD * self.workers.jobs:
                self._send()
                if interrupted.is_set():
                    break
            self._receive()
        if interrupted.is_set() and self.under_way:
            self._stop()
        self._keep()

    def _send(self) -> None:
        """Send the costliest batch, or as many of its runs as take some seconds."""
        cost, _, claimed, batch, kills = heapq.heappop(self.todo)
        if not claimed:
            self.left += cost
            batch = self.work.wanted(batch)
            if not batch.specs:
                return
            self.left += batch.cost
        size = self._size(batch)
        if size < len(batch.specs):
            self.left -= batch.cost
            self._put(replace(batch, specs=batch.specs[size:]), claimed=True, kills=kills)
            batch = replace(batch, specs=batch.specs[:size])
            self.left += batch.cost
        self.left -= batch.cost
        self._submit(batch, kills)

    def _size(self, batch: Batch) -> int:
        """Return how many runs of a batch to send at a time.

        As many as take half a core's share of what is left: long batches first, short ones at the
        end, when the others wait for the last.
        """
        per_second = self.workers.speed.get((batch.engine, batch.device), SPEED)
        share = self.left / per_second / (AHEAD * self.workers.jobs)
        seconds = min(LONGEST, max(SHORTEST, share))
        each = batch.cost / len(batch.specs)
        return max(1, min(len(batch.specs), int(seconds * per_second / each)))

    def _submit(self, batch: Batch, kills: tuple[str, ...]) -> None:
        number, specs = next(self.number), tuple(batch.specs)
        weights: dict[str, bytes] = {}
        parents = {run_key(p): p for spec in specs for p in parents_of(spec)}
        for key, parent in parents.items():
            # They travel also where the store is seen: the worker that gets them may not see it.
            weights[key] = packed(self.work.store.weights.read(parent))
        order = self.order | {
            "batch": number,
            "engine": batch.engine,
            "device": batch.device,
            "parents": batch.parents,
            "cells": travel.write_specs(specs),
            "keys": travel.digest_of(specs),
            "weights": weights,
        }
        others = [each for each in self.client.nthreads() if each not in kills] if kills else []
        future = self.client.submit(
            self.workers.task,
            order,
            key=f"petridish-{self.workers.session[:8]}-{number}",
            pure=False,
            workers=others or None,  # else an idle one on which it failed would take it again
        )
        self.under_way[future] = _Sent(batch, number, kills, frozenset(others))
        future.add_done_callback(self.ended.put)

    def _receive(self) -> None:
        """Wait a moment for batches that have ended, and take in what they return."""
        found: list[Any] = []
        with suppress(queue.Empty):
            found.append(self.ended.get(timeout=0.1))
            while True:
                found.append(self.ended.get_nowait())
        self._hear()
        known = [future for future in found if future in self.under_way]
        whole = [future for future in known if future.status == "finished"]
        results = self.client.gather(whole, errors="skip") if whole else []
        if len(results) < len(whole):  # the worker of one died meanwhile: one by one
            results = [_result(future) for future in whole]
        for future, result in zip(whole, results, strict=True):
            self._take(self.under_way.pop(future), result)
        for future in known:
            if future.status == "error" and future in self.under_way:
                self._take_error(self.under_way.pop(future), future.exception())
            elif future.status in ("cancelled", "lost") and future in self.under_way:
                self.workers.check_scheduler()
                sent = self.under_way.pop(future)  # by someone else, in Dask's dashboard
                self._put(sent.batch, claimed=True, kills=sent.kills)
        self.workers.check_scheduler()
        self._free_the_bound()
        if time.monotonic() - self.kept > KEEP_SECONDS:
            self._keep()
        self.work.report(News())

    def _free_the_bound(self) -> None:
        """Send batches anew that wait for workers which have left."""
        bound = {future: sent for future, sent in self.under_way.items() if sent.only}
        if not bound or time.monotonic() - self.looked < LOOK_SECONDS:
            return
        self.looked = time.monotonic()
        here = self.client.nthreads().keys()
        gone = [future for future, sent in bound.items() if not sent.only & here]
        if gone:
            self.client.cancel(gone)
        for future in gone:
            sent = self.under_way.pop(future)
            self._report(sent, 0.0, 0)
            self._put(sent.batch, claimed=True, kills=sent.kills)

    def _hear(self) -> None:
        """Report the progress of batches that are under way."""
        by_number = {sent.number: sent for sent in self.under_way.values()}
        with suppress(queue.Empty):
            while True:
                number, cost, steps = self.events.get_nowait()
                if sent := by_number.get(number):
                    self._report(sent, cost, steps)

    def _report(self, sent: _Sent, cost: float, steps: int) -> None:
        """Report what a batch has cost so far, of which a part was reported."""
        news = News(cost=cost - sent.spent, model_steps=steps - sent.steps)
        sent.spent, sent.steps = cost, steps
        self.work.report(news)

    def _take(self, sent: _Sent, result: dict[str, Any]) -> None:
        """Take in the result of a batch."""
        for text in result.get("said", ()):
            self._show(text)
        state = result["state"]
        if state == "ended":
            self._take_ended(sent, result)
        elif state == "refused":
            raise UserError(result["message"])
        elif state == "no device":
            raise UserError(f"The worker {result['worker']} lacks a device. {result['message']}")
        elif state == "fault":
            raise RuntimeError(f"{result['message']} on {result['worker']}\n{result['traceback']}")
        elif state == "failed":
            reason = f"it failed by {result['message']} on {result['worker']}"
            self._retry(sent, reason, result["worker"], MEND)
        else:
            reason = f"its process {result['message']} on {result['worker']}"
            self._retry(sent, reason, result["worker"])

    def _take_ended(self, sent: _Sent, result: dict[str, Any]) -> None:
        batch = sent.batch
        share = result["done"] / len(batch.specs)
        if result["seconds"] > 0 and share == 1:
            measured = max(1.0, batch.cost / result["seconds"])
            where = batch.engine, batch.device
            before = self.workers.speed.get(where, measured)
            self.workers.speed[where] = (before + measured) / 2
        for key, weights in result["weights"].items():
            self.work.store.weights.write(key, unpacked(weights))
        tables = [pl.read_parquet(io.BytesIO(table)) for table in result["tables"]]
        news = News(
            done=result["done"],
            solved=result["solved"],
            cost=result["cost"] - sent.spent,
            model_steps=result["model_steps"] - sent.steps,
        )
        if tables:
            self.waiting += tables
            self.news.append(news)
        else:
            self.work.report(news)

    def _take_error(self, sent: _Sent, error: BaseException | None) -> None:
        if isinstance(error, KilledWorker):  # Dask has tried it on several, for whatever reason
            self._retry(sent, "its process was lost several times, with its worker", "")
        elif isinstance(error, ImportError):
            raise UserError(
                f"A worker cannot use petridish ({error}). Install petridish[cluster] there."
            ) from error
        elif error is not None:
            raise error

    def _retry(self, sent: _Sent, reason: str, worker: str, advice: str = MORE_MEMORY) -> None:
        """Send a batch again that killed its process: in halves, until it is one run.

        Then it goes to other workers, if there are any: the fault may be this one's, such as a full
        disk. A run that fails several times in a row is set aside.
        """
        self._report(sent, 0.0, 0)  # what was counted is trained again
        batch, size = sent.batch, len(sent.batch.specs)
        if size > 1:
            for part in (batch.specs[: size // 2], batch.specs[size // 2 :]):
                self._put(replace(batch, specs=part), claimed=True)
        elif len(sent.kills) + 1 < KILLS:
            self._put(batch, claimed=True, kills=(*sent.kills, worker))
        else:
            (spec,) = batch.specs
            self.work.set_aside(
                spec,
                f"The run {run_key(spec)[:8]} (seed {spec.seed}) of {describe(spec.model)} on "
                f"{describe(spec.task)} was tried {KILLS} times; the last time {reason}. "
                f"{advice}; then give the same command again.",
            )

    def _show(self, text: str) -> None:
        """Show what workers print or warn, each line once."""
        for line in text.splitlines():
            if line.strip() and line not in self.workers.heard and len(self.workers.heard) < 1000:
                self.workers.heard.add(line)
                print(line, file=sys.stderr)

    def _keep(self) -> None:
        """Write returned records, and only then report them."""
        self.kept = time.monotonic()
        by_schema: dict[Any, list[pl.DataFrame]] = {}
        for table in self.waiting:
            by_schema.setdefault(tuple(table.schema.items()), []).append(table)
        for tables in by_schema.values():
            self.work.store.write_table(pl.concat(tables))
        self.waiting.clear()
        for news in self.news:
            self.work.report(news)
        self.news.clear()

    def _stop(self) -> None:
        """Ask workers to end their batches, and take in what they return."""
        client, session = self.client, self.workers.session
        # In a thread: a worker that is frozen never answers.
        threading.Thread(
            target=_tell_all, args=(client, session), daemon=True, name="petridish-stop"
        ).start()
        limit = time.monotonic() + STOP_SECONDS
        self.todo.clear()
        while self.under_way and time.monotonic() < limit:
            self._receive()
            self.todo.clear()  # what was killed meanwhile

    def end(self) -> None:
        """Write what came back, and cancel what is under way."""
        try:
            self._keep()
        finally:
            if self.under_way and self.client.status == "running":
                with suppress(Exception):  # whatever happens to a client that ends
                    self.client.cancel(list(self.under_way), force=True)


def _tell_all(client: Any, session: str) -> None:
    with suppress(Exception):  # the command ends either way
        client.run(remote.stop, session, on_error="ignore")


def _result(future: Any) -> dict[str, Any]:
    found: dict[str, Any] = future.result()
    return found
