"""What the explorer answers: the same numbers as the commands, whatever the store holds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from petridish.chapters import EXPERIMENTS
from petridish.errors import UserError
from petridish.explorer import aggregation
from petridish.explorer.aggregation import MOST_SETTINGS
from petridish.explorer.answers import ANSWERS, Explorer
from petridish.explorer.run_sets import RunSets
from petridish.rules.claims import Judgement
from petridish.rules.outcome_classes import CLASSES, with_classes
from petridish.rules.outcome_table import field_text, outcome_table
from petridish.rules.strata import judge_strata, strata_of
from petridish.rules.varying import axis_order
from petridish.store import Store
from petridish.sweeps import Arms
from tests.conftest import Command, SmokeStore
from tests.explorer_worlds import HARMFUL, TRADED, fill, with_harmful_task, with_mixtures

RECORDS = Path(__file__).parent.parent / "records"


class World:
    """An explorer of one store."""

    def __init__(self, folder: Path, records: Path | None = None) -> None:
        self.folder = folder
        self.explorer = Explorer(RunSets([folder], records))

    def ask(self, what: str, of: str, /, **asked: str) -> dict[str, Any]:
        """Return an answer."""
        found: dict[str, Any] = json.loads(self.explorer.answer(what, {"of": of, **asked}))
        return found


@pytest.fixture
def world(tmp_path: Path, smoke_store: SmokeStore) -> World:
    """Return an explorer of the smoke runs of PF-1 and PF-3."""
    return World(fill(tmp_path / "store", smoke_store, "PF-1", "PF-3"))


def number(value: Any) -> float:
    """Return a number of an answer."""
    return math.nan if value is None else float(value)


@pytest.mark.parametrize("value", ["solved", "time", "test_error", "steps"])
@pytest.mark.parametrize("name", ["PF-1", "PF-3"])
def test_every_setting_has_the_numbers_of_the_outcome_table(
    world: World, name: str, value: str
) -> None:
    """Value, interval and n, and the axes on which they are first shown."""
    of = f"{name.replace('-', '_')}-smoke"
    about, found = world.ask("set", of), world.ask("value", of, value=value)
    sweep = EXPERIMENTS[name].sweep("smoke")
    runs = sweep.among(Store(world.folder).read().table)
    expected = outcome_table(runs, value=value, first=axis_order(sweep))

    assert (about["axes"]["rows"], about["axes"]["columns"]) == (
        expected.axes.rows,
        expected.axes.columns,
    )
    assert tuple(about["axes"]["panels"]) == expected.axes.panels
    by_name = {field["name"]: field for field in about["fields"]}
    settings = {
        tuple(
            by_name[axis]["levels"][by_name[axis]["codes"][i]] for axis in expected.axes.fields
        ): i
        for i in range(len(about["counts"]["id"]))
    }
    assert len(settings) == len(expected.frame)
    for row in expected.frame.iter_rows(named=True):
        i = settings[tuple(field_text(row[axis]) for axis in expected.axes.fields)]
        assert about["counts"]["n"][i] == row["n"]
        for column, numbers in (("value", "values"), ("low", "low"), ("high", "high")):
            there = math.nan if row[column] is None else row[column]
            assert number(found[numbers][i]) == pytest.approx(there, nan_ok=True)
    kinds = ("one of the two middle runs", "runs stopped once they were solved")
    assert found["remarks"] == [r for r in expected.remarks if any(kind in r for kind in kinds)]


def test_all_runs_of_a_store_are_a_set_too(world: World) -> None:
    """Of several experiments, which differ in more than their axes."""
    about = world.ask("set", "all-runs")
    rows = Store(world.folder).read().table

    assert sum(about["counts"]["n"]) == len(rows)
    assert len(about["counts"]["id"]) == rows["cell"].n_unique()
    codes = list(zip(*(field["codes"] for field in about["fields"]), strict=True))
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("folder", sorted(RECORDS.glob("*/spec.json")), ids=lambda p: p.parent.name)
def test_every_record_can_be_looked_at(tmp_path: Path, folder: Path) -> None:
    """Its settings and its usual value, without a fault."""
    of = f"record-{folder.parent.name.replace('-', '_')}"
    world = World(tmp_path, RECORDS)
    about = world.ask("set", of)
    found = world.ask("value", of, value=about["usual"])

    written = json.loads(folder.read_text(encoding="utf-8"))
    arms = isinstance(EXPERIMENTS[written["id"]].scales.get(written["scale"]), Arms)
    assert sum(about["counts"]["n"]) == written["runs"] or arms
    assert len(found["values"]) == len(about["counts"]["id"]) > 0


def test_verdicts_are_those_of_the_command(world: World, inside: Command) -> None:
    """With their estimates; marks are the strata of a rule, each judged alone."""
    found = world.ask("claims", "PF_1-smoke")
    done = inside("verdicts", "PF-1", "--scale", "smoke", "--store", world.folder, "--json")

    assert found["complete"]
    names = ("claim", "verdict", "estimate", "low", "high", "n")
    assert [[c[n] for n in names] for c in found["claims"]] == [
        [v[n] for n in names] for v in json.loads(done.stdout)["verdicts"]
    ]
    sweep = EXPERIMENTS["PF-1"].sweep("smoke")
    runs = sweep.among(Store(world.folder).read().table)
    for claim, shown in zip(EXPERIMENTS["PF-1"].claims, found["claims"], strict=True):
        strata = judge_strata(claim.rule, runs, shown["level"])
        parts = len(strata)
        assert len(shown["strata"]) == (parts if strata_of(claim.rule) else 0)
        for stratum in strata if strata_of(claim.rule) else []:
            inside_it = runs
            for field, value in stratum.values.items():
                inside_it = inside_it.filter(pl.col(field).eq_missing(pl.lit(value)))
            alone = claim.rule.judge(inside_it, shown["level"] / parts)
            assert stratum.judgement is alone.judgement


def test_a_stratum_that_speaks_for_a_claim_is_marked(world: World) -> None:
    """Its settings, and no others."""
    found = world.ask("claims", "PF_1-smoke")
    about = world.ask("set", "PF_1-smoke")
    inits = next(field for field in about["fields"] if field["name"] == "init")
    claim = next(c for c in found["claims"] if c["claim"] == "a")
    supported = [text for text, word in claim["strata"] if word == Judgement.SUPPORTED.value]
    marked = {inits["levels"][inits["codes"][i]] for i in claim["marks"]["for"]}

    assert marked == {text.rpartition("init ")[2] for text in supported}


def test_the_calculator_finds_what_the_frontier_does(
    tmp_path: Path, smoke_store: SmokeStore, inside: Command
) -> None:
    """The same mixtures and the same cheapest one, within the same limits."""
    world = World(with_mixtures(fill(tmp_path / "store", smoke_store, "PF-1")))
    settings = [part for text in TRADED for part in ("--set", text)]
    options = ("--store", world.folder, "--target", "0.8", "--have", "m=100")
    done = inside("frontier", "PF-1", "--scale", "smoke", *settings, *options, "--json")
    expected = json.loads(done.stdout)
    (of,) = (name for name in world.explorer.sets.all() if name.startswith("PF_1-smoke-"))
    found = world.ask("calculator", of, target="0.8", m="100")

    bare = [{k: v for k, v in each.items() if k != "within"} for each in found["mixtures"]]
    assert bare == expected["mixtures"] != []
    assert found["cheapest"] == expected["cheapest"]
    assert {each["within"] for each in found["mixtures"]} <= {True, False}
    assert all(each["within"] == (each["m"] <= 100) for each in found["mixtures"])


CURVE = st.lists(st.one_of(st.floats(0, 1), st.just(math.nan)), min_size=0, max_size=12)


@given(curves=st.lists(CURVE, min_size=1, max_size=5), threshold=st.floats(0, 1))
def test_staircases_know_when_a_threshold_was_first_reached(
    curves: list[list[float]], threshold: float
) -> None:
    """The same evaluation as in the whole curve, for every threshold."""
    table = pl.DataFrame(
        {"curve.step": [[10 * i for i in range(len(c))] for c in curves], "error": curves},
        schema={"curve.step": pl.List(pl.Int64), "error": pl.List(pl.Float64)},
    )
    found = aggregation._stairs(table, "error")
    for run, curve in enumerate(curves):
        inside = slice(found["starts"][run], found["starts"][run + 1])
        stairs = zip(found["steps"][inside], found["values"][inside], strict=True)
        first = next((step for step, value in stairs if value <= threshold), None)
        assert first == next((10 * i for i, v in enumerate(curve) if v <= threshold), None)


def test_classes_are_counted_as_the_rules_count_them(world: World) -> None:
    """By the thresholds of the runs, from their columns and from their curves alike."""
    found = world.ask("value", "PF_3-smoke", value="classes")
    stairs = world.ask("stairs", "PF_3-smoke")
    runs = EXPERIMENTS["PF-3"].sweep("smoke").among(Store(world.folder).read().table)
    expected = with_classes(runs)["class"].value_counts()
    counted = dict(zip(expected["class"], expected["count"], strict=True))

    named = zip(found["names"], found["counts"], strict=True)
    assert {n: sum(c) for n, c in named if sum(c)} == counted
    assert found["names"][: len(CLASSES)] == list(CLASSES)
    assert stairs["runs"] == stairs["of"] == len(runs)


def with_ends(to: Path, store: Path, *ends: tuple[str, int | None, int | None]) -> World:
    """Return a world of the first setting of a store alone, whose runs ended as given."""
    table = Store(store).read(columns="all").table.cast({pl.Categorical: pl.String})
    one = table.filter(pl.col("cell") == pl.col("cell").first()).head(1)
    rows = [
        one.with_columns(
            outcome=pl.lit(outcome),
            solved_at=pl.lit(solved, pl.Int64),
            fitted_at=pl.lit(fitted, pl.Int64),
            key=pl.lit(f"{place:032x}"),
            seed=pl.lit(place).cast(one.schema["seed"]),
        )
        for place, (outcome, solved, fitted) in enumerate(ends)
    ]
    Store(to).prepare()
    Store(to).write_table(pl.concat(rows).with_columns(pl.col("cell").cast(pl.Categorical)))
    return World(to)


def test_diverged_runs_are_a_class_of_their_own(tmp_path: Path, smoke_store: SmokeStore) -> None:
    """Whatever they had fitted: «never fitted» and «memorised only» did not diverge."""
    ends = (("DIVERGED", None, None), ("DIVERGED", None, 10), ("OUT_OF_STEPS", None, 10))
    world = with_ends(tmp_path / "ends", smoke_store("PF-3"), *ends)
    found = world.ask("value", "all-runs", value="classes")
    counts = dict(zip(found["names"], (sum(c) for c in found["counts"]), strict=True))
    assert {n: c for n, c in counts.items() if c} == {"diverged": 2, "memorised only": 1}
    assert sum(world.ask("stairs", "all-runs")["diverged"]) == 2


def test_a_median_says_of_how_many_runs_it_is(tmp_path: Path, smoke_store: SmokeStore) -> None:
    """A delay is that of the runs that had fitted; of none there is none, not one that is late."""
    ends = (("SOLVED", 40, 20), ("SOLVED", 40, None), *[("OUT_OF_STEPS", None, None)] * 3)
    world = with_ends(tmp_path / "some", smoke_store("PF-3"), *ends)
    found = world.ask("value", "all-runs", value="grokking_delay")
    assert (found["values"], found["n"], found["low"]) == ([2.0], [1], [None])
    assert world.ask("set", "all-runs")["counts"]["n"] == [5]

    none = with_ends(tmp_path / "none", smoke_store("PF-3"), *ends[1:], ("SOLVED", 40, None))
    assert "grokking_delay" not in none.ask("set", "all-runs")["values"]


def test_a_metric_that_no_run_has_is_not_offered(tmp_path: Path, smoke_store: SmokeStore) -> None:
    """An error rate of real targets is NaN in every run: a map of it would be all dashes."""
    table = Store(smoke_store("PF-3")).read(columns="all").table
    Store(tmp_path).prepare()
    Store(tmp_path).write_table(table.with_columns(test_error=pl.lit(math.nan)))
    assert "test_error" not in World(tmp_path).ask("set", "all-runs")["values"]


def test_a_setting_has_its_runs_curves_and_whole_spec(world: World) -> None:
    """Every run by its seed; a curve is that of the store."""
    about = world.ask("set", "PF_3-smoke")
    table = EXPERIMENTS["PF-3"].sweep("smoke").among(Store(world.folder).read(columns="all").table)
    for name in about["counts"]["id"]:
        setting = world.ask("setting", "PF_3-smoke", id=name)
        curves = world.ask("curves", "PF_3-smoke", id=name, curve="test_error")
        cell = table.filter(
            pl.col("cell").cast(pl.String) == json.dumps(json.loads(setting["spec"]))
        )
        assert sorted(setting["runs"][0]) == sorted(cell["seed"]) != []
        for drawn in curves["runs"]:
            (kept,) = cell.filter(pl.col("seed") == int(drawn["seed"]))["curve.test_error"]
            assert drawn["value"] == pytest.approx(kept.to_list(), rel=1e-3)
            run = world.ask("run", "PF_3-smoke", id=name, seed=drawn["seed"], restart="0")
            assert dict(run["numbers"])["key"] in set(cell["key"])


def test_weights_are_pictures(tmp_path: Path, smoke_store: SmokeStore) -> None:
    """A matrix in its shape; a larger one by the means of its blocks."""
    world = World(fill(tmp_path / "store", smoke_store, "FE-2"))
    about = world.ask("set", "FE_2-smoke")
    asked = {"id": about["counts"]["id"][0], "seed": "0", "restart": "0"}
    run = world.ask("run", "FE_2-smoke", **asked)
    first = run["arrays"][0]
    picture = world.ask("picture", "FE_2-smoke", **asked, what=first["what"])

    assert first["title"] == "layer1.weight"
    assert np.shape(picture["rows"]) == tuple(first["shape"])
    from petridish.explorer.details import LINE, SIDE, _folded, _smaller

    large = np.arange(600.0 * 3).reshape(600, 3)
    assert _smaller(large).shape == (SIDE, 3)
    assert _smaller(np.ones((600, 700))) == pytest.approx(np.ones((SIDE, SIDE)))
    for line in (np.arange(LINE + 5.0)[None], np.arange(23_000.0)[:, None]):
        rows, width = _folded(line)  # a line of 23,000 numbers would be a pixel high
        assert rows.shape[1] == width
        assert abs(len(rows) - width) <= 1
        assert np.array_equal(rows.ravel()[: line.size], line.ravel())
        assert np.isnan(rows.ravel()[line.size :]).all()
    assert _folded(np.ones((1, LINE)))[1] == _folded(large)[1] == 0


def test_a_class_that_is_gone_is_shown_by_its_name(tmp_path: Path, smoke_store: SmokeStore) -> None:
    """Its runs are counted and listed; nothing of it is computed."""
    world = World(with_harmful_task(smoke_store("PF-3"), tmp_path / "store"))
    about = world.ask("set", "all-runs")
    setting = world.ask("setting", "all-runs", id=about["counts"]["id"][0])

    assert HARMFUL in setting["text"]
    assert sum(about["counts"]["n"]) == len(Store(world.folder).read().table)
    for what in ("value", "stairs", "claims", "dots"):
        assert "error" not in world.ask(what, "all-runs", value="solved")


def test_mistakes_are_answered_in_one_sentence(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set, a setting, a value, a question or a run that is not there; too many settings."""
    with pytest.raises(UserError) as no_set:
        world.ask("set", "nothing")
    with pytest.raises(UserError) as no_setting:
        world.ask("setting", "PF_1-smoke", id="x")
    with pytest.raises(UserError) as no_value:
        world.ask("value", "PF_1-smoke", value="solvd")
    with pytest.raises(UserError) as no_question:
        world.ask("vale", "PF_1-smoke")
    with pytest.raises(UserError) as no_limit:
        world.ask("calculator", "PF_1-smoke", m="many")
    monkeypatch.setattr(aggregation, "MOST_SETTINGS", 3)
    with pytest.raises(UserError) as too_many:
        world.ask("set", "PF_1-smoke")

    assert [str(each.value) for each in (no_set, no_setting, no_value, no_question, no_limit)] == [
        "There are no runs called 'nothing' here. Choose some from the home.",
        "There is no setting 'x' among these runs. Choose one on the map: the store may have "
        "changed since.",
        "There is no value called 'solvd'. Did you mean solved?",
        "There is no question called 'vale'. Did you mean value?",
        "A limit of 'many' was given. Give a positive number.",
    ]
    assert str(too_many.value) == (
        "These runs have 12 settings, and the page shows 3. Give each setting more seeds, or look "
        "at one experiment of the store."
    )
    assert MOST_SETTINGS > 10_000
    assert "set" in ANSWERS
