"""`petridish run`: train what is missing, and say what came out."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from petridish.cli import axes
from petridish.cli.common import (
    DEFAULT_STORE,
    DataFolder,
    DeviceName,
    Id,
    Json,
    Scale,
    Settings,
    StoreDir,
    exit_code,
    find_sweep,
    print_json,
    read_runs,
    use_data,
)
from petridish.errors import UserError

if TYPE_CHECKING:
    import polars as pl

    from petridish.experiment import Experiment
    from petridish.rules.claims import Verdict
    from petridish.sweeps import Summary, Sweep
    from petridish.sweeps.executors.clusters import Cluster


MOST_SETTINGS = 60  # of an experiment of the catalogue that are printed without being asked for
Engine = Annotated[str, typer.Option(help="auto, native, wide, torch, reference or fit.")]
Executor = Annotated[
    str, typer.Option(help="local (one process per core), inline (this one) or dask (a cluster).")
]
Scheduler = Annotated[
    str | None, typer.Option(help="With dask: the scheduler's address, or its file.")
]
StartCluster = Annotated[
    str | None, typer.Option("--cluster", help="With dask: start one, local or ssh.")
]
Workers = Annotated[
    int | None, typer.Option(help="Workers to start with --cluster, on each host for ssh.")
]
Hosts = Annotated[
    str | None, typer.Option(help="For --cluster ssh: A,B,…, the first with the scheduler.")
]
SharedStore = Annotated[
    str, typer.Option(help="With dask, whether workers see the store: auto, yes or no.")
]
Jobs = Annotated[
    int | None,
    typer.Option(help="Worker processes; one per core if not given, one if a device is named."),
]
SharedBy = Annotated[
    int, typer.Option(help="How many such commands share the store at once, on all machines.")
]
Adaptive = Annotated[
    bool, typer.Option("--adaptive", help="More seeds only where success may be ½.")
]


def run(
    name: Id,
    scale: Scale = None,
    store: StoreDir = DEFAULT_STORE,
    engine: Engine = "auto",
    executor: Executor = "local",
    jobs: Jobs = None,
    device: DeviceName = "cpu",
    shared_by: SharedBy = 1,
    scheduler: Scheduler = None,
    cluster: StartCluster = None,
    workers: Workers = None,
    hosts: Hosts = None,
    shared_store: SharedStore = "auto",
    settings: Settings = None,
    data: DataFolder = None,
    adaptive: Adaptive = False,
    rows: axes.Rows = None,
    columns: axes.Columns = None,
    panels: axes.Panels = None,
    colour: axes.Colour = None,
    value: axes.Value = None,
    best_over: axes.BestOver = None,
    best: axes.BestEnd = None,
    json: Json = False,
) -> int:
    """Train what the store lacks of an experiment, and judge it."""
    from petridish.api.running import carry_out
    from petridish.rules.varying import has_target, is_plane
    from petridish.store import Store
    from petridish.sweeps import make_progress

    use_data(data)
    experiment, scale, sweep = find_sweep(name, scale, settings)
    shown = axes.AxisOptions(rows, columns, panels, colour, value, best_over, best)
    curves = shown.check(sweep)
    if experiment.before and not json:
        typer.echo("\n".join(experiment.before(sweep)))
    summary = carry_out(
        experiment,
        scale,
        sweep,
        Store(store),
        request=settings or (),
        progress=make_progress(experiment.id, quiet=json),
        engine=engine,
        executor=chosen_executor(executor, scheduler, cluster, workers, hosts, shared_store),
        jobs=jobs,
        device=device,
        shared_by=shared_by,
        adaptive=adaptive,
    )
    needed = experiment.columns_needed(sweep, "claims")
    reading = read_runs(store, columns=needed if needed == "all" else {*needed, *curves})
    runs = sweep.among(reading.table)
    verdicts = experiment.judge_shown(runs, store, scale, settings or ())
    if json:
        print_json(
            {
                "id": experiment.id,
                "scale": scale,
                "outcomes": outcome_rows(sweep, runs, shown),
                "verdicts": [verdict.as_json() for verdict in verdicts],
                "summary": asdict(summary),
            }
        )
        return exit_code(reading.problems)
    few = runs["cell"].n_unique() <= MOST_SETTINGS
    if shown.asked or settings or experiment.user_file or few or is_plane(sweep):
        print_outcomes(sweep, runs, shown)
    print_thresholds(sweep, runs)
    print_verdicts(experiment, verdicts)
    print_summary(summary, to_solve=has_target(sweep))
    return exit_code(reading.problems)


def chosen_executor(
    name: str,
    scheduler: str | None,
    start: str | None,
    workers: int | None,
    hosts: str | None,
    shared_store: str,
) -> str | Cluster:
    """Return what `--executor` and the options of a cluster ask for."""
    from petridish.sweeps.executors.clusters import Cluster

    given = {
        "--scheduler": scheduler,
        "--cluster": start,
        "--workers": workers,
        "--hosts": hosts,
        "--shared-store": None if shared_store == "auto" else shared_store,
    }
    if name != "dask":
        for option, value in given.items():
            if value is not None:
                raise UserError(f"{option} {value} was given. Give --executor dask with it.")
        return name
    split = tuple(hosts.split(",")) if hosts else ()
    return Cluster(scheduler, start, workers, split, shared_store)


def outcome_rows(sweep: Sweep, runs: pl.DataFrame, shown: axes.AxisOptions) -> list[dict[str, Any]]:
    """Return what came out of every setting as JSON can hold it: no NaN and no infinity.

    One row per setting: its fields, the runs `n`, `solved` and `diverged`, the `value` named by
    `of`, its interval `low` to `high`, and what was `chosen` of the fields tuned over.
    """
    from petridish.rules.outcome_table import outcome_table
    from petridish.rules.varying import axis_order

    if runs.is_empty():
        return []  # none could begin
    try:
        found = outcome_table(runs, first=axis_order(sweep), **shown.asked)
    except UserError as reason:  # what was trained is kept, and judged
        print(f"petridish: {reason}", file=sys.stderr)
        return []
    return [
        {"of": found.value}
        | {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in found.frame.iter_rows(named=True)
    ]


def print_outcomes(sweep: Sweep, runs: pl.DataFrame, shown: axes.AxisOptions) -> None:
    """Print the outcome of every setting, over the axes asked for or those that vary."""
    from petridish.rules.outcome_remarks import diverged
    from petridish.rules.outcome_table import outcome_table
    from petridish.rules.outcome_text import outcome_text
    from petridish.rules.varying import axis_order, is_plane

    if runs.is_empty():
        return  # none could begin
    if is_plane(sweep) and not shown.asked:
        typer.echo(text_frontier(runs))
        for line in diverged(runs):
            typer.echo(line)
        return
    try:
        typer.echo(outcome_text(outcome_table(runs, first=axis_order(sweep), **shown.asked)))
    except UserError as reason:  # what was trained is kept, and judged
        print(f"petridish: {reason}", file=sys.stderr)


def print_thresholds(sweep: Sweep, runs: pl.DataFrame) -> None:
    """Print what the searches of a sweep have found among its runs."""
    from petridish.sweeps import FindThreshold
    from petridish.sweeps.runner import outcomes

    for part in sweep.grids():
        if isinstance(part.allocate, FindThreshold):
            for line in part.allocate.search(part).lines(outcomes(runs)):
                typer.echo(line)


def print_verdicts(experiment: Experiment, verdicts: list[Verdict]) -> None:
    """Print every claim with its verdict and the notes on it."""
    for verdict in verdicts:
        claim = verdict.claim
        typer.echo(f"({claim.name}, {claim.kind}) {claim.text} [{claim.source}]")
        typer.echo(f"    {str(verdict).partition(') ')[2]}")
        for line in verdict.notes:
            typer.echo(f"    → {line}")
    if verdicts:
        typer.echo(
            f"The level of {experiment.level:.0%} is shared by the claims; "
            "`petridish verdicts --help` says what each verdict means."
        )


def print_summary(summary: Summary, *, to_solve: bool = True) -> None:
    """Print to standard error what was trained, and how many were solved if that was asked."""
    from petridish.sweeps.progress import clock, count

    solved = f" ({summary.solved} solved)" if to_solve else ""
    parents = f", {summary.parents} of them for others to begin from," if summary.parents else ""
    print(
        f"{summary.done} runs trained{solved}{parents} and "
        f"{summary.skipped} found in the store; {count(summary.model_steps)} model-steps in "
        f"{clock(summary.seconds)}.",
        file=sys.stderr,
    )


def text_frontier(runs: pl.DataFrame) -> str:
    """Write the share of runs solved over (m, r) as text, one block for each initialisation.

    In the order of the panels of `success_heat_map`.
    """
    from petridish.figures.heat_map import panel_layout
    from petridish.figures.style import sample_label
    from petridish.rules.cells import grid

    counts = grid(runs, rows="model.width", columns="data.m", strata=["task", "init"])
    lines = []
    places = panel_layout(runs).places
    blocks = zip(counts.strata, counts.solved, counts.runs, strict=True)
    for (task, init), solved, made in sorted(blocks, key=lambda block: places[block[0]]):
        lines.append(f"{task}, {init}: percent of runs solved, by width r and sample size m")
        head = "".join(f"{sample_label(m):>6}" for m in counts.columns)
        lines.append(f"       r, m{head}   half succeed at")
        for row in reversed(range(len(counts.rows))):
            shares = [
                100 * s / n if n else None for s, n in zip(solved[row], made[row], strict=True)
            ]
            cells = "".join("     –" if share is None else f"{share:6.0f}" for share in shares)
            first = next(
                (m for m, share in zip(counts.columns, shares, strict=True) if (share or 0) >= 50),
                None,
            )
            where = "beyond this grid" if first is None else f"m = {sample_label(first)}"
            lines.append(f"  {counts.rows[row]:>8}{cells}   {where}")
        lines.append("")
    return "\n".join(lines)
