"""`petridish.run`, `petridish.load` and the names of the package, as a script uses them."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.text import Text

import petridish
from petridish import (
    MLP,
    Arms,
    Claim,
    Data,
    Evaluation,
    Experiment,
    NeverDecreases,
    Runs,
    RunSpec,
    Sparse,
    SparseParity,
    Store,
    Sweep,
    Training,
    Uniform,
    UserError,
    user_classes,
)
from petridish.api.asked import find_experiment
from petridish.cli.main import run_command
from petridish.store.requests import requests
from petridish.training import forget_code, read_cell
from tests.test_notebook import executed

BASE = RunSpec(
    task=SparseParity(8, 2),
    data=Data(n_test=200),
    model=MLP(width=20),
    training=Training(steps=200),
    evaluation=Evaluation(every=20, curves=True),
)
SWEEP = Sweep(BASE, {"model.width": (5, 50), "data.m": (20, 100), "seed": range(4)})
SCRIPT = """
import petridish
from petridish import MLP, Data, RunSpec, SparseParity, Sweep, Training

SWEEP = Sweep(
    RunSpec(task=SparseParity(8, 2), data=Data(n_test=100), training=Training(steps=40)),
    {"model.width": (5, 6), "seed": range(4)},
)
print(len(petridish.run(SWEEP, store="kept", jobs=2)))
"""
RICH = """
from petridish import Evaluation
from dataclasses import replace

BASE = replace(SWEEP.base, evaluation=Evaluation(curves=True, every=10))
RUNS = petridish.run(Sweep(BASE, SWEEP.axes), store="kept", executor="inline")
RUNS
"""
OWN = """
from dataclasses import dataclass
from typing import ClassVar

from petridish import SparseParity

@dataclass(frozen=True)
class Odd(SparseParity):
    name: ClassVar[str] = "odd"

    def label(self, packed, supports):
        return 1 - super().label(packed, supports)
"""

OWN_SWEEP = """
from petridish import Data, RunSpec, Sweep, Training

SHORT = RunSpec(task=Odd(8, 2), data=Data(n_test=50), training=Training(steps=9))
SWEEP = Sweep(SHORT, {"seed": range(2)})
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Return 16 runs, kept in a store that has another sweep's runs too."""
    store = tmp_path_factory.mktemp("api") / "store"
    other = Sweep(BASE, {"model.width": (7,), "seed": range(3)})
    petridish.run(other, store=store, executor="inline", progress="none")
    return petridish.run(SWEEP, store=str(store), executor="inline", progress="none")


def test_every_name_of_the_package_is_there() -> None:
    """What the stub says can be imported, and `dir` lists it."""
    for name in petridish.__all__:
        assert getattr(petridish, name) is not None
        assert name in dir(petridish)
    assert not {"ast", "import_module", "Path", "_HOMES"} & {*dir(petridish)}
    with pytest.raises(AttributeError, match="module 'petridish' has no attribute 'Swep'"):
        petridish.Swep  # type: ignore[attr-defined] # which is what is tested # noqa: B018


def test_a_star_import_replaces_no_common_name() -> None:
    """They are imported by name; what an own task and an own rule need is there."""
    taken = {"Field": 1, "Mean": 2, "Path": 3, "Table": 4}
    names = dict(taken)
    exec("from petridish import *", names)

    assert {name: names[name] for name in taken} == taken
    assert {"Streams", "unpack_bits", "Judgement", "Finding"} <= names.keys()
    assert petridish.Table.__module__ == "petridish.tasks.table"


def test_the_table_has_the_runs_of_the_sweep_alone(runs: Runs) -> None:
    """One row per run, along the axes; a second call trains nothing."""
    assert runs.table["model.width"].to_list() == [5] * 8 + [50] * 8
    assert runs.table["seed"].to_list() == [0, 1, 2, 3] * 4
    assert [spec.data.m for spec in runs.specs] == ([20] * 4 + [100] * 4) * 2
    again = petridish.run(SWEEP, store=runs.store, progress="none")
    assert (again.summary.done, again.summary.skipped) == (0, 16)
    assert repr(again).startswith("Runs of sweep at own scale: 16 of 16 (")


