"""`petridish tabular fetch`: the benchmark's tables from OpenML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def fetch(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]…", help="All 16, if none given.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder; the cache if not given.")] = None,
) -> None:
    """Fetch the benchmark's tables from OpenML; note their hashes."""
    from petridish.tasks.benchmark_tables import BENCHMARK
    from petridish.tasks.openml import fetch_table

    for name in names or [table.name for table in BENCHMARK]:
        typer.echo(str(fetch_table(name, out)))
