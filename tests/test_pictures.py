"""What some figures of the chapters draw: which curves and neurons, in which order and colour."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from petridish.chapters.features.figures import parity_neurons
from petridish.chapters.inputs.figures import arms_over_time
from petridish.chapters.pareto.figures.tickets import sample, ticket_curves, with_solved
from petridish.cli.run import text_frontier
from petridish.figures.heat_map import success_heat_map
from petridish.figures.style import BLUE, ORANGE, NothingToDraw
from petridish.theory.features.margin_networks import Neurons, parity_network
from tests import margin_worlds, rule_worlds


def note_of(figure: Figure) -> str:
    """Return the caption below a figure as one line."""
    return " ".join(figure.get_supxlabel().split())


def ticket_runs(solved: int, runs: int, **columns: Any) -> list[dict[str, Any]]:
    """Make runs of one kind from ten parents, the solved ones last."""
    rows = []
    for place in range(runs):
        time = 300 if place >= runs - solved else None
        steps = [0, 100, 200, 300] if time else [0, 100, 200, 300, 400]
        errors = [0.5, 0.5, 0.3, 0.05] if time else [0.5] * 5
        curves = {"curve.step": steps, "curve.test_error": errors, "init.seed": place % 10}
        rows.append(rule_worlds.run(time, **{"seed": place, **curves, **columns}))
    return rows


def test_tickets_are_drawn_with_both_outcomes_in_their_proportion() -> None:
    """Of 20 of 200 that are solved, 4 of the 40 drawn; all of a small panel; one at the least."""
    wide = ticket_runs(6, 6, **{"model.width": 100, "init.chosen": None})
    tickets = ticket_runs(20, 200, **{"model.width": 5, "init.chosen": "largest"})
    unlucky = ticket_runs(1, 200, **{"model.width": 5, "init.chosen": "random"})
    figure = ticket_curves(rule_worlds.table_of(wide + tickets + unlucky), "PF-5")

    for panel, solved, failed in zip(figure.axes, (6, 4, 1), (0, 36, 39), strict=True):
        lines = [line for line in panel.lines if len(np.asarray(line.get_xdata())) > 2]
        colours = [to_hex(str(line.get_color())).upper() for line in lines]
        assert colours == [ORANGE] * failed + [BLUE] * solved  # the solved ones on top
        dots = [line for line in panel.lines if line.get_marker() == "o"]
        assert [np.asarray(dot.get_xydata()).tolist() for dot in dots] == [[[300.0, 0.05]]] * solved
    assert "6 of 6 (6 of 6 solved), 40 of 200 (4 of 20 solved), 40 of 200 (1 of 1 solved)." in (
        note_of(figure)
    )


def test_tickets_without_curves_say_what_to_do() -> None:
    """As every figure of curves does."""
    table = rule_worlds.table_of(ticket_runs(1, 2, **{"init.chosen": "largest"}))
    with pytest.raises(
        NothingToDraw,
        match=r"^These runs kept no curves\. Run them with --set evaluation\.curves=true to draw "
        r"them\.$",
    ):
        ticket_curves(table.drop("curve.step", "curve.test_error"), "PF-5")


def test_methods_need_curves_and_arms() -> None:
    """What is missing is said: curves, the cosine, or arms."""
    bare = pl.DataFrame({"seed": [0], "task": ["t"]})
    curves = bare.with_columns(pl.lit([0, 1]).alias("curve.step"))
    curves = curves.with_columns(pl.lit([0.5, 0.1]).alias("curve.test_error"))
    whole = curves.with_columns(pl.lit([0.5, 0.1]).alias("curve.direction_cosine"))
    for table, said in (
        (
            bare,
            "These runs kept no curves. Run them with --set evaluation.curves=true to draw them.",
        ),
        (
            curves,
            "These runs did not record direction_cosine: name it in evaluation.instruments.",
        ),
        (whole, "These runs have no arms. Declare the sweep as Arms({name: Sweep(…)})."),
    ):
        with pytest.raises(NothingToDraw) as refused:
            arms_over_time(table, "FL-1")
        assert str(refused.value) == said


def test_a_sample_of_tickets_has_some_of_every_parent() -> None:
    """Ten parents with 20 runs each: four runs of each; an outcome that occurs is not left out."""
    table = with_solved(rule_worlds.table_of(ticket_runs(0, 200, **{"init.chosen": "largest"})))
    drawn = sample(table)
    nearly = sample(
        with_solved(rule_worlds.table_of(ticket_runs(199, 200, **{"init.chosen": "largest"})))
    )

    assert drawn["init.seed"].value_counts()["count"].to_list() == [4] * 10
    assert nearly["outcome"].value_counts(sort=True).rows() == [("SOLVED", 39), ("OUT_OF_STEPS", 1)]


def test_neurons_of_no_norm_recede() -> None:
    """A neuron with a thousandth of the size is left out and counted; a smaller one is paler."""
    full = parity_network(6, 4)
    rng = np.random.default_rng(0)
    few = full.inputs[:4], full.outputs[:4]
    scale = np.array([1, 1, 1, 0.6])[:, None]
    inputs = np.concatenate([scale * few[0], 1e-3 * rng.standard_normal((5, 6))])
    outputs = np.concatenate([scale * few[1], 1e-6 * rng.standard_normal((5, 2))])
    row = margin_worlds.row(
        Neurons(inputs, outputs, full.power), n=6, k=4, support=[0, 1, 2, 3], seed=0
    )
    figure = parity_neurons(margin_worlds.table_of(row), "FE-2")
    image = figure.axes[0].images[0]
    alpha = np.asarray(image.get_alpha())

    assert np.asarray(image.get_array()).shape == (4, 8)
    assert np.allclose(np.abs(np.asarray(image.get_array())[:, :4]), 1)
    assert (alpha[:3] == 1).all()
    assert (alpha[3] < 0.2).all()
    assert note_of(figure).startswith(
        "Seed 0: 4 of 9 neurons carry 99 % of the norm; all 4 of them are drawn, pale if small, "
        "and the other 5 left out."
    )


def test_terminal_and_map_list_starts_in_one_order() -> None:
    """The dense start first, then by their numbers."""
    inits = ("sparse(16)", "sparse(2)", "uniform", "sparse(4)")
    table = rule_worlds.sweep(rule_worlds.nothing_matters, inits=inits, seeds=2)
    table = table.with_columns(pl.lit(100_000).alias("training.steps"))
    text = text_frontier(table)
    figure = success_heat_map(table, "PF-1")

    order = ["uniform", "sparse(2)", "sparse(4)", "sparse(16)"]
    heads = [line.partition(":")[0] for line in text.splitlines() if "percent" in line]
    assert heads == [f"sparse_parity(50, 3), {init}" for init in order]
    assert [panel.get_title(loc="left") for panel in figure.axes[:4]] == order
