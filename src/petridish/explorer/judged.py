"""Claims of an experiment as they stand, and the scoreboard of all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from petridish.explorer.record_runs import json_ready
from petridish.explorer.run_sets import RunSet, Snapshot
from petridish.publish.scoreboard import CHAPTERS, COUNTED, Written, counts, recorded, scores
from petridish.rules.claims import Judgement, Verdict
from petridish.rules.outcome_table import field_label, field_text
from petridish.rules.strata import judge_strata


def claims_of(found: RunSet, now: Snapshot) -> dict[str, Any]:
    """Judge the claims of an experiment, and each stratum of their rules alone.

    While runs are missing the verdicts are those of the runs so far. Of a sweep that is complete
    the store notes that they were shown, as `petridish verdicts` does.
    """
    experiment, sweep = found.experiment, found.sweep
    if experiment is None or sweep is None:
        return {"claims": [], "complete": False, "why": "No experiment declared these runs."}
    if found.part:
        return {"claims": [], "complete": False, "why": experiment.why_part(found.scale)}
    if not experiment.claims:
        return {"claims": [], "complete": False, "why": "This experiment declares no claims."}
    table = found.table(experiment.columns_needed(sweep, "claims"))
    if table.is_empty():
        return {"claims": [], "complete": False, "why": "There are no runs to judge yet."}
    complete = found.is_complete(table)
    if complete and found.kind == "sweep":
        asked = found.kept.folder, found.scale, found.settings  # type: ignore[attr-defined] # a store
        verdicts = experiment.judge_shown(table, *asked)
    else:
        verdicts = experiment.judge(table, found.scale)
    return {
        "claims": [_claim(verdict, table, now) for verdict in verdicts],
        "complete": complete,
        "runs": len(table),
        "of": found.size,
        "why": "",
    }


def _claim(verdict: Verdict, table: pl.DataFrame, now: Snapshot) -> dict[str, Any]:
    strata = judge_strata(verdict.claim.rule, table, verdict.level)
    marks: dict[str, list[int]] = {"for": [], "against": []}
    sides = {Judgement.SUPPORTED: "for", Judgement.CONTRADICTED: "against"}
    for stratum in strata:
        if stratum.judgement not in sides:
            continue
        inside = pl.lit(value=True)
        for name, value in stratum.values.items():
            if name in now.settings.columns:
                inside &= pl.col(name).eq_missing(pl.lit(value))
        chosen = now.settings.filter(inside)["setting"]
        marks[sides[stratum.judgement]] += chosen.to_list()
    named = [
        [
            ", ".join(f"{field_label(n)} {field_text(v)}" for n, v in each.values.items()),
            each.judgement.value,
        ]
        for each in strata
        if each.values
    ]
    return {
        **json_ready(verdict.as_json()),
        "word": verdict.word,
        "numbers": verdict.finding.numbers(),
        "marks": marks,
        "strata": named,
    }


def scoreboard_of(records: Path | None, sets: Iterable[RunSet]) -> dict[str, Any]:
    """Return every claim with its verdicts in records and stores, and counts by chapter.

    The same as `petridish scoreboard` has: at smoke scale verdicts mean nothing, and on a part of
    an experiment's settings its claims are not judged.
    """
    from petridish.chapters import EXPERIMENTS

    written = [] if records is None else recorded(records)
    for each in sets:
        experiment = each.experiment
        if each.kind != "sweep" or experiment is None or each.scale == "smoke" or each.part:
            continue
        if EXPERIMENTS.get(experiment.id) is experiment and each.sweep is not None:
            runs = each.table(experiment.columns_needed(each.sweep, "claims"))
            place = ", ".join([each.place, each.scale, *each.settings])
            if not runs.is_empty():
                written += [
                    Written(experiment.id, place, len(runs), verdict.as_json(), recorded=False)
                    for verdict in experiment.judge(runs, each.scale)
                ]
    if not written:
        return {"chapters": [], "counts": [], "claims": []}
    found = scores(EXPERIMENTS.values(), written)
    rows = [
        {**score.as_json(), "chapter": score.chapter, "numbers": score.numbers} for score in found
    ]
    return {
        "chapters": list(CHAPTERS.values()),
        "counts": [{"head": head, "rows": counts(found, kinds)} for head, kinds in COUNTED],
        "claims": json_ready(rows),
    }
