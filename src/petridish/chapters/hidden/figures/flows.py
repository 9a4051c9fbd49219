"""The flow of disjoint PolyNets beside SGD; one big step, and fixed features beside trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.figures.panels import panels, span
from petridish.figures.slices import place, size_axis
from petridish.figures.style import BLUE, GREY, INK, ORANGE, NothingToDraw, caption, shades
from petridish.rules.columns import curve_columns, reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

BLOCKS = (10, 30, 100, 1_000)
DESCENT = 2_000  # steps of descent on the population's loss until the error is 0
MOST_CURVES = 4  # of SGD, for each n' and start
GAUSSIAN = ((30, 100, 300), 20)  # n' and draws
TRIALS = 40
MOST_SIGNS = 3e8  # drawn for one curve of recovery; beyond, the prediction stands alone
KINDS = ("trained", "random", "tangent")


@reads(*curve_columns("test_error"))
def flow_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw the error along population descent and along SGD, and the time off the plateau.

    One row per k, the composition of HP's Figure B.1: left descent with small steps on the
    population's loss from a Gaussian start, right SGD with B = 1 and a constant rate, from a
    Gaussian start and, dashed, from ones, both against the time to their end; then
    1 − T(.49)/T(0) over n' with its bound.
    """
    from petridish.chapters.hidden.rules.disjoint_polynets import disjoint_runs

    runs = disjoint_runs(table)
    degrees = sorted({3, 4} | {int(k) for k in runs["task.k"] if k >= 3})
    sizes = sorted({*BLOCKS, *(runs["task.n"] // runs["task.k"])})
    kept = runs.filter(runs["curve.step"].is_not_null()) if "curve.step" in runs else runs.clear()
    colours = shades(sizes)
    size = (11.8, 1.2 + 2.75 * len(degrees))
    with panels(len(degrees), 3, size, width_ratios=(1, 1, 0.95)) as (figure, axes):
        for row, k in zip(axes, degrees, strict=True):
            _descent(row[0], k, colours)
            _sgd(row[1], kept.filter(kept["task.k"] == k), colours)
            _remainders(row[2], k)
            _measured(row[2], kept.filter(kept["task.k"] == k))
            titles = ("population descent", "SGD, B = 1", "off the plateau")
            for panel, text in zip(row, titles, strict=True):
                panel.set_title(f"k = {k}: {text}", loc="left")
            for panel in row[:2]:
                panel.axhline(0.49, color=INK, lw=0.6, ls=":")
                panel.set_xlim(-0.02, 1.04)
                panel.set_ylim(-0.02, 0.56)
                panel.set_ylabel("error")
            row[2].set_ylabel("1 − T(.49) / T(0)")
        labels = ("step / step of zero error", "step / step of solution", "block n' = n / k")
        for panel, label in zip(axes[-1], labels, strict=True):
            panel.set_xlabel(label)
        handles = [
            axes[0][0].plot([], [], color=colours[size], label=f"n' = {size:,}")[0]
            for size in sizes
        ]
        handles += [
            axes[0][2].plot([], [], ls, color=colour, ms=4, label=label)[0]
            for ls, colour, label in (
                ("-", GREY, "Gaussian start"),
                ("--", GREY, "start from ones"),
                ("-", INK, "proved bound"),
                (":", INK, "printed bound"),
                (".", BLUE, "flow from all ones"),
                ("D", BLUE, "Gaussian, median"),
                ("s", ORANGE, "SGD, mean"),
            )
        ]
        figure.legend(handles=handles, loc="outside right center", frameon=False)
        caption(
            figure,
            title,
            f"Correlation loss. Descent: on the population's loss, {DESCENT:,} steps, from one "
            "Gaussian start with a positive product per n'; dotted: error 0.49. SGD: "
            f"{len(kept)} runs with curves, at most {MOST_CURVES} drawn per n' and start; faint "
            f"where not solved, against the steps taken.\nRight: exact flow; {GAUSSIAN[1]} "
            "Gaussian draws with a positive product, bars from quartile to quartile. SGD's bars: "
            "95 % intervals, open from ones.",
        )
    return figure


def _gaussian(k: int, block: int, rng: np.random.Generator) -> Any:
    """Draw Gaussian weights with a positive product; signs that change in pairs change no time."""
    from petridish.theory.hidden.polynet_flow import start_weights

    weights = start_weights("gaussian", k, block, rng)
    weights[:, 0] = np.abs(weights[:, 0])
    return weights


def _descent(panel: Any, k: int, colours: dict[float, Any]) -> None:
    from petridish.theory.hidden.polynet_flow import Flow, polynet_error, population_descent

    for size in BLOCKS:
        flow = Flow(_gaussian(k, size, np.random.default_rng(size)))
        weights = np.column_stack([flow.start, np.zeros(k)])  # the others do not move
        rate = flow.time_to(0.0) / DESCENT
        path = population_descent(weights, rate, DESCENT + DESCENT // 20)
        shown = np.unique(np.rint(np.linspace(0, len(path) - 1, 300)).astype(int))
        errors = [polynet_error(path[step], flow.others) for step in shown]
        panel.plot(shown / DESCENT, errors, color=colours[size], lw=1.4)


def _sgd(panel: Any, runs: pl.DataFrame, colours: dict[float, Any]) -> None:
    if runs.is_empty():
        panel.text(0.5, 0.5, "no runs with curves", ha="center", transform=panel.transAxes)
    for part in runs.sort("seed").partition_by("task.n", "init"):
        size = part["task.n"][0] // part["task.k"][0]
        for run in part.head(MOST_CURVES).iter_rows(named=True):
            end = run["solved_at"] or run["steps"]
            style: Any = {"lw": 1.0, "alpha": 0.9 if run["solved_at"] else 0.3}
            style["ls"] = "--" if _from_ones(part) else "-"
            # Before the first step sums of ones are often 0, which counts as wrong.
            steps, errors = np.array(run["curve.step"])[1:], run["curve.test_error"][1:]
            panel.plot(steps / max(end, 1), errors, color=colours[size], **style)


def _from_ones(runs: pl.DataFrame) -> bool:
    return str(runs["init"][0]).startswith("constant")


def _remainders(panel: Any, k: int) -> None:
    from petridish.theory.hidden.polynet_bounds import plateau_bound
    from petridish.theory.hidden.polynet_flow import Flow, start_weights

    blocks = np.unique(np.rint(np.geomspace(5, 10_000, 90)).astype(int))
    left = [Flow(start_weights("ones", k, int(block))).remainder() for block in blocks]
    panel.plot(blocks, left, ".", ms=3.5, color=BLUE)
    for version, style, colour in (("proved", "-", INK), ("printed", ":", INK)):
        bounds = np.array([1 - plateau_bound(k, int(b), version=version) for b in blocks])  # type: ignore[arg-type] # two literals
        panel.plot(blocks, bounds, style, color=colour, lw=1.0)
    for block in GAUSSIAN[0]:
        rng = np.random.default_rng(block)
        drawn = [Flow(_gaussian(k, block, rng)).remainder() for _ in range(GAUSSIAN[1])]
        low, middle, high = np.quantile(drawn, [0.25, 0.5, 0.75])
        panel.errorbar(
            block, middle, [[middle - low], [high - middle]], fmt="D", ms=4, color=BLUE, lw=1.0
        )
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_ylim(top=1.5)


def _measured(panel: Any, runs: pl.DataFrame) -> None:
    """Draw SGD's own share of the time to solution off the plateau."""
    from petridish.chapters.hidden.rules.disjoint_polynets import plateau_shares
    from petridish.statistics.intervals import student_half_width

    for part in runs.partition_by("task.n", "init"):
        shares = plateau_shares(part)
        if len(shares) < 2:
            continue
        mean, half = 1 - float(shares.mean()), student_half_width(shares, 0.95)
        low = max(mean - half, mean / 10)  # a bar that would reach 0 ends a decade below
        bars = [[mean - low], [min(half, 1 - mean)]]
        block = part["task.n"][0] / part["task.k"][0]
        fill = "white" if _from_ones(part) else ORANGE
        panel.errorbar(block, mean, bars, fmt="s", ms=4.5, color=ORANGE, mfc=fill, lw=1.0)


def one_step_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw success after one big step over m, what the first gradient shows, and fixed features.

    One row per task of the one-step runs: the share solved by width, and how often the k largest
    entries of a neuron's first gradient are S. The last panel compares test errors of networks
    with trained, random and tangent features.
    """
    import polars as pl

    from petridish.sweeps import by_arm

    stepped, compared = by_arm(table, "one step"), by_arm(table, *KINDS)
    tasks = sorted(set(stepped.select("task", "task.n", "task.k").iter_rows()))
    if not tasks:
        raise NothingToDraw("The arm «one step» has no runs: there is no big step to draw.")
    size = (12.5, 1.3 + 3.1 * len(tasks))
    with panels(len(tasks), 3, size, width_ratios=(1, 1, 0.9)) as (figure, axes):
        for row, (task, n, k) in zip(axes, tasks, strict=True):
            runs = stepped.filter(pl.col("task") == task)
            _success(row[0], runs)
            row[0].set_title(f"({n}, {k}): one step, then the second layer", loc="left")
            row[0].set_ylabel("share of runs solved")
            _recovery(row[1], n, k, runs["data.m"].to_list())
            row[1].set_title(f"({n}, {k}): the first gradient", loc="left")
            row[1].set_ylabel("share of samples that show S")
            for panel in row[:2]:
                panel.set_ylim(-0.03, 1.03)
                panel.set_xlabel("sample size m")
            row[2].set_visible(False)
        axes[0][2].set_visible(True)
        _errors(axes[0][2], compared)
        each = span(stepped.group_by("task", "model.width", "data.m").len()["len"])
        tasks_of = ", ".join(sorted(set(compared["task"])))
        caption(
            figure,
            title,
            f"Left: {len(stepped)} runs, n = {each} per cell; bands: 95 % intervals (Wilson's). "
            f"Middle: {TRIALS} samples per point; line: entries taken for independent normals; "
            "dotted: the m that Proposition B.7 asks for.\n"
            f"Right: {len(compared)} runs, {tasks_of or 'none'}; bars: means with 95 % intervals.",
        )
    return figure


def _success(panel: Any, runs: pl.DataFrame) -> None:
    from petridish.statistics.intervals import wilson_interval

    widths = sorted(set(runs["model.width"]))
    colours = shades(widths)
    sizes = sorted(set(runs["data.m"]))
    for width in widths:
        part = runs.filter(runs["model.width"] == width)
        cells = [part.filter(part["data.m"] == m) for m in sizes if m in set(part["data.m"])]
        x = [place(float(cell["data.m"][0]), sizes) for cell in cells]
        made = np.array([len(cell) for cell in cells])
        solved = np.array([int((cell["outcome"] == "SOLVED").sum()) for cell in cells])
        low, high = wilson_interval(solved, made)
        style = {"ms": 3.5, "lw": 1.3, "label": f"r = {width:,}"}
        panel.plot(x, solved / made, "o-", color=colours[width], **style)
        panel.fill_between(x, low, high, color=colours[width], alpha=0.13, lw=0)
    size_axis(panel, sizes)
    panel.legend(frameon=False, loc="upper left")


def _recovery(panel: Any, n: int, k: int, sizes: list[float]) -> None:
    from petridish.errors import UserError
    from petridish.statistics.intervals import wilson_interval
    from petridish.theory.hidden.top_k import (
        gap_samples,
        predicted_top_k,
        predicted_top_k_size,
        top_k_trials,
    )

    try:
        half = predicted_top_k_size(n, k)
    except UserError:  # an odd k or an even n: the gradient is no majority's
        panel.text(0.5, 0.5, "needs odd n, even k", ha="center", transform=panel.transAxes)
        return
    smallest = min([half / 10, *(m for m in sizes if np.isfinite(m))])
    m = np.unique(np.rint(np.geomspace(max(smallest, 2), 4 * half, 12)).astype(int))
    line = np.geomspace(m[0], max(m[-1], 1.2 * gap_samples(n, k, delta=0.1)), 120)
    panel.plot(line, [predicted_top_k(n, k, float(size)) for size in line], color=BLUE, lw=1.2)
    if m[-1] * n * TRIALS <= MOST_SIGNS:
        rng = np.random.default_rng(0)
        found = top_k_trials(n, k, m.tolist(), trials=TRIALS, rng=rng).sum(axis=0)
        low, high = wilson_interval(found, np.full(len(m), TRIALS))
        share = found / TRIALS
        bars = [np.maximum(share - low, 0), np.maximum(high - share, 0)]
        panel.errorbar(m, share, bars, fmt="o", ms=4, color=BLUE, lw=0.8)
    panel.axvline(gap_samples(n, k, delta=0.1), color=INK, lw=0.8, ls=":")
    size_axis(panel, [float(m[0]), float(line[-1])])


def _errors(panel: Any, runs: pl.DataFrame) -> None:
    """Draw every run's last test error, one column per kind of features."""
    import polars as pl

    from petridish.statistics.intervals import student_half_width

    panel.set_title("features of the same width", loc="left")
    panel.set_ylabel("test error at the end")
    panel.axhline(0.5, color=INK, lw=0.6, ls=":")
    kinds = [kind for kind in KINDS if kind in set(runs["arm"])]
    widths = sorted(set(runs["model.width"].drop_nulls()))
    colours = shades(widths)
    for column, kind in enumerate(kinds):
        for slot, width in enumerate(widths):
            part = runs.filter((pl.col("arm") == kind) & (pl.col("model.width") == width))
            errors = part.sort("seed")["test_error"].fill_nan(None).drop_nulls().to_numpy()
            if not len(errors):
                continue
            centre = column + 0.7 * ((slot + 0.5) / len(widths) - 0.5)
            # Spread by the golden ratio, so that no two runs lie on each other.
            spread = (np.arange(len(errors)) * 0.618 % 1 - 0.5) * 0.35 / len(widths)
            colour = colours[width]
            panel.plot(centre + spread, errors, "o", ms=2.5, color=colour, alpha=0.45, mew=0)
            if len(errors) > 1:
                half = student_half_width(errors, 0.95)
                panel.errorbar(centre, errors.mean(), half, fmt="_", ms=12, color=colour, lw=1.6)
    handles = [
        panel.plot([], [], "o", ms=4, color=colours[w], label=f"r = {w:,}")[0] for w in widths
    ]
    panel.set_xticks(range(len(kinds)), kinds)
    panel.set_xlim(-0.5, max(0.5, len(kinds) - 0.5))
    panel.set_ylim(-0.02, 0.58)
    if handles:
        panel.legend(handles=handles, frameon=False, loc="center left")
