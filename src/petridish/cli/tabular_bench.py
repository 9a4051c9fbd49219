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
from petridish.cli.run import Jobs, carry_out, print_summary, print_verdicts
from petridish.errors import UserError

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
        str, typer.Option("--experiment", help="PF-6, or PF-6B for the estimator's default.")
    ] = "PF-6",
    store: StoreDir = DEFAULT_STORE,
    out: Out = DEFAULT_OUT,
    jobs: Jobs = None,
    json: Json = False,
) -> int:
    """Run the benchmark's tables: networks, forests, boosting; judge, tabulate and draw them."""
    from petridish.cli.figure import write_figures

    if data is not None:
        if not data.is_dir():
            raise UserError(f"There is no folder {data}. Give --data one that holds NAME.parquet.")
        # Workers look for the tables too, and inherit the environment.
        os.environ["PETRIDISH_DATA"] = str(data.resolve())
    experiment, scale, sweep = find_sweep(name, scale, None)
    if not experiment.located:
        raise UserError(f"{experiment.id} is not about tables. Give PF-6 or PF-6B.")
    summary = carry_out(experiment, sweep, store, quiet=json, jobs=jobs)
    reading = read_runs(store)
    runs = sweep.among(reading.table)
    verdicts = experiment.judge(runs)
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
    columns = []
    for name in table.columns:
        cells = [name, *(_text(value) for value in table[name].to_list())]
        width = max(len(cell) for cell in cells)
        left = not table[name].dtype.is_numeric()
        columns.append([cell.ljust(width) if left else cell.rjust(width) for cell in cells])
    return "\n".join("  ".join(cells).rstrip() for cells in zip(*columns, strict=True))


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:g}" if isinstance(value, float) else str(value)
