"""`petridish tabular compare`, as a user has it."""

from __future__ import annotations

import html
import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import polars as pl
import pytest

from petridish.compare import reader
from petridish.compare.methods import FOREST, GUESS, MLP, methods
from petridish.errors import UserError
from tests.conftest import Command, SmokeStore

QUICK = ("--sizes", "30,60", "--repeats", 2, "--jobs", 1)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Write a table with gaps, categories, an identifier and a name that HTML must not believe."""
    rng = np.random.default_rng(0)
    price = rng.normal(10, 3, 100).round(2)
    colour = rng.choice(["red", "blue"], 100)
    sold = np.where((price < 10) | (colour == "red"), "yes", "no")
    pl.DataFrame(
        {
            "id": np.arange(100),
            "price <b>$": [None if i % 10 == 0 else float(p) for i, p in enumerate(price)],
            "colour": colour,
            "weight $": rng.normal(size=100),
            "sold": [None if i < 3 else str(label) for i, label in enumerate(sold)],
        }
    ).write_csv(tmp_path / "shop.csv")
    return tmp_path / "shop.csv"


@pytest.mark.usefixtures("quick_methods", "shop")
def test_compare_tells_what_it_found_and_who_is_ahead(inside: Command, tmp_path: Path) -> None:
    """First the table, then the ranking, then sentences, the page and the command to run again."""
    done = inside("tabular", "compare", "shop.csv", "--target", "sold", *QUICK)
    lines = done.stdout.splitlines()

    assert (done.returncode, done.stderr) == (0, "")
    assert lines[:8] == [
        "shop.csv: 100 rows, 5 columns; classification of sold",
        "  target       sold has 2 classes: " + lines[1].partition("classes: ")[2],
        "  numeric      2: price <b>$, weight $",
        "  categorical  1: colour",
        "  missing      price <b>$ 9.3 %",
        "  left out     id: identifier, numbers the rows",
        "  note         3 rows without a value of sold left out.",
        "",
    ]
    assert lines[8] == ("Ranking with 60 training rows; 2 repeats, 20 test rows, 95 % intervals")
    ranked = [line for line in lines if re.match(r"  \d[ =] ", line)]
    assert len(ranked) == len(methods()) - 1
    errors = [float(line[26:].split()[0]) for line in ranked]
    assert errors == sorted(errors)
    assert any(line.startswith("The sparse MLP ") for line in lines)
    assert lines[-2] == "Page:  petridish-out/shop-sold.html"
    assert lines[-1] == (
        "Again: petridish tabular compare shop.csv --target sold --sizes 30,60 --repeats 2 --seed 0"
    )
    assert (tmp_path / "petridish-out" / "shop-sold.html").exists()


@pytest.mark.usefixtures("shop")
def test_the_time_begins_with_the_command(inside: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after the table is read; what the page needs is imported while fits run."""
    begun = []
    read = reader.read_table

    def note(
        examples: object, *, started: float, meanwhile: Callable[[], object], **_: object
    ) -> None:
        begun.append(started)
        meanwhile()
        raise UserError("That is all.")

    monkeypatch.setattr("petridish.compare.comparison.compare", note)

    def noted(file: Path) -> pl.DataFrame:
        begun.append(perf_counter())
        return read(file)

    monkeypatch.setattr("petridish.compare.reader.read_table", noted)
    imported: list[str] = []
    monkeypatch.setattr("petridish.cli.tabular_compare.import_module", imported.append)
    before = perf_counter()
    inside("tabular", "compare", "shop.csv", "--target", "sold", *QUICK)

    read_at, started = begun
    assert before < started < read_at
    assert "petridish.compare.page" in imported


