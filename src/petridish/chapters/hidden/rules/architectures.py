"""HP's Roman numerals: its architectures, and which of them a run has [HP §3.1]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from petridish.choices import describe
from petridish.models import MLP, Model, ParityTransformer, PolyNet
from petridish.models.activations import InfiniteZigzag, Oscillating, Power, ReLU, Sine, Zigzag
from petridish.models.mlp import Output
from petridish.rules.specs import with_specs

if TYPE_CHECKING:
    import polars as pl

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
NUMERALS = tuple(NAMES)  # in the order of the paper
ROBUST = NUMERALS[:15]  # (i) … (xv); the others are the paper's less robust ones

# Activation, width (0 stands for k) and output of those that are MLPs.
_MLPS: dict[str, tuple[type, int, Output]] = {
    **dict(zip(NUMERALS[:3], ((ReLU, width, "linear") for width in (10, 100, 1000)), strict=True)),
    **dict(
        zip(NUMERALS[3:6], ((Power, width, "linear") for width in (10, 100, 1000)), strict=True)
    ),
    "(vii)": (Zigzag, 1, "linear"),
    "(viii)": (Oscillating, 1, "linear"),
    "(ix)": (InfiniteZigzag, 1, "linear"),
    "(x)": (Sine, 1, "linear"),
    "(xi)": (Zigzag, 1, "sum"),
    "(xii)": (Oscillating, 1, "sum"),
    "(xiii)": (InfiniteZigzag, 1, "sum"),
    "(xiv)": (Sine, 1, "sum"),
    # Without an output bias 2 and 3 ReLUs are no parity of 2 and 3 bits. From k = 4 on none is
    # needed; it is there for every k, so that (*i) is one architecture.
    "(*i)": (ReLU, 0, "affine"),
    "(*ii)": (Power, 0, "linear"),
}


def architecture(name: str, k: int) -> Model:
    """Return an architecture of HP by its Roman numeral, for parities of k bits."""
    if name == "(xv)":
        return PolyNet(k)
    kind, width, output = _MLPS[name]
    return MLP(width or k, activation=kind() if kind is ReLU else kind(k), output=output)


def numeral(model: object, k: int | None) -> str:
    """Return the numeral of a model, or its text where it has none.

    `MLP(10, output="linear")` is (i), `MLP(3, (), Power(3), "linear")` on a parity of 3 bits (*ii).
    A model made for another k has none: z² on a parity of 3 bits is not z^k. An output bias, which
    the paper's networks lack, makes no other architecture, nor does the scale of a sine.
    """
    if isinstance(model, ParityTransformer):
        return "(*iii)"
    if isinstance(model, PolyNet) and model.k == k:
        return "(xv)"
    if isinstance(model, MLP) and not model.deeper and getattr(model.activation, "k", k) == k:
        form = (type(model.activation), model.width, model.output == "sum")
        for name, (kind, width, output) in _MLPS.items():
            if form == (kind, width or k, output == "sum"):
                return name
    return describe(model)


def with_architectures(table: pl.DataFrame) -> pl.DataFrame:
    """Add a column `architecture` with the numeral of every run, where it is not there yet."""
    import polars as pl

    if "architecture" in table.columns:
        return table
    named = with_specs(
        table, architecture=lambda spec: numeral(spec.model, getattr(spec.task, "k", None))
    )
    return named.with_columns(pl.col("architecture").cast(pl.String))


def in_order(found: set[str]) -> list[str]:
    """Sort architectures as the paper does, what has no numeral at the end."""
    known = [name for name in NUMERALS if name in found]
    return known + sorted(found - set(known))
