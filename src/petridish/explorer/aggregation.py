"""From runs to settings: what came out of the runs that differ in their seed alone.

Runs of different settings are never put together, so that a map over any axes is these numbers in
another order: the page lays them out, and asks again only for another value.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from petridish.errors import UserError
from petridish.explorer.held import condition, in_order, is_settable, setting_text, shown_field
from petridish.explorer.record_runs import json_ready
from petridish.explorer.run_sets import RunSet, Snapshot
from petridish.rules.measures import ENDS, Measure, Solved, SolvedAt
from petridish.rules.outcome_classes import KINDS, with_classes
from petridish.rules.outcome_remarks import half_known, reads_end, stopped_apart
from petridish.rules.outcome_table import (
    COVERAGE,
    field_text,
    place_axes,
    shares,
    summaries,
)
from petridish.rules.outcome_values import DELAY, measure_of, usual_value, values_of
from petridish.rules.varying import PARTS, axis_order, varying
from petridish.statistics.known import Known

MOST_SETTINGS = 50_000
MOST_HELD = 200  # values of a field that a command may name
MOST_CURVES = 20_000  # runs whose curves are read for one picture
CLASS = "classes"
CLASSIFIED = ("evaluation.every", "evaluation.fitted_error", "training.target_error")


def fields_of(found: RunSet, now: Snapshot) -> dict[str, Any]:
    """Return the fields that vary among the settings, what is constant, and where axes begin."""
    settings = now.settings
    if len(settings) > MOST_SETTINGS:
        raise UserError(
            f"These runs have {len(settings):,} settings, and the page shows {MOST_SETTINGS:,}. "
            "Give each setting more seeds, or look at one experiment of the store."
        )
    names = [n for n in settings.columns if n == "arm" or n.partition(".")[0] in PARTS]
    levels = {name: settings[name].n_unique() for name in names}
    first = [] if found.sweep is None else [n for n in axis_order(found.sweep) if n in names]
    apart = varying(settings.select("cell", *names), first) if len(settings) else []
    axes = place_axes(apart, numeric={n for n in apart if settings.schema[n].is_numeric()})
    varied = [name for name in names if levels[name] > 1]
    order = [*apart, *(name for name in varied if name not in apart)]
    constant = [[n, field_text(settings[n][0])] for n in names if levels[n] == 1]
    return {
        "fields": [_field(found, now, name) for name in order],
        "constants": constant,
        "axes": {"rows": axes.rows, "columns": axes.columns, "panels": list(axes.panels)},
    }


def _field(found: RunSet, now: Snapshot, name: str) -> dict[str, Any]:
    """Return a field with its values in order, and the place of every setting's among them."""
    column = now.settings[name]
    values = in_order(column)
    places = {value: place for place, value in enumerate(values)}
    # Of fields with a value per setting nobody holds one.
    named = values if len(values) <= MOST_HELD else []
    return {
        **shown_field(column),
        "numeric": column.dtype.is_numeric(),
        "numbers": json_ready(values) if column.dtype.is_numeric() else None,
        "set": [setting_text(value) for value in values],
        "settable": [is_settable(found.sweep, name, value) for value in named],
        "python": [condition(now, name, value) for value in named],
        "codes": [places[value] for value in column.to_list()],
    }


def counts_of(now: Snapshot) -> dict[str, Any]:
    """Return the id and the numbers of runs of every setting."""
    place = now.runs["setting"].cast(pl.Int64).to_numpy()
    size = len(now.settings)

    def count(word: str) -> list[int]:
        chosen = place[(now.runs["outcome"] == word).to_numpy()]
        found: list[int] = np.bincount(chosen, minlength=size).tolist()
        return found

    return {
        "id": now.settings["id"].to_list(),
        "n": np.bincount(place, minlength=size).tolist(),
        "solved": count("SOLVED"),
        "diverged": count("DIVERGED"),
    }


