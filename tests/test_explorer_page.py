"""The explorer's page in a real browser: the flows of a user, clicked through.

Chromium of the system is driven by Playwright. Without a browser these tests are skipped;
PETRIDISH_BROWSER=required makes its absence an error. A line in the console's error log fails them.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from petridish.bench import explorer_answers
from petridish.chapters import EXPERIMENTS
from petridish.rules.outcome_classes import CLASSES
from petridish.store import Store
from petridish.store.requests import note_request
from tests.conftest import SmokeStore
from tests.explorer_worlds import (
    HARMFUL,
    TRADED,
    Served,
    fill,
    served,
    with_harmful_task,
    with_mixtures,
)

REQUIRED = os.environ.get("PETRIDISH_BROWSER") == "required"
if REQUIRED:
    import playwright.sync_api as playwright
else:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright, which drives these tests, is not installed here"
    )
BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
if BROWSER is None and REQUIRED:
    pytest.fail("There is no Chromium here. Install it (Debian: apt install chromium).")
pytestmark = pytest.mark.skipif(
    BROWSER is None,
    reason="no Chromium is installed here, which these tests drive (Debian: apt install chromium)",
)
WAIT = 60_000  # milliseconds at most for what should be there at once: machines may be loaded
PF1, PF3 = "#v=map&of=PF_1-smoke", "#v=map&of=PF_3-smoke"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, smoke_store: SmokeStore) -> Path:
    """Return a store with the smoke runs of three experiments."""
    return with_mixtures(
        fill(tmp_path_factory.mktemp("page") / "store", smoke_store, "PF-1", "PF-3", "FE-2")
    )


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    """Serve it."""
    with served(folder) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start one browser for all tests."""
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield found
        found.close()


class Page:
    """A page in a browser, and what its console said."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.errors: list[str] = []
        page.set_default_timeout(WAIT)
        page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def open(self, where: str = "") -> Any:
        """Go somewhere, and wait until it is shown."""
        self.page.goto("about:blank")
        self.page.goto(self.address + where)
        self.page.wait_for_selector("#view[data-view]")
        return self.page

    def until(self, holds: str) -> None:
        """Wait until an expression of the page holds, which its own policy lets nobody evaluate."""
        for _ in range(WAIT // 50):
            if self.page.evaluate(holds):
                return
            self.page.wait_for_timeout(50)
        pytest.fail(f"{holds} does not hold on {self.page.url}")

    def view(self, name: str) -> None:
        """Wait until a view is shown."""
        self.page.wait_for_selector(f"#view[data-view={name}]")

    def cells(self) -> dict[str, str]:
        """Return what the cells of the map say, by their settings."""
        self.page.wait_for_selector(".map .cell")
        found: dict[str, str] = self.page.evaluate(
            "Object.fromEntries([...document.querySelectorAll('.map .cell')]"
            ".map((cell) => [cell.dataset.id, cell.getAttribute('aria-label')]))"
        )
        return found


@pytest.fixture
def visit(browser: Any, server: Served) -> Iterator[Page]:
    """Open the page in a window of its own; an error in its console fails the test."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, accept_downloads=True)
    found = Page(context.new_page(), server.address)
    yield found
    context.close()
    assert found.errors == []


def test_from_the_home_to_a_run_and_back(visit: Page) -> None:
    """Home, map, cell, run; the browser's own way back leads there again."""
    page = visit.open()
    page.click("[data-set=PF_3-smoke]")
    visit.view("map")
    cells = visit.cells()
    assert len(cells) == 4
    page.locator(".map .cell").nth(1).click()
    visit.view("setting")
    page.wait_for_selector(".chart .scatterlayer .trace")
    assert "sample size m" in page.inner_text("h1:not(.of)")
    page.click("td a")
    visit.view("run")
    assert page.inner_text("td:has-text('key') + td") in set(
        Store(Path(server_folder(page))).read().table["key"]
    )
    page.go_back()
    visit.view("setting")
    page.go_back()
    visit.view("map")
    assert visit.cells() == cells


def server_folder(page: Any) -> str:
    """Return the store that a page shows."""
    found: str = page.evaluate(
        "fetch('api/home').then((r) => r.json()).then((h) => h.stores[0].folder)"
    )
    return found


