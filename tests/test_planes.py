"""FL-3: neurons in the plane, and the directions that two steps leave."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from petridish.chapters.inputs.plane_figures import (
    RED,
    end_colours,
    in_the_plane,
    truth_of,
    weights_in_the_plane,
)
from petridish.chapters.inputs.planes import PLANES
from petridish.chapters.inputs.rules import ReadingAt
from petridish.figures.style import BLUE, ORANGE, NothingToDraw
from petridish.store import Store
from petridish.sweeps.arms import arm
from tests.conftest import SmokeStore


@pytest.fixture
def table(smoke_store: SmokeStore) -> pl.DataFrame:
    """Return the smoke runs."""
    return PLANES.sweep("smoke").among(Store(smoke_store("FL-3")).read(columns="all").table)


def test_points_keep_the_distances_of_directions() -> None:
    """Three vectors 1 − cosine apart fit in the plane exactly; equal ones fall together."""
    rows = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]])
    points = in_the_plane(rows)
    away = np.linalg.norm(points[:, None] - points, axis=2)

    assert np.allclose(away, 1 - rows @ rows.T, atol=0.02)
    assert np.allclose(in_the_plane(np.ones((3, 1))), 0)


def test_what_two_steps_leave(table: pl.DataFrame) -> None:
    """Cosines rise at the first step; without structure there are clusters and no cosine."""
    parity, bare = arm(table, "parity"), arm(table, "no structure")
    rise = ReadingAt("direction_cosine", 1, less=0).of(parity)
    by_hand = [curve[1] - curve[0] for curve in parity["curve.direction_cosine"]]

    assert np.allclose(rise, by_hand)
    assert rise.min() > 0.3
    assert np.isnan(ReadingAt("direction_cosine", 7).of(parity)).all()
    assert min(curve[2] for curve in bare["curve.weight_clusters"]) > 0.9
    assert max(curve[2] for curve in bare["curve.direction_cosine"]) < 0.5
    assert {verdict.claim.name for verdict in PLANES.judge(table)} == {
        *("99", "1", "2", "C", "I", "N", "K", "H")
    }


def test_stars_are_the_truth(table: pl.DataFrame) -> None:
    """±Σ M of the run's own dictionary; the centres of a cube with their labels; else none."""
    (parity,) = arm(table, "parity, drawn").rows(named=True)
    stars, plus = truth_of(parity)
    kept = np.reshape(
        parity["array.first_layer_weights"]["values"], parity["array.first_layer_weights"]["shape"]
    )
    last = kept[-1][np.linalg.norm(kept[-1], axis=1) > 0]
    cosines = last @ stars[plus][0] / np.linalg.norm(last, axis=1)
    (cube,) = arm(table, "cube, d = 100, k = 4, drawn").rows(named=True)
    (hidden,) = arm(table, "hidden representations, drawn").rows(named=True)

    assert cosines.max() > 0.9
    assert [len(truth_of(run)[0]) for run in (parity, cube, hidden)] == [2, 16, 0]
    assert truth_of(cube)[1].sum() == 8


def test_neurons_without_weights_are_in_no_cluster() -> None:
    """Two opposed groups, and a third neuron whose weights are 0 at the end."""
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    none = np.zeros((0, 2)), np.zeros(0, np.bool_)
    colours = end_colours(rows, *none)

    assert colours[2] == BLUE
    assert colours[0] == colours[3] != colours[1] == colours[4]
    assert {colours[0], colours[1]} == {RED, ORANGE}


def test_pictures(table: pl.DataFrame) -> None:
    """A row per arm, a panel per reading; without weights there is nothing to draw."""
    for name, panels in (("parity", 6), ("gaussians", 9), ("hidden", 3)):
        figure = PLANES.figures[name](table, name)
        assert len(figure.axes) == panels
    titles = [panel.get_title(loc="left") for panel in PLANES.figures["gaussians"](table, "").axes]
    assert titles[:3] == [f"cube, d = 100, k = 4: {at}" for at in ("start", "step 100", "step 160")]
    with pytest.raises(NothingToDraw) as refused:
        weights_in_the_plane(table.drop("array.first_layer_weights"), "", arms=("parity, drawn",))
    assert str(refused.value) == (
        "None of these runs kept its weights. Run the experiment as declared."
    )
