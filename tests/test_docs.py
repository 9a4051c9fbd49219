"""The documentation does what it says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from petridish.chapters import EXPERIMENTS
from petridish.store import Store
from petridish.training import flat
from tests import homes
from tests.conftest import Command, SmokeStore, copy_runs
from tests.test_spec import SPEC

pytestmark = pytest.mark.usefixtures("short_calibration")
ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(r"```python\n# (\S+?\.py)(, continued)?\n(.*?)```", re.DOTALL)


def page(name: str) -> str:
    """Return the text of a page of docs/."""
    return (DOCS / name).read_text(encoding="utf-8")


def extend_files() -> dict[str, list[str]]:
    """Return the blocks of docs/guides/extend.md, by the file they belong to."""
    files: dict[str, list[str]] = {}
    for name, _, code in BLOCK.findall(page("guides/extend.md")):
        files.setdefault(name, []).append(code)
    return files


def test_extensions_are_short() -> None:
    """A class of your own takes at most 25 lines, imports included; of two or three, that each."""
    for name, blocks in extend_files().items():
        lines = [line for line in blocks[0].splitlines() if line.strip()]
        classes = sum(line.startswith("class ") for line in lines)
        assert classes == 0 or len(lines) <= 25 * classes, name


CHECKED = {
    "my_task.py": "task halves(11)",
    "my_model.py": "model net(16",
    "my_loss.py": "loss focal",
    "my_metric.py": "instrument silent",
    "my_activation.py": "model mlp(",
    "my_init.py": "init sparse_signs(2)",
}


@pytest.mark.parametrize("name", CHECKED)
def test_every_extension_keeps_its_contract(name: str, inside: Command, tmp_path: Path) -> None:
    """As the page says: petridish check my_task.py."""
    (tmp_path / name).write_text("\n".join(extend_files()[name]), encoding="utf-8")
    done = inside("check", name)

    assert done.returncode == 0, done.stderr
    kept = [line for line in done.stdout.splitlines() if line.startswith("contract")]
    assert any(CHECKED[name] in line for line in kept), done.stdout


@pytest.mark.parametrize("name", extend_files())
def test_every_extension_runs(name: str, inside: Command, tmp_path: Path) -> None:
    """With workers that must import the user's file, and again from the store."""
    (tmp_path / name).write_text("\n".join(extend_files()[name]), encoding="utf-8")
    first = inside("run", name, "--jobs", "2")
    again = inside("run", name)

    assert first.returncode == again.returncode == 0, first.stderr
    table = Store(tmp_path / "petridish-store").read().table
    parents = 6 if name == "my_chain.py" else 0  # which nobody asks for again
    assert f"{len(table)} runs trained" in first.stderr
    found = len(table) - parents
    assert f"0 runs trained (0 solved) and {found} found in the store" in again.stderr
    assert (table["outcome"] == "SOLVED").any()


def test_the_question_in_the_readme_is_answered(tmp_path: Path) -> None:
    """As a script, as printed, but for fewer steps and seeds."""
    ((_, _, code),) = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    short = code.replace("10_000", "100").replace("range(20)", "range(2)")
    (tmp_path / "mine.py").write_text(short, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, encoding="utf-8"
    )

    assert done.returncode == 0, done.stderr
    assert "98/98 runs" in done.stderr
    assert "training.weight_decay" in done.stdout
    assert (tmp_path / "decay.png").stat().st_size > 1000


def test_the_guide_compares_at_tuned_rates(inside: Command, tmp_path: Path) -> None:
    """The example of docs/guides/question.md: its four commands, and what the third prints."""
    text = page("guides/question.md")
    ((name, _, code),) = BLOCK.findall(text)
    (tmp_path / name).write_text(code, encoding="utf-8")
    commands = re.findall(r"^petridish ((?:check|run|figure) tuned.py.*?)  +#", text, re.MULTILINE)
    done = [inside(*command.split()) for command in commands]

    assert len(done) == 4
    assert [each.returncode for each in done] == [0] * 4, done[0].stderr
    (printed,) = re.findall(r"```text\n(Percent.*?)```", text, re.DOTALL)
    title, *_, remark = printed.splitlines()
    assert {title, remark} <= set(done[2].stdout.splitlines())


def test_the_example_keeps_curves(inside: Command, tmp_path: Path) -> None:
    """README's second step, made short: curves are trained and drawn."""
    example = ROOT / "examples/grokking.py"
    short = ("--set", "steps=400", "--set", "seed=0..1", "--set", "m=300,1000")
    assert inside("run", example, *short).returncode == 0
    done = inside("figure", example, *short)

    name = "petridish-out/grokking-own-steps=400-seed=0..1-m=300_1000"
    assert done.stdout.split()[::2] == [f"{name}-outcomes.png", f"{name}-curves.png"]
    assert all((tmp_path / file).stat().st_size > 1000 for file in done.stdout.split())


def test_the_store_page_names_every_column() -> None:
    """docs/reference/store.md lists the columns that a run has."""
    text = page("reference/store.md")
    missing = [column for column in flat(SPEC) if f"`{column}`" not in text]

    assert missing == []


