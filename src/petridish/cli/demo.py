"""`petridish demo`: the success frontier, from nothing to verdicts and a picture."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import typer

from petridish.cli.common import (
    DEFAULT_OUT,
    DEFAULT_STORE,
    Out,
    StoreDir,
    exit_code,
    find_sweep,
    read_runs,
)
from petridish.cli.run import print_summary, print_verdicts, text_frontier


def demo(store: StoreDir = DEFAULT_STORE, out: Out = DEFAULT_OUT) -> int:
    """Train 800 networks, judge the claims of PF-1, draw a figure."""
    from petridish.api.running import carry_out
    from petridish.cli.figure import write_figures
    from petridish.cli.report import write_report
    from petridish.publish.report import Shown
    from petridish.store import Store
    from petridish.sweeps import make_progress

    experiment, scale, sweep = find_sweep("PF-1", "demo", None)
    typer.echo(f"{experiment.id}: {experiment.title}")
    typer.echo(f"{len(sweep)} networks, {sweep.base.training.steps} steps each at most.\n")
    summary = carry_out(
        experiment, scale, sweep, Store(store), request=(), progress=make_progress(experiment.id)
    )
    reading = read_runs(store)
    runs = sweep.among(reading.table)
    verdicts = experiment.judge_shown(runs, store, scale)
    typer.echo(text_frontier(runs))
    print_verdicts(experiment, verdicts)
    print_summary(summary)
    files = write_figures(experiment, sweep, runs, out, scale)
    explorer = _export(store, out)
    page = write_report([Shown(experiment, scale, sweep)], store, out / "report.html", reading)
    typer.echo("\nPictures: " + ", ".join(str(file) for file in files))
    typer.echo(f"Report:   {page}")
    if explorer is not None:
        typer.echo(f"Explorer: {explorer}, or live by `petridish explore --store {store}`")
    return exit_code(reading.problems)


def _export(store: Path, out: Path) -> Path | None:
    """Write the explorer's page of the store as one file, where the extra for it is installed."""
    if find_spec("plotly") is None or find_spec("starlette") is None:
        return None
    from petridish.explorer.one_file import write_file
    from petridish.publish.report import EXPLORER

    write_file([store], None, out / EXPLORER)
    return out / EXPLORER
