"""One experiment at smoke scale, through every command."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from petridish.chapters import EXPERIMENTS
from tests.conftest import Command


def serves_every_command(name: str, store: Path, inside: Command, tmp_path: Path) -> None:
    """`run --json` prints one document and trains nothing again; all figures are drawn.

    The report renders each figure as SVG, laid out as for a reader, the record as PNG without a
    layout, which takes most of the time: `figure` need not do both once more.
    """
    save = Figure.savefig

    def save_as_drawn(figure: Figure, path: Path, **how: Any) -> None:
        figure.set_layout_engine("none")
        save(figure, path, bbox_inches=figure.bbox_inches, **how)

    scale = ("--scale", "smoke", "--store", store)
    run = inside("run", name, *scale, "--executor", "inline", "--json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda _, path, **how: path.touch())
        drawn = inside("figure", name, *scale, "--out", "pictures")
    report = inside("report", name, "--store", store, "--out", "report.html")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", save_as_drawn)
        record = inside("record", name, *scale, "--out", "record")
    verdicts = inside("verdicts", name, *scale, "--json")

    assert run.returncode == drawn.returncode == report.returncode == verdicts.returncode == 0
    assert (record.returncode, record.stderr) == (0, "")
    assert drawn.stdout.split() == [
        f"pictures/{name}-smoke-{figure}.{kind}"
        for figure in EXPERIMENTS[name].drawings(EXPERIMENTS[name].scales["smoke"])
        for kind in ("png", "svg")
    ]
    page = html.unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "is not drawn" not in page
    assert all(claim.paper in page for claim in EXPERIMENTS[name].claims)
    assert run.stderr == ""
    found = json.loads(run.stdout)
    assert found["id"] == name
    assert found["scale"] == "smoke"
    for verdict in found["verdicts"]:
        assert {"claim", "verdict", "estimate", "low", "high", "n", "level"} <= set(verdict)
        assert verdict["verdict"] in ("supported", "contradicted", "undecided")
    summary = found["summary"]
    if all(part.allocate is None for part in EXPERIMENTS[name].sweep("smoke").grids()):
        assert summary["skipped"] == summary["runs"] > 0
    else:  # the runs that a search has no need of are not made
        assert 0 < summary["skipped"] < summary["runs"]
    assert found["summary"]["done"] == 0
    assert json.loads(verdicts.stdout)["verdicts"] == found["verdicts"]
