"""`petridish report`: one self-contained page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from petridish.cli.common import (
    DEFAULT_OUT,
    DEFAULT_STORE,
    Settings,
    StoreDir,
    existing_store,
    exit_code,
    find_experiment,
    find_sweep,
    page_at,
    read_runs,
)
from petridish.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from petridish.publish.report import Shown
    from petridish.store import Columns, StoreContents
    from petridish.store.requests import Request, SweepNote
    from petridish.sweeps import Sweep


def report(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]…", help="Experiments or files of your own; all that was run, if none."
        ),
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="smoke, laptop, paper …; what was run if not given.")
    ] = None,
    store: StoreDir = DEFAULT_STORE,
    settings: Settings = None,
    out: Annotated[Path, typer.Option(help="The page to write.")] = DEFAULT_OUT / "report.html",
) -> int:
    """Write one HTML page of verdicts and figures.

    It links to explorer.html beside it, if `petridish explore --export` has written one there.
    """
    existing_store(store)
    if scale or settings:
        asked, candidates = _as_named(names, scale, settings), []
    else:
        asked = _as_asked(store, names)
        candidates = _guesses(names, asked)
    reading = read_runs(store, columns=_columns([*asked, *candidates]))
    parts = [shown for shown in asked if not shown.sweep.among(reading.table).is_empty()]
    parts += _most_likely(candidates, reading.table)
    if not parts:
        wanted = ", ".join(names) if names else "any experiment"
        raise UserError(
            f"The store {store} has no runs of {wanted}, or of too few of its cells. Run "
            "`petridish run ID` first, or name the file of your own whose runs it has."
        )
    typer.echo(str(write_report(parts, store, page_at(out), reading)))
    return exit_code(reading.problems)


def _as_named(
    names: Sequence[str] | None, scale: str | None, settings: list[str] | None
) -> list[Shown]:
    """Return the sweeps that the command line names in full."""
    from petridish.publish.report import Shown

    if not names:
        raise UserError(
            "--scale and --set were given without an experiment. Write `petridish report ID`."
        )
    found = [find_sweep(name, scale, settings) for name in names]
    return [Shown(*each, tuple(settings or ())) for each in found]


def _as_asked(store: Path, names: Sequence[str] | None) -> list[Shown]:
    """Return what the notes of a store say was run, of some experiments or of all."""
    from petridish.publish.report import Shown
    from petridish.store.requests import requests

    noted = requests(store)
    own = {request.name for request in noted if request.own}
    wanted = {name if name in own else _noted(name) for name in names or ()}
    found = []
    for request in noted:
        if wanted and request.name not in wanted:
            continue
        try:
            if request.own:
                found.append(_from_note(request, request.own))
                continue
            sweep = find_sweep(request.name, request.scale, list(request.settings))
        except UserError as reason:  # such as a file that is no longer there
            print(f"petridish: {request.name} is not shown. {reason}", file=sys.stderr)
            continue
        found.append(Shown(*sweep, request.settings))
    return found


def _from_note(request: Request, own: SweepNote) -> Shown:
    """Return a sweep that only its note has, with what came out of it as a table."""
    import hashlib
    import json

    from petridish.experiment import Experiment
    from petridish.publish.records import read_sweep
    from petridish.publish.report import Shown
    from petridish.rules.columns import reads
    from petridish.rules.outcome_table import outcome_table
    from petridish.rules.varying import axis_order

    sweep = read_sweep(own.sweep)

    @reads()
    def outcomes(runs: pl.DataFrame) -> pl.DataFrame:
        table = outcome_table(runs, first=axis_order(sweep))
        return table.frame.drop("chosen").rename({"value": table.label})

    experiment = Experiment(
        request.name,
        own.title,
        "Run from Python",
        {request.scale: sweep},
        tables={"outcomes": outcomes},
    )
    # Several sweeps of a notebook have the same name: the digest tells them apart.
    digest = hashlib.sha256(json.dumps(own.sweep).encode()).hexdigest()[:6]
    return Shown(experiment, request.scale, sweep, (*request.settings, digest), own)


def _noted(name: str) -> str:
    """Return the name under which a note has an experiment or a file."""
    return str(Path(name).resolve()) if name.endswith(".py") else find_experiment(name).id


def _guesses(names: Sequence[str] | None, asked: Sequence[Shown]) -> list[Shown]:
    """Return every scale of the experiments that a store has no note of."""
    from petridish.chapters import EXPERIMENTS
    from petridish.publish.report import Shown

    if asked and not names:
        return []
    noted = {str(shown.experiment.user_file or shown.experiment.id) for shown in asked}
    unknown = [
        name
        for name in names or EXPERIMENTS
        if not noted or (name not in noted and _noted(name) not in noted)
    ]
    return [
        Shown(experiment, scale, sweep)
        for experiment in map(find_experiment, unknown)
        for scale, sweep in experiment.scales.items()
    ]


def _columns(parts: Sequence[Shown]) -> Columns:
    """Return the columns of curves, arrays and weights that some experiments read."""
    asked = [
        shown.experiment.columns_needed(shown.sweep, "claims", "figures", "tables")
        for shown in parts
    ]
    return "all" if "all" in asked else set().union(*asked)


def _most_likely(candidates: Sequence[Shown], table: pl.DataFrame) -> list[Shown]:
    """Choose one scale per experiment: the one with most runs, and the smallest of those."""
    best: dict[str, tuple[tuple[int, int], Shown]] = {}
    for shown in candidates:
        if _mostly_run(shown.sweep, table):
            fit = (len(shown.sweep.among(table)), -len(shown.sweep))
            known = best.get(shown.experiment.id)
            if known is None or fit > known[0]:
                best[shown.experiment.id] = fit, shown
    return [shown for _, shown in best.values()]


def _mostly_run(sweep: Sweep, table: pl.DataFrame) -> bool:
    """Return whether most cells of a sweep have runs: others only share some with another.

    Of a sweep that chooses its runs, cells count that it has chosen or still wants.
    """
    from petridish.sweeps.allocation import chooses, search_of
    from petridish.sweeps.runner import outcomes
    from petridish.training import cell_text

    stored, missing = set(table["cell"].unique()), 0
    if chooses(sweep):
        found = set(sweep.among(table)["cell"].unique())
        wanted = search_of(sweep).wanted(outcomes(table)).values() if found else ()
        return len(found) > len({cell_text(spec) for spec in wanted} - found)
    for spec, _ in sweep.cells():
        missing += cell_text(spec) not in stored
        if missing >= len(stored):  # most sweeps of most stores: found without listing all of them
            return False
    found = set(sweep.among(table)["cell"].unique())
    cells = [cell_text(spec) in found for spec, _ in sweep.cells()]
    return sum(cells) > len(cells) / 2


def write_report(parts: Sequence[Shown], store: Path, out: Path, reading: StoreContents) -> Path:
    """Write the page of some experiments, saying on a terminal how far it is."""
    from petridish.publish.report import EXPLORER, chapter_of, report_page

    chapters = []
    for place, shown in enumerate(parts, start=1):
        if sys.stderr is not None and sys.stderr.isatty():
            label = " ".join([shown.experiment.id, shown.scale, *shown.settings])
            print(f"{place}/{len(parts)}  {label} …", file=sys.stderr)
        chapters.append(chapter_of(shown, shown.sweep.among(reading.table), store))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        beside = EXPLORER if (out.parent / EXPLORER).is_file() else ""
        page = report_page(chapters, store=str(store), explorer=beside)
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{out} cannot be written: {error.strerror}. Give another --out."
        ) from error
    return out
