"""A notebook in a real kernel: own task, own module with dropout, own metric, three axes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

SOURCE = Path(__file__).with_name("notebook_regression.py")


def executed(cells: list[str], folder: Path, *, allow_errors: bool = False) -> list[Any]:
    """Run cells one after another in one kernel, and return them with their outputs."""
    code, new = nbformat.v4.new_code_cell, nbformat.v4.new_notebook
    notebook = new(cells=[code(cell) for cell in cells])  # type: ignore[no-untyped-call] # it has no types
    client = NotebookClient(
        notebook,
        timeout=600,
        startup_timeout=600,
        kernel_name="python3",
        allow_errors=allow_errors,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    return list(notebook.cells)


def outputs(cells: list[str], folder: Path) -> list[str]:
    """Run cells one after another in one kernel, and return what each printed."""
    return [
        "".join(part.get("text", "") for part in cell.outputs if part.output_type == "stream")
        for cell in executed(cells, folder)
    ]


def test_the_guide_is_a_notebook(tmp_path: Path) -> None:
    """Every block of docs/guides/notebook.md runs as a cell, and shows what it promises."""
    guide = SOURCE.parent.parent / "docs/guides/notebook.md"
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    cells = executed(blocks, tmp_path)
    shown = [cell.outputs[-1].get("data", {}) for cell in cells]
    kinds = ["text/html"] * 5 + ["image/png"] * 2 + ["text/html"] * 3 + ["text/plain"] * 2
    assert len(shown) == len(kinds)
    for cell, kind, data in zip(cells, kinds, shown, strict=True):
        assert kind in data, cell.source
    assert "36 of 36" in shown[0]["text/html"]
    assert "success never decreases with width" in shown[-3]["text/html"]
    assert "layer1" in shown[-2]["text/plain"]


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


def test_a_notebook_shows_an_error_of_the_user_as_its_sentence(tmp_path: Path) -> None:
    """Without the way through the package, also where another error is the cause."""
    cells = [
        "import petridish, sys\npetridish.run('PF-99')",
        "from petridish.errors import UserError\n"
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise UserError('Give 1.') from e",
        "type(sys.last_value.__cause__).__name__",
        "from dataclasses import dataclass\nfrom typing import ClassVar\n"
        "from petridish import *\n"
        "@dataclass(frozen=True)\nclass Bad:\n    name: ClassVar[str] = 'bad'\n"
        "    def build(self, domain, n_outputs):\n        return domain.n_input\n"
        "petridish.run(Sweep(RunSpec(task=SparseParity(4, 2), model=Bad()), {}), store='own')",
        "import matplotlib.pyplot as plt\n"
        "def drawn(table, title):\n    return plt.subplots()[0]\n"
        "sweep = Sweep(RunSpec(task=SparseParity(4, 2), training=Training(steps=2)), {})\n"
        "own = Experiment('own', 't', 's', {'own': sweep}, figures={'own': drawn})\n"
        "petridish.run(own, store='own', executor='inline', progress='none').figure()",
    ]
    unknown, caused, cause, fault, figure = executed(cells, tmp_path, allow_errors=True)
    (shown,) = (part for part in unknown.outputs if part.output_type == "error")
    assert len(shown.traceback) == 1
    assert shown.traceback[0].startswith("UserError: There is no experiment called 'PF-99'. ")
    assert caused.outputs[-1].traceback == ["UserError: Give 1."]
    assert cause.outputs[-1].data["text/plain"] == "'ZeroDivisionError'"
    said = fault.outputs[-1].traceback[0]
    assert said.startswith("UserError: The model bad failed in build at In[4]:8: AttributeError: ")
    pictures = [part for part in figure.outputs if "image/png" in part.get("data", {})]
    assert len(pictures) == 1  # a function that draws with pyplot had its picture shown twice
