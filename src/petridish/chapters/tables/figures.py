"""PF's tabular experiments: learning curves, gains, and methods compared over tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.tables.paired_errors import (
    BestErrors,
    Errors,
    best_errors,
    errors_of,
    ranking,
    whole_classes,
    with_families,
)
from petridish.chapters.tables.rules import (
    DENSE,
    FOREST,
    MLP,
    SPARSE,
    Rows,
    alike,
    sparse_gains,
    width_gains,
)
from petridish.figures.slices import size_axis
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
from petridish.statistics.estimate import bootstrap_median
from petridish.statistics.paired import Ranking, mean_over_tasks, medians

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
GOLD = "#E3A900"
ACROSS = 4  # tasks side by side
LEVEL = 0.05
NAMES = {
    "mlp": "MLP",
    "random_forest": "random forest",
    "hist_gradient_boosting": "HistGradientBoosting",
    "xgboost": "XGBoost",
    "lightgbm": "LightGBM",
    "realmlp": "RealMLP",
    "tabm": "TabM",
    "sparse_mlp": "SparseMLP",
    "logistic_regression": "logistic regression",
}
LOOKS = {  # a family has one colour and one mark in all figures
    "mlp": (BLUE, "o"),
    "random_forest": (ORANGE, "s"),
    "sparse_mlp": (INK, "D"),
    "hist_gradient_boosting": ("#009E73", "^"),
    "xgboost": ("#56B4E9", "v"),
    "lightgbm": ("#CC79A7", "<"),
    "realmlp": ("#6A3D9A", "P"),
    "tabm": ("#7F5539", "X"),
    "logistic_regression": (GREY, "h"),
}


def tabular_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw the median test error over m, a shade a width; sparse starts above dense ones.

    The composition of PF's Figure 6: one column a task, folded into blocks of four. The deepest
    nets of one width throughout are shown. Gold is the best MLP of all that were run and the dashed
    line the best forest, by the least median at each m, chosen in hindsight as in the source. Bands
    are 95 % bootstrap intervals of the median, for the narrowest and the widest.
    """
    errors = _errors(table)
    nets = _deepest(errors)
    starts = [start for start in (SPARSE, DENSE) if any(init == start for _, init in nets)]
    starts = starts or sorted({init for _, init in nets})
    widths = sorted({width for width, init in nets if init in starts})
    colours = shades(widths)
    across = min(ACROSS, len(errors.tasks))
    blocks = -(-len(errors.tasks) // across)
    with house_style() as make_figure:
        figure: Figure = make_figure(
            figsize=(max(7.5, 1.6 + 2.75 * across), 1.5 + blocks * (0.3 + 1.75 * len(starts)))
        )
        figure.set_layout_engine("constrained", hspace=0.03, wspace=0.02)
        axes = figure.subplots(blocks * len(starts), across, squeeze=False)
        for place, task in enumerate(errors.tasks):
            block, column = divmod(place, across)
            panels = axes[block * len(starts) : (block + 1) * len(starts), column]
            cells = np.flatnonzero(errors.owner == place)
            for panel, start in zip(panels, starts, strict=True):
                _task(panel, errors, cells, nets, start, colours)
            low, high = zip(*(panel.get_ylim() for panel in panels), strict=True)
            for panel, start in zip(panels, starts, strict=True):
                panel.set_ylim(max(0.0, min(low)), max(high))
                if column == 0:
                    panel.set_ylabel(f"{start}\ntest error, %")
                if panel is not panels[-1]:
                    panel.tick_params(labelbottom=False)
            panels[0].set_title(task, loc="left", fontsize=9)
            panels[-1].set_xlabel("training rows m")
        for panel in axes.ravel():
            panel.set_visible(panel.has_data())
        _legend(figure, axes[0, 0], colours, errors)
        depth = _depth(errors, nets)
        caption(
            figure,
            title,
            f"{len(errors.tasks)} tasks; {_trials(errors)}; MLPs of {depth} hidden "
            f"layer{'s' if depth > 1 else ''}. Medians over trials; bands, for the narrowest and "
            "the widest: 95 % bootstrap intervals. Best MLP and best forest: the least median of "
            "all configurations at each m. A diverged run counts as chance.",
        )
    return figure


def _task(
    panel: Any,
    errors: Errors,
    cells: NDArray[np.int64],
    nets: Mapping[tuple[float, str], int],
    start: str,
    colours: Mapping[float, Any],
) -> None:
    """Draw one task with one start."""
    samples = [errors.cells[cell][1] for cell in cells]
    for family, style in (
        (MLP, {"color": GOLD, "lw": 4.5, "alpha": 0.8, "zorder": 1.5}),
        (FOREST, {"color": ORANGE, "lw": 1.5, "ls": (0, (4, 1.5)), "zorder": 3.0}),
    ):
        if len(errors.of(family)):
            least = 100 * medians(errors.error[cells][:, errors.of(family)]).min(axis=1)
            _line(panel, samples, least, **style)
    rng = np.random.default_rng(0)
    for width, colour in colours.items():
        if (width, start) in nets:
            error = errors.error[cells, nets[width, start]]
            _line(panel, samples, 100 * medians(error), color=colour, lw=1.1, marker="o", ms=2.4)
            if width in (min(colours), max(colours)):  # those between would only hide each other
                made = [list(row[~np.isnan(row)]) for row in error]
                band = np.array([bootstrap_median(row, rng=rng) for row in made])
                panel.fill_between(samples, *(100 * band.T), color=colour, alpha=0.14, lw=0)
    size_axis(panel, samples)
    panel.grid(visible=True, axis="y", color=GREY, lw=0.4, alpha=0.3)


def _line(panel: Any, x: Sequence[float], y: Floats, **style: Any) -> None:
    known = np.isfinite(y)
    panel.plot(np.array(x)[known], y[known], solid_capstyle="round", **style)


def _deepest(errors: Errors) -> dict[tuple[float, str], int]:
    """Give the configurations to draw, by width and init: the deepest of one training."""
    rows = errors.configurations
    best: tuple[int, int, dict[tuple[float, str], int]] = (0, 0, {})
    for group in alike(rows, ("model", "model.width", "init")):
        part = rows[group.tolist()]
        if part["family"][0] == MLP and part["even"][0]:
            keys = zip(part["model.width"], part["init"], strict=True)
            nets = {(float(r), init): int(g) for (r, init), g in zip(keys, group, strict=True)}
            made = int((~np.isnan(errors.error[:, group])).sum())
            best = max(best, (part["depth"][0], made, nets), key=lambda found: found[:2])
    if not best[2]:
        raise NothingToDraw(
            "Learning curves need MLPs of one width throughout, but these runs have none. "
            "Run the sweep's MLPs first."
        )
    return best[2]


def _depth(errors: Errors, nets: Mapping[tuple[float, str], int]) -> int:
    return int(errors.configurations["depth"][next(iter(nets.values()))])


def _legend(figure: Figure, panel: Any, colours: Mapping[float, Any], errors: Errors) -> None:
    handles = [
        panel.plot([], [], color=colour, marker="o", ms=3, label=f"r = {sample_label(width)}")[0]
        for width, colour in colours.items()
    ]
    handles += panel.plot([], [], color=GOLD, lw=4.5, alpha=0.8, label="best MLP")
    if len(errors.of(FOREST)):
        handles += panel.plot([], [], color=ORANGE, lw=1.5, ls=(0, (4, 1.5)), label="best forest")
    figure.legend(handles=handles, loc="outside right upper", frameon=False)


def gain_by_sample(table: pl.DataFrame, title: str) -> Figure:
    """Draw what sparse starts and width gain over m: thin lines tasks, thick their mean.

    Left: error of dense minus sparse starts at the widest net with both. Right: fall of the error
    from the narrowest to the widest net, per tenfold width. Both at equal other conditions; bands
    are 95 % intervals over tasks.
    """
    import polars as pl

    runs = with_families(_checked(table)).filter((pl.col("family") == MLP) & pl.col("even"))
    if runs.is_empty():
        raise NothingToDraw(
            "Gains need MLPs of one width throughout, but these runs have none. "
            "Run the sweep's MLPs first."
        )
    nets = errors_of(runs)
    wider, _ = width_gains(nets)
    parts = [
        ("sparse over dense starts", "gain, percentage points", sparse_gains(nets), BLUE),
        ("wide over narrow", "gain per tenfold width, points", wider, "#009E73"),
    ]
    parts = [part for part in parts if len(part[2].values)]
    if not parts:
        raise NothingToDraw(
            "Gains need two widths, or a dense and a sparse start of one net, but these runs have "
            "neither. Run the sweep to its end."
        )
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(max(7.5, 0.8 + 4.6 * len(parts)), 4.3))
        figure.set_layout_engine("constrained", wspace=0.06)
        axes = figure.subplots(1, len(parts), squeeze=False)[0]
        for panel, (name, label, rows, colour) in zip(axes, parts, strict=True):
            _gains(panel, nets, rows, colour)
            panel.set_title(name, loc="left")
            panel.set_ylabel(label)
            panel.set_xlabel("training rows m")
        caption(
            figure,
            title,
            f"{len(nets.tasks)} tasks (thin lines; the outermost at the largest m are named); "
            f"{_trials(nets)}. Thick: mean over tasks; band: its 95 % interval (Student's over "
            "tasks). Above 0 the claim holds. Widest and narrowest: of the nets that were run at "
            "equal conditions.",
        )
    return figure


