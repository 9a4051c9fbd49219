"""Running a sweep: skip what the store has, cut the rest into batches, carry them out."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from petridish.choices import describe
from petridish.errors import UserError
from petridish.sweeps.adaptive import AtHalf
from petridish.sweeps.allocation import Search, chooses, search_of
from petridish.sweeps.batches import Batch, check_all, cores, cut, total_cost
from petridish.sweeps.executors import Executor, News, Work, opened
from petridish.sweeps.generations import with_parents
from petridish.sweeps.leases import Claims
from petridish.sweeps.placement import Placement
from petridish.sweeps.progress import Progress, Tally
from petridish.sweeps.sweep import Sweep
from petridish.training import Outcome, RunSpec, forget_code, load_engine, run_key
from petridish.training.chains import diverged

if TYPE_CHECKING:
    import polars as pl

    from petridish.store import Store

WAIT_SECONDS = 0.5  # between two readings of the store while others carry out all that is left


Lost = dict[str, str]
"""Runs that were not carried out, by key, each with the reason."""


@dataclass(frozen=True)
class _Setting:
    """Where and how runs are carried out."""

    store: Store
    placement: Placement
    executor: Executor
    progress: Progress
    shared_by: int = 1
    user_file: Path | None = None


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


def run_sweep(
    sweep: Sweep,
    store: Store,
    *,
    engine: str = "auto",
    executor: str | Executor | Any = "local",
    jobs: int | None = None,
    progress: Progress | None = None,
    user_file: Path | None = None,
    adaptive: bool = False,
    device: str = "cpu",
    shared_by: int = 1,
) -> Summary:
    """Carry out the runs of a sweep that the store does not have.

    Parameters
    ----------
    engine : str
        An engine's name, or "auto" for the fastest that serves each run.
    executor : "local", "inline", an Executor or a client of Dask
        One process per core, this process alone, or the workers of a cluster.
    jobs : int, optional
        Worker processes; one per core if not given.
    user_file : Path, optional
        The file that declares the sweep's own classes, which workers must import.
    adaptive : bool
        Give further seeds only to the cells whose success may lie on either side of ½:
        the same as a sweep with ``allocate=AtHalf()``.
    device : str
        "cpu", "cuda", "cuda:1" or "mps"; or "auto", an accelerator for the runs that gain by it.
        With one that is named a single worker process is started, if `jobs` does not say more.
    shared_by : int
        How many such commands share the store: batches are small enough for all of them.

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
    if shared_by < 1:
        raise UserError(f"--shared-by {shared_by} was given. Give at least 1 command.")
    # The machines of a cluster may have more memory than this one.
    by_key = check_all(sweep.specs(), here=isinstance(executor, str))
    usual = cores() if device in ("cpu", "auto") else 1  # workers would divide its memory
    with opened(executor, jobs or usual) as workers:
        placement = Placement(device, engine, workers.jobs, workers.sharing)
        shown = progress or Progress()
        setting = _Setting(store, placement, workers, shown, shared_by, user_file)
        search = chosen_by(sweep, adaptive=adaptive)
        if search is None:
            total, lost = _run(by_key, setting)
        else:
            total, lost = _run_search(by_key, search, setting)
    _refuse_lost(lost)
    return total


def _run_search(
    by_key: Mapping[str, RunSpec], search: Search, setting: _Setting
) -> tuple[Summary, Lost]:
    """Carry out the runs that a search wants, until it wants no more."""
    store = setting.store
    store.prepare()
    total = Summary(len(by_key), 0, 0, 0, 0, 0.0)
    total = replace(total, skipped=len(store.keys() & by_key.keys()))
    lost: Lost = {}
    # A run that cannot begin has failed: the search goes on without it.
    while missing := search.wanted(outcomes(store.endings()) | dict.fromkeys(lost, False)):
        more, new = _run(missing, setting)
        total = total.plus(more)
        lost |= new
        if more.done - more.parents + more.skipped + len(new) < more.runs:
            break  # stopped on the way
    return total, lost


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


def run_specs(
    by_key: dict[str, RunSpec],
    store: Store,
    placement: Placement,
    executor: Executor,
    progress: Progress,
) -> tuple[Summary, Lost]:
    """Carry out runs given by key, on an executor; what they need comes first.

    Also returned are the runs that could not be carried out, by key, each with the reason.
    """
    return _run(by_key, _Setting(store, placement, executor, progress))


def _run(by_key: dict[str, RunSpec], setting: _Setting) -> tuple[Summary, Lost]:
    setting.store.prepare()
    job = _Job(by_key, setting)
    if job.tally.runs:
        with setting.progress, job.claims:
            for generation in job.order.runs:
                job.carry_out(generation)
    return job.summary, job.lost


def _refuse_lost(lost: Lost) -> None:
    """Raise an error that names the runs that were not carried out, once all others are done."""
    if lost:
        raise UserError(
            f"{len(lost)} runs were not carried out; all others were. {next(iter(lost.values()))}"
        )


