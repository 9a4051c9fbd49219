"""`petridish report`: one self-contained page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from petridish.cli.common import (
    DEFAULT_OUT,
    DEFAULT_STORE,
    StoreDir,
    exit_code,
    find_experiment,
    read_runs,
)
from petridish.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from petridish.experiment import Experiment
    from petridish.store import Columns, Reading
    from petridish.sweeps import Sweep


def report(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]…", help="All that have runs, if none given.")
    ] = None,
    store: StoreDir = DEFAULT_STORE,
    out: Annotated[Path, typer.Option(help="The page to write.")] = DEFAULT_OUT / "report.html",
) -> int:
    """Write one self-contained HTML page of verdicts and figures."""
    from petridish.chapters import EXPERIMENTS

    experiments = [find_experiment(name) for name in names or EXPERIMENTS]
    asked = [
        experiment.columns_needed(sweep, "claims", "figures", "tables")
        for experiment in experiments
        for sweep in experiment.scales.values()
    ]
    columns: Columns = "all" if "all" in asked else set().union(*asked)
    reading = read_runs(store, columns=columns)
    parts = [
        (experiment, scale, sweep)
        for experiment in experiments
        for scale, sweep in experiment.scales.items()
        if _mostly_run(sweep, reading.table)
    ]
    if not parts:
        wanted = ", ".join(names) if names else "any experiment"
        raise UserError(
            f"The store {store} has no runs of {wanted}, or of too few of its cells. "
            "Run `petridish run ID` first."
        )
    typer.echo(str(write_report(parts, store, out, reading)))
    return exit_code(reading.problems)


def _mostly_run(sweep: Sweep, table: pl.DataFrame) -> bool:
    """Say whether most cells of a sweep have runs: others only share some with another sweep."""
    from petridish.training import cell_text

    found = set(sweep.among(table)["cell"].unique())
    cells = [cell_text(spec) in found for spec, _ in sweep.cells()]
    return sum(cells) > len(cells) / 2


def write_report(
    parts: Sequence[tuple[Experiment, str, Sweep]], store: Path, out: Path, reading: Reading
) -> Path:
    """Write the page of some experiments at some scales."""
    from petridish.publish.report import Chapter, report_page

    chapters = []
    for experiment, scale, sweep in parts:
        runs = sweep.among(reading.table)
        chapters.append(Chapter(experiment, scale, sweep, runs, experiment.judge(runs)))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(report_page(chapters, store=str(store)), encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{out} cannot be written: {error.strerror}. Give another --out."
        ) from error
    return out