def test_two_pinned_settings_are_compared(visit: Page) -> None:
    """What differs between their specs, and their curves."""
    page = visit.open(PF3)
    for place in (0, 3):
        page.locator(".map .cell").nth(place).focus()
        page.keyboard.press("p")
        page.wait_for_selector(f".pins p:nth-child({1 + (place > 0)})")
    page.click("text=Compare A with B")
    visit.view("compare")
    page.wait_for_selector(".chart .scatterlayer .trace")
    fields = page.locator(".differs td:first-child").all_inner_texts()
    assert {"data.m", "init"} <= set(fields)
    page.locator(".chart >> nth=0").wait_for()


def test_a_map_says_what_the_server_computed_and_its_address_keeps_it(visit: Page) -> None:
    """Other axes, a filter, a value: a reload of the address shows the same."""
    page = visit.open(PF1)
    before = visit.cells()
    assert all("% solved [" in text for text in before.values())
    page.select_option("[data-key=Shows]", "test_error")
    page.wait_for_selector(".map .cell[aria-label*='test_error']")
    page.select_option("[data-key=Across]", "init")
    page.wait_for_selector(".map[aria-label*='over init']")
    visit.until("document.querySelectorAll('.panel').length > 1")
    page.select_option("[data-key='sample size m']", "300")
    visit.until("document.querySelectorAll('.panel').length === 1")
    shown, address = visit.cells(), page.url
    assert set(shown) < set(before)
    page.reload()
    page.wait_for_selector(".map .cell[aria-label*='test_error']")
    assert (visit.cells(), page.url) == (shown, address)
    commands = page.inner_text(".commands")
    assert "petridish figure PF-1 --scale smoke --set data.m=300" in commands
    assert "--rows model.width --columns init --value test_error" in commands


