"""Running a sweep: skip what the store has, cut the rest into batches, carry them out."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from petridish.choices import describe
from petridish.errors import UserError, nearest
from petridish.sweeps.adaptive import AtHalf
from petridish.sweeps.allocation import Search, chooses, search_of
from petridish.sweeps.batches import Batch, check_all, cut, run_cost
from petridish.sweeps.executors import Executor, Inline, LocalProcesses, News, Work
from petridish.sweeps.generations import with_parents
from petridish.sweeps.progress import Progress, Tally
from petridish.sweeps.sweep import Sweep
from petridish.training import Outcome, RunSpec, forget_code, load_engine, run_key
from petridish.training.chains import diverged

if TYPE_CHECKING:
    import polars as pl

    from petridish.store import Store

EXECUTORS = ("local", "inline")
LOOK_SECONDS = 1.0  # between two looks at what other processes have put into the store


@dataclass(frozen=True)
class Summary:
    """What a call of `run_sweep` did.

    Of the `runs` asked for, `skipped` were in the store. `done` were trained, `parents` of them
    only because others begin from them.
    """

    runs: int
    skipped: int
    done: int
    solved: int
    model_steps: int
    seconds: float
    parents: int = 0

    def plus(self, more: Summary) -> Summary:
        """Add what a further round did for the same runs."""
        return replace(
            self,
            done=self.done + more.done,
            solved=self.solved + more.solved,
            model_steps=self.model_steps + more.model_steps,
            seconds=self.seconds + more.seconds,
            parents=self.parents + more.parents,
        )


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
        success lies: the same as a sweep with ``allocate=AtHalf()``.

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
    search = chosen_by(sweep, adaptive=adaptive)
    if search is None:
        total, lost = run_specs(by_key, store, engine, workers, shown)
        _refuse_lost(lost)
        return total
    store.prepare()
    total = Summary(len(by_key), 0, 0, 0, 0, 0.0)
    total = replace(total, skipped=len(store.keys() & by_key.keys()))
    lost = {}
    # A run that cannot begin has failed: the search goes on without it.
    while missing := search.wanted(outcomes(store.endings()) | dict.fromkeys(lost, False)):
        more, new = run_specs(missing, store, engine, workers, shown)
        total = total.plus(more)
        lost |= new
        if more.done - more.parents + more.skipped + len(new) < more.runs:
            break  # stopped on the way
    _refuse_lost(lost)
    return total


def chosen_by(sweep: Sweep, *, adaptive: bool) -> Search | None:
    """Return how the runs of a sweep are chosen, if not all are carried out."""
    if not adaptive:
        return search_of(sweep) if chooses(sweep) else None
    for part in sweep.grids():
        if part.allocate is not None:
            raise UserError(
                f"--adaptive was given, and this sweep chooses its runs by "
                f"{describe(part.allocate)} already. Leave --adaptive out."
            )
    return AtHalf().search(sweep)


def outcomes(endings: pl.DataFrame) -> dict[str, bool]:
    """Return whether each stored run was solved, by key."""
    return dict(zip(endings["key"], endings["outcome"] == Outcome.SOLVED.name, strict=True))


def _executor(name: str, jobs: int, user_file: Path | None) -> Executor:
    if name not in EXECUTORS:
        raise UserError(f"There is no executor called {name!r}. {nearest(name, EXECUTORS)}")
    return Inline() if name == "inline" or jobs == 1 else LocalProcesses(jobs, user_file)


def run_specs(
    by_key: dict[str, RunSpec], store: Store, engine: str, executor: Executor, progress: Progress
) -> tuple[Summary, dict[str, RunSpec]]:
    """Carry out runs given by key, on an executor; what they need comes first.

    Also returned are the runs that could not begin, by key, each with a parent that diverged.
    """
    store.prepare()
    job = _Job(by_key, store, engine, executor, progress)
    with progress if job.tally.runs else nullcontext():
        for generation in job.order.runs:
            job.carry_out(generation)
    return job.summary, job.lost


def _refuse_lost(lost: Mapping[str, RunSpec]) -> None:
    """Say which runs could not begin, once all others are done."""
    if lost:
        first = next(iter(lost.values()))
        raise UserError(
            f"{len(lost)} runs begin from runs that diverged, and were not carried out; all others "
            f"were. {diverged(first)}"
        )


class _Job:
    """What one call of `run_specs` has to do, and how far it is.

    A run is done if the store has its row; one from which others begin, if the store has its last
    weights, or knows that it diverged.
    """

    def __init__(
        self,
        by_key: dict[str, RunSpec],
        store: Store,
        engine: str,
        executor: Executor,
        progress: Progress,
    ) -> None:
        self.by_key, self.store, self.progress = by_key, store, progress
        self.engine, self.executor = engine, executor
        self.order = with_parents(by_key)
        self.needed: set[str] = set()  # runs from which others begin that are not done
        self.lost: dict[str, RunSpec] = {}  # runs that cannot begin, with a parent that diverged
        self._look()
        todo: dict[str, RunSpec] = {}
        for generation in reversed(self.order.runs):
            missing = self._missing(generation)
            self.needed.update(p for key in missing for p in self.order.parents.get(key, ()))
            todo |= missing
        self.skipped = sum(key not in todo for key in by_key)
        self.elsewhere = 0  # done by other processes since
        self.parents = sum(key not in by_key for key in todo)
        self.tally = Tally(runs=len(todo), cost=sum(map(run_cost, todo.values())))

    def _look(self) -> None:
        """See what is in the store now: another process may have kept some since."""
        self.kept, self.looked = self.store.keys(), time.monotonic()
        self.weights, self.diverged = set[str](), set[str]()
        if self.order.parents:
            endings = self.store.endings()
            self.weights = self.store.weights.keys()
            self.diverged = set(endings["key"].filter(endings["outcome"] == Outcome.DIVERGED.name))

    def _missing(self, runs: Mapping[str, RunSpec]) -> dict[str, RunSpec]:
        """Return the runs that are not done."""
        return {
            key: spec
            for key, spec in runs.items()
            if (key in self.needed and key not in self.weights | self.diverged)
            or (key in self.by_key and key not in self.kept)
        }

    def carry_out(self, generation: Mapping[str, RunSpec]) -> None:
        """Carry out the runs of one generation that are not done."""
        self._look()
        todo = self._missing(generation)
        for key in list(todo):
            if parent := self._diverged_parent(key):
                self.lost[key] = parent
                del todo[key]
        batches = [
            batch
            for needed in (True, False)
            for batch in cut(
                [spec for key, spec in todo.items() if (key in self.needed) == needed],
                engine=self.engine,
                jobs=self.executor.jobs,
                parents=needed,
            )
        ]
        # The costliest first, so that workers end together; equal ones in an order of this
        # process's own, so that two processes on one store seldom train the same.
        Random(os.getpid()).shuffle(batches)
        batches.sort(key=lambda batch: -batch.cost)
        if batches:
            self.executor.run(Work(batches, self.store, self._report, self._wanted))

    def _diverged_parent(self, key: str) -> RunSpec | None:
        """Return a parent of a run that diverged, or that could not begin itself."""
        for parent in self.order.parents.get(key, ()):
            if parent in self.lost:
                return self.lost[parent]
            if parent in self.diverged:
                return next(runs[parent] for runs in self.order.runs if parent in runs)
        return None

    def _report(self, news: News) -> None:
        self.tally.done += news.done
        self.tally.solved += news.solved
        self.tally.spent += news.cost
        self.tally.model_steps += news.model_steps
        self.progress.show(self.tally)

    def _wanted(self, batch: Batch) -> Batch:
        """Drop what another process has done meanwhile."""
        if time.monotonic() - self.looked > LOOK_SECONDS:
            self._look()
        runs = {run_key(spec): spec for spec in batch.specs}
        missing = self._missing(runs)
        elsewhere = runs.keys() - missing.keys()
        asked = sum(key in self.by_key for key in elsewhere)
        self.skipped += asked
        self.parents -= len(elsewhere) - asked
        self.elsewhere += len(elsewhere)
        cost = sum(run_cost(runs[key]) for key in elsewhere)
        self._report(News(done=len(elsewhere), cost=cost))
        return replace(batch, specs=tuple(missing.values()))

    @property
    def summary(self) -> Summary:
        """What was done."""
        return Summary(
            len(self.by_key),
            self.skipped,
            self.tally.done - self.elsewhere,
            self.tally.solved,
            self.tally.model_steps,
            time.perf_counter() - self.tally.started,
            self.parents,
        )
