"""Running a sweep: skip what the store has, cut the rest into batches, carry them out."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from petridish.errors import UserError, nearest
from petridish.sweeps.adaptive import allocate
from petridish.sweeps.batches import Batch, check_all, cut, run_cost
from petridish.sweeps.executors import Executor, Inline, LocalProcesses, News, Work
from petridish.sweeps.progress import Progress, Tally
from petridish.sweeps.sweep import Sweep
from petridish.training import RunSpec, forget_code, load_engine, run_key

if TYPE_CHECKING:
    from petridish.store import Store

EXECUTORS = ("local", "inline")
LOOK_SECONDS = 1.0  # between two looks at what other processes have put into the store


@dataclass(frozen=True)
class Summary:
    """What a call of `run_sweep` did."""

    runs: int
    skipped: int
    done: int
    solved: int
    model_steps: int
    seconds: float


def cores() -> int:
    """Count the cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_sweep(
    sweep: Sweep,
    store: Store,
    *,
    engine: str = "auto",
    executor: str = "local",
    jobs: int | None = None,
    progress: Progress | None = None,
    user_file: Path | None = None,
    adaptive: bool = False,
) -> Summary:
    """Carry out the runs of a sweep that the store does not have.

    Parameters
    ----------
    engine : str
        An engine's name, or "auto" for the fastest that serves each run.
    executor : "local" or "inline"
        One process a core, or this process alone.
    jobs : int, optional
        Worker processes; one a core if not given.
    user_file : Path, optional
        The file that declares the sweep's own classes, which workers must import.
    adaptive : bool
        Give further seeds only to the cells of which it is unclear on which side of ½ their
        success lies (`petridish.sweeps.adaptive`).

    Returns
    -------
    Summary
        Counts of runs; the records themselves are in the store.
    """
    forget_code()
    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs {jobs} was given. Give at least 1 worker.")
    if engine != "auto":
        load_engine(engine)  # refuses an unknown name, also where nothing is left to train
    by_key = check_all(sweep.specs())
    workers = _executor(executor, jobs or cores(), user_file)
    shown = progress or Progress()
    if not adaptive:
        return run_specs(by_key, store, engine, workers, shown)
    store.prepare()
    total = Summary(len(by_key), 0, 0, 0, 0, 0.0)
    total = replace(total, skipped=len(store.keys() & by_key.keys()))
    while missing := allocate(sweep, store.endings()).missing:
        more = run_specs(missing, store, engine, workers, shown)
        total = Summary(
            total.runs,
            total.skipped,
            total.done + more.done,
            total.solved + more.solved,
            total.model_steps + more.model_steps,
            total.seconds + more.seconds,
        )
        if more.done + more.skipped < more.runs:
            break  # stopped on the way
    return total


def _executor(name: str, jobs: int, user_file: Path | None) -> Executor:
    if name not in EXECUTORS:
        raise UserError(f"There is no executor called {name!r}. {nearest(name, EXECUTORS)}")
    return Inline() if name == "inline" or jobs == 1 else LocalProcesses(jobs, user_file)


def run_specs(
    by_key: dict[str, RunSpec], store: Store, engine: str, executor: Executor, progress: Progress
) -> Summary:
    """Carry out runs given by key, on an executor."""
    store.prepare()
    stored = store.keys()
    todo = [spec for key, spec in by_key.items() if key not in stored]
    batches = cut(todo, engine=engine, jobs=executor.jobs)
    # The costliest first, so that workers end together; equal ones in an order of this process's
    # own, so that two processes on one store seldom train the same.
    Random(os.getpid()).shuffle(batches)
    batches.sort(key=lambda batch: -batch.cost)
    tally = Tally(runs=len(todo), cost=sum(batch.cost for batch in batches))

    def report(news: News) -> None:
        tally.done += news.done
        tally.solved += news.solved
        tally.spent += news.cost
        tally.model_steps += news.model_steps
        progress.show(tally)

    found = len(by_key) - len(todo)
    kept, looked = stored, time.monotonic()

    def wanted(batch: Batch) -> Batch:
        nonlocal found, kept, looked
        if time.monotonic() - looked > LOOK_SECONDS:
            # Another process may have kept some since we began.
            kept, looked = store.keys(), time.monotonic()
        missing = tuple(spec for spec in batch.specs if run_key(spec) not in kept)
        elsewhere = set(batch.specs) - set(missing)
        found += len(elsewhere)
        report(News(done=len(elsewhere), cost=sum(run_cost(spec) for spec in elsewhere)))
        return replace(batch, specs=missing)

    if todo:
        with progress:
            executor.run(Work(batches, store, report, wanted))
    seconds = time.perf_counter() - tally.started
    trained = tally.done - (found - (len(by_key) - len(todo)))
    return Summary(len(by_key), found, trained, tally.solved, tally.model_steps, seconds)
