"""Figures of the tabular experiments: what they show, what they say, what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

from petridish.chapters.tables.error_arrays import errors_of, ranking
from petridish.chapters.tables.figures import GOLD, gain_by_sample, tabular_curves
from petridish.chapters.tables.gains import width_gains
from petridish.chapters.tables.method_figures import _levels as levels
from petridish.chapters.tables.method_figures import critical_difference, method_errors
from petridish.figures.style import NothingToDraw, save_png
from petridish.statistics.paired import mean_over_tasks
from tests.tabular_worlds import (
    SAMPLES,
    Method,
    by_family,
    by_width,
    forests,
    mlp,
    mlps,
    world,
)

FIGURES: dict[str, Callable[[pl.DataFrame, str], Figure]] = {
    "curves": tabular_curves,
    "gains": gain_by_sample,
    "errors": method_errors,
    "ranks": critical_difference,
}
OTHERS = [Method("sparse_mlp(256)"), Method("lightgbm(100)"), Method("another(1)")]
OFFSETS = {"sparse_mlp": -0.05, "lightgbm": 0.02, "another": 0.08}


def contest(tasks: int = 6, trials: int = 4) -> pl.DataFrame:
    """Draw a world of MLPs, forests and others."""
    return world(by_family(OFFSETS), [*mlps(), *forests(2), *OTHERS], tasks=tasks, trials=trials)


def drawn(figure: Figure) -> list[Any]:
    """Return the panels that are shown."""
    return [panel for panel in figure.axes if panel.get_visible()]


def texts(panel: Any) -> list[str]:
    """Return the texts of a panel."""
    return [text.get_text() for text in panel.texts]


def test_tuned_models_of_others_are_dotted() -> None:
    """At the errors that Table 2 quotes, in a panel of one of its tasks, and told in the note."""
    table = world(methods=mlps((100,)), tasks=2, trials=3)
    named = table.with_columns(
        pl.col("task.dataset").replace(table["task.dataset"][0], "pol").alias("task.dataset")
    )
    dotted = {
        panel.get_title(loc="left"): [
            line.get_ydata()[0]
            for line in panel.lines
            if line.get_linestyle() == ":" and len(line.get_ydata())
        ]
        for panel in drawn(tabular_curves(named, "Title"))
    }

    assert dotted["pol"] == [6.3, 1.9]
    assert dotted["task 01"] == []
    assert "Grinsztajn" in tabular_curves(named, "Title").get_supxlabel()
    assert "Grinsztajn" not in tabular_curves(table, "Title").get_supxlabel()


# All of them


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_repeatable_and_give_settings_back(name: str, tmp_path: Path) -> None:
    """The same runs in another order give the same bytes; title, tasks and runs are told."""
    before = dict(matplotlib.rcParams)
    table = contest(tasks=3)
    figures = [FIGURES[name](rows, "Title") for rows in (table, table.reverse())]
    files = [save_png(figure, tmp_path / str(i), name) for i, figure in enumerate(figures)]

    assert files[0].read_bytes() == files[1].read_bytes()
    assert figures[0].get_suptitle() == "Title"
    assert "3 tasks" in figures[0].get_supxlabel()
    assert "runs" in figures[0].get_supxlabel()
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("name", FIGURES)
def test_an_empty_table_is_refused(name: str) -> None:
    """There is nothing to draw, and it says so."""
    with pytest.raises(NothingToDraw) as error:
        FIGURES[name](contest().clear(), "Title")

    assert str(error.value) == "There are no runs to draw. Run the sweep first."


REFUSALS = {
    "curves": (
        forests(2),
        "Learning curves need MLPs of one width throughout, but these runs have none. Run the "
        "sweep's MLPs first.",
    ),
    "gains": (
        forests(2),
        "Gains need MLPs of one width throughout, but these runs have none. Run the sweep's MLPs "
        "first.",
    ),
    "errors": (
        forests(2),
        "Methods are compared by two families or more, but all runs are random_forest. Run another "
        "one too.",
    ),
    "ranks": (
        forests(2),
        "Ranks need two families that were run on all of two tasks or more. Run the sweep to its "
        "end.",
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_missing_is_named(name: str) -> None:
    """A table of forests alone says what it lacks."""
    methods, message = REFUSALS[name]
    with pytest.raises(NothingToDraw) as error:
        FIGURES[name](world(methods=methods, tasks=3, trials=2), "Title")

    assert str(error.value) == message


def test_gains_need_something_to_compare() -> None:
    """One net of one width and one start has gained nothing over anything."""
    with pytest.raises(NothingToDraw) as error:
        gain_by_sample(world(methods=[mlp(100)], tasks=3, trials=2), "Title")

    assert str(error.value) == (
        "Gains need two widths, or a dense and a sparse start of one net, but these runs have "
        "neither. Run the sweep to its end."
    )


@pytest.mark.parametrize("name", FIGURES)
def test_small_and_ragged_tables_are_drawn(name: str) -> None:
    """Two tasks with one trial, one size, gaps, sizes of their own: no warning, no error."""
    table = contest(tasks=2, trials=2)
    ragged = table.filter(
        (pl.col("data.m") < 300)
        | (pl.col("model.width").fill_null(100) < 1_000)
        | (pl.col("task.dataset") == "task 00")
    )
    apart = table.with_columns(
        pl.when(pl.col("task.dataset") == "task 00")
        .then(pl.col("data.m") * 1.1)
        .otherwise(pl.col("data.m"))
        .alias("data.m")
    )
    few = ["mlp(1000, (1000,))", "random_forest(1)", *(method.model for method in OTHERS)]
    once = table.filter(pl.col("seed") == 0, pl.col("model").is_in(few))
    for part in (ragged, apart, table.filter(pl.col("data.m") == 50), once):
        FIGURES[name](part, "Title").draw_without_rendering()


# Learning curves


def test_curves_have_a_pair_of_panels_a_task() -> None:
    """Sparse above dense, four tasks side by side; the last block has room left over."""
    figure = tabular_curves(contest(tasks=6), "Title")
    panels = drawn(figure)
    names = [panel.get_title(loc="left") for panel in panels if panel.get_title(loc="left")]

    assert len(panels) == 2 * 6
    assert names == [f"task {place:02d}" for place in range(6)]
    labels = [panel.get_ylabel() for panel in panels if panel.get_ylabel()]
    assert labels == ["sparse(2)\ntest error, %", "uniform\ntest error, %"] * 2
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert entries == ["r = 100", "r = 300", "r = 1k", "best MLP", "best forest"]
    assert "n = 4 trials each; MLPs of 2 hidden layers" in figure.get_supxlabel()


def test_curves_are_medians_in_percent() -> None:
    """The widest dense net's line, and gold: the least median of all MLPs."""
    table = contest(tasks=2)
    panel = drawn(tabular_curves(table, "Title"))[2]  # dense, below the two sparse ones
    task = table.filter(pl.col("task.dataset") == "task 00")

    def median(m: float, model: str | None = None, init: str | None = None) -> list[float]:
        part = task.filter(pl.col("data.m") == m, pl.col("model").str.starts_with("mlp"))
        part = part.filter(pl.col("model") == model) if model else part
        part = part.filter(pl.col("init") == init) if init else part
        grouped = part.group_by("model", "init").agg(pl.col("test_error").median() * 100)
        return grouped["test_error"].to_list()

    lines = {line.get_label(): line for line in panel.lines}
    gold = next(line for line in panel.lines if line.get_color() == GOLD)
    widest = list(lines.values())[-1]
    assert list(gold.get_ydata()) == pytest.approx([min(median(m)) for m in SAMPLES])
    assert list(widest.get_ydata()) == pytest.approx(
        [median(m, "mlp(1000, (1000,))", "uniform")[0] for m in SAMPLES]
    )
    assert list(widest.get_xdata()) == list(SAMPLES)