def test_a_row_of_a_store_leads_back_to_its_run(
    smoke_store: SmokeStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The example of docs/reference/store.md, in a folder with runs."""
    (block,) = BLOCK.findall(page("reference/store.md"))
    copy_runs(smoke_store("PF-1"), tmp_path / "petridish-store")
    monkeypatch.chdir(tmp_path)
    exec(block[-1], {})
    printed, errors = capsys.readouterr()

    assert errors == ""
    assert printed.startswith("SparseParity(n=")


def test_the_claims_about_arms_are_judged(inside: Command, tmp_path: Path) -> None:
    """The example of docs/reference/statistics.md, as printed."""
    ((name, _, code),) = BLOCK.findall(page("reference/statistics.md"))
    (tmp_path / name).write_text(code, encoding="utf-8")
    done = inside("run", name, "--executor", "inline")

    assert done.returncode == 0, done.stderr
    assert "48 runs trained" in done.stderr
    assert "median of steps until solved, sparse / dense (model.width = " in done.stdout
    assert "median of τ of steps until solved along model.width = " in done.stdout


def test_the_readme_commands_exist(inside: Command) -> None:
    """Every `petridish …` in the README and the docs is a command with its options."""
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for path in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    )
    fenced = re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    blocks = "".join(block for language, block in fenced if language in ("", "bash"))
    commands = set(
        re.findall(r"^petridish ((?:store |tabular )?[a-z]+)\b(.*)$", blocks, re.MULTILINE)
    )
    assert len(commands) >= 15
    helps = {name: inside(*name.split(), "--help").stdout for name, _ in commands}
    for name, rest in commands:
        assert helps[name], name
        for option in re.findall(r"--[a-z]+", rest):
            assert option in helps[name], (name, option)


def test_the_first_table_is_learned(capsys: pytest.CaptureFixture[str]) -> None:
    """docs/guides/tabular.md's first example runs as printed, and is right in nearly all cases."""
    blocks = BLOCK.findall(page("guides/tabular.md"))
    code = next(code for name, _, code in blocks if name == "first_table.py")
    exec(code, {})
    accuracy, *importances = capsys.readouterr().out.splitlines()

    assert float(accuracy.removeprefix("accuracy ")) > 0.95
    assert len(importances) == 3


def test_the_table_of_errata_names_tests_that_exist() -> None:
    """Every row has four cells, says what fails, and names tests of this folder, or none."""
    text = page("results/errata.md")
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line[:1] == "|"]
    known = {
        name
        for file in (ROOT / "tests").glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }

    assert len(rows) > 30
    for statement, fails, _, tests in rows[2:]:
        assert statement.strip()
        assert re.match(r" (statement|proof|print)\b", fails)
        assert set(re.findall(r"`(test_\w+)`", tests)) <= known
    assert set(re.findall(r"`(test_\w+)`", text)) <= known


def rows_of_results() -> dict[str, list[str]]:
    """Return the rows of the tables on the pages of results, by experiment."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in (DOCS / "results").glob("*.md"))
    sections = re.findall(r"^## ([A-Z]+-\w+): (.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return {name: re.findall(r"^\|.*$", section, re.MULTILINE) for name, section in sections}


def test_the_results_say_of_every_claim_how_it_was_judged() -> None:
    """In a row of its experiment: a verdict, or that it is not judged yet."""
    rows = rows_of_results()
    judged = re.compile(r"supported|contradicted|undecided|check (holds|fails|open)|not judged")
    missing = [
        f"{experiment.id} ({claim.name})"
        for experiment in EXPERIMENTS.values()
        for claim in experiment.claims
        if not any(
            re.search(rf"(?<!\w){re.escape(claim.name)}(?!\w)", row.split("|")[1])
            and judged.search(row)
            for row in rows.get(experiment.id, [])
        )
    ]

    assert missing == []


def test_a_check_never_counts_as_supported_on_a_page_of_results() -> None:
    """What no run could contradict is a check, which holds, fails or is open."""
    rows = rows_of_results()
    found = [
        row
        for experiment in EXPERIMENTS.values()
        for claim in experiment.claims
        for row in rows.get(experiment.id, [])
        if claim.kind == "check" and f"({claim.name}, check)" in row.split("|")[1]
    ]

    assert len(found) >= 9
    assert [row for row in found if not re.search(r"\| check (holds|fails|open)", row)] == []


def test_a_kind_on_a_page_of_results_is_the_declared_one() -> None:
    """«(F, paper)»; «here ours» is said of a claim that is the paper's at other scales alone."""
    said = {"paper": {"paper"}, "ours": {"ours"}, "check": {"check"}}
    count = 0
    for name, rows in rows_of_results().items():
        claims = {c.name: c for c in EXPERIMENTS[name].claims} if name in EXPERIMENTS else {}
        for row in rows:
            for claim, kind in re.findall(r"\(([\w=-]+), ((?:here )?\w+)\)", row.split("|")[1]):
                if claim not in claims:
                    continue
                count += 1
                arm = {"here ours"} if claims[claim].judged_at else set()
                assert kind in said[claims[claim].kind] | arm, (name, row)
    assert count > 90


