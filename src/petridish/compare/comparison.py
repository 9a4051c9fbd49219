"""Methods on one table: fits over growing training parts and repeats, within a time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from petridish.compare.course import Course, Show
from petridish.compare.describe import NumericTable
from petridish.compare.methods import MethodFit, methods
from petridish.compare.splits import drawn_rows, largest_training, test_rows, training_sizes
from petridish.errors import UserError, check_whole

REPEATS = 10
SECONDS = 180.0
SMALLEST_SIZE = 10


@dataclass(frozen=True)
class Comparison:
    """All fits, and what they rest on.

    Attributes
    ----------
    rows, test : int
        Rows that could be drawn, and rows of a test part.
    sizes, repeats : tuple of int, int
        What was carried out; every method at every size in every repeat.
    fits : tuple of MethodFit
        In order of repeat, size and method.
    notes : tuple of str
        What the time did not allow.
    limit : float or None
        The seconds that did not allow larger training parts, where there would be some.
    """

    examples: NumericTable
    rows: int
    test: int
    sizes: tuple[int, ...]
    repeats: int
    seed: int
    jobs: int
    seconds: float
    fits: tuple[MethodFit, ...]
    notes: tuple[str, ...]
    limit: float | None = None

    def at(self, method: str, size: int) -> list[MethodFit]:
        """Return the fits of a method at a size, in order of repeats."""
        return [fit for fit in self.fits if (fit.method, fit.size) == (method, size)]

    @property
    def methods(self) -> list[str]:
        """The methods that were run, in the order of `petridish.compare.methods`."""
        return list(dict.fromkeys(fit.method for fit in self.fits))


def compare(
    examples: NumericTable,
    *,
    sizes: Sequence[int] | None = None,
    repeats: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    jobs: int | None = None,
    show: Show | None = None,
    started: float | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Comparison:
    """Fit every method to growing parts of a table, again and again.

    Parameters
    ----------
    examples : NumericTable
        The table.
    sizes : sequence of int, optional
        Training rows. If not given, those of `training_sizes` up to the largest of which three
        repeats fit into the time; smaller ones as far as time is left.
    repeats : int, optional
        If not given, at most `REPEATS`.
    seconds : float, optional
        The time for all of it and a page. No repeat begins that would probably end later, and
        fits that run when the time is up are cut off, once two repeats of two methods are made.
        If not given, `SECONDS`; without limit where `repeats` is given.
    seed : int
        The same seed gives the same parts and the same fits.
    jobs : int, optional
        Processes, of one thread each; one per core if not given. With 1, fits are carried out in
        this process, where none can be cut off.
    show : function of (fits done, fits planned, seconds left), optional
        Called after each fit.
    started : float, optional
        When the time began, by `time.perf_counter`; now, if not given.
    meanwhile : function, optional
        Called once while the first fits run: what else takes time, such as imports for a page.
    """
    from joblib import cpu_count

    check_options(examples, sizes=sizes, repeats=repeats, seconds=seconds, seed=seed, jobs=jobs)
    rows = drawn_rows(len(examples), seed=seed)
    notes = []
    if rows is not None:
        notes.append(f"{len(rows):,} of the {len(examples):,} rows drawn at random.")
        examples = NumericTable(
            examples.names,
            examples.categorical,
            examples.x[rows],
            examples.y[rows],
            examples.classes,
        )
    if seconds is None:
        seconds = SECONDS if repeats is None else math.inf
    course = Course(
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
        started=time.perf_counter() if started is None else started,
        shorten=sizes is None,
        meanwhile=meanwhile,
    )
    course.run()
    order = {name: place for place, name in enumerate(methods())}
    return Comparison(
        examples=examples,
        rows=len(examples),
        test=test_rows(len(examples)),
        sizes=course.sizes,
        repeats=course.repeats,
        seed=seed,
        jobs=course.jobs,
        seconds=course.spent(),
        fits=tuple(sorted(course.fits, key=lambda fit: (fit.repeat, fit.size, order[fit.method]))),
        notes=(*notes, *course.notes),
        limit=course.limit,
    )


def check_options(
    examples: NumericTable,
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
