"""Claims speak of what is declared, and what they read is what is read and kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from petridish.chapters import EXPERIMENTS
from petridish.errors import UserError
from petridish.experiment import Experiment
from petridish.publish.records import slim
from petridish.rules import (
    AtEnd,
    Beats,
    BestOf,
    Claim,
    Each,
    Finding,
    Judges,
    Mean,
    Measure,
    Median,
    NeverDecreases,
    PairedBySeed,
    RatioOfMedians,
    Rule,
    Share,
    Sides,
    Solved,
    SolvedAt,
    TimeTo,
    Trend,
    nothing,
)
from petridish.rules.declared import check_rule, columns_of_run
from petridish.rules.measures import Floats
from petridish.store import Store
from petridish.sweeps import Arms, FindThreshold, Sweep, run_sweep
from petridish.tasks import SparseParity
from petridish.training import Below, Data, Error, Evaluation, RunSpec, Training
from tests.conftest import Command, SmokeStore

SPEC = RunSpec(
    task=SparseParity(8, 2),
    data=Data(m=64, n_test=32),
    training=Training(steps=20),
    evaluation=Evaluation(every=10, reached=(Below(Error(), 0.3),)),
)
WATCHED = replace(
    SPEC, evaluation=replace(SPEC.evaluation, curves=True, weights=True, instruments=("movement",))
)
CURVED = ("PF-3", "HP-2", "HP-6", "HP-7", "HP-10", "FE-2")


def experiment(rule: Judges, sweep: Sweep) -> Experiment:
    """Declare a claim about a sweep."""
    return Experiment("own", "own", "ours", {"own": sweep}, (Claim("a", "So.", "ours", rule),))


@dataclass(frozen=True)
class Own:
    """A rule of one's own that does not say what it reads."""

    def judge(self, table: pl.DataFrame, level: float) -> Finding:
        """Judge nothing."""
        return nothing("nothing", f"{table.columns} {level}")


@dataclass(frozen=True)
class Undeclared(Measure):
    """A measure of one's own that reads more than it says."""

    columns = ("outcome",)
    label = "norm"

    def of(self, table: pl.DataFrame) -> Floats:
        """Read a curve."""
        return table["curve.norm"].list.last().to_numpy()


