"""One experiment at smoke scale, through every command."""

from __future__ import annotations

import html
import json
from pathlib import Path

from petridish.chapters import EXPERIMENTS
from tests.conftest import Command


def runs_at_smoke_scale(name: str, inside: Command, tmp_path: Path) -> None:
    """`run --json` prints one document; running again trains nothing; all figures are drawn."""
    run = ("run", name, "--scale", "smoke", "--executor", "inline", "--json")
    first, again = inside(*run), inside(*run)
    drawn = inside("figure", name, "--scale", "smoke", "--out", "pictures")
    report = inside("report", name, "--out", "report.html")
    record = inside("record", name, "--scale", "smoke", "--out", "record")

    assert first.returncode == again.returncode == drawn.returncode == report.returncode == 0
    assert (record.returncode, record.stderr) == (0, "")
    assert drawn.stdout.split() == [
        f"pictures/{name}-smoke-{figure}.{kind}"
        for figure in EXPERIMENTS[name].figures
        for kind in ("png", "svg")
    ]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "is not drawn" not in page
    assert all(html.escape(claim.paper) in page for claim in EXPERIMENTS[name].claims)
    assert first.stderr == ""
    found, second = json.loads(first.stdout), json.loads(again.stdout)
    assert found["id"] == name
    assert found["scale"] == "smoke"
    for verdict in found["verdicts"]:
        assert {"claim", "verdict", "estimate", "low", "high", "n", "level"} <= set(verdict)
        assert verdict["verdict"] in ("supported", "contradicted", "undecided")
    assert found["summary"]["done"] == second["summary"]["skipped"] == found["summary"]["runs"]
    assert second["summary"]["done"] == 0
    assert second["verdicts"] == found["verdicts"]