def test_settings_are_texts_or_a_mapping(runs: Runs) -> None:
    """Both ways narrow the sweep; an unknown axis meets the nearest known one."""
    for settings in (["m=20", "r=5"], {"m": (20,), "model.width": (5,)}):
        few = petridish.run(SWEEP, store=runs.store, settings=settings, progress="none")
        assert few.table["data.m"].to_list() == [20.0] * 4
    one = petridish.run(SWEEP, store=runs.store, settings="r=5", progress="none")
    assert (one.settings, set(one.table["model.width"])) == (("r=5",), {5})
    with pytest.raises(UserError, match=r"no axis called 'model\.widht' in this sweep\. Did you"):
        petridish.run(SWEEP, store=runs.store, settings={"model.widht": (5,)})


def test_pandas_gets_the_same_table(runs: Runs) -> None:
    """No further package is needed."""
    frame = runs.to_pandas()
    assert list(frame.columns) == runs.table.columns
    assert frame["seed"].tolist() == runs.table["seed"].to_list()


def test_success_counts_no_two_settings_together(runs: Runs) -> None:
    """Settings have their runs and an interval; of a third axis each value has rows of its own."""
    settings = runs.outcomes(value="solved")
    assert settings["n"].to_list() == [4] * 4
    assert settings["value"].is_between(settings["low"], settings["high"]).all()
    grid = runs.success(rows="width", columns="m")
    assert grid.columns == ["model.width", "20", "100"]
    solved = runs.table["outcome"] == "SOLVED"
    cell = (runs.table["model.width"] == 50) & (runs.table["data.m"] == 100)
    assert grid["100"][1] == (solved & cell).sum() / 4
    rates = replace(SWEEP, axes={**SWEEP.axes, "training.learning_rate": (0.1, 0.2)})
    third = petridish.run(rates, store=runs.store, executor="inline", progress="none")
    assert third.success(rows="width", columns="m").shape == (4, 4)
    errors = third.outcomes(value="test_error", best_over="training.learning_rate")
    assert errors.shape[0] == 4
    assert third.figure(value="test_error", rows="lr").axes
    with pytest.raises(UserError):
        runs.success(rows="stesp", columns="m")


def test_curves_are_long(runs: Runs) -> None:
    """One row per run, evaluation and curve, with what the runs differ in."""
    curves = runs.curves()
    assert curves.columns == ["key", "model.width", "data.m", "seed", "name", "step", "value"]
    last = curves.filter(name="test_error").group_by("key").last().sort("key")
    assert last["value"].to_list() == runs.table.sort("key")["test_error"].to_list()
    plain = Sweep(replace(BASE, evaluation=Evaluation()), {"seed": range(2)})
    kept = petridish.run(plain, store=runs.store, executor="inline", progress="none")
    with pytest.raises(UserError) as error:
        kept.curves()
    assert str(error.value) == (
        "These runs kept no curves. Give Evaluation(curves=True) in the base of the sweep."
    )


def test_a_sweep_is_titled_by_what_it_sweeps(runs: Runs) -> None:
    """The task and the axes; seeds are repetitions."""
    assert runs.experiment.title == "sparse_parity(8, 2) by model.width, data.m"
    assert find_experiment(Sweep(BASE, {"seed": range(2)})).title == "sparse_parity(8, 2)"
    tasks = Sweep(BASE, {"task": (SparseParity(8, 2), SparseParity(8, 3))})
    assert find_experiment(tasks).title == "several tasks"


def test_an_experiment_is_judged_and_drawn(runs: Runs) -> None:
    """Verdicts print below their claims, a table in a notebook; figures are found by name."""
    rule = NeverDecreases(along="data.m", within=("model.width",))
    claim = Claim("a", "More data <never> hurt.", "ours", rule)
    own = Experiment("own", "mine", "here", {"own": SWEEP}, (claim,))
    judged = petridish.run(own, store=runs.store, progress="none")
    (verdict,) = judged.verdicts()
    number = str(verdict).removeprefix("(a, ours) ")
    assert repr(judged.verdicts()).startswith(f"(a, ours) More data <never> hurt.\n    {number}")
    assert "More data &lt;never&gt; hurt." in judged.verdicts()._repr_html_()
    assert "<table" in judged._repr_html_()
    assert "<p>value: share of runs solved." in judged._repr_html_()
    assert judged.figure("curves").axes
    three: Any = lambda table, title: 3  # noqa: E731 - as a user may write it
    broken = replace(own, figures={"three": three})
    with pytest.raises(UserError) as error:
        petridish.run(broken, store=runs.store, progress="none").figure()
    assert str(error.value) == (
        f"The function of the figure three (test_api.py:{three.__code__.co_firstlineno}) returned "
        "3. Return a matplotlib Figure."
    )
    with pytest.raises(UserError, match=r"no figure called 'curve'\. Did you mean curves\?$"):
        judged.figure("curve")


