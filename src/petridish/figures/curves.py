"""Training curves: train and test error of single runs over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.figures.panels import runs_made, tiles, with_curves
from petridish.figures.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    caption,
    house_style,
    log_ticks,
    panel_title,
    sample_label,
)
from petridish.rules.cells import ordered, sortable
from petridish.rules.columns import curve_columns, reads
from petridish.rules.outcome_table import field_label, field_text
from petridish.rules.specs import specs_of
from petridish.rules.varying import as_axis, varying
from petridish.sweeps import by_arm
from petridish.training import RunSpec

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MOST_CURVES = 10  # per panel, as in PF's Figure 1
SHOWN = f"at most {MOST_CURVES} drawn per panel."
MOST_PANELS = 40
USUAL_ERROR = 0.68  # the top of the panels, unless a curve is above
MOST_ACROSS = 6  # panels in a row where each is a value of the last field
ORDER = ("arm", "task", "model", "init", "model.width", "data.m")  # in titles, before all others
DRAWN = curve_columns("train_error", "test_error", "train_squared_error", "test_squared_error")
NOTE = "Grey: training error; blue: test error, solved; orange: test error, not solved."


@reads(*DRAWN)
def training_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw up to ten runs per panel, one panel for each setting.

    Grey is the training error, blue the test error of a run that is solved, orange of one that is
    not. Steps are on a logarithmic axis, as delays of any length matter.
    """
    kept = with_curves(table)
    fields = sorted(varying(kept), key=lambda f: ORDER.index(f) if f in ORDER else len(ORDER))
    runs = by_arm(kept) if "arms" in kept.columns else kept
    keys, place = ordered(
        runs.with_columns(as_axis(runs[name]) for name in fields), fields, sortable
    )
    shown = keys[:MOST_PANELS]
    tile = (2.7 if len(shown) > 1 else 4.4, 2.1)
    labels = ("step", _kind(kept).replace("_", " "))
    shared = {"sharex": True, "sharey": True}
    last = len({key[-1] for key in shown}) if len(fields) > 1 else 4
    across = last if last <= MOST_ACROSS else 4
    drawing = tiles(len(shown), across, tile=tile, margin=(0.8, 1.2), labels=labels, **shared)
    with drawing as (figure, axes):
        for number, (panel, key) in enumerate(zip(axes, shown, strict=True)):
            _curves(panel, runs.filter(place == number))
            parts = [_setting(field, value) for field, value in zip(fields, key, strict=True)]
            panel.set_title(panel_title(parts, letters=30), loc="left", fontsize=9)
        _step_axis(axes, kept)
        hidden = len(keys) - len(shown)
        more = f" {hidden} more settings are not drawn; choose by --set." if hidden else ""
        caption(figure, title, f"{runs_made(kept)}, {SHOWN} {_key(kept)}{more}")
    return figure


def _setting(field: str, value: Any) -> str:
    """Write a value of a field: of a choice its name, of width and sample size the letter."""
    if field in ("task", "init", "model", "arm"):
        return field_text(value)
    letter = {"model.width": "r", "data.m": "m"}.get(field, field_label(field))
    return f"{letter} = {sample_label(value) if field == 'data.m' else field_text(value)}"


def _kind(kept: pl.DataFrame) -> str:
    """Return what the curves are: of classes the error, of real targets the squared error."""
    name = "curve.test_error"
    classes = name in kept.columns and kept[name].is_not_null().any()
    return "error" if classes else "squared_error"


def _key(kept: pl.DataFrame) -> str:
    """Return a sentence on what the colours mean."""
    kind = _kind(kept).replace("_", " ")
    if _to_solve(kept):
        return NOTE.replace("error", kind)
    return f"Grey: training {kind}; blue: test {kind}."


def _to_solve(kept: pl.DataFrame) -> bool:
    return any(isinstance(s, RunSpec) and s.stop is not None for s in specs_of(kept).values())


def _step_axis(panels: Any, kept: pl.DataFrame) -> None:
    """Put steps on a logarithmic axis whose labels do not overlap in a small panel."""
    last = float(kept["curve.step"].list.max().max())  # type: ignore[arg-type] # steps are numbers
    starts = kept["curve.step"].list.get(1, null_on_oob=True).drop_nulls()
    first = max(1.0, float(starts.min() or 1))  # type: ignore[arg-type] # likewise
    for panel in panels:
        panel.set_xscale("log")
        panel.set_xticks(*log_ticks(first, max(last, first)))
        panel.xaxis.set_minor_formatter("")
        panel.set_xticks([], minor=True)


