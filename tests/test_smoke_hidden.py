"""Every experiment of HP at smoke scale; two files, for two cores."""

from __future__ import annotations

from pathlib import Path

import pytest

from petridish.chapters import EXPERIMENTS
from tests.conftest import Command
from tests.smoke_runs import runs_at_smoke_scale

KINDS = ("HP",)


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name.startswith(KINDS)])
def test_every_experiment_runs_at_smoke_scale(name: str, inside: Command, tmp_path: Path) -> None:
    """`run`, `figure`, `report` and `record`, and `run` again."""
    runs_at_smoke_scale(name, inside, tmp_path)
