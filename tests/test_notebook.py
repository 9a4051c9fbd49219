"""A notebook in a real kernel: own task, own module with dropout, own metric, three axes."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

SOURCE = Path(__file__).with_name("notebook_regression.py")


def outputs(cells: list[str], folder: Path) -> list[str]:
    """Run cells one after another in one kernel, and return what each printed."""
    code, new = nbformat.v4.new_code_cell, nbformat.v4.new_notebook
    notebook = new(cells=[code(cell) for cell in cells])  # type: ignore[no-untyped-call] # it has no types
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return [
        "".join(part.get("text", "") for part in cell.outputs if part.output_type == "stream")
        for cell in notebook.cells
    ]


def test_a_regression_of_ones_own(tmp_path: Path) -> None:
    """64 runs are trained once, found again, and judged by the metric that the notebook defines.

    A cell that defines the metric anew with another meaning makes other runs of it.
    """
    _, *cells = SOURCE.read_text(encoding="utf-8").split("# %%\n")
    edited = next(cell for cell in cells if "class Far" in cell).replace("> self.by", ">= self.by")
    sweep = next(cell for cell in cells if cell.startswith("SWEEP = "))
    *_, trained, table, verdict, again, _, _, changed = outputs(
        [*cells, edited, sweep, "print(run_sweep(SWEEP, STORE, executor='inline').done)"], tmp_path
    )
    assert trained == "64\n"
    assert table == "64 ['wave(2, 0.5)', 'wave(2, 3.0)']\n"
    assert verdict.startswith("(a, ours) SUPPORTED: median of τ of test_far at the end along ")
    assert again == "0\n"
    assert changed == "64\n"
