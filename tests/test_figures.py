"""Figures: functions of tables, files that open, settings given back."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import polars as pl
import pytest
from matplotlib.figure import Figure

from petridish.figures import save, success_heat_map, training_curves
from petridish.figures.style import sample_label
from petridish.naming import UserError
from tests.test_analysis import rising, runs_of


def frontier_table() -> pl.DataFrame:
    """Give a table with the columns a heat map reads."""
    return runs_of(rising).with_columns(pl.lit(1000).alias("training.steps"))


def curve_table() -> pl.DataFrame:
    """Give a table of runs with curves."""
    table = frontier_table().filter(pl.col("seed") < 3)
    count = len(table)
    return table.with_columns(
        pl.Series("curve.step", [[0, 100, 200]] * count),
        pl.Series("curve.train_error", [[0.5, 0.1, 0.0]] * count),
        pl.Series("curve.test_error", [[0.5, 0.5, 0.05]] * count),
    )


def texts(figure: Figure) -> list[str]:
    """Give every text drawn inside the panels."""
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_the_heat_map_prints_what_it_shows() -> None:
    """A panel an initialisation, dense first; a number a cell; n and steps below."""
    table = frontier_table()
    figure = success_heat_map(table, "Title")
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]

    assert [panel.get_title(loc="left") for panel in panels] == ["uniform", "sparse(2)"]
    shares = [text for text in texts(figure) if "–" not in text]
    assert len(shares) == len(texts(figure)) / 2 == 2 * 3 * 4  # each with its interval
    assert set(shares) <= {"✓", *map(str, range(100))}
    note = figure.get_supxlabel()
    assert "480 runs, n = 20 a cell; at most 1,000 steps" in note
    assert "95 % interval (Wilson's)" in note
    assert figure.get_suptitle() == "Title"


def test_an_incomplete_grid_is_drawn_as_far_as_it_goes() -> None:
    """Cells without runs stay empty, and the range of n is printed."""
    table = frontier_table().filter((pl.col("model.width") < 1000) | (pl.col("data.m") < 800))
    table = table.filter((pl.col("seed") < 5) | (pl.col("data.m") > 100))
    figure = success_heat_map(table, "Title")

    assert len(texts(figure)) == 2 * 2 * (3 * 4 - 1)
    assert "n = 5 to 20 a cell" in figure.get_supxlabel()
    assert "anytime-valid, as cells have unequal n" in figure.get_supxlabel()


def test_curves_have_a_panel_a_cell() -> None:
    """Each says how many of its runs are solved."""
    figure = training_curves(curve_table(), "Curves")
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]

    assert len([title for title in titles if title]) == 24
    assert titles[0] == "sparse(2), r = 10, m = 100"
    assert all("of 3 solved" in text for text in texts(figure))


def test_runs_without_curves_are_refused() -> None:
    """The message says how to get them."""
    with pytest.raises(UserError) as error:
        training_curves(frontier_table(), "Curves")

    assert str(error.value) == (
        "These runs kept no curves. Run them with --set evaluation.curves=true to draw them."
    )


def test_figures_are_saved_twice_over_and_repeatably(tmp_path: Path) -> None:
    """PNG and SVG; the same table gives the same bytes; the caller's settings come back."""
    before = dict(matplotlib.rcParams)
    contents = []
    for folder in ("a", "b"):
        files = save(success_heat_map(frontier_table(), "Title"), tmp_path / folder, "frontier")
        assert [file.name for file in files] == ["frontier.png", "frontier.svg"]
        contents.append([file.read_bytes() for file in files])

    assert contents[0] == contents[1]
    assert contents[0][0].startswith(b"\x89PNG")
    assert b"<svg" in contents[0][1]
    assert dict(matplotlib.rcParams) == before


def test_sizes_are_written_as_the_papers_do() -> None:
    """Short, and ∞ for online runs."""
    sizes = [300, 1000, 1500, 1e6, float("inf")]
    assert [sample_label(m) for m in sizes] == ["300", "1k", "1.5k", "1M", "∞"]
