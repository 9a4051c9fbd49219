"""The commands and the Python beside every view of the explorer make what is seen.

They are read off the page in a browser, carried out, and compared with the numbers of the page.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