def _gains(panel: Any, errors: Errors, rows: Rows, colour: str) -> None:
    """Draw the gains of every task, and their mean."""
    cells = np.unique(rows.cell)
    gain = 100 * np.array([np.nanmean(rows.values[rows.cell == cell]) for cell in cells])
    samples = np.array([errors.cells[cell][1] for cell in cells])
    owner = errors.owner[cells]
    panel.axhline(0, color=INK, lw=0.8)
    ends = []
    for task in np.unique(owner):
        mine = owner == task
        panel.plot(samples[mine], gain[mine], color=GREY, lw=0.8, alpha=0.7)
        ends.append((gain[mine][-1], samples[mine][-1], errors.tasks[task]))
    x, means = [], []
    for places in whole_classes([errors.cells[cell] for cell in cells]).values():
        tasks = sorted(set(owner[places]))
        each = [gain[[p for p in places if owner[p] == task]].mean() for task in tasks]
        found = mean_over_tasks(np.array(each), coverage=1 - LEVEL)
        x.append(float(np.exp(np.log(samples[places]).mean())))
        means.append((found.estimate, found.low, found.high))
    middle, low, high = np.array(means).reshape(-1, 3).T
    panel.plot(x, middle, color=colour, lw=2.6, marker="o", ms=5, zorder=4)
    if np.isfinite(low).all():  # a single task has no interval
        panel.fill_between(x, low, high, color=colour, alpha=0.2, lw=0, zorder=2)
    size_axis(panel, sorted(set(samples)))
    for y, m, name in (max(ends), min(ends)) if len(ends) > 2 else ():  # who stands out
        panel.annotate(
            name,
            (m, y),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
            color=GREY,
            annotation_clip=False,
        )


