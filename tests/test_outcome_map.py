"""Maps and points over any axes, and the commands that show them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from petridish.cli.figure import write_figures
from petridish.errors import UserError
from petridish.experiment import Experiment
from petridish.figures.heat_map import success_heat_map
from petridish.figures.outcome_map import MANY, MOST_PANELS, outcome_map
from petridish.figures.style import NothingToDraw
from petridish.models import Sparse, Uniform
from petridish.rules.outcome_table import outcome_table
from petridish.rules.outcome_text import outcome_text
from petridish.sweeps import Sweep, log_range
from petridish.training import RunSpec
from tests.outcome_worlds import BASE, RATES, End, half_solved, world

SEEDS = {"seed": range(4)}
WIDTHS = {"model.width": (10, 20)}
SIZES = {"data.m": (100, 200, float("inf"))}
LEARNING_RATES = {"training.learning_rate": RATES}
INITS = {"init": (Uniform(), Sparse(2))}


def titles(figure: Figure) -> list[str]:
    """Return the titles of the panels."""
    shown = [
        axes for axes in figure.axes if axes.get_visible() and axes.get_label() != "<colorbar>"
    ]
    return [axes.get_title(loc="left").replace("\n", " ") for axes in shown]


def drawn(axes: dict[str, Any], **choice: Any) -> Figure:
    """Draw a made-up sweep, as a picture."""
    figure = outcome_map(world({**axes, **SEEDS}, half_solved), "Title", **choice)
    figure.canvas.draw()
    return figure


@pytest.mark.parametrize(
    ("axes", "panels"),
    [
        ({}, 1),
        (LEARNING_RATES, 1),
        (INITS, 1),
        ({**WIDTHS, **LEARNING_RATES}, 1),
        ({**WIDTHS, **SIZES, **LEARNING_RATES}, 3),
        ({**WIDTHS, **SIZES, **LEARNING_RATES, **INITS}, 6),
    ],
)
def test_none_to_four_axes_are_drawn(axes: dict[str, Any], panels: int) -> None:
    """One panel for one or two; a panel per value of what else varies; n is said."""
    figure = drawn(axes)

    assert len(titles(figure)) == panels
    assert "n = 4 per setting" in figure.get_supxlabel()


def test_a_panel_says_its_setting_and_a_cell_its_share_with_interval() -> None:
    """No panel puts two rates together."""
    figure = drawn({**WIDTHS, **SIZES, **LEARNING_RATES})

    assert titles(figure) == [f"learning rate = {rate}" for rate in ("0.01", "0.1", "1")]
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["50", "15–85"] * 6
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["100", "200", "∞"]


def test_rows_and_colours_together_are_refused() -> None:
    """Lines of several colours take the place of rows; the colours were dropped unsaid."""
    with pytest.raises(UserError) as error:
        drawn({**WIDTHS, **LEARNING_RATES}, rows="lr", colour="r")
    assert str(error.value) == (
        "rows='lr' and colour='r' were given, and lines of several colours take the place of "
        "rows. Give one of them."
    )


def test_colours_are_lines_with_a_legend() -> None:
    """One line per value, with its intervals."""
    figure = drawn({**WIDTHS, **LEARNING_RATES}, colour="r")

    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["10", "20"]
    assert figure.legends[0].get_title().get_text() == "width r"
    assert len(figure.axes[0].collections) == 2


def test_many_cells_carry_colour_alone_and_many_panels_are_cut() -> None:
    """Numbers that nobody could read are left out; what is left out is said."""
    wide = drawn({**WIDTHS, "training.learning_rate": log_range(1e-3, 1, MANY + 1)})
    many = drawn({"model.width": range(10, 40), **SIZES, **LEARNING_RATES}, panels="r")

    assert len(wide.axes[0].texts) == 0
    assert "95 % interval" not in wide.get_supxlabel()
    assert len(titles(many)) == MOST_PANELS
    assert "6 more panels are not drawn" in many.get_supxlabel().replace("\n", " ")


def test_panels_of_two_fields_have_a_column_for_each_value_of_one() -> None:
    """Two starts at three rates are three rows of two, not four and two."""
    runs = world({**LEARNING_RATES, **INITS, **WIDTHS, **SIZES, **SEEDS}, half_solved)
    figure = outcome_map(runs, "t", rows="r", columns="m", panels="lr,init")
    shown = [axes for axes in figure.axes if axes.get_title(loc="left")]

    assert {axes.get_subplotspec().get_geometry()[:2] for axes in shown} == {(3, 2)}  # type: ignore[union-attr] # drawn as panels


def test_times_beyond_the_budget_are_labelled_as_such() -> None:
    """Nothing is solved: every triangle stands at the budget, and is more than it."""
    runs = world({"model.width": (10, 20), "seed": range(4)}, lambda _: {})
    written = {text.get_text() for text in outcome_map(runs, "title", value="time").findobj(Text)}
    assert "≥ 400" in written


def test_a_title_has_the_settings_and_not_the_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The options are in the name of the file, and on the axes of the figure."""
    runs = world({"model.width": (10, 20), "seed": range(4)}, half_solved)
    own = Experiment("own", "Does width help?", "ours", {"own": Sweep(BASE, {})})
    drawn: list[str] = []

    def save(figure: Figure, folder: Path, name: str) -> list[Path]:
        drawn.extend([figure.get_suptitle(), name])
        return []

    monkeypatch.setattr("petridish.figures.style.save", save)
    write_figures(own, own.scales["own"], runs, tmp_path, "own-value=time", title="A title")

    assert drawn == ["A title", "own-own-value=time-outcomes"]


