"""Which curves and weights a command decodes: what its claims, figures and tables declare."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from petridish.chapters import EXPERIMENTS
from petridish.experiment import Experiment
from petridish.figures.style import NothingToDraw
from petridish.models import MLP
from petridish.rules.claims import Claim, Simulated
from petridish.rules.columns import columns_read, curve_columns, reads
from petridish.rules.outcome_classes import Groks
from petridish.store import Store
from petridish.store.files import Shard
from petridish.store.schema import is_kept
from petridish.sweeps import Sweep, run_sweep
from petridish.tasks import SparseParity
from petridish.training import Data, Evaluation, RunSpec, Training
from tests.conftest import Command, SmokeStore

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WATCHED = [name for name, e in EXPERIMENTS.items() if e.sweep("smoke").keeps_curves]


class Decoded:
    """The columns that were decoded, of every shard in turn."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[str, ...]]] = []

    @property
    def kept(self) -> set[str]:
        """The columns of curves and weights among them."""
        return {name for _, names in self.calls for name in names if is_kept(name)}

    def most(self, name: str) -> int:
        """Count how often a column was decoded, of the shard where that was most often."""
        return max(Counter(shard for shard, names in self.calls if name in names).values())


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Decoded:
    """Watch what is decoded of shards."""
    found, decode = Decoded(), Shard.columns

    def watched(shard: Shard, *names: str) -> pl.DataFrame:
        found.calls.append((shard.path.name, names))
        return decode(shard, *names)

    monkeypatch.setattr(Shard, "columns", watched)
    return found


# Declarations


def silent(table: pl.DataFrame) -> pl.DataFrame:
    """Declare nothing."""
    return table


@reads("curve.step", "curve.test_error")
def other(table: pl.DataFrame, title: str) -> Figure:
    """Draw nothing."""
    raise NothingToDraw("Nothing.")


@reads("curve.step", "weights")
def drawn(table: pl.DataFrame, title: str, *, width: int = 1) -> Figure:
    """Draw nothing."""
    raise NothingToDraw("Nothing.")


def test_what_parts_read_is_put_together() -> None:
    """Of functions with arguments set or not; one that is silent may read all."""
    assert curve_columns("test_error", "loss", "test_error") == (
        *("curve.step", "curve.test_error", "curve.loss"),
    )
    assert columns_read([]) == ()
    assert columns_read([other, partial(drawn, width=2)]) == (
        *("curve.step", "curve.test_error", "weights"),
    )
    assert columns_read([drawn, silent, other]) == "all"


TINY = RunSpec(
    task=SparseParity(8, 2),
    data=Data(m=200, n_test=200),
    model=MLP(16),
    training=Training(steps=300),
)


def experiment_of(evaluation: Evaluation, **parts: Any) -> tuple[Experiment, Sweep]:
    """Return an experiment on two seeds of one run."""
    sweep = Sweep(RunSpec(**{**vars(TINY), "evaluation": evaluation}), {"seed": (0, 1)})
    return Experiment("X-1", "a title", "a source", {"own": sweep}, **parts), sweep


def test_an_experiment_needs_what_the_parts_at_hand_read() -> None:
    """Nothing at all where runs keep nothing."""
    claims, figures = (Claim("a", "text", "source", Groks()),), {"drawn": drawn}
    parts: dict[str, Any] = {"claims": claims, "figures": figures}
    experiment, sweep = experiment_of(Evaluation(curves=True), **parts)
    judged = {"curve.step", "curve.train_error", "curve.test_error"}

    assert set(experiment.columns_needed(sweep, "claims")) == judged
    assert set(experiment.columns_needed(sweep, "figures")) == {"curve.step", "weights"}
    every = experiment.columns_needed(sweep, "claims", "figures", "tables")
    assert set(every) == judged | {"weights"}
    assert experiment.columns_needed(sweep) == ()
    plain, without = experiment_of(Evaluation(), **parts)
    assert plain.columns_needed(without, "claims", "figures") == ()
    own, sweep = experiment_of(Evaluation(curves=True), tables={"own": silent})
    assert own.columns_needed(sweep, "tables") == "all"


@pytest.mark.parametrize("varied", ["base", "axis", "part"])
def test_a_sweep_says_whether_some_of_its_runs_keep_curves(varied: str) -> None:
    """By its base, along an axis of evaluations, or in a part that is run beside it."""
    _, kept = experiment_of(Evaluation(weights=True))
    plain = Sweep(TINY, {"seed": (0, 1)})
    axis = Sweep(TINY, {"evaluation.curves": (False, True), "seed": (0, 1)})

    assert not plain.keeps_curves
    assert {"base": kept, "axis": axis, "part": Sweep(TINY, {"seed": (2,)}, (kept,))}[
        varied
    ].keeps_curves


