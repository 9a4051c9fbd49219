"""`petridish demo`: the success frontier, from nothing to verdicts and a picture."""

from __future__ import annotations

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
from petridish.cli.run import carry_out, print_summary, print_verdicts, text_frontier


def demo(store: StoreDir = DEFAULT_STORE, out: Out = DEFAULT_OUT) -> int:
    """Train a frontier of a thousand networks; judge and draw it."""
    from petridish.cli.figure import write_figures
    from petridish.cli.report import write_report

    experiment, scale, sweep = find_sweep("PF-1", "demo", None)
    typer.echo(f"{experiment.id}: {experiment.title}")
    typer.echo(f"{len(sweep)} networks, {sweep.base.training.steps} steps each at most.\n")
    summary = carry_out(experiment, sweep, store, quiet=False)
    reading = read_runs(store)
    runs = sweep.among(reading.table)
    verdicts = experiment.judge(runs)
    typer.echo(text_frontier(runs))
    print_verdicts(experiment, verdicts)
    print_summary(summary)
    files = write_figures(experiment, sweep, runs, out, scale)
    page = write_report([(experiment, scale, sweep)], store, out / "report.html", reading)
    typer.echo("\nPictures: " + ", ".join(str(file) for file in files))
    typer.echo(f"Report:   {page}")
    return exit_code(reading.problems)
