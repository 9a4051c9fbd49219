"""PF's tabular experiments: learning curves, and what width and sparse starts gain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from petridish.chapters.tables.error_arrays import Errors, Floats, errors_of, even_mlps
from petridish.chapters.tables.gains import DENSE, SPARSE, Gains, alike, sparse_gains, width_gains
from petridish.chapters.tables.published import TABLE_2
from petridish.figures.panels import framed, span
from petridish.figures.slices import size_axis
from petridish.figures.style import BLUE, GREY, INK, ORANGE, NothingToDraw, sample_label, shades
from petridish.statistics.intervals import bootstrap_median
from petridish.statistics.paired import mean_over_tasks, medians
from petridish.statistics.shared_trials import whole_classes

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

GOLD = "#E3A900"
ACROSS = 4  # tasks side by side
BEST: dict[str, dict[str, Any]] = {  # of a family, at each m
    "mlp": {"color": GOLD, "lw": 4.5, "alpha": 0.8},
    "random_forest": {"color": ORANGE, "lw": 1.5, "ls": (0, (4, 1.5))},
}


def tabular_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw the median test error over m, one shade per width; sparse starts above dense ones.

    The composition of PF's Figure 6: one column per task, folded into blocks of four. The deepest
    nets of one width throughout are shown. Gold is the best MLP of all that were run and the dashed
    line the best forest, by the least median at each m, chosen in hindsight as in the paper. Bands
    are 95 % bootstrap intervals of the median, for the narrowest and the widest. Dotted, as in the
    paper: the tuned MLP and the tuned forest of Grinsztajn et al. on the whole table.
    """
    errors = errors_of(checked(table))
    nets = _deepest(errors)
    starts = [start for start in (SPARSE, DENSE) if any(init == start for _, init in nets)]
    starts = starts or sorted({init for _, init in nets})
    colours = shades(sorted({width for width, init in nets if init in starts}))
    across = min(ACROSS, len(errors.tasks))
    blocks = -(-len(errors.tasks) // across)
    depth = int(errors.configurations["depth"][next(iter(nets.values()))])
    note = (
        f"{len(errors.tasks)} tasks; {_trials(errors)}; MLPs of {depth} hidden "
        f"layer{'s' if depth > 1 else ''}. Medians over trials; bands, for the narrowest and "
        "the widest: 95 % bootstrap intervals. Best MLP and best forest: the least median of "
        "all configurations at each m. A diverged run counts as chance."
    )
    if set(errors.tasks) & set(TABLE_2):
        note += " ¹ Tuned, as PF's Table 2 quotes Grinsztajn et al. (2022)."
    size = max(7.5, 1.6 + 2.75 * across), 1.5 + blocks * (0.3 + 1.75 * len(starts))
    rows = blocks * len(starts)
    with framed(title, note, size, rows, across) as (figure, axes):
        figure.set_layout_engine("constrained", hspace=0.03, wspace=0.02)
        for place, task in enumerate(errors.tasks):
            block, column = divmod(place, across)
            own = axes[block * len(starts) : (block + 1) * len(starts), column]
            cells = np.flatnonzero(errors.owner == place)
            for panel, start in zip(own, starts, strict=True):
                _task(panel, errors, cells, nets, start, colours)
                _quote(panel, task)
            low, high = zip(*(panel.get_ylim() for panel in own), strict=True)
            for panel, start in zip(own, starts, strict=True):
                panel.set_ylim(max(0.0, min(low)), max(high))
                if column == 0:
                    panel.set_ylabel(f"{start}\ntest error, %")
                if panel is not own[-1]:
                    panel.tick_params(labelbottom=False)
            own[0].set_title(task, loc="left", fontsize=9)
            own[-1].set_xlabel("training rows m")
        for panel in axes.ravel():
            panel.set_visible(panel.has_data())
        _legend(figure, axes[0, 0], colours, errors)
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
    samples = errors.samples[cells]
    for (family, style), layer in zip(BEST.items(), (1.5, 3.0), strict=True):
        if len(errors.of(family)):
            least = 100 * medians(errors.error[cells][:, errors.of(family)]).min(axis=1)
            _line(panel, samples, least, zorder=layer, **style)
    rng = np.random.default_rng(0)
    for width, colour in colours.items():
        if (width, start) in nets:
            error = errors.error[cells, nets[width, start]]
            _line(panel, samples, 100 * medians(error), color=colour, lw=1.1, marker="o", ms=2.4)
            if width in (min(colours), max(colours)):  # more bands would hide each other
                made = [list(row[~np.isnan(row)]) for row in error]
                band = np.array([bootstrap_median(row, rng=rng) for row in made])
                panel.fill_between(samples, *(100 * band.T), color=colour, alpha=0.14, lw=0)
    size_axis(panel, samples.tolist())
    panel.grid(visible=True, axis="y", color=GREY, lw=0.4, alpha=0.3)


def _quote(panel: Any, task: str) -> None:
    """Draw what the paper quotes of Grinsztajn et al. for the whole table, if it is one of its."""
    if task in TABLE_2:
        for family, error in (
            ("mlp", TABLE_2[task].tuned_mlp),
            ("random_forest", TABLE_2[task].tuned_forest),
        ):
            panel.axhline(error, color=BEST[family]["color"], lw=1.3, ls=":", zorder=1)


def _line(panel: Any, x: Floats, y: Floats, **style: Any) -> None:
    known = np.isfinite(y)
    panel.plot(x[known], y[known], solid_capstyle="round", **style)


def _deepest(errors: Errors) -> dict[tuple[float, str], int]:
    """Return the configurations to draw, by width and init: the deepest of one training."""
    rows = errors.configurations
    best: tuple[int, int, dict[tuple[float, str], int]] = (0, 0, {})
    for group in alike(rows, ("model", "model.width", "init")):
        part = rows[group.tolist()]
        if part["family"][0] == "mlp" and part["even"][0]:
            keys = zip(part["model.width"], part["init"], strict=True)
            nets = {(float(r), init): int(g) for (r, init), g in zip(keys, group, strict=True)}
            made = int((~np.isnan(errors.error[:, group])).sum())
            best = max(best, (part["depth"][0], made, nets), key=lambda found: found[:2])
    if not best[2]:
        raise NothingToDraw(_no_mlps("Learning curves"))
    return best[2]


def _no_mlps(what: str) -> str:
    return (
        f"{what} need MLPs of one width throughout, but these runs have none. "
        "Run the sweep's MLPs first."
    )


def _legend(figure: Figure, panel: Any, colours: Mapping[float, Any], errors: Errors) -> None:
    looks = {
        f"r = {sample_label(width)}": {"color": colour, "marker": "o", "ms": 3}
        for width, colour in colours.items()
    }
    looks["best MLP"] = BEST["mlp"]
    if len(errors.of("random_forest")):
        looks["best forest"] = BEST["random_forest"]
    if set(errors.tasks) & set(TABLE_2):
        looks["MLP, whole table¹"] = {"color": GOLD, "lw": 1.3, "ls": ":"}
        looks["forest, whole table¹"] = {"color": ORANGE, "lw": 1.3, "ls": ":"}
    handles = [panel.plot([], [], label=label, **look)[0] for label, look in looks.items()]
    figure.legend(handles=handles, loc="outside right upper", frameon=False)


def gain_by_sample(table: pl.DataFrame, title: str) -> Figure:
    """Draw what sparse starts and width gain over m: thin lines tasks, thick their mean.

    Left: error of dense minus sparse starts at the widest net with both. Right: fall of the error
    from the narrowest to the widest net, per tenfold width. Both at equal other conditions; bands
    are 95 % intervals over tasks.
    """
    nets = even_mlps(checked(table))
    if nets is None:
        raise NothingToDraw(_no_mlps("Gains"))
    wider, _ = width_gains(nets)
    parts = []
    if sparser := sparse_gains(nets):
        parts.append(("sparse over dense starts", "gain, percentage points", sparser, BLUE))
    if len(wider.values):
        parts.append(("wide over narrow", "gain per tenfold width, points", wider, "#009E73"))
    if not parts:
        raise NothingToDraw(
            "Gains need two widths, or a dense and a sparse start of one net, but these runs have "
            "neither. Run the sweep to its end."
        )
    note = (
        f"{len(nets.tasks)} tasks (thin lines; the outermost at the largest m are named); "
        f"{_trials(nets)}. Thick: mean over tasks; band: its 95 % interval (Student's over "
        "tasks). Above 0 the claim holds. Widest and narrowest: of the nets that were run at "
        "equal conditions."
    )
    size = max(7.5, 0.8 + 4.6 * len(parts)), 4.3
    with framed(title, note, size, 1, len(parts)) as (figure, (axes,)):
        figure.set_layout_engine("constrained", wspace=0.06)
        for panel, (name, label, gains, colour) in zip(axes, parts, strict=True):
            _gains(panel, nets, gains, colour)
            panel.set(ylabel=label, xlabel="training rows m")
            panel.set_title(name, loc="left")
    return figure


def _gains(panel: Any, errors: Errors, rows: Gains, colour: str) -> None:
    """Draw the gains of every task, and their mean."""
    cells = np.unique(rows.cell)
    gain = 100 * np.array([np.nanmean(rows.values[rows.cell == cell]) for cell in cells])
    samples, owner = errors.samples[cells], errors.owner[cells]
    panel.axhline(0, color=INK, lw=0.8)
    ends = []
    for task in np.unique(owner):
        mine = owner == task
        panel.plot(samples[mine], gain[mine], color=GREY, lw=0.8, alpha=0.7)
        ends.append((gain[mine][-1], samples[mine][-1], errors.tasks[task]))
    x, means = [], []
    for places in whole_classes(owner.tolist(), samples.tolist()).values():
        tasks = sorted(set(owner[places]))
        each = [gain[[p for p in places if owner[p] == task]].mean() for task in tasks]
        found = mean_over_tasks(np.array(each))
        x.append(float(np.exp(np.log(samples[places]).mean())))
        means.append((found.estimate, found.low, found.high))
    middle, low, high = np.array(means).reshape(-1, 3).T
    panel.plot(x, middle, color=colour, lw=2.6, marker="o", ms=5, zorder=4)
    if np.isfinite(low).all():  # a single task has no interval
        panel.fill_between(x, low, high, color=colour, alpha=0.2, lw=0, zorder=2)
    size_axis(panel, sorted(set(samples)))
    beside: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
    for y, m, name in (max(ends), min(ends)) if len(ends) > 2 else ():  # the outermost are named
        panel.annotate(name, (m, y), fontsize=7.5, color=GREY, annotation_clip=False, **beside)


def checked(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table; refuse one without runs."""
    if table.is_empty():
        raise NothingToDraw("There are no runs to draw. Run the sweep first.")
    return table


def _trials(errors: Errors) -> str:
    """Return how many runs there are, and how many trials a cell has, as text."""
    made = (~np.isnan(errors.error)).sum(axis=2)
    return f"{int(made.sum()):,} runs, n = {span(made[made > 0].tolist())} trials each"