def test_what_is_shown_can_be_made_by_the_command_that_is_shown(
    visit: Page, tmp_path: Path
) -> None:
    """The copied commands run as they are."""
    page = visit.open(f"{PF1}&is.data.m=100")
    visit.cells()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click(".command button >> nth=0")
    page.wait_for_selector("text=Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.inner_text(".command pre >> nth=0")
    line = copied.splitlines()[1].replace("petridish", f"{sys.executable} -m petridish.cli.main", 1)
    done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.returncode == 0
    python = page.inner_text(".command pre >> nth=1") + "\nprint(len(runs.outcomes()))"
    done = subprocess.run(
        [sys.executable, "-c", python], cwd=tmp_path, capture_output=True, text=True
    )
    assert int(done.stdout.splitlines()[-1]) == len(visit.cells())


def test_a_slider_classifies_the_runs_anew(visit: Page, folder: Path) -> None:
    """As the thresholds would have, from the curves; the address keeps them."""
    page = visit.open(f"{PF3}&value=classes")
    visit.cells()
    solved = "Solved: test error ≤"
    page.locator(f"[data-key='{solved}']").fill("-0.5")
    visit.until("location.hash.includes('solved=0.316')")
    expected = dict.fromkeys(CLASSES, 0)
    table = EXPERIMENTS["PF-3"].sweep("smoke").among(Store(folder).read(columns="all").table)
    columns = ("curve.step", "curve.train_error", "curve.test_error", "evaluation.every")
    for step, train, test, every in table.select(columns).iter_rows():
        fit = next((s for s, e in zip(step, train, strict=True) if e <= 0.01), None)
        done = next((s for s, e in zip(step, test, strict=True) if e <= 0.316), None)
        late = fit is not None and done is not None and done - every >= 2 * max(fit, 1)
        kind = (1 if late else 0) if done is not None else 3 if fit is None else 2
        expected[CLASSES[kind]] += 1

    def counted() -> dict[str, int]:
        texts = visit.cells().values()
        return {
            n: sum(int(m) for t in texts for m in re.findall(rf"(\d+) {n}", t)) for n in CLASSES
        }

    assert counted() == expected
    page.reload()
    page.wait_for_selector(".map .cell")
    assert counted() == expected
    assert float(page.evaluate("document.body.dataset.classified || 0")) < 100


def test_a_lower_error_than_runs_were_stopped_at_leaves_them_unknown(visit: Page) -> None:
    """They were stopped as solved before: «memorised only» would be an assertion."""
    page = visit.open(f"{PF3}&value=classes")
    before = visit.cells()
    solved = sum(
        int(n) for t in before.values() for n in re.findall(r"(\d+) (?:solved at once|grokked)", t)
    )
    assert solved > 0
    assert not any("unknown" in text for text in before.values())
    page.locator("[data-key='Solved: test error ≤']").fill("-4")
    visit.until("location.hash.includes('solved=0.0001')")
    after = visit.cells()
    now = {
        kind: sum(int(n) for t in after.values() for n in re.findall(rf"(\d+) {kind}", t))
        for kind in ("solved at once", "grokked", "unknown: stopped before")
    }
    assert sum(now.values()) == solved
    assert now["unknown: stopped before"] > 0
    assert "unknown: stopped before" in page.inner_text(".legend")


def test_the_keyboard_reaches_everything(visit: Page) -> None:
    """The map is one stop of the tabulator; arrows move, Enter opens."""
    page = visit.open(PF1)
    visit.cells()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('cell')"):
            break
    first = page.evaluate("document.activeElement.dataset.place")
    assert first == "0,0"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.dataset.place") == "1,1"
    said = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert page.inner_text(".reading") == said
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.place") != "1,2"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    visit.view("setting")


def test_the_keyboard_pins_and_stays_where_it_was(visit: Page) -> None:
    """P pins, and the focus stays on the cell: A, then B, then back from a setting to its cell."""
    page = visit.open(PF1)
    visit.cells()
    page.locator(".map .cell[data-place='0,0']").first.focus()
    place = "document.activeElement.dataset.place"
    page.keyboard.press("p")
    page.wait_for_selector(".pins p:nth-child(1)")
    assert page.evaluate(place) == "0,0"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("P")
    page.wait_for_selector(".pins p:nth-child(2)")
    page.wait_for_selector("text=Compare A with B")
    assert page.evaluate(place) == "0,1"
    page.keyboard.press("P")
    page.wait_for_selector("text=Compare A with B", state="detached")
    page.keyboard.press("Enter")
    visit.view("setting")
    page.keyboard.press("p")
    page.wait_for_selector("text=Compare A with B")
    page.click("text=← map")
    visit.view("map")
    assert page.evaluate(place) == "0,1"
    assert page.locator(".map").first.locator("[tabindex='0']").count() == 1


def test_the_cell_under_the_mouse_is_pinned_by_its_key(visit: Page) -> None:
    """As the map's hint says."""
    page = visit.open(PF1)
    cells = list(visit.cells())
    page.hover(f".map .cell[data-id='{cells[2]}']")
    page.keyboard.press("p")
    page.wait_for_selector(".pins")
    assert f"pins={cells[2]}" in page.url


def test_a_view_that_is_being_read_does_not_stand_under_the_old_one(
    browser: Any, server: Served
) -> None:
    """An answer that does not come leaves «Reading …» on the page, not what was asked before."""
    context = browser.new_context()
    visit = Page(context.new_page(), server.address)
    page = visit.open(PF1)
    visit.cells()
    page.route("**/api/claims*", lambda _: None)
    page.evaluate("location.hash = '#v=claims&of=PF_1-smoke'")
    page.wait_for_selector("#view[aria-busy=true] >> text=Reading …")
    assert page.locator(".map").count() == 0
    page.evaluate("location.hash = '#v=map&of=PF_1-smoke'")
    visit.cells()
    assert page.get_attribute("#view", "aria-busy") is None
    context.close()


def test_what_cannot_be_read_is_said_in_its_place(browser: Any, server: Served) -> None:
    """Curves that cannot be read: the line stands where they would, above the times' chart."""
    context = browser.new_context()
    visit = Page(context.new_page(), server.address)
    name = server.ask("set", of="PF_3-smoke")["counts"]["id"][0]
    page = visit.page
    line = {"error": "The shard is torn."}
    page.route("**/api/curves*", lambda route: route.fulfill(status=400, json=line))
    visit.open(f"#v=setting&of=PF_3-smoke&id={name}")
    page.wait_for_selector(".columns section:has(h2:text-is('Curves')) >> text=The shard is torn.")
    assert page.locator("text=The shard is torn.").count() == 1
    context.close()


def test_many_problems_are_one_line_that_unfolds(
    browser: Any, tmp_path: Path, smoke_store: SmokeStore
) -> None:
    """The first is said, the others wait below it."""
    folder = fill(tmp_path / "store", smoke_store, "PF-3")
    for number in range(5):
        (folder / f"odd-{number}.parquet").write_bytes(b"odd")
    with served(folder) as live:
        context = browser.new_context()
        visit = Page(context.new_page(), live.address)
        page = visit.open(PF3)
        page.wait_for_selector("#problems >> text=4 more of this kind")
        assert page.locator("#problems .warning:visible").count() == 1
        page.click("#problems summary")
        assert page.locator("#problems .warning:visible").count() == 5
        context.close()


def test_a_setting_begins_with_its_share_interval_and_n(visit: Page) -> None:
    """As its cell on the map says; two that are compared have theirs."""
    page = visit.open(PF1)
    cells = visit.cells()
    first, second = list(cells)[:2]
    page = visit.open(f"#v=setting&of=PF_1-smoke&id={first}")
    assert page.inner_text(".headline") == cells[first].split(": ", 1)[1]
    page = visit.open(f"#v=compare&of=PF_1-smoke&pins={first},{second}")
    expected = [f"{x} {cells[n].split(': ', 1)[1]}" for x, n in (("A", first), ("B", second))]
    assert page.locator(".headline").all_inner_texts() == expected


def test_the_frontier_is_drawn_where_a_row_crosses_half(visit: Page, server: Served) -> None:
    """Nothing on the edge of a row in which all settings lie on one side."""
    about, value = (
        server.ask("set", of="PF_1-smoke"),
        server.ask("value", of="PF_1-smoke", value="solved"),
    )
    fields = {field["name"]: field["codes"] for field in about["fields"]}
    rows: dict[Any, list[tuple[int, bool]]] = {}
    for i, share in enumerate(value["values"]):
        place = fields["init"][i], fields["model.width"][i]
        rows.setdefault(place, []).append((fields["data.m"][i], share >= 0.5))
    crossing = [
        place
        for place, cells in rows.items()
        if not min(cells)[1] and any(above for _, above in cells)
    ]
    assert 0 < len(crossing) < len(rows)
    page = visit.open(PF1)
    visit.cells()
    lines = page.locator(".map path[stroke='#d55e00']").evaluate_all(
        "all => all.map((path) => path.getAttribute('d'))"
    )
    drawn = sum(len(re.findall(r"(\S+) (\S+)L\1 ", "".join(line))) for line in lines)
    assert drawn == len(crossing)


def test_the_scoreboard_is_a_list_on_a_phone(browser: Any, server: Served) -> None:
    """Nothing is cut off, and every row says which claim it is of."""
    text = "The smallest sample with which half of the runs succeed does not grow with the width."
    claim = {
        "id": "PF-1",
        "claim": "a",
        "kind": "paper",
        "text": text,
        "verdict": "supported",
        "n": 9295,
        "record": "2026-11-16-PF-1-panel",
        "paper": "A success frontier: large width can compensate for small data.",
        "largest": True,
        "chapter": "Pareto frontiers",
        "numbers": "2.58 [2, 6.32]",
    }
    further = {**claim, "largest": False, "record": "2026-11-18-PF-1-laptop"}
    chapter = "Pareto frontiers"
    counted = {"head": ["chapter", "kind", "supported"], "rows": [[chapter, "paper", "1"]]}
    board = {"claims": [claim, further], "chapters": [chapter], "counts": [counted]}
    for width in (390, 1400):
        context = browser.new_context(viewport={"width": width, "height": 800})
        visit = Page(context.new_page(), server.address)
        visit.page.route("**/api/scoreboard", lambda route: route.fulfill(json=board))
        page = visit.open()
        page.click("summary:text-is('Pareto frontiers')")
        box = page.locator(".stacks")
        assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
        firsts = box.locator("tbody tr td:first-child")
        assert all(text in each for each in firsts.all_inner_texts())
        assert firsts.first.bounding_box()["width"] > 250
        place = box.locator(".place").first.bounding_box()
        assert width < 1400 or place["height"] < 30  # one line
        context.close()


def test_an_enlarged_map_says_what_its_dots_are(visit: Page) -> None:
    """Also where the map shows something else than success."""
    page = visit.open(f"{PF1}&value=test_error")
    visit.cells()
    assert "one run, solved" not in page.inner_text(".legend")
    page = visit.open(f"{PF1}&value=test_error&zoom=3")
    visit.cells()
    assert "one run, solved" in page.inner_text(".legend")


def test_the_calculator_answers_as_sliders_move(visit: Page, server: Served) -> None:
    """The cheapest way within the limits, as the server computes it."""
    sets = server.ask("home")["sets"]
    (of,) = (each["name"] for each in sets if each["settings"] == list(TRADED))
    page = visit.open(f"#v=calculator&of={of}&target=0.5")
    page.wait_for_selector(".answer")
    page.wait_for_selector(".chart .scatterlayer .trace")
    for place, least in (("target", 0.8), ("limit m", 0)):
        page.locator(f"[data-key='{place}']").fill(str(least))
    visit.until("/[#&]m=100(&|$)/.test(location.hash) && location.hash.includes('target=0.8')")
    page.wait_for_selector("text=--target 0.8 --have m=100")
    cheapest = server.ask("calculator", of=of, target="0.8", m="100")["cheapest"]
    text = page.inner_text(".answer >> nth=0")
    if cheapest:
        assert f"m = {cheapest[0]['m']}, width {cheapest[0]['width']}" in text
    else:
        assert text.startswith("Nothing that was measured reaches this within these limits.")


def test_a_budget_is_a_limit_and_all_ways_can_be_taken_away(
    visit: Page, server: Served, tmp_path: Path
) -> None:
    """The slider's first stop is the compute of the cheapest way; the CSV has all of them."""
    sets = server.ask("home")["sets"]
    (of,) = (each["name"] for each in sets if each["settings"] == list(TRADED))
    known = server.ask("calculator", of=of, target="0.5")
    page = visit.open(f"#v=calculator&of={of}&target=0.5")
    page.wait_for_selector(".answer")
    page.locator("[data-key='limit compute']").fill("0")
    least = known["ranges"]["compute"][0]
    visit.until(f"location.hash.includes('compute={int(least)}')")
    page.wait_for_selector(f"text=--have compute={int(least)}")
    assert page.inner_text(".answer >> nth=0").count("Compute width × steps × restarts") == 1
    with page.expect_download() as found:
        page.click(".results button:text-is('CSV')")
    found.value.save_as(tmp_path / "ways.csv")
    rows = list(csv.DictReader((tmp_path / "ways.csv").read_text("utf-8").splitlines()))
    assert len(rows) == len(known["mixtures"])
    within = [row for row in rows if row["within"] == "true"]
    assert within
    assert all(float(row["compute"]) <= least for row in within)


def test_claims_are_shown_with_their_verdicts_and_marked_on_the_map(
    visit: Page, server: Served
) -> None:
    """The cells of a stratum that speaks for a claim have its mark."""
    claims = server.ask("claims", of="PF_1-smoke")["claims"]
    page = visit.open("#v=claims&of=PF_1-smoke")
    words = page.locator(".claim .verdict").all_inner_texts()
    assert words == [claim["word"] for claim in claims]
    most = max(
        claims, key=lambda claim: len(claim["marks"]["for"]) + len(claim["marks"]["against"])
    )
    page.goto(f"{visit.address}{PF1}&claim={most['claim']}")
    page.wait_for_selector("text=each judged alone")
    marked = page.locator(".map .cell path[stroke-width='0.8']").count()
    assert marked == len(most["marks"]["for"]) + len(most["marks"]["against"])


def test_the_page_follows_a_sweep_that_is_running(
    browser: Any, tmp_path: Path, smoke_store: SmokeStore
) -> None:
    """Without a reload: its card appears, its runs are counted, and it is complete in the end."""
    folder = fill(tmp_path / "store", smoke_store, "PF-3")
    with served(folder) as live:
        context = browser.new_context()
        visit = Page(context.new_page(), live.address)
        page = visit.open()
        page.evaluate("window.never_reloaded = true")
        command = [sys.executable, "-m", "petridish.cli.main", "run", "PF-1", "--scale", "smoke"]
        with subprocess.Popen(
            [*command, "--store", str(folder), "--executor", "inline", "--json"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as running:
            page.wait_for_selector("[data-set=PF_1-smoke]")
            page.click("[data-set=PF_1-smoke]")
            whole = len(EXPERIMENTS["PF-1"].sweep("smoke"))
            assert running.wait(timeout=300) == 0
        # The page asks every second, so that two seconds are enough; a loaded machine may be late.
        visit.until(f"document.querySelector('h1.of + p')?.textContent.includes(' {whole} runs ·')")
        page.wait_for_selector(".map .cell")
        assert (
            sum(
                int(t.rpartition("n = ")[2].split(";")[0].split(",")[0])
                for t in visit.cells().values()
            )
            == whole
        )
        assert page.evaluate("window.never_reloaded") is True
        assert visit.errors == []
        context.close()


def test_what_goes_wrong_is_one_line_on_the_page(
    browser: Any, tmp_path: Path, smoke_store: SmokeStore
) -> None:
    """A torn shard, a store that vanishes and comes back; the page is never blank."""
    folder = fill(tmp_path / "store", smoke_store, "PF-3")
    torn = Store(folder).shards()[0]
    torn.write_bytes(torn.read_bytes()[:100])
    with served(folder) as live:
        context = browser.new_context()
        visit = Page(context.new_page(), live.address)
        page = visit.open(PF3)
        page.wait_for_selector(f"#problems >> text=The shard {torn} is torn")
        folder.rename(tmp_path / "gone")
        page.wait_for_selector(f"#problems >> text=The store {folder} is not there.")
        assert page.inner_text("#view").strip()
        (tmp_path / "gone").rename(folder)
        page.wait_for_selector("#problems >> text=is not there", state="detached")
        page.goto(f"{live.address}#v=setting&of=PF_3-smoke&id=nothing")
        page.wait_for_selector("text=This setting is not among the runs any more.")
        assert visit.errors == []
        context.close()


def test_markup_in_a_store_stays_text(
    browser: Any, tmp_path: Path, smoke_store: SmokeStore
) -> None:
    """In every view of a task whose class has markup for a name, and in the title of a sweep."""
    folder = with_harmful_task(smoke_store("PF-3"), tmp_path / "store")
    note_request(folder, f"{HARMFUL}.py", "own")
    with served(folder) as live:
        about = live.ask("set", of="all-runs")
        name = about["counts"]["id"][0]
        of = "of=all-runs"
        context = browser.new_context()
        visit = Page(context.new_page(), live.address)
        for where in (
            "",
            f"#v=map&{of}",
            f"#v=setting&{of}&id={name}",
            f"#v=run&{of}&id={name}&run=0.0",
            f"#v=claims&{of}",
            f"#v=compare&{of}&pins={name},{about['counts']['id'][1]}",
        ):
            page = visit.open(where)
            page.wait_for_timeout(300)
            assert page.evaluate("window.harmed") is None
            assert page.locator("#view img, #problems img").count() == 0
        page = visit.open(f"#v=setting&{of}&id={name}")
        assert HARMFUL in page.inner_text("#view")
        page.wait_for_selector(f"#problems >> text={HARMFUL}.py is not shown.")
        assert visit.errors == []
        context.close()


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "light"), (390, "dark")])
def test_every_view_fits_its_window(browser: Any, server: Served, width: int, scheme: str) -> None:
    """Nothing is wider than the window; a dark one is dark."""
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    visit = Page(context.new_page(), server.address)
    first, second = server.ask("set", of="PF_3-smoke")["counts"]["id"][:2]
    weights = server.ask("set", of="FE_2-smoke")["counts"]["id"][0]
    views = (
        "",
        PF1,
        f"{PF1}&zoom=3",
        f"#v=setting&of=PF_3-smoke&id={first}",
        "#v=claims&of=PF_1-smoke",
        f"#v=compare&of=PF_3-smoke&pins={first},{second}",
        "#v=calculator&of=PF_1-smoke",
        f"#v=run&of=FE_2-smoke&id={weights}&run=0.0",
        "#v=map&of=all-runs",
    )
    for where in views:
        page = visit.open(where)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, where
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    page.click("#theme")
    visit.until(f"getComputedStyle(document.body).backgroundColor !== '{background}'")
    assert visit.errors == []
    context.close()


