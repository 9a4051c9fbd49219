"""Figures of IH: losses, distances to strategies and attention through training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.figures.panels import framed, runs_made
from petridish.figures.style import BLUE, GREEN, GREY, INK, ORANGE, NothingToDraw
from petridish.rules.columns import reads
from petridish.sweeps.arms import arm_names

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MOST_RUNS = 10  # drawn, as in the paper's Figure E.3
STRATEGIES = {"uniform": GREY, "unigram": BLUE, "bigram": ORANGE}
LOSSES = {"test": ("in distribution", INK), "iid": ("iid tokens", BLUE)}
LOSSES["doubly"] = ("doubly stochastic", ORANGE)
ATTENTION = "attention1_back1"
NAMES = (
    *(f"{sample}_kl_truth" for sample in LOSSES),
    *(f"test_kl_{strategy}" for strategy in STRATEGIES),
    *("test_kl_of_unigram", "test_kl_of_bigram", ATTENTION, "attention2_successors"),
)
WAYS = (0.0, 0.35, 0.6, 1.0)
MOST_ROWS = 6  # settings of a figure
MAPS = ("attention1_map", "attention2_map")


def runs_with(table: pl.DataFrame, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the first runs that kept these columns."""
    kept = table.drop_nulls(columns) if {*columns} <= {*table.columns} else table.clear()
    if kept.is_empty():
        raise NothingToDraw(
            "These runs kept no curves of strategies and attention: draw those of IH-1."
        )
    return kept.sort("seed").head(MOST_RUNS).to_dicts()


