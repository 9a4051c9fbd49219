"""HP's Roman numerals: which of its architectures a run has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from petridish.choices import describe
from petridish.models import (
    MLP,
    InfiniteZigzag,
    Oscillating,
    ParityTransformer,
    PolyNet,
    Power,
    ReLU,
    Sine,
    Zigzag,
)
from petridish.rules.specs import with_specs

if TYPE_CHECKING:
    import polars as pl

NUMERALS = (
    *("(i)", "(ii)", "(iii)", "(iv)", "(v)", "(vi)", "(vii)", "(viii)", "(ix)", "(x)"),
    *("(xi)", "(xii)", "(xiii)", "(xiv)", "(xv)", "(*i)", "(*ii)", "(*iii)"),
)
"""In the order of the source; the last three are its less robust ones."""

NAMES = {
    "(i)": "ReLU MLP, r = 10",
    "(ii)": "ReLU MLP, r = 100",
    "(iii)": "ReLU MLP, r = 1000",
    "(iv)": "z^k MLP, r = 10",
    "(v)": "z^k MLP, r = 100",
    "(vi)": "z^k MLP, r = 1000",
    "(vii)": "k-zigzag neuron",
    "(viii)": "oscillating neuron",
    "(ix)": "∞-zigzag neuron",
    "(x)": "sinusoidal neuron",
    "(xi)": "k-zigzag, no 2nd layer",
    "(xii)": "oscillating, no 2nd layer",
    "(xiii)": "∞-zigzag, no 2nd layer",
    "(xiv)": "sinusoidal, no 2nd layer",
    "(xv)": "PolyNet",
    "(*i)": "ReLU MLP, r = k",
    "(*ii)": "z^k MLP, r = k",
    "(*iii)": "Parity Transformer",
}

_WIDTHS = (10, 100, 1000)
_WIDE: dict[type, tuple[str, ...]] = {
    ReLU: ("(i)", "(ii)", "(iii)"),
    Power: ("(iv)", "(v)", "(vi)"),
}
_NARROW: dict[type, str] = {ReLU: "(*i)", Power: "(*ii)"}
_NEURONS: dict[type, tuple[str, str]] = {
    Zigzag: ("(vii)", "(xi)"),
    Oscillating: ("(viii)", "(xii)"),
    InfiniteZigzag: ("(ix)", "(xiii)"),
    Sine: ("(x)", "(xiv)"),
}


def numeral(model: object, k: int | None) -> str:
    """Return the numeral of a model, or its text where it has none.

    `MLP(10, output="linear")` is (i), `MLP(3, (), Power(3), "linear")` on a parity of 3 bits (*ii).
    A model made for another k has none: z² on a parity of 3 bits is not z^k. An output bias, which
    the paper's networks lack, makes no other architecture.
    """
    text = describe(model)
    if isinstance(model, ParityTransformer):
        return "(*iii)"
    if isinstance(model, PolyNet):
        return "(xv)" if model.k == k else text
    if not isinstance(model, MLP) or model.deeper:
        return text
    kind: type = type(model.activation)
    if getattr(model.activation, "k", k) != k:
        return text
    if kind in _NEURONS and model.width == 1:
        return _NEURONS[kind][model.output == "sum"]
    if kind not in _WIDE or model.output == "sum":
        return text
    if model.width in _WIDTHS:
        return _WIDE[kind][_WIDTHS.index(model.width)]
    return _NARROW[kind] if model.width == k else text


def with_architectures(table: pl.DataFrame) -> pl.DataFrame:
    """Add a column `architecture` with the numeral of every run; a task may have no k to match."""
    import polars as pl

    named = with_specs(
        table, architecture=lambda spec: numeral(spec.model, getattr(spec.task, "k", None))
    )
    return named.with_columns(pl.col("architecture").cast(pl.String))


def in_order(found: set[str]) -> list[str]:
    """Sort architectures as the source does, what has no numeral at the end."""
    known = [name for name in NUMERALS if name in found]
    return known + sorted(found - set(known))
