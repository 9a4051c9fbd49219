"""One house style; the caller's settings come back afterwards."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, cast

from petridish.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY, INK = "#0072B2", "#D55E00", "#8C8C8C", "#222222"  # Okabe & Ito's, distinguished
GREEN = "#009E73"  # theirs too


@contextmanager
def house_style() -> Iterator[Any]:
    """Draw inside this; gives `matplotlib.figure.Figure`, which needs no display."""
    import matplotlib
    from matplotlib.figure import Figure

    settings: dict[Any, Any] = {
        "font.family": "DejaVu Sans",
        "font.size": 9.0,
        "axes.titlesize": 10.0,
        "axes.titleweight": "bold",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "text.color": INK,
        "svg.fonttype": "none",
        "svg.hashsalt": "petridish",
    }
    with matplotlib.rc_context(settings):
        yield Figure


HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222", "#8C8C8C")


def colours_of(values: Sequence[Any], *, in_order: bool) -> dict[Any, Any]:
    """Return a colour for each value: shades for an order, hues for names, as far as they go."""
    if in_order or len(values) > len(HUES):
        return shades(values)
    return dict(zip(values, HUES, strict=False))


def shades(values: Sequence[float]) -> dict[float, Any]:
    """Return each value of an ordered condition its colour, dark for the smallest."""
    import numpy as np
    from matplotlib import colormaps

    colours = colormaps["viridis"](np.linspace(0, 0.88, max(2, len(values))))
    return dict(zip(values, colours, strict=False))


class NothingToDraw(UserError):
    """The table has no runs that a figure could show."""


def caption(figure: Figure, title: str, note: str) -> None:
    """Put a title above and what was run below: every figure carries its scale and n.

    Both are broken into lines that fit the figure. Short logarithmic axes get round numbers.
    """
    from petridish.figures.log_axes import label_short_log_axes

    label_short_log_axes(figure)
    width = figure.get_size_inches()[0]
    lines = [part for line in note.splitlines() for part in wrap(line, int(width * 15.5))]
    head = "\n".join(wrap(title, int(width * 10.5)))
    figure.suptitle(head, x=0.01, ha="left", fontsize=11, fontweight="bold")
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=8, color=GREY)


def as_figure(drawn: object, name: str = "", draw: object = None) -> Figure:
    """Return what the function `draw` of the figure `name` has drawn, or refuse what is none."""
    if not hasattr(drawn, "savefig"):
        from petridish.choices import home_of
        from petridish.sources import is_users

        made_by: Any = getattr(draw, "func", draw)  # a partial function's
        where = home_of(made_by) if callable(made_by) and is_users(made_by) else ""
        what = f"The function of the figure {name}{where}" if name else "A function of a figure"
        raise UserError(f"{what} returned {drawn!r}. Return a matplotlib Figure.")
    return cast("Figure", drawn)


def forget_in_pyplot(figure: Figure) -> None:
    """Take a figure of a user's function from pyplot, which would keep it, or show it again."""
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close(figure.figure)  # of a grid of seaborn, its figure


def panel_title(parts: Sequence[str], *, letters: int) -> str:
    """Join the parts of a title, broken between them into lines of so many letters."""
    whole = ", ".join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in parts)
    return "\n".join(wrap(whole, letters)).replace("\N{NO-BREAK SPACE}", " ")


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG; the same table gives the same bytes."""
    drawn = save_png(figure, folder, name)
    with _writing(folder), house_style():
        figure.savefig(drawn.with_suffix(".svg"), metadata={"Date": None})
    forget_in_pyplot(figure)
    return [drawn, drawn.with_suffix(".svg")]


def save_png(figure: Figure, folder: Path, name: str) -> Path:
    """Write a figure as PNG."""
    path = folder / f"{name}.png"
    figure = as_figure(figure)
    with _writing(folder), house_style():
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=160, metadata={"Software": "petridish"})
    return path


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"Figures cannot be written to {folder}: {error.strerror}. Give another --out."
        ) from error


def sample_label(m: float) -> str:
    """Write a sample size as the papers do: 3000 is 3k, infinity ∞."""
    if m == float("inf"):
        return "∞"
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if m >= size:
            return f"{m / size:g}{letter}"
    return f"{m:g}"


def log_ticks(first: float, last: float) -> tuple[list[float], list[str]]:
    """Return at most five round places on a logarithmic axis, and their labels."""
    for digits in ((1, 2, 5), (1,)):
        powers = range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)
        round_ones = [float(digit * 10**power) for power in powers for digit in digits]
        inside = [place for place in round_ones if first <= place <= last]
        if 2 <= len(inside) <= 5:
            break
    ticks = inside[:: math.ceil(len(inside) / 5)] if len(inside) > 1 else [first, last]
    return ticks, [sample_label(tick) for tick in ticks]
