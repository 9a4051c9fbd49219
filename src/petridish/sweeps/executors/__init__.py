"""Where batches are carried out; one file per executor, named as on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from petridish.errors import UserError, nearest
from petridish.sweeps.executors.base import Executor, News, Work
from petridish.sweeps.executors.inline import Inline
from petridish.sweeps.executors.local import LocalProcesses

EXECUTORS = ("local", "inline", "dask")

__all__ = ["EXECUTORS", "Executor", "Inline", "LocalProcesses", "News", "Work", "opened"]


@contextmanager
def opened(asked: str | Executor | Any, jobs: int) -> Iterator[Executor]:
    """Provide the executor that is asked for: a name, an `Executor`, or a cluster of Dask."""
    if isinstance(asked, Executor):
        yield asked
    elif not isinstance(asked, str):
        from petridish.sweeps.executors.dask import opened_cluster

        with opened_cluster(asked) as workers:
            yield workers
    elif asked not in EXECUTORS:
        raise UserError(f"There is no executor called {asked!r}. {nearest(asked, EXECUTORS)}")
    elif asked == "dask":
        raise UserError(
            "The executor dask was asked for, and no cluster was given. Give --scheduler ADDRESS, "
            "--scheduler FILE or --cluster local; from Python, executor=client."
        )
    else:
        yield Inline() if asked == "inline" or jobs == 1 else LocalProcesses(jobs)
