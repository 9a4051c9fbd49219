"""The flow of disjoint PolyNets beside SGD; one big step, and fixed features beside trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.figures.slices import place, size_axis
from petridish.figures.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    NothingToDraw,
    caption,
    house_style,
    sample_label,
    shades,
)
from petridish.rules.columns import curve_columns, reads

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

BLOCKS = (10, 30, 100, 1_000)
MOST_CURVES = 4  # of SGD, for each n'
GAUSSIAN = ((30, 100, 300), 20)  # n' and draws
TRIALS = 40
MOST_SIGNS = 3e8  # drawn for one curve of recovery; beyond, the prediction stands alone
KINDS = ("trained", "random", "tangent")


@reads(*curve_columns("test_error"))
def flow_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw the error along gradient flow and along SGD, and the share of time off the plateau.

    One row a k, the composition of HP's Figure B.1: left the population's flow, right SGD with
    B = 1, both against the time to their end; then 1 − T(.49)/T(0) over n' with its bound.
    """
    from petridish.chapters.hidden.rules.flows import disjoint_runs

    runs = disjoint_runs(table)
    degrees = sorted({3, 4} | {int(k) for k in runs["task.k"] if k >= 3})
    sizes = sorted({*BLOCKS, *(int(n) // int(k) for n, k in _sizes(runs))})
    colours = shades([float(size) for size in sizes])
    with house_style() as make_figure:
        figure: Figure = make_figure(
            figsize=(11.8, 1.2 + 2.75 * len(degrees)), layout="constrained"
        )
        axes = figure.subplots(len(degrees), 3, squeeze=False, width_ratios=(1, 1, 0.95))
        for row, k in zip(axes, degrees, strict=True):
            _flow(row[0], k, colours)
            _sgd(row[1], runs.filter(runs["task.k"] == k), colours)
            _remainders(row[2], k, runs.filter(runs["task.k"] == k))
            for panel, text in zip(
                row, ("gradient flow", "SGD, B = 1", "off the plateau"), strict=True
            ):
                panel.set_title(f"k = {k}: {text}", loc="left")
            for panel in row[:2]:
                panel.axhline(0.49, color=INK, lw=0.6, ls=":")
                panel.set_xlim(-0.02, 1.04)
                panel.set_ylim(-0.02, 0.56)
                panel.set_ylabel("error")
            row[2].set_ylabel("1 − T(.49) / T(0)")
        for panel, label in zip(
            axes[-1], ("t / T(0)", "step / step of solution", "block n' = n / k"), strict=True
        ):
            panel.set_xlabel(label)
        handles = [
            axes[0][0].plot([], [], color=colours[float(size)], label=f"n' = {size:,}")[0]
            for size in sizes
        ]
        handles += [
            axes[0][2].plot([], [], ls, color=colour, ms=4, label=label)[0]
            for ls, colour, label in (
                ("-", INK, "proved bound"),
                ("--", GREY, "printed bound"),
                (".", BLUE, "flow from all ones"),
                ("D", BLUE, "Gaussian, median"),
                ("s", ORANGE, "SGD, mean"),
            )
        ]
        figure.legend(handles=handles, loc="outside right center", frameon=False)
        kept = _kept(runs)
        caption(
            figure,
            title,
            f"Correlation loss. Flow: exact, from the all-ones start; dotted: error 0.49. SGD: "
            f"{kept} runs with curves, at most {MOST_CURVES} drawn for each n'; faint where not "
            f"solved, against the steps taken.\nGaussian starts: {GAUSSIAN[1]} draws with a "
            "positive product, bars from quartile to quartile. SGD's bars: 95 % intervals.",
        )
    return figure


def _sizes(runs: pl.DataFrame) -> list[tuple[int, int]]:
    return list(runs.select("task.n", "task.k").unique().iter_rows())


def _kept(runs: pl.DataFrame) -> int:
    return len(runs) - runs["curve.step"].null_count() if "curve.step" in runs.columns else 0


def _flow(panel: Any, k: int, colours: dict[float, Any]) -> None:
    from petridish.theory.hidden.polynet_flow import Flow, start_weights

    for size in BLOCKS:
        flow = Flow(start_weights("ones", k, size))
        times, errors = flow.curve(points=600)
        # At the first moment some outputs are 0, which count as wrong; what follows is the rule.
        panel.plot(times[1:] / flow.time_to(0.0), errors[1:], color=colours[float(size)], lw=1.4)


def _sgd(panel: Any, runs: pl.DataFrame, colours: dict[float, Any]) -> None:
    import polars as pl

    if not _kept(runs):
        panel.text(0.5, 0.5, "no runs with curves", ha="center", transform=panel.transAxes)
        return
    kept = runs.filter(pl.col("curve.step").is_not_null())
    for part in kept.sort("seed").partition_by("task.n"):
        size = part["task.n"][0] // part["task.k"][0]
        for run in part.head(MOST_CURVES).iter_rows(named=True):
            end = run["solved_at"] or run["steps"]
            alpha = 0.9 if run["solved_at"] else 0.3
            # Before the first step sums of ones are often 0, which counts as wrong.
            steps, errors = np.array(run["curve.step"])[1:], run["curve.test_error"][1:]
            colour = colours[float(size)]
            panel.plot(steps / max(end, 1), errors, color=colour, lw=1.0, alpha=alpha)


def _remainders(panel: Any, k: int, runs: pl.DataFrame) -> None:
    from petridish.theory.hidden.polynet_bounds import plateau_bound
    from petridish.theory.hidden.polynet_flow import Flow, start_weights

    blocks = np.unique(np.rint(np.geomspace(5, 10_000, 90)).astype(int))
    left = [Flow(start_weights("ones", k, int(block))).remainder() for block in blocks]
    panel.plot(blocks, left, ".", ms=3.5, color=BLUE)
    for version, style, colour in (("proved", "-", INK), ("printed", "--", GREY)):
        bounds = np.array([1 - plateau_bound(k, int(b), version=version) for b in blocks])  # type: ignore[arg-type] # two literals
        panel.plot(blocks, bounds, style, color=colour, lw=1.0)
    for block in GAUSSIAN[0]:
        rng = np.random.default_rng(block)
        drawn = []
        for _ in range(GAUSSIAN[1]):
            weights = start_weights("gaussian", k, block, rng)
            weights[:, 0] = np.abs(weights[:, 0])
            drawn.append(Flow(weights).remainder())
        low, middle, high = np.quantile(drawn, [0.25, 0.5, 0.75])
        panel.errorbar(
            block, middle, [[middle - low], [high - middle]], fmt="D", ms=4, color=BLUE, lw=1.0
        )
    _measured(panel, runs)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_ylim(top=1.5)


def _measured(panel: Any, runs: pl.DataFrame) -> None:
    """Draw SGD's own share of the time to solution off the plateau."""
    import polars as pl

    from petridish.chapters.hidden.rules.flows import plateau_shares
    from petridish.statistics.estimate import student_half_width

    if not _kept(runs):
        return
    kept = runs.filter(pl.col("curve.step").is_not_null())
    for part in kept.partition_by("task.n"):
        shares = plateau_shares(part)
        if len(shares) < 2:
            continue
        mean, half = 1 - float(shares.mean()), student_half_width(shares, 0.95)
        low = max(mean - half, mean / 10)  # a bar that would reach 0 ends a decade below
        panel.errorbar(
            part["task.n"][0] / part["task.k"][0],
            mean,
            [[mean - low], [min(half, 1 - mean)]],
            fmt="s",
            ms=4.5,
            color=ORANGE,
            lw=1.0,
        )


def one_step_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw success after one big step over m, what the first gradient shows, and fixed features.

    A row for each task of the one-step runs: the share solved by width, and how often the k largest
    entries of a neuron's first gradient are S. The last panel compares test errors of networks
    with trained, random and tangent features.
    """
    import polars as pl

    from petridish.sweeps import by_arm

    stepped, compared = by_arm(table, "one step"), by_arm(table, *KINDS)
    tasks = sorted(set(stepped.select("task", "task.n", "task.k").iter_rows()))
    if not tasks:
        raise NothingToDraw("The arm «one step» has no runs: there is no big step to draw.")
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(12.5, 1.3 + 3.1 * len(tasks)), layout="constrained")
        axes = figure.subplots(len(tasks), 3, squeeze=False, width_ratios=(1, 1, 0.9))
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
        seeds = sorted(set(stepped.group_by("task", "model.width", "data.m").len()["len"]))
        each = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
        caption(
            figure,
            title,
            f"Left: {len(stepped)} runs, n = {each} a cell; bands: 95 % intervals (Wilson's). "
            f"Middle: {TRIALS} samples a point; line: entries taken for independent normals; "
            "dotted: the m that Proposition B.7 asks for, for 90 %.\n"
            f"Right: {len(compared)} runs, {_tasks(compared)}; bars: means with 95 % intervals.",
        )
    return figure


def _tasks(runs: pl.DataFrame) -> str:
    return ", ".join(sorted(set(runs["task"]))) or "none"


def _success(panel: Any, runs: pl.DataFrame) -> None:
    from petridish.statistics.estimate import wilson_interval

    widths = sorted(set(runs["model.width"]))
    colours = shades([float(width) for width in widths])
    sizes = sorted(set(runs["data.m"]))
    for width in widths:
        part = runs.filter(runs["model.width"] == width)
        cells = [part.filter(part["data.m"] == m) for m in sizes if m in set(part["data.m"])]
        x = [place(float(cell["data.m"][0]), sizes) for cell in cells]
        made = np.array([len(cell) for cell in cells])
        solved = np.array([int((cell["outcome"] == "SOLVED").sum()) for cell in cells])
        low, high = wilson_interval(solved, made)
        colour = colours[float(width)]
        panel.plot(x, solved / made, "o-", ms=3.5, lw=1.3, color=colour, label=f"r = {width}")
        panel.fill_between(x, low, high, color=colour, alpha=0.13, lw=0)
    size_axis(panel, sizes)
    panel.legend(frameon=False, loc="upper left")


def _recovery(panel: Any, n: int, k: int, sizes: list[float]) -> None:
    from petridish.errors import UserError
    from petridish.statistics.estimate import wilson_interval
    from petridish.theory.hidden.one_step import (
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
        panel.errorbar(
            m,
            share,
            [np.maximum(share - low, 0), np.maximum(high - share, 0)],
            fmt="o",
            ms=4,
            color=BLUE,
            lw=0.8,
        )
    panel.axvline(gap_samples(n, k, delta=0.1), color=INK, lw=0.8, ls=":")
    size_axis(panel, [float(m[0]), float(line[-1])])


def _errors(panel: Any, runs: pl.DataFrame) -> None:
    """Draw every run's last test error, a column for each kind of features."""
    import polars as pl

    from petridish.statistics.estimate import student_half_width

    panel.set_title("features of the same width", loc="left")
    panel.set_ylabel("test error at the end")
    panel.axhline(0.5, color=INK, lw=0.6, ls=":")
    kinds = [kind for kind in KINDS if kind in set(runs["arm"])]
    widths = sorted(set(runs["model.width"].drop_nulls()))
    colours = shades([float(width) for width in widths])
    for column, kind in enumerate(kinds):
        for slot, width in enumerate(widths):
            part = runs.filter((pl.col("arm") == kind) & (pl.col("model.width") == width))
            errors = part.sort("seed")["test_error"].fill_nan(None).drop_nulls().to_numpy()
            if not len(errors):
                continue
            centre = column + 0.7 * ((slot + 0.5) / len(widths) - 0.5)
            # Spread by the golden ratio, so that no two runs lie on each other.
            spread = (np.arange(len(errors)) * 0.618 % 1 - 0.5) * 0.35 / len(widths)
            colour = colours[float(width)]
            panel.plot(centre + spread, errors, "o", ms=2.5, color=colour, alpha=0.45, mew=0)
            if len(errors) > 1:
                half = student_half_width(errors, 0.95)
                panel.errorbar(centre, errors.mean(), half, fmt="_", ms=12, color=colour, lw=1.6)
    handles = [
        panel.plot([], [], "o", ms=4, color=colours[float(w)], label=f"r = {sample_label(w)}")[0]
        for w in widths
    ]
    panel.set_xticks(range(len(kinds)), kinds)
    panel.set_xlim(-0.5, max(0.5, len(kinds) - 0.5))
    panel.set_ylim(-0.02, 0.58)
    if handles:
        panel.legend(handles=handles, frameon=False, loc="center left")
