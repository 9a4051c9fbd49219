"""Methods on one table: fits over growing training parts and repeats, within a time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from petridish.compare.describe import Examples
from petridish.compare.methods import FOREST, Fit, fit_one, methods
from petridish.compare.splits import drawn_rows, largest_training, test_rows, training_sizes
from petridish.errors import UserError, check_whole

REPEATS, FEWEST_REPEATS = 10, 3
SECONDS = 180.0
GROWTH = (0.6, 1.2)  # a fit's time grows at least and at most by these powers of its rows
SMALLEST_SIZE = 10

Show = Callable[[int, int, float], None]  # fits done, fits planned, seconds left


@dataclass(frozen=True)
class Comparison:
    """All fits, and what they rest on.

    Attributes
    ----------
    rows, test : int
        Rows that could be drawn, and rows of a test part.
    sizes, repeats : tuple of int, int
        What was carried out; every method at every size in every repeat.
    fits : tuple of Fit
        In order of repeat, size and method.
    notes : tuple of str
        What the time did not allow.
    """

    examples: Examples
    rows: int
    test: int
    sizes: tuple[int, ...]
    repeats: int
    seed: int
    jobs: int
    seconds: float
    fits: tuple[Fit, ...]
    notes: tuple[str, ...]

    def at(self, method: str, size: int) -> list[Fit]:
        """Give a method's fits at a size, in order of repeats."""
        return [fit for fit in self.fits if (fit.method, fit.size) == (method, size)]

    @property
    def methods(self) -> list[str]:
        """Give the methods that were run, in the order of `petridish.compare.methods`."""
        return list(dict.fromkeys(fit.method for fit in self.fits))


def compare(
    examples: Examples,
    *,
    sizes: Sequence[int] | None = None,
    repeats: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    jobs: int | None = None,
    show: Show | None = None,
) -> Comparison:
    """Fit every method to growing parts of a table, again and again.

    Parameters
    ----------
    examples : Examples
    sizes : sequence of int, optional
        Training rows; if not given, `training_sizes`, without those of which `FEWEST_REPEATS`
        repeats would not fit into the time.
    repeats : int, optional
        If not given, at most `REPEATS`.
    seconds : float, optional
        No repeat begins that would probably end later, once there are `FEWEST_REPEATS`. If not
        given, `SECONDS`; without limit where `repeats` is given.
    seed : int
        The same seed gives the same parts and the same fits.
    jobs : int, optional
        Processes, of one thread each; one a core if not given.
    show : function of (fits done, fits planned, seconds left), optional
        Called after each fit.
    """
    from joblib import cpu_count

    check_options(examples, sizes=sizes, repeats=repeats, seconds=seconds, seed=seed, jobs=jobs)
    rows = drawn_rows(len(examples), seed=seed)
    notes = []
    if rows is not None:
        notes.append(f"{len(rows):,} of the {len(examples):,} rows drawn at random.")
        examples = Examples(
            examples.names,
            examples.categorical,
            examples.x[rows],
            examples.y[rows],
            examples.classes,
        )
    if seconds is None:
        seconds = SECONDS if repeats is None else math.inf
    course = _Course(
        examples=examples,
        sizes=(
            training_sizes(len(examples), len(examples.classes))
            if sizes is None
            else tuple(sorted(set(sizes)))
        ),
        repeats=REPEATS if repeats is None else repeats,
        seconds=seconds,
        seed=seed,
        jobs=jobs or cpu_count(),
        show=show or (lambda *_: None),
    )
    course.run(shorten=sizes is None)
    order = {name: place for place, name in enumerate(methods())}
    return Comparison(
        examples=examples,
        rows=len(examples),
        test=test_rows(len(examples)),
        sizes=course.sizes,
        repeats=course.repeats,
        seed=seed,
        jobs=course.jobs,
        seconds=time.perf_counter() - course.started,
        fits=tuple(sorted(course.fits, key=lambda fit: (fit.repeat, fit.size, order[fit.method]))),
        notes=(*notes, *course.notes),
    )


def check_options(
    examples: Examples,
    *,
    sizes: Sequence[int] | None,
    repeats: int | None,
    seconds: float | None,
    seed: int,
    jobs: int | None,
) -> None:
    """Refuse what `compare` cannot do with a table."""
    check_whole("tabular compare", 0, seed=seed)
    if repeats is not None:
        check_whole("tabular compare", 2, repeats=repeats)
    if jobs is not None:
        check_whole("tabular compare", 1, jobs=jobs)
    if seconds is not None and not seconds > 0:
        raise UserError(f"--seconds {seconds:g} was given. Give a time above 0.")
    if sizes is None:
        return
    least, most = max(SMALLEST_SIZE, len(examples.classes)), largest_training(len(examples))
    wrong = [size for size in sizes if not least <= size <= most]
    if wrong or not sizes:
        raise UserError(
            f"--sizes asks for {wrong[0] if wrong else 'no'} training rows. Of {len(examples):,} "
            f"usable rows, give sizes from {least} to {most}: the rest is for tests."
        )


