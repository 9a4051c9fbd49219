"""`petridish tabular compare`: methods on a table of the user's own."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from petridish.cli.common import DEFAULT_OUT, Json, OnceCommand, page_at, print_json
from petridish.errors import UserError, nearest

if TYPE_CHECKING:
    from petridish.compare import Comparison, Description
    from petridish.compare.course import Show
    from petridish.compare.describe import Task

app = typer.Typer(
    help="Tables: which method predicts a column best.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def _tabular() -> None:
    """Keep commands under their names, even while there is one."""


@app.command(cls=OnceCommand)
def compare(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV, TSV (also .gz) or Parquet.")],
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")],
    drop: Annotated[
        str | None, typer.Option(metavar="C1,C2,…", help="Columns to leave out.")
    ] = None,
    task: Annotated[str, typer.Option(help="auto, classification or regression.")] = "auto",
    sizes: Annotated[
        str | None,
        typer.Option(metavar="N1,N2,…", help="Training rows; a grid that fits, if not given."),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(help="Re-drawn splits; 10 at most, if not given.")
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(help="Seconds for everything; 180, unless --repeats is given."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same splits and fits.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Processes; one per core if not given.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The page to write; petridish-out/FILE-COLUMN.html if not given."),
    ] = None,
    json: Json = False,
) -> None:
    """Compare methods on a table of your own."""
    from petridish.compare import compare as carry_out
    from petridish.compare import examine, read_table
    from petridish.compare.comparison import check_options

    started = context.obj  # the time begins with the command
    wanted = _task(task)
    left_out = [name.strip() for name in (drop or "").split(",") if name.strip()]
    numbers = _sizes(sizes)
    description, examples = examine(
        read_table(file), target, source=file.name, drop=left_out, task=wanted
    )
    usual = re.sub(r"[^\w.-]+", "-", f"{file.name.split('.')[0]}-{target}.html")
    page = page_at(out or DEFAULT_OUT / usual)
    _check_writable(page)
    options: dict[str, Any] = {
        "sizes": numbers,
        "repeats": repeats,
        "seconds": seconds,
        "seed": seed,
        "jobs": jobs,
    }
    check_options(examples, **options)
    if not json:
        _say_found(description)
    with _bar(quiet=json) as show:
        comparison = carry_out(
            examples, **options, show=show, started=started, meanwhile=_import_page
        )
    from petridish.compare.page import command_line, comparison_page, document

    command = command_line(str(file), comparison, target, drop=left_out, task=wanted)
    _write(page, comparison_page(comparison, description, command=command))
    if json:
        found = document(comparison, description)
        print_json({**found, "command": command, "page": str(page)})
        return
    _say_ranking(comparison, description)
    typer.echo(f"\nPage:  {page}")
    typer.echo(f"Again: {command}")


def _import_page() -> None:
    """Import what the page needs while fits run, and not after them, when it would come on top."""
    for name in ("petridish.compare.page", "matplotlib.backends.backend_svg", "scipy.special"):
        import_module(name)


# Options


def _task(text: str) -> Task | None:
    from petridish.compare.describe import Task

    names: tuple[Task, ...] = get_args(Task)
    if text == "auto":
        return None
    for name in names:
        if text == name:
            return name
    raise UserError(f"There is no task called {text!r}. {nearest(text, ('auto', *names))}")


def _sizes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UserError(
            f"--sizes {text} is not a list of whole numbers. Write --sizes 100,300,1000."
        ) from None


def _check_writable(page: Path) -> None:
    """Refuse a place for the page before minutes of work."""
    if page.is_dir():
        raise UserError(f"{page} is a folder. Give --out a file such as {page / 'page.html'}.")
    there = page.exists()
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.open("a").close()  # what it holds stays, until there is something new
        if not there:
            page.unlink()
    except OSError as error:
        raise UserError(
            f"{page} cannot be written: {error.strerror}. Give another --out."
        ) from error


def _write(page: Path, text: str) -> None:
    try:
        page.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{page} cannot be written: {error.strerror}. Give another --out."
        ) from error


@contextmanager
def _bar(*, quiet: bool) -> Iterator[Show | None]:
    """Show a bar where standard error is a terminal."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from petridish.bars import terminal_bar
    from petridish.sweeps.progress import clock

    with terminal_bar("fits", transient=True) as move:

        def show(done: int, planned: int, left: float) -> None:
            time = "--:--" if math.isnan(left) else clock(left)
            move(done / planned, f"{done}/{planned}, at most {time} left")

        yield show


