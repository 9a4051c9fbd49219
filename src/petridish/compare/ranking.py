"""Who is ahead, by how much, and whether repeats could tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from petridish.compare.comparison import Comparison
from petridish.compare.describe import Description, Floats
from petridish.compare.methods import GUESS, MLP

COVERAGE = 0.95

FEW_REPEATS = 5  # fewer give intervals so wide that they say little


def corrected_interval(
    values: Sequence[float] | Floats,
    *,
    test_share: float,
    rows: int | None = None,
    coverage: float = COVERAGE,
) -> tuple[float, float, float]:
    r"""Bound a mean over re-drawn splits of one table.

    Parameters
    ----------
    values : sequence of float
        One for each of J repeats: an error, or the difference of two methods' errors.
    test_share : float
        The share ρ of the table's rows in a test part: two test parts have that share of their rows
        in common on average.
    rows : int, optional
        Where errors are shares of rows, the rows n of a test part.
    coverage : float
        Coverage of the two-sided interval.

    Returns
    -------
    mean, low, high : float
        :math:`\bar d \pm t_{J-1} \sqrt{(1/J + ρ/(1-ρ))\, s^2}`, the corrected resampled t of Nadeau
        and Bengio [2003]: with n_2 test rows and all n_1 others to train on, ρ/(1−ρ) = n_2/n_1.
        Repeats share rows, and Student's interval, without the second term, would be too narrow.
        Infinite for a single value.

        With `rows`, s² is at least :math:`(1-ρ) (|\bar d| - \bar d^2) / n`, the least that n rows
        allow: a few repeats may agree by chance, as shares of few rows often do, and would claim
        certainty.
    """
    from scipy.special import stdtrit  # slow to import

    found = np.asarray(values, np.float64)
    mean = float(found.mean())
    if len(found) < 2:
        return mean, -math.inf, math.inf
    variance = float(found.var(ddof=1))
    if rows is not None:
        variance = max(variance, (1 - test_share) * (abs(mean) - mean**2) / rows)
    factor = 1 / len(found) + test_share / (1 - test_share)
    half = float(stdtrit(len(found) - 1, 0.5 + coverage / 2)) * math.sqrt(factor * variance)
    return mean, mean - half, mean + half


def interval_of(
    comparison: Comparison, values: Sequence[float] | Floats
) -> tuple[float, float, float]:
    """Bound a mean error, or a mean difference of errors, of a comparison."""
    rows = comparison.test if comparison.examples.classes else None
    return corrected_interval(values, test_share=comparison.test / comparison.rows, rows=rows)


@dataclass(frozen=True)
class Standing:
    """A method at one size: its mean error and how far it is from the best.

    `tied` says that the interval of the difference holds 0: these repeats cannot tell it from the
    best.
    """

    method: str
    error: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    score: float
    seconds: float
    repeats: int

    @property
    def tied(self) -> bool:
        """Whether the best is not distinguishable from it."""
        return self.difference_low <= 0 <= self.difference_high


def errors_at(comparison: Comparison, method: str, size: int) -> Floats:
    """Return a method's errors at a size, one per repeat."""
    return np.array([fit.error for fit in comparison.at(method, size)])


def ranked_methods(comparison: Comparison, size: int) -> list[str]:
    """Return the methods none of whose fits at a size failed."""
    return [
        name
        for name in comparison.methods
        if name != GUESS and not np.isnan(errors_at(comparison, name, size)).any()
    ]


def paired(comparison: Comparison, one: str, other: str, size: int) -> tuple[float, float, float]:
    """Return the mean difference of two methods' errors on the same parts, with its interval."""
    difference = errors_at(comparison, one, size) - errors_at(comparison, other, size)
    return interval_of(comparison, difference)


def standings(comparison: Comparison, size: int) -> list[Standing]:
    """Rank the methods at a size by their mean error."""
    names = ranked_methods(comparison, size)
    # The house's own method comes last among equals.
    names.sort(key=lambda name: (float(errors_at(comparison, name, size).mean()), name == MLP))
    most = 1.0 if comparison.examples.classes else math.inf
    found = []
    for name in names:
        fits = comparison.at(name, size)
        error, low, high = interval_of(comparison, [fit.error for fit in fits])
        found.append(
            Standing(
                name,
                error,
                max(0.0, low),
                min(most, high),
                *paired(comparison, name, names[0], size),
                score=float(np.mean([fit.score for fit in fits])),
                seconds=float(np.mean([fit.seconds for fit in fits])),
                repeats=len(fits),
            )
        )
    return found


def failures(comparison: Comparison) -> list[str]:
    """Return sentences on which methods failed, where, and why."""
    said = []
    for name in comparison.methods:
        failed = [fit for fit in comparison.fits if fit.method == name and fit.failure]
        if failed:
            sizes = ", ".join(f"{size:,}" for size in sorted({fit.size for fit in failed}))
            said.append(
                f"{name} failed in {len(failed)} fits (training rows: {sizes}) and is not ranked "
                f"there: {failed[0].failure}"
            )
    return said


# Numbers in words


