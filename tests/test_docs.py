"""The documentation does what it says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from petridish.store import Store
from petridish.training import flat
from tests.conftest import Command, SmokeStore
from tests.test_spec import SPEC

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```python\n# (\S+?\.py)(, continued)?\n(.*?)```", re.DOTALL)


def extend_files() -> dict[str, list[str]]:
    """Give the blocks of docs/extend.md, by the file they belong to."""
    files: dict[str, list[str]] = {}
    for name, _, code in BLOCK.findall((ROOT / "docs/extend.md").read_text(encoding="utf-8")):
        files.setdefault(name, []).append(code)
    return files


def test_extensions_are_short() -> None:
    """A class of one's own takes at most 25 lines, imports included; of two or three, that each."""
    for name, blocks in extend_files().items():
        lines = [line for line in blocks[0].splitlines() if line.strip()]
        classes = sum(line.startswith("class ") for line in lines)
        assert classes == 0 or len(lines) <= 25 * classes, name


CHECKED = [name for name, blocks in extend_files().items() if "petridish.testing" in blocks[-1]]


@pytest.mark.parametrize("name", CHECKED)
def test_every_extension_keeps_its_contract(name: str, tmp_path: Path) -> None:
    """As its last lines say: python my_task.py."""
    (tmp_path / name).write_text("\n".join(extend_files()[name]), encoding="utf-8")
    done = subprocess.run([sys.executable, name], cwd=tmp_path, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert CHECKED == ["my_task.py", "my_model.py", "my_metric.py"]


@pytest.mark.parametrize("name", extend_files())
def test_every_extension_runs(name: str, petridish: Command, tmp_path: Path) -> None:
    """With workers that must import the user's file, and again from the store."""
    (tmp_path / name).write_text("\n".join(extend_files()[name]), encoding="utf-8")
    first = petridish("run", name)
    again = petridish("run", name)

    assert first.returncode == again.returncode == 0, first.stderr
    table = Store(tmp_path / "petridish-store").read().table
    parents = 6 if name == "my_chain.py" else 0  # which nobody asks for again
    assert f"{len(table)} runs trained" in first.stderr
    found = len(table) - parents
    assert f"0 runs trained (0 solved) and {found} found in the store" in again.stderr
    assert (table["outcome"] == "SOLVED").any()


def test_the_sweep_in_the_readme_runs(petridish: Command, tmp_path: Path) -> None:
    """As printed, but for fewer steps and seeds."""
    ((name, _, code),) = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    (tmp_path / name).write_text(code, encoding="utf-8")
    done = petridish("run", name, "--set", "steps=300", "--set", "seed=0..1")

    assert done.returncode == 0, done.stderr
    assert "sparse_majority(50, 5), sparse(2): percent of runs solved" in done.stdout


def test_the_example_keeps_curves(petridish: Command, tmp_path: Path) -> None:
    """README's second step, made short: curves are trained and drawn."""
    example = ROOT / "examples/grokking.py"
    short = ("--set", "steps=400", "--set", "seed=0..1", "--set", "m=300,1000")
    assert petridish("run", example, *short).returncode == 0
    done = petridish("figure", example, *short)

    assert (
        done.stdout.split()[0]
        == "petridish-out/grokking-own-steps=400-seed=0..1-m=300_1000-curves.png"
    )
    assert all((tmp_path / file).stat().st_size > 1000 for file in done.stdout.split())


def test_the_store_page_names_every_column() -> None:
    """docs/store.md lists the columns that a run has."""
    page = (ROOT / "docs/store.md").read_text(encoding="utf-8")
    missing = [column for column in flat(SPEC) if f"`{column}`" not in page]

    assert missing == []


def test_a_row_of_a_store_leads_back_to_its_run(
    petridish: Command, smoke_store: SmokeStore, tmp_path: Path
) -> None:
    """The example of docs/store.md, in a folder with runs."""
    (block,) = BLOCK.findall((ROOT / "docs/store.md").read_text(encoding="utf-8"))
    shutil.copytree(smoke_store("PF-1"), tmp_path / "petridish-store")
    done = subprocess.run(
        [sys.executable, "-c", block[-1]], cwd=tmp_path, capture_output=True, encoding="utf-8"
    )

    assert done.stderr == ""
    assert done.stdout.startswith("SparseParity(n=")


def test_the_claims_about_arms_are_judged(inside: Command, tmp_path: Path) -> None:
    """The example of docs/statistics.md, as printed."""
    ((name, _, code),) = BLOCK.findall((ROOT / "docs/statistics.md").read_text(encoding="utf-8"))
    (tmp_path / name).write_text(code, encoding="utf-8")
    done = inside("run", name, "--executor", "inline")

    assert done.returncode == 0, done.stderr
    assert "48 runs trained" in done.stderr
    assert "median of steps until solved, sparse / dense (model.width = " in done.stdout
    assert "median of τ of steps until solved along model.width = " in done.stdout


def test_the_readme_commands_exist(petridish: Command) -> None:
    """Every `petridish …` in the README and the docs is a command with its options."""
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    )
    blocks = "".join(re.findall(r"```\n(.*?)```", text, re.DOTALL))
    commands = set(
        re.findall(r"^petridish ((?:store |tabular )?[a-z]+)\b(.*)$", blocks, re.MULTILINE)
    )
    assert len(commands) >= 5
    helps = {name: petridish(*name.split(), "--help").stdout for name, _ in commands}
    for name, rest in commands:
        assert helps[name], name
        for option in re.findall(r"--[a-z]+", rest):
            assert option in helps[name], (name, option)


def test_the_first_table_is_learned(tmp_path: Path) -> None:
    """docs/tabular.md's first example runs as printed, and is right in nearly all cases."""
    blocks = BLOCK.findall((ROOT / "docs/tabular.md").read_text(encoding="utf-8"))
    code = next(code for name, _, code in blocks if name == "first_table.py")
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    accuracy, *importances = done.stdout.splitlines()

    assert float(accuracy.removeprefix("accuracy ")) > 0.95
    assert len(importances) == 3


def test_the_table_of_errata_names_tests_that_exist() -> None:
    """Every row has four cells, says what fails, and names tests of this folder, or none."""
    page = (ROOT / "docs/errata.md").read_text(encoding="utf-8")
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in page.splitlines() if line[:1] == "|"]
    known = {
        name
        for file in (ROOT / "tests").glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }

    assert len(rows) > 30
    for statement, fails, _, tests in rows[2:]:
        assert statement.strip()
        assert re.match(r" (statement|proof|print)\b", fails)
        assert set(re.findall(r"`(test_\w+)`", tests)) <= known
    assert set(re.findall(r"`(test_\w+)`", page)) <= known