PAGES = [*ROOT.glob("*.md"), *(ROOT / "examples").glob("*.md")]
PAGES += [*(ROOT / "records").rglob("*.md")]
# Pages that `make docs` writes may be older than the tree; it checks their links itself.
IGNORED = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
WRITTEN = [ROOT / name.strip("/") for name in IGNORED if name.startswith("/docs/")]
PAGES += [file for file in DOCS.rglob("*.md") if not {file, *file.parents} & {*WRITTEN}]


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings: lower case, letters and digits, hyphens between."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_link_leads_somewhere(file: Path) -> None:
    """To a file or folder of the tree, and where it names a heading, to one of that page."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", file.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = file.parent / path if path else file
        if "://" in link or (target.exists() and not anchor):
            continue
        if not target.exists() or anchor not in anchors(target.read_text(encoding="utf-8")):
            broken.append(link)

    assert broken == []


def test_every_page_that_is_spoken_of_exists() -> None:
    """`docs/….md` in code, tests and pages; claims keep the words under which they were judged."""
    judged = {"docs/theory.md", "docs/theory-margins.md"}
    sources = [file for room in ("src", "tests") for file in (ROOT / room).rglob("*.py")]
    named = {
        name
        for file in [*PAGES, *sources]
        for name in re.findall(r"\bdocs/[\w/-]+\.md", file.read_text(encoding="utf-8"))
    }

    assert len(named) > 10
    assert [name for name in sorted(named - judged) if not (ROOT / name).is_file()] == []


SOURCE = ROOT / "src/petridish"


def strings_shown(file: Path) -> list[str]:
    """Return the strings of a module that are no docstrings: messages, claims, help of options."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    aside = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    shown = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [each.value for each in shown if isinstance(each.value, str) and each not in aside]


def test_messages_point_to_what_an_installed_package_has(inside: Command) -> None:
    """A user of the wheel has no docs/; claims keep the words under which they were judged."""
    pointing = {
        file.relative_to(SOURCE).as_posix()
        for file in SOURCE.rglob("*.py")
        if any("docs/" in text for text in strings_shown(file))
    }
    judged: set[str] = set()
    of_the_repository = {"chapters/inventory.py", "publish/where.py"}  # they name its pages

    assert pointing - of_the_repository == judged
    words = inside("verdicts", "--help").stdout
    assert all(f"«{verdict}»" in words for verdict in ("supported", "contradicted", "undecided"))


def test_a_docstring_says_that_pages_are_in_the_repository() -> None:
    """`help()` shows it to a user of the wheel; what a chapter declares is read in the repository.

    The two modules about places in papers speak of pages in general.
    """
    cited = {
        f"{file.relative_to(SOURCE)}: {text}"
        for file in SOURCE.rglob("*.py")
        if "chapters" not in file.parts and file.name != "where.py"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if "docs/" in (text := ast.get_docstring(node) or "")
    }

    assert len(cited) >= 5
    assert [text for text in cited if "in the repository" not in " ".join(text.split())] == []


def test_the_architecture_names_every_room_and_files_that_exist() -> None:
    """Whoever opens what it names finds it; no room is left out of the first table."""
    text = page("reference/architecture.md")
    named = re.findall(r"`([\w./]+(?:/|\.pyi?|\.cpp|\.h|\.inc))`", text)
    rooms = re.findall(r"`(\w+)/?`", text.split("## Where is")[0])
    there = {path.stem for path in SOURCE.iterdir() if path.suffix in ("", ".py")}
    roots = (SOURCE, ROOT, SOURCE / "chapters", SOURCE / "theory")

    assert len(named) > 100
    assert [name for name in named if not any((root / name).exists() for root in roots)] == []
    assert sorted(there - {*rooms, "__init__", "__main__", "__pycache__"}) == []


@pytest.mark.parametrize(
    "name",
    ["theory", "theory-hidden", "theory-inputs", "theory-margins", "theory-induction", "solvers"],
)
def test_the_pages_of_theory_name_functions_that_exist(name: str) -> None:
    """The first cells of their tables of functions, up to what each returns."""
    text = "".join(
        file.read_text(encoding="utf-8")
        for room in ("theory", "groups")
        for file in (SOURCE / room).rglob("*.py")
    )
    cells = re.findall(r"^\| (`.+?) \| [^`]", page(f"reference/{name}.md"), re.M)
    named = set(re.findall(r"`(?:\w+\.)?([a-zA-Z_]\w+)`", " ".join(cells)))
    modules = {file.stem for file in (SOURCE / "theory").rglob("*.py")}
    missing = {each for each in named - modules if not re.search(rf"\b{each}\b", text)}

    assert len(named) > 5
    assert missing == set()


def test_the_architecture_says_where_each_experiment_is() -> None:
    """Declared, judged and drawn; `python -m tests.homes` writes the table anew."""
    assert homes.TABLE.findall(page("reference/architecture.md")) == [homes.table()]