def method_errors(table: pl.DataFrame, title: str) -> Figure:
    """Draw every family's mean test error over m, and how it differs from one of them.

    A family is represented by its best configuration at each task and m, chosen on trials that do
    not measure it. Right: the difference to the random forest (or the first family), paired, with
    95 % intervals over tasks. Only sizes that all tasks have are drawn, and only families that were
    run there.
    """
    best = best_errors(_checked(table))
    if len(best.families) < 2:
        raise NothingToDraw(
            f"Methods are compared by two families or more, but all runs are {best.families[0]}. "
            "Run another one too."
        )
    if not whole_classes(best.cells):
        raise NothingToDraw(
            "Methods are compared at sample sizes that all tasks share, but these tasks share "
            "none. Run the sweep to its end."
        )
    rival = FOREST if FOREST in best.families else best.families[0]
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(12.0, 4.9))
        figure.set_layout_engine("constrained", wspace=0.06)
        left, right = figure.subplots(1, 2)
        drawn = _methods(left, right, best, rival)
        samples = sorted({m for _, m in best.cells})
        for panel, label in (
            (left, "mean test error, %"),
            (right, f"difference to {_name(rival)}, percentage points"),
        ):
            size_axis(panel, samples)
            panel.set_xlabel("training rows m")
            panel.set_ylabel(label)
            panel.grid(visible=True, axis="y", color=GREY, lw=0.4, alpha=0.3)
        left.set_title("mean over tasks", loc="left")
        right.set_title(f"paired with {_name(rival)}: lower is better", loc="left")
        figure.legend(handles=[*drawn.values()], loc="outside right center", frameon=False)
        tasks = len({task for task, _ in best.cells})
        absent = [name for name in best.families if name not in drawn]
        caption(
            figure,
            title,
            f"{tasks} tasks; {len(table):,} runs. Of each family the best configuration at each "
            "task and m, by the median over trials that do not measure it. Error bars: 95 % "
            f"intervals over tasks. A diverged run counts as chance.{_absent(absent)}",
        )
    return figure


