"""FL-10: how far filters turn, and the cosines of their clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from petridish.chapters.inputs.filter_figures import (
    COLUMNS,
    cluster_cosines,
    filters_in_the_plane,
    readings_of,
)
from petridish.chapters.inputs.residual_filters import FILTERS, KEPT, OfClusters, TurnedEarly
from petridish.figures.style import NothingToDraw
from petridish.store import Store
from petridish.sweeps.arms import arm
from tests.conftest import SmokeStore


@pytest.fixture
def table(smoke_store: SmokeStore) -> pl.DataFrame:
    """Return the smoke runs."""
    return FILTERS.sweep("smoke").among(Store(smoke_store("FL-10")).read(columns="all").table)


def kept(*readings: NDArray[np.float64]) -> pl.DataFrame:
    """Return a table of one run that kept these filters."""
    whole = np.stack(readings)
    run = {"values": whole.ravel().tolist(), "shape": list(whole.shape)}
    return pl.DataFrame({KEPT: [run]})


def turned(degrees: float) -> NDArray[np.float64]:
    """Return two filters, opposed, turned by an angle."""
    along = np.radians(degrees)
    return np.array([[np.cos(along), np.sin(along)], [-np.cos(along), -np.sin(along)]])


def test_turning_by_hand() -> None:
    """30° and then 10°: 20; a length does not count, and a run without filters has no number."""
    table = kept(turned(0), 3 * turned(30), turned(40))

    assert TurnedEarly().of(table) == pytest.approx([20])
    assert np.isnan(TurnedEarly().of(pl.DataFrame({KEPT: [None]}, schema=table.schema))).all()


def test_clusters_by_hand() -> None:
    """Two pairs of filters 20° and 40° wide, around opposite directions."""
    rows = np.concatenate([turned(-10), turned(10)])
    rows[[1, 3]] = turned(-20)[1], turned(20)[1]
    own, between = cluster_cosines(rows)

    assert sorted(own) == pytest.approx([np.cos(np.radians(20)), np.cos(np.radians(10))])
    assert between == pytest.approx(-1)
    wide = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    table = kept(wide, rows, rows)
    assert OfClusters("centres").of(table) == pytest.approx([-1])
    assert OfClusters("centres, beside the start").of(table) == pytest.approx([-1])
    assert OfClusters("own").of(table) == pytest.approx([np.mean(own)])


def test_the_smoke_runs(table: pl.DataFrame) -> None:
    """Three readings of every network; four stages are drawn at three steps."""
    for name in ("residual", "wider residual", "residual, shuffled labels"):
        for run in arm(table, name)[KEPT]:
            readings: Any = readings_of(run)
            assert len(readings) == 3
    assert len(FILTERS.judge(table)) == 6
    assert len(FILTERS.figures["filters"](table, "").axes) == 12
    with pytest.raises(NothingToDraw) as refused:
        filters_in_the_plane(table.drop(COLUMNS[0]), "")
    assert str(refused.value) == "No run kept the filters of all stages. Run it as declared."