# The experiments of this package


def drawing(draw: Any, runs: pl.DataFrame) -> str:
    """Return a digest of a figure's pixels, or why there is none.

    Where its panels lie follows from what is in them: they are not laid out, which takes longest.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    try:
        figure = draw(runs, "title")
    except NothingToDraw as reason:
        return str(reason)
    figure.set_layout_engine("none")
    figure.set_dpi(40)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return sha256(canvas.buffer_rgba()).hexdigest()


@pytest.mark.parametrize("name", WATCHED)
def test_what_is_declared_is_enough(name: str, smoke_store: SmokeStore) -> None:
    """Verdicts, figures and tables are the same from the declared columns as from all of them.

    Left out is what cannot differ: simulations, in which no run takes part, and what declares all.
    """
    declaring = EXPERIMENTS[name]
    claims = [c for c in declaring.claims if not isinstance(c.rule, Simulated)]
    experiment = replace(declaring, claims=tuple(claims))
    sweep, store = experiment.sweep("smoke"), Store(smoke_store(name))
    whole = sweep.among(store.read(columns="all").table)

    def declared(*parts: Any) -> pl.DataFrame:
        columns = experiment.columns_needed(sweep, *parts)
        assert columns != "all"
        runs = sweep.among(store.read(columns=columns).table)
        assert {c.removesuffix(".of") for c in runs.columns if is_kept(c)} <= set(columns)
        return runs

    def fewer(part: str) -> pl.DataFrame | None:
        runs = declared(part)
        return None if set(runs.columns) == set(whole.columns) else runs

    if (runs := fewer("claims")) is not None:
        judged = [verdict.as_json() for verdict in experiment.judge(runs)]
        assert judged == [verdict.as_json() for verdict in experiment.judge(whole)]
    if (runs := fewer("figures")) is not None:
        for draw in experiment.drawings(sweep).values():
            assert drawing(draw, runs) == drawing(draw, whole)
    if (runs := fewer("tables")) is not None:
        for tabulate in experiment.tables.values():
            assert tabulate(runs).equals(tabulate(whole))


# Commands


@pytest.mark.parametrize(
    ("command", "name", "columns"),
    [
        (("verdicts",), "PF-1", set()),
        (("verdicts",), "PF-5", {"curve.step", "curve.test_error"}),
        (("figure",), "PF-5", {"curve.step", "curve.test_error"}),
        (("run", "--executor", "inline"), "PF-1", set()),
        (("verdicts",), "PF-3", {"curve.step", "curve.train_error", "curve.test_error"}),
        (("record",), "PF-3", {"curve.step", "curve.train_error", "curve.test_error"}),
        (("verdicts",), "HP-10", {"curve.test_error"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_command_decodes_what_it_reads(
    command: tuple[str, ...],
    name: str,
    columns: set[str],
    smoke_store: SmokeStore,
    inside: Command,
    decoded: Decoded,
) -> None:
    """And every shard once."""
    verb, *options = command
    store = smoke_store(name)
    decoded.calls.clear()

    assert inside(verb, name, "--scale", "smoke", "--store", store, *options).returncode == 0
    assert decoded.kept == columns
    assert decoded.most("cell") == 1


def test_a_report_decodes_the_store_once(
    smoke_store: SmokeStore, inside: Command, decoded: Decoded, tmp_path: Path
) -> None:
    """With the curves of the experiments that are asked for, and no others."""
    store = Store(tmp_path / "both")
    store.prepare()
    for name in ("PF-5", "HP-10"):
        store.write_table(Store(smoke_store(name)).read(columns="all").table)
    for names, columns in (
        (("HP-4",), set()),
        (("PF-5", "HP-10"), {"curve.step", "curve.test_error"}),
    ):
        decoded.calls.clear()
        done = inside("report", *names, "--store", store.folder)
        assert done.returncode == (0 if columns else 2), done.stderr
        assert decoded.kept == columns
        assert decoded.most("cell") == 1


def test_an_adaptive_run_decodes_every_shard_once(tmp_path: Path, decoded: Decoded) -> None:
    """Whatever the number of its rounds: its keys once, and once key and outcome."""
    store = Store(tmp_path)
    unclear = Sweep(TINY, {"data.m": (20, 30, 40, 60), "seed": range(30)})
    run_sweep(unclear, store, executor="inline", adaptive=True)

    made = store.read().table.group_by("data.m").len()["len"].to_list()
    before = [call for call in decoded.calls if "cell" not in call[1]]
    assert max(made) > min(made)  # some cells took several rounds
    assert {names for _, names in before} == {("key",), ("key", "outcome")}
    assert max(Counter(before).values()) == 1
    assert {shard for shard, _ in before} == {path.name for path in store.shards()}
