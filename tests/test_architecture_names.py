"""HP's Roman numerals: which of its architectures a run has."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from petridish.chapters.hidden.rules.architectures import (
    NAMES,
    NUMERALS,
    in_order,
    numeral,
    with_architectures,
)
from petridish.choices import describe
from petridish.models import MLP, DisjointPolyNet, ParityTransformer, PolyNet
from petridish.models.activations import InfiniteZigzag, Oscillating, Power, ReLU, Sine, Zigzag
from tests.cell_tables import with_cells

K = 3
PRINTED: dict[str, Any] = {  # the transformer has no class here
    "(i)": MLP(10, output="linear"),
    "(ii)": MLP(100, output="linear"),
    "(iii)": MLP(1000, output="linear"),
    "(iv)": MLP(10, activation=Power(K), output="linear"),
    "(v)": MLP(100, activation=Power(K), output="linear"),
    "(vi)": MLP(1000, activation=Power(K), output="linear"),
    "(vii)": MLP(1, activation=Zigzag(K), output="linear"),
    "(viii)": MLP(1, activation=Oscillating(K), output="linear"),
    "(ix)": MLP(1, activation=InfiniteZigzag(K), output="linear"),
    "(x)": MLP(1, activation=Sine(K), output="linear"),
    "(xi)": MLP(1, activation=Zigzag(K), output="sum"),
    "(xii)": MLP(1, activation=Oscillating(K), output="sum"),
    "(xiii)": MLP(1, activation=InfiniteZigzag(K), output="sum"),
    "(xiv)": MLP(1, activation=Sine(K), output="sum"),
    "(xv)": PolyNet(K),
    "(*i)": MLP(K, output="linear"),
    "(*ii)": MLP(K, activation=Power(K), output="linear"),
}


@pytest.mark.parametrize("name", PRINTED)
def test_the_papers_models_have_their_numerals(name: str) -> None:
    """The numeral follows from the model and from the k of its task."""
    assert numeral(PRINTED[name], K) == name


def test_every_numeral_has_a_name() -> None:
    """Eighteen of them, in the paper's order; the transformer alone is not built from an MLP."""
    assert list(NAMES) == list(NUMERALS)
    assert len(set(NUMERALS)) == 18
    assert set(NUMERALS) - set(PRINTED) == {"(*iii)"}
    assert numeral(ParityTransformer(1024, 8, 128), K) == "(*iii)"


def test_an_output_bias_and_a_scale_make_no_other_architecture() -> None:
    """PF's MLP has β; the paper doubles the sine's scale on (50, 3)."""
    assert numeral(MLP(10), K) == "(i)"
    assert numeral(MLP(100, activation=Power(K)), K) == "(v)"
    assert numeral(MLP(1, activation=Sine(K, 2.0), output="sum"), K) == "(xiv)"
    assert numeral(MLP(1, activation=Sine(K, 2.0), output="linear"), K) == "(x)"


@pytest.mark.parametrize(
    "model",
    [
        MLP(10, activation=Power(2), output="linear"),  # z² on a parity of 3 bits
        MLP(1, activation=Zigzag(2), output="sum"),
        MLP(1, activation=Sine(2), output="linear"),
        PolyNet(4),
        MLP(2, (1,), Power(2), "linear"),  # deep
        MLP(10, (10, 1), ReLU(), "linear"),
        MLP(30, output="linear"),  # a width that has no numeral
        MLP(10, output="sum"),  # no second layer
        MLP(2, activation=Zigzag(K), output="linear"),  # two neurons
        MLP(10, activation=Oscillating(K), output="linear"),
    ],
    ids=describe,
)
def test_what_is_not_the_sources_keeps_its_text(model: Any) -> None:
    """Another k, depth, width or output is no architecture of the paper."""
    assert numeral(model, K) == describe(model)


def test_narrow_nets_are_as_wide_as_k() -> None:
    """Width k is (*i) or (*ii), and a width that has its own numeral keeps it."""
    assert [numeral(MLP(3, output="linear"), k) for k in (2, 3)] == [
        "mlp(3, (), relu, linear)",
        "(*i)",
    ]
    assert numeral(MLP(10, output="linear"), 10) == "(i)"
    assert numeral(DisjointPolyNet(3), 3) == "disjoint_polynet(3)"


def test_a_table_keeps_its_rows_and_their_order() -> None:
    """Every run gets its own k's numeral, also where the task has no k; twice changes nothing."""
    models = ["mlp(10, (), power(2), linear)"] * 3 + ["mlp(100)", "polynet(3)"]
    tasks = [f"sparse_parity(8, {k})" if k else "sparse_or(8, 3)" for k in (3, 2, None, None, 3)]
    table = with_cells(pl.DataFrame({"seed": range(5), "model": models, "task": tasks}))
    named = with_architectures(table)

    assert named["seed"].to_list() == list(range(5))
    assert named["architecture"].to_list() == [models[0], "(iv)", models[0], "(ii)", "(xv)"]
    assert with_architectures(named).equals(named)
    assert with_architectures(table.head(0))["architecture"].dtype == pl.String


def test_the_sources_order_is_kept() -> None:
    """Numerals sort as the paper lists them, not as text; what has none comes last."""
    assert in_order({"(x)", "(ix)", "mlp(30)", "(*i)", "(v)", "gru(3)"}) == [
        *("(v)", "(ix)", "(x)", "(*i)"),
        *("gru(3)", "mlp(30)"),
    ]
    assert in_order(set(NUMERALS)) == list(NUMERALS)
    assert in_order(set()) == []
