"""`petridish list`: every experiment, with its scales and claims."""

from __future__ import annotations

import typer

from petridish.cli.common import (
    Json,
    print_json,
)


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
            typer.echo(f"    ({claim.name}, {claim.kind}) {claim.text}")
