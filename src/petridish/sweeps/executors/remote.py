"""What runs inside a worker of Dask: it hands batches to processes of its own, one per thread."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

from distributed import get_worker

from petridish import __version__
from petridish.sources import own_digest

POLL_SECONDS = 0.2  # between two looks whether the batch is still wanted
NEWS_SECONDS = 3.0  # between two messages to the caller while a batch is under way
SILENT_SECONDS = 180.0  # without a sign of life, after which a process is taken to be frozen
MEMORY_SHARE = 0.95  # of the worker's limit, as Dask's own for its processes

_lock = threading.Lock()
_idle: dict[str, list[_Process]] = {}  # by the classes that they know
_all: set[_Process] = set()
_stopped: set[str] = set()  # sessions whose caller wants no more


def identity() -> tuple[str, str]:
    """Return the version of petridish, and a hash of its code."""
    return __version__, own_digest()


def look(folder: str, probe: str, dask_worker: Any = None) -> dict[str, Any]:
    """Return what a caller must know of this worker, which Dask fills in."""
    worker = dask_worker
    return {
        "petridish": identity(),
        "python": sys.version_info[:2],
        "threads": worker.state.nthreads,
        "memory": worker.memory_manager.memory_limit,
        "host": socket.gethostname(),
        "gpus": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "sees": bool(folder) and _sees(Path(folder, probe)),
    }


def _sees(probe: Path) -> bool:
    """Return whether the caller's file is here, and one can be written beside it."""
    mine = probe.with_name(f"{probe.name}.{secrets.token_hex(4)}")
    try:
        if not probe.exists():
            return False
        mine.touch()
        mine.unlink()
    except OSError:
        return False
    return True


def stop(session: str) -> None:
    """End the batches of a session soon; what has ended is kept or returned."""
    _stopped.add(session)


def refusal(theirs: tuple[str, str], ours: tuple[str, str], address: str) -> str:
    """Return the sentence for a worker with another petridish than the caller's."""
    same = "" if theirs[0] != ours[0] else f" with other code ({theirs[1]} against {ours[1]})"
    return (
        f"The worker {address} has petridish {theirs[0]}{same}, and this command has {ours[0]}. "
        "Install the same on both."
    )


def carry_out(order: dict[str, Any]) -> dict[str, Any]:
    """Carry out a batch in a process of its own; the task that Dask knows."""
    worker = get_worker()
    asked, mine = tuple(order["petridish"]), identity()
    if asked != mine:
        return {"state": "refused", "message": refusal(mine, asked, worker.address)}
    with _lock:
        waiting = _idle.setdefault(order["code_digest"], [])
        while waiting and waiting[-1].ended():
            waiting.pop()
        process = waiting.pop() if waiting else None
    if process is None:
        process = _Process()
    result = process.carry_out(order, worker)
    with _lock:
        if process.ended():
            _all.discard(process)
        else:
            waiting.append(process)
    return result | {"worker": worker.address}


class _Process:
    """A process that trains, and the pipe to it."""

    def __init__(self) -> None:
        self.pipe, theirs = Pipe()
        try:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "petridish.sweeps.executors.child", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        finally:
            theirs.close()
        _all.add(self)

    def ended(self) -> bool:
        return self.popen.poll() is not None

    def carry_out(self, order: dict[str, Any], worker: Any) -> dict[str, Any]:
        """Carry out a batch, pass on what the process tells meanwhile, and return its result."""
        said: list[str] = []
        told = heard = time.monotonic()
        task, stopping = worker.get_current_task(), False
        try:
            self.pipe.send(order)
            while True:
                if self.pipe.poll(POLL_SECONDS):
                    kind, value = self.pipe.recv()
                    heard = time.monotonic()
                    if kind == "ended":
                        return {**value, "said": said}
                    if kind == "said" and len(said) < 100:
                        said.append(value[:10_000])
                    if kind == "news" and heard - told > NEWS_SECONDS:
                        told = heard
                        worker.log_event(order["session"], (order["batch"], *value))
                    continue
                if not stopping and _is_unwanted(order["session"], task, worker):
                    stopping = True
                    self.pipe.send("stop")
                if time.monotonic() - heard > SILENT_SECONDS:
                    return self.killed(f"gave no sign of life for {SILENT_SECONDS:.0f} s", said)
                if self._uses_too_much(worker):
                    return self.killed("needed more memory than the worker has", said)
        except (EOFError, OSError):
            code = self.popen.wait()
            how = f"ended with code {code}" if code >= 0 else f"got {_signal_name(-code)}"
            return self.killed(how, said)

    def killed(self, how: str, said: list[str]) -> dict[str, Any]:
        """Make sure that the process is gone, and return the result that says so."""
        self.popen.kill()
        self.popen.wait()
        self.pipe.close()
        return {"state": "killed", "message": how, "said": said}

    def _uses_too_much(self, worker: Any) -> bool:
        """Return whether the processes need more than the worker's limit, this one the most."""
        limit = worker.memory_manager.memory_limit
        if not limit:
            return False
        used = {process: process.memory() for process in list(_all)}
        return sum(used.values()) > MEMORY_SHARE * limit and max(used.values()) == used.get(self)

    def memory(self) -> int:
        """Return the bytes that the process uses."""
        import psutil

        with suppress(psutil.Error):
            return int(psutil.Process(self.popen.pid).memory_info().rss)
        return 0


def _is_unwanted(session: str, task: str, worker: Any) -> bool:
    """Return whether the caller has stopped, or is gone: then Dask has cancelled the task."""
    state = worker.state.tasks.get(task)
    return session in _stopped or state is None or state.state == "cancelled"


def _signal_name(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return f"{name}, perhaps for want of memory" if number == signal.SIGKILL else name