# What is printed


def _say_found(description: Description) -> None:
    """Print what is in the table."""
    from petridish.compare.describe import target_line
    from petridish.pages import percent

    typer.echo(
        f"{description.source}: {description.rows:,} rows, {len(description.columns) + 1} columns; "
        f"{description.task} of {description.target}"
    )
    typer.echo(f"  {'target':<12} {target_line(description)}")
    for kind in dict.fromkeys(column.kind for column in description.used):
        names = [column.name for column in description.used if column.kind == kind]
        typer.echo(f"  {kind:<12} {len(names)}: {_some(names)}")
    gaps = [
        f"{column.name} {percent(column.missing / description.usable)}"
        for column in sorted(description.used, key=lambda column: -column.missing)
        if column.missing
    ]
    typer.echo(f"  {'missing':<12} {_some(gaps) if gaps else 'none'}")
    for column in description.columns:
        if not column.used:
            typer.echo(f"  {'left out':<12} {column.name}: {column.kind}, {column.left_out}")
    for note in description.notes:
        typer.echo(f"  {'note':<12} {note}")
    for warning in description.warnings:
        typer.echo(f"  {'WARNING':<12} {warning}")
    typer.echo("")


def _some(names: list[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _say_ranking(comparison: Comparison, description: Description) -> None:
    from petridish.compare.methods import GUESS
    from petridish.compare.ranking import ErrorFormat, errors_at, findings, standings

    size = comparison.sizes[-1]
    measure = ErrorFormat.of(comparison)
    points = " (points)" if measure.classified else ""
    most = f", the most that {comparison.limit:g} s allow" if comparison.limit else ""
    typer.echo(
        f"Ranking with {size:,} training rows{most}; {comparison.repeats} repeats, "
        f"{comparison.test:,} test rows, 95 % intervals"
    )
    typer.echo(
        f"     {'':<21} {'mean ' + measure.error:<24} {'from the best' + points:<26} "
        f"{measure.score:>6} {'fit, s':>7}"
    )
    for place, each in enumerate(standings(comparison, size), start=1):
        error = f"{measure.write(each.error)} {measure.interval(each.low, each.high)}"
        away = (
            f"{measure.difference(each.difference)} "
            f"{measure.differences(each.difference_low, each.difference_high)}"
        )
        mark = "=" if each.tied and place > 1 else " "
        typer.echo(
            f"  {place}{mark} {each.method:<21} {error:<24} {away if place > 1 else '':<26} "
            f"{each.score:>6.3f} {each.seconds:>7.2f}"
        )
    guess = measure.write(float(errors_at(comparison, GUESS, size).mean()))
    typer.echo(f"     {GUESS:<21} {guess}")
    typer.echo("  = not distinguishable from the best (corrected resampled t, Nadeau and Bengio)\n")
    _say_sizes(comparison)
    for sentence in (*findings(comparison, description), *comparison.notes):
        typer.echo(sentence)


def _say_sizes(comparison: Comparison) -> None:
    """Print mean errors by training rows."""
    from petridish.compare.ranking import ErrorFormat, standings

    measure = ErrorFormat.of(comparison)
    typer.echo(
        f"{'Mean ' + measure.error + ' by rows':<26}"
        + "".join(f"{size:>10,}" for size in comparison.sizes)
    )
    means = [
        {each.method: measure.write(each.error) for each in standings(comparison, size)}
        for size in comparison.sizes
    ]
    for name in comparison.methods:
        if any(name in known for known in means):
            cells = "".join(f"{known.get(name, 'failed'):>10}" for known in means)
            typer.echo(f"     {name:<21}{cells}")
    typer.echo("")
