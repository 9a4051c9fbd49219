"""The workers of a cluster of Dask: who they are, whether they see the store."""

from __future__ import annotations

import queue
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar
from uuid import uuid4

from distributed import Client
from distributed.comm.core import CommClosedError

from petridish.errors import UserError
from petridish.sweeps.batches import Room
from petridish.sweeps.executors import remote
from petridish.sweeps.executors.base import Executor, Work, interruptible
from petridish.sweeps.executors.clusters import Cluster, connected
from petridish.sweeps.executors.drive import Drive
from petridish.training.memory import total_memory

LOOK_SECONDS = 5.0  # between two looks at how many workers there are
ANSWER_SECONDS = 60.0  # for all workers to say who they are


@contextmanager
def opened_cluster(asked: Any) -> Iterator[DaskWorkers]:
    """Provide the workers of a cluster, given by a client or a `Cluster`."""
    if isinstance(asked, Client):
        asked = Cluster(client=asked)
    if not isinstance(asked, Cluster):
        raise UserError(
            f"executor={asked!r} was given. Give 'local', 'inline', a distributed.Client or a "
            "Cluster."
        )
    with connected(asked) as client:
        yield DaskWorkers(client, asked.shared_store)


def _task() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the function that Dask carries out.

    It is defined here so that it travels by value: the scheduler reads it, and need not have
    petridish.
    """

    def petridish_batch(order: dict[str, Any]) -> dict[str, Any]:
        from petridish.sweeps.executors.remote import carry_out

        return carry_out(order)

    return petridish_batch


class DaskWorkers(Executor):
    """One single-threaded process per core of the workers that a scheduler knows."""

    task: ClassVar[Any] = staticmethod(_task())  # what a worker does with a batch

    def __init__(self, client: Any, shared_store: str = "auto") -> None:
        self.client, self.shared_store = client, shared_store
        self.cores: int = 1
        self.session = uuid4().hex
        self.speed: dict[tuple[str, str], float] = {}  # by engine and device, measured
        self.heard: set[str] = set()  # lines of workers that were shown
        self.told = ""  # how results come back, if it was said
        self.looked = 0.0
        self._wait_for_workers()
        self._check(self._ask("", ""))

    @property
    def jobs(self) -> int:  # type: ignore[override] # it changes while a cluster grows
        """The cores of all workers now."""
        if time.monotonic() - self.looked > LOOK_SECONDS:
            self.looked = time.monotonic()
            with suppress(OSError, TimeoutError):  # of a scheduler that is gone `run` speaks
                self.cores = max(1, sum(self.client.nthreads().values()))
        return self.cores

    @property
    def pieces(self) -> int:
        """One: batches are cut when they are sent."""
        return 1

    @property
    def room(self) -> Room:
        """The memory of the smallest share of a worker, and of the largest worker."""
        return self.memory

    def sharing(self, device: str) -> int:
        """Return the most threads of workers that share one device: one per GPU has it whole."""
        kind, _, number = device.partition(":")
        shared: Counter[tuple[str, str]] = Counter()
        for host, gpus, threads in self.devices:
            seen = gpus.split(",") if gpus and kind == "cuda" else []
            place = int(number or 0)
            shared[host, seen[place].strip() if place < len(seen) else number] += threads
        return max(shared.values(), default=1)

    def _wait_for_workers(self) -> None:
        if not self.client.nthreads():
            print("petridish: the cluster has no worker yet; waiting.", file=sys.stderr, flush=True)
        with interruptible() as interrupted, self._asking():
            while not self.client.nthreads():
                time.sleep(0.5)
                if interrupted.is_set():
                    raise KeyboardInterrupt
                self.check_scheduler()

    def _ask(self, folder: str, probe: str) -> dict[str, Any]:
        """Ask every worker who it is, and whether it sees a file of the store."""
        client = self.client
        try:
            with self._asking():
                answers: dict[str, Any] = client.sync(
                    client._run,
                    remote.look,
                    folder,
                    probe,
                    on_error="return",
                    callback_timeout=ANSWER_SECONDS,
                )
        except (TimeoutError, OSError) as error:
            self.check_scheduler()
            raise UserError(
                f"The workers of {self._where()} did not answer within {ANSWER_SECONDS:.0f} s. One "
                "of them may be frozen: restart it."
            ) from error
        # One that died meanwhile says nothing; every batch compares versions again.
        return {name: each for name, each in answers.items() if not isinstance(each, OSError)}

    def _check(self, answers: dict[str, Any]) -> None:
        """Refuse workers with another petridish; note cores and memory."""
        mine = remote.identity()
        for address, answer in answers.items():
            if isinstance(answer, Exception):
                raise UserError(
                    f"The worker {address} cannot use petridish ({type(answer).__name__}: "
                    f"{answer}). Install petridish[cluster] {mine[0]} there."
                )
            if tuple(answer["petridish"]) != mine:
                raise UserError(remote.refusal(tuple(answer["petridish"]), mine, address))
        limits = [
            (answer["memory"] or total_memory(), answer["threads"]) for answer in answers.values()
        ]
        self.cores = max(1, sum(threads for _, threads in limits))
        self.memory = Room(
            min((memory / threads for memory, threads in limits), default=total_memory()),
            max((memory for memory, _ in limits), default=total_memory()),
        )
        self.devices: list[tuple[str, str | None, int]] = [
            (answer["host"], answer["gpus"], answer["threads"]) for answer in answers.values()
        ]
        self.pythons = {address: answer["python"] for address, answer in answers.items()}

    def check_scheduler(self) -> None:
        """Refuse to go on without a scheduler."""
        if self.client.status != "running":
            raise self._gone()

    def _gone(self) -> UserError:
        return UserError(
            f"The scheduler {self._where()} cannot be reached any more. The runs that had ended "
            "and came back are kept; give the same command again to go on."
        )

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Refuse in one line if the scheduler goes while it is asked; the client learns later."""
        try:
            yield
        except CommClosedError as error:
            raise self._gone() from error

    def _where(self) -> str:
        scheduler = self.client.scheduler
        return str(scheduler.address if scheduler is not None else "of this cluster")

    def run(self, work: Work) -> None:
        """Carry out all batches."""
        if not work.batches:
            return
        self.session = uuid4().hex
        events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.client.subscribe_topic(self.session, lambda event: events.put(event[1]))
        with interruptible() as interrupted, self._probe(work) as (folder, probe):
            drive = Drive(self, work, folder, probe, events)
            try:
                with self._asking():
                    drive.go(interrupted)
            except (OSError, TimeoutError) as error:
                self.check_scheduler()
                raise UserError(
                    f"The scheduler {self._where()} does not answer: {error}. The runs that had "
                    "ended and came back are kept; give the same command again to go on."
                ) from error
            finally:
                drive.end()
                with suppress(Exception):  # of a client that is closed
                    self.client.unsubscribe_topic(self.session)
            if interrupted.is_set():
                raise KeyboardInterrupt

    @contextmanager
    def _probe(self, work: Work) -> Iterator[tuple[str, str]]:
        """Find out whether workers see the store; yield its folder, or nothing, and the probe."""
        folder = work.store.folder.resolve()
        probe = folder / f".probe-{self.session}"
        if self.shared_store == "no":
            self._tell("Workers return their records, and this command writes them.")
            yield "", probe.name
            return
        try:
            probe.touch()
            answers = self._ask(str(folder), probe.name)
            self._check(answers)
            blind = [address for address, answer in answers.items() if not answer["sees"]]
            if blind and self.shared_store == "yes":
                raise UserError(
                    f"The worker {blind[0]} does not see the store {folder}, or cannot write to "
                    "it. Mount it there under the same path, or leave --shared-store yes out."
                )
            if len(blind) == len(answers):
                self._tell("Workers do not see the store: this command writes their records.")
            elif blind:
                self._tell(
                    f"{len(blind)} of {len(answers)} workers do not see the store: this command "
                    "writes their records."
                )
            else:
                self._tell("Workers see the store, and write to it themselves.")
            yield ("" if len(blind) == len(answers) else str(folder)), probe.name
        finally:
            with suppress(OSError):
                probe.unlink(missing_ok=True)

    def _tell(self, how: str) -> None:
        """Print once how results come back."""
        if how != self.told:
            self.told = how
            print(f"petridish: {self.cores} cores at {self._where()}. {how}", file=sys.stderr)