@dataclass
class _Course:
    """The fits under way: what is done, what it took, what the time still allows."""

    examples: Examples
    sizes: tuple[int, ...]
    repeats: int
    seconds: float
    seed: int
    jobs: int
    show: Show
    fits: list[Fit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    def run(self, *, shorten: bool) -> None:
        """Carry out the first repeat size by size, then the others as the time allows."""
        from joblib import Parallel, parallel_config
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        try:
            with (
                parallel_config("loky", n_jobs=self.jobs, inner_max_num_threads=1),
                Parallel(
                    return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1
                ) as parallel,
            ):
                for place, size in enumerate(self.sizes):
                    if shorten and place > 1 and not self.affords(size):
                        self._leave_out(self.sizes[place:])
                        break
                    self._carry_out(parallel, ((name, size, 0) for name in methods()))
                self._carry_out(parallel, self._further())
        except TerminatedWorkerError as error:
            raise UserError(
                "A worker process was killed, perhaps for want of memory. Give a lower --jobs, or "
                "smaller --sizes."
            ) from error

    def _carry_out(self, parallel: Any, work: Iterator[tuple[str, int, int]]) -> None:
        from joblib import delayed

        for fit in parallel(
            delayed(fit_one)(
                self.examples,
                *each,
                seed=self.seed,
                # Once, when it is known which size is the largest.
                shuffle=each == (FOREST, self.sizes[-1], 1),
            )
            for each in work
        ):
            self.fits.append(fit)
            planned = len(methods()) * len(self.sizes) * self.repeats
            self.show(len(self.fits), planned, self._left())

    def _further(self) -> Iterator[tuple[str, int, int]]:
        """Give the fits of further repeats until the time is used up."""
        least = min(FEWEST_REPEATS, self.repeats)
        for repeat in range(1, self.repeats):
            if repeat >= least and self.spent() + self._repeat_seconds() > self.seconds:
                self.notes.append(
                    f"{repeat} of {self.repeats} repeats made in the time of {self.seconds:g} s; "
                    "a longer --seconds gives more, and narrower intervals."
                )
                self.repeats = repeat
                return
            for size in reversed(self.sizes):  # the longest first: cores end together
                for name in methods():
                    yield name, size, repeat

    def spent(self) -> float:
        """Count the seconds so far."""
        return time.perf_counter() - self.started

    def _cell_seconds(self) -> dict[tuple[str, int], list[float]]:
        """Give what the fits of each method at each size took."""
        cells: dict[tuple[str, int], list[float]] = {}
        for fit in self.fits:
            cells.setdefault((fit.method, fit.size), []).append(fit.spent)
        return cells

    def _repeat_seconds(self) -> float:
        """Estimate what one repeat takes."""
        return sum(fmean(cell) for cell in self._cell_seconds().values()) / self.jobs

    def _left(self) -> float:
        """Estimate the seconds left; unknown while larger sizes are still to come."""
        cells = self._cell_seconds()
        if len(cells) < len(methods()) * len(self.sizes):
            return math.nan
        whole, fewest = (
            sum(fmean(cell) * max(0, repeats - len(cell)) for cell in cells.values()) / self.jobs
            for repeats in (self.repeats, min(FEWEST_REPEATS, self.repeats))
        )
        return min(whole, max(fewest, self.seconds - self.spent()))

    def affords(self, size: int) -> bool:
        """Say whether enough repeats with this size would fit into the time."""
        one = (sum(fit.spent for fit in self.fits) + self._expected(size)) / self.jobs
        return min(FEWEST_REPEATS, self.repeats) * one <= self.seconds

    def _expected(self, size: int) -> float:
        """Foretell what a larger size takes: every method's time goes on growing as it did."""
        smaller, large = sorted({fit.size for fit in self.fits})[-2:]
        known = {(fit.method, fit.size): max(fit.spent, 1e-6) for fit in self.fits}
        total = 0.0
        for name in methods():
            last = known[name, large]
            power = math.log(last / known[name, smaller]) / math.log(large / smaller)
            total += last * (size / large) ** min(max(power, GROWTH[0]), GROWTH[1])
        return total

    def _leave_out(self, sizes: tuple[int, ...]) -> None:
        self.sizes = tuple(size for size in self.sizes if size not in sizes)
        names = ", ".join(f"{size:,}" for size in sizes)
        self.notes.append(
            f"Training parts of {names} rows left out: {min(FEWEST_REPEATS, self.repeats)} repeats "
            f"of them would take longer than {self.seconds:g} s; a longer --seconds includes them."
        )
