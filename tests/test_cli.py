"""The command line: its output and its exit code, in a new process where that can matter."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from petridish import bench
from petridish.api.asked import find_sweep
from petridish.bench.attention_steps import WORKLOADS
from petridish.bench.rivals import Shape, rivals
from petridish.chapters import EXPERIMENTS
from petridish.publish.records import read_record
from petridish.store import SCHEMA, Store
from petridish.store.verdicts_shown import VerdictsShown
from tests.conftest import Command, SmokeStore, copy_runs

pytestmark = pytest.mark.usefixtures("short_calibration")
SMOKE = ("PF-1", "--scale", "smoke", "--store", "s")
CLAIMS_OF_PF_1 = [claim.name for claim in EXPERIMENTS["PF-1"].claims]


@pytest.fixture
def filled(smoke_store: SmokeStore, tmp_path: Path) -> Path:
    """Return a copy of the smoke runs of PF-1 in the folder where commands run."""
    copy_runs(smoke_store("PF-1"), tmp_path / "s")
    return tmp_path / "s"


HEAVY = ("torch", "scipy", "sklearn", "matplotlib", "pydantic")  # a tenth of a second or more each


@pytest.mark.parametrize(
    ("command", "absent"), [("--help", ("numpy", "polars", *HEAVY)), ("list", HEAVY)]
)
def test_commands_that_only_speak_import_nothing_heavy(
    command: str, absent: tuple[str, ...]
) -> None:
    """`--help` needs no library for numbers; `list` needs none that train or draw."""
    code = (
        f"import sys; from petridish.cli.main import run_command; run_command([{command!r}]); "
        f"sys.exit(', '.join(sorted({{*{absent!r}}} & {{*sys.modules}})) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")

    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_without_greek_letters_gets_the_rest(
    inside: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its encoding lacks becomes `?`; JSON is whole, by escapes."""
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    greek = next(name for name in EXPERIMENTS if "γ" in inside("list", name).stdout)
    for arguments in (["list", greek], ["list", "--json"]):
        command = [sys.executable, "-m", "petridish.cli.main", *arguments]
        done = subprocess.run(command, capture_output=True, check=True)
        poor, rich = done.stdout.decode("latin-1"), inside(*arguments).stdout
        if "--json" in arguments:
            assert json.loads(poor) == json.loads(rich)
        else:
            assert re.sub(r"[^\x00-\xff]", "?", rich) == poor != rich


def test_list_gives_its_documented_json(inside: Command) -> None:
    """A list of {id, title, source, scales, claims}."""
    found = json.loads(inside("list", "--json").stdout)

    assert {entry["id"] for entry in found} == set(EXPERIMENTS)
    for entry in found:
        assert {"id", "title", "source", "scales", "claims"} <= set(entry)
        # Of PF-6B no paper has a scale; of the others the paper does not give its grid.
        beyond = {*(f"PF-{name}" for name in ("2", "3", "4", "5", "6B", "6C", "7", "8"))}
        beyond |= {"FE-4", "FE-5", "HP-12", "HP-13", "HP-14", "HP-15", "VC-4", "VC-5"}
        beyond |= {"IH-7"}  # beyond the text
        beyond |= {"FL-6", "FL-11", "FL-13"}  # on small images; the paper's are not in the package
        wanted = {"smoke", "laptop"} | (set() if entry["id"] in beyond else {"paper"})
        assert wanted <= set(entry["scales"])


