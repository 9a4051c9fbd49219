"""`petridish run`: train what is missing, and say what came out."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from petridish.cli.common import (
    DEFAULT_STORE,
    Id,
    Json,
    Scale,
    Settings,
    StoreDir,
    exit_code,
    find_sweep,
    print_json,
    read_runs,
)

if TYPE_CHECKING:
    import polars as pl

    from petridish.experiment import Experiment
    from petridish.rules.claims import Verdict
    from petridish.sweeps import Summary, Sweep


Engine = Annotated[str, typer.Option(help="auto, native, wide, torch, reference or fit.")]
Executor = Annotated[str, typer.Option(help="local (one process a core) or inline (this one).")]
Jobs = Annotated[int | None, typer.Option(help="Worker processes; one a core if not given.")]
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
    settings: Settings = None,
    adaptive: Adaptive = False,
    json: Json = False,
) -> int:
    """Train what the store lacks of an experiment; judge its claims."""
    experiment, scale, sweep = find_sweep(name, scale, settings)
    summary = carry_out(
        experiment,
        sweep,
        store,
        quiet=json,
        engine=engine,
        executor=executor,
        jobs=jobs,
        adaptive=adaptive,
    )
    reading = read_runs(store, columns=experiment.columns_needed(sweep, "claims"))
    runs = sweep.among(reading.table)
    verdicts = experiment.judge(runs)
    if json:
        print_json(
            {
                "id": experiment.id,
                "scale": scale,
                "verdicts": [verdict.as_json() for verdict in verdicts],
                "summary": asdict(summary),
            }
        )
        return exit_code(reading.problems)
    planar = all(len(sweep.axes.get(axis, ())) > 1 for axis in ("model.width", "data.m"))
    if planar and not sweep.also:
        typer.echo(text_frontier(runs))
    print_thresholds(sweep, runs)
    print_verdicts(experiment, verdicts)
    print_summary(summary)
    return exit_code(reading.problems)


def carry_out(
    experiment: Experiment,
    sweep: Sweep,
    store: Path,
    *,
    quiet: bool,
    engine: str = "auto",
    executor: str = "local",
    jobs: int | None = None,
    adaptive: bool = False,
) -> Summary:
    """Train what the store lacks of a sweep."""
    from petridish.store import Store
    from petridish.sweeps import make_progress, run_sweep

    return run_sweep(
        sweep,
        Store(store),
        engine=engine,
        executor=executor,
        jobs=jobs,
        progress=make_progress(experiment.id, quiet=quiet),
        user_file=experiment.user_file,
        adaptive=adaptive,
    )


def print_thresholds(sweep: Sweep, runs: pl.DataFrame) -> None:
    """Print what the searches of a sweep have found among its runs."""
    from petridish.sweeps import FindThreshold
    from petridish.sweeps.runner import outcomes

    for part in sweep.grids():
        if isinstance(part.allocate, FindThreshold):
            for line in part.allocate.search(part).lines(outcomes(runs)):
                typer.echo(line)


def print_verdicts(experiment: Experiment, verdicts: list[Verdict]) -> None:
    """Print every claim with its verdict."""
    for verdict in verdicts:
        claim = verdict.claim
        typer.echo(f"({claim.name}, {claim.kind}) {claim.text} [{claim.source}]")
        typer.echo(f"    {str(verdict).partition(') ')[2]}")
    if verdicts:
        typer.echo(
            f"The level of {experiment.level:.0%} is shared by the claims; "
            "docs/statistics.md says what each verdict means."
        )


def print_summary(summary: Summary) -> None:
    """Say on standard error what was trained."""
    from petridish.sweeps.progress import clock, count

    parents = f", {summary.parents} of them for others to begin from," if summary.parents else ""
    print(
        f"{summary.done} runs trained ({summary.solved} solved){parents} and "
        f"{summary.skipped} found in the store; {count(summary.model_steps)} model-steps in "
        f"{clock(summary.seconds)}.",
        file=sys.stderr,
    )


def text_frontier(runs: pl.DataFrame) -> str:
    """Write the share of runs solved over (m, r) as text, one block for each initialisation."""
    from petridish.figures.style import sample_label
    from petridish.rules.cells import grid

    counts = grid(runs, rows="model.width", columns="data.m", strata=["task", "init"])
    lines = []
    for (task, init), solved, made in zip(counts.strata, counts.solved, counts.runs, strict=True):
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
