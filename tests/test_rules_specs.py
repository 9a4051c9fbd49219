"""From a table to the objects behind it."""

from __future__ import annotations

from typing import Any

import polars as pl

from petridish.models import MLP, PolyNet
from petridish.rules.specs import specs_of, where, with_specs
from petridish.tasks import SparseParity
from tests.cell_tables import with_cells


def table() -> pl.DataFrame:
    """Make five runs of three cells."""
    models = ["mlp(4)", "polynet(3)", "mlp(4)", "mlp(4, (2))", "polynet(3)"]
    return with_cells(pl.DataFrame({"seed": range(5), "model": models}))


def test_every_cell_is_an_object() -> None:
    """Each once, in the order of its first run."""
    expected: list[Any] = [MLP(4), PolyNet(3), MLP(4, (2,))]
    assert [spec.model for spec in specs_of(table()).values()] == expected
    assert all(spec.task == SparseParity(50, 3) for spec in specs_of(table()).values())


def test_columns_are_computed_from_objects() -> None:
    """Rows keep their order; a cell that has no answer has null; a second time changes nothing."""
    found = with_specs(table(), width=lambda spec: getattr(spec.model, "width", None))

    assert found["width"].to_list() == [4, None, 4, 4, None]
    assert found.drop("width").equals(table())
    assert with_specs(found, width=lambda spec: getattr(spec.model, "width", None)).equals(found)
    assert with_specs(table().head(0), width=lambda spec: 1).columns == [*table().columns, "width"]


def test_runs_are_chosen_by_their_objects() -> None:
    """And none where nothing fits."""
    assert where(table(), lambda spec: isinstance(spec.model, MLP))["seed"].to_list() == [0, 2, 3]
    assert where(table(), lambda spec: spec.data.m == 7).is_empty()
