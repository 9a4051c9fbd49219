"""`petridish plan`: what a sweep costs before it runs."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from petridish.choices import describe
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
    say_problems,
    use_data,
)
from petridish.errors import UserError

if TYPE_CHECKING:
    import polars as pl

    from petridish.sweeps import Sweep


def plan(
    name: Id,
    scale: Scale = None,
    store: StoreDir = DEFAULT_STORE,
    settings: Settings = None,
    data: DataFolder = None,
    device: DeviceName = "cpu",
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Replay adaptive allocation on what is stored.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(help="Price it on this many machines like this one.")
    ] = None,
    json: Json = False,
) -> int:
    """Price a sweep on this machine before it runs."""
    from petridish.store import Store
    from petridish.sweeps.allocation import replay
    from petridish.sweeps.batches import check_all, cores
    from petridish.sweeps.placement import Placement
    from petridish.sweeps.price import calibrate, price
    from petridish.sweeps.progress import clock, count
    from petridish.sweeps.runner import chosen_by

    if workers is not None and workers < 1:
        raise UserError(f"--workers {workers} was given. Give at least 1 machine.")
    use_data(data)
    experiment, scale, sweep = find_sweep(name, scale, settings)
    check_all((spec for spec, _ in sweep.cells()), here=False)  # a larger machine may run them
    there = Placement(device, "auto", jobs=cores() if device in ("cpu", "auto") else 1)
    cost = price(sweep, calibrate(), elsewhere=there.elsewhere)
    for line in there.news():
        print(f"petridish: {line}", file=sys.stderr)
    reading = Store(store).read()
    runs = sweep.among(reading.table)
    stored = len(runs)
    say_problems(reading)
    search = chosen_by(sweep, adaptive=adaptive)
    spent = None if search is None else replay(sweep, runs, search)
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
                **({"parents": cost.parents} if cost.parents else {}),
                **({"chosen": list(cost.chosen)} if cost.chosen else {}),
                "model_steps": cost.model_steps,
                "seconds": cost.seconds,
                "jobs": cost.jobs,
                **(
                    {"workers": workers, "seconds_on_workers": cost.on_machines(workers)}
                    if workers
                    else {}
                ),
                "stored": stored,
                **({"adaptive": asdict(spent) | {"share": spent.share}} if spent else {}),
            }
        )
        return exit_code(reading.problems)
    typer.echo(f"{experiment.id} at {scale} scale: {cost.runs} runs, {stored} of them stored")
    if cost.chosen:
        fewest, most = cost.chosen
        names = dict.fromkeys(describe(g.allocate) for g in sweep.grids() if g.allocate is not None)
        typer.echo(
            f"of which {' and '.join(names)} makes {fewest} to {most} if it is clear which "
            "succeed, and more if it is not; below is the price of the most"
        )
    if cost.parents:
        typer.echo(f"and {cost.parents} runs from which these begin")
    typer.echo(f"{count(cost.model_steps)} model-steps if no run ends early")
    typer.echo(f"at most {clock(cost.seconds)} on the {cost.jobs} cores of this machine")
    for machines in (workers,) if workers else (10, 100):
        typer.echo(f"at most {clock(cost.on_machines(machines))} on {machines} such machines")
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
    """Return how far the frontier of adaptive allocation lies from that of all stored runs."""
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
