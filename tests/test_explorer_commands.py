"""The commands and the Python beside every view of the explorer make what is seen.

They are read off the page in a browser, carried out, and compared with the numbers of the page.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from petridish.errors import UserError
from petridish.rules.outcome_classes import CLASSES, class_counts
from petridish.store import Store
from tests.conftest import Command
from tests.explorer_worlds import Served, served
from tests.test_explorer_page import Page, browser, pytestmark  # noqa: F401 # a fixture and a mark

OWN = '''
"""Two rates and two sizes, of which the calculator weighs one."""
from petridish import MLP, Data, Evaluation, RunSpec, SparseParity, Sweep, Training

SWEEP = Sweep(
    RunSpec(
        task=SparseParity(8, 2),
        data=Data(n_test=200),
        model=MLP(16),
        training=Training(steps=600),
        evaluation=Evaluation(every=20, curves=True),
    ),
    {"training.learning_rate": (0.02, 0.2), "data.m": (60, 200), "seed": range(8)},
)
'''


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a sweep of its own, and its runs in the store beside it."""
    from petridish.cli.main import run_command

    file = tmp_path_factory.mktemp("own") / "own.py"
    file.write_text(OWN)
    asked = ["run", str(file), "--store", str(file.with_name("store")), "--executor", "inline"]
    assert run_command([*asked, "--json"]) == 0
    return file


@pytest.fixture(scope="module")
def server(own: Path) -> Iterator[Served]:
    """Serve its store."""
    with served(own.with_name("store")) as found:
        yield found


