"""Commands that look: list, plan, verdicts, figure, report, bench."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from petridish.choices import UserError
from petridish.cli.common import (
    DEFAULT_OUT,
    DEFAULT_STORE,
    Id,
    Json,
    Out,
    Scale,
    Settings,
    StoreDir,
    chosen_runs,
    exit_code,
    find_experiment,
    find_sweep,
    print_json,
    read_runs,
    say_problems,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from petridish.experiment import Experiment
    from petridish.store import Reading
    from petridish.sweeps import Sweep


def list_experiments(json: Json = False) -> None:
    """List every experiment with its scales, prices and claims."""
    from petridish.chapters import EXPERIMENTS
    from petridish.sweeps.progress import count

    if json:
        print_json([experiment.as_json() for experiment in EXPERIMENTS.values()])
        return
    for experiment in EXPERIMENTS.values():
        typer.echo(f"{experiment.id}  {experiment.title}  [{experiment.source}]")
        for name, sweep in experiment.scales.items():
            steps = count(sweep.model_steps)
            typer.echo(f"    {name:8}{len(sweep):>9} runs  {steps:>7} model-steps at most")
        for claim in experiment.claims:
            typer.echo(f"    ({claim.name}) {claim.text}")


def plan(
    name: Id,
    scale: Scale = None,
    store: StoreDir = DEFAULT_STORE,
    settings: Settings = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Replay adaptive allocation on what is stored.")
    ] = False,
    json: Json = False,
) -> int:
    """Price a sweep on this machine before it runs."""
    from petridish.store import Store
    from petridish.sweeps.adaptive import replay
    from petridish.sweeps.price import calibrate, price
    from petridish.sweeps.progress import clock, count

    experiment, scale, sweep = find_sweep(name, scale, settings)
    for spec, _ in sweep.cells():
        spec.check()
    cost = price(sweep, calibrate())
    reading = Store(store).read()
    runs = sweep.among(reading.table)
    stored = len(runs)
    say_problems(reading)
    spent = replay(sweep, runs) if adaptive else None
    if adaptive and spent is None:
        raise UserError(
            f"The store {store} lacks runs that adaptive allocation would want, so that it cannot "
            f"be replayed. Run `petridish run {name} --adaptive` first, with the same --scale, "
            "--set and --store."
        )
    if json:
        print_json(
            {
                "id": experiment.id,
                "scale": scale,
                "runs": cost.runs,
                "model_steps": cost.model_steps,
                "seconds": cost.seconds,
                "jobs": cost.jobs,
                "stored": stored,
                **({"adaptive": asdict(spent) | {"share": spent.share}} if spent else {}),
            }
        )
        return exit_code(reading.problems)
    typer.echo(f"{experiment.id} at {scale} scale: {cost.runs} runs, {stored} of them stored")
    typer.echo(f"{count(cost.model_steps)} model-steps if no run ends early")
    typer.echo(f"at most {clock(cost.seconds)} on the {cost.jobs} cores of this machine")
    for machines in (10, 100):
        typer.echo(f"at most {clock(cost.seconds / machines)} on {machines} such machines")
    if spent:
        typer.echo(_shift(sweep, runs))
        unknown = f" ({spent.estimated} runs not stored: estimated)" if spent.estimated else ""
        typer.echo(
            f"adaptive allocation would have made {spent.runs} of {spent.all_runs} runs, "
            f"{count(spent.model_steps)} of {count(spent.all_model_steps)} model-steps "
            f"({spent.share:.1%}){unknown}"
        )
    return exit_code(reading.problems)


def _shift(sweep: Sweep, runs: pl.DataFrame) -> str:
    """Say how far the frontier of adaptive allocation lies from that of all stored runs."""
    import numpy as np

    from petridish.rules.cells import grid
    from petridish.rules.frontier import replayed_frontiers

    if not {"model.width", "data.m"} <= set(sweep.axes) or sweep.also:
        return "replayed on the stored runs:"
    counts = grid(runs, rows="model.width", columns="data.m", strata=["task", "init"])
    whole, part = replayed_frontiers(counts)
    most = int(np.abs(whole - part).max())
    where = f"at most {most} grid steps from" if most else "the same as"
    return f"replayed on the stored runs, the frontier (half succeed) is {where} that of all runs;"


def verdicts(
    name: Id,
    scale: Scale = None,
    store: StoreDir = DEFAULT_STORE,
    settings: Settings = None,
    json: Json = False,
) -> int:
    """Judge the claims of an experiment from what is stored."""
    experiment, scale, sweep = find_sweep(name, scale, settings)
    reading = read_runs(store, curves=sweep.base.evaluation.curves)
    runs = chosen_runs(sweep, reading.table, name, store)
    found = experiment.judge(runs)
    if json:
        print_json(
            {
                "id": experiment.id,
                "scale": scale,
                "verdicts": [verdict.as_json() for verdict in found],
            }
        )
        return exit_code(reading.problems)
    typer.echo(f"{experiment.id} at {scale} scale, {len(runs)} of {len(sweep)} runs stored")
    for verdict in found:
        typer.echo(str(verdict))
    if not found:
        typer.echo("No claims are declared.")
    return exit_code(reading.problems)


def figure(
    name: Id,
    scale: Scale = None,
    store: StoreDir = DEFAULT_STORE,
    out: Out = DEFAULT_OUT,
    settings: Settings = None,
) -> int:
    """Draw an experiment from what is stored, as PNG and SVG."""
    experiment, scale, sweep = find_sweep(name, scale, settings)
    reading = read_runs(store, curves=True)
    runs = chosen_runs(sweep, reading.table, name, store)
    # Another sweep is another picture: its settings are part of the name.
    label = "-".join([scale, *(re.sub(r"[^\w.=]+", "_", setting) for setting in settings or [])])
    for file in write_figures(experiment, sweep, runs, out, label):
        typer.echo(str(file))
    return exit_code(reading.problems)


def write_figures(
    experiment: Experiment, sweep: Sweep, runs: pl.DataFrame, out: Path, scale: str
) -> list[Path]:
    """Draw and save every figure of an experiment."""
    from petridish.figures.style import NothingToDraw, save

    drawings = experiment.drawings(sweep)
    if not drawings:
        raise UserError(
            f"{experiment.id} declares no figure, and none suits its axes. Sweep model.width and "
            "data.m, keep curves by evaluation.curves=true, or declare figures."
        )
    title = f"{experiment.id}, {scale}: {experiment.title}"
    files, missing = [], []
    for name, draw in drawings.items():
        try:
            files += save(draw(runs, title), out, f"{experiment.id}-{scale}-{name}")
        except NothingToDraw as reason:
            missing.append(f"The figure {name} is not drawn. {reason}")
    if missing and not files:
        raise UserError(" ".join(missing))
    for sentence in missing:
        print(f"petridish: {sentence}", file=sys.stderr)
    return files


def report(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]…", help="All that have runs, if none given.")
    ] = None,
    store: StoreDir = DEFAULT_STORE,
    out: Annotated[Path, typer.Option(help="The page to write.")] = DEFAULT_OUT / "report.html",
) -> int:
    """Write one self-contained HTML page of verdicts and figures."""
    from petridish.chapters import EXPERIMENTS

    reading = read_runs(store, curves=True)
    experiments = [find_experiment(name) for name in names or EXPERIMENTS]
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
    from petridish.training import SEED_TEXT, cell_text

    runs = sweep.among(table)
    found = set(runs["spec"].str.replace(SEED_TEXT, ""))
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


def record(
    name: Id,
    scale: Scale = None,
    store: StoreDir = DEFAULT_STORE,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder; records/<id>-<scale> if not given.")
    ] = None,
) -> int:
    """Keep an experiment's runs, verdicts and figures in one small folder."""
    from petridish.publish.records import lighter, write_record

    experiment, scale, sweep = find_sweep(name, scale, settings)
    reading = read_runs(store, curves=True)
    runs = lighter(chosen_runs(sweep, reading.table, name, store))
    folder = out or Path("records") / f"{experiment.id}-{scale}"
    for file in write_record(experiment, scale, sweep, runs, experiment.judge(runs), folder):
        typer.echo(str(file))
    return exit_code(reading.problems)


def bench(
    json: Json = False,
    quick: Annotated[bool, typer.Option(help="Less of everything; numbers are rougher.")] = False,
) -> None:
    """Measure engines, runner and store against naive PyTorch."""
    from petridish.bench import measure, table

    found = measure(quick=quick)
    if json:
        print_json(found)
        return
    typer.echo(table(found))
