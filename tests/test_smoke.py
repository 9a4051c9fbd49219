"""Every experiment of PF, FE, FL, IH and VC at smoke scale; two files, for two cores."""

from __future__ import annotations

from pathlib import Path

import pytest

from petridish.chapters import EXPERIMENTS
from tests.conftest import Command, SmokeStore
from tests.smoke_runs import serves_every_command

KINDS = ("PF", "FE", "FL", "IH", "VC")


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name.startswith(KINDS)])
def test_every_experiment_runs_at_smoke_scale(
    name: str, smoke_store: SmokeStore, inside: Command, tmp_path: Path
) -> None:
    """Trained, then `run` again, `verdicts`, `figure`, `report` and `record`."""
    serves_every_command(name, smoke_store(name), inside, tmp_path)


def test_every_experiment_is_of_one_of_the_kinds() -> None:
    """A new kind must join one of the two files."""
    assert all(name.startswith((*KINDS, "HP")) for name in EXPERIMENTS)