def test_the_deepest_nets_are_shown() -> None:
    """Of depths 1 and 3 the curves have 3, with the training that most runs share."""
    nets = [mlp(r, depth, init) for r in (10, 20) for depth in (1, 3) for init in ("uniform",)]
    table = world(methods=[*nets, mlp(10, 3, decay=0.01)], tasks=2, trials=2)
    figure = tabular_curves(table, "Title")

    assert "MLPs of 3 hidden layers" in figure.get_supxlabel()
    assert len(drawn(figure)) == 2  # no sparse start, so one row of panels
    coloured = [line for line in drawn(figure)[1].lines if line.get_marker() == "o"]
    assert len(coloured) == 2


# Gains


def test_gains_are_those_of_the_rule() -> None:
    """The thick line is the mean over tasks, the band its interval, in percentage points."""
    table = world(by_width(0.02), tasks=5)
    right = drawn(gain_by_sample(table, "Title"))[1]
    ends, _ = width_gains(errors_of(table))
    at = {
        m: [
            100 * float(ends.values[(ends.owner == task) & (ends.cell % 3 == place)].mean())
            for task in range(5)
        ]
        for place, m in enumerate(SAMPLES)
    }
    thick = max(right.lines, key=lambda line: line.get_linewidth())
    found = mean_over_tasks(np.array(at[50.0]))
    corners = right.collections[0].get_paths()[0].vertices

    assert list(thick.get_ydata()) == pytest.approx([float(np.mean(at[m])) for m in SAMPLES])
    assert corners[:, 1].min() <= found.low
    assert any(y == pytest.approx(found.high) for y in corners[:, 1])
    assert len(right.lines) == 1 + 5 + 1  # zero, tasks, mean
    assert len(texts(right)) == 2


