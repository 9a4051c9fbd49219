"""Records: what is kept of an experiment in the repository, small and complete.

`runs.parquet` has a row for every run, without its key, and without curves and weights but for
those that its claims are judged by. Its column `cell` is a place in the list `cells.json` of the
distinct specs without their seeds. With these two every verdict and figure of a frontier can be
made again. `summary.csv` has a row for every cell, for reading.

Older records have no `cells.json`: their cells are made from the sweep in `spec.json`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish import __version__
from petridish.choices import hint_at
from petridish.errors import UserError
from petridish.training import cell_text, flat
from petridish.values import plain, read

if TYPE_CHECKING:
    import polars as pl

    from petridish.experiment import Experiment
    from petridish.rules.claims import Verdict
    from petridish.sweeps import Sweep

LEFT_OUT = ("key", "arms")  # made from cell and seed, and from the sweep
ROOMY = ("seconds", "train_loss", "test_error", "steps")  # no two alike: left out of very many runs
VERY_MANY = 100_000
ORDER = ("task", "init", "model.width", "data.m", "seed", "restart")
ALWAYS = ("solved_at", "fitted_at")  # null is what they say of a run
PROVENANCE = ("version", "commit", "clean", "engine", "engine_version", "device")


def lighter(runs: pl.DataFrame) -> pl.DataFrame:
    """Round kept weights to 11 bits, of which a file needs half as much; judge after that."""
    import polars as pl

    if "weights" not in runs or runs["weights"].is_null().all():
        return runs
    rounded = [
        None if row is None else [_rounded(np.asarray(part, np.float32)).tolist() for part in row]
        for row in runs["weights"].to_list()
    ]
    return runs.with_columns(pl.Series("weights", rounded, dtype=runs.schema["weights"]))


def _rounded(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Keep 11 significant bits, whatever the size; those of float16 would end at 65504."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 2048) / 2048, exponent).astype(np.float32)


def slim(runs: pl.DataFrame, keeps: Sequence[str] = ()) -> pl.DataFrame:
    """Keep what a reader needs of the runs: no keys, no columns that say nothing.

    Of curves and weights only those named by `keeps`.
    """
    import polars as pl

    from petridish.store.schema import is_kept

    left_out = (*LEFT_OUT, *PROVENANCE, *(ROOMY if len(runs) > VERY_MANY else ()))
    if "restart" in runs and not runs["restart"].cast(pl.Boolean).any():
        left_out = (*left_out, "restart")  # as in most sweeps; `read_record` knows
    dropped = [
        name
        for name in runs.columns
        if name in left_out
        or (is_kept(name) and name.removesuffix(".of") not in keeps)  # weights with their names
        or (name not in ALWAYS and not _says_never(name) and runs[name].is_null().all())
    ]
    kept = runs.drop(dropped)
    kept = kept.sort([name for name in ORDER if name in kept])
    return kept.with_columns(pl.col("seconds").round(3)) if "seconds" in kept else kept


def _says_never(name: str) -> bool:
    """Return whether an empty column is an answer: no run reached the threshold."""
    return name.startswith("reached.")


def summary(runs: pl.DataFrame) -> pl.DataFrame:
    """Return one row per cell: runs, success with its interval, median time, classes.

    Where no run had an error to reach, the errors it ended with take their place.
    """
    import polars as pl

    if "training.target_error" not in runs:
        return _ends(runs)

    from petridish.rules.outcome_classes import CLASSES, with_classes
    from petridish.statistics.intervals import anytime_interval, lower_median

    by = cell_columns(runs)
    rows = []
    for cell in with_classes(runs).partition_by(by, maintain_order=True):
        solved, made = int((cell["outcome"] == "SOLVED").sum()), len(cell)
        low, high = anytime_interval(solved, made)
        rows.append(
            {
                **{name: cell[name][0] for name in by},
                "runs": made,
                "solved": solved,
                "success": solved / made,
                "low": round(float(low), 4),
                "high": round(float(high), 4),
                "median_steps": lower_median(cell["solved_at"].to_list()),
                **{name: int((cell["class"] == name).sum()) for name in CLASSES},
                **(
                    {"core_seconds": round(float(cell["seconds"].sum()), 1)}
                    if "seconds" in cell
                    else {}
                ),
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None).sort(by)


def _ends(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the errors with which the runs of every cell ended."""
    import polars as pl

    error = pl.col("test_error").fill_nan(None)
    by = cell_columns(runs)
    return (
        runs.group_by(by)
        .agg(
            runs=pl.len(),
            diverged=(pl.col("outcome") == "DIVERGED").sum(),
            mean_error=error.mean().round(5),
            median_error=error.median().round(5),
            deviation=error.std().round(5),
            core_seconds=pl.col("seconds").sum().round(1),
        )
        .sort(by)
    )


