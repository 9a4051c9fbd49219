"""`petridish figure`: draw an experiment from what is stored."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from petridish.cli import axes
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
    from petridish.store import Columns
    from petridish.sweeps import Sweep

LONGEST_LABEL = 80  # letters of a file's name that say what was asked for


def figure(
    name: Id,
    scale: Scale = None,
    store: StoreDir = DEFAULT_STORE,
    out: Out = DEFAULT_OUT,
    settings: Settings = None,
    rows: axes.Rows = None,
    columns: axes.Columns = None,
    panels: axes.Panels = None,
    colour: axes.Colour = None,
    value: axes.Value = None,
    best_over: axes.BestOver = None,
    best: axes.BestEnd = None,
) -> int:
    """Draw an experiment from what is stored, as PNG and SVG.

    Over chosen axes with --rows, --columns, --panels, --colour, --value or --best-over.
    """
    experiment, scale, sweep = find_sweep(name, scale, settings)
    shown = axes.AxisOptions(rows, columns, panels, colour, value, best_over, best)
    needed: Columns = shown.check(sweep)
    if not shown.asked:
        needed = experiment.columns_needed(sweep, "figures")
    reading = read_runs(store, columns=needed)
    runs = chosen_runs(sweep, reading.table, name, store)
    # Another sweep is another picture: its settings are part of the name.
    asked = [f"{option}={text}" for option, text in shown.asked.items()]
    label = file_label([scale, *(settings or []), *asked])
    title = experiment.headed(experiment.title, scale, settings or ())
    for file in write_figures(experiment, sweep, runs, out, label, shown, title=title):
        typer.echo(str(file))
    return exit_code(reading.problems)


def file_label(parts: Sequence[str]) -> str:
    """Return a part of a file's name from what was asked for; of a long one a hash."""
    first, *rest = (re.sub(r"[^\w.=+-]+", "_", part) for part in parts)
    text = "-".join([first, *rest])
    if len(text) <= LONGEST_LABEL:
        return text
    return f"{first}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def write_figures(
    experiment: Experiment,
    sweep: Sweep,
    runs: pl.DataFrame,
    out: Path,
    scale: str,
    shown: axes.AxisOptions | None = None,
    *,
    title: str | None = None,
) -> list[Path]:
    """Draw and save every figure of an experiment, or the one over the axes asked for."""
    from petridish.figures.outcome_map import outcome_map
    from petridish.figures.style import NothingToDraw, as_figure, save
    from petridish.rules.varying import axis_order

    outcomes = partial(outcome_map, first=axis_order(sweep))
    asked = shown.asked if shown is not None else {}
    drawings = {"outcomes": partial(outcomes, **asked)} if asked else experiment.drawings(sweep)
    title = title or experiment.headed(experiment.title, scale)
    files: list[Path] = []
    missing: list[str] = []
    for name, draw in drawings.items():
        try:
            drawn = draw(runs, title)
        except NothingToDraw as reason:
            missing.append(f"The figure {name} is not drawn. {reason}")
        except UserError as reason:
            if asked:
                raise
            # Made for other axes than those that vary by --set: what varies is drawn instead.
            missing.append(f"The figure {name} is not drawn as declared. {reason}")
            if not any("-outcomes." in file.name for file in files):
                files += save(outcomes(runs, title), out, f"{experiment.id}-{scale}-outcomes")
        else:
            drawn = as_figure(drawn, name, draw)
            files += save(drawn, out, f"{experiment.id}-{scale}-{name}")
    if missing and not files:
        raise UserError(" ".join(missing))
    for sentence in missing:
        print(f"petridish: {sentence}", file=sys.stderr)
    return files