def value_names(now: Snapshot) -> list[str]:
    """Return the names of what a map may show."""
    known = {n for n in now.runs.columns if _has_numbers(now.runs[n])} | {*now.curves}
    more = [CLASS] if "fitted_at" in known else []
    more += [DELAY] if {"fitted_at", "solved_at"} <= known else []
    names = [n for n in values_of(sorted(known)) if n not in ENDS or n in known]
    return [*names[:2], *more, *names[2:]]


def _has_numbers(column: pl.Series) -> bool:
    """Return whether some run has a value, which NaN is not: such as an error of real targets."""
    there = column.is_not_null()
    return bool((there & column.is_not_nan()).any() if column.dtype.is_float() else there.any())


def usual(now: Snapshot, fields: list[str]) -> str:
    """Return the value that a map shows first."""
    if now.runs.is_empty():
        return "solved"
    return usual_value(now.with_settings(*fields), fields)


def value_of(found: RunSet, now: Snapshot, name: str) -> dict[str, Any]:
    """Return a value of every setting, with its interval."""
    if name == CLASS:
        return _classes(now)
    measure = measure_of(name, [*now.runs.columns, *now.curves])
    table = now.with_settings(*measure.columns)
    curves = [column for column in measure.columns if column.startswith("curve.")]
    if curves:
        if len(table) > MOST_CURVES:
            raise UserError(
                f"{name!r} is read from the curves, of {len(table):,} runs here, and the page "
                f"reads those of {MOST_CURVES:,} at most. Choose another value, or fewer runs."
            )
        read = found.kept.read(table, curves)
        table = table.with_columns(read[column] for column in curves if column in read.columns)
    measure.check(table)
    known, place = measure.known(table), table["setting"].cast(pl.Int64).to_numpy()
    numbers = summaries(known, table["outcome"], place, len(now.settings))
    value, low, high = (numbers[n] for n in ("value", "low", "high"))
    if isinstance(measure, Solved):
        value, low, high = map(pl.Series, shares(numbers["solved"], numbers["n"]))
    made = np.unique(numbers["n"])
    kind = "share" if isinstance(measure, Solved) else "median"
    wilson = "Wilson's" if len(made) <= 1 else "anytime-valid, as settings have unequal n"
    return {
        "value": name,
        "kind": kind,
        "label": "share of runs solved" if kind == "share" else f"median {measure.label}",
        "interval": f"{100 * COVERAGE:.0f} % interval"
        + (f" ({wilson})" if kind == "share" else " of the median, by order statistics"),
        "steps": name == "time" or name.startswith(("test_error <", "train_error <")),
        "n": np.bincount(place[known.there], minlength=len(now.settings)).tolist(),
        "remarks": _remarks(now, measure, known, place),
        "columns": curves,
        "values": json_ready(list(value)),
        "low": json_ready(list(low)),
        "high": json_ready(list(high)),
    }


def _remarks(now: Snapshot, measure: Measure, known: Known, place: NDArray[np.int64]) -> list[str]:
    """Return what a table of the same value says below it."""
    if isinstance(measure, Solved):
        return []
    said = half_known(known, place, unsolved=isinstance(measure, SolvedAt))
    if reads_end(measure):
        said += stopped_apart(now.with_settings("training.steps", "training.target_error"))
    return said


def _classes(now: Snapshot) -> dict[str, Any]:
    """Count the classes of outcomes in every setting, by the thresholds of the runs."""
    diverged = pl.when(pl.col("outcome") == "DIVERGED").then(pl.lit(KINDS[4]))
    table = with_classes(now.with_settings(*CLASSIFIED)).with_columns(
        diverged.otherwise(pl.col("class")).alias("class")
    )
    place, size = table["setting"].cast(pl.Int64).to_numpy(), len(now.settings)
    counts = [
        np.bincount(place[(table["class"] == name).to_numpy()], minlength=size).tolist()
        for name in KINDS
    ]
    return {
        "value": CLASS,
        "kind": "classes",
        "label": "what became of the runs",
        "interval": "",
        "steps": False,
        "names": list(KINDS),
        "counts": counts,
    }