def cell_columns(runs: pl.DataFrame) -> list[str]:
    """Name the columns that tell cells apart: task, start, width, sample, and what else does."""
    always = [name for name in ("task", "init", "model.width", "data.m") if name in runs]
    found = [name for name in always if not runs[name].is_null().all()]
    more = [name for name in runs.columns if name.startswith(("training.", "data."))]
    for name in ("model", *sorted(more)):
        if name not in found and runs.select(*found, name).n_unique() > len(runs.unique(found)):
            found.append(name)
    return found


def write_record(
    experiment: Experiment,
    scale: str,
    sweep: Sweep,
    runs: pl.DataFrame,
    verdicts: list[Verdict],
    folder: Path,
) -> list[Path]:
    """Write spec, runs, summary, verdicts, tables and figures of an experiment into a folder.

    The README is written by hand: what surprised us.
    """
    from petridish.figures.style import NothingToDraw, save_png

    title = f"{experiment.id}, {scale}: {experiment.title}"
    makers = runs.select(PROVENANCE).unique().sort(PROVENANCE).to_dicts()
    documents: dict[str, Any] = {
        "spec.json": {
            "id": experiment.id,
            "scale": scale,
            "source": experiment.source,
            "sweep": plain_sweep(sweep),
            "runs": len(runs),
            "of": len(sweep),
            "model_steps": int(runs["steps"].sum()),
            "core_seconds": round(float(runs["seconds"].sum()), 1),
            "made_with": makers,
            "recorded_with": __version__,
        },
        "verdicts.json": [verdict.as_json() for verdict in verdicts],
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for name, document in documents.items():
            text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
            (folder / name).write_text(text + "\n", encoding="utf-8")
            files.append(folder / name)
        kept = slim(runs, experiment.columns)
        files += _write_runs(kept, folder)
        small = {"summary": summary(kept)}
        small |= {name: tabulate(runs) for name, tabulate in experiment.tables.items()}
        for name, table in small.items():
            table.write_csv(folder / f"{name}.csv")
            files.append(folder / f"{name}.csv")
    except OSError as error:
        raise UserError(
            f"The record {folder} cannot be written: {error.strerror}. Give another --out."
        ) from error
    for name, draw in experiment.drawings(sweep).items():
        with suppress(NothingToDraw):  # such as gains with width, at a scale of one width
            files.append(save_png(draw(runs, title), folder, name))
    return files


def _write_runs(runs: pl.DataFrame, folder: Path) -> list[Path]:
    """Write the runs, each with the place of its cell in a list of the distinct cells."""
    import polars as pl

    cells = runs["cell"].unique(maintain_order=True).cast(pl.String).to_list()
    places = {cell: place for place, cell in enumerate(cells)}
    listed = folder / "cells.json"
    listed.write_text("[\n" + ",\n".join(cells) + "\n]\n", encoding="utf-8")
    kept = runs.with_columns(
        pl.col("cell").cast(pl.String).replace_strict(places, return_dtype=pl.UInt32)
    )
    kept.write_parquet(folder / "runs.parquet", compression_level=19)
    return [listed, folder / "runs.parquet"]


def plain_sweep(sweep: Sweep) -> dict[str, Any]:
    """Return a sweep as JSON; arms by their names."""
    from petridish.sweeps import Arms

    if isinstance(sweep, Arms):
        return {"arms": {name: plain_sweep(part) for name, part in sweep.arms.items()}}
    axes = {name: _plain_axis(values) for name, values in sweep.axes.items()}
    return {
        "base": plain(sweep.base),
        "axes": axes,
        "also": [plain_sweep(part) for part in sweep.also],
        **({} if sweep.allocate is None else {"allocate": plain(sweep.allocate)}),
    }


def _plain_axis(values: Sequence[Any]) -> Any:
    """Return the values of an axis; of many consecutive whole numbers, the first and the last."""
    if isinstance(values, range) and values.step == 1 and len(values) > 100:
        return f"{values[0]}..{values[-1]}"
    return [plain(value) for value in values]


def read_sweep(written: dict[str, Any]) -> Sweep:
    """Return the sweep that `plain_sweep` has written, by the types of the fields on its axes."""
    from petridish.sweeps import Arms, Sweep

    if "arms" in written:
        return Arms({name: read_sweep(part) for name, part in written["arms"].items()})
    base = read(written["base"])
    axes = {
        path: _read_axis(values, hint_at(base, path)) for path, values in written["axes"].items()
    }
    allocate = read(written["allocate"]) if "allocate" in written else None
    return Sweep(base, axes, tuple(map(read_sweep, written["also"])), allocate)


def _read_axis(values: Any, hint: Any) -> Sequence[Any]:
    if isinstance(values, str):
        first, last = values.split("..")
        return range(int(first), int(last) + 1)
    return tuple(read(value, hint) for value in values)


def read_record(folder: Path) -> pl.DataFrame:
    """Read the runs of a record, with the text of their cells in the column `cell`."""
    import polars as pl

    path, listed, spec = (folder / name for name in ("runs.parquet", "cells.json", "spec.json"))
    if not path.is_file():
        raise UserError(f"There is no record {folder}. Give a folder with runs.parquet in it.")
    runs = pl.read_parquet(path)
    if "restart" not in runs.columns:
        runs = runs.with_columns(restart=pl.lit(0))
    if "cell" not in runs.columns:
        return _with_cells(runs, read_sweep(json.loads(spec.read_text(encoding="utf-8"))["sweep"]))
    cells = [json.dumps(cell) for cell in json.loads(listed.read_text(encoding="utf-8"))]
    found = pl.Series(cells, dtype=pl.Categorical)
    whole = runs.with_columns(cell=found.gather(runs["cell"]))
    sweep = json.loads(spec.read_text(encoding="utf-8"))["sweep"] if spec.is_file() else {}
    return read_sweep(sweep).among(whole) if "arms" in sweep else whole


def _with_cells(runs: pl.DataFrame, sweep: Sweep) -> pl.DataFrame:
    """Find the cell of every run among those of a sweep, by all columns that both have.

    They are compared as text: a column that takes numbers and words was stored as text.
    """
    import polars as pl

    fields = {cell_text(spec): flat(spec) for spec, _ in sweep.cells()}
    known = {name for columns in fields.values() for name in columns}
    shared = [name for name in runs.columns if name in known and name not in ("seed", "restart")]
    alike: dict[tuple[str, ...], str] = {}
    for cell, columns in fields.items():
        found = tuple(_as_text(columns.get(name)) for name in shared)
        if alike.setdefault(found, cell) != cell:
            raise UserError(
                f"Two cells of this record have the same columns: {cell} and {alike[found]}."
            )
    distinct = runs.select(shared).unique(maintain_order=True)
    texts = []
    for row in distinct.iter_rows():
        found = tuple(map(_as_text, row))
        if found not in alike:
            shown = ", ".join(f"{name}={value}" for name, value in zip(shared, row, strict=True))
            raise UserError(f"This record has runs that are not of its sweep: {shown}.")
        texts.append(alike[found])
    named = distinct.with_columns(cell=pl.Series(texts, dtype=pl.Categorical))
    return runs.join(named, on=shared, how="left", nulls_equal=True, maintain_order="left")


def _as_text(value: Any) -> str:
    """Write a field as text, the same whether it was stored as a number or as text."""
    if isinstance(value, list):
        return f"[{', '.join(map(_as_text, value))}]"
    try:
        return str(float(value))
    except (TypeError, ValueError):
        return str(value)
