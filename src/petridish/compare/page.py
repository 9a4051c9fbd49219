"""One self-contained HTML page: who is ahead on a table, by how much, and how that was found."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from petridish.compare.comparison import Comparison
from petridish.compare.describe import Description, target_line
from petridish.compare.drawing import COLOURS, importance_bars, importances, learning_curves
from petridish.compare.methods import GUESS, methods
from petridish.compare.ranking import (
    COVERAGE,
    ErrorFormat,
    Standing,
    errors_at,
    findings,
    standings,
)
from petridish.pages import picture, render, versions

MOST_SHOWN = 40  # columns that the page lists without being asked
LIBRARIES = ("numpy", "polars", "scikit-learn", "torch", "lightgbm", "xgboost")


def comparison_page(comparison: Comparison, description: Description, *, command: str) -> str:
    """Return the page; nothing in it is fetched from anywhere."""
    size = comparison.sizes[-1]
    ranking = standings(comparison, size)
    measure = ErrorFormat.of(comparison)
    bars = importance_bars(comparison, "Columns that network and forest rest on")
    title = f"{description.source}: error in {description.target} over training rows"
    low = min([0.0, *(each.difference_low for each in ranking)])
    wide = max([0.0, *(each.difference_high for each in ranking)]) - low or 1.0
    return render(
        "comparison.html",
        title=f"Which method predicts {description.target} best?",
        facts=(
            f"{description.source}: {description.usable:,} rows, {len(description.used)} of "
            f"{len(description.columns)} columns used; {description.task}; up to {size:,} training "
            f"rows, {comparison.repeats} repeats, {comparison.seconds:,.0f} seconds with "
            f"{comparison.jobs} processes."
        ),
        comparison=comparison,
        table=description,
        size=size,
        ranking=ranking,
        measure=measure,
        coverage=COVERAGE,
        colours=COLOURS,
        place=lambda value: round(100 * (value - low) / wide, 1),
        guess=GUESS,
        guess_error=float(errors_at(comparison, GUESS, size).mean()),
        by_size=_by_size(comparison, measure),
        curves=picture(learning_curves(comparison, title), "curves"),
        importance=None if bars is None else picture(bars, "importance"),
        findings=findings(comparison, description),
        target=target_line(description),
        most_shown=MOST_SHOWN,
        manner=manner(comparison),
        methods=[each for each in methods().values() if each.name in comparison.methods],
        command=command,
        made_with=versions(*LIBRARIES),
    )


def _by_size(comparison: Comparison, measure: ErrorFormat) -> dict[str, list[tuple[str, bool]]]:
    """Return the mean error of every method at every size, and whether it is the lowest there."""
    found: dict[str, list[tuple[str, bool]]] = {name: [] for name in comparison.methods}
    for size in comparison.sizes:
        means = {each.method: each.error for each in standings(comparison, size)}
        best = min(means.values(), default=math.nan)
        means[GUESS] = float(errors_at(comparison, GUESS, size).mean())
        for name, cells in found.items():
            text = measure.write(means[name]) if name in means else "failed"
            cells.append((text, name != GUESS and means.get(name) == best))
    return found


def manner(comparison: Comparison) -> list[str]:
    """Return sentences on how parts were drawn, what was measured and what intervals mean."""
    classified = bool(comparison.examples.classes)
    strata = ", each class with its share" if classified else ""
    error = (
        "The test error is the share of rows put into a wrong class; AUC is the area under the ROC "
        "curve, averaged over classes."
        if classified
        else "The test RMSE is the root mean square error, in units of the target; R² is 1 minus "
        "the mean square error over the variance of the test part."
    )
    return [
        f"{comparison.repeats} times, {comparison.test:,} rows were drawn as test part and the "
        f"training rows from the others{strata}; smaller training parts lie inside larger ones. "
        "All methods met the same parts.",
        error,
        "Intervals are Nadeau and Bengio's corrected resampled t (2003), since repeats share rows: "
        f"variance times 1/{comparison.repeats} + ρ/(1 − ρ), where ρ = "
        f"{comparison.test / comparison.rows:.2f} is the share of rows in a test part"
        + (", and never less than so few test rows allow" if classified else "")
        + f". Each is at {100 * COVERAGE:.0f} % by itself, not adjusted for the number of methods.",
        "No method was tuned to this table: each runs with the settings below. Preprocessing was "
        "learnt from training rows only. Dates became days since 1970, and booleans 0 and 1; "
        "free texts, identifiers and constant columns were left out.",
        *comparison.notes,
    ]


def command_line(
    file: str, comparison: Comparison, target: str, *, drop: Sequence[str], task: str | None
) -> str:
    """Return the command that makes the same fits, whatever its time."""
    words = ["petridish", "tabular", "compare", file, "--target", target]
    words += ["--sizes", ",".join(map(str, comparison.sizes))]
    words += ["--repeats", str(comparison.repeats), "--seed", str(comparison.seed)]
    words += ["--drop", ",".join(drop)] if drop else []
    words += ["--task", task] if task else []
    return shlex.join(words)


# JSON


def document(comparison: Comparison, description: Description) -> dict[str, Any]:
    """Return everything as plain values."""
    names = comparison.examples.names
    found = importances(comparison)
    return {
        "table": description.as_json(),
        "sizes": list(comparison.sizes),
        "repeats": comparison.repeats,
        "test_rows": comparison.test,
        "seed": comparison.seed,
        "seconds": comparison.seconds,
        "error": ErrorFormat.of(comparison).error,
        "score": ErrorFormat.of(comparison).score,
        "coverage": COVERAGE,
        "ranking": [
            {"size": size, "place": place} | _plain(standing)
            for size in comparison.sizes
            for place, standing in enumerate(standings(comparison, size), start=1)
        ],
        "fits": [
            {
                "method": fit.method,
                "size": fit.size,
                "repeat": fit.repeat,
                "error": _number(fit.error),
                "score": _number(fit.score),
                "seconds": fit.seconds,
                "failure": fit.failure or None,
            }
            for fit in comparison.fits
        ],
        "importances": {
            method: {name: _number(value) for name, value in zip(names, values, strict=True)}
            for method, values in found.items()
        },
        "findings": findings(comparison, description),
        "notes": list(comparison.notes),
        "versions": versions(*LIBRARIES),
    }


def _plain(standing: Standing) -> dict[str, Any]:
    found = asdict(standing) | {"tied": standing.tied}
    del found["repeats"]
    return {
        name: _number(value) if isinstance(value, float) else value for name, value in found.items()
    }


def _number(value: float) -> float | None:
    """Return a number that JSON knows."""
    return float(value) if math.isfinite(value) else None
