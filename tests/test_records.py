"""The records in the repository: what they say follows from the runs they keep."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

from petridish.chapters import EXPERIMENTS
from petridish.figures.style import NothingToDraw
from petridish.publish.records import (
    PROVENANCE,
    read_record,
    read_sweep,
    summary,
    write_record,
)
from petridish.rules.cells import Grid, grid
from petridish.rules.frontier import replayed_frontiers
from petridish.sweeps.adaptive import first_seeds
from petridish.training import cell_text, flat, read_cell
from tests.agreement import RELATIVE, differences
from tests.golden import FILES, verdicts_of
from tests.golden import written as golden
from tests.remarks import kinds
from tests.test_golden import assert_unchanged

RECORDS = sorted(
    path.parent for path in (Path(__file__).parent.parent / "records").glob("*/spec.json")
)
PANEL = next(folder for folder in RECORDS if folder.name.endswith("PF-1-panel"))
# The columns of summary.csv that are rounded, with the unit of their last digit.
ROUNDED = {"low": 1e-4, "high": 1e-4, "mean_error": 1e-5, "median_error": 1e-5, "deviation": 1e-5}
FULL = 1_000  # the widths up to here have all 50 seeds in every cell


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_a_records_verdicts_follow_from_its_runs(folder: Path) -> None:
    """Judged again from the table alone, every claim comes out as it is written there.

    To rounding, which is the processor's. Claims that need curves are left out: records keep none.
    """
    spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
    written = {
        each["claim"]: each
        for each in json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    }
    for name, again in verdicts_of(folder.name).items():
        if again["remark"] != "these runs kept no curves":
            before = written[name]
            assert differences(again, before) == [], f"{again} was {before}"
    assert len(read_record(folder)) == spec["runs"]
    assert (folder / "README.md").is_file()


def test_the_verdicts_of_all_records_are_what_they_were() -> None:
    """Also where a record was written anew; judged once, by the test above."""
    assert_unchanged(FILES["verdicts"](), golden("verdicts"))


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_a_record_says_the_kinds_that_its_claims_have(folder: Path) -> None:
    """In its verdicts as they are declared for its scale, and in its page where that has them."""
    spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
    written = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    declared = {c.name: c.at(spec["scale"]).kind for c in EXPERIMENTS[spec["id"]].claims}
    page = (folder / "README.md").read_text(encoding="utf-8")

    assert {each["claim"]: each["kind"] for each in written}.items() <= declared.items()
    assert [line for line in page.splitlines() if line.startswith("Kinds of the claims:")] in (
        [],
        [kinds(written)],
    )


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_a_records_summary_follows_from_its_runs(folder: Path) -> None:
    """The cells of summary.csv, counted again."""
    again = summary(read_record(folder)).drop("core_seconds", strict=False)
    written = pl.read_csv(folder / "summary.csv", schema_overrides=again.schema, infer_schema=False)
    floats = [name for name, kind in again.schema.items() if kind.is_float()]

    assert again.drop(floats).equals(written.select(again.columns).drop(floats))
    for name in floats:
        place = ROUNDED.get(name, 0.0)  # a tie may be rounded either way
        here, there = again[name].to_numpy(), written[name].to_numpy()
        assert np.allclose(here, there, rtol=RELATIVE, atol=1.01 * place, equal_nan=True), name


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_every_run_of_a_record_has_its_cell(folder: Path) -> None:
    """It is rebuilt from spec.json: an object whose fields are the run's columns."""
    runs = read_record(folder)
    written = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
    declared = {cell_text(spec) for spec, _ in read_sweep(written["sweep"]).cells()}
    distinct = runs.unique("cell", keep="first").drop("seed")

    assert set(distinct["cell"]) <= declared
    assert runs["cell"].null_count() == 0
    for row in distinct.to_dicts():
        columns = flat(read_cell(row["cell"]))
        for name in columns.keys() & row.keys():
            there = row[name]
            same = str(columns[name]) == there if isinstance(there, str) else columns[name] == there
            assert same, f"{name}: {columns[name]} was {there}"


def test_a_record_of_today_lists_its_cells(tmp_path: Path) -> None:
    """Written and read back, the runs have the cells that they had, and the same verdicts."""
    experiment = EXPERIMENTS["PF-1"]
    runs = read_record(PANEL).with_columns(*(pl.lit("1").alias(n) for n in (*PROVENANCE, "key")))
    sweep = experiment.scales["panel"]
    write_record(experiment, "panel", sweep, runs, [], tmp_path)
    cells = json.loads((tmp_path / "cells.json").read_text(encoding="utf-8"))
    again = read_record(tmp_path)
    (tmp_path / "cells.json").unlink()
    pl.read_parquet(tmp_path / "runs.parquet").drop("cell").write_parquet(tmp_path / "runs.parquet")
    rebuilt = read_record(tmp_path)

    assert len(cells) == runs["cell"].n_unique() == 216
    by = ["cell", "seed"]
    assert again.select(by).sort(by).equals(runs.select(by).sort(by))
    assert rebuilt.select(by).equals(again.select(by))
    assert experiment.judge(again) == experiment.judge(runs)


def full_panel() -> tuple[Grid, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """Return the recorded cells that have every seed, and each run's steps in the same places."""
    runs = read_record(PANEL).filter(pl.col("model.width") <= FULL)
    counts = grid(runs, rows="model.width", columns="data.m", strata=["task", "init"])
    steps = np.zeros(counts.outcome.shape)
    columns = ["task", "init", "model.width", "data.m", "seed", "steps"]
    for task, init, width, m, seed, taken in runs.select(columns).iter_rows():
        place = (
            counts.strata.index((task, init)),
            counts.rows.index(width),
            counts.columns.index(m),
            counts.seeds.index(seed),
        )
        steps[place] = taken
    return counts, steps


def test_adaptive_allocation_finds_the_frontier_for_a_quarter() -> None:
    """Replayed on the full grid: within one step of the frontier, from 25 % of its model-steps."""
    counts, steps = full_panel()
    whole, part = replayed_frontiers(counts)

    assert np.all(counts.runs == 50)
    assert np.abs(whole - part).max() <= 1
    assert steps[first_seeds(counts.outcome)].sum() <= 0.25 * steps.sum()


def test_every_cell_that_is_not_settled_has_its_full_seeds() -> None:
    """The promise of adaptive allocation, for the whole record."""
    runs = read_record(PANEL)
    counts = grid(runs, rows="model.width", columns="data.m", strata=["task", "init"])
    wanted = first_seeds(counts.outcome[..., :50]).sum(axis=-1)

    assert np.all(counts.runs >= wanted)


def test_a_figure_that_a_scale_cannot_show_is_left_out(tmp_path: Path) -> None:
    """The record is whole without it."""
    folder = next(folder for folder in RECORDS if folder.name.endswith("PF-7-laptop"))
    runs = read_record(folder).with_columns(
        *(pl.lit("1").alias(name) for name in (*PROVENANCE, "key"))
    )

    def nothing(table: pl.DataFrame, title: str) -> Figure:
        raise NothingToDraw("There is nothing.")

    experiment = replace(EXPERIMENTS["PF-7"], figures={"none": nothing})
    sweep = experiment.scales["smoke"]
    files = write_record(experiment, "smoke", sweep, runs, [], tmp_path)

    assert sorted(file.name for file in files) == [
        *("cells.json", "runs.parquet", "spec.json", "summary.csv", "verdicts.json")
    ]
