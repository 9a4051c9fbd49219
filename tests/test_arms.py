"""Arms: sweeps with names, by which rules, tables and records speak of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from petridish.errors import UserError
from petridish.experiment import Experiment
from petridish.models import MLP
from petridish.publish.records import plain_sweep, read_record, read_sweep, write_record
from petridish.rules import AtEnd, Claim, Median, PairedBySeed, Rule
from petridish.store import Store
from petridish.sweeps import Arms, Sweep, arm, by_arm, joined, run_sweep
from petridish.tasks import SparseParity
from petridish.training import Data, Evaluation, RunSpec, Training, run_key

BASE = RunSpec(
    task=SparseParity(8, 2),
    data=Data(m=100, n_test=64),
    model=MLP(width=4),
    training=Training(steps=20),
    evaluation=Evaluation(every=10),
)
WIDE = replace(BASE, model=MLP(width=8))
ARMS = Arms(
    {
        "narrow": Sweep(BASE, {"seed": range(3)}),
        "wide": Sweep(WIDE, {"seed": range(1, 4)}),
        "both": Sweep(BASE, {"model.width": (4, 8), "seed": (2, 3)}),
    }
)


def test_arms_are_a_sweep_of_all_their_runs() -> None:
    """In order; names are in no key."""
    specs = [spec for sweep in ARMS.arms.values() for spec in sweep.specs()]

    assert list(ARMS.specs()) == specs
    assert len(ARMS) == len(specs) == 10
    assert ARMS.model_steps == 200
    assert ARMS["wide"].base == WIDE
    renamed = Arms({f"arm {i}": sweep for i, sweep in enumerate(ARMS.arms.values())})
    assert [run_key(spec) for spec in renamed.specs()] == [run_key(spec) for spec in specs]


def test_settings_reach_every_arm() -> None:
    """As --set does; the names stay."""
    fewer = ARMS.narrowed(["seed=0..1", "training.steps=5"])

    assert list(fewer.arms) == ["narrow", "wide", "both"]
    assert len(fewer) == 2 + 2 + 4
    assert {spec.training.steps for spec in fewer.specs()} == {5}


def test_a_table_knows_the_arms_of_its_runs(tmp_path: Path) -> None:
    """Each run is there once, with all its arms; `arm` chooses the runs of one."""
    store = Store(tmp_path / "store")
    run_sweep(Sweep(BASE, {"model.width": (4, 8, 16), "seed": range(5)}), store, executor="inline")
    runs = ARMS.among(store.read().table)
    found = {(row["model.width"], row["seed"]): row["arms"] for row in runs.to_dicts()}

    assert found == {
        (4, 0): ["narrow"],
        (4, 1): ["narrow"],
        (4, 2): ["narrow", "both"],
        (4, 3): ["both"],
        (8, 1): ["wide"],
        (8, 2): ["wide", "both"],
        (8, 3): ["wide", "both"],
    }
    for name, sweep in ARMS.arms.items():
        assert set(arm(runs, name)["key"]) == {run_key(spec) for spec in sweep.specs()}
    assert ARMS.among(runs).equals(runs)
    with pytest.raises(UserError) as refusal:
        arm(runs, "bath")
    assert str(refusal.value) == (
        "There is no arm called 'bath' among these runs. Did you mean both?"
    )


def test_runs_are_laid_out_by_arm() -> None:
    """One row per run and arm, of all arms or of some; none of a table without arms."""
    table = pl.DataFrame({"arms": [["a"], ["a", "b"], ["c"]], "seed": [0, 1, 2]})

    assert by_arm(table).rows() == [("a", 0), ("a", 1), ("b", 1), ("c", 2)]
    assert by_arm(table, "b", "c").rows() == [("b", 1), ("c", 2)]
    assert by_arm(table.drop("arms"), "a").to_dict(as_series=False) == {"seed": [], "arm": []}


def test_sweeps_without_names_are_joined() -> None:
    """In their order, whatever parts they have themselves."""
    one, two, three = (Sweep(BASE, {"seed": (seed,)}) for seed in range(3))
    whole = joined([joined([one, two]), joined(iter([three]))])

    assert [spec.seed for spec in whole.specs()] == [0, 1, 2]


def test_a_record_says_its_arms(tmp_path: Path) -> None:
    """They are in spec.json, and a record is judged as its store was."""
    store = Store(tmp_path / "store")
    run_sweep(ARMS, store, executor="inline")
    runs = ARMS.among(store.read().table)
    rule = Rule(AtEnd("test_error"), PairedBySeed("wide", "narrow"), Median(), below=0.0)
    claim = Claim("a", "Wider is better.", "ours", rule)
    experiment = Experiment("own", "arms", "ours", {"own": ARMS}, (claim,))
    folder = tmp_path / "record"
    write_record(experiment, "own", ARMS, runs, [], folder)
    written = json.loads((folder / "spec.json").read_text(encoding="utf-8"))["sweep"]
    again = read_record(folder)

    assert list(written) == ["arms"]
    assert written == plain_sweep(ARMS)
    assert plain_sweep(read_sweep(written)) == written
    by = ["cell", "seed"]
    assert again.select(*by, "arms").sort(by).equals(runs.select(*by, "arms").sort(by))
    assert experiment.judge(again)[0].as_json() == experiment.judge(runs)[0].as_json()


def test_mistakes_are_named() -> None:
    """No arms, arms that are no sweeps, and a name that is not there."""
    mistakes = {
        "Arms: the names [] were given. Give at least one arm, each under a name.": {},
        "Arms: the names [''] were given. Give at least one arm, each under a name.": {"": ARMS},
        "Arms: 'a' is Arms. Give a Sweep.": {"a": ARMS},
        "Arms: 'a' is RunSpec. Give a Sweep.": {"a": BASE},
    }
    for message, arms in mistakes.items():
        with pytest.raises(UserError) as refusal:
            Arms(arms)  # type: ignore[arg-type] # a mistake
        assert str(refusal.value) == message
    with pytest.raises(UserError) as unknown:
        ARMS["wise"]
    assert str(unknown.value) == "There is no arm called 'wise'. Did you mean wide?"
