"""Every example runs as a script, at a small size; those that declare a sweep are checked too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from petridish.experiment import user_experiment

EXAMPLES = Path(__file__).parent.parent / "examples"
SMALL = {
    "frontier.py": ["seed=0..5", "r=100,300", "m=300,1000", "steps=1000"],
    "own_module.py": ["seed=0,1", "steps=100"],
    "metric_and_claim.py": ["seed=0,1", "steps=100"],
    "small_table.py": ["90"],
    "paper_figure.py": ["smoke"],
}
SAID = {
    "frontier.py": "model.width",
    "own_module.py": "mean size of the weights of each bit: [",
    "metric_and_claim.py": "(a, ours) ",
    "small_table.py": "SparseMLPClassifier: accuracy ",
    "paper_figure.py": "(a, paper) ",
}


@pytest.mark.parametrize("name", SMALL)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    """In an empty folder, without warnings."""
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name, *SMALL[name]],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert SAID[name] in done.stdout


def test_the_list_of_examples_is_whole() -> None:
    """One line per file; each that declares a sweep can be given to the command line."""
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    files = sorted(path.name for path in EXAMPLES.glob("*.py"))
    assert [name for name in files if f"| [{name}]({name}) |" not in text] == []
    assert {*SMALL, "grokking.py"} == {*files}
    for name in ("frontier.py", "own_module.py", "metric_and_claim.py", "grokking.py"):
        assert len(user_experiment(EXAMPLES / name).scales) == 1
