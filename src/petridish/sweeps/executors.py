"""Where batches are carried out: in this process, or in one single-threaded worker a core."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from petridish.errors import UserError
from petridish.sweeps.batches import Batch, run_cost
from petridish.sweeps.userfile import load_user_file
from petridish.training import Ended, Outcome, RunRecord, RunSpec, load_engine, run_key
from petridish.training.chains import ended_weights, finding, with_weights

if TYPE_CHECKING:
    from petridish.store import Store

REPORT_SECONDS = 0.2  # between two messages of a worker
KEEP_SECONDS = 2.0  # finished runs wait at most this long, or 1 % of the time so far, for the disk


@dataclass(frozen=True)
class News:
    """What happened in a worker since its last message."""

    done: int = 0
    solved: int = 0
    cost: float = 0.0
    model_steps: int = 0


@dataclass(frozen=True)
class Work:
    """What an executor is given.

    Attributes
    ----------
    batches : sequence of Batch
        The costliest first.
    store : Store
        Where finished runs are kept, by whoever carries them out.
    report : function of News
        Called now and then, and whenever runs have been kept.
    wanted : function of Batch to Batch
        Called just before a batch begins: drops what another process has done meanwhile.
    """

    batches: Sequence[Batch]
    store: Store
    report: Callable[[News], None]
    wanted: Callable[[Batch], Batch]


class Executor(Protocol):
    """A way to carry out work; Ctrl-C keeps what has ended and goes up as KeyboardInterrupt."""

    jobs: int

    def run(self, work: Work) -> None:
        """Carry out all batches."""


class _Worker:
    """Carries out one batch, keeps its records, and speaks for it: an engine's monitor."""

    def __init__(
        self, store: Store, report: Callable[[News], None], stopped: Callable[[], bool]
    ) -> None:
        self.store, self.report, self.stopped = store, report, stopped
        self.started = self.last_kept = self.last_report = time.monotonic()
        self.waiting: list[RunRecord] = []
        self.weights: dict[str, Ended] = {}  # of those from which others begin
        self.model_steps = 0

    def stepped(self, model_steps: int) -> None:
        """Count steps; now and then report them, and keep what has waited long enough."""
        self.model_steps += model_steps
        now = time.monotonic()
        if now - self.last_report > REPORT_SECONDS:
            self.last_report = now
            self.report(News(model_steps=self.model_steps))
            self.model_steps = 0
            if self.waiting and now - self.last_kept > self._patience(now):
                self.keep()

    def _patience(self, now: float) -> float:
        return max(KEEP_SECONDS, 0.01 * (now - self.started))

    def keep(self) -> None:
        """Put the finished runs on disk, and only then report them."""
        for key, weights in self.weights.items():  # first: a row says that its weights are there
            self.store.weights.write(key, weights)
        self.weights.clear()
        if self.waiting:
            self.store.write(self.waiting)
        solved = sum(record.outcome is Outcome.SOLVED for record in self.waiting)
        cost = sum(run_cost(record.spec) for record in self.waiting)
        self.report(News(len(self.waiting), solved, cost, self.model_steps))
        self.waiting, self.model_steps = [], 0
        self.last_kept = time.monotonic()

    def carry_out(self, batch: Batch) -> None:
        """Run the batch to its end, or until stopped; what has ended is kept either way."""
        specs, asked = batch.specs, {}
        if batch.parents:
            asked = {with_weights(spec): spec for spec in specs}
            specs = tuple(asked)
        try:
            with finding(self.store.weights.read):
                for record in load_engine(batch.engine).run(specs, self):
                    self.waiting.append(
                        self._as_asked(record, asked[record.spec]) if asked else record
                    )
        finally:
            self.keep()

    def _as_asked(self, record: RunRecord, spec: RunSpec) -> RunRecord:
        """Set a parent's weights aside; its record has them if its own spec asks for them."""
        if record.outcome is not Outcome.DIVERGED:
            self.weights[run_key(spec)] = ended_weights(record)
        if spec.evaluation.weights:
            return record
        return replace(record, spec=spec, weights=None, weights_of=None)