def test_a_value_that_no_run_has_is_nothing_to_draw() -> None:
    """The message names it."""
    runs = world(SEEDS, half_solved)
    with pytest.raises(NothingToDraw) as error:
        outcome_map(
            runs.with_columns(pl.lit(None, pl.List(pl.Float64)).alias("curve.norm")),
            "Title",
            value="norm",
        )

    assert str(error.value) == (
        "None of these runs has a value of norm. Choose another by --value."
    )


@pytest.mark.parametrize(
    ("solved_at", "value", "sentence"),
    [
        (100, "solved", "All 6 settings are alike: 100 % of runs solved."),
        (None, "solved", "All 6 settings are alike: 0 % of runs solved."),
        (100, None, "All 6 settings are alike: median steps until solved 100."),
        (None, "test_error", "All 6 settings are alike: median test_error at the end 0.3."),
    ],
)
def test_a_map_of_one_value_says_so(
    solved_at: int | None, value: str | None, sentence: str
) -> None:
    """In words, below the map and below the table; there is no scale of one colour."""
    runs = world({**WIDTHS, **SIZES, **SEEDS}, lambda _: {"solved_at": solved_at})
    figure = outcome_map(runs, "Title", value=value)

    assert sentence in outcome_text(outcome_table(runs, value=value))
    assert sentence in " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
    assert not [axes for axes in figure.axes if axes.get_label() == "<colorbar>"]
    mixed = outcome_map(world({**WIDTHS, **SIZES, **SEEDS}, wide_solved), "Title", value="solved")
    assert "alike" not in " ".join(text.get_text() for text in mixed.texts)
    assert [axes for axes in mixed.axes if axes.get_label() == "<colorbar>"]


def wide_solved(spec: RunSpec) -> End:
    """Solve the wide networks."""
    return {"solved_at": 100} if spec.model.width == 20 else {}  # type: ignore[attr-defined] # an MLP


@pytest.mark.parametrize(("solved_at", "percent"), [(100, 100), (None, 0)])
def test_a_plane_of_one_value_says_so(solved_at: int | None, percent: int) -> None:
    """The frontier is beyond it, or before it."""
    runs = world({**WIDTHS, **SIZES, **SEEDS}, lambda _: {"solved_at": solved_at})
    said = " ".join(text.get_text() for text in success_heat_map(runs, "Title").texts)
    assert f"All cells are alike: {percent} % solved." in said.replace("\n", " ")
    mixed = success_heat_map(world({**WIDTHS, **SIZES, **SEEDS}, wide_solved), "Title")
    assert "alike" not in " ".join(text.get_text() for text in mixed.texts)


@pytest.mark.parametrize("seeds", [4, 8])
@pytest.mark.parametrize("axes", [WIDTHS, {**WIDTHS, **SIZES}])
def test_an_interval_is_mentioned_where_there_is_one(axes: dict[str, Any], seeds: int) -> None:
    """The median of four runs has none."""
    runs = world({**axes, "seed": range(seeds)}, half_solved)
    figure = outcome_map(runs, "Title", value="test_error")
    said = " ".join(text.get_text() for text in figure.texts).replace("\n", " ")
    assert ("95 % interval" in said) == (seeds == 8)


def test_a_row_axis_alone_is_drawn_across() -> None:
    """Where the other field that varies has panels, no axis is left for the columns."""
    runs = world({**WIDTHS, **SIZES, **SEEDS}, wide_solved)
    figure = outcome_map(runs, "Title", rows="model.width", panels="data.m", value="solved")
    panels = [axes for axes in figure.axes if axes.get_visible()]

    assert len(panels) == len(SIZES["data.m"])
    assert {len(axes.get_xticks()) for axes in panels} == {len(WIDTHS["model.width"])}