@reads(*DRAWN)
def frontier_and_curves(table: pl.DataFrame, title: str) -> Figure:
    """Draw success over (m, r), and beside it the curves of every cell in the same places.

    The composition of PF's Figure 1, a block for each initialisation, the dense one first.
    """
    kept = with_curves(table)
    inits = sorted(
        set(kept.select("task", "init").iter_rows()), key=lambda key: (key[0], key[1] != "uniform")
    )
    widths = sorted(set(kept["model.width"]), reverse=True)  # the widest on top
    samples = sorted(set(kept["data.m"]))
    panels = kept.partition_by("task", "init", "model.width", "data.m", as_dict=True)
    with house_style() as make_figure:
        size = (3.6 + 2.05 * len(samples), 0.9 + len(inits) * (0.45 + 1.45 * len(widths)))
        figure: Figure = make_figure(figsize=size, layout="constrained")
        blocks = np.atleast_1d(figure.subfigures(len(inits), 1))  # type: ignore[arg-type] # one or more
        for block, init in zip(blocks, inits, strict=True):
            left, right = block.subfigures(1, 2, width_ratios=[1, 0.7 * len(samples)])
            _success(left.subplots(), panels, init, widths, samples)
            grid = right.subplots(
                len(widths), len(samples), squeeze=False, sharex=True, sharey=True
            )
            for (row, column), panel in np.ndenumerate(grid):
                runs = panels.get((*init, widths[row], samples[column]))
                if runs is not None:
                    _curves(panel, runs)
                if row == 0:
                    panel.set_title(f"m = {sample_label(samples[column])}", fontsize=9)
                if row == len(widths) - 1:
                    panel.set_xlabel("step")
                if column == 0:
                    panel.set_ylabel(f"r = {sample_label(widths[row])}\nerror")
        caption(figure, title, f"{runs_made(kept)}, {SHOWN}\nLeft: percent solved. {NOTE}")
    return figure


def _success(
    panel: Any,
    panels: dict[Any, pl.DataFrame],
    where: tuple[str, str],
    widths: list[int],
    samples: list[float],
) -> None:
    share = np.full((len(widths), len(samples)), np.nan)
    for (row, width), (column, m) in (
        (r, c) for r in enumerate(widths) for c in enumerate(samples)
    ):
        runs = panels.get((*where, width, m))
        if runs is not None:
            share[row, column] = (runs["outcome"] == "SOLVED").sum() / len(runs)
    panel.imshow(share, aspect="auto", cmap="cividis", vmin=0, vmax=1)
    for (row, column), value in np.ndenumerate(share):
        if not np.isnan(value):
            shown = "✓" if value == 1 else f"{100 * value:.0f}"
            ink = INK if value > 0.55 else "white"
            panel.text(column, row, shown, ha="center", va="center", color=ink)
    panel.set_xticks(range(len(samples)), [sample_label(m) for m in samples])
    panel.set_yticks(range(len(widths)), [sample_label(r) for r in widths])
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    panel.set_title(
        where[1] if len({key[0] for key in panels}) == 1 else ", ".join(where), loc="left"
    )
    panel.set_xlabel("sample size m")
    panel.set_ylabel("width r")


def _curves(panel: Any, runs: pl.DataFrame) -> None:
    """Draw the errors of the first runs of a setting."""
    to_solve = _to_solve(runs)
    kind = _kind(runs)
    for run in runs.sort("seed").head(MOST_CURVES).iter_rows(named=True):
        colour = BLUE if run["outcome"] == "SOLVED" or not to_solve else ORANGE
        steps = run["curve.step"][1:]  # step 0 has no place on a logarithmic axis
        for sample, look in (("train", (GREY, 0.8, 0.7)), ("test", (colour, 1.1, 0.9))):
            values = run.get(f"curve.{sample}_{kind}")
            if values:
                mark = "." if len(steps) == 1 else ""  # solved at once
                style = {"color": look[0], "lw": look[1], "alpha": look[2], "marker": mark}
                panel.plot(steps, values[1:], **style)
    counts = {name: int((runs["outcome"] == name).sum()) for name in ("SOLVED", "DIVERGED")}
    said = f"{counts['SOLVED']} of {len(runs)} solved" if to_solve else f"n = {len(runs)}"
    said += f", {counts['DIVERGED']} diverged" if counts["DIVERGED"] else ""
    panel.text(0.97, 0.97, said, transform=panel.transAxes, ha="right", va="top", fontsize=8)
    panel.set_xscale("log")
    if kind == "error":
        # Of two classes most errors are below; where more are drawn, all panels reach further.
        drawn = np.concatenate(
            [[0.0], *(np.asarray(line.get_ydata(), float) for line in panel.lines)]
        )
        before = USUAL_ERROR if panel.get_autoscaley_on() else panel.get_ylim()[1]
        panel.set_ylim(-0.02, max(before, min(1.0, np.nanmax(drawn)) + 0.03))
    elif any(np.max(line.get_ydata(), initial=0) > 0 for line in panel.lines):
        panel.set_yscale("log")
