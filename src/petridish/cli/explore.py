"""`petridish explore`: the live page of a store, or one file of it."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer

from petridish.cli.common import DEFAULT_STORE, existing_store
from petridish.errors import UserError

PORT = 8137
LARGEST_PORT = 65_535


def explore(
    store: Annotated[
        list[Path] | None,
        typer.Option("--store", help="A folder that keeps runs; may be given several times."),
    ] = None,
    records: Annotated[
        Path, typer.Option(help="A folder of records, shown too where it is there.")
    ] = Path("records"),
    port: Annotated[int, typer.Option(help="The port of the page; 0 for any free one.")] = PORT,
    host: Annotated[
        str,
        typer.Option(help="The address to listen on; others than this machine's own need --token."),
    ] = "127.0.0.1",
    token: Annotated[
        str, typer.Option(help="A password for shared machines: without it the page shows nothing.")
    ] = "",
    export: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write one file instead, and exit.")
    ] = None,
) -> None:
    """Show maps, curves and claims of stored runs as a page."""
    _require_extra()
    stores = [existing_store(folder) for folder in (store or [DEFAULT_STORE])]
    kept = records if records.is_dir() else None
    if export is not None:
        from petridish.explorer.one_file import write_file

        written = write_file(stores, kept, export)
        typer.echo(str(export))
        typer.echo(written, err=True)
        return
    from petridish.explorer.server import LOOPBACK, serve

    if not 0 <= port <= LARGEST_PORT:
        raise UserError(f"--port {port} was given. Give one from 0 to {LARGEST_PORT}.")
    if host not in LOOPBACK:
        if not token:
            raise UserError(
                f"--host {host} lets other machines reach the page. Give --token and a long word, "
                f"such as {secrets.token_urlsafe(12)}, without which it shows nothing."
            )
        print(
            f"petridish: the page listens on {host}: whoever reaches this machine and has the "
            "token can read these stores, over a connection that is not encrypted.",
            file=sys.stderr,
        )

    def ready(address: str) -> None:
        typer.echo(f"{address}\nCtrl-C ends it.")
        sys.stdout.flush()

    serve(stores, kept, host=host, port=port, token=token, ready=ready)


def _require_extra() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("starlette", "uvicorn", "plotly") if find_spec(name) is None]
    if missing:
        raise UserError(
            f"The explorer needs {', '.join(missing)}, which is not installed here. Install it by "
            "`pip install 'petridish[explorer]'`."
        )
