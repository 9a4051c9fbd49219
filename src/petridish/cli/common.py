"""What the commands share: options, and the way from names to runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from petridish.errors import UserError

if TYPE_CHECKING:
    import polars as pl

    from petridish.experiment import Experiment
    from petridish.store import Columns, Reading
    from petridish.sweeps import Sweep

DEFAULT_STORE = Path("petridish-store")
DEFAULT_OUT = Path("petridish-out")

Id = Annotated[
    str, typer.Argument(metavar="ID", help="An experiment, or the path of a file of your own.")
]
Scale = Annotated[str | None, typer.Option(help="smoke, laptop, paper …; laptop if not given.")]
StoreDir = Annotated[Path, typer.Option("--store", help="The folder that keeps the runs.")]
Out = Annotated[Path, typer.Option(help="The folder for figures.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="AXIS=V1,V2,…", help="Other values for an axis, such as m=300,600."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


def find_experiment(name: str) -> Experiment:
    """Give the experiment of an id or of a user's file."""
    if name.endswith(".py"):
        from petridish.experiment import user_experiment

        return user_experiment(Path(name))
    from petridish.chapters import find

    return find(name)


def find_sweep(
    name: str, scale: str | None, settings: list[str] | None
) -> tuple[Experiment, str, Sweep]:
    """Give an experiment, the scale meant, and its sweep with the user's settings."""
    experiment = find_experiment(name)
    scale = scale or experiment.default_scale()
    sweep = experiment.sweep(scale).narrowed(settings or [])
    experiment.check(sweep)
    return experiment, scale, sweep


def existing_store(folder: Path) -> Path:
    """Refuse a store that is not there."""
    if not folder.is_dir():
        raise UserError(
            f"There is no store {folder}. Give --store, or fill one by `petridish run`."
        )
    return folder


def read_runs(folder: Path, *, columns: Columns = ()) -> Reading:
    """Read a store, saying on standard error what had to be passed over."""
    from petridish.store import Store

    reading = Store(existing_store(folder)).read(columns=columns)
    say_problems(reading)
    return reading


def say_problems(reading: Reading) -> None:
    """Say on standard error what had to be passed over."""
    for problem in reading.problems:
        print(f"petridish: {problem}", file=sys.stderr)


def exit_code(problems: tuple[str, ...]) -> int:
    """Give 2 where files were passed over: what was printed rests on the rest of the store."""
    return 2 if problems else 0


def chosen_runs(sweep: Sweep, table: pl.DataFrame, name: str, folder: Path) -> pl.DataFrame:
    """Give the runs of a sweep, refusing if there are none."""
    runs = sweep.among(table)
    if runs.is_empty():
        raise UserError(
            f"The store {folder} has no runs of {name}. Run `petridish run {name}` first, with the "
            "same --scale, --set and --store."
        )
    return runs


def print_json(document: Any) -> None:
    """Print one JSON document, by escapes where the terminal's encoding lacks its characters."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(document, indent=2, allow_nan=False)
    typer.echo(text)
