"""Running a sweep: skip what the store has, cut the rest into batches, carry them out."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Set
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
from petridish.sweeps.planned import Planned
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
    runs = check_all(sweep.specs(), here=isinstance(executor, str))
    usual = cores() if device in ("cpu", "auto") else 1  # workers would divide its memory
    with opened(executor, jobs or usual) as workers:
        placement = Placement(device, engine, workers.jobs, workers.sharing)
        shown = progress or Progress()
        setting = _Setting(store, placement, workers, shown, shared_by, user_file)
        search = chosen_by(sweep, adaptive=adaptive)
        if search is None:
            total, lost = _run(runs, setting)
        else:
            total, lost = _run_search(runs, search, setting)
    _refuse_lost(lost)
    return total


def _run_search(runs: Planned, search: Search, setting: _Setting) -> tuple[Summary, Lost]:
    """Carry out the runs that a search wants, until it wants no more."""
    store = setting.store
    store.prepare()
    total = Summary(len(runs), 0, 0, 0, 0, 0.0)
    total = replace(total, skipped=len(runs.among(store.keys())[0]))
    lost: Lost = {}
    # A run that cannot begin has failed: the search goes on without it.
    while missing := search.wanted(outcomes(store.endings()) | dict.fromkeys(lost, False)):
        more, new = _run(Planned.of(missing.values()), setting)
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
    AtHalf().check(sweep)
    return AtHalf().search(sweep)


def outcomes(endings: pl.DataFrame) -> dict[str, bool]:
    """Return whether each stored run was solved, by key."""
    return dict(zip(endings["key"], endings["outcome"] == Outcome.SOLVED.name, strict=True))


def run_specs(
    specs: Iterable[RunSpec],
    store: Store,
    placement: Placement,
    executor: Executor,
    progress: Progress,
) -> tuple[Summary, Lost]:
    """Carry out runs on an executor; what they need comes first.

    Also returned are the runs that could not be carried out, by key, each with the reason.
    """
    return _run(Planned.of(specs), _Setting(store, placement, executor, progress))


def _run(runs: Planned, setting: _Setting) -> tuple[Summary, Lost]:
    setting.store.prepare()
    job = _Job(runs, setting)
    if job.tally.runs:
        with setting.progress, job.claims:
            for generation in job.todo:
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

    def __init__(self, runs: Planned, setting: _Setting) -> None:
        self.runs, self.setting = runs, setting
        self.store, self.executor = setting.store, setting.executor
        self.claims = Claims(self.store.folder)
        self.order = with_parents(runs)
        chained = bool(self.order.parents)
        self.asked = set(runs.run_keys()) if chained else None  # None: all that there are
        self.needed: set[str] = set()  # runs from which others begin that are not done
        self.lost: Lost = {}
        self._look()
        self.todo: list[Planned] = []  # of each generation, not done when the call began
        for generation in reversed(self.order.runs):
            missing = self._missing(generation)
            if chained:
                self.needed.update(
                    p for key in missing.run_keys() for p in self.order.parents.get(key, ())
                )
            self.todo.insert(0, missing)
        asked = sum(map(self._count_asked, self.todo))
        self.skipped = len(runs) - asked
        self.elsewhere = 0  # done by other processes since
        self.parents = sum(map(len, self.todo)) - asked
        self.tally = Tally(
            runs=sum(map(len, self.todo)),
            cost=sum(map(total_cost, self.todo)),
            solvable=any(spec.stop is not None for runs in self.todo for spec, _ in runs.counted()),
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

    def _missing(self, runs: Planned) -> Planned:
        """Return the runs that are not done."""
        return runs.among(self._done(runs))[1]

    def _done(self, runs: Planned) -> Set[str]:
        """Return the keys of what is done, of some runs at least."""
        if self.asked is None:
            return self.kept
        return {
            key
            for key in runs.run_keys()
            if (key in self.ended or key not in self.needed)
            and (key in self.kept or key not in self.asked)
        }

    def _count_asked(self, runs: Planned) -> int:
        """Count the runs that are not only there for others to begin from."""
        return len(runs if self.asked is None else runs.among(self.asked)[0])

    def carry_out(self, asked: Planned) -> None:
        """Carry out the runs of one generation that are not done.

        What another process has begun is left to it, and begun here if that process dies.
        """
        self._look()
        done, todo = asked.among(self._done(asked))
        self._count_elsewhere(done)
        if self.order.parents:
            reasons = {key: self._why_not(key) for key in todo.run_keys()}
            self.lost |= {key: reason for key, reason in reasons.items() if reason is not None}
            todo = todo.among(self.lost)[1]
        while todo:
            theirs, free = todo.among(self.claims.held())
            if free:
                left = theirs.also(self._carry_out(free))
            else:
                left = theirs
                time.sleep(WAIT_SECONDS)
            self._look()
            done, todo = left.among(self._done(left))
            self._count_elsewhere(done)

    def _carry_out(self, todo: Planned) -> list[Planned]:
        """Carry out runs but for those that another process begins first; return the latter."""
        batches, placement = [], self.setting.placement
        for needed, some in zip((True, False), todo.among(self.needed), strict=True):
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
        others: list[Planned] = []

        def wanted(batch: Batch) -> Batch:
            assert isinstance(batch.specs, Planned), "as `cut` has made it"
            mine, theirs = self._divide(batch.specs)
            if theirs:
                others.append(theirs)
            return replace(batch, specs=mine)

        def set_aside(spec: RunSpec, reason: str) -> None:
            self.lost[run_key(spec)] = reason

        work = Work(batches, self.store, self._report, wanted, set_aside, self.setting.user_file)
        self.executor.run(work)
        return others

    def _why_not(self, key: str) -> str | None:
        """Return why a run cannot begin: a parent diverged, or was not carried out itself."""
        for parent in self.order.parents.get(key, ()):
            if parent in self.lost:
                return self.lost[parent]
            if parent in self.diverged:
                found = (runs.among([parent])[0] for runs in self.order.runs)
                return diverged(next(runs[0] for runs in found if runs))
        return None

    def _report(self, news: News) -> None:
        self.tally.add(**vars(news))
        self.setting.progress.show(self.tally)

    def _divide(self, runs: Planned) -> tuple[Planned, Planned]:
        """Return the runs that no other process has done or begun, claimed now, and the others."""
        mine, theirs = runs.among(self.claims.claim(runs.run_keys()))
        self._look()  # afterwards: who had claimed them may have ended just now
        done, mine = mine.among(self._done(mine))
        return mine, theirs.also([done])

    def _count_elsewhere(self, runs: Planned) -> None:
        """Count runs that other processes have done."""
        asked = self._count_asked(runs)
        self.skipped += asked
        self.parents -= len(runs) - asked
        self.elsewhere += len(runs)
        self._report(News(done=len(runs), cost=total_cost(runs)))

    @property
    def summary(self) -> Summary:
        """What was done."""
        return Summary(
            len(self.runs),
            self.skipped,
            self.tally.done - self.elsewhere,
            self.tally.solved,
            self.tally.model_steps,
            time.perf_counter() - self.tally.started,
            self.parents,
        )
