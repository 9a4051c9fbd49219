"""Lottery tickets: the parents, their tickets, and random neurons, panel by panel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from petridish.chapters.pareto.rules.tickets import times_to
from petridish.figures.panels import corner, framed, with_curves
from petridish.figures.style import BLUE, GREY, ORANGE, sample_label
from petridish.rules.columns import curve_columns, reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MOST = 40  # curves per panel
SOLVED = 0.1  # test error


def with_solved(runs: pl.DataFrame) -> pl.DataFrame:
    """Add the step at which each run's curve says that it was solved; null where none does."""
    import polars as pl

    steps = [None if math.isinf(time) else time for time in times_to(runs, SOLVED).tolist()]
    return runs.with_columns(pl.Series("solved", steps, dtype=pl.Float64))


def sample(runs: pl.DataFrame, most: int = MOST) -> pl.DataFrame:
    """Return at most `most` runs: both outcomes in their proportion, a few of every parent.

    An outcome that occurs is drawn at least once. Runs that are not solved come first.
    """
    import polars as pl

    solved = pl.col("solved").is_not_null()
    turns = runs.with_columns(turn=pl.int_range(pl.len()).over("init.seed", solved))
    order = turns.sort("turn", "init.seed")  # so that no ticket hides the others
    won, lost = order.filter(solved), order.filter(~solved)
    most = min(most, len(runs))
    kept = round(most * len(won) / len(runs))
    kept = min(max(kept, min(1, len(won))), most - min(1, len(lost)))
    return pl.concat([lost.head(most - kept), won.head(kept)]).drop("turn")


@reads(*curve_columns("test_error"))
def ticket_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw test error over steps: wide networks, their tickets rewound, random neurons.

    Each panel has a sample of its runs with both outcomes in their proportion; a dot is where a run
    was solved: its first evaluation with at most 10 % error.
    """
    import polars as pl
    from matplotlib.ticker import MaxNLocator

    table = with_solved(with_curves(table))
    wide = pl.col("model.width") == pl.col("model.width").max()
    kinds = [
        ("wide networks", pl.col("init.chosen").is_null() & wide),
        ("their largest neurons, rewound", pl.col("init.chosen") == "largest"),
        ("random neurons", pl.col("init.chosen") == "random"),
        ("fresh narrow networks", pl.col("init.chosen").is_null() & ~wide),
    ]
    parts = [(name, table.filter(choice)) for name, choice in kinds]
    parts = [(name, runs) for name, runs in parts if len(runs)]
    samples = [sample(runs) for _, runs in parts]
    numbers = [
        f"{len(drawn)} of {len(runs)} ({_solved(drawn)} of {_solved(runs)} solved)"
        for (_, runs), drawn in zip(parts, samples, strict=True)
    ]
    note = (
        f"{', '.join(sorted(set(table['task'])))}, online; {len(table)} runs. Blue, with "
        "a dot: solved (test error ≤ 10 %); orange: not. Drawn, from left to right: "
        f"{', '.join(numbers)}."
    )
    size, shared = (1.0 + 3.4 * len(parts), 4.0), {"sharey": True, "sharex": True}
    with framed(title, note, size, 1, len(parts), **shared) as (figure, (axes,)):
        for panel, (name, runs), drawn in zip(axes, parts, samples, strict=True):
            for run in drawn.iter_rows(named=True):
                steps, errors = run["curve.step"], run["curve.test_error"]
                if run["solved"] is not None:
                    at = steps.index(run["solved"])
                    panel.plot(steps, errors, color=BLUE, lw=1.0, alpha=0.85)
                    panel.plot(steps[at : at + 1], errors[at : at + 1], "o", color=BLUE, ms=3)
                else:
                    panel.plot(steps, errors, color=ORANGE, lw=0.8, alpha=0.4)
            panel.set_title(f"{name} (r = {runs['model.width'][0]})", loc="left", fontsize=9.5)
            corner(panel, f"{_solved(runs)} of {len(runs)} solved", fontsize=9)
            panel.set(ylim=(0, 0.6), xlabel="step")
            panel.axhline(SOLVED, color=GREY, lw=0.6, ls=":")
            panel.xaxis.set_major_locator(MaxNLocator(5))
            panel.xaxis.set_major_formatter(lambda step, _: sample_label(step))
        axes[0].set_ylabel("test error")
    return figure


def _solved(runs: pl.DataFrame) -> int:
    return int(runs["solved"].is_not_null().sum())
