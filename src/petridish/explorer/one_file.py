"""The page as one file: the answers to the questions that it may ask, inside it."""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import polars as pl

from petridish.errors import UserError
from petridish.explorer import aggregation, details, judged
from petridish.explorer.answers import Explorer, as_json
from petridish.explorer.run_sets import RunSet, RunSets, Snapshot
from petridish.explorer.server import SCRIPTS, own_file, plotly_script, shell

LARGEST = 15_000_000  # bytes of a file
POINTS = (64, 32, 16, 8)  # of a curve: fewer where the file would be too large
CURVES = ("test_error", "train_error", "train_loss")  # kept of each run, as far as it has them
MOST_CURVES = 2  # of these
MOST_RUNS = 20_000  # of all sets together, of which curves are kept
MOST_LISTED = 100_000  # of all sets together, in the tables of their settings
MOST_DRAWN = 2_000  # settings of a set, each with curves of its own


def write_file(
    stores: Sequence[Path], records: Path | None, out: Path, *, chosen: Sequence[str] = ()
) -> str:
    """Write the page of some stores as one file, and return what it holds, in words.

    Curves are thinned until the file is smaller than 15 MB; arrays and weights are left out, as is
    the calculator. Of the records, those named by `chosen` are shown.
    """
    explorer = Explorer(RunSets(stores, records if chosen else None))
    found = explorer.sets.all().values()
    sets = [each for each in found if each.kind != "record" or Path(each.place).name in chosen]
    scores = judged.scoreboard_of(records, sets)
    packed_plotly = _packed(plotly_script())
    note, page = "", ""
    for points in (*POINTS, 0):
        answers, note = _answers(explorer, sets, scores, points)
        page = _page(answers, note, packed_plotly)
        if len(page.encode()) < LARGEST:
            break
    else:
        raise UserError(
            f"The page would have {len(page) / 1e6:.0f} MB without any curves. Give --store a "
            "folder with fewer settings."
        )
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    made = "" if out.parent.is_dir() else f"The folder {out.parent} was made. "
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(page, encoding="utf-8")
        part.replace(out)
    except OSError as error:
        raise UserError(
            f"{out} cannot be written: {error.strerror}. Give another --export."
        ) from error
    return f"{made}{len(page.encode()) / 1e6:.1f} MB. {note}"


def _page(answers: dict[str, Any], note: str, plotly: str) -> str:
    return shell(
        scripts=[],
        inline="\n".join(own_file(name) for name in SCRIPTS),
        data=_packed(as_json(answers)),
        plotly=plotly,
        note=note,
    )


def _packed(content: bytes) -> str:
    """Return bytes gzipped, in base 64; the same bytes give the same text."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def _answers(
    explorer: Explorer, sets: Sequence[RunSet], scores: dict[str, Any], points: int
) -> tuple[dict[str, Any], str]:
    """Return the answers by their questions, and what was left out, in words."""
    home = {**json.loads(explorer.answer("home", {})), "problems": []}
    found: dict[str, Any] = {"home": home, "scoreboard": scores}
    left, places = MOST_RUNS, dict[int, pl.DataFrame]()
    settings = sum(len(each.snapshot().settings) for each in sets)
    listed = max(1, MOST_LISTED // max(settings, 1))
    shown = []
    for each in sets:
        now = each.snapshot()
        if each.kind == "store" and len(sets) > 1 and _covered(sets, each):
            continue  # its runs are those of the experiments
        shown.append(each.name)
        most = min(left, len(now.runs)) if points and now.curves else 0
        left -= most
        held = now.runs.select("shard", "row")  # two sweeps may have the same runs
        held = pl.concat([held, places.get(id(each.kept), held.clear())]).unique()
        places[id(each.kept)] = held
        found |= dict(_of_set(explorer, each, now, points, most, listed))
    home["sets"] = [summary for summary in home["sets"] if summary["name"] in shown]
    drawn = {name: len(answer["runs"]) for name, answer in found.items() if "curves?" in name}
    kept = max((sum(_of_curve(drawn, curve)) for curve in CURVES), default=0)
    curves = (
        f"Curves of {kept:,} runs, thinned to {points} points at most."
        if kept
        else "There are no curves in it."
    )
    short = any(s["n"] > len(s["runs"][0]) for name, s in found.items() if name[:8] == "setting?")
    tables = f"Tables have the first {listed:,} runs of a setting. " if short else ""
    left_out = "Weights and arrays are left out."
    whole = sum(map(len, places.values()))
    return found, f"{whole:,} runs, as one file. {curves} {tables}{left_out}"


def _of_curve(drawn: dict[str, int], curve: str) -> list[int]:
    """Return how many runs each question about one curve shows."""
    return [count for name, count in drawn.items() if f"curve={curve}&" in name]


def _covered(sets: Sequence[RunSet], whole: RunSet) -> bool:
    """Return whether the experiments of a store have all of its runs."""
    parts = [s.snapshot().runs for s in sets if s.kind == "sweep" and s.kept is whole.kept]
    places = {place for runs in parts for place in runs.select("shard", "row").iter_rows()}
    return len(places) == len(whole.snapshot().runs)


def _of_set(
    explorer: Explorer, found: RunSet, now: Snapshot, points: int, most: int, listed: int
) -> Iterator[tuple[str, Any]]:
    """Yield the questions about a set of runs, each with its answer.

    Of each setting so many runs are `listed`; `most` of all have curves, thinned to `points`.
    """
    of = {"of": found.name}
    about = json.loads(explorer.answer("set", of))
    yield _question("set", of), about
    for value in about["values"]:
        asked = {**of, "value": value}
        try:
            yield _question("value", asked), json.loads(explorer.answer("value", asked))
        except UserError:  # such as an instrument of too many runs
            about["values"] = [name for name in about["values"] if name != value]
    yield _question("dots", of), json.loads(explorer.answer("dots", of))
    yield _question("claims", of), judged.claims_of(found, now)
    if about["curves"]:
        yield _question("stairs", of), aggregation.staircases(found, now, most=max(most, 1))
    each = -(-most // max(len(now.settings), 1))
    for name in now.settings["id"]:
        asked = {**of, "id": name}
        setting = details.setting_of(found, now, name, most=min(listed, details.MOST_RUNS))
        curves = [curve for curve in CURVES if curve in setting["curves"]][:MOST_CURVES]
        setting["curves"] = curves if points and len(now.settings) <= MOST_DRAWN else []
        yield _question("setting", asked), setting
        for curve in setting["curves"]:
            drawn = details.curves_of(found, now, name, curve, points=points, most=each)
            yield _question("curves", {**asked, "curve": curve}), drawn


def _question(what: str, asked: dict[str, str]) -> str:
    """Return the name under which the page's script asks for an answer."""
    return f"{what}?{urlencode(sorted(asked.items()))}"
