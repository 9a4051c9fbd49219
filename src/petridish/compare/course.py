"""The fits of a comparison: which are carried out, in which order, and what the time allows."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from petridish.compare.describe import NumericTable
from petridish.compare.methods import FOREST, GUESS, MethodFit, fit_one, methods, warm_up
from petridish.errors import UserError

FIRST_SIZE = 500  # training rows, at most, of the first fits: of fewer, times say little of more
FEWEST_REPEATS = 3  # a size is chosen if this many are expected to fit into the time
LEAST_REPEATS = 2  # made whatever the time: one alone has no interval
LEAST_METHODS = 3  # that are made so, whatever the time; one of them guesses
PAGE_SHARE, PAGE_SECONDS = 0.15, 5.0  # of the time, kept for drawing and writing; at most
GROWTH = (0.3, 0.5, 1.2)  # least, usual and greatest power of its rows by which a fit's time grows

Show = Callable[[int, int, float], None]  # fits done, fits planned, seconds left
Work = tuple[str, int, int]  # method, size, repeat


@dataclass
class Course:
    """The fits under way: what is done, what it took, what the time still allows.

    First come `LEAST_REPEATS` of one size of at most `FIRST_SIZE` rows; then larger sizes, as long
    as `FEWEST_REPEATS` of them are expected to fit; then smaller ones; then further repeats. What
    runs when the time is up is cut off, which takes processes: with one job, fits are carried out
    here, and none begins after that.
    """

    examples: NumericTable
    sizes: tuple[int, ...]
    repeats: int
    seconds: float
    seed: int
    jobs: int
    show: Show
    started: float
    shorten: bool
    meanwhile: Callable[[], object] | None = None
    """Called once, while the first fits run in their processes."""
    limit: float | None = None
    fits: list[MethodFit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shuffled: bool = False

    def run(self) -> None:
        """Carry out what the time allows."""
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        self.grid = self.sizes
        self.first = max(
            (size for size in self.sizes if size <= FIRST_SIZE and self.shorten),
            default=self.sizes[0],
        )
        try:
            with warnings.catch_warnings(), _workers(self.jobs, self.examples) as workers:
                warnings.simplefilter("ignore")  # of libraries, into a progress bar
                self.workers, self.fit = workers
                in_time = self._carry_out(self._first_fits())
                if in_time and self.shorten:
                    self._larger()
                    self._leave_out_slow()
                    self._smaller()
                    self._leave_out_small()
                if in_time:
                    self._carry_out(self._further())
        except TerminatedWorkerError as error:
            raise UserError(
                "A worker process was killed, perhaps for want of memory. Give a lower --jobs, or "
                "smaller --sizes."
            ) from error
        self._keep_whole()

    def _carry_out(self, work: Iterable[Work]) -> bool:
        """Carry out fits; return False if the time was up before."""
        waiting: set[Future[MethodFit]] = set()
        for each in work:
            while len(waiting) >= self.jobs:
                if not self._collect(waiting):
                    return False
            if self._enough() and self.spent() + self._least_seconds(*each) >= self.until:
                return False
            waiting.add(self._submit(*each))
        while waiting:
            if not self._collect(waiting):
                return False
        return True

    def _least_seconds(self, name: str, size: int, repeat: int) -> float:
        """Return what a fit takes that cannot be cut off: as before, or as the longest so far."""
        known = self._method_seconds(size) if self.jobs == 1 else {}
        return known.get(name, max(known.values(), default=0.0))

    def _submit(self, name: str, size: int, repeat: int) -> Future[MethodFit]:
        # Importances once, when it is known which size is the largest.
        shuffle = not self.shuffled and repeat > 0 and (name, size) == (FOREST, self.sizes[-1])
        self.shuffled |= shuffle
        return self.workers.submit(self.fit, name, size, repeat, seed=self.seed, shuffle=shuffle)

    def _collect(self, waiting: set[Future[MethodFit]]) -> bool:
        """Wait for a fit; return False if the time is up and there is enough to be ranked."""
        if self.meanwhile is not None:
            self.meanwhile()
            self.meanwhile = None
        left = self.until - self.spent() if self._enough() else math.inf
        done, _ = wait(waiting, None if math.isinf(left) else max(0.0, left), FIRST_COMPLETED)
        for future in done:
            waiting.discard(future)
            self.fits.append(future.result())
            planned = len(methods()) * len(self.sizes) * self.repeats
            self.show(len(self.fits), planned, self._left())
        return bool(done)

    def _first_fits(self) -> Iterator[Work]:
        """Yield what is needed for a ranking, the quickest methods first."""
        for size in (self.first,) if self.shorten else self.sizes:
            for name in reversed(methods()):
                for repeat in range(min(LEAST_REPEATS, self.repeats)):
                    yield name, size, repeat

    def _enough(self) -> bool:
        """Return whether there is something to be ranked, so that the rest can be left out."""
        sizes = (self.first,) if self.shorten else self.sizes
        made = [self._made(name, size) >= LEAST_REPEATS for name in methods() for size in sizes]
        return sum(made) >= LEAST_METHODS if self.shorten else all(made)

    def _made(self, name: str, size: int) -> int:
        return sum((fit.method, fit.size) == (name, size) for fit in self.fits)

    def _further(self) -> Iterator[Work]:
        """Yield the fits of further repeats until the time is used up."""
        made = {(fit.method, fit.size, fit.repeat) for fit in self.fits}
        for repeat in range(1, self.repeats):
            one = sum(self._size_seconds(size) for size in self.sizes)
            if repeat >= LEAST_REPEATS and self.spent() + one > self.until:
                return
            for size in reversed(self.sizes):  # the longest first: cores end together
                for name in methods():
                    if (name, size, repeat) not in made:
                        yield name, size, repeat

    def _keep_whole(self) -> None:
        """Drop what was cut off: methods, sizes and repeats that are not complete."""
        names = list(methods())

        def whole(*sizes: int) -> set[int]:
            """Return the repeats in which every method has a fit of every size."""
            made = {(fit.method, fit.size, fit.repeat) for fit in self.fits}
            every = [(name, size) for name in names for size in sizes]
            return {r for r in range(self.repeats) if all((*each, r) in made for each in every)}

        while len(whole(self.first)) < LEAST_REPEATS:
            names.remove(min(names, key=lambda name: self._made(name, self.first)))
        slow = [name for name in methods() if name not in names]
        complete = [size for size in self.sizes if len(whole(size)) >= LEAST_REPEATS]
        if slow or not complete:
            complete, self.sizes, self.notes = [self.first], self.grid, []
        self._leave_out(tuple(size for size in self.sizes if size not in complete))
        if slow:
            self.notes.append(
                f"Left out for want of time: {', '.join(slow)}; a --seconds longer than "
                f"{self.seconds:g} includes more."
            )
        made = whole(*self.sizes)
        if len(made) < self.repeats:
            self.notes.append(
                f"{len(made)} of {self.repeats} repeats made in the time of {self.seconds:g} s; a "
                "longer --seconds gives more, and narrower intervals."
            )
        self.repeats = len(made)
        self.fits = [
            fit
            for fit in self.fits
            if fit.repeat in made and fit.size in self.sizes and fit.method in names
        ]

    @property
    def until(self) -> float:
        """The seconds after which the page is to be written."""
        return self.seconds - min(PAGE_SHARE * self.seconds, PAGE_SECONDS)

    def spent(self) -> float:
        """Return the seconds so far."""
        return time.perf_counter() - self.started

    def _size_seconds(self, size: int) -> float:
        """Estimate what one repeat of a size takes, from the fits of that size."""
        return sum(self._method_seconds(size).values()) / self.jobs

    def _method_seconds(self, size: int) -> dict[str, float]:
        times: dict[str, list[float]] = {}
        for fit in self.fits:
            if fit.size == size:
                times.setdefault(fit.method, []).append(max(fit.spent, 1e-6))
        return {name: fmean(spent) for name, spent in times.items()}

    def _left(self) -> float:
        """Estimate the seconds left; unknown while larger sizes are still to come."""
        if len(self.fits) < len(methods()) * len(self.sizes):
            return math.nan
        done = len(self.fits) / (len(methods()) * len(self.sizes))
        whole = (self.repeats - done) * sum(map(self._size_seconds, self.sizes))
        return max(0.0, min(whole, self.until - self.spent()))

    def _larger(self) -> None:
        """Make a repeat of larger sizes, as far as the time allows."""
        left = tuple(size for size in self.sizes if size > self.first)
        while left:
            size = self._next(left)
            if size is None:
                break
            if not self._carry_out((name, size, 0) for name in methods()):
                left = (size, *(larger for larger in left if larger > size))
                break
            left = tuple(larger for larger in left if larger > size)
        self._leave_out(left)

    def _next(self, left: Sequence[int]) -> int | None:
        """Return the size to go on with: the next, or the largest where not all can be afforded.

        Smaller ones are passed over then: what a user asks is how methods do on the whole table.
        From one size alone it is not known how times grow, and nothing is passed over.
        """
        growth_known = len({fit.size for fit in self.fits}) > 1
        if self.affords(*left) or not growth_known:
            return left[0] if self.affords(left[0]) else None
        return next((size for size in reversed(left) if self.affords(size)), None)

    def affords(self, *sizes: int) -> bool:
        """Return whether enough repeats with larger sizes are expected to fit into the time."""
        repeats = min(FEWEST_REPEATS, self.repeats)
        expected = sum(map(self._expected, sizes)) / self.jobs
        return self.spent() + repeats * expected <= self.until

    def _expected(self, size: int) -> float:
        """Predict what a larger size takes: every method's time goes on growing as it did."""
        *before, large = sorted({fit.size for fit in self.fits})
        last = self._method_seconds(large)
        least, power, most = GROWTH
        total = 0.0
        for name, seconds in last.items():
            if before:
                earlier = self._method_seconds(before[-1])[name]
                growth = math.log(seconds / earlier) / math.log(large / before[-1])
                power = min(max(growth, least), most)
            total += seconds * (size / large) ** power
        return total

    def _smaller(self) -> None:
        """Make a repeat of sizes below the first, which take no longer, while time is left."""
        kept = [size for size in self.sizes if size >= self.first and self._made(GUESS, size)]
        for size in sorted((size for size in self.sizes if size < self.first), reverse=True):
            more = (min(FEWEST_REPEATS, self.repeats) - 1) * sum(map(self._size_seconds, kept))
            wanted = min(FEWEST_REPEATS, self.repeats) * self._size_seconds(self.first)
            if self.spent() + more + wanted > self.until:
                return
            if not self._carry_out((name, size, 0) for name in methods()):
                return
            kept.append(size)

    def _leave_out_slow(self) -> None:
        """Leave out the largest size if it took so long that not even a second repeat fits."""
        *smaller, largest = sorted({fit.size for fit in self.fits})
        slow = self._size_seconds(largest) * (LEAST_REPEATS - 1)
        if smaller and self.spent() + slow > self.until:
            self._leave_out(tuple(size for size in self.sizes if size > smaller[-1]))

    def _leave_out(self, sizes: tuple[int, ...]) -> None:
        if not sizes:
            return
        self.sizes = tuple(size for size in self.sizes if size not in sizes)
        # Those of the first size are kept: should a larger one not be completed, it is ranked.
        self.fits = [fit for fit in self.fits if fit.size == self.first or fit.size not in sizes]
        last = self.sizes[-1]
        if larger := _listed(size for size in sizes if size > last):
            self.limit = self.seconds
            self.notes.append(
                f"Training parts of {larger} rows left out: {min(FEWEST_REPEATS, self.repeats)} "
                f"repeats of them would take longer than {self.seconds:g} s; a longer --seconds "
                "includes them."
            )
        if smaller := _listed(size for size in sizes if size < last):
            self.notes.append(
                f"Training parts of {smaller} rows left out, to have time for {last:,}; a longer "
                "--seconds includes them."
            )

    def _leave_out_small(self) -> None:
        """Keep the largest size, and of the smaller ones those that time is left for."""
        more = min(FEWEST_REPEATS, self.repeats) - 1
        left = self.until - self.spent()
        kept: list[int] = []
        for size in sorted({fit.size for fit in self.fits}, reverse=True):
            left -= more * self._size_seconds(size)
            if left >= 0 or not kept:
                kept.append(size)
        self._leave_out(tuple(size for size in self.sizes if size not in kept))


