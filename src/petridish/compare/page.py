"""One self-contained HTML page: who is ahead on a table, by how much, and how that was found."""

from __future__ import annotations

import html
import io
import platform
import shlex
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from petridish import __version__
from petridish.compare.comparison import Comparison
from petridish.compare.describe import Description
from petridish.compare.drawing import COLOURS, importance_bars, importances, learning_curves
from petridish.compare.methods import GUESS, methods
from petridish.compare.ranking import COVERAGE, Measure, Standing, errors_at, findings, standings
from petridish.compare.values import Column, write_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SHOWN = 40  # columns that the page lists without being asked
LIBRARIES = ("numpy", "polars", "scikit-learn", "torch", "lightgbm", "xgboost")

_STYLE = """
:root { color-scheme: light; --ink: #1d1d1f; --soft: #6b6b70; --line: #e2e2e5; --paper: #fbfaf7; }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, -apple-system, 'Segoe UI', sans-serif; color: var(--ink);
  margin: 0 auto; padding: 2rem 1.5rem 4rem; max-width: 70rem; background: #fff; }
h1 { font-size: 1.9rem; letter-spacing: -.01em; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { margin: 2.8rem 0 .4rem; padding-top: 1.1rem; font-size: 1.3rem;
  border-top: 2px solid var(--ink); }
p, li { max-width: 48rem; } .soft { color: var(--soft); font-size: .88rem; }
ul { padding-left: 1.2rem; } li { margin: .25rem 0; }
.answer { background: var(--paper); border: 1px solid var(--line); border-radius: 10px;
  padding: .8rem 1.2rem; margin: 1.2rem 0; } .answer p { margin: .4rem 0; max-width: none; }
.answer p:first-child { font-size: 1.1rem; font-weight: 600; }
.warning { background: #fde0cf; color: #6e2f00; border-radius: 8px; padding: .6rem 1rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: left; vertical-align: baseline; padding: .4rem .9rem .4rem 0;
  border-bottom: 1px solid var(--line); font-size: .92rem; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
td.name { white-space: nowrap; }
.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.best td { font-weight: 650; } tr.tied td { background: #f3f8fc; }
tr.out td { color: var(--soft); }
.dot { display: inline-block; width: .7rem; height: .7rem; border-radius: 50%;
  margin-right: .5rem; }
.track { position: relative; height: 1rem; min-width: 9rem; }
.track i { position: absolute; top: 0; bottom: 0; width: 1px; background: var(--soft); }
.track b { position: absolute; top: .4rem; height: .2rem; border-radius: .1rem; }
.track u { position: absolute; top: .2rem; width: .6rem; height: .6rem; border-radius: 50%;
  margin-left: -.3rem; }
figure { margin: 1.2rem 0; overflow-x: auto; }
figure svg { width: 100%; min-width: min(100%, 40rem); height: auto; display: block; }
code, pre { font: .85rem/1.5 ui-monospace, 'SF Mono', Menlo, monospace; background: #f4f4f5;
  border-radius: 6px; } code { padding: .1rem .3rem; }
pre { padding: .8rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 44rem) { body { padding: 1.2rem 1rem 3rem; } h1 { font-size: 1.5rem; }
  figure svg { min-width: 40rem; } }
"""


def comparison_page(comparison: Comparison, description: Description, *, command: str) -> str:
    """Write the page; nothing in it is fetched from anywhere."""
    title = f"Which method predicts {description.target} best?"
    parts = [
        _answer(comparison, description),
        _ranking(comparison),
        _curves(comparison, description),
        _importance(comparison),
        _table(description),
        _manner(comparison, description),
        _again(comparison, command),
    ]
    size = comparison.sizes[-1]
    facts = (
        f"{description.source}: {description.usable:,} rows, {len(description.used)} of "
        f"{len(description.columns)} columns used; {description.task}; up to {size:,} training "
        f"rows, {comparison.repeats} repeats, {comparison.seconds:,.0f} seconds with "
        f"{comparison.jobs} processes."
    )
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{html.escape(title)}</h1><p class='soft'>{html.escape(facts)}</p>"
        f"{''.join(parts)}</body></html>\n"
    )