def test_more_seeds_do_not_hide_that_settings_are_pooled() -> None:
    """Of --set too, declared axes are looked at; of further ones the verdict speaks."""
    rule = Rule(Solved(), Each(), Share(), above=0.5)
    declared = Sweep(SPEC, {"data.m": (32, 64), "seed": range(2)})
    with pytest.raises(UserError) as refused:
        check_rule(rule, replace(declared, axes={**declared.axes, "seed": range(4)}), (declared,))
    assert str(refused.value).startswith("The sweep has 2 values of data.m, and its rule counts")
    check_rule(rule, replace(declared, axes={"data.m": (32,), "seed": range(4)}), (declared,))
    single = replace(declared, axes={"seed": range(2)})
    check_rule(rule, replace(single, axes={"model.width": (5, 9), "seed": range(2)}), (single,))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            Rule(Solved(), Each(), Share(), above=0.5),
            "The sweep has 2 values of data.m, and its rule counts runs of all of them as seeds. "
            "Lay them apart by the layout, take the best by best_over=('data.m',), or choose one "
            "by only={'data.m': …}.",
        ),
        (
            Rule(Solved(), Each(only={"data.m": 100}), Share(), above=0.5),
            "No run of this sweep has data.m = 100, of which its rule speaks. Known: 32, 64.",
        ),
        (
            Rule(Solved(), Each(("data.m",), only={"data.m": "32"}), Share(), above=0.5),
            "No run of this sweep has data.m = '32', of which its rule speaks. Known: 32, 64.",
        ),
        (
            Rule(Solved(), Each(("data.m",), only={"seed": 99}), Share(), above=0.5),
            "No run of this sweep has seed = 99, of which its rule speaks. Known: 0, 1",
        ),
        (
            Rule(Solved(), Each(("data.m",), only={"outcome": "DONE"}), Share(), above=0.5),
            "No run of this sweep has outcome = DONE, of which its rule speaks. Known: DIVERGED, "
            "OUT_OF_STEPS, SOLVED.",
        ),
        (
            Rule(Solved(), PairedBySeed("uniform", "sparse(3)", along="init"), Mean(), above=0.0),
            "No run of this sweep has init = sparse(3), of which its rule speaks. Known: uniform.",
        ),
        (
            Beats("init", "sparse(2)", "uniform"),
            "No run of this sweep has init = sparse(2), of which its rule speaks. Known: uniform.",
        ),
        (
            NeverDecreases(along="model.widht"),
            "There is no column 'model.widht' among the runs of this sweep, which its rule reads. "
            "Did you mean model.width?",
        ),
        (
            NeverDecreases(along="model.width", within=("init",)),
            "The sweep has 2 values of data.m, and its rule counts runs of all of them as seeds. "
            "Lay them apart by within=('data.m',), take the best by best_over=('data.m',), or "
            "choose one by --set data.m=….",
        ),
        (
            Rule(Undeclared(), Each(("data.m",)), Median(), above=0.5),
            "The measure «norm» reads the column 'curve.norm' and declares outcome. Name it in "
            "`columns`.",
        ),
        (
            Rule(Solved(), Each(best_over=("training.rate",)), Share(), above=0.5),
            "There is no column 'training.rate' among the runs of this sweep, which its rule "
            "reads. ",
        ),
    ],
)
def test_values_columns_and_settings_are_checked_before_training(
    rule: Judges, message: str
) -> None:
    """A claim that could never be decided is a mistake, not undecided."""
    sweep = Sweep(SPEC, {"data.m": (32, 64), "seed": range(4)})
    with pytest.raises(UserError) as error:
        experiment(rule, sweep).check(sweep)

    assert str(error.value).startswith(f"own (a): {message}")


def test_a_layout_keeps_runs_by_seed_and_by_what_came_out() -> None:
    """These are no fields of a setting, and were said to have no such value."""
    sweep = Sweep(SPEC, {"data.m": (32, 64), "seed": range(4)})
    for only in ({"seed": (0, 1)}, {"outcome": "SOLVED"}, {"solved_at": 100}):
        check_rule(Rule(Solved(), Each(("data.m",), only=only), Share(), above=0.5), sweep)


@pytest.mark.parametrize(
    ("only", "said"),
    [
        (range(3), "only=range(0, 3). Give columns with the values to be kept, such as "),
        ([("data.m", 3)], "only=[('data.m', 3)]. Give columns with the values to be kept, such "),
        ({"data.m": ()}, "only={'data.m': ()} keeps no run. Give a value."),
    ],
)
def test_what_a_layout_keeps_is_columns_with_values(only: Any, said: str) -> None:
    """Refused where it is written."""
    with pytest.raises(UserError) as error:
        Each(only=only)
    assert str(error.value).startswith(f"Each: {said}")


def test_what_a_claim_names_may_be_left_out_by_a_user() -> None:
    """`--set data.m=32` of a claim about 64: the value is declared, and its verdict is open."""
    sweep = Sweep(SPEC, {"data.m": (32, 64), "seed": range(4)})
    rules: list[Rule] = [
        Rule(Solved(), Each(only={"data.m": range(64, 65)}), Share(), above=0.5),
        Rule(Solved(), Each(best_over=("data.m",)), Share(), above=0.5),
        Rule(Solved(), Each(("data.m",)), Share(), above=0.5),
    ]
    for rule in rules:
        experiment(rule, sweep).check(sweep)
        experiment(rule, sweep).check(sweep.narrowed(["m=32"]))
        experiment(rule, sweep).check(
            sweep.narrowed(["lr=0.1,0.3"])
        )  # a further axis is no mistake


