"""`petridish tabular bench`: the benchmark's tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from petridish.cli.common import (
    DEFAULT_OUT,
    DEFAULT_STORE,
    Json,
    Out,
    Scale,
    StoreDir,
    exit_code,
    find_sweep,
    print_json,
    read_runs,
)
from petridish.cli.run import Jobs, print_summary, print_verdicts
from petridish.errors import UserError
from petridish.text_columns import in_columns

if TYPE_CHECKING:
    import polars as pl


DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="The folder with NAME.parquet; PETRIDISH_DATA or the cache, if not given.",
    ),
]


def bench(
    data: DataDir = None,
    scale: Scale = None,
    name: Annotated[
        str,
        typer.Option(
            "--experiment", help="PF-6; PF-6B for the estimator's default, PF-6C for depths."
        ),
    ] = "PF-6",
    store: StoreDir = DEFAULT_STORE,
    out: Out = DEFAULT_OUT,
    jobs: Jobs = None,
    json: Json = False,
) -> int:
    """Run the benchmark of tables, judge its claims and draw it."""
    from petridish.api.running import carry_out
    from petridish.cli.figure import write_figures
    from petridish.store import Store
    from petridish.sweeps import make_progress

    if data is not None:
        if not data.is_dir():
            raise UserError(f"There is no folder {data}. Give --data one that holds NAME.parquet.")
        # Workers look for the tables too, and inherit the environment.
        os.environ["PETRIDISH_DATA"] = str(data.resolve())
    experiment, scale, sweep = find_sweep(name, scale, None)
    if not experiment.located:
        raise UserError(f"{experiment.id} is not about tables. Give PF-6, PF-6B or PF-6C.")
    shown = make_progress(experiment.id, quiet=json)
    summary = carry_out(
        experiment, scale, sweep, Store(store), request=(), progress=shown, jobs=jobs
    )
    reading = read_runs(store)
    runs = sweep.among(reading.table)
    verdicts = experiment.judge_shown(runs, store, scale)
    tables = {label: tabulate(runs) for label, tabulate in experiment.tables.items()}
    if json:
        print_json(
            {
                "id": experiment.id,
                "scale": scale,
                "verdicts": [verdict.as_json() for verdict in verdicts],
                "tables": {label: table.to_dicts() for label, table in tables.items()},
            }
        )
        return exit_code(reading.problems)
    for label, table in tables.items():
        typer.echo(f"{label}\n{as_text(table)}\n")
    print_verdicts(experiment, verdicts)
    print_summary(summary)
    for file in write_figures(experiment, sweep, runs, out, scale):
        typer.echo(str(file))
    return exit_code(reading.problems)


def as_text(table: pl.DataFrame) -> str:
    """Write a small table in columns: names to the left, numbers to the right."""
    names = {place for place, kind in enumerate(table.dtypes) if not kind.is_numeric()}
    rows = [table.columns, *([_text(value) for value in row] for row in table.iter_rows())]
    return "\n".join(in_columns(rows, left=names))


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:g}" if isinstance(value, float) else str(value)
