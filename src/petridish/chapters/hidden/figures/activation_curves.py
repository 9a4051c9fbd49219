"""HP's activations as curves [HP Fig. B.14], and how often the networks of HP-14 succeed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from petridish.figures.panels import outer_legend, panels
from petridish.figures.style import GREY, INK, NothingToDraw, caption, shades
from petridish.rules.columns import reads

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl
    from matplotlib.figure import Figure

    from petridish.models.activations import Activation

DEGREES = (2, 3, 4)


@reads()
def activation_shapes(table: pl.DataFrame, title: str) -> Figure:
    """Draw every activation over z, one curve per k, with the points that make it a parity.

    The composition of HP's Figure B.14; no run takes part.
    """
    import torch

    from petridish.models.activations import (
        InfiniteZigzag,
        Oscillating,
        Power,
        ReLU,
        Sine,
        Zigzag,
    )

    kinds: dict[str, Callable[[int], Activation]] = {
        "ReLU": lambda k: ReLU(),
        "z^k": Power,
        "k-zigzag": Zigzag,
        "oscillating polynomial": Oscillating,
        "∞-zigzag": InfiniteZigzag,
        "sinusoid": Sine,
    }
    z = torch.linspace(-6, 6, 601, dtype=torch.float64)
    colours = shades(DEGREES)
    with panels(2, 3, (10.5, 5.4), sharex=True) as (figure, axes):
        for panel, (name, make) in zip(axes.ravel(), kinds.items(), strict=True):
            for k in DEGREES[:1] if name == "ReLU" else DEGREES:
                colour = INK if name == "ReLU" else colours[k]
                panel.plot(z, make(k)(z), color=colour, lw=1.4)
                if name not in ("ReLU", "z^k"):
                    points = torch.arange(-k, k + 1, 2, dtype=torch.float64)
                    panel.plot(points, make(k)(points), "o", ms=3.5, color=colour)
            panel.set_title(name, loc="left")
            panel.set_ylim((-0.3, 3.0) if name == "ReLU" else (-3.0, 3.0))
            panel.axhline(0, color=GREY, lw=0.5)
        for panel in axes[-1]:
            panel.set_xlabel("z")
        handles = [axes[0][1].plot([], [], color=colours[k], label=f"k = {k}")[0] for k in DEGREES]
        figure.legend(handles=handles, loc="outside right center", frameon=False)
        caption(
            figure,
            title,
            "Dots: the sums of k signs, at which an activation is their product. Drawn from the "
            "models; no run takes part.",
        )
    return figure


def _called(model: object) -> str:
    """Return a network in a few words: its activation and width, or its class."""
    from petridish.models import MLP

    if not isinstance(model, MLP):
        return type(model).__name__
    words = {"ReLU": "ReLU", "Power": "z^k", "Zigzag": "k-zigzag", "Oscillating": "oscillating"}
    words |= {"InfiniteZigzag": "∞-zigzag", "Sine": "sinusoid"}
    kind = type(model.activation).__name__
    return f"{words.get(kind, kind)}, r = {model.width}"


@reads()
def finding_rows(table: pl.DataFrame, title: str) -> Figure:
    """Draw the share of runs solved in every cell with 95 % intervals, a panel for each arm.

    A row is a network with what else varies in its arm; a colour is a learning rate.
    """
    import numpy as np
    import polars as pl

    from petridish.rules.specs import with_specs
    from petridish.statistics.intervals import wilson_interval
    from petridish.sweeps import by_arm

    if table.is_empty():
        raise NothingToDraw("There are no runs to draw. Run the sweep first.")
    named = with_specs(by_arm(table), network=lambda spec: _called(spec.model)).with_columns(
        parity=pl.col("task").cast(pl.String).str.strip_prefix("sparse_parity")
    )
    rate = "training.learning_rate"
    row = ["parity", "network", "training.loss", "training.batch_size"]
    cells = (
        named.group_by("arm", *row, rate)
        .agg(runs=pl.len(), solved=(pl.col("outcome") == "SOLVED").sum())
        .sort("arm", *row, rate)
    )
    arms = cells.partition_by("arm", maintain_order=True)
    heights = [arm.select(row).n_unique() for arm in arms]
    colours = shades(sorted(set(cells[rate])))
    shapes = {"height_ratios": [height + 0.5 for height in heights]}
    size = (9.0, 1.2 + 0.42 * len(arms) + 0.2 * sum(heights))
    with panels(len(arms), 1, size, sharex=True, gridspec_kw=shapes) as (figure, axes):
        for panel, arm, height in zip(axes[:, 0], arms, heights, strict=True):
            settings = arm.select(row).unique(maintain_order=True)
            place = {each: i for i, each in enumerate(settings.iter_rows())}
            for value, part in arm.group_by(rate, maintain_order=True):
                solved, runs = part["solved"].to_numpy(), part["runs"].to_numpy()
                low, high = wilson_interval(solved, runs)
                share = solved / runs
                step = 0.22 * (list(colours).index(value[0]) - (len(colours) - 1) / 2)
                at = np.array([place[each] for each in part.select(row).iter_rows()]) + step
                bars = [np.maximum(share - low, 0), np.maximum(high - share, 0)]
                look: Any = {"fmt": "o", "ms": 3, "lw": 0.9, "color": colours[value[0]]}
                panel.errorbar(share, at, xerr=bars, **look)
            names = [
                f"{parity}, {network}, {loss}, B = {batch}"
                for parity, network, loss, batch in settings.iter_rows()
            ]
            panel.set_yticks(range(height), names, fontsize=7)
            panel.set_ylim(height - 0.45, -0.55)
            panel.set_title(arm["arm"][0], loc="left")
        axes[-1, 0].set_xlim(-0.03, 1.03)
        axes[-1, 0].set_xlabel("share of runs solved")
        first = axes[0, 0]
        for each, colour in colours.items():
            first.plot([], [], "o-", ms=3, lw=0.9, color=colour, label=f"η = {each:g}")
        outer_legend(figure, axes)
        note = f"{len(table):,} runs; bars: 95 % intervals (Wilson's), of each cell."
        caption(figure, title, note)
    return figure
