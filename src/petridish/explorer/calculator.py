"""The calculator: the cheapest ways to a success probability, at held values of other fields."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from petridish.errors import UserError
from petridish.explorer.held import condition, in_order, is_settable, setting_text, shown_field
from petridish.explorer.record_runs import json_ready
from petridish.explorer.run_sets import RunSet, Snapshot
from petridish.rules.mixtures import LIMITS, Mixture, affordable, mixtures, no_mixture
from petridish.rules.outcome_table import field_text
from petridish.rules.varying import ARM, PARTS, as_axis, varying

WEIGHED = ("task", "init", "data.m", "model.width", "training.steps")
"""What mixtures tell apart: what else varies is held at one value."""
RESTART = "restart"


def calculated(
    found: RunSet,
    now: Snapshot,
    *,
    target: float,
    have: Mapping[str, float],
    where: Mapping[str, str],
) -> dict[str, Any]:
    """Return the mixtures that reach a success probability, and the cheapest within limits.

    Each field that varies beside the resources is held at one value: that of `where`, or else the
    one with which most runs were solved. Fields of `where` that need not be held narrow the runs.
    """
    if not 0 < target < 1:
        raise UserError(f"A target of {target:g} was given. Give one between 0 and 1.")
    table = found.table()
    needed = ("data.m", "model.width", "training.steps", "evaluation.every")
    missing = [name for name in needed if name not in table.columns]
    if missing or table.is_empty():
        raise UserError(
            f"These runs have no {' and no '.join(missing) or 'outcome yet'}: there is nothing to "
            "trade. The calculator takes runs with a sample size and a width."
        )
    held, table = _held(found, now, table, where)
    ways = mixtures(table, target=target) if len(table) else []
    within = affordable(ways, dict(have))
    first: dict[str, Mixture] = {}
    for option in within:
        first.setdefault(option.task, option)
    ranges = {
        name: sorted({float(getattr(o, attribute)) for o in ways})
        for name, attribute in LIMITS.items()
    }
    inside = {id(option) for option in within}
    why = "" if ways else no_mixture(table) if len(table) else "No run has all of these values."
    return {
        "target": target,
        "mixtures": [{**o.as_json(), "within": id(o) in inside} for o in ways],
        "cheapest": [option.as_json() for option in first.values()],
        "ranges": json_ready(ranges),
        "held": held,
        "why": why,
    }


def _held(
    found: RunSet, now: Snapshot, table: pl.DataFrame, where: Mapping[str, str]
) -> tuple[list[dict[str, Any]], pl.DataFrame]:
    """Return the fields that are held, each with its value, and the runs that have these."""
    names = [n for n in now.settings.columns if n.partition(".")[0] in PARTS]
    settings = now.settings.unique("cell").select("cell", *names)
    apart = varying(settings, asked=[n for n in WEIGHED if n in names])
    must = [n for n in apart if n not in (*WEIGHED, ARM)]
    if RESTART in table.columns and table[RESTART].n_unique() > 1:
        must.append(RESTART)
    table = table.with_columns(as_axis(table[n]) for n in {*must, *where} if n in table.columns)
    whole = table
    narrowed = [n for n in where if n in names and n not in must]
    for name in (*must, *narrowed):
        if name in where:
            values = _values(whole[name], where[name])
            table = table.filter(_has(name, values, whole.schema[name]))
    chosen = {name: where[name] for name in (*must, *narrowed) if name in where}
    free = [name for name in must if name not in where]
    if free and len(table):
        solved = (pl.col("outcome") == "SOLVED").sum().alias("solved of all")
        order = [True, *(False for _ in free)]
        counts = table.group_by(free).agg(solved).sort("solved of all", *free, descending=order)
        for name in free:
            value = counts[name][0]
            table = table.filter(_has(name, [value], whole.schema[name]))
            chosen[name] = field_text(value)
    held = []
    for name in (*must, *narrowed):
        text = chosen.get(name, "")
        value = next(iter(_values(whole[name], text)), None)
        held.append(
            {
                **shown_field(whole[name]),
                "chosen": text,
                "must": name in must,
                "set": setting_text(value) if is_settable(found.sweep, name, value) else None,
                "python": condition(now, name, value),
            }
        )
    return held, table


def _values(column: pl.Series, text: str) -> list[Any]:
    """Return the values of a field that are written so: one, or none."""
    return [value for value in in_order(column) if field_text(value) == text][:1]


def _has(name: str, values: list[Any], kind: pl.DataType) -> pl.Expr:
    """Return which rows have one of these values, none among them."""
    return pl.any_horizontal(
        pl.lit(value=False), *(pl.col(name).eq_missing(pl.lit(value, kind)) for value in values)
    )


def limit(text: str) -> float:
    """Return a limit of the calculator as a number."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not found > 0:
        raise UserError(f"A limit of {text!r} was given. Give a positive number.")
    return found
