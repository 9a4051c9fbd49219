"""`petridish bench`: measure this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from petridish.cli.common import (
    Json,
    print_json,
)


def bench(
    json: Json = False,
    quick: Annotated[bool, typer.Option(help="Less of everything; numbers are rougher.")] = False,
) -> None:
    """Measure engines, runner and store against naive PyTorch."""
    from petridish.bench import measure, table

    found = measure(quick=quick)
    if json:
        print_json(found)
        return
    typer.echo(table(found))
