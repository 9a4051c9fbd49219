"""`petridish figure`: draw an experiment from what is stored."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from petridish.cli.common import (
    DEFAULT_OUT,
    DEFAULT_STORE,
    Id,
    Out,
    Scale,
    Settings,
    StoreDir,
    chosen_runs,
    exit_code,
    find_sweep,
    read_runs,
)
from petridish.errors import UserError

if TYPE_CHECKING:
    import polars as pl

    from petridish.experiment import Experiment
    from petridish.sweeps import Sweep


def figure(
    name: Id,
    scale: Scale = None,
    store: StoreDir = DEFAULT_STORE,
    out: Out = DEFAULT_OUT,
    settings: Settings = None,
) -> int:
    """Draw an experiment from what is stored, as PNG and SVG."""
    experiment, scale, sweep = find_sweep(name, scale, settings)
    reading = read_runs(store, columns=experiment.columns_needed(sweep, "figures"))
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