@pytest.mark.usefixtures("quick_methods", "shop")
def test_the_page_stands_alone(inside: Command, tmp_path: Path) -> None:
    """Nothing is fetched, names are escaped, and every part is there."""
    done = inside(
        "tabular", "compare", "shop.csv", "--target", "sold", "--out", "p/page.html", *QUICK
    )
    page = (tmp_path / "p" / "page.html").read_text(encoding="utf-8")
    text = html.unescape(page)

    assert done.returncode == 0
    for name in ("src", "href"):
        assert not re.findall(rf"\s(?:xlink:)?{name}\s*=\s*[\"'](?!#|data:)", page)
    assert not re.search(r"url\((?!#)", page)
    assert "price <b>$" not in page
    assert page.count("price &lt;b&gt;$") == 2  # in the table and on the axis
    assert page.count('<svg class="whole') == page.count("<figcaption>") == 2
    assert page.count("<svg") == page.count("</svg>")
    # Beside the panel of each method stand the names of the columns, also where panels stack.
    panels = re.findall(r'<svg class="panel".*?</svg>\s*</svg>', page, re.DOTALL)
    assert [panel.count('<use href="#importance"/>') for panel in panels][-2:] == [1, 2]
    for heading in (
        "Ranking with 60 training rows",
        "Learning curves and time per fit",
        "Which columns matter",
        "What was found in the table",
        "How it was done",
        "To run it again",
    ):
        assert f"<h2>{heading}</h2>" in page
    for method in methods().values():
        assert all(part in text for part in (method.name, method.settings, method.numbers))
    assert "Nadeau and Bengio's corrected resampled t (2003)" in text
    assert "1/2 + ρ/(1 − ρ), where ρ = 0.21" in page
    assert f"<pre>{done.stdout.splitlines()[-1].removeprefix('Again: ')}</pre>" in page
    sentences = [line for line in done.stdout.splitlines() if line.startswith("The sparse MLP ")]
    assert f"<p>{sentences[0]}</p>" in page
    assert "scikit-learn 1." in page


@pytest.mark.usefixtures("quick_methods", "shop")
def test_json_is_one_document(inside: Command, tmp_path: Path) -> None:
    """The table, all fits, the ranking at every size, importances, and how to run it again."""
    done = inside("tabular", "compare", "shop.csv", "--target", "sold", "--json", *QUICK)
    found = json.loads(done.stdout)

    assert (done.returncode, done.stderr) == (0, "")
    assert found["table"]["usable_rows"] == 97
    assert found["table"]["columns"][0]["left_out"] == "numbers the rows"
    assert (found["sizes"], found["repeats"], found["test_rows"]) == ([30, 60], 2, 20)
    assert len(found["fits"]) == 2 * 2 * len(methods())
    for size in (30, 60):
        ranking = [entry for entry in found["ranking"] if entry["size"] == size]
        assert [entry["place"] for entry in ranking] == [*range(1, len(methods()))]
        assert ranking[0]["difference"] == 0
        for entry in ranking:
            errors = [
                fit["error"]
                for fit in found["fits"]
                if (fit["method"], fit["size"]) == (entry["method"], size)
            ]
            assert entry["error"] == pytest.approx(np.mean(errors))
            inside_interval = entry["difference_low"] <= 0 <= entry["difference_high"]
            assert entry["tied"] is inside_interval
    assert GUESS not in {entry["method"] for entry in found["ranking"]}
    assert set(found["importances"]) == {MLP, FOREST}
    assert sum(found["importances"][MLP].values()) == pytest.approx(1)
    assert Path(found["page"]) == Path("petridish-out/shop-sold.html")
    again = inside(*shlex.split(found["command"])[1:], "--json", "--jobs", 1)
    assert [fit["error"] for fit in json.loads(again.stdout)["fits"]] == [
        fit["error"] for fit in found["fits"]
    ]