def test_one_kind_of_gain_is_one_panel() -> None:
    """Without sparse starts there is the gain of width alone."""
    figure = gain_by_sample(world(methods=[mlp(10), mlp(100)], tasks=3, trials=2), "Title")

    assert [panel.get_title(loc="left") for panel in drawn(figure)] == ["wide over narrow"]


# Methods


def test_errors_are_listed_from_the_best() -> None:
    """The legend has the order of the errors at the largest m; unknown families keep their name."""
    figure = method_errors(contest(), "Title")
    entries = [text.get_text() for text in figure.legends[0].get_texts()]

    assert entries[0] == "SparseMLP"
    assert set(entries[1:3]) == {"MLP", "random forest"}
    assert entries[3:] == ["LightGBM", "another"]
    left, right = drawn(figure)
    assert left.get_ylabel() == "mean test error, %"
    assert right.get_ylabel() == "difference to random forest, percentage points"
    assert len(right.containers) == 4  # all but the forest


def test_sizes_that_not_all_tasks_have_are_left_out() -> None:
    """A mean over other tasks would jump: it ends where a task ends."""
    table = contest()
    shorter = table.filter((pl.col("data.m") < 2_000) | (pl.col("task.dataset") != "task 00"))
    left, _ = drawn(method_errors(shorter, "Title"))
    assert all(list(line.get_xdata()) == pytest.approx([50.0, 300.0]) for line in left.lines)
    for panel in drawn(gain_by_sample(shorter, "Title")):
        thick = max(panel.lines, key=lambda line: line.get_linewidth())
        assert list(thick.get_xdata()) == pytest.approx([50.0, 300.0])
        assert max(max(line.get_xdata()) for line in panel.lines[1:]) == 2_000  # tasks go on

    none = table.filter((pl.col("data.m") == 50) == (pl.col("task.dataset") == "task 00"))
    with pytest.raises(NothingToDraw) as error:
        method_errors(none, "Title")
    assert str(error.value) == (
        "Methods are compared at sample sizes that all tasks share, but these tasks share none. "
        "Run the sweep to its end."
    )


def test_a_family_that_was_not_run_everywhere_is_named() -> None:
    """It has no line where its tasks are others, and the note says so; so has the ranking."""
    table = contest().filter(
        (pl.col("model") != "another(1)") | (pl.col("task.dataset") != "task 00")
    )

    for figure in (method_errors(table, "Title"), critical_difference(table, "Title")):
        assert figure.get_supxlabel().endswith("Not run on all tasks: another.")
    entries = [text.get_text() for text in method_errors(table, "Title").legends[0].get_texts()]
    assert "another" not in entries


def test_the_ranks_are_those_of_the_analysis() -> None:
    """Names with their average ranks, best first; bars and ruler as long as they should be."""
    table = contest(tasks=12)
    figure = critical_difference(table, "Title")
    panel = drawn(figure)[0]
    found = ranking(table)
    assert found is not None

    written = texts(panel)
    assert f"SparseMLP  {found.ranks[0]:.2f}" in written
    assert f"{found.ranks[-1]:.2f}  another" in written
    assert f"critical difference {found.critical:.2f}" in written
    ruler = next(line for line in panel.lines if line.get_linewidth() == 2)
    assert np.ptp(np.asarray(ruler.get_xdata())) == pytest.approx(found.critical)
    bars = [line for line in panel.lines if line.get_linewidth() == 3.2]
    assert len(bars) == len(found.alike(0.05))
    assert "over 12 tasks, 1 is best; Friedman's test: p = " in figure.get_supxlabel()


def test_two_methods_are_compared_by_wilcoxon() -> None:
    """Friedman's test needs three."""
    figure = critical_difference(world(methods=[mlp(10), *forests(1)], tasks=4, trials=2), "Title")

    assert "Wilcoxon's test: p = " in figure.get_supxlabel()


def test_bars_share_a_level_where_they_can() -> None:
    """Bars that meet lie below each other; one that begins later may lie as high as the first."""
    assert levels([(0, 2), (1, 3), (3, 4), (4, 5)]) == [0, 1, 0, 1]
    assert levels([]) == []