class Inline:
    """Everything in this process, one batch after another."""

    jobs = 1

    def run(self, work: Work) -> None:
        """Carry out all batches."""
        with _interruptible() as interrupted:
            worker = _Worker(work.store, work.report, interrupted.is_set)
            for batch in map(work.wanted, work.batches):
                if batch.specs:
                    worker.carry_out(batch)
                if interrupted.is_set():
                    raise KeyboardInterrupt


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event, so that what has ended is kept; a second one cuts."""
    event = threading.Event()

    def hear(*_: object) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    if threading.current_thread() is not threading.main_thread():
        yield event  # only the main thread hears signals
        return
    before = signal.signal(signal.SIGINT, hear)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _deaf() -> Iterator[None]:
    """Hear Ctrl-C only afterwards; processes started now never hear it.

    A terminal sends Ctrl-C to workers too, but it is the parent that tells them to stop.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _context(engines: set[str]) -> Any:
    """Fork workers from a small server that has imported what they need, where the system can."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    modules = [load_engine(engine).module for engine in sorted(engines)]
    context.set_forkserver_preload([*modules, "petridish.sweeps.executors", "petridish.store"])
    return context


class LocalProcesses:
    """One single-threaded process a core; each takes the next batch when it is free."""

    def __init__(self, jobs: int, user_file: Path | None) -> None:
        self.jobs, self.user_file = jobs, user_file

    def run(self, work: Work) -> None:
        """Carry out all batches."""
        context = _context({batch.engine for batch in work.batches})
        news: multiprocessing.Queue[News] = context.Queue()
        stop = context.Event()
        with _interruptible() as interrupted:
            pool = ProcessPoolExecutor(
                self.jobs,
                mp_context=context,
                initializer=_start_worker,
                initargs=(news, stop, work.store.folder, self.user_file),
            )
            try:
                with _deaf():
                    pool.submit(os.getpid)  # starts the fork server
                self._drive(pool, work, news, interrupted)
            except BrokenProcessPool as error:
                if interrupted.is_set():
                    raise KeyboardInterrupt from error
                raise UserError(
                    "A worker process was killed, perhaps for want of memory. The runs that had "
                    "ended are kept; give the same command again to go on, with a lower --jobs if "
                    "memory was short."
                ) from error
            finally:
                stop.set()
                pool.shutdown(cancel_futures=True)
                for item in _drained(news):
                    work.report(item)
            if interrupted.is_set():
                raise KeyboardInterrupt

    def _drive(
        self,
        pool: ProcessPoolExecutor,
        work: Work,
        news: multiprocessing.Queue[News],
        interrupted: threading.Event,
    ) -> None:
        """Keep every worker busy, and one batch waiting for each, until all is done."""
        todo = list(reversed(work.batches))
        under_way: set[Future[None]] = set()
        while (todo or under_way) and not interrupted.is_set():
            while todo and len(under_way) < 2 * self.jobs:
                batch = work.wanted(todo.pop())
                if batch.specs:
                    under_way.add(pool.submit(_carry_out, batch))
            try:
                work.report(news.get(timeout=0.1))
            except queue.Empty:
                work.report(News())
            for future in [future for future in under_way if future.done()]:
                under_way.remove(future)
                future.result()


def _drained(news: multiprocessing.Queue[News]) -> Iterator[News]:
    while True:
        try:
            yield news.get(timeout=0.05)
        except queue.Empty:
            return


_worker: _Worker | None = None  # of this worker process


def _start_worker(
    news: multiprocessing.Queue[News],
    stop: Any,
    folder: Path,
    user_file: Path | None,
) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    threading.Thread(target=_die_with_parent, daemon=True).start()
    if user_file is not None:
        load_user_file(user_file)
    from petridish.store import Store  # Polars is slow to import, and this is all that needs it

    _worker = _Worker(Store(folder), news.put, stop.is_set)


def _die_with_parent() -> None:
    """End this process when the one that asked for it is gone; every shard is whole or absent."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def _carry_out(batch: Batch) -> None:
    assert _worker is not None, "the initializer has run"
    _worker.carry_out(batch)
