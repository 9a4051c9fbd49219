"""`petridish scoreboard`: every claim with its verdicts, from records and store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from petridish.cli.common import (
    DEFAULT_STORE,
    Json,
    StoreDir,
    find_sweep,
    print_json,
    read_runs,
)
from petridish.errors import UserError
from petridish.text_columns import in_columns

if TYPE_CHECKING:
    from petridish.publish.scoreboard import Written
    from petridish.store import Columns


def scoreboard(
    records: Annotated[
        Path, typer.Option(help="The folder of records, such as the repository's.")
    ] = Path("records"),
    store: StoreDir = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Print every claim with its verdicts in records and store.

    The verdict that counts comes first: that of the record with most runs, or, without a record, of
    the stored scale with most runs; one in which there was nothing to judge comes last. What else a
    claim has is printed below it, as «also». The paper's claims and ours are counted apart; a
    check, which no run could contradict, holds, fails or is open, and is never counted as
    supported. Of an experiment of which --set chose some of the settings, claims are not judged.
    """
    from petridish.chapters import EXPERIMENTS
    from petridish.publish.scoreboard import COUNTED, counts, recorded, scores

    verdicts = [*recorded(records), *(_stored(store) if store.is_dir() else ())]
    if not verdicts:
        raise UserError(
            f"There are no records in {records}, and no runs in {store} at a scale above "
            "smoke, which shows no verdict. Give --records a folder of records, such as the "
            "repository's, or fill a store by `petridish run`."
        )
    found = scores(EXPERIMENTS.values(), verdicts)
    if json:
        print_json(
            {
                "claims": [score.as_json() for score in found],
                "counts": [
                    {name: int(text) if text.isdigit() else text for name, text in row}
                    for head, kinds in COUNTED
                    for row in (zip(head, row, strict=True) for row in counts(found, kinds))
                ],
            }
        )
        return
    for score in found:
        name = f"{score.experiment} ({score.claim}, {score.shown_kind})"
        if not score.largest:
            name = f"  {score.experiment} ({score.claim}) {'arm' if score.arm else 'also'}"
        numbers = f"{score.numbers}, n = {score.n}" if score.numbers else ""
        of = f"  {numbers}  {score.record}" if score.record else ""
        typer.echo(f"{name:<26} {score.word.upper()}{of}")
        if not name.startswith(" "):  # what else the claim has follows at once
            typer.echo(f"    {score.text}")
            if score.paper:
                typer.echo(f"    The paper: {score.paper}")
    for head, kinds in COUNTED:
        lines = in_columns([head, *counts(found, kinds)], left=range(len(head)))
        typer.echo("\n".join(["", *lines]))


def _stored(store: Path) -> list[Written]:
    """Judge what was run into a store.

    But for smoke scale, at which verdicts mean nothing, and parts of an experiment's settings.
    """
    from petridish.chapters import EXPERIMENTS
    from petridish.publish.scoreboard import Written
    from petridish.store.requests import requests

    asked = [
        (request, find_sweep(request.name, request.scale, list(request.settings)))
        for request in requests(store)
        if request.name in EXPERIMENTS and not request.own and request.scale != "smoke"
    ]
    asked = [
        (request, (experiment, scale, sweep))
        for request, (experiment, scale, sweep) in asked
        if not experiment.is_part(scale, request.settings, sweep)
    ]
    if not asked:
        return []
    needed = [experiment.columns_needed(sweep, "claims") for _, (experiment, _, sweep) in asked]
    columns: Columns = "all" if "all" in needed else {name for each in needed for name in each}
    table = read_runs(store, columns=columns).table
    found = []
    for request, (experiment, scale, sweep) in asked:
        runs = sweep.among(table)
        place = f"{store}, {' '.join([scale, *request.settings])}"
        if not runs.is_empty():
            found += [
                Written(experiment.id, place, len(runs), verdict.as_json(), recorded=False)
                for verdict in experiment.judge(runs, scale)
            ]
    return found
