"""`petridish verdicts`: judge the claims from what is stored."""

from __future__ import annotations

import typer

from petridish.cli.common import (
    DEFAULT_STORE,
    Id,
    Json,
    Scale,
    Settings,
    StoreDir,
    chosen_runs,
    exit_code,
    find_sweep,
    print_json,
    read_runs,
)


def verdicts(
    name: Id,
    scale: Scale = None,
    store: StoreDir = DEFAULT_STORE,
    settings: Settings = None,
    json: Json = False,
) -> int:
    """Judge the claims of an experiment from what is stored.

    A verdict is «supported» or «contradicted» if the runs speak significantly for the claim or
    against it, and «undecided» otherwise. It has an estimate, an interval and the number n of runs.
    The level, the risk of a wrong verdict, is shared by the claims of an experiment. Claims are
    the paper's, or ours; a check, which no run could contradict, holds, fails or is open. At smoke
    scale verdicts mean nothing.
    """
    experiment, scale, sweep = find_sweep(name, scale, settings)
    reading = read_runs(store, columns=experiment.columns_needed(sweep, "claims"))
    runs = chosen_runs(sweep, reading.table, name, store)
    found = experiment.judge_shown(runs, store, scale, settings or ())
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
        for line in verdict.notes:
            typer.echo(f"    → {line}")
    if not found:
        typer.echo("No claims are declared.")
    return exit_code(reading.problems)