def thresholds_of(now: Snapshot) -> dict[str, Any]:
    """Return the thresholds of the runs themselves, where all have the same."""
    settings = now.settings

    def only(name: str) -> Any:
        known = settings[name].unique() if name in settings.columns else pl.Series([None])
        return json_ready(known[0]) if len(known) == 1 and known.dtype.is_numeric() else None

    return {"fitted": only("evaluation.fitted_error"), "solved": only("training.target_error")}


def staircases(found: RunSet, now: Snapshot, *, most: int = MOST_CURVES) -> dict[str, Any]:
    """Return the lowest errors that every run had reached by each evaluation, as far as they fall.

    That is all that a threshold asks of a curve: the first step with an error of at most so much.
    Of more than `most` runs, as many of them, spread evenly.
    """
    wanted = ("curve.step", "curve.train_error", "curve.test_error")
    if not {*wanted[1:]} <= {*now.curves}:
        raise UserError(
            "These runs kept no curves of their errors, so that thresholds cannot be moved. Give "
            "Evaluation(curves=True) in the base of a sweep."
        )
    runs, whole = now.runs, len(now.runs)
    if whole > most:
        chosen = np.unique(np.linspace(0, whole - 1, most).round().astype(np.int64))
        runs = runs.sort("setting", "seed", "restart")[chosen]
    curves = found.kept.read(runs, wanted)
    every, steps = (now.settings[n] for n in ("evaluation.every", "training.steps"))
    settings = runs["setting"].to_list()
    early = (runs["outcome"] == "SOLVED") & (runs["steps"] < steps[settings])
    held = curves.select(pl.all_horizontal(pl.col(wanted).list.len().fill_null(0) > 0)).to_series()
    kept = [setting for setting, there in zip(settings, held, strict=True) if there]
    return {
        "setting": kept,
        "every": every[kept].to_list(),
        "diverged": (runs["outcome"] == "DIVERGED").filter(held).to_list(),
        "stopped": early.filter(held).to_list(),  # as solved, before its budget was spent
        "train": _stairs(curves.filter(held), "curve.train_error"),
        "test": _stairs(curves.filter(held), "curve.test_error"),
        "runs": len(kept),
        "of": whole,
    }


def _stairs(curves: pl.DataFrame, name: str) -> dict[str, list[Any]]:
    """Return the places at which curves are lower than anywhere before, one curve after another.

    A curve without a number has none.
    """
    rows = curves.select("curve.step", error=name).with_row_index("run")
    each = rows.explode("curve.step", "error")
    error = pl.col("error").fill_null(math.inf).fill_nan(math.inf)
    lowest = each.with_columns(lowest=error.cum_min().over("run"))
    before = pl.col("lowest").shift(1, fill_value=math.inf).over("run")
    falls = lowest.filter(pl.col("lowest") < before)
    counts = np.bincount(falls["run"].to_numpy(), minlength=len(curves))
    return {
        "starts": [0, *np.cumsum(counts).tolist()],
        "steps": falls["curve.step"].to_list(),
        "values": falls["lowest"].to_list(),
    }


def dots_of(now: Snapshot) -> dict[str, Any]:
    """Return setting, seed and outcome of every run, for dots in the cells of a map."""
    if len(now.runs) > MOST_CURVES:
        return {"setting": [], "solved_at": [], "outcome": [], "seed": []}
    runs = now.runs.sort("setting", "seed", "restart")
    words = {"SOLVED": 0, "OUT_OF_STEPS": 1, "DIVERGED": 2}
    times = runs["solved_at"] if "solved_at" in runs.columns else pl.Series([None] * len(runs))
    return {
        "setting": runs["setting"].to_list(),
        "seed": [str(seed) for seed in runs["seed"]],
        "restart": runs["restart"].to_list(),
        "outcome": [words[str(word)] for word in runs["outcome"]],
        "solved_at": times.to_list(),
    }
