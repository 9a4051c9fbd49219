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
    """Fetch tables of the benchmark from OpenML, and note their hashes."""
    from petridish.tasks.table_files import BENCHMARK, fetch_table

    for name in names or [table.name for table in BENCHMARK]:
        typer.echo(str(fetch_table(name, out)))
