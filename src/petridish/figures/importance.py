"""Which columns of a table a network found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.errors import UserError
from petridish.figures.style import BLUE, GREY, caption, house_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONGEST = 32  # letters of a column's name that are shown


def plot_importances(estimator: Any, *, top: int = 20, ax: Axes | None = None) -> Figure:
    """Draw the importances of a fitted `SparseMLPClassifier` or `SparseMLPRegressor`.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted; of a pipeline, the columns that its last step saw.
    top : int, default=20
        How many columns to show, the most important first.
    ax : Axes, optional
        Where to draw; without it, in a new figure.

    Returns
    -------
    figure : Figure
        With `savefig`, and shown by a notebook.
    """
    from petridish.estimator.movement import named_importances

    names, values = named_importances(estimator)
    return importance_bars(names, values, top=top, ax=ax)


def importance_bars(
    names: Sequence[str],
    values: Sequence[float] | np.ndarray[Any, Any],
    *,
    top: int = 20,
    title: str = "Which columns the network found",
    ax: Axes | None = None,
) -> Figure:
    """Draw the `top` largest shares as bars, the largest above, beside the line of equal shares.

    Parameters
    ----------
    names, values : sequences of one length
        Columns and their shares, which add up to 1.
    top : int, default=20
        How many to show.
    title : str
        Of a new figure.
    ax : Axes, optional
        Where to draw; without it, in a new figure with title and caption.
    """
    if not isinstance(top, int) or top < 1:
        raise UserError(f"top={top!r} columns are to be drawn. Give a whole number of at least 1.")
    shares = np.asarray(values, np.float64)
    chosen = np.argsort(-shares, kind="stable")[:top]
    with house_style() as make_figure:
        if ax is not None:
            _bars(ax, [names[i] for i in chosen], shares[chosen], 1 / len(shares))
            whole: Any = ax.get_figure()
            return whole  # type: ignore[no-any-return] # a subfigure is one, too
        figure: Figure = make_figure(figsize=(6.4, 1.7 + 0.23 * len(chosen)), layout="constrained")
        _bars(figure.subplots(), [names[i] for i in chosen], shares[chosen], 1 / len(shares))
        shown = f"{len(chosen)} of {len(shares)} columns, with {shares[chosen].sum():.0%} of all"
        every = f"All {len(shares)} columns"
        caption(
            figure,
            title,
            f"{every if len(chosen) == len(shares) else shown}. Squared movement of the first "
            "layer's weights, times the input's variance and what leaves the neuron. Broken line: "
            "equal shares.",
        )
    return figure


def _bars(ax: Axes, names: Sequence[str], shares: np.ndarray[Any, Any], equal: float) -> None:
    places = np.arange(len(shares))
    ax.barh(places, shares, height=0.7, color=BLUE)
    ax.axvline(equal, color=GREY, lw=1, ls="--")
    ax.set_yticks(places, [_short(name) for name in names])
    ax.set_ylim(len(shares) - 0.4, -0.6)
    ax.set_xlim(0, 1.12 * max(float(shares.max(initial=0)), equal))
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # covers the broken line
    for place, share in enumerate(shares):
        ax.annotate(
            f"{share:.1%}",
            (share, place),
            (3, 0),
            textcoords="offset points",
            va="center",
            size=7.5,
            bbox=paper,
        )
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
    ax.set_xlabel("share of first-layer weight movement")


def _short(name: str) -> str:
    """Leave out the middle of a long name: columns often differ in their last letters."""
    half = LONGEST // 2
    return name if len(name) <= LONGEST else f"{name[:half]}…{name[1 - half :]}"