def test_claims_about_what_is_not_there_are_refused() -> None:
    """An arm, a column, arms of a sweep that has none: one line, with the nearest name."""
    plain = Sweep(SPEC, {"seed": range(2)})
    arms = Arms({"plain": plain, "watched": Sweep(WATCHED, {"seed": range(2)})})
    mistakes: dict[str, tuple[Judges, Sweep]] = {
        "own (a): There is no arm called 'plane'. Did you mean plain?": (
            Rule(AtEnd("test_error"), PairedBySeed("watched", "plane"), Median(), below=0.0),
            arms,
        ),
        "own (a): The rule speaks of arms, and the sweep has none. Declare it as "
        "Arms({name: Sweep(…)}).": (
            Rule(Solved(), Each(("arm",)), Median(), below=0.0),
            plain,
        ),
        "own (a): There is no column 'curve.test_eror' among the runs of this sweep, which its "
        "rule reads. Did you mean curve.test_error?": (
            Rule(TimeTo("test_eror", below=0.1), Each(only={"arm": "watched"}), Median(), above=1),
            arms,
        ),
        "own (a): There is no column 'model.widht' among the runs of this sweep, which its rule "
        "reads. Did you mean model.width?": (
            Rule(Solved(), Each(("model.widht",)), Median(), above=1.0),
            plain,
        ),
    }
    for message, (rule, sweep) in mistakes.items():
        with pytest.raises(UserError) as refusal:
            experiment(rule, sweep).check(sweep)
        assert str(refusal.value) == message
    experiment(Rule(Solved(), PairedBySeed("plain", "watched"), Median(), above=0.0), arms).check(
        arms
    )


def test_restarts_are_not_seeds() -> None:
    """A rule takes the best of them or keeps them apart; others are refused."""
    sweep = Sweep(SPEC, {"seed": range(2)})
    many = replace(sweep, also=(replace(sweep),))
    # Runs come to have restarts; a sweep refuses the axis until then.
    many.also[0].axes["restart"] = range(5)  # type: ignore[index] # as if it had been declared
    counts = Rule(Solved(), Each(), Median(), above=0.5)
    best = replace(counts, measure=BestOf(Solved(), best="most"))
    apart = replace(counts, layout=Each(("restart",)))
    one = replace(counts, layout=Each(only={"restart": 0}))

    for rule in (counts, Own()):
        with pytest.raises(UserError) as refusal:
            experiment(rule, sweep).check(many)
        assert str(refusal.value) == (
            "own (a): The sweep has 5 restarts per seed, and its rule counts each as a seed. Judge "
            'BestOf(…, over="restart"), or choose one by --set restart=0.'
        )
        experiment(rule, sweep).check(sweep)
    assert [set(rule.over) for rule in (best, apart, one)] == [{"restart"}] * 3
    assert "restart" not in counts.over
    experiment(best, sweep).check(many)


def test_what_a_search_takes_for_granted_is_not_judged_from_it() -> None:
    """Bisection along m takes success to rise there: a comparison along m is refused, others not.

    Also where the search is one part of the sweep, and by a rule that is no declaration.
    """
    grid = Sweep(SPEC, {"task.n": (8, 9), "data.m": (16, 32), "seed": range(2)})
    search = replace(grid, allocate=FindThreshold("data.m", 0.8, within=("task.n",)))
    part = Sweep(SPEC, {"seed": range(2)}, (search,))
    along_m: list[Judges] = [
        Rule(Solved(), Trend("data.m", within=("task.n",)), Median(), above=0.0),
        Rule(Solved(), PairedBySeed(32.0, 16.0, "data.m", ("task.n",)), Median(), above=0.0),
        Rule(SolvedAt(), Sides(32.0, 16.0, "data.m", ("task.n",)), RatioOfMedians(), below=1.0),
        NeverDecreases(along="data.m", within=("task.n",)),
    ]
    others: list[Judges] = [
        Rule(Solved(), PairedBySeed(9, 8, along="task.n", within=("data.m",)), Median(), below=0.0),
        Rule(Solved(), Each(("task.n", "data.m")), Median(), above=0.5),
        NeverDecreases(along="task.n", within=("data.m",)),
    ]

    for rule in along_m:
        for sweep in (search, part):
            with pytest.raises(UserError) as refusal:
                experiment(rule, sweep).check(sweep)
            assert str(refusal.value) == (
                "own (a): The rule compares runs along data.m, and these are chosen by "
                "find_threshold(data.m, 0.8, ('task.n',)), which takes success to rise along "
                "it. Compare along another axis, or declare the sweep without allocate."
            )
        experiment(rule, grid).check(grid)
    for rule in others:
        experiment(rule, search).check(search)


