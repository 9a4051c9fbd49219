"""`petridish store`: check, compact, export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from petridish.cli.common import (
    DEFAULT_STORE,
    Json,
    OnceCommand,
    StoreDir,
    existing_store,
    exit_code,
    print_json,
)

if TYPE_CHECKING:
    from petridish.store.maintenance import Health

app = typer.Typer(
    help="Check, compact or export a store.", no_args_is_help=True, rich_markup_mode=None
)


def _say(health: Health, folder: Path, *, json: bool) -> None:
    if json:
        print_json(
            {"shards": health.shards, "runs": health.runs, "problems": list(health.problems)}
        )
    else:
        typer.echo(f"{folder}: {health.runs} runs in {health.shards} shards")
    _say_problems(health)


def _say_problems(health: Health) -> None:
    for problem in health.problems:
        typer.echo(f"petridish: {problem}", err=True)


@app.command(cls=OnceCommand)
def check(store: StoreDir = DEFAULT_STORE, json: Json = False) -> int:
    """Verify the digest of every shard; read every file of weights."""
    from petridish.store import Store, maintenance

    health = maintenance.check(Store(existing_store(store)))
    _say(health, store, json=json)
    return exit_code(health.problems)


@app.command(cls=OnceCommand)
def compact(store: StoreDir = DEFAULT_STORE, json: Json = False) -> None:
    """Merge all shards into one; set torn and foreign files aside."""
    from petridish.store import Store, maintenance

    _say(maintenance.compact(Store(existing_store(store))), store, json=json)


@app.command(cls=OnceCommand)
def export(
    out: Annotated[Path, typer.Option(help="A file ending in .csv, .jsonl or .parquet.")],
    store: StoreDir = DEFAULT_STORE,
) -> int:
    """Write all runs to one file."""
    from petridish.store import Store, maintenance

    health = maintenance.export(Store(existing_store(store)), out)
    typer.echo(f"{health.runs} runs written to {out}")
    if health.left_out:
        typer.echo(
            f"Left out, as a field of CSV holds one value: {', '.join(health.left_out)}. "
            "Give a file that ends in .parquet or .jsonl to have them."
        )
    _say_problems(health)
    return exit_code(health.problems)
