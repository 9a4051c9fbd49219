"""What the commands share: options, and the way from names to runs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

import petridish
from petridish.errors import UserError

if TYPE_CHECKING:
    import polars as pl

    from petridish.experiment import Experiment
    from petridish.store import Columns, StoreContents
    from petridish.sweeps import Sweep

DEFAULT_STORE = Path(petridish.DEFAULT_STORE)
DEFAULT_OUT = Path("petridish-out")
MANY_SHARDS = 500  # each takes about a millisecond to read

Id = Annotated[
    str, typer.Argument(metavar="ID", help="An experiment, or the path of a file of your own.")
]
Scale = Annotated[
    str | None,
    typer.Option(help="smoke, laptop, paper …; the experiment's usual scale if not given."),
]
StoreDir = Annotated[Path, typer.Option("--store", help="The folder that keeps the runs.")]
Out = Annotated[Path, typer.Option(help="The folder for figures.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="AXIS=V1,V2,…", help="Other values for an axis, such as m=300,600."
    ),
]
DeviceName = Annotated[
    str, typer.Option("--device", help="cpu, cuda, cuda:1, mps, or auto: where it is quicker.")
]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data", help="The folder with images or tables; PETRIDISH_DATA if not given."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


class OnceCommand(TyperCommand):
    """A command that refuses an option given twice of which only the last would count."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, once it is clear that none is dropped unsaid."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for option in given:
            several = getattr(option, "multiple", False) or option.nargs != 1
            if given.count(option) > 1 and not several and not getattr(option, "is_flag", False):
                raise UserError(
                    f"{option.opts[-1]} was given {given.count(option)} times, and the last would "
                    "replace the others. Give it once; if it takes several values, by commas."
                )
        return super().parse_args(ctx, args)


def use_data(folder: Path | None) -> None:
    """Let tasks find their files in a folder, in this process and in its workers."""
    if folder is None:
        return
    if not folder.is_dir():
        raise UserError(
            f"There is no folder {folder}. Give --data one that holds the images or tables."
        )
    os.environ["PETRIDISH_DATA"] = str(folder.resolve())


def find_experiment(name: str) -> Experiment:
    """Return the experiment of an id or of a user's file."""
    from petridish.api import asked

    return asked.find_experiment(name)


def find_sweep(
    name: str, scale: str | None, settings: list[str] | None
) -> tuple[Experiment, str, Sweep]:
    """Return an experiment, the scale meant, and its sweep with the user's settings."""
    from petridish.api import asked

    return asked.find_sweep(name, scale, settings)


def existing_store(folder: Path) -> Path:
    """Refuse a store that is not there."""
    if not folder.is_dir():
        raise UserError(
            f"There is no store {folder}. Give --store, or fill one by `petridish run`."
        )
    return folder


def read_runs(folder: Path, *, columns: Columns = ()) -> StoreContents:
    """Read a store, saying on standard error what had to be passed over."""
    from petridish.store import Store

    store = Store(existing_store(folder))
    reading = store.read(columns=columns)
    say_problems(reading)
    if (shards := len(store.shards())) > MANY_SHARDS:
        print(
            f"petridish: the store {folder} has {shards} shards, and is read the slower for it. "
            f"`petridish store compact --store {folder}` makes one of them.",
            file=sys.stderr,
        )
    return reading


def say_problems(reading: StoreContents) -> None:
    """Print on standard error which files were passed over."""
    for problem in reading.problems:
        print(f"petridish: {problem}", file=sys.stderr)


def exit_code(problems: tuple[str, ...]) -> int:
    """Return 2 where files were passed over: what was printed rests on the rest of the store."""
    return 2 if problems else 0


def chosen_runs(sweep: Sweep, table: pl.DataFrame, name: str, folder: Path) -> pl.DataFrame:
    """Return the runs of a sweep, or refuse if there are none."""
    runs = sweep.among(table)
    if runs.is_empty():
        raise UserError(
            f"The store {folder} has no runs of {name}. Run `petridish run {name}` first, with the "
            "same --scale, --set and --store."
        )
    return runs


def page_at(path: Path) -> Path:
    """Return where a page is written: with .html, by which a browser knows it."""
    return path if path.suffix or path.is_dir() else path.with_suffix(".html")


def print_json(document: Any) -> None:
    """Print one JSON document, by escapes where the terminal's encoding lacks its characters."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(document, indent=2, allow_nan=False)
    typer.echo(text)