@pytest.mark.usefixtures("quick_methods")
def test_a_quantity_is_predicted_and_a_leak_is_warned_of(inside: Command, tmp_path: Path) -> None:
    """Regression, from Parquet; a column that is the target in other units."""
    x = np.random.default_rng(0).normal(size=(80, 2))
    y = x[:, 0] * 1000
    pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "km": y / 1000, "m": y}).write_parquet(
        tmp_path / "t.parquet"
    )
    done = inside(
        "tabular",
        "compare",
        "t.parquet",
        "--target",
        "m",
        "--drop",
        "a",
        "--sizes",
        "40",
        *QUICK[2:],
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "t.parquet: 80 rows, 4 columns; regression of m" in done.stdout
    assert "  left out     a: dropped, named by --drop" in done.stdout
    assert (
        "  WARNING      The column km determines m: if it is not known when a prediction is made, "
        "leave it out with --drop km."
    ) in done.stdout
    assert "mean test RMSE" in done.stdout
    assert "R²" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("none.csv", "--target", "sold"),
            "There is no file none.csv. Give the path of a CSV or Parquet file.",
        ),
        (
            ("shop.csv",),
            "Missing option '--target'. Try `petridish tabular compare --help`.",
        ),
        (
            ("shop.csv", "--target", "solt"),
            "shop.csv has no column called 'solt'. Did you mean sold?",
        ),
        (
            ("shop.csv", "--target", "sold", "--task", "clasification"),
            "There is no task called 'clasification'. Did you mean classification?",
        ),
        (
            ("shop.csv", "--target", "sold", "--sizes", "30,many"),
            "--sizes 30,many is not a list of whole numbers. Write --sizes 100,300,1000.",
        ),
        (
            ("shop.csv", "--target", "sold", "--sizes", "78"),
            "--sizes asks for 78 training rows. Of 97 usable rows, give sizes from 10 to 77: the "
            "rest is for tests.",
        ),
        (
            ("shop.csv", "--target", "sold", "--repeats", "1"),
            "tabular compare: repeats=1. Give a whole number of at least 2.",
        ),
        (
            ("shop.csv", "--target", "sold", "--out", "."),
            ". is a folder. Give --out a file such as page.html.",
        ),
        (
            ("shop.csv", "--target", "sold", "--out", "shop.csv/page.html"),
            "shop.csv/page.html cannot be written: File exists. Give another --out.",
        ),
        (
            ("shop.csv", "--target", "sold", "--out", "/proc/page.html"),
            "/proc/page.html cannot be written: No such file or directory. Give another --out.",
        ),
    ],
)
@pytest.mark.usefixtures("shop")
def test_mistakes_get_one_line_and_exit_code_2(
    arguments: tuple[str, ...], sentence: str, inside: Command
) -> None:
    """On standard error, with nothing on standard output."""
    done = inside("tabular", "compare", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"petridish: {sentence}\n"


@pytest.mark.parametrize("heavy", ["torch", "sklearn", "polars", "numpy", "matplotlib"])
def test_help_imports_nothing_heavy(heavy: str) -> None:
    """`tabular compare --help` answers at once."""
    code = (
        "import sys; from petridish.cli.main import run_command; "
        "run_command(['tabular', 'compare', '--help']); "
        f"sys.exit({heavy!r} in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")

    assert done.returncode == 0, done.stderr
    assert "--target" in done.stdout


def test_ctrl_c_ends_it_at_once(shop: Path) -> None:
    """Exit code 130 and one line, whatever the workers are at."""
    command = "tabular compare shop.csv --target sold --repeats 100000 --sizes 30"
    process = subprocess.Popen(
        [sys.executable, "-m", "petridish.cli.main", *shlex.split(command)],
        cwd=shop.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout is not None
    while process.stdout.readline().strip():  # until all that was found is printed
        pass
    process.send_signal(signal.SIGINT)
    try:
        _, said = process.communicate(timeout=600)
    finally:
        process.kill()

    assert process.returncode == 130
    assert said == "petridish: interrupted; give the same command again to begin anew.\n"


def test_bench_refuses_a_folder_that_is_not_there(petridish: Command) -> None:
    """One line, which names what was given."""
    done = petridish("tabular", "bench", "--data", "nowhere")
    assert done.returncode == 2
    assert done.stderr == (
        "petridish: There is no folder nowhere. Give --data one that holds NAME.parquet.\n"
    )


def test_bench_prints_tables_and_verdicts(
    petridish: Command, smoke_store: SmokeStore, tmp_path: Path
) -> None:
    """At the scale that needs no data: mean errors, times, five verdicts and three figures."""
    scale = ("--scale", "smoke", "--store", smoke_store("PF-6"))
    done = petridish("tabular", "bench", *scale)
    assert done.returncode == 0, done.stderr
    for text in ("mean-errors", "seconds", "random_forest", "(2T, ours)", "(RB, ours)"):
        assert text in done.stdout
    figures = [line for line in done.stdout.splitlines() if line.endswith(".png")]
    assert len(figures) == 3
    assert all((tmp_path / figure).stat().st_size > 1000 for figure in figures)
    again = petridish("tabular", "bench", *scale, "--json")
    found = json.loads(again.stdout)
    assert set(found) == {"id", "scale", "verdicts", "tables"}
    assert {row["method"] for row in found["tables"]["mean-errors"]} == {"mlp", "random_forest"}


def test_fetching_an_unknown_table_is_refused(petridish: Command) -> None:
    """The nearest name is offered, before any connection."""
    done = petridish("tabular", "fetch", "higgs")
    assert done.returncode == 2
    assert done.stderr == (
        "petridish: There is no table called 'higgs' in the benchmark. Did you mean Higgs?\n"
    )
