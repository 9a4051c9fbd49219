"""The house: lengths of files, names of modules and classes, the first word of docstrings."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from tests.conftest import LONG, WAITING

SOURCE = Path(__file__).parent.parent / "src/petridish"
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST = 400
TREE = SOURCE.parent.parent
NATIVE_AND_TESTS = sorted(
    file
    for room, endings in (("native", "*.[chi]*"), ("tests", "*.py"))
    for file in (TREE / room).rglob(endings)
)
# Longer files, each with the reason why two would be harder to read.
LONGER: dict[str, str] = {
    "native/run.cpp": "one run from begin to end, beside the state that its parts share",
    "tests/test_architectures.py": "one contract, over every model",
    "tests/test_chains.py": "parents and children, stored, resumed and refused in one small world",
    "tests/test_compare.py": "one table of a user through every page and command",
    "tests/test_compare_reading.py": "cases of one table of spellings of cells",
    "tests/test_contenders.py": "one contract over every model that fits itself",
    "tests/test_contracts.py": "the contracts over all members",
    "tests/test_cli.py": "one case per command",
    "tests/test_cluster.py": "one local cluster, started once, in every use",
    "tests/test_explorer_page.py": "one browser and one server, clicked through",
    "tests/test_emergence.py": "the rules of FE share their trained networks",
    "tests/test_engines.py": "every engine against `reference`, over one list of specs",
    "tests/test_faults_tasks.py": "one list of faults",
    "tests/test_fourier_gaps.py": "one chain of lemmas, each used by the next",
    "tests/test_margin_proofs.py": "one chain of lemmas, each used by the next",
    "tests/test_margins.py": "maximum margins, group by group",
    "tests/test_paired.py": "simulations of error rates share their worlds",
    "tests/test_rule.py": "parts of a rule, combined",
    "tests/test_rules_flows.py": "rules that share their simulated flows",
    "tests/test_rules_progress.py": "rules that share their simulated runs",
    "tests/test_sources.py": "one list of ways to write code, and its digest",
    "tests/test_store.py": "one store, written, read, damaged and mended",
    "tests/test_sweeps.py": "one sweep through runner, executor and store",
    "tests/test_theory_flow.py": "one chain of lemmas, each used by the next",
    "tests/test_theory_one_step.py": "one chain of lemmas, each used by the next",
    "tests/test_trained_parts.py": "one trained network, read in every way",
}
# A chapter has its own experiments, rules and figures, and the theory of its paper.
CHAPTERS_OWN = {"experiments", "figures", "rules"}
CHAPTERS_OWN |= {path.name for path in (SOURCE / "chapters").iterdir() if path.is_dir()}
# Other modules of one name in rooms that import each other, each with the reason.
SHARED_NAMES = {
    "base": "what the members of its room have in common",
    "bench": "the command, and the room of what it measures",
    "engines": "contracts are named after the room whose classes they hold",
    "frontier": "the command, and the frontier that it prints",
    "grokking": "what the rules judge is drawn by the figures of the same name",
    "luck": "what the rules judge is drawn by the figures of the same name",
    "measures": "those of one chapter, in the chapter, and those that any paper may use",
    "models": "contracts are named after the room whose classes they hold",
    "native": "an engine, named as on the command line, and the library that it calls",
    "record": "the command, which keeps runs, and what an engine returns of one run",
    "report": "the command, and the page that it writes",
    "robust": "what the rules judge is drawn by the figures of the same name",
    "scaling": "what the rules judge is drawn by the figures of the same name",
    "scoreboard": "the command, and the page that it prints",
    "store": "the command, and the room that it maintains",
    "tasks": "contracts are named after the room whose classes they hold",
    "theorems": "what the rules judge is drawn by the figures of the same name",
    "tickets": "what the rules judge is drawn by the figures of the same name",
}


def _homes() -> dict[str, list[Path]]:
    """Return the modules and packages of the package, by name."""
    found = defaultdict(list)
    for path in FILES:
        home = (path.parent if path.stem == "__init__" else path).relative_to(SOURCE)
        if home.parts:
            found[home.stem].append(home)
    return found


def _imports() -> set[tuple[Path, Path]]:
    """Return the pairs of rooms, as folders, of which the first imports from the second."""
    found = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("petridish."):
                source = Path(*str(node.module).split(".")[1:])
                room = source if (SOURCE / source).is_dir() else source.parent
                found.add((path.parent.relative_to(SOURCE), room))
    return found


def _are_neighbours(one: Path, other: Path, imports: set[tuple[Path, Path]]) -> bool:
    """Return whether the rooms of two modules are one, or one of them imports from the other."""
    rooms = [
        {home.parent, home} if (SOURCE / home).is_dir() else {home.parent} for home in (one, other)
    ]
    return any(a == b or {(a, b), (b, a)} & imports for a in rooms[0] for b in rooms[1])


def _documented() -> Iterator[tuple[str, str]]:
    for path in [*FILES, *sorted((TREE / "tests").rglob("*.py"))]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                text = ast.get_docstring(node)
                if text:
                    yield f"{path.relative_to(TREE)}: {text.splitlines()[0]}", text


def test_a_file_is_read_in_one_sitting() -> None:
    """At most 400 lines; a longer one gives its reason above, and none that is not needed."""
    lengths = {
        str(path.relative_to(TREE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in [*FILES, *NATIVE_AND_TESTS]
    }
    assert {name for name, lines in lengths.items() if lines > LONGEST} == LONGER.keys()


def test_the_order_of_test_files_names_files_that_exist() -> None:
    """A renamed file keeps its place among the long ones, or among those that wait."""
    there = {path.name for path in (TREE / "tests").glob("test_*.py")}
    assert {*LONG, *WAITING} <= there


def test_no_two_modules_of_neighbouring_rooms_share_a_name() -> None:
    """Whoever reads «in values.py» opens the right file, also in chapters and commands.

    Two rooms are neighbours if one imports from the other: only there do both come up together.
    """
    imports = _imports()
    shared = {
        name
        for name, homes in _homes().items()
        for one, other in combinations(homes, 2)
        if name not in CHAPTERS_OWN or "chapters" not in (one.parts[0], other.parts[0])
        if _are_neighbours(one, other, imports)
    }

    assert shared == SHARED_NAMES.keys()


def test_no_two_classes_share_a_name() -> None:
    """One name means one thing, in messages and in search."""
    found = defaultdict(list)
    for path in FILES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(SOURCE)))

    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_docstrings_say_what_is_returned() -> None:
    """«Return the loss of each run», not «Give each run's loss» or «Say what each run lost»."""
    forbidden = ("Give", "Gives", "Say", "Says")
    assert [where for where, text in _documented() if text.split()[0] in forbidden] == []
