"""One setting, and one run: its spec, its runs, its curves, and all that is kept of it."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import polars as pl

from petridish.choices import describe
from petridish.errors import UserError
from petridish.explorer.record_runs import json_ready
from petridish.explorer.run_sets import RunSet, Snapshot, curve_names
from petridish.rules.outcome_table import field_text
from petridish.rules.varying import PARTS
from petridish.store.schema import is_measured
from petridish.training import read_cell

MOST_RUNS = 2_000  # of one setting, listed
MOST_DRAWN = 200  # runs of one setting, whose curves are drawn
POINTS = 400  # of one curve
SIDE = 256  # of a picture, in cells
LINE = 32  # numbers that are shown in one line; more are folded into rows
SHOWN = ("outcome", "solved_at", "fitted_at", "steps", "test_error", "train_loss")


def setting_of(found: RunSet, now: Snapshot, name: str, *, most: int = MOST_RUNS) -> dict[str, Any]:
    """Return a setting: its spec as text and as fields, and its runs."""
    runs, row = now.of_setting(name)
    cell = str(row["cell"])
    shown = runs.head(most)
    names = ["seed", "restart", *(n for n in SHOWN if n in runs.columns)]
    names += [n for n in runs.columns if is_measured(n) and not shown[n].is_null().all()]
    times = runs["solved_at"] if "solved_at" in runs.columns else pl.Series([], dtype=pl.Int64)
    return {
        "id": name,
        "arm": row.get("arm"),
        "text": _text(cell),
        "spec": json.dumps(json.loads(cell), indent=1, ensure_ascii=False),
        "fields": {
            n: field_text(value)
            for n, value in row.items()
            if n == "arm" or n.partition(".")[0] in PARTS
        },
        "n": len(runs),
        "columns": names,
        "runs": [json_ready(shown[n]) for n in names],
        "curves": sorted(n.removeprefix("curve.") for n in curve_names(found, [cell])),
        "times": json_ready(times.drop_nulls().sort()),
        "load": [
            "import petridish",
            f"trained = petridish.load(KEY, store={str(found.place)!r})",
        ],
    }


def _text(cell: str) -> str:
    """Write what is trained on what, from which start."""
    spec = read_cell(cell)
    data = f"m = {field_text(spec.data.m)}"
    how = f"{field_text(spec.training.steps)} steps at most"
    parts = (describe(spec.task), data, describe(spec.model), f"start {describe(spec.init)}", how)
    return ", ".join(parts)


def curves_of(
    found: RunSet,
    now: Snapshot,
    name: str,
    curve: str,
    *,
    points: int = POINTS,
    most: int = MOST_DRAWN,
) -> dict[str, Any]:
    """Return a metric or an instrument of the runs of a setting at every evaluation.

    Of long curves, as many points as asked for, evenly spaced by number, the last one among them.
    """
    runs, _ = now.of_setting(name)
    column = f"curve.{curve}"
    if column not in found.kept.names:
        raise UserError(f"These runs kept no curve called {curve!r}. Choose one that is listed.")
    shown = runs.head(most)
    table = found.kept.read(shown, ("curve.step", column))
    drawn = []
    longest = 0
    for seed, restart, outcome, step, values in zip(
        *(shown[n] for n in ("seed", "restart", "outcome")),
        *(table[n] if n in table.columns else [None] * len(shown) for n in ("curve.step", column)),
        strict=True,
    ):
        if step is None or values is None:
            continue
        longest = max(longest, len(step))
        places = np.arange(len(step))
        if len(step) > points:
            places = np.unique(np.linspace(0, len(step) - 1, points).round().astype(int))
        numbers = np.asarray(values, np.float64)[places]
        drawn.append(
            {
                "seed": str(seed),
                "restart": int(restart),
                "outcome": outcome,
                "step": np.asarray(step)[places].tolist(),
                "value": [
                    float(f"{v:.4g}") if math.isfinite(v) else None for v in numbers.tolist()
                ],
            }
        )
    return {
        "curve": curve,
        "runs": drawn,
        "of": len(runs),
        "thinned": f"{points} of {longest} points" if longest > points else "",
    }


def run_of(found: RunSet, now: Snapshot, name: str, seed: str, restart: str) -> dict[str, Any]:
    """Return everything that is kept of one run; of arrays and weights their shapes."""
    row = _kept(found, now, name, seed, restart)
    numbers, arrays = [], []
    for column, value in row.items():
        if value is None or column in ("cell", "spec", "weights", "weights.of"):
            continue
        if column.startswith("array."):
            arrays.append({"what": column, "shape": list(value["shape"])})
        elif not column.startswith("curve.") and column.partition(".")[0] not in PARTS:
            numbers.append([column, json_ready(value)])
    named = row.get("weights.of") or []
    if row.get("weights") is not None and not named:
        named = [{"name": str(i), "shape": [len(w)]} for i, w in enumerate(row["weights"])]
    arrays += [
        {"what": f"weights.{place}", "title": part["name"], "shape": list(part["shape"])}
        for place, part in enumerate(named)
    ]
    return {
        "numbers": numbers,
        "arrays": arrays,
        "curves": [
            n.removeprefix("curve.")
            for n, v in row.items()
            if n.startswith("curve.") and n != "curve.step" and v is not None
        ],
    }


def picture_of(
    found: RunSet, now: Snapshot, name: str, seed: str, restart: str, what: str, at: int
) -> dict[str, Any]:
    """Return an array or a weight as a picture of at most `SIDE` by `SIDE` cells.

    Of more than two dimensions `at` chooses one slice; cells of a larger picture are means. A long
    line is folded into rows, as a text is.
    """
    row = _kept(found, now, name, seed, restart)
    kind, _, rest = what.partition(".")
    if kind == "weights" and rest.isdigit() and row.get("weights") is not None:
        place = int(rest)
        if place >= len(row["weights"]):
            raise UserError(f"This run keeps no weight number {place}. Choose one that is listed.")
        values = np.asarray(row["weights"][place], np.float64)
        named = row.get("weights.of") or []
        shape = tuple(named[place]["shape"]) if named else values.shape
    elif kind == "array" and row.get(what) is not None:
        values = np.asarray(row[what]["values"], np.float64)
        shape = tuple(row[what]["shape"])
    else:
        raise UserError(f"This run keeps nothing called {what!r}. Choose one that is listed.")
    whole = values.reshape(shape or (1,))
    if whole.ndim == 1:
        whole = whole[None]
    slices = whole.reshape(-1, *whole.shape[-2:])
    at = min(max(at, 0), len(slices) - 1)
    shown, width = _folded(slices[at])
    shown = _smaller(shown)
    return {
        "what": what,
        "shape": list(shape),
        "slices": len(slices),
        "at": at,
        "folded": width,  # numbers of a row; 0 where rows are those of the array
        "rows": [
            [float(f"{v:.4g}") if math.isfinite(v) else None for v in line]
            for line in shown.tolist()
        ],
        "largest": json_ready(float(np.nanmax(np.abs(values), initial=0.0))),
        "signed": bool((values < 0).any()),
    }


def _folded(
    values: np.ndarray[Any, np.dtype[np.float64]],
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], int]:
    """Return a line as rows of a square, the last filled up by NaN, and their width.

    What is no line, or is a short one, is returned as it is, with a width of 0.
    """
    if min(values.shape) > 1 or values.size <= LINE:
        return values, 0
    width = math.ceil(math.sqrt(values.size))
    rows = -(-values.size // width)
    found = np.full(rows * width, np.nan)
    found[: values.size] = values.ravel()
    return found.reshape(rows, width), width


def _smaller(
    values: np.ndarray[Any, np.dtype[np.float64]],
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return a picture with at most `SIDE` rows and columns, of means over blocks."""
    for axis in (0, 1):
        size = values.shape[axis]
        if size > SIDE:
            starts = np.unique(np.linspace(0, size, SIDE, endpoint=False).astype(int))
            widths = np.diff([*starts, size])
            sums = np.add.reduceat(values, starts, axis=axis)
            values = sums / (widths[:, None] if axis == 0 else widths[None, :])
    return values


def _kept(found: RunSet, now: Snapshot, name: str, seed: str, restart: str) -> dict[str, Any]:
    runs, _ = now.of_setting(name)
    number, again = (int(text) if text.isdigit() else -1 for text in (seed, restart))
    chosen = runs.filter(
        (pl.col("seed").cast(pl.Int128) == number) & (pl.col("restart").cast(pl.Int128) == again)
    )
    if chosen.is_empty():
        raise UserError(
            f"This setting has no run of seed {seed}, restart {restart}. Choose one that is listed."
        )
    return found.kept.read(chosen.head(1)).row(0, named=True)