def test_a_frontier_of_too_few_successes_says_why(runs: Runs) -> None:
    """An empty frame is no answer by itself."""
    few = replace(runs, sweep=runs.sweep.narrowed(["seed=0"]))
    with pytest.warns(UserWarning, match=r"^In no cell did 5 runs .*Run more seeds of each\.$"):
        assert few.frontier().is_empty()


def test_an_experiment_is_found_by_its_id(tmp_path: Path) -> None:
    """As on the command line, with the scale that is asked for."""
    found = petridish.run(
        "PF-1", scale="smoke", store=tmp_path, settings=["seed=0", "m=100"], progress="none"
    )
    assert len(found) == len(found.sweep)
    written = {text.get_text() for text in found.figure().findobj(Text)}
    assert any(text.startswith("PF-1, smoke, seed=0, m=100: ") for text in written)
    with pytest.raises(UserError, match=r"success probability|between 0 and 1"):
        found.frontier(target=2)


def test_a_report_finds_what_python_asked_for(tmp_path: Path) -> None:
    """By name, with its settings as text; an experiment of the package as an object too."""
    settings = {"seed": (0, 1), "init": (Uniform(), Sparse(2)), "r": (4,), "m": (30,)}
    runs = petridish.run("PF-1", scale="smoke", store=tmp_path, settings=settings, progress="none")
    found = petridish.chapters.EXPERIMENTS["PF-1"]
    petridish.run(found, scale="smoke", store=tmp_path, settings=settings, progress="none")
    (request,) = requests(tmp_path)

    assert (request.name, request.scale) == ("PF-1", "smoke")
    assert request.settings == ("seed=0,1", "init=uniform,sparse(2)", "r=4", "m=30")
    again = runs.experiment.sweep("smoke").narrowed(request.settings)
    assert {*again.specs()} == {*runs.sweep.specs()}


def test_a_frontier_is_a_table(runs: Runs) -> None:
    """Mixtures that reach the target, with their compute."""
    easy = Sweep(BASE, {"model.width": (50,), "data.m": (100,), "seed": range(8)})
    made = petridish.run(easy, store=runs.store, executor="inline", progress="none")
    front = made.frontier(target=0.5)
    assert {"m", "width", "steps", "restarts", "compute"} <= set(front.columns)
    assert len(front) > 0


@pytest.mark.parametrize("weights", [True, False])
def test_a_trained_model_is_loaded_with_its_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, weights: bool
) -> None:
    """Its error on its own sample is the stored one, whether weights were kept or not."""
    base = replace(BASE, evaluation=Evaluation(every=20, weights=weights))
    made = petridish.run(
        Sweep(base, {"seed": (3, 4)}), store=tmp_path, executor="inline", progress="none"
    )
    key, spec = made.table["key"][1], made.specs[1]
    capsys.readouterr()
    model = petridish.load(key[:10], store=tmp_path)
    said = capsys.readouterr().err
    assert model.again is not weights
    assert said == (
        ""
        if weights
        else f"petridish: the store does not keep the weights of the run {key[:8]}; it is trained "
        "again from its spec, which gives the same run. Keep them by evaluation.weights=True.\n"
    )
    assert list(model.weights) == ["layer1.weight", "layer1.bias", "layer2.weight", "layer2.bias"]
    signs = 1 - 2 * model.labels().double()
    wrong = (model.outputs()[:, 0] * signs <= 0).double().mean()
    assert float(wrong) == made.table["test_error"][1]
    seen: list[torch.Tensor] = []
    model.module.get_submodule("layer1").register_forward_hook(lambda *a: seen.append(a[2]))
    model.outputs(n=7)
    assert seen[0].shape == (7, 20)
    assert not np.array_equal(model.start["layer1.weight"], model.now["layer1.weight"])
    assert np.array_equal(
        petridish.load(spec, store=tmp_path).now["layer1.bias"], model.now["layer1.bias"]
    )


