"""Finding a cluster of Dask, or starting one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from petridish.errors import UserError, check_one_of

CONNECT_SECONDS = 30.0


@dataclass(frozen=True)
class Cluster:
    """A cluster of Dask: one that exists, or one to start.

    Attributes
    ----------
    scheduler : str, optional
        The address of a scheduler, or the path of its file.
    start : "local" or "ssh", optional
        Start workers on this machine, or on `hosts`, of which the first has the scheduler.
    workers : int, optional
        Single-threaded workers to start, on each of the hosts; one per core if not given.
    shared_store : "auto", "yes" or "no"
        Whether workers see the store, and write to it themselves; "auto" asks them.
    client : distributed.Client, optional
        Instead of all this, a client that is connected.
    """

    scheduler: str | None = None
    start: str | None = None
    workers: int | None = None
    hosts: tuple[str, ...] = ()
    shared_store: str = "auto"
    client: Any = None

    def __post_init__(self) -> None:
        check_one_of("Cluster", ("auto", "yes", "no"), shared_store=self.shared_store)
        if sum(each is not None for each in (self.scheduler, self.start, self.client)) != 1:
            raise UserError(
                "The executor dask needs one cluster. Give --scheduler ADDRESS, --scheduler FILE, "
                "--cluster local or --cluster ssh; from Python, executor=client."
            )
        if self.start is not None:
            check_one_of("Cluster", ("local", "ssh"), start=self.start)
        if self.workers is not None and (self.workers < 1 or self.start is None):
            raise UserError(
                f"--workers {self.workers} was given. Give at least 1, together with --cluster: a "
                "cluster that exists has the workers that it has."
            )
        if (self.start == "ssh") != (len(self.hosts) > 1):
            raise UserError(
                f"--cluster ssh needs --hosts A,B,…: the first has the scheduler, the others the "
                f"workers. Given: {', '.join(self.hosts) or 'none'}."
            )


@contextmanager
def connected(asked: Cluster) -> Iterator[Any]:
    """Provide a client of a cluster, and stop afterwards what was started here."""
    if asked.client is not None:
        yield asked.client
        return
    try:
        import distributed
    except ImportError as error:
        raise UserError(
            "The executor dask needs Dask. Install it by `pip install petridish[cluster]`, on the "
            "workers too."
        ) from error
    with _quiet(), _started(asked) as where:
        try:
            connect: Any = distributed.Client  # Dask has no types
            client = connect(timeout=CONNECT_SECONDS, set_as_default=False, **where)
        except (OSError, TimeoutError, ValueError) as error:
            told = asked.scheduler or asked.start
            raise UserError(
                f"There is no scheduler of Dask at {told}: {error or type(error).__name__}. Start "
                "one by `dask scheduler`, or give the --scheduler that it prints."
            ) from error
        try:
            yield client
        finally:
            client.close(timeout=5)


@contextmanager
def _started(asked: Cluster) -> Iterator[dict[str, Any]]:
    """Provide the arguments of a client, for a cluster that exists or is started here."""
    if asked.scheduler is not None:
        # A scheduler's file is made when the scheduler begins, perhaps after this command.
        if asked.scheduler.endswith(".json"):
            if not Path(asked.scheduler).is_file():
                raise UserError(
                    f"There is no file {asked.scheduler}. `dask scheduler --scheduler-file` makes "
                    "one; give its path."
                )
            yield {"scheduler_file": asked.scheduler}
        else:
            yield {"address": asked.scheduler}
        return
    with _start(asked) as cluster:
        yield {"address": cluster}


def _start(asked: Cluster) -> Any:
    import distributed

    from petridish.sweeps.batches import cores

    if asked.start == "local":
        start: Any = distributed.LocalCluster  # Dask has no types
        return start(
            n_workers=asked.workers or cores(),
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
    options = {"nthreads": 1, "n_workers": asked.workers} if asked.workers else {}
    try:
        return distributed.SSHCluster(list(asked.hosts), worker_options=options)
    except ImportError as error:
        raise UserError(
            "--cluster ssh needs asyncssh. Install it by `pip install petridish[cluster]`."
        ) from error
    except Exception as error:  # of any kind: of SSH, of Dask on the other machines
        raise UserError(
            f"A cluster on {', '.join(asked.hosts)} could not be started: "
            f"{type(error).__name__}: {error}. Each must be reached by ssh without a password, "
            "and have petridish[cluster] in the same place."
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask from writing to the terminal: what matters is said in one line by petridish."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)