def test_the_command_refuses_before_it_trains(inside: Command, tmp_path: Path) -> None:
    """In one line, with exit code 2."""
    (tmp_path / "own.py").write_text(
        """
from petridish.experiment import Experiment
from petridish.rules import AtEnd, Claim, Median, Rule, Trend
from petridish.sweeps import Sweep
from petridish.tasks import SparseParity
from petridish.training import RunSpec

EXPERIMENT = Experiment(
    "own", "own", "ours",
    {"own": Sweep(RunSpec(task=SparseParity(8, 2)), {"model.width": (3, 4), "seed": range(2)})},
    (Claim("a", "So.", "ours", Rule(AtEnd("test_eror"), Trend("model.width"), Median(), above=0)),),
)
""",
        encoding="utf-8",
    )
    done = inside("run", "own.py")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "petridish: own (a): There is no metric 'test_eror' at the end of the runs of this sweep, "
        "which its rule reads. Did you mean test_error?\n"
    )
    assert not (tmp_path / "petridish-store").exists()


@pytest.mark.parametrize("spec", [SPEC, WATCHED], ids=["plain", "watched"])
def test_a_spec_says_which_columns_its_runs_have(spec: RunSpec, tmp_path: Path) -> None:
    """Those of a store's table that hold something, but for keys and who made the run."""
    store = Store(tmp_path)
    run_sweep(Sweep(spec, {"seed": range(2)}), store, executor="inline")
    table = store.read(columns="all").table
    filled = {name for name in table.columns if not table[name].is_null().all()}
    made = {"key", "engine", "engine_version", "device", "version", "commit", "clean", "cell"}

    predicted = columns_of_run(spec)
    assert filled - made <= predicted <= set(table.columns)
    large = {name for name in predicted if name.startswith(("curve.", "weights", "final."))}
    assert large <= filled


@pytest.mark.parametrize("name", CURVED)
def test_verdicts_need_no_more_than_their_rules_name(name: str, smoke_store: SmokeStore) -> None:
    """Judged from the columns that the rules name, from all, and from what a record keeps."""
    judged = EXPERIMENTS[name]
    store, sweep = Store(smoke_store(name)), judged.sweep("smoke")
    whole = sweep.among(store.read(columns="all").table)
    named = sweep.among(store.read(columns=judged.columns).table)
    kept = slim(whole, judged.columns)
    if "arms" in whole.columns:  # which reading a record makes anew from its sweep
        names = whole.select("cell", "seed", "arms")
        kept = kept.join(names, on=["cell", "seed"], maintain_order="left")

    large = {column for column in whole.columns if column.startswith(("curve.", "weights"))}
    large -= {"weights.of"}  # goes with the weights
    assert large & set(named.columns) == large & set(judged.columns) != set()
    assert large & set(kept.columns) == large & set(judged.columns)
    wanted = [verdict.as_json() for verdict in judged.judge(whole)]
    assert [verdict.as_json() for verdict in judged.judge(named)] == wanted
    assert [verdict.as_json() for verdict in judged.judge(kept)] == wanted


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_declares_what_its_claims_read(name: str) -> None:
    """At every scale that a laptop can carry out."""
    scales = EXPERIMENTS[name].scales
    for sweep in (scales[scale] for scale in ("smoke", "laptop") if scale in scales):
        EXPERIMENTS[name].check(sweep)