def test_list_is_short_and_shows_one_in_full(inside: Command) -> None:
    """One aligned line per experiment; of one, its scales and claims."""
    *lines, note = inside("list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)
    assert len({line.index(" runs ") for line in lines}) == 1
    assert note == (
        "Steps are the most there can be. `petridish list ID` shows scales and claims, and "
        '`petridish list "PF Fig. 4"` what shows a place in a paper.'
    )
    first, *rest = inside("list", "PF-3").stdout.splitlines()
    assert first.startswith("PF-3  Training curves")
    assert len(rest) == 6
    assert inside("list", "PF-33").stderr.startswith(
        "petridish: There is no experiment called 'PF-33'. Of PF there are PF-1, PF-2, "
    )


def test_a_file_of_ones_own_is_listed_like_an_experiment(inside: Command, tmp_path: Path) -> None:
    """By its path: scales and claims, as text and as JSON."""
    (tmp_path / "own.py").write_text(
        '"""Two seeds of mine."""\n'
        "from petridish import RunSpec, SparseParity, Sweep, Training\n"
        "BASE = RunSpec(task=SparseParity(8, 2), training=Training(steps=10))\n"
        "SWEEP = Sweep(BASE, {'seed': range(2)})\n"
    )
    assert inside("list", "own.py").stdout.splitlines() == [
        "own  Two seeds of mine.  [own.py]",
        "    own  2 runs  20 model-steps at most",
    ]
    (listed,) = json.loads(inside("list", "own.py", "--json").stdout)
    assert (listed["id"], listed["scales"]["own"]["runs"]) == ("own", 2)


def test_help_cuts_no_sentence(inside: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command is described in one line of a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    for group in ((), ("tabular",), ("store",)):
        commands = inside(*group, "-h").stdout.partition("Commands:")[2]
        assert commands
        assert "..." not in commands


def test_help_is_found_in_every_way(inside: Command) -> None:
    """Bare, by -h and by --help; `python -m petridish` is the same command."""
    bare, short, long = inside(), inside("-h"), inside("--help")
    assert bare.stdout.strip() == short.stdout.strip() == long.stdout.strip()
    assert re.search(r"\n  run +Train what", bare.stdout)
    assert "--install-completion" in bare.stdout
    assert bare.returncode == 0
    assert inside("run", "-h").stdout == inside("run", "--help").stdout
    for module in ("petridish", "petridish.cli.main"):
        command = [sys.executable, "-m", module, "--version"]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
        assert done.stdout == inside("--version").stdout


def test_long_values_are_cut_in_messages(inside: Command) -> None:
    """What was wrong and what to do can still be read."""
    line = inside("run", "PF-1", "--set", f"m={'9' * 5000}x").stderr
    assert len(line) < 1100
    assert " … " in line


def test_many_shards_are_said(
    inside: Command, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When compacting pays."""
    monkeypatch.setattr("petridish.cli.common.MANY_SHARDS", 0)
    shards = len(Store(filled).shards())
    assert inside("verdicts", *SMOKE).stderr == (
        f"petridish: the store s has {shards} shards, and is read the slower for it. `petridish "
        "store compact --store s` makes one of them.\n"
    )


def test_verdicts_come_from_what_is_stored(inside: Command, filled: Path) -> None:
    """The document of `verdicts --json`."""
    done = inside("verdicts", *SMOKE, "--json")
    found = json.loads(done.stdout)

    assert done.returncode == 0
    assert (found["id"], found["scale"]) == ("PF-1", "smoke")
    assert [verdict["claim"] for verdict in found["verdicts"]] == CLAIMS_OF_PF_1


def test_plan_prices_a_sweep(inside: Command, filled: Path) -> None:
    """{id, scale, runs, model_steps, seconds}, and what is stored already."""
    found = json.loads(inside("plan", *SMOKE, "--json").stdout)
    paper = json.loads(inside("plan", "PF-1", "--scale", "paper", "--json").stdout)

    assert found["runs"] == found["stored"] == 48
    assert found["model_steps"] == 48_000
    assert 0 < found["seconds"] < 60
    assert paper["runs"] == 6 * 2 * 9 * 18 * 2 * 50
    assert paper["seconds"] > 1e5


def test_plan_replays_adaptive_allocation(inside: Command, filled: Path) -> None:
    """With fewer seeds than settle anything all are wanted; without runs there is no replay."""
    found = json.loads(inside("plan", *SMOKE, "--adaptive", "--json").stdout)
    refused = inside("plan", "PF-1", "--scale", "smoke", "--store", "none", "--adaptive")

    assert found["adaptive"]["runs"] == found["adaptive"]["all_runs"] == 48
    assert (found["adaptive"]["share"], found["adaptive"]["estimated"]) == (1.0, 0)
    assert refused.returncode == 2
    assert refused.stderr == (
        "petridish: The store none lacks runs that adaptive allocation would want, so that it "
        "cannot be replayed. Run `petridish run PF-1 --adaptive` first, with the same --scale, "
        "--set and --store.\n"
    )


def test_a_record_can_be_judged_again(inside: Command, filled: Path, tmp_path: Path) -> None:
    """Spec, runs, summary, verdicts, figures; the runs alone give the same verdicts."""
    done = inside("record", *SMOKE, "--out", "kept")
    runs = read_record(tmp_path / "kept")
    verdicts = json.loads((tmp_path / "kept/verdicts.json").read_text(encoding="utf-8"))
    spec = json.loads((tmp_path / "kept/spec.json").read_text(encoding="utf-8"))

    assert done.returncode == 0
    assert [Path(line).name for line in done.stdout.split()] == [
        *("spec.json", "verdicts.json", "cells.json", "runs.parquet", "summary.csv"),
        *("frontier.png", "classes.png"),
    ]
    assert [verdict.as_json() for verdict in EXPERIMENTS["PF-1"].judge(runs, "smoke")] == verdicts
    assert (spec["runs"], spec["of"], spec["model_steps"]) == (48, 48, runs["steps"].sum())
    summary = pl.read_csv(tmp_path / "kept/summary.csv")
    assert summary["runs"].sum() == 48
    assert summary["solved"].sum() == (runs["outcome"] == "SOLVED").sum()


def test_figures_and_report_are_written(inside: Command, filled: Path, tmp_path: Path) -> None:
    """PNG and SVG where --out says; one page that fetches nothing."""
    figures = inside("figure", *SMOKE, "--out", "pictures")
    report = inside("report", "PF-1", "--store", "s", "--out", "page/report.html")

    assert figures.stdout.split() == [
        "pictures/PF-1-smoke-frontier.png",
        "pictures/PF-1-smoke-frontier.svg",
        "pictures/PF-1-smoke-classes.png",
        "pictures/PF-1-smoke-classes.svg",
    ]
    assert report.stdout.split() == ["page/report.html"]
    page = (tmp_path / "page/report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "undecided" in page
    assert "petridish run PF-1 --scale smoke --store s" in page
    for fetched in ("<script", "<link", "src=", "@import", "url(http"):
        assert fetched not in page


@pytest.mark.parametrize("setting", ["k=1", "n=12", "task.support=(0,1)", "data.label_noise=0"])
def test_a_setting_inside_an_axis_finds_its_runs(setting: str, inside: Command) -> None:
    """What was trained is judged, counted once, and found again by `verdicts`."""
    arguments = (*SMOKE, "--set", setting, "--set", "seed=0..1", "--set", "r=4")
    found = json.loads(inside("run", *arguments, "--json").stdout)
    verdicts = inside("verdicts", *arguments)

    assert found["summary"]["done"] == 12
    assert verdicts.returncode == 0
    assert "12 of 12 runs stored" in verdicts.stdout


def test_settings_choose_another_sweep(inside: Command, tmp_path: Path) -> None:
    """`--set` gives axes other values; only those runs are trained."""
    done = inside(
        "run", *SMOKE, "--set", "r=4", "--set", "m=30,inf", "--set", "seed=0..1", "--json"
    )

    assert done.returncode == 0
    table = Store(tmp_path / "s").read().table
    assert sorted(set(table["data.m"])) == [30.0, float("inf")]
    assert len(table) == 2 * 2 * 2


def test_both_engines_serve(inside: Command, tmp_path: Path) -> None:
    """`--engine reference` trains the same runs in the papers' way, with the same outcomes."""
    outcomes = []
    for engine in ("reference", "torch"):
        arguments = ("run", "PF-1", "--scale", "smoke", "--set", "seed=0", "--engine", engine)
        assert inside(*arguments, "--store", engine, "--jobs", "1").returncode == 0
        table = Store(tmp_path / engine).read().table.sort("key")
        assert set(table["engine"]) == {engine}
        outcomes.append(table.select("key", "outcome", "solved_at"))

    assert outcomes[0].equals(outcomes[1])


def test_progress_in_a_log_is_lines(petridish: Command) -> None:
    """No control characters, the last line says that all is done."""
    done = petridish("run", *SMOKE)

    assert "\x1b" not in done.stderr
    lines = done.stderr.splitlines()
    assert lines[0].startswith("petridish: 48/48 runs, ")
    assert lines[0].endswith(" left")
    assert lines[-1].startswith("48 runs trained (")
    assert "percent of runs solved" in done.stdout


NO_STORE = "There is no store nowhere. Give --store, or fill one by `petridish run`."
MISTAKES = {
    ("run", "PF-9"): (
        "There is no experiment called 'PF-9'. Of PF there are PF-1, PF-2, PF-3, PF-4, PF-5, PF-6, "
        "PF-6B, PF-6C, PF-7, PF-8. "
        "A file of your own is named by its path, ending in .py."
    ),
    ("run", "PF-1", "--scale", "small"): (
        "PF-1 has no scale called 'small'. Known: demo, laptop, panel, paper, smoke."
    ),
    ("run", *SMOKE, "--set", "k=11"): (
        "SparseParity: k=11 relevant bits were asked for, but n=10 has only 10 bits. "
        "Raise n or lower k."
    ),
    ("run", *SMOKE, "--set", "task.support=(1,1)"): (
        "SparseParity: support=(1, 1) repeats the bits [1]. Name each bit once."
    ),
    ("run", *SMOKE, "--set", "r=0"): ("MLP: width=0. Give a whole number of at least 1."),
    ("run", *SMOKE, "--set", "lr=-1"): (
        "Training: learning_rate=-1. Give a finite number of at least 0."
    ),
    ("run", *SMOKE, "--set", "m=0"): (
        "Data: m=0 training examples were asked for. "
        "Give a whole number from 1 to 2^32, or inf for fresh examples at each step."
    ),
    ("run", *SMOKE, "--engine", "natve"): (
        "There is no engine called 'natve'. Did you mean native?"
    ),
    ("run", *SMOKE, "--set", "widht=3"): (
        "There is no axis called 'widht' in this sweep. Did you mean width?"
    ),
    ("run", *SMOKE, "--executor", "locl"): (
        "There is no executor called 'locl'. Did you mean local?"
    ),
    ("run", "missing.py"): "There is no file {folder}/missing.py. Give the path of a Python file.",
    ("run", "broken.py"): (
        "{folder}/broken.py cannot be imported at broken.py:1: ModuleNotFoundError: No module "
        "named 'no_such_module'."
    ),
    ("run", "empty.py"): (
        "empty.py declares no experiment. Define SWEEP = Sweep(...) or EXPERIMENT = "
        "Experiment(...) in it, such as SWEEP = Sweep(RunSpec(task=SparseParity(20, 2)), "
        "{'seed': range(5)})."
    ),
    ("run", "PF-1", "--scale", "smoke", "--store", "empty.py/store"): (
        "The store empty.py/store cannot be written: Not a directory. "
        "Give a folder that can, by --store."
    ),
    ("verdicts", "PF-1", "--store", "nowhere"): NO_STORE,
    ("figure", "PF-1", "--store", "nowhere"): NO_STORE,
    ("report", "--store", "nowhere"): NO_STORE,
    ("store", "check", "--store", "nowhere"): NO_STORE,
    ("verdicts", "PF-1", "--scale", "laptop", "--store", "s"): (
        "The store s has no runs of PF-1. Run `petridish run PF-1` first, with the same --scale, "
        "--set and --store."
    ),
    ("run", *SMOKE, "--set", "task.support=0,1"): (
        "The axis task.support takes lists in brackets, but '0' was given. For example: (0,1,2)."
    ),
    ("run", *SMOKE, "--set", "init=relu"): (
        "There is no init called 'relu'. Known: bernoulli, constant, kaiming, normal, "
        "over_sparse, own, paired, projected, seeded, signs, sparse, symmetric_signs, "
        "tangent_start, uniform, xavier."
    ),
    ("run", *SMOKE, "--set", "init=paired(hinge)"): (
        "There is no base called 'hinge'. Known: bernoulli, constant, kaiming, normal, "
        "over_sparse, own, paired, projected, seeded, signs, sparse, symmetric_signs, "
        "tangent_start, uniform, xavier."
    ),
    ("run", *SMOKE, "--set", "model.activation=power(1.5)"): (
        "Power: k=1.5. Give a whole number of at least 1."
    ),
    ("run", *SMOKE, "--set", "evaluation.curves=yes"): (
        "Evaluation: curves='yes'. Give true or false."
    ),
    ("run", *SMOKE, "--set", "seed=0..3000000000"): (
        "0..3000000000 are 3000000001 values. Give at most 1000000."
    ),
    ("plan", *SMOKE, "--set", "init=sparse(11)"): (
        "Sparse: s=11 weights per neuron, but there are only 10 inputs. Give s from 1 to 10."
    ),
    ("run", "leaving.py"): (
        "{folder}/leaving.py cannot be imported at leaving.py:1: SystemExit: 3."
    ),
    ("run", "PF-1", "--scale", "smoke", "--store", "empty.py"): (
        "The store empty.py is a file. Give a folder by --store."
    ),
    ("run",): "Missing argument 'ID'. Try `petridish run --help`.",
    ("run", *SMOKE, "--jobs", "many"): (
        "Invalid value for '--jobs': 'many' is not a valid int. Try `petridish run --help`."
    ),
}


# Of each way to fail one in a new process: in petridish, in a user's file, in Typer.
APART = (("run", "PF-9"), ("run", "leaving.py"), ("run",))


@pytest.mark.parametrize("arguments", MISTAKES, ids=" ".join)
def test_a_mistake_gets_one_line_and_exit_code_2(
    arguments: tuple[str, ...], petridish: Command, inside: Command, filled: Path, tmp_path: Path
) -> None:
    """What was wrong, what was given, what to do; nothing else is printed, nothing is changed."""
    command = petridish if arguments in APART else inside
    (tmp_path / "broken.py").write_text("import no_such_module\n", encoding="utf-8")
    (tmp_path / "empty.py").write_text("SWEEP = None\n", encoding="utf-8")
    (tmp_path / "leaving.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    before = Store(filled).shards()
    done = command(*arguments)

    sentence = MISTAKES[arguments].replace("{folder}", str(tmp_path.resolve()))
    assert done.stderr == f"petridish: {sentence}\n"
    assert done.stdout == ""
    assert done.returncode == 2
    assert Store(filled).shards() == before


def test_a_torn_shard_costs_only_its_own_runs(inside: Command, filled: Path) -> None:
    """Every command names it and ends with 2; `run` trains its runs again; `compact` heals."""
    store = Store(filled)
    runs = len(store.read().table)
    torn = max(store.shards(), key=lambda path: path.stat().st_size)
    torn.write_bytes(torn.read_bytes()[:500])
    lost = runs - len(store.read().table)
    line = (
        f"petridish: The shard s/{torn.name} is torn (500 bytes) and was skipped; its runs "
        "count as not done. `petridish store compact` sets it aside.\n"
    )

    for command in (
        ("store", "check", "--store", "s"),
        ("store", "export", "--store", "s", "--out", "runs.csv"),
        ("plan", *SMOKE),
    ):
        done = inside(*command)
        assert (done.returncode, done.stderr) == (2, line)
    run = inside("run", *SMOKE, "--json")
    assert (run.returncode, run.stderr) == (2, line)
    assert json.loads(run.stdout)["summary"]["done"] == lost > 0
    compact = inside("store", "compact", "--store", "s")
    assert compact.returncode == 0
    assert compact.stdout == f"s: {runs} runs in 1 shards\n"
    assert inside("verdicts", *SMOKE).returncode == 0


def test_a_newer_shard_stops_every_command(inside: Command, filled: Path) -> None:
    """One line, exit code 2, before anything is trained."""
    import polars as pl

    from petridish.store.files import _digest

    shard = Store(filled).shards()[0]
    table = pl.read_parquet(shard)
    shard.unlink()
    newer = filled / "new.parquet"
    table.write_parquet(newer, metadata={"petridish.schema": str(SCHEMA + 1)})
    newer = newer.rename(filled / f"{1:016x}-{_digest(newer.read_bytes())}.parquet")
    line = (
        f"petridish: The shard s/{newer.name} has schema {SCHEMA + 1}, written by a newer "
        f"petridish; this one reads up to schema {SCHEMA}. Upgrade petridish or give another "
        "--store.\n"
    )

    for command in (("run", *SMOKE), ("verdicts", *SMOKE), ("store", "check", "--store", "s")):
        done = inside(*command)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", line)


def test_exports_and_checks(inside: Command, filled: Path, tmp_path: Path) -> None:
    """Counts on standard output."""
    runs = len(Store(filled).read().table)
    export = inside("store", "export", "--store", "s", "--out", "runs.csv")
    check = json.loads(inside("store", "check", "--store", "s", "--json").stdout)

    assert export.stdout == f"{runs} runs written to runs.csv\n"
    assert len((tmp_path / "runs.csv").read_text(encoding="utf-8").splitlines()) == runs + 1
    assert (check["runs"], check["problems"]) == (runs, [])


def test_bench_measures_its_documented_rows(
    inside: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """{machine, rows: [{n, width, engine, model_steps_per_second, ratio_to_naive}], store}.

    Of one shape, one core, three engines and one kind of attention, because each starts a process
    per core, and in short turns. How large the ratios are is for `petridish bench` to say: beside a
    busy neighbour a test that asked for them would fail by chance.
    """
    short: dict[str, dict[str, Any]] = {
        "store": {"records": 500},
        "limits": {"rounds": 1},
        "evaluations": {"rounds": 1, "turn": 0.01},
        "attention": {"rounds": 1, "turn": 0.01},
        "tables": {"rounds": 1, "turn": 0.01},
        "runner": {"runs": 4, "steps": 500},
    }
    for name, less in short.items():
        whole = getattr(bench, f"measure_{name}")
        shorter = partial(lambda whole, less, **given: whole(**given | less), whole, less)
        monkeypatch.setattr(bench, f"measure_{name}", shorter)
    monkeypatch.setattr("petridish.bench.QUICK_TURN_SECONDS", 0.01)
    monkeypatch.setattr("petridish.bench.attention_steps.WORKLOADS", WORKLOADS[:1])
    monkeypatch.setattr("petridish.bench.evaluations.WIDTHS", (100,))
    core = min(os.sched_getaffinity(0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {core})
    monkeypatch.setattr("petridish.bench.SHAPES", (Shape(50, 100),))
    everyone = rivals(Shape(50, 100))
    chosen = [each for each in everyone if each.key in ("naive", "torch", "native")]
    monkeypatch.setattr("petridish.bench.turns.rivals", lambda shape: chosen)
    done = inside("bench", "--quick", "--json")
    found = json.loads(done.stdout)
    rows = {(row["n"], row["width"], row["engine"]): row for row in found["rows"]}

    assert found["machine"]["cores"] >= 1
    assert found["machine"]["others"] is None or 0 <= found["machine"]["others"] <= 1
    assert {row["width"] for row in found["evaluations"]} == {100}
    assert all(row["examples_per_second"] > 0 for row in found["evaluations"])
    assert rows[50, 100, "naive"]["model_steps_per_second"] > 0
    assert rows[50, 100, "torch"]["ratio_to_naive"] > 0
    assert rows.keys() == {(50, 100, each.key) for each in chosen}
    assert {each.key for each in everyone} > {each.key for each in chosen}
    assert found["store"]["seconds"] > 0
    assert {row["width"] for row in found["tables"]} == {1000, 3000}
    assert all(row["share_of_sgemm"] > 0 for row in found["tables"])
    assert [row["heads"] for row in found["attention"]] == [WORKLOADS[0].heads]
    assert found["runner"]["wall_seconds"] > 0


def test_the_version_is_the_packages(inside: Command) -> None:
    """`petridish --version`."""
    from petridish import __version__

    assert inside("--version").stdout == f"{__version__}\n"


def test_the_demo_trains_as_many_networks_as_its_help_says(inside: Command) -> None:
    """The number is that of the sweep."""
    sweep = EXPERIMENTS["PF-1"].sweep("demo")

    assert f"Train {len(sweep)} networks" in inside("demo", "--help").stdout


def test_the_demo_says_and_notes_what_the_other_commands_do(
    inside: Command, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands beside a verdict is printed; seeds added later are known to follow a verdict."""
    smoke = find_sweep("PF-1", "smoke")
    monkeypatch.setattr("petridish.cli.demo.find_sweep", lambda *_: smoke)
    done = inside("demo", "--store", "s", "--out", "pictures")
    beside = [line for line in done.stdout.splitlines() if line.startswith("    → ")]

    assert done.returncode == 0
    assert beside
    assert set(beside) == {
        line for line in inside("verdicts", *SMOKE).stdout.splitlines() if line.startswith("    → ")
    }
    assert {*VerdictsShown(filled, "PF-1", "smoke").judged()} == {*CLAIMS_OF_PF_1}
