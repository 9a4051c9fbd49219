"""Logarithmic axes of less than two powers of ten: round numbers instead of 1.625 × 10^2."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST, MOST = 3, 6  # labels that an axis should have
DIGITS = ((1, 3), (1, 2, 5), (1, 2, 3, 5), (1, 1.5, 2, 3, 4, 6, 8), tuple(range(1, 10)))
SMALL = 1e-4  # below which a number is written with its power of ten


def label_short_log_axes(figure: Figure) -> None:
    """Put round numbers on logarithmic axes that show less than two powers of ten.

    Where Matplotlib's own ticks were replaced they stay. Matplotlib labels powers of ten, and
    where there is at most one of them whatever divides the axis evenly.
    """
    for panel in figure.axes:
        if panel.get_label() == "<colorbar>":
            continue
        for axis, limits in ((panel.xaxis, panel.get_xlim()), (panel.yaxis, panel.get_ylim())):
            if axis.get_scale() == "log" and axis.isDefault_majloc and axis.isDefault_majfmt:
                _label(axis, *sorted(limits))


def _label(axis: Any, first: float, last: float) -> None:
    powers = math.floor(math.log10(last)) - math.ceil(math.log10(first)) + 1
    if powers > 1:
        return
    ticks = short_log_ticks(first, last)
    axis.set_ticks(ticks, [_written(tick) for tick in ticks])
    axis.set_ticks([], minor=True)


def short_log_ticks(first: float, last: float) -> list[float]:
    """Return three to six round places from `first` to `last`, at most some powers of ten apart."""
    exponents = range(math.floor(math.log10(first)), math.floor(math.log10(last)) + 1)
    for digits in DIGITS:
        # By text: 3 · 10^-3 is then the number that is written so.
        places = [float(f"{digit}e{exponent}") for exponent in exponents for digit in digits]
        inside = [place for place in places if first <= place <= last]
        if FEWEST <= len(inside) <= MOST:
            return inside
    from matplotlib.ticker import MaxNLocator

    even = MaxNLocator(MOST, steps=[1, 2, 5, 10]).tick_values(first, last)
    return [float(place) for place in even if first <= place <= last]


def _written(number: float) -> str:
    if number >= SMALL:
        return f"{number:.6g}"
    exponent = math.floor(math.log10(number))
    return rf"${number / 10**exponent:.3g} \times 10^{{{exponent}}}$"