def _methods(left: Any, right: Any, best: BestErrors, rival: str) -> dict[str, Any]:
    """Draw the means, and the differences to a rival; give a handle for each family drawn."""
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in best.families}
    bars: dict[str, list[tuple[float, float, float]]] = {name: [] for name in best.families}
    for places in whole_classes(best.cells).values():
        there, _, means = best.on_tasks(places)
        x = float(np.exp(np.mean([math.log(best.cells[place][1]) for place in places])))
        names = [best.families[place] for place in there]
        for name, column in zip(names, 100 * means.T, strict=True):
            lines[name].append((x, float(column.mean())))
            if rival in names and name != rival:
                found = mean_over_tasks(column - 100 * means[:, names.index(rival)])
                bars[name].append((x, found.estimate, found.high - found.estimate))
    order = sorted((name for name in lines if lines[name]), key=lambda name: lines[name][-1][1])
    right.axhline(0, color=LOOKS[FOREST][0] if rival == FOREST else INK, lw=1.5)
    handles = {}
    shown = [name for name in order if bars[name]]
    for name in order:
        colour, mark = _look(name, best.families)
        strong = {"lw": 2.4 if name == "sparse_mlp" else 1.4, "zorder": 3}
        x, y = np.array(lines[name]).T
        (handles[name],) = left.plot(
            x, y, color=colour, marker=mark, ms=5, label=_name(name), **strong
        )
        if name in shown:  # side by side, so that bars do not hide each other
            aside = 1.018 ** (2 * shown.index(name) - len(shown) + 1)
            x, middle, half = np.array(bars[name]).T
            half = np.where(np.isfinite(half), half, 0.0)
            right.errorbar(
                x * aside, middle, half, color=colour, marker=mark, ms=5, elinewidth=0.9, **strong
            )
    return handles


