"""Commands that look after a store: check, compact, export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from petridish.cli.common import DEFAULT_STORE, Json, StoreDir, exit_code, print_json
from petridish.naming import UserError

if TYPE_CHECKING:
    from petridish.store.maintenance import Health

app = typer.Typer(
    help="Check, compact or export a store.", no_args_is_help=True, rich_markup_mode=None
)


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise UserError(
            f"There is no store {folder}. Give --store, or fill one by `petridish run`."
        )
    return folder


def _say(health: Health, folder: Path, *, json: bool) -> None:
    if json:
        print_json(
            {"shards": health.shards, "runs": health.runs, "problems": list(health.problems)}
        )
    else:
        typer.echo(f"{folder}: {health.runs} runs in {health.shards} shards")
    for problem in health.problems:
        typer.echo(f"petridish: {problem}", err=True)


@app.command()
def check(store: StoreDir = DEFAULT_STORE, json: Json = False) -> int:
    """Read every shard and verify its digest."""
    from petridish.store import Store, maintenance

    health = maintenance.check(Store(_existing(store)))
    _say(health, store, json=json)
    return exit_code(health.problems)


@app.command()
def compact(store: StoreDir = DEFAULT_STORE, json: Json = False) -> None:
    """Merge all shards into one; set torn and foreign files aside."""
    from petridish.store import Store, maintenance

    _say(maintenance.compact(Store(_existing(store))), store, json=json)


@app.command()
def export(
    out: Annotated[Path, typer.Option(help="A file ending in .csv, .jsonl or .parquet.")],
    store: StoreDir = DEFAULT_STORE,
) -> None:
    """Write all runs to one file."""
    from petridish.store import Store, maintenance

    typer.echo(f"{maintenance.export(Store(_existing(store)), out)} runs written to {out}")
