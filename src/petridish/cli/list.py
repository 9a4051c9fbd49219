"""`petridish list`: every experiment, one in full, or what shows a figure of a paper."""

from __future__ import annotations

import gc
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from petridish.cli.common import Json, find_experiment, print_json
from petridish.text_columns import in_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from petridish.chapters.inventory import Item
    from petridish.experiment import Experiment

TRAINS = ("petridish run", "petridish tabular bench")


def list_experiments(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID|PLACE]",
            help="One experiment or a file of your own, in full; or a place in a paper, such as "
            '"HP Fig. B.10", "PF Theorem 4" or PF.',
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List all experiments, or show one, or a place in a paper."""
    with _collector_off():
        from petridish.chapters import EXPERIMENTS
    from petridish.chapters.inventory import find_items, is_place
    from petridish.sweeps.progress import count

    if name is not None and is_place(name):
        items = find_items(name)
        if json:
            print_json([item.as_json() for item in items])
        else:
            typer.echo("\n".join(map(_shown, items)))
        return
    experiments = list(EXPERIMENTS.values()) if name is None else [find_experiment(name)]
    if json:
        print_json([experiment.as_json() for experiment in experiments])
        return
    if name is not None:
        _describe(experiments[0])
        return
    rows = []
    for experiment in experiments:
        scale = experiment.default_scale()
        sweep = experiment.sweep(scale)
        size = f"{len(sweep)} runs", f"{count(sweep.model_steps)} steps"
        rows.append((experiment.id, scale, *size, experiment.title))
    typer.echo("\n".join(in_columns(rows, left={0, 4})))
    typer.echo(
        "Steps are the most there can be. `petridish list ID` shows scales and claims, and "
        '`petridish list "PF Fig. 4"` what shows a place in a paper.'
    )


@contextmanager
def _collector_off() -> Iterator[None]:
    """Do not look for garbage among what is declared: it took an eighth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _shown(item: Item) -> str:
    """Return the lines of an item: its places, its mark, what shows it, and what to type."""
    also = f" (also {', '.join(item.at[1:])})" if item.at[1:] else ""
    rows = [
        ("mark", f"{item.mark}. {item.reason}" if item.reason else item.mark),
        *(("shown by", shown.place) for shown in item.by),
        *(("drawn", str(path)) for path in _drawn(item)),
        *(("type", command) for command in _priced(item.commands)),
    ]
    lines, last = [f"{item.name}{also}: {item.what}"], ""
    for label, text in rows:
        lines.append(f"    {'' if label == last else label:<10}{text}")
        last = label
    return "\n".join(lines)


def _drawn(item: Item) -> list[Path]:
    """Return the pictures of an item in the records, where there is a folder of them."""
    return [
        drawn[-1]
        for shown in item.by
        if shown.part == "figure" and (drawn := sorted(Path("records").glob(shown.pictures)))
    ]


def _priced(commands: Sequence[str]) -> Iterator[str]:
    """Yield commands: the smoke scale's first, which take seconds, then all, runs with their size.

    What is drawn or reported at smoke scale is what the item has at its usual one.
    """
    from petridish.sweeps.progress import count

    asked = [_of_experiment(command) for command in commands]
    quick = dict.fromkeys(
        f"petridish {verb} {experiment.id} --scale smoke"
        for verb, experiment, _ in filter(None, asked)
        if "smoke" in experiment.scales
    )
    for command in quick:
        yield f"{command}  # seconds" if command.startswith(TRAINS) else command
    for command, found in zip(commands, asked, strict=True):
        if command in quick:
            continue
        if found is None or not command.startswith(TRAINS):
            yield command
            continue
        sweep = found[1].sweep(found[2])
        size = f"{len(sweep)} runs, {count(sweep.model_steps)} steps"
        yield f"{command}  # {found[2]}: {size}; plan prices it"


def _of_experiment(command: str) -> tuple[str, Experiment, str] | None:
    """Return verb, experiment and scale of a command that trains, draws or reports; else None."""
    from petridish.chapters import EXPERIMENTS

    verbs = "run|figure|report|tabular bench --experiment"
    found = re.fullmatch(rf"petridish ({verbs}) (\S+)(?: --scale (\S+))?", command)
    experiment = EXPERIMENTS.get(found[2]) if found else None
    if found is None or experiment is None:
        return None
    return found[1], experiment, found[3] or experiment.default_scale()


def _describe(experiment: Experiment) -> None:
    from petridish.sweeps.progress import count

    typer.echo(f"{experiment.id}  {experiment.title}  [{experiment.source}]")
    rows = [
        (f"    {name}", f"{len(sweep)} runs", f"{count(sweep.model_steps)} model-steps at most")
        for name, sweep in experiment.scales.items()
    ]
    typer.echo("\n".join(in_columns(rows, left={0})))
    for claim in experiment.claims:
        where = f" [judged at {', '.join(claim.judged_at)}]" if claim.judged_at else ""
        typer.echo(f"    ({claim.name}, {claim.kind}) {claim.text}{where}")