def settings_of(table: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Return the runs of each arm under its name, at most `MOST_ROWS`; of all without arms."""
    import polars as pl

    names = sorted(arm_names(table))  # in a store arms are in the order in which they ended
    if not names:
        return [(runs_made(table), table)]
    arms = [(name, table.filter(pl.col("arms").list.contains(name))) for name in names]
    return arms[:MOST_ROWS]


def rows_of(
    table: pl.DataFrame, columns: tuple[str, ...]
) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the first runs of each arm that kept these columns, under its name."""
    arms = settings_of(table)
    if len(arms) > 1 and {*columns} <= {*table.columns}:
        kept = [(name, part) for name, part in arms if not part.drop_nulls(columns).is_empty()]
        arms = kept or arms
    return [(name, runs_with(part, columns)) for name, part in arms]


@reads("curve.step", *(f"curve.{name}" for name in NAMES))
def phases(table: pl.DataFrame, title: str) -> Figure:
    """Draw losses on three samples, distances to strategies, and attention [TH Fig. 8.3, E.6]."""
    columns = ("curve.step", *(f"curve.{name}" for name in NAMES))
    rows = [(name, runs_with(part, columns)) for name, part in settings_of(table)]
    note = f"At most {MOST_RUNS} runs of each setting, one line per run. Horizontal: what the two "
    note = f"{runs_made(table)}. {note}strategies lose in distribution."
    with framed(title, note, (11, 1.0 + 2.7 * len(rows)), len(rows), 3) as (figure, axes):
        for (name, runs), (loss, nearest, attention) in zip(rows, axes, strict=True):
            for run in runs:
                for sample, (_, colour) in LOSSES.items():
                    line(loss, run, f"{sample}_kl_truth", colour)
                for strategy, colour in STRATEGIES.items():
                    line(nearest, run, f"test_kl_{strategy}", colour)
                line(attention, run, ATTENTION, INK)
                line(attention, run, "attention2_successors", GREEN)
            for strategy, dashes in (("unigram", (4, 2)), ("bigram", (1, 1.5))):
                level = float(np.mean([run[f"curve.test_kl_of_{strategy}"][0] for run in runs]))
                loss.axhline(level, color=INK, lw=0.9, dashes=dashes)
                across = loss.get_yaxis_transform()
                loss.text(1, level, strategy, transform=across, va="bottom", ha="right")
            loss.set_ylabel(f"{name}\nnats, last token")
            attention.set_ylim(-0.1, 1.02)
            for panel in (loss, nearest):
                panel.set_ylim(bottom=0)
            # The distance to a strategy that is certain of a token can be anything.
            most = max(max(run["curve.test_kl_uniform"][:1]) for run in runs)
            middle = [np.quantile(run["curve.test_kl_bigram"], 0.9) for run in runs]
            nearest.set_ylim(0, 2.5 * max(most, float(np.median(middle)), 0.1))
        legend(axes[0, 0], [(label, colour) for label, colour in LOSSES.values()])
        legend(axes[0, 1], list(STRATEGIES.items()))
        legend(axes[0, 2], [("layer 1 → previous token", INK), ("layer 2 → successors", GREEN)])
        axes[0, 0].set_title("KL(truth ‖ network)", loc="left")
        axes[0, 1].set_title("KL(strategy ‖ network)", loc="left")
        axes[0, 2].set_title("attention above chance", loc="left")
        for panel in axes[-1]:
            panel.set_xlabel("step")
    return figure


def line(panel: Any, run: dict[str, Any], name: str, colour: str) -> None:
    """Draw a curve of a run."""
    panel.plot(run["curve.step"], run[f"curve.{name}"], color=colour, lw=1.0, alpha=0.75)


def legend(panel: Any, entries: list[tuple[str, str]]) -> None:
    """Name colours where a panel is emptiest."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=colour, label=label) for label, colour in entries]
    panel.legend(handles=lines, frameon=False, fontsize=8, loc="best")


@reads("curve.step", *(f"array.{name}" for name in MAPS))
def attention_maps(table: pl.DataFrame, title: str) -> Figure:
    """Draw where one run attends at some steps, for one input [TH Fig. 8.2, E.5]."""
    columns = tuple(f"array.{name}" for name in MAPS)
    runs = runs_with(table, ("curve.step", *columns))
    kept = [runs[0][column] for column in columns]
    maps = [np.reshape(m["values"], m["shape"]) for m in kept]  # (reading, position, token)
    # The steps of maps are spread evenly, from the first to the last.
    steps = np.linspace(0, runs[0]["steps"], len(maps[0])).round().astype(int)
    shown = np.unique(np.linspace(0, len(steps) - 1, 6).round().astype(int))
    length = maps[0].shape[-1]
    note = f"Seed {runs[0]['seed']}; the last {length} positions of one held-out sequence."
    note = f"{runs_made(table)}, 1 drawn. {note}"
    size, shared = (2.1 * len(shown) + 1, 5.2), {"sharex": True, "sharey": True}
    with framed(title, note, size, 2, len(shown), **shared) as (figure, axes):
        for row, readings in zip(axes, maps, strict=True):
            top = readings[shown].max()  # the second layer spreads over many tokens
            for panel, place in zip(row, shown, strict=True):
                image = panel.imshow(readings[place], cmap="cividis", vmin=0, vmax=top)
                panel.tick_params(length=0, labelbottom=False, labelleft=False)
            figure.colorbar(image, ax=row, shrink=0.8, label="share of attention")
        for (above, below), place in zip(axes.T, shown, strict=True):
            above.set_title(f"step {steps[place]}", loc="left")
            below.set_xlabel("token")
        for number, row in enumerate(axes, start=1):
            row[0].set_ylabel(f"layer {number}\nposition")
    return figure


@reads("curve.step", "curve.test_kl_truth", "array.attention1_positions")
def positions(table: pl.DataFrame, title: str) -> Figure:
    """Draw v̂ of one run of each setting by distance, at four losses [TH Fig. 8.3 middle, E.7]."""
    columns = ("curve.step", "curve.test_kl_truth", "array.attention1_positions")
    rows = [(name, runs[0]) for name, runs in rows_of(table, columns)]
    note = "The first seed. Times by the loss: shares of its way from start to end. Odd numbers of "
    note = f"{runs_made(table)}. {note}tokens back are filled."
    with framed(title, note, (11, 1.0 + 2.2 * len(rows)), len(rows), len(WAYS)) as (figure, axes):
        for (name, run), panels in zip(rows, axes, strict=True):
            kept, loss = run["array.attention1_positions"], np.array(run["curve.test_kl_truth"])
            values = np.reshape(kept["values"], kept["shape"])  # (reading, distance)
            way = (loss[0] - loss) / (loss[0] - loss[-5:].mean())
            for panel, share in zip(panels, WAYS, strict=True):
                place = int(np.argmax(way >= share)) if (way >= share).any() else len(way) - 1
                back = np.arange(values.shape[1])
                faces = [ORANGE if distance % 2 else "white" for distance in back]
                panel.bar(back, values[place], color=faces, edgecolor=ORANGE, lw=1)
                panel.set_title(f"step {run['curve.step'][place]}", loc="left")
            panels[0].set_ylabel(name)
        for panel in axes[-1]:
            panel.set_xlabel("tokens back")
    return figure