def test_options_of_a_command_are_not_broken(browser: Any, server: Served) -> None:
    """A line does not end between the two hyphens, however narrow the screen."""
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.set_default_timeout(WAIT)
    page.goto(server.address + PF1)
    page.wait_for_selector(".command pre span")
    heights = page.evaluate(
        "[...document.querySelectorAll('.command pre span')]"
        ".filter((word) => word.textContent.startsWith('--')).map((word) => word.offsetHeight)"
    )
    assert len(heights) > 3
    assert max(heights) < 30  # one line
    page.close()


def test_many_panels_stand_beside_each_other(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of them in a row on a wide screen."""
    monkeypatch.setattr(explorer_answers, "SEEDS", 2)
    explorer_answers.make_store(tmp_path / "made", 3_000)
    with served(tmp_path / "made") as here:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(WAIT)
        page.goto(f"{here.address}#v=map&of=all-runs")
        page.wait_for_selector(".panel")
        boxes = [each.bounding_box() for each in page.query_selector_all(".panel")]
        assert len(boxes) > 12
        assert len({round(box["y"]) for box in boxes[:3]}) == 1
        page.hover(".map .cell")
        reading = page.query_selector(".reading").bounding_box()
        assert reading["y"] + reading["height"] <= 900  # in sight, not below all panels
        assert page.inner_text(".reading").startswith("width r ")
        page.close()


def test_cells_are_of_one_size_whatever_their_captions(
    browser: Any, tmp_path: Path, smoke_store: SmokeStore
) -> None:
    """A long name of a task does not stretch its panel; on a phone enlarged maps are scrolled."""
    folder = with_harmful_task(smoke_store("PF-1"), tmp_path / "store")
    Store(folder).write_table(
        Store(smoke_store("PF-1")).read(columns="all").table.cast({pl.Categorical: pl.String})
    )
    with served(folder) as here:
        page = browser.new_page(viewport={"width": 390, "height": 900})
        page.set_default_timeout(WAIT)
        for zoom in ("1", "3"):
            page.goto("about:blank")
            page.goto(f"{here.address}#v=map&of=all-runs&zoom={zoom}")
            page.wait_for_selector(".map .cell")
            sides = page.evaluate(
                "[...document.querySelectorAll('.map .cell .edge')]"
                ".map((edge) => Math.round(edge.getBoundingClientRect().width))"
            )
            assert len(set(sides)) == 1
        assert sides[0] >= 3 * 22 - 1
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.close()


def test_a_share_that_is_never_all_is_drawn_to_the_end(visit: Page, server: Served) -> None:
    """Of a setting in which some runs were solved, the line goes on to their last step."""
    counts = server.ask("set", of="PF_1-smoke")["counts"]
    pairs = zip(counts["id"], counts["n"], counts["solved"], strict=True)
    some = next(name for name, n, solved in pairs if 0 < solved < n)
    page = visit.open(f"#v=setting&of=PF_1-smoke&id={some}")
    page.wait_for_selector(".js-plotly-plot .scatterlayer")
    line = page.evaluate("document.querySelector('.js-plotly-plot').data[0]")
    setting = server.ask("setting", of="PF_1-smoke", id=some)
    assert line["x"][-1] >= max(setting["runs"][setting["columns"].index("steps")])
    assert line["y"][-1] == line["y"][-2] < 1


def test_pictures_and_tables_can_be_taken_away(visit: Page, tmp_path: Path) -> None:
    """As CSV with the numbers of the map, as SVG and as PNG."""
    page = visit.open(PF1)
    cells = visit.cells()
    taken = {}
    for kind in ("CSV", "SVG", "PNG"):
        with page.expect_download() as found:
            page.click(f"button:text-is('{kind}')")
        taken[kind] = tmp_path / f"map.{kind.lower()}"
        found.value.save_as(taken[kind])
    rows = list(csv.DictReader(taken["CSV"].read_text("utf-8").splitlines()))
    assert len(rows) == len(cells)
    shares = sorted(round(100 * int(row["solved"]) / int(row["n"])) for row in rows)
    assert shares == sorted(int(text.split(": ")[1].split(" %")[0]) for text in cells.values())
    assert {row["init"] for row in rows} == {"sparse(2)", "uniform"}
    picture = taken["SVG"].read_text("utf-8")
    assert picture.startswith("<svg")
    assert picture.count('class="cell') == len(cells)
    assert "var(" not in picture
    assert page.inner_text("h1.of") in picture  # the title, and what the marks mean
    assert "undecided: the interval holds ½" in picture
    places = [(row["model.width"], row["data.m"], row["init"]) for row in rows]
    assert places == sorted(places, key=lambda p: (float(p[0]), float(p[1]), p[2]))
    assert taken["PNG"].read_bytes()[:4] == b"\x89PNG"


def test_a_map_of_classes_takes_its_thresholds_along(visit: Page, tmp_path: Path) -> None:
    """In the table and in the picture; a setting's table has a name that says which."""
    page = visit.open(f"{PF3}&value=classes&solved=0.3&fitted=0.02")
    visit.cells()
    for kind in ("CSV", "SVG"):
        with page.expect_download() as found:
            page.click(f"button:text-is('{kind}')")
        found.value.save_as(tmp_path / kind)
    rows = list(csv.DictReader((tmp_path / "CSV").read_text("utf-8").splitlines()))
    heads = (tmp_path / "CSV").read_text("utf-8").splitlines()[0].split(",")
    assert len(heads) == len({*heads})
    assert {(row["fitted at most"], row["solved at most"]) for row in rows} == {("0.02", "0.3")}
    picture = (tmp_path / "SVG").read_text("utf-8")
    assert "training error ≤ 0.02, solved: test error ≤ 0.3" in picture
    assert all(name in picture for name in CLASSES)
    page.locator(".map .cell").first.click()
    visit.view("setting")
    with page.expect_download() as found:
        page.click("h2:text-is('Spec') >> xpath=preceding::button[text()='CSV'][1]")
    assert found.value.suggested_filename.startswith("PF_3-smoke-")
    assert "sample_size_m" in found.value.suggested_filename


def test_charts_can_be_taken_away_as_pictures(visit: Page, tmp_path: Path) -> None:
    """By the buttons above a chart, as SVG and as PNG."""
    page = visit.open(PF3)
    visit.cells()
    page.click(".map .cell >> nth=0")
    visit.view("setting")
    page.wait_for_selector(".chart .scatterlayer .trace")
    for title, kind, start in (
        ("Download plot", "svg", b"<svg"),
        ("Download plot as a PNG", "png", b"\x89PNG"),
    ):
        with page.expect_download() as found:
            page.locator(f".modebar-btn[data-title='{title}']").first.click(force=True)
        found.value.save_as(tmp_path / f"chart.{kind}")
        assert (tmp_path / f"chart.{kind}").read_bytes().startswith(start)


def test_no_chart_offers_to_upload_itself(visit: Page) -> None:
    """The buttons of a chart save it here, and do not cover its legend."""
    page = visit.open(PF3)
    page.locator(".map .cell").first.click()
    page.wait_for_selector(".chart .scatterlayer .trace")
    page.locator(".chart").first.hover()
    titles = page.locator(".modebar-btn").evaluate_all("all => all.map((b) => b.dataset.title)")
    assert "Download plot as a PNG" in titles
    assert [t for t in titles if re.search("share|cloud|upload|edit", t, re.IGNORECASE)] == []
    for place in range(page.locator(".js-plotly-plot").count()):
        of = page.locator(".js-plotly-plot").nth(place)
        bar, legend = (of.locator(each).first.bounding_box() for each in (".modebar", ".legend"))
        assert bar["y"] + bar["height"] <= legend["y"]


def test_an_exported_file_shows_the_same_without_a_network(
    browser: Any, server: Served, folder: Path, tmp_path: Path
) -> None:
    """The same map, classes, settings and claims, opened from the file; nothing is asked for."""
    from petridish.explorer.one_file import write_file

    out = tmp_path / "runs.html"
    write_file([folder], None, out)
    context = browser.new_context(offline=True)
    asked: list[str] = []
    visit = Page(context.new_page(), out.as_uri())
    visit.page.on("request", lambda request: asked.append(request.url))
    page = visit.open(f"{PF1}")
    cells = visit.cells()
    live = browser.new_context()
    other = Page(live.new_page(), server.address)
    other.open(PF1)
    assert cells == other.cells()
    live.close()
    page = visit.open()
    page.click("[data-set=PF_3-smoke]")
    page.select_option("[data-key=Shows]", "classes")
    page.wait_for_selector("[data-key='Solved: test error ≤']")
    page.locator(".map .cell").first.click()
    page.wait_for_selector(".chart .scatterlayer .trace")
    page.click("td a")
    visit.view("run")
    page.wait_for_selector(".chart .scatterlayer .trace")
    assert page.inner_text("td:has-text('outcome') + td") in ("SOLVED", "OUT_OF_STEPS", "DIVERGED")
    assert "does not hold" not in page.inner_text("#view")
    page.click("text=Claims")
    visit.view("claims")
    assert page.locator(".claim .verdict").count() == len(EXPERIMENTS["PF-3"].claims)
    assert {url.partition("#")[0] for url in asked if url != "about:blank"} == {out.as_uri()}
    assert visit.errors == []
    context.close()


def test_nothing_on_the_page_comes_from_elsewhere(visit: Page) -> None:
    """Every request goes to the server itself."""
    asked: list[str] = []
    visit.page.on("request", lambda request: asked.append(request.url))
    page = visit.open(PF3)
    page.locator(".map .cell").first.click()
    page.wait_for_selector(".chart .scatterlayer .trace")

    assert all(url.startswith((visit.address, "data:", "blob:", "about:")) for url in asked)
    assert any("plotly.min.js" in url for url in asked)
