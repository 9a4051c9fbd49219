"""What varies among some runs: the fields that distinguish their settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from petridish.sweeps import Sweep
from petridish.sweeps.sweep import axis_called
from petridish.training import cell_text, flat

if TYPE_CHECKING:
    import polars as pl

ARM = "arm"
PARTS = ("task", "data", "model", "init", "training", "evaluation")
OTHERS = (ARM, "restart", "seed")


def full_name(name: str, known: Iterable[str], first: Iterable[str] = ()) -> str:
    """Return the field that a name stands for, as `--set` takes it; `first` are those that vary."""
    names = [each for each in known if each in OTHERS or each.partition(".")[0] in PARTS]
    return axis_called(name, names, first=first, where="among these runs")


def varying(
    runs: pl.DataFrame | Sweep, first: Sequence[str] = (), *, asked: Sequence[str] = ()
) -> list[str]:
    """Return the fields that vary, as few as tell all settings apart; seeds are no setting.

    Those that are `asked` for come first, then those of `first`, then the axes of a sweep, then the
    others as the table has them. A field is left out if those before it say as much: the text
    `model` where `model.width` is all that varies, `training.steps` where it goes with `data.m`.
    `arm` stands for the arms of a table that has them.
    """
    from petridish.store.schema import cell_fields

    if isinstance(runs, Sweep):
        specs = (spec for spec, _ in runs.cells())
        cells = cell_fields({cell_text(spec): flat(spec) for spec in specs})
        return varying(cells, (*first, *axis_order(runs)), asked=asked)
    cells = plain_fields(runs)
    levels = {name: cells[name].n_unique() for name in cells.columns}
    varied = [name for name in cells.columns if levels[name] > 1]

    def place(name: str) -> tuple[int, int, bool, bool, bool, int]:
        # A field that some settings lack, such as init.s, says less than the choice it belongs to,
        # also where it is an axis of one arm; the hash of a user's code says least.
        lacking = cells[name].has_nulls()
        at = first.index(name) if name in first and not lacking else len(first)
        wanted = asked.index(name) if name in asked else len(asked)
        return wanted, at, name != ARM, name.endswith(".code"), lacking, -name.count(".")

    kept = sorted(varied, key=place)
    settings = cells.select(kept).n_unique() if kept else 1
    for name in reversed(list(kept)):
        rest = [other for other in kept if other != name]
        if rest and cells.select(rest).n_unique() == settings:
            kept = rest
    return kept


def axis_order(sweep: Sweep) -> tuple[str, ...]:
    """Return the axes of a sweep and of all that belongs to it, in the order of declaration."""
    return tuple(dict.fromkeys(axis for part in sweep.grids() for axis in part.axes))


def is_plane(sweep: Sweep) -> bool:
    """Return whether a sweep is a grid over width and m, of some tasks and initialisations."""
    several = {axis for axis, values in sweep.axes.items() if len(values) > 1}
    others = several - {"model.width", "data.m", "seed"}
    return (
        not sweep.also
        and {"model.width", "data.m"} <= several
        and all(axis.partition(".")[0] in ("task", "init") for axis in others)
        and has_target(sweep)
    )


def has_target(sweep: Sweep) -> bool:
    """Return whether some of the runs are to be solved: whether they have a stop rule."""
    varied = any(axis.startswith("training") for axis in axis_order(sweep))
    specs = (spec for spec, _ in sweep.cells()) if varied else (g.base for g in sweep.grids())
    return any(spec.stop is not None for spec in specs)


def plain_fields(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the distinct settings of some runs: their fields, and `arm` where there are arms."""
    from petridish.sweeps import by_arm

    table = by_arm(runs) if "arms" in runs.columns else runs
    names = [n for n in table.columns if n == ARM or n.partition(".")[0] in PARTS]
    fields = table.unique("cell", maintain_order=True) if ARM not in names else table
    return fields.select(as_axis(fields[name]) for name in names).unique(maintain_order=True)


def as_axis(column: pl.Series) -> pl.Series:
    """Return a column with values that can be sorted and grouped; lists as their text."""
    import polars as pl

    if not column.dtype.is_nested():
        return column
    texts = [None if value is None else _listed(value) for value in column.to_list()]
    return pl.Series(column.name, texts, dtype=pl.String)


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