@pytest.fixture
def visit(browser: Any, server: Served) -> Iterator[Page]:  # noqa: F811 # the fixture
    """Open the page in a window of its own; an error in its console fails the test."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    found = Page(context.new_page(), server.address)
    yield found
    context.close()
    assert found.errors == []


def shown(page: Any) -> dict[str, str]:
    """Return what stands in the box of commands, by its titles."""
    page.wait_for_selector(".commands .command")
    titles = page.locator(".commands p").all_inner_texts()
    return dict(zip(titles, page.locator(".commands pre").all_inner_texts(), strict=True))


def carried_out(python: str) -> Any:
    """Return what the last line of some Python evaluates to."""
    *lines, last = python.splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)
    return eval(last, names)


def test_the_calculator_holds_what_else_varies(
    visit: Page, server: Served, inside: Command
) -> None:
    """At the value with which most runs were solved, or the one chosen, which the address keeps."""
    of = "own-own"
    (held,) = server.ask("calculator", of=of)["held"]
    assert (held["name"], held["chosen"]) == ("training.learning_rate", "0.2")
    page = visit.open(f"#v=calculator&of={of}&target=0.5")
    page.wait_for_selector("text=Of the runs with learning rate 0.2.")
    assert "--set training.learning_rate=0.2" in shown(page)["Command line"]
    page.select_option("[data-key='learning rate']", "0.02")
    page.wait_for_selector("text=Of the runs with learning rate 0.02.")
    assert "is.training.learning_rate=0.02" in page.url
    page.reload()
    page.wait_for_selector("text=Of the runs with learning rate 0.02.")
    page.select_option("[data-key='learning rate']", "0.2")
    page.wait_for_selector("text=Of the runs with learning rate 0.2.")
    page.locator("[data-key='limit m']").fill("0")
    page.wait_for_selector("text=--have m=60")

    found = server.ask("calculator", of=of, target="0.5", m="60")
    commands = shown(page)
    done = inside(*shlex.split(commands["Command line"])[1:], "--json")
    assert json.loads(done.stdout)["cheapest"] == found["cheapest"] != []
    within = [each for each in found["mixtures"] if each["within"]]
    ways = carried_out(commands["Python"]).to_dicts()
    assert sorted(each["compute"] for each in within) == [each["compute"] for each in ways]


def numbers(given: list[Any]) -> list[float]:
    """Return numbers of an answer or a table; none is NaN."""
    return [math.nan if value is None else float(value) for value in given]


def test_every_map_is_made_by_what_stands_below_it(
    visit: Page, server: Served, inside: Command, tmp_path: Path
) -> None:
    """Whatever value it shows: the Python gives its numbers, the command draws it."""
    about = server.ask("set", of="own-own")
    assert {"solved", "time", "classes", "grokking_delay", "test_error"} <= {*about["values"]}
    for value in about["values"]:
        page = visit.open(f"#v=map&of=own-own&value={value}")
        commands = shown(page)
        table = carried_out(commands["Python"])
        axes = [about["axes"]["rows"], about["axes"]["columns"]]
        places = dict(zip(table.select(axes).iter_rows(), range(len(table)), strict=True))
        fields = {field["name"]: field for field in about["fields"]}
        rows = [
            places[tuple(fields[axis]["numbers"][fields[axis]["codes"][i]] for axis in axes)]
            for i in range(len(about["counts"]["id"]))
        ]
        known = server.ask("value", of="own-own", value=value)
        if value == "classes":
            for name, counts in zip(known["names"], known["counts"], strict=True):
                assert table[name][rows].to_list() == counts
            continue
        for name, column in (("value", "values"), ("low", "low"), ("high", "high")):
            found = numbers(table[name][rows].to_list())
            assert found == pytest.approx(numbers(known[column]), nan_ok=True)
        line = shlex.split(commands["Command line"].splitlines()[1])
        done = inside(*line[1:], "--out", tmp_path / value)
        assert (done.returncode, done.stderr) == (0, "")
        assert len(list((tmp_path / value).glob("*.png"))) == 1


def test_classes_by_moved_thresholds_are_counted_by_the_python(visit: Page) -> None:
    """The lines have the thresholds of the sliders, and count as the page does."""
    page = visit.open("#v=map&of=own-own&value=classes&fitted=0.2&solved=0.3")
    visit.cells()
    page.locator("[data-key='Solved: test error ≤']").fill("-0.6")
    page.wait_for_selector(".commands >> text=solved=0.251")
    table = carried_out(shown(page)["Python"])
    texts = " ".join(visit.cells().values())
    for name in CLASSES:
        counted = sum(int(number) for number in re.findall(rf"(\d+) {name}", texts))
        assert table[name].sum() == counted
    with pytest.raises(UserError, match="Give both"):
        class_counts(table, [], fitted=0.1)


def test_settings_comparisons_and_runs_are_read_by_their_python(
    visit: Page, server: Served, own: Path, inside: Command
) -> None:
    """Of a sweep, of all runs of a store, and of what only a process had declared."""
    for of in ("own-own", "all-runs"):
        about = server.ask("set", of=of)
        first, second = about["counts"]["id"][:2]
        page = visit.open(f"#v=setting&of={of}&id={first}")
        setting = server.ask("setting", of=of, id=first)
        table = carried_out(shown(page)["Python"])
        cell = json.dumps(json.loads(setting["spec"]))
        assert table["cell"].cast(pl.String).to_list() == [cell] * len(setting["runs"][0])

        page = visit.open(f"#v=compare&of={of}&pins={first},{second}")
        both = carried_out(shown(page)["Python"])
        assert len(both) == sum(about["counts"]["n"][:2])
        assert both["cell"].n_unique() == 2

        page = visit.open(f"#v=run&of={of}&id={first}&run=3.0")
        python = shown(page)["Python"]
        assert "trains it again" in python
        (row,) = table.filter(pl.col("seed") == 3).to_dicts()
        assert row["key"] in python


def test_runs_of_a_record_are_read_from_it(browser: Any, tmp_path: Path) -> None:  # noqa: F811
    """A map, a setting and a run of it; no command trains them again to show them."""
    records = Path(__file__).parent.parent / "records"
    folder = min(
        records.glob("*/spec.json"), key=lambda p: (p.parent / "runs.parquet").stat().st_size
    ).parent
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / folder.name).symlink_to(folder)
    Store(tmp_path / "store").prepare()
    with served(tmp_path / "store", records=tmp_path / "records") as live:
        (of,) = (each["name"] for each in live.ask("home")["sets"] if each["kind"] == "record")
        about = live.ask("set", of=of)
        name = about["counts"]["id"][0]
        page = Page(browser.new_page(), live.address)
        commands = shown(page.open(f"#v=map&of={of}"))
        assert list(commands) == ["Python"]
        assert carried_out(commands["Python"])["n"].sum() == sum(about["counts"]["n"])
        table = carried_out(shown(page.open(f"#v=setting&of={of}&id={name}"))["Python"])
        assert len(table) == about["counts"]["n"][0]
        seed, restart = table.select("seed", "restart").row(0)
        python = shown(page.open(f"#v=run&of={of}&id={name}&run={seed}.{restart}"))["Python"]
        assert len(carried_out(python)) == 1
        assert page.errors == []