# Processes

_HELD: list[NumericTable] = []  # in a worker: its table


class _Here(Executor):
    """Carries out what it is given at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def _workers(
    jobs: int, examples: NumericTable
) -> Iterator[tuple[Executor, Callable[..., MethodFit]]]:
    """Yield what carries out fits and the function of one; what still runs in the end is killed."""
    if jobs == 1:
        yield _Here(), partial(_warm_fit, examples)
        return
    from joblib.externals.loky import ProcessPoolExecutor

    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        np.save(path, examples.x)  # read by all workers from one memory
        rest = replace(examples, x=examples.x[:0])
        workers = ProcessPoolExecutor(jobs, initializer=_begin, initargs=(rest, path))
        try:
            yield workers, _fit_held
        finally:
            workers.shutdown(wait=True, kill_workers=True)


def _begin(examples: NumericTable, path: Path) -> None:
    _HELD[:] = [replace(examples, x=np.load(path, mmap_mode="r"))]


def _fit_held(*work: Any, **options: Any) -> MethodFit:
    return _warm_fit(_HELD[0], *work, **options)


def _warm_fit(examples: NumericTable, name: str, *work: int, **options: Any) -> MethodFit:
    warm_up(name)
    return fit_one(examples, name, *work, **options)


def _listed(sizes: Iterable[int]) -> str:
    return ", ".join(f"{size:,}" for size in sizes)