@dataclass(frozen=True)
class ErrorFormat:
    """How errors are written: shares of rows in percent, other errors with fixed decimals.

    `decimals` is None where numbers are so large or small that powers of ten read better.
    """

    classified: bool
    decimals: int | None = 1

    @staticmethod
    def of(comparison: Comparison) -> ErrorFormat:
        """Choose decimals that show three digits of an error a third of a guess's."""
        if comparison.examples.classes:
            return ErrorFormat(classified=True)
        guess = float(errors_at(comparison, GUESS, comparison.sizes[-1]).mean())
        if not 1e-4 < guess < 1e7:
            return ErrorFormat(classified=False, decimals=None)
        return ErrorFormat(classified=False, decimals=max(0, 2 - math.floor(math.log10(guess / 3))))

    @property
    def error(self) -> str:
        """The name of the error."""
        return "test error" if self.classified else "test RMSE"

    @property
    def score(self) -> str:
        """The name of the other score."""
        return "AUC" if self.classified else "R²"

    @property
    def scale(self) -> float:
        """The factor by which an error is written."""
        return 100.0 if self.classified else 1.0

    def _number(self, value: float, sign: str = "") -> str:
        if self.decimals is None:
            return f"{value:{sign}z.3g}"
        return f"{self.scale * value:{sign}z,.{self.decimals}f}"  # z: no minus before 0.0

    def write(self, value: float) -> str:
        """Write an error."""
        return self._number(value) + (" %" if self.classified else "")

    def interval(self, low: float, high: float) -> str:
        """Write the interval of an error."""
        return f"[{self._number(low)}, {self._number(high)}]"

    def difference(self, value: float) -> str:
        """Write a difference of errors, with its sign."""
        return self._number(value, "+")

    def differences(self, low: float, high: float) -> str:
        """Write the interval of a difference."""
        return f"[{self.difference(low)}, {self.difference(high)}]"


def findings(comparison: Comparison, description: Description) -> list[str]:
    """Return sentences on who is ahead, how the sparse MLP fares, and what that is worth."""
    size = comparison.sizes[-1]
    measure = ErrorFormat.of(comparison)
    ranking = standings(comparison, size)
    if not ranking:
        return ["No method could be fitted.", *failures(comparison)]
    best = ranking[0]
    said = [_ahead(comparison, ranking, measure)]
    own = next((standing for standing in ranking if standing.method == MLP), None)
    if own is not None and len(ranking) > 1:
        said.append(_own_place(own, ranking, measure))
        said.append(_by_size(comparison))
    gain, low, high = paired(comparison, best.method, GUESS, size)
    if high >= 0 or math.isinf(low):
        # An interval of few repeats is wide: that it holds 0 does not say that nothing was learned.
        said.append(
            "The repeats are too few to tell any method from a constant guess. Give more --repeats."
            if gain < 0 and comparison.repeats < FEW_REPEATS
            else "No method is distinguishable from a constant guess: these columns may say "
            f"nothing about {description.target}."
        )
    if best.error == 0 or (not measure.classified and best.score > 1 - 1e-6):
        said.append(
            f"No error at all is rare: look whether a column is made from {description.target}."
        )
    return said + failures(comparison)


def _ahead(comparison: Comparison, ranking: Sequence[Standing], measure: ErrorFormat) -> str:
    best = ranking[0]
    size, limit = comparison.sizes[-1], comparison.limit
    most = f", the most that {limit:g} s allow" if limit else ""
    ties = [standing.method for standing in ranking[1:] if standing.tied]
    lead = (
        f"With {size:,} training rows{most}, {_the(best.method)} has the lowest mean "
        f"{measure.error}, {measure.write(best.error)} {measure.interval(best.low, best.high)}"
    )
    if not ties:
        return f"{lead}, and all others are distinguishable from it."
    return f"{lead}; not distinguishable from it: {_listed(ties)}."


def _own_place(own: Standing, ranking: Sequence[Standing], measure: ErrorFormat) -> str:
    if own is ranking[0]:
        second = ranking[1]
        away = (
            f"{_the(second.method)} is next, "
            f"{measure.difference(second.difference)} "
            f"{measure.differences(second.difference_low, second.difference_high)}"
        )
        verdict = "is ahead, but not clearly" if second.tied else "wins"
        return f"The sparse MLP {verdict}: {away}."
    away = (
        f"{measure.difference(own.difference)} "
        f"{measure.differences(own.difference_low, own.difference_high)} against "
        f"{_the(ranking[0].method)}"
    )
    place = f"place {ranking.index(own) + 1} of {len(ranking)}"
    verdict = "is not distinguishable from the best" if own.tied else "loses"
    return f"The sparse MLP {verdict}: {place}, {away}."


def _by_size(comparison: Comparison) -> str:
    """Return a sentence that compares the sparse MLP with the best other method at each size."""
    outcomes: dict[str, list[int]] = {"better": [], "not distinguishable": [], "worse": []}
    for size in comparison.sizes:
        names = ranked_methods(comparison, size)
        others = [name for name in names if name != MLP]
        if MLP not in names or not others:
            continue
        rival = min(others, key=lambda name: float(errors_at(comparison, name, size).mean()))
        _, low, high = paired(comparison, MLP, rival, size)
        kind = "better" if high < 0 else "worse" if low > 0 else "not distinguishable"
        outcomes[kind].append(size)
    parts = [
        f"{kind} at {_listed([f'{size:,}' for size in sizes])}"
        for kind, sizes in outcomes.items()
        if sizes
    ]
    return f"Against the best of the others at each size it is {'; '.join(parts)} training rows."


def _the(method: str) -> str:
    return f"the {method}" if method in (MLP, "random forest", "linear model") else method


def _listed(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