def critical_difference(table: pl.DataFrame, title: str) -> Figure:
    """Draw the families' average ranks over tasks; bars join those that do not differ.

    The diagram of Demšar (2006). Bars: no two of the methods below differ by Wilcoxon's signed-rank
    test over tasks, corrected by Holm, at 5 %. The ruler is Nemenyi's critical difference.
    """
    found = ranking(_checked(table), level=LEVEL)
    if found is None:
        raise NothingToDraw(
            "Ranks need two families that were run on all of two tasks or more. Run the sweep to "
            "its end."
        )
    count = len(found.methods)
    bars = found.alike(LEVEL)
    levels = _levels(bars)
    below = 0.3 + 0.2 * (1 + max(levels, default=-1))  # where the names begin
    depth = below + 0.33 * (-(-count // 2) - 1) + 0.15
    families = sorted(set(with_families(table)["family"]))
    with house_style() as make_figure:
        figure: Figure = make_figure(figsize=(8.5, 1.9 + depth), layout="constrained")
        panel = figure.subplots()
        panel.set_xlim(1 - 0.42 * (count - 1) - 0.1, count + 0.42 * (count - 1) + 0.1)
        panel.set_ylim(-depth, 0.75)
        panel.axis("off")
        _ruler(panel, count, found.critical)
        for (first, last), level in zip(bars, levels, strict=True):
            reach = [found.ranks[first] - 0.03, found.ranks[last] + 0.03]
            panel.plot(reach, [-0.16 - 0.2 * level] * 2, color=INK, lw=3.2, solid_capstyle="round")
        _ranked(panel, found, below, families)
        absent = [name for name in families if name not in found.methods]
        test = "Friedman's test" if count > 2 else "Wilcoxon's test"
        caption(
            figure,
            title,
            f"Average rank of the mean error over {found.tasks} tasks, 1 is best; {test}: "
            f"p = {found.p:.2g}. Bars join methods of which no two differ (Wilcoxon's signed-rank "
            f"test over tasks, Holm, {LEVEL:.0%}). Grey: Nemenyi's critical difference. "
            f"{len(table):,} runs.{_absent(absent)}",
        )
    return figure


def _ruler(panel: Any, count: int, critical: float) -> None:
    """Draw the axis of ranks, and the critical difference above it."""
    panel.plot([1, count], [0, 0], color=INK, lw=1)
    for rank in range(1, count + 1):
        panel.plot([rank, rank], [0, 0.09], color=INK, lw=1)
        panel.text(rank, 0.14, str(rank), ha="center", va="bottom", fontsize=8)
    panel.plot([1, 1 + critical], [0.58, 0.58], color=GREY, lw=2, solid_capstyle="butt")
    text = f"critical difference {critical:.2f}"
    x = 1 + critical + 0.03 * (count - 1)
    panel.text(x, 0.58, text, va="center", fontsize=8, color=GREY)


def _ranked(panel: Any, found: Ranking, below: float, families: Sequence[str]) -> None:
    """Lead from every rank to its method's name: the better half to the left."""
    last = len(found.methods) - 1
    for place, (name, rank) in enumerate(zip(found.methods, found.ranks, strict=True)):
        left = place <= last / 2
        y = -below - 0.33 * (place if left else last - place)
        edge = 1 - 0.06 * last if left else 1 + 1.06 * last
        colour = _look(name, families)[0]
        panel.plot([rank, rank, edge], [0, y, y], color=colour, lw=1.2)
        panel.plot(rank, 0, "o", color=colour, ms=4.5, clip_on=False, zorder=4)
        text = f"{_name(name)}  {rank:.2f}" if left else f"{rank:.2f}  {_name(name)}"
        x = edge - 0.02 * last if left else edge + 0.02 * last
        panel.text(x, y, text, ha="right" if left else "left", va="center")


def _levels(bars: Sequence[tuple[int, int]]) -> list[int]:
    """Give each bar the highest level at which it meets no other."""
    ends: list[int] = []  # the last method of the last bar at each level
    levels = []
    for first, last in bars:
        level = next((i for i, end in enumerate(ends) if end < first), len(ends))
        ends[level : level + 1] = [last]
        levels.append(level)
    return levels


def _absent(families: Sequence[str]) -> str:
    """Say which families could not be compared."""
    return f" Not run on all tasks: {', '.join(map(_name, families))}." if families else ""


def _name(family: str) -> str:
    return NAMES.get(family, family)


def _look(family: str, families: Sequence[str]) -> tuple[str, str]:
    """Give a family's colour and mark; an unknown one takes what no other has."""
    if family in LOOKS:
        return LOOKS[family]
    unknown = [name for name in sorted(families) if name not in LOOKS]
    colours = ("#B22222", "#4B5320", "#2F4F8F", "#8B008B")
    place = unknown.index(family)
    return colours[place % len(colours)], "*dp8"[place % 4]


def _checked(table: pl.DataFrame) -> pl.DataFrame:
    if table.is_empty():
        raise NothingToDraw("There are no runs to draw. Run the sweep first.")
    return table


def _errors(table: pl.DataFrame) -> Errors:
    return errors_of(_checked(table))


def _trials(errors: Errors) -> str:
    """Say how many runs there are, and how many trials a cell has."""
    made = (~np.isnan(errors.error)).sum(axis=2)
    least, most = int(made[made > 0].min()), int(made.max())
    each = f"{most}" if least == most else f"{least} to {most}"
    return f"{int(made.sum()):,} runs, n = {each} trials each"
