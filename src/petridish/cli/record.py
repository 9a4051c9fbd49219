"""`petridish record`: keep an experiment in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from petridish.cli.common import (
    DEFAULT_STORE,
    Id,
    Scale,
    Settings,
    StoreDir,
    chosen_runs,
    exit_code,
    find_sweep,
    read_runs,
)


def record(
    name: Id,
    scale: Scale = None,
    store: StoreDir = DEFAULT_STORE,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder; records/<id>-<scale> if not given.")
    ] = None,
) -> int:
    """Keep runs, verdicts and figures in one small folder."""
    from petridish.publish.records import lighter, write_record

    experiment, scale, sweep = find_sweep(name, scale, settings)
    reading = read_runs(
        store, columns=experiment.columns_needed(sweep, "claims", "figures", "tables")
    )
    runs = lighter(chosen_runs(sweep, reading.table, name, store))
    folder = out or Path("records") / f"{experiment.id}-{scale}"
    for file in write_record(experiment, scale, sweep, runs, experiment.judge(runs, scale), folder):
        typer.echo(str(file))
    return exit_code(reading.problems)
