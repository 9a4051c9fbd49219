"""What an executor is: it is given batches, and has them carried out."""

from __future__ import annotations

import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from petridish.sweeps.batches import Batch, Room
from petridish.training import RunSpec

if TYPE_CHECKING:
    from petridish.store import Store


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
        Where finished runs are kept, by the process that carries them out.
    report : function of News
        Called now and then, and whenever runs have been kept.
    wanted : function of Batch to Batch
        Called just before a batch begins: drops what another process has done meanwhile.
    set_aside : function of a spec and a text
        Called for a run that nobody can carry out, with the reason; the others go on.
    user_file : Path, optional
        The file that declares the sweep's own classes, which workers must import.
    """

    batches: Sequence[Batch]
    store: Store
    report: Callable[[News], None]
    wanted: Callable[[Batch], Batch]
    set_aside: Callable[[RunSpec, str], None]
    user_file: Path | None = None


class Executor(ABC):
    """A way to carry out work; Ctrl-C keeps what has ended and goes up as KeyboardInterrupt.

    Attributes
    ----------
    jobs : int
        Batches that are carried out at a time.
    """

    jobs: int

    @property
    def pieces(self) -> int:
        """Into how many batches runs of one shape are cut at least, so that all have work."""
        return self.jobs

    @property
    def room(self) -> Room | None:
        """The memory of its workers; None if they share that of this machine."""
        return None

    def sharing(self, device: str) -> int:
        """Return how many batches at a time share the device of a name: all, on one machine."""
        return self.jobs

    @abstractmethod
    def run(self, work: Work) -> None:
        """Carry out all batches."""


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event, so that what has ended is kept; a second one cuts.

    SIGTERM, by which batch systems end a job, is treated alike.
    """
    event = threading.Event()

    def on_signal(*_: object) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    if threading.current_thread() is not threading.main_thread():
        yield event  # only the main thread receives signals
        return
    before = {each: signal.signal(each, on_signal) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
