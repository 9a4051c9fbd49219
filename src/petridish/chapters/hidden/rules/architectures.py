"""HP's Roman numerals: which of its architectures a run has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from petridish.choices import split

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

_WIDTHS = ("10", "100", "1000")
_WIDE = {"relu": ("(i)", "(ii)", "(iii)"), "power": ("(iv)", "(v)", "(vi)")}
_NARROW = {"relu": "(*i)", "power": "(*ii)"}
_NEURONS = {
    "zigzag": ("(vii)", "(xi)"),
    "oscillating": ("(viii)", "(xii)"),
    "infinite_zigzag": ("(ix)", "(xiii)"),
    "sine": ("(x)", "(xiv)"),
}
_DEFAULTS = ("", "()", "relu", "affine")  # what the text of an MLP leaves out at its end


def numeral(model: str, k: int | None) -> str:
    """Give the numeral of a model written as text, or the text where it has none.

    `mlp(10, (), relu, linear)` is (i), `mlp(3, (), power(3), linear)` on a parity of 3 bits (*ii).
    A model made for another k has none: z² on a parity of 3 bits is not z^k. An output bias, which
    the source's networks lack, makes no other architecture.
    """
    name, inside = _parts(model)
    if name == "transformer":
        return "(*iii)"
    if name == "polynet":
        return "(xv)" if inside == [str(k)] else model
    if name != "mlp":
        return model
    width, deeper, activation, output = [*inside, *_DEFAULTS[len(inside) :]]
    kind, arguments = _parts(activation)
    if deeper != "()" or (arguments and arguments[0] != str(k)):
        return model
    if kind in _NEURONS and width == "1":
        return _NEURONS[kind][output == "sum"]
    if kind not in _WIDE or output == "sum":
        return model
    if width in _WIDTHS:
        return _WIDE[kind][_WIDTHS.index(width)]
    return _NARROW[kind] if width == str(k) else model


def _parts(text: str) -> tuple[str, list[str]]:
    """Split `power(3)` into its name and its arguments."""
    name, _, inside = text.partition("(")
    return name, split(inside.removesuffix(")"))


def with_architectures(table: pl.DataFrame) -> pl.DataFrame:
    """Add a column `architecture` with the numeral of every run."""
    import polars as pl

    keys = ["model", "task.k"]
    pairs = table.select(keys).unique()
    found = [numeral(*pair) for pair in pairs.iter_rows()]
    named = pairs.with_columns(pl.Series("architecture", found, dtype=pl.String))
    bare = table.drop("architecture", strict=False)
    # A task without a k has none to match: null meets null here.
    return bare.join(named, on=keys, how="left", nulls_equal=True, maintain_order="left")


def in_order(found: set[str]) -> list[str]:
    """Sort architectures as the source does, what has no numeral at the end."""
    known = [name for name in NUMERALS if name in found]
    return known + sorted(found - set(known))
