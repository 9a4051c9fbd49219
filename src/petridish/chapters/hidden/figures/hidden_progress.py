"""Plateaus and the progress behind them: curves by configuration, ρ, predictions, noisy labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.figures.panels import corner, panels, tiles, with_curves
from petridish.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    NothingToDraw,
    caption,
    sample_label,
)
from petridish.rules.columns import curve_columns, reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MOVES = ("first_layer_movement", "relevant_weight", "irrelevant_weight", "relevant_lead")
MOST_CURVES = 10  # per panel
MOST_NOISY = 5  # as in Fig. B.12
PANELS_ACROSS = 4
MOST_RUNS = 100  # drawn of ρ, on the parity and on noise each
MOST_POINTS = 300  # of one curve
FAR = 4  # medians: where later successes leave a linear axis


def _solved(runs: pl.DataFrame) -> str:
    return f"{int((runs['outcome'] == 'SOLVED').sum())} of {len(runs)} solved"


def steps_axis(panel: Any, ticks: int = 4) -> None:
    """Label steps shortly: 20k, not 20000."""
    from matplotlib.ticker import MaxNLocator

    panel.xaxis.set_major_locator(MaxNLocator(ticks))
    panel.xaxis.set_major_formatter(lambda step, _: sample_label(step))


def _end(runs: pl.DataFrame) -> float:
    """Return where a linear axis ends: shortly after the last success, unless that is far off."""
    solved = sorted(time for time in runs["solved_at"] if time is not None)
    if not solved:
        return float(max(runs["steps"])) or 1.0
    return float(min(1.1 * solved[-1], FAR * solved[(len(solved) - 1) // 2])) or 1.0


def _thinned(steps: Any, values: Any, end: float, *, log: bool = False) -> tuple[Any, Any]:
    """Keep at most `MOST_POINTS` points up to the end of an axis: an SVG holds every one.

    On a logarithmic axis step 0 stands at half of the first evaluation.
    """
    x, y = np.asarray(steps, np.float64), np.asarray(values, np.float64)
    if log:
        x = np.where(x == 0, (x[1] if len(x) > 1 else 1.0) / 2, x)
    inside = int(np.searchsorted(x, end)) + 1
    x, y = x[:inside], y[:inside]
    space = np.geomspace if log else np.linspace
    places = np.searchsorted(x, space(x[0], x[-1], MOST_POINTS))
    kept = np.unique(np.minimum(places, len(x) - 1))
    return x[kept], y[kept]


# HP-2: Figures 5.1 left, B.2, B.13


@reads(*curve_columns("test_error"))
def configuration_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw test error over steps, up to ten seeds per panel, one panel per configuration.

    The composition of Fig. 5.1, left: steps on a linear axis, the first seed bold. An axis ends
    after the last success, or at four times the median one. Each panel gives the median fraction of
    time on the plateau.
    """
    from petridish.chapters.hidden.rules.plateaus import configurations, curves, full_name
    from petridish.statistics.transitions import plateau_fraction

    kept = with_curves(table)
    parts = configurations(kept)
    tasks = kept["task"].n_unique()
    grid: Any = {"tile": (2.75, 1.85), "margin": (0.9, 1.1), "sharey": True}
    labels = "step", "test error"
    with tiles(len(parts), PANELS_ACROSS, labels=labels, **grid) as (figure, axes):
        for panel, (key, runs) in zip(axes, parts.items(), strict=True):
            task, architecture, batch, rate = key
            first, end = runs["seed"].min(), _end(runs.head(MOST_CURVES))
            for run in reversed(runs.head(MOST_CURVES).to_dicts()):  # the first on top
                colour = BLUE if run["outcome"] == "SOLVED" else ORANGE
                bold = run["seed"] == first
                curve = _thinned(run["curve.step"], run["curve.test_error"], end)
                panel.plot(*curve, color=colour, lw=1.7 if bold else 0.7, alpha=1 if bold else 0.4)
            for edge in (0.45, 0.05):
                panel.axhline(edge, color=GREY, lw=0.6, ls=":")
            found = [plateau_fraction(*run) for run in curves(runs, "test_error") if run]
            known = [fraction for fraction in found if not math.isnan(fraction)]
            middle = f"plateau {np.median(known):.0%}\n" if known else ""
            corner(panel, f"{middle}{_solved(runs)}")
            where = f"{task}\n" if tasks > 1 else ""
            name = f"{where}{full_name(architecture)}\nB = {batch}, η = {rate:g}"
            panel.set_title(name, loc="left", fontsize=8.5)
            panel.set_xlim(0, end)
            panel.set_ylim(-0.02, 0.72)
            panel.set_yticks([0, 0.25, 0.5])
            steps_axis(panel)
        caption(
            figure,
            title,
            f"{', '.join(sorted(set(kept['task']))[:3])}; {len(kept)} runs, at most {MOST_CURVES} "
            "drawn per panel, the first seed bold. Blue: solved; orange: not. Plateau: median "
            "fraction of the time to 5 % (lower line) spent at 45 % and above (upper line).",
        )
    return figure