def versions() -> dict[str, str]:
    """Give the versions of everything that took part."""
    found = {"petridish": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # LightGBM and XGBoost need not be there
            continue
    return found


def _answer(comparison: Comparison, description: Description) -> str:
    said = "".join(f"<p>{html.escape(text)}</p>" for text in findings(comparison, description))
    warned = "".join(f"<p class='warning'>{html.escape(text)}</p>" for text in description.warnings)
    return f"<div class='answer'>{said}</div>{warned}"


# Ranking


def _ranking(comparison: Comparison) -> str:
    size = comparison.sizes[-1]
    ranking = standings(comparison, size)
    measure = Measure.of(comparison)
    unit = "points" if measure.classified else "units of the target"
    rows = "".join(
        _rank_row(place, standing, ranking, measure)
        for place, standing in enumerate(ranking, start=1)
    )
    guess = measure.write(float(errors_at(comparison, GUESS, size).mean()))
    head = "".join(
        f"<th{' colspan=2' * ('from' in text)}>{html.escape(text)}</th>"
        for text in (
            "",
            "Method",
            f"Mean {measure.error}",
            f"Difference from the best, {unit}",
            "",
            measure.score,
            "Fit, s",
        )
    )
    return (
        f"<h2>Ranking with {size:,} training rows</h2><div class='scroll'><table><thead><tr>{head}"
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
        f"<p class='soft'>In brackets: {100 * COVERAGE:.0f} % intervals over {comparison.repeats} "
        "repeats. "
        "Tied: not distinguishable from the best, as the interval of the difference holds 0. "
        f"{html.escape(GUESS.capitalize())}: {guess}.</p>{_by_size(comparison, measure)}"
    )


def _rank_row(place: int, standing: Standing, ranking: Sequence[Standing], measure: Measure) -> str:
    first = place == 1
    kind = "best" if first else "tied" if standing.tied else ""
    away = measure.difference(standing.difference)
    interval = measure.differences(standing.difference_low, standing.difference_high)
    verdict = "best" if first else "tied" if standing.tied else "worse"
    cells = [
        f"<td class='number'>{place}</td>",
        f"<td class='name'>{_dot(standing.method)}{html.escape(standing.method)}</td>",
        f"<td class='number'>{measure.write(standing.error)} "
        f"{measure.interval(standing.low, standing.high)}</td>",
        f"<td class='number'>{'' if first else f'{away} {interval}'}</td>",
        f"<td>{'' if first else _track(standing, ranking)}</td>",
        f"<td>{verdict}</td>",
        f"<td class='number'>{standing.score:.3f}</td>",
        f"<td class='number'>{_seconds(standing.seconds)}</td>",
    ]
    return f"<tr class='{kind}'>{''.join(cells)}</tr>"


def _track(standing: Standing, ranking: Sequence[Standing]) -> str:
    """Draw the interval of a difference on a scale that all rows share."""
    low = min(0.0, *(each.difference_low for each in ranking))
    high = max(0.0, *(each.difference_high for each in ranking))
    width = (high - low) or 1.0

    def place(value: float) -> float:
        return 100 * (value - low) / width

    colour = COLOURS[standing.method]
    start, end = place(standing.difference_low), place(standing.difference_high)
    return (
        f"<div class='track'><i style='left:{place(0):.1f}%'></i>"
        f"<b style='left:{start:.1f}%;width:{end - start:.1f}%;background:{colour}'></b>"
        f"<u style='left:{place(standing.difference):.1f}%;background:{colour}'></u></div>"
    )


def _dot(method: str) -> str:
    return f"<span class='dot' style='background:{COLOURS[method]}'></span>"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"


def _by_size(comparison: Comparison, measure: Measure) -> str:
    """Give the mean error of every method at every size, the lowest in bold."""
    means = {
        size: {each.method: each.error for each in standings(comparison, size)}
        for size in comparison.sizes
    }
    rows = []
    for name in comparison.methods:
        cells = []
        for size in comparison.sizes:
            known = means[size] | {GUESS: float(errors_at(comparison, GUESS, size).mean())}
            text = measure.write(known[name]) if name in known else "failed"
            best = means[size] and known.get(name) == min(means[size].values())
            cells.append(f"<td class='number'>{f'<b>{text}</b>' if best else text}</td>")
        kind = " class='out'" if name == GUESS else ""
        rows.append(f"<tr{kind}><td>{_dot(name)}{html.escape(name)}</td>{''.join(cells)}</tr>")
    head = "".join(f"<th>{size:,}</th>" for size in comparison.sizes)
    return (
        f"<div class='scroll'><table><thead><tr><th>Mean {measure.error} by training rows</th>"
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


# Figures


def _curves(comparison: Comparison, description: Description) -> str:
    title = f"{description.source}: error in {description.target} over training rows"
    figure = learning_curves(comparison, title)
    return f"<h2>Learning curves and time per fit</h2><figure>{_svg(figure)}</figure>"


def _importance(comparison: Comparison) -> str:
    figure = importance_bars(comparison, "Columns that network and forest rest on")
    if figure is None:
        return ""
    return (
        f"<h2>Which columns matter</h2><figure>{_svg(figure)}</figure><p class='soft'>Left: how "
        "far the network moved the weights that leave a column (those of a categorical column "
        "together). Right: what the forest loses when a column is shuffled. Both describe these "
        "fits, not causes; columns that say the same share their importance.</p>"
    )


def _svg(figure: Figure) -> str:
    from petridish.figures.style import house_style

    text = io.StringIO()
    with house_style():
        figure.savefig(text, format="svg", metadata={"Date": None})
    drawn = text.getvalue()
    return drawn[drawn.index("<svg") :]


# The table, and what was done


def _table(description: Description) -> str:
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in description.notes)
    rows = "".join(_column_row(column, description.usable) for column in description.columns)
    columns = (
        "<div class='scroll'><table><thead><tr><th>Column</th><th>Kind</th><th>Missing</th>"
        "<th>Distinct</th><th>Values</th><th></th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )
    if len(description.columns) > MOST_SHOWN:
        label = f"All {len(description.columns)} columns"
        columns = f"<details><summary>{label}</summary>{columns}</details>"
    return (
        f"<h2>What was found in the table</h2><p>{html.escape(target_line(description))}</p>"
        f"{f'<ul>{notes}</ul>' if notes else ''}{columns}"
    )


def target_line(description: Description) -> str:
    """Say what is to be predicted, and how its values lie."""
    if description.classes:
        shares = [
            f"{name} {percent(rows / description.usable)}" for name, rows in description.classes[:8]
        ]
        more = f" and {len(description.classes) - 8} more" if len(description.classes) > 8 else ""
        return (
            f"{description.target} has {len(description.classes)} classes: "
            f"{', '.join(shares)}{more}."
        )
    found = {name: write_number(value) for name, value in description.spread.items()}
    return (
        f"{description.target} runs from {found['least']} to {found['greatest']}, median "
        f"{found['median']}, middle half {found['lower_quartile']} to {found['upper_quartile']}, "
        f"standard deviation {found['deviation']}."
    )


def percent(share: float) -> str:
    """Write a share: 0.123 is 12.3 %."""
    return f"{100 * share:.1f} %"


def _column_row(column: Column, rows: int) -> str:
    missing = percent(column.missing / rows) if column.missing else "–"
    out = f"left out: {column.left_out}" if column.left_out else ""
    cells = (column.name, column.kind, missing, f"{column.distinct:,}", column.summary, out)
    kind = "" if column.used else " class='out'"
    return f"<tr{kind}>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"


def _manner(comparison: Comparison, description: Description) -> str:
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{html.escape(text)}</td>"
            for text in (method.name, method.settings, method.numbers, method.categories)
        )
        + "</tr>"
        for method in methods().values()
        if method.name in comparison.methods
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in manner(comparison, description))
    return (
        f"<h2>How it was done</h2><ul>{notes}</ul><div class='scroll'><table><thead><tr>"
        "<th>Method</th><th>Settings</th><th>Numbers</th><th>Categories</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def manner(comparison: Comparison, description: Description) -> list[str]:
    """Say how parts were drawn, what was measured and what intervals mean."""
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


def _again(comparison: Comparison, command: str) -> str:
    made = ", ".join(f"{name} {number}" for name, number in versions().items())
    return (
        f"<h2>To run it again</h2><pre>{html.escape(command)}</pre>"
        f"<p class='soft'>Made with {html.escape(made)}.</p>"
    )


def command_line(
    file: str, comparison: Comparison, target: str, *, drop: Sequence[str], task: str | None
) -> str:
    """Write the command that makes the same fits, whatever its time."""
    words = ["petridish", "tabular", "compare", file, "--target", target]
    words += ["--sizes", ",".join(map(str, comparison.sizes))]
    words += ["--repeats", str(comparison.repeats), "--seed", str(comparison.seed)]
    words += ["--drop", ",".join(drop)] if drop else []
    words += ["--task", task] if task else []
    return shlex.join(words)


# JSON


def document(comparison: Comparison, description: Description) -> dict[str, Any]:
    """Give everything as plain values."""
    names = comparison.examples.names
    found = importances(comparison)
    return {
        "table": description.as_json(),
        "sizes": list(comparison.sizes),
        "repeats": comparison.repeats,
        "test_rows": comparison.test,
        "seed": comparison.seed,
        "seconds": comparison.seconds,
        "error": Measure.of(comparison).error,
        "score": Measure.of(comparison).score,
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
        "versions": versions(),
    }


def _plain(standing: Standing) -> dict[str, Any]:
    numbers = {
        name: _number(getattr(standing, name))
        for name in (
            "error",
            "low",
            "high",
            "difference",
            "difference_low",
            "difference_high",
            "score",
            "seconds",
        )
    }
    return {"method": standing.method, **numbers, "tied": standing.tied}


def _number(value: float) -> float | None:
    """Give a number that JSON knows."""
    return float(value) if abs(value) < float("inf") else None