class _Job:
    """What one call of `run_specs` has to do, and how far it is.

    A run is done if the store has its row; one from which others begin, if the store has its last
    weights too, or knows that it diverged.
    """

    def __init__(self, by_key: dict[str, RunSpec], setting: _Setting) -> None:
        self.by_key, self.setting = by_key, setting
        self.store, self.executor = setting.store, setting.executor
        self.claims = Claims(self.store.folder)
        self.order = with_parents(by_key)
        self.needed: set[str] = set()  # runs from which others begin that are not done
        self.lost: Lost = {}
        self._look()
        self.todo: dict[str, RunSpec] = {}  # not done when the call began
        for generation in reversed(self.order.runs):
            missing = self._missing(generation)
            self.needed.update(p for key in missing for p in self.order.parents.get(key, ()))
            self.todo |= missing
        self.skipped = sum(key not in self.todo for key in by_key)
        self.elsewhere = 0  # done by other processes since
        self.parents = sum(key not in by_key for key in self.todo)
        self.tally = Tally(
            runs=len(self.todo),
            cost=total_cost(self.todo.values()),
            solvable=any(spec.stop is not None for spec in self.todo.values()),
        )

    def _look(self) -> None:
        """Read what the store holds now: another process may have added runs."""
        self.kept = self.store.keys()
        self.diverged, self.ended = set[str](), set[str]()
        if self.order.parents:
            endings = self.store.endings()
            self.diverged = set(endings["key"].filter(endings["outcome"] == Outcome.DIVERGED.name))
            # A process that was killed may have kept the weights, and not the row.
            self.ended = (self.store.weights.keys() & self.kept) | self.diverged

    def _missing(self, runs: Mapping[str, RunSpec]) -> dict[str, RunSpec]:
        """Return the runs that are not done."""
        return {
            key: spec
            for key, spec in runs.items()
            if (key in self.needed and key not in self.ended)
            or (key in self.by_key and key not in self.kept)
        }

    def carry_out(self, generation: Mapping[str, RunSpec]) -> None:
        """Carry out the runs of one generation that are not done.

        What another process has begun is left to it, and begun here if that process dies.
        """
        asked = {key: spec for key, spec in generation.items() if key in self.todo}
        self._look()
        todo = self._missing(asked)
        self._count_elsewhere({key: spec for key, spec in asked.items() if key not in todo})
        for key in list(todo):
            if reason := self._why_not(key):
                self.lost[key] = reason
                del todo[key]
        while todo:
            held = self.claims.held()
            free = {key: spec for key, spec in todo.items() if key not in held}
            if free:
                begun = self._carry_out(free)
            else:
                begun = set()
                time.sleep(WAIT_SECONDS)
            self._look()
            missing = self._missing(todo)
            mine = missing.keys() | begun
            self._count_elsewhere({k: s for k, s in todo.items() if k not in mine})
            todo = {key: spec for key, spec in missing.items() if key not in begun}

    def _carry_out(self, todo: Mapping[str, RunSpec]) -> set[str]:
        """Carry out runs but for those that another process begins first; return what was begun."""
        batches, placement = [], self.setting.placement
        for needed in (True, False):
            some = [spec for key, spec in todo.items() if (key in self.needed) == needed]
            for share in placement.shares(some):
                batches += cut(
                    share.specs,
                    engine=share.engine,
                    jobs=self.executor.jobs,
                    pieces=self.executor.pieces * self.setting.shared_by,
                    room=self.executor.room,
                    parents=needed,
                    device=share.device.name,
                    size_of=share.size_of,
                )
        for line in placement.news():
            self.setting.progress.say(line)
        # The costliest first, so that workers end together; equal ones in an order of this
        # process's own, so that two processes on one store begin at different ends.
        Random(os.getpid()).shuffle(batches)
        batches.sort(key=lambda batch: -batch.cost)
        begun: set[str] = set()

        def wanted(batch: Batch) -> Batch:
            runs = self._wanted(batch)
            begun.update(runs)
            return replace(batch, specs=tuple(runs.values()))

        def set_aside(spec: RunSpec, reason: str) -> None:
            self.lost[run_key(spec)] = reason

        work = Work(batches, self.store, self._report, wanted, set_aside, self.setting.user_file)
        self.executor.run(work)
        return begun

    def _why_not(self, key: str) -> str | None:
        """Return why a run cannot begin: a parent diverged, or was not carried out itself."""
        for parent in self.order.parents.get(key, ()):
            if parent in self.lost:
                return self.lost[parent]
            if parent in self.diverged:
                return diverged(next(runs[parent] for runs in self.order.runs if parent in runs))
        return None

    def _report(self, news: News) -> None:
        self.tally.add(**vars(news))
        self.setting.progress.show(self.tally)

    def _wanted(self, batch: Batch) -> dict[str, RunSpec]:
        """Return the runs of a batch that no other process has done or begun meanwhile."""
        runs = {run_key(spec): spec for spec in batch.specs}
        claimed = self.claims.claim(runs)
        self._look()  # afterwards: who had claimed them may have ended just now
        return {key: spec for key, spec in self._missing(runs).items() if key in claimed}

    def _count_elsewhere(self, runs: Mapping[str, RunSpec]) -> None:
        """Count runs that other processes have done."""
        asked = sum(key in self.by_key for key in runs)
        self.skipped += asked
        self.parents -= len(runs) - asked
        self.elsewhere += len(runs)
        self._report(News(done=len(runs), cost=total_cost(runs.values())))

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
