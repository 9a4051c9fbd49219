"""One single-threaded worker process per core of this machine."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cloudpickle

from petridish.errors import UserError
from petridish.sources import receive
from petridish.sweeps.executors.base import Executor, News, Work, interruptible
from petridish.sweeps.executors.worker import BatchWorker
from petridish.sweeps.planned import one_of_each_cell
from petridish.sweeps.userfile import load_user_file
from petridish.training import load_engine
from petridish.training.keys import users_codes


@contextmanager
def _deaf() -> Iterator[None]:
    """Block Ctrl-C meanwhile; processes started now never receive it.

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


@contextmanager
def _hidden_main() -> Iterator[None]:
    """Hide the script or notebook that is running from processes that start now.

    They would carry it out again from its first line, and a script without a `__main__` guard would
    start processes of its own. Batches bring its classes with them.
    """
    main = sys.modules["__main__"]
    kept = {name: vars(main).pop(name, None) for name in ("__file__", "__spec__")}
    main.__spec__ = None
    try:
        yield
    finally:
        vars(main).update({name: value for name, value in kept.items() if value is not None})


def _start_tracker() -> None:
    """Start Python's tracker of semaphores so that it says nothing when this process is killed.

    It removes what a killed process leaves, and would warn of "leaked semaphore objects" in the
    midst of what another command prints.
    """
    if os.name != "posix":
        return
    from multiprocessing import resource_tracker

    sys.warnoptions.append("ignore:resource_tracker:UserWarning")  # it starts with these
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.pop()


def _context(engines: set[str]) -> Any:
    """Fork workers from a small server that has imported what they need, where the system can."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    modules = [load_engine(engine).module for engine in sorted(engines)]
    context.set_forkserver_preload(
        [*modules, "petridish.sweeps.executors.local", "petridish.store"]
    )
    return context


KILLED = getattr(signal, "SIGKILL", 9)  # Windows has none


class LocalProcesses(Executor):
    """One single-threaded process per core; each takes the next batch when it is free."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def run(self, work: Work) -> None:
        """Carry out all batches."""
        _start_tracker()
        context = _context({batch.engine for batch in work.batches})
        with interruptible() as interrupted:
            news: multiprocessing.Queue[News] = context.Queue()
            stop = context.Event()
            pool = ProcessPoolExecutor(
                self.jobs,
                mp_context=context,
                initializer=_start_worker,
                initargs=(news, stop, work.store.folder, work.user_file),
            )
            try:
                with _deaf(), _hidden_main():
                    pool.submit(os.getpid)  # starts the fork server
                self._drive(pool, work, news, interrupted)
            except BrokenProcessPool as error:
                if interrupted.is_set():
                    raise KeyboardInterrupt from error
                workers = [*(pool._processes or {}).values()]  # forgotten by the next line
                pool.shutdown(cancel_futures=True)
                raise UserError(worker_ended([worker.exitcode for worker in workers])) from error
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
                    # Classes of a notebook or script by value.
                    sent = cloudpickle.dumps(
                        (batch, users_codes(tuple(one_of_each_cell(batch.specs))))
                    )
                    with _hidden_main():  # a submission may start a further worker
                        under_way.add(pool.submit(_carry_out, sent))
            try:
                work.report(news.get(timeout=0.1))
            except queue.Empty:
                work.report(News())
            for future in [future for future in under_way if future.done()]:
                under_way.remove(future)
                future.result()


def worker_ended(codes: Iterable[int | None]) -> str:
    """Return how a worker ended, by the exit codes of all: the others were told to end."""
    own = [code for code in codes if code not in (None, 0, -signal.SIGTERM)]
    kept = "The runs that had ended are kept; give the same command again to go on"
    crashed = [code for code in own if code < 0 and code != -KILLED]
    if own and all(code > 0 for code in own):
        return (
            f"A worker process left Python with exit code {own[0]}: a class of your own, or a "
            f"library that it uses, calls os._exit or the like. {kept}."
        )
    if crashed:
        return (
            f"A worker process crashed in compiled code ({signal.Signals(-crashed[0]).name}). "
            "`python -X faulthandler -m petridish run … --executor inline` shows where. "
            f"{kept}."
        )
    return (
        f"A worker process was killed, perhaps for want of memory. {kept}, with a lower --jobs if "
        "memory was short."
    )


def _drained(news: multiprocessing.Queue[News]) -> Iterator[News]:
    while True:
        try:
            yield news.get(timeout=0.05)
        except queue.Empty:
            return


_worker: BatchWorker | None = None  # of this worker process


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

    _worker = BatchWorker(Store(folder), news.put, stop.is_set)


def _die_with_parent() -> None:
    """End this process when the one that asked for it is gone; every shard is whole or absent."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def _carry_out(batch: bytes) -> None:
    assert _worker is not None, "the initializer has run"
    work, names = pickle.loads(batch)
    receive(names)
    _worker.carry_out(work)
