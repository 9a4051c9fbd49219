"""Figures: functions of tables, files that open, settings given back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib
import polars as pl
import pytest
from matplotlib.figure import Figure

from petridish.errors import UserError
from petridish.figures.curves import training_curves
from petridish.figures.heat_map import class_map, success_heat_map
from petridish.figures.log_axes import short_log_ticks
from petridish.figures.mixture_front import mixture_front
from petridish.figures.panels import framed, span
from petridish.figures.slices import success_slices
from petridish.figures.style import INK, sample_label, save
from petridish.rules.mixtures import mixtures
from petridish.training import Training
from tests.cell_tables import with_cells
from tests.mixture_tables import cell
from tests.outcome_worlds import BASE, RATES, half_solved, world
from tests.test_analysis import rising, runs_of


def frontier_table() -> pl.DataFrame:
    """Return a table with the columns a heat map reads."""
    return with_cells(runs_of(rising).with_columns(pl.lit(1000).alias("training.steps")))


def curve_table() -> pl.DataFrame:
    """Return a table of runs with curves."""
    table = frontier_table().filter(pl.col("seed") < 3)
    count = len(table)
    return table.with_columns(
        pl.Series("curve.step", [[0, 100, 200]] * count),
        pl.Series("curve.train_error", [[0.5, 0.1, 0.0]] * count),
        pl.Series("curve.test_error", [[0.5, 0.5, 0.05]] * count),
    )


def texts(figure: Figure) -> list[str]:
    """Return every text drawn inside the panels."""
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_the_heat_map_prints_what_it_shows() -> None:
    """One panel per initialisation, dense first; one number per cell; n and steps below."""
    table = frontier_table()
    figure = success_heat_map(table, "Title")
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]

    assert [panel.get_title(loc="left") for panel in panels] == ["uniform", "sparse(2)"]
    shares = [text for text in texts(figure) if "–" not in text]
    assert len(shares) == len(texts(figure)) / 2 == 2 * 3 * 4  # each with its interval
    assert set(shares) <= {"✓", *map(str, range(100))}
    note = figure.get_supxlabel()
    assert "480 runs, n = 20 per cell; at most 1,000 steps" in note
    assert "95 % interval (Wilson's)" in note
    assert figure.get_suptitle() == "Title"


def test_no_frontier_is_drawn_for_a_row_that_does_not_cross_half() -> None:
    """A line on the edge of the grid would read as a frontier at its least or largest m."""

    def lines(outcome: pl.Expr) -> int:
        figure = success_heat_map(frontier_table().with_columns(outcome=outcome), "Title")
        return sum(len(axes.lines) for axes in figure.axes if axes.get_title(loc="left"))

    wide, enough = (pl.col(n) > pl.col(n).min() for n in ("model.width", "data.m"))
    crossing = pl.when(wide & enough).then(pl.lit("SOLVED")).otherwise(pl.lit("OUT_OF_STEPS"))
    assert lines(pl.lit("OUT_OF_STEPS")) == lines(pl.lit("SOLVED")) == 0
    assert lines(crossing) > 0


def test_an_incomplete_grid_is_drawn_as_far_as_it_goes() -> None:
    """Cells without runs stay empty, and the range of n is printed."""
    table = frontier_table().filter((pl.col("model.width") < 1000) | (pl.col("data.m") < 800))
    table = table.filter((pl.col("seed") < 5) | (pl.col("data.m") > 100))
    figure = success_heat_map(table, "Title")

    assert len(texts(figure)) == 2 * 2 * (3 * 4 - 1)
    assert "n = 5 to 20 per cell" in figure.get_supxlabel()
    assert "anytime-valid, as cells have unequal n" in figure.get_supxlabel()


def test_curves_have_a_panel_a_cell() -> None:
    """Each says how many of its runs are solved."""
    figure = training_curves(curve_table(), "Curves")
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]

    assert len([title for title in titles if title]) == 24
    assert titles[0] == "sparse(2), r = 10, m = 100"
    assert all("of 3 solved" in text for text in texts(figure))


@pytest.mark.parametrize(("highest", "top"), [(0.5, 0.68), (0.9, 0.93)])
def test_errors_above_those_of_two_classes_are_drawn_whole(highest: float, top: float) -> None:
    """With several classes a network may err on nearly all; its curve was cut at 0.68."""
    table = curve_table()
    curves = [[highest, highest, 0.05]] + [[0.5, 0.5, 0.05]] * (len(table) - 1)
    figure = training_curves(table.with_columns(pl.Series("curve.test_error", curves)), "Curves")
    assert {round(axes.get_ylim()[1], 9) for axes in figure.axes if axes.get_visible()} == {top}


def test_a_range_is_written_once_where_all_are_equal() -> None:
    """As captions do: runs per cell, seeds, budgets."""
    assert span([20, 20]) == "20"
    assert span(iter([1_000, 5, 20])) == "5 to 1,000"


def test_curves_of_several_rates_are_not_put_together() -> None:
    """Whatever varies, every setting has its panel; few ticks, so that they do not overlap."""
    steps = {"step": [0, 100, 400], "test_error": [0.5, 0.4, 0.3]}
    runs = world({"training.learning_rate": RATES, "seed": range(4)}, half_solved)
    runs = runs.drop("curve.norm", "curve.step").with_columns(
        pl.Series(f"curve.{name}", [values] * len(runs)) for name, values in steps.items()
    )
    figure = training_curves(runs, "Curves")
    panels = [axes for axes in figure.axes if axes.get_visible()]

    assert [axes.get_title(loc="left") for axes in panels] == [
        f"learning rate = {rate}" for rate in ("0.01", "0.1", "1")
    ]
    assert texts(figure) == ["2 of 4 solved"] * 3
    assert [tick.get_text() for tick in panels[0].get_xticklabels()] == ["100", "200"]


def test_curves_of_real_targets_are_called_squared_errors() -> None:
    """And nothing is said to be unsolved where nothing is to be solved."""
    base = replace(BASE, training=Training(steps=400, target_error=None))
    runs = world({"seed": range(2)}, lambda _: {}, base=base)
    runs = runs.drop("curve.norm", "curve.step").with_columns(
        pl.Series("curve.step", [[0, 100, 400]] * 2),
        pl.Series("curve.test_squared_error", [[1.0, 0.5, 0.01]] * 2),
    )
    figure = training_curves(runs, "Curves")

    assert figure.axes[0].get_ylabel() == "squared error"
    assert texts(figure) == ["n = 2"]
    caption = figure.get_supxlabel().replace("\n", " ")
    assert "blue: test squared error." in caption
    assert "; 2 runs, at most 10 drawn per panel. " in caption


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


def parity_table() -> pl.DataFrame:
    """Return the runs of two n and two k, with what became of them."""
    parts = [
        runs_of(rising).with_columns(
            pl.lit(f"sparse_parity({n}, {k})").alias("task"),
            pl.lit(n).alias("task.n"),
            pl.lit(k).alias("task.k"),
        )
        for n in (50, 100)
        for k in (3, 4)
    ]
    solved = pl.col("outcome") == "SOLVED"
    runs = pl.concat(parts).with_columns(
        pl.lit(10_000).alias("training.steps"),
        pl.lit(0.1).alias("training.target_error"),
        pl.lit(0.01).alias("evaluation.fitted_error"),
        pl.lit(100).alias("evaluation.every"),
        pl.when(solved).then(5_000).alias("solved_at"),
        pl.lit(1_000).alias("fitted_at"),
    )
    return with_cells(runs)


def test_many_parities_are_laid_out_as_in_the_paper() -> None:
    """A row an n; columns dense k = 3, dense k = 4, sparse k = 3, sparse k = 4 [PF Fig. 4]."""
    figure = success_heat_map(parity_table(), "Title")
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")]

    assert titles == [
        f"sparse_parity({n}, {k}), {init}"
        for n in (50, 100)
        for init in ("uniform", "sparse(2)")
        for k in (3, 4)
    ]


def test_the_class_map_shows_every_run() -> None:
    """In each cell the widths of the four classes add up to the cell."""
    table = parity_table().filter(pl.col("task") == "sparse_parity(50, 3)")
    figure = class_map(table, "Title")
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]

    for panel in panels:
        widths = sum(patch.get_width() for patch in panel.patches)  # type: ignore[attr-defined] # rectangles
        assert widths == pytest.approx(0.92 * 3 * 4)
        assert {line.get_color() for line in panel.lines} == {"white", INK}  # seen on every class
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["solved at once", "grokked", "memorised only", "never fitted"]
    assert "training error ≤ 1%; solved: test error ≤ 10%" in figure.get_supxlabel()


@pytest.mark.parametrize(("bound", "decades"), [(1e3, 0), (1e-2, 5)])
def test_a_bound_far_below_all_mixtures_is_told_in_words(bound: float, decades: int) -> None:
    """Near the points it is drawn; seven empty decades would leave no room for them."""
    found = mixtures(cell([100] * 5 + [None] * 15, **{"data.m": 200.0}), target=0.9)
    figure = mixture_front([replace(each, bound=bound) for each in found], "Title", target=0.9)
    words = [text for text in texts(figure) if "Proposition 3" in text]

    assert words == ([f"Proposition 3's bound: {decades} decades below or more"] if decades else [])
    low, high = figure.axes[0].get_ylim()
    assert high / low < 1e3


def test_slices_have_three_columns_dense_above_sparse() -> None:
    """Where the cells lie, success, and time; a row an initialisation [PF Fig. 2]."""
    table = parity_table().filter(pl.col("task") == "sparse_parity(50, 3)")
    figure = success_slices(table, "Title")
    labels = [axes.get_ylabel() for axes in figure.axes]

    assert labels == ["width r", "share of runs that succeed", "median steps to success"] * 2
    assert [axes.get_title(loc="left") for axes in figure.axes[::3]] == ["uniform", "sparse(2)"]
    assert len(figure.axes[1].lines) >= 3  # one a width


@pytest.mark.parametrize(
    ("ends", "labels"),
    [
        ((140, 520), ["200", "300", "500"]),
        ((70, 600), ["100", "200", "500"]),
        ((0.00021, 0.0013), ["0.0003", "0.0005", "0.001"]),
        ((161, 172), ["162", "164", "166", "168", "170", "172"]),
        ((90, 12_000), None),
    ],
)
def test_short_logarithmic_axes_have_round_numbers(
    ends: tuple[float, float], labels: list[str] | None
) -> None:
    """Where there is at most one power of ten; a longer axis keeps its powers, set ticks stay."""
    with framed("title", "note", (8, 3), 1, 2) as (figure, ((left, right),)):
        for panel in (left, right):
            panel.set(xscale="log", yscale="log", xlim=ends, ylim=(1, 1_000))
        right.set_xticks([ends[0]], ["first"])
    figure.draw_without_rendering()
    shown = [tick.get_text() for tick in left.get_xticklabels()]

    assert [tick.get_text() for tick in right.get_xticklabels()] == ["first"]
    assert "$\\mathdefault{10^{2}}$" in [tick.get_text() for tick in left.get_yticklabels()]
    if labels is None:
        assert "$\\mathdefault{10^{3}}$" in shown
    else:
        assert shown == labels
        assert [float(label) for label in labels] == short_log_ticks(*ends)