# HP-6: Figures 5.3 and B.9


@reads(*curve_columns("train_loss", "test_error", *MOVES[:3], "fourier_gap"))
def progress_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw loss and error above, what moves inside the network below; one column per configuration.

    The composition of Figs 5.3 and B.9: for the run with the median time to success, loss and test
    error, then the largest relevant and the largest irrelevant weight (and the Fourier gap, where
    it was recorded); and ρ of all runs, on the parity and on random labels.
    """
    import polars as pl

    from petridish.chapters.hidden.rules.plateaus import configurations, full_name

    kept = with_curves(table, *MOVES[:3])
    parts = configurations(kept)
    gap = "curve.fourier_gap"
    rows = 3 + (gap in kept.columns and not kept[gap].is_null().all())
    size = (1.3 + 2.9 * len(parts), 1.2 + 1.75 * rows)
    with panels(rows, len(parts), size) as (figure, axes):
        for column, (key, runs) in zip(axes.T, parts.items(), strict=True):
            _, architecture, batch, rate = key
            parity = runs.filter(pl.col("data.label_noise") == 0)
            noise = runs.filter(pl.col("data.label_noise") == 0.5)
            solved = parity.filter(pl.col("outcome") == "SOLVED").sort("solved_at", "seed")
            middle = solved.slice((len(solved) - 1) // 2, 1) if len(solved) else parity.head(1)
            column[0].set_title(
                f"{full_name(architecture)}\nB = {batch}, η = {rate:g}", loc="left", fontsize=9
            )
            for run in middle.iter_rows(named=True):
                _one_run(column[:-1], run)
            _all_runs(column[-1], parity, noise)
        for row, corner in zip(axes[:2, 0], ("lower left", "upper left"), strict=True):
            row.legend(loc=corner, frameon=False, fontsize=8, handlelength=1.2)
        labels = ["loss, error", "largest weight", "Fourier gap", "ρ"]
        for row, label in zip(axes[:, 0], labels if rows > 3 else [*labels[:2], "ρ"], strict=True):
            row.set_ylabel(label)
        for panel in axes[-1]:
            panel.set_xlabel("step")
        caption(
            figure,
            title,
            f"{', '.join(sorted(set(kept['task']))[:3])}; {len(kept)} runs. Above: the run with "
            "the median time to success. Below: ρ = ‖w_t − w_0‖_∞ of the first layer; a run on the "
            "parity (green) ends when it is solved, one on random labels (grey) with its "
            f"budget; at most {MOST_RUNS} of each are drawn.",
        )
    return figure


def _one_run(panels: Any, run: dict[str, Any]) -> None:
    """Draw one run: what can be seen from outside, and what happens inside."""
    steps = run["curve.step"]

    def draw(panel: Any, name: str, **style: Any) -> None:
        panel.plot(*_thinned(steps, run[f"curve.{name}"], steps[-1]), **style)

    draw(panels[0], "train_loss", color=INK, lw=0.8, alpha=0.8, label="loss")
    draw(panels[0], "test_error", color=ORANGE, lw=1.6, label="test error")
    panels[0].set_ylim(bottom=-0.03)
    draw(panels[1], "irrelevant_weight", color=GREY, lw=1.5, label="irrelevant")
    draw(panels[1], "relevant_weight", color=BLUE, lw=1.5, label="relevant")
    panels[1].set_ylim(bottom=0)
    if len(panels) > 2 and run["curve.fourier_gap"]:
        draw(panels[2], "fourier_gap", color=GREEN, lw=1.4)
        panels[2].axhline(0, color=GREY, lw=0.6, ls=":")
    for panel in panels:
        panel.set_xlim(0, steps[-1])
        steps_axis(panel)


def _all_runs(panel: Any, parity: pl.DataFrame, noise: pl.DataFrame) -> None:
    """Draw ρ of the runs on the parity and on random labels, as far as the latter go."""
    from petridish.chapters.hidden.rules.plateaus import curves

    end = float(max(noise["steps"])) if len(noise) else _end(parity)
    highest = 0.0
    for runs, colour in ((noise, GREY), (parity, GREEN)):
        strength = min(0.8, 6 / max(min(len(runs), MOST_RUNS), 1) + 0.15)
        for run in filter(None, curves(runs.head(MOST_RUNS), "first_layer_movement")):
            steps, movement = _thinned(*run, end)
            highest = max(highest, float(np.max(movement)))
            panel.plot(steps, movement, color=colour, lw=0.8, alpha=strength)
    panel.set_xlim(0, end)
    panel.set_ylim(0, highest * 1.18 or 1)
    corner(panel, f"{len(parity)} on the parity, {len(noise)} on random labels", right=False)
    steps_axis(panel)


@reads(*curve_columns("test_error", "first_layer_movement"))
def prediction_scatter(table: pl.DataFrame, title: str) -> Figure:
    """Draw predicted against true remaining time, held out, one panel per configuration.

    Predictions are those of `ProgressPredicts`: each half of the seeds predicts the other from ρ
    at a plateau time. A run that was not solved is a triangle at what remained of its budget.
    """
    from petridish.chapters.hidden.rules.prediction import held_out_predictions

    kept = with_curves(table, "first_layer_movement")
    found: dict[str, list[Any]] = {}
    for prediction in held_out_predictions(kept):
        found.setdefault(prediction.configuration, []).append(prediction)
    if not found:
        raise NothingToDraw(
            "No configuration has enough runs at chance at a plateau time. Run more seeds."
        )
    grid: Any = {"tile": (3.0, 2.9), "margin": (0.9, 1.8)}
    labels = "remaining steps", "predicted remaining steps"
    with tiles(len(found), PANELS_ACROSS, labels=labels, **grid) as (figure, axes):
        for panel, (name, halves) in zip(axes, found.items(), strict=True):
            _scatter(panel, halves)
            panel.set_title(name, loc="left")
        caption(
            figure,
            title,
            "After half of the median plateau, runs still at chance (test error ≥ 45 %): each "
            "half of the seeds (filled, open) is predicted by a fit to the other, from ρ alone. "
            "Orange triangles: not solved, at what remained of the budget. Line: equal.",
        )
    return figure


def _scatter(panel: Any, halves: list[Any]) -> None:
    every = []
    for half, fill in zip(halves, (BLUE, "white"), strict=True):
        known = np.isfinite(half.remaining)
        x = np.where(known, half.remaining, half.beyond)
        every += [*x.tolist(), *half.predicted.tolist()]
        panel.plot(
            x[known], half.predicted[known], "o", ms=4, mfc=fill, mec=BLUE, mew=0.8, alpha=0.8
        )
        panel.plot(x[~known], half.predicted[~known], ">", ms=5, mfc=ORANGE, mec=ORANGE, alpha=0.8)
    ends = (min(every) / 1.3, max(every) * 1.3)
    panel.plot(ends, ends, color=GREY, lw=0.8, ls=":", zorder=0)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(ends)
    panel.set_ylim(ends)
    panel.set_aspect("equal")
    runs = sum(len(half.remaining) for half in halves)
    score = np.tanh(np.mean([np.arctanh(np.clip(h.correlation, -0.999, 0.999)) for h in halves]))
    corner(panel, f"rank correlation {score:.2f}\nn = {runs}", right=False)


# HP-10: Figure B.12


@reads(*curve_columns("test_error"))
def noise_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw clean test error over steps: one row per batch size, one column per p; five seeds."""
    kept = with_curves(table)
    kept = kept.filter(kept["data.label_noise"] < 0.5)
    levels = sorted(set(kept["data.label_noise"]))
    batches = sorted(set(kept["training.batch_size"]))
    if not levels:
        raise NothingToDraw("No run has labels flipped less often than ½.")
    parts = kept.partition_by("training.batch_size", "data.label_noise", as_dict=True)
    shape, size = (len(batches), len(levels)), (1.2 + 2.2 * len(levels), 1.2 + 1.55 * len(batches))
    with panels(*shape, size, sharex=True, sharey=True) as (figure, axes):
        for (row, column), panel in np.ndenumerate(axes):
            runs = parts.get((batches[row], levels[column]))
            if runs is not None:
                for run in runs.sort("seed").head(MOST_NOISY).iter_rows(named=True):
                    colour = BLUE if run["outcome"] == "SOLVED" else ORANGE
                    curve = _thinned(run["curve.step"], run["curve.test_error"], math.inf, log=True)
                    panel.plot(*curve, color=colour, lw=0.9, alpha=0.8)
                corner(panel, _solved(runs))
            panel.set_xscale("log")
            panel.set_ylim(-0.02, 0.72)
            panel.set_yticks([0, 0.25, 0.5])
            if row == 0:
                panel.set_title(f"p = {levels[column]:g}", loc="left")
            if row == len(batches) - 1:
                panel.set_xlabel("step")
            if column == 0:
                panel.set_ylabel(f"B = {batches[row]}\ntest error")
        caption(
            figure,
            title,
            f"{', '.join(sorted(set(kept['task']))[:3])}; {len(kept)} runs, at most {MOST_NOISY} "
            "drawn per panel; at most "
            f"{max(kept['training.steps']):,} steps. Labels are flipped with probability p, the "
            "held-out sample is clean. Blue: solved; orange: not.",
        )
    return figure