def test_a_key_that_is_not_there_is_refused(runs: Runs) -> None:
    """What was given, and what to do; also where several keys begin so."""
    with pytest.raises(UserError) as error:
        petridish.load("zz", store=runs.store)
    assert re.fullmatch(
        r"No run of the store .* has a key that begins with 'zz'\. Give a key from the column "
        r"`key` of a table of runs\.",
        str(error.value),
    )
    with pytest.raises(UserError) as error:
        petridish.load("", store=runs.store)
    assert re.fullmatch(
        r"\d+ of the \d+ runs of the store .* have a key that begins with ''\. Give more digits "
        r"of a key from the column `key` of a table of runs\.",
        str(error.value),
    )


def test_an_export_says_what_it_leaves_out(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CSV has no curves; Parquet has all."""
    command = ["store", "export", "--store", str(runs.store.folder), "--out"]
    assert run_command([*command, str(tmp_path / "runs.csv")]) == 0
    assert capsys.readouterr().out.splitlines()[1] == (
        "Left out, as a field of CSV holds one value: curve.step, curve.train_loss, "
        "curve.train_error, curve.test_error. Give a file that ends in .parquet or .jsonl to have "
        "them."
    )
    assert run_command([*command, str(tmp_path / "runs.parquet")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_arms_are_runs_too(runs: Runs) -> None:
    """A sweep of several parts has one table."""
    arms = Arms({"narrow": Sweep(BASE, {"seed": range(2)}), "same": SWEEP})
    assert len(petridish.run(arms, store=runs.store, executor="inline", progress="none")) == 18


def as_script(code: str, folder: Path, way: str = "file") -> subprocess.CompletedProcess[str]:
    """Carry code out in a process of its own, from a file or from standard input."""
    file = folder / "script.py"
    file.write_text(code)
    return subprocess.run(
        [sys.executable, file if way == "file" else "-"],
        input=code if way == "stdin" else None,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize("way", ["file", "stdin"])
def test_a_script_needs_no_guard(tmp_path: Path, way: str) -> None:
    """Workers do not carry the script out again, from a file or from standard input."""
    done = as_script(SCRIPT, tmp_path, way)
    assert (done.stdout, done.returncode) == ("8\n", 0), done.stderr


def test_a_script_may_define_classes(tmp_path: Path) -> None:
    """Workers receive the classes of the script by value."""
    done = as_script(OWN + SCRIPT.replace("task=SparseParity", "task=Odd"), tmp_path)
    assert (done.stdout, done.returncode) == ("8\n", 0), done.stderr
    assert set(Store(tmp_path / "kept").read().table["task"]) == {"odd(8, 2)"}


def test_a_class_of_a_module_that_a_script_imports_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the sweep is imported, not the class: what was stored is read back all the same."""
    (tmp_path / "odd_tasks.py").write_text(OWN + OWN_SWEEP)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(user_classes, "_learned", {})
    odd_tasks = importlib.import_module("odd_tasks")
    runs = petridish.run(odd_tasks.SWEEP, store=tmp_path, executor="inline", progress="none")
    forget_code()  # as in a process that reads the store only
    read = {read_cell(text).task for text in runs.table["cell"].unique()}
    monkeypatch.delitem(sys.modules, "odd_tasks")

    assert read == {odd_tasks.Odd(8, 2)}


def test_a_class_of_a_notebook_is_trained_by_workers(tmp_path: Path) -> None:
    """In a real kernel, with a bar that moves in its place; runs and figures are shown richly."""
    cells = [OWN, SCRIPT.replace("task=SparseParity", "task=Odd"), RICH, "RUNS.figure('curves')"]
    *_, trained, shown, figure = executed(cells, tmp_path)
    assert trained.outputs[-1].text == "8\n"
    bars = [each.data["text/html"] for each in trained.outputs if each.output_type != "stream"]
    assert len(bars) == 1
    assert re.fullmatch(r"sweep <progress value='1\.0000'></progress> 8/8 runs, .* left", bars[0])
    assert "<p>Runs of sweep at own scale: 8 of 8 (" in shown.outputs[-1].data["text/html"]
    assert "image/png" in figure.outputs[-1].data
