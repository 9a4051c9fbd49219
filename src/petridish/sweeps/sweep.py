"""Grids of runs: a base spec and axes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from math import prod
from operator import attrgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from petridish.choices import Offered, describe, hint_at, parse_setting, split
from petridish.errors import UserError, nearest
from petridish.models import ACTIVATIONS, INITS, MODELS, Activation, Init, Model, usual_start
from petridish.sweeps.allocation import Allocates
from petridish.tasks import TASKS, Task
from petridish.training import (
    ACCEPTS,
    INSTRUMENTS,
    LOSSES,
    METRICS,
    OPTIMISERS,
    PENALTIES,
    SGD,
    THRESHOLDS,
    Accepts,
    Below,
    Instrument,
    Loss,
    Metric,
    NeuronNorm,
    RunSpec,
    cell_text,
)
from petridish.values import Gone, as_value, plain

if TYPE_CHECKING:
    import polars as pl

OFFERED: Offered = {
    Task: TASKS,
    Model: MODELS,
    Init: INITS,
    Activation: ACTIVATIONS,
    Loss: LOSSES,
    SGD: OPTIMISERS,
    NeuronNorm: PENALTIES,
    Metric: METRICS,
    Below: THRESHOLDS,
    Instrument: INSTRUMENTS,
    Accepts: ACCEPTS,
}
"""The choices for a field of each type."""
MOST_NAMED = 12  # axes in a message
MOST_VALUES = 1_000_000  # in a range: more are a slip of the finger
SHORT = {
    "n": "task.n",
    "k": "task.k",
    "m": "data.m",
    "r": "model.width",
    "width": "model.width",
    "lr": "training.learning_rate",
    "wd": "training.weight_decay",
    "steps": "training.steps",
}


@dataclass(frozen=True)
class Sweep:
    """The product of `axes` applied to `base`; the last axis varies fastest.

    An axis is a path into the spec with its values: ``{"model.width": (10, 100), "seed":
    range(10)}`` is a sweep of 20 runs. `also` are further grids that belong to it: what is to be
    compared need not be one product. `allocate` chooses which of the runs are carried out, from how
    others of them have ended; without it all are.
    """

    base: RunSpec
    axes: Mapping[str, Sequence[Any]]
    also: tuple[Sweep, ...] = ()
    allocate: Allocates | None = None

    def __post_init__(self) -> None:
        axes = {axis: python_values(values, axis) for axis, values in self.axes.items()}
        object.__setattr__(self, "axes", axes)
        for axis, values in axes.items():
            if not _is_path(self.base, axis):
                known = paths(self.base)
                cure = _hint_forgotten(self.base, axis) or nearest(axis, known)
                raise UserError(f"There is no axis called {axis!r}. {cure}")
            if len(values) == 0:
                raise UserError(f"The axis {axis} has no values. Give at least one.")
            _refuse_equal(axis, values)
        _refuse_replaced([*axes])
        if self.allocate is not None:
            self.allocate.check(self)
            if any(part.allocate is not None for part in self.grids() if part is not self):
                raise UserError(
                    f"The sweep chooses its runs by {describe(self.allocate)}, and a part of it "
                    "chooses too. Give allocate to the whole, or to its parts."
                )
        if "init" not in axes:
            kinds = {type(model): model for model in axes.get("model", ())}  # of thousands, a few
            starts = {describe(usual_start(model)) for model in kinds.values()}
            usual = self.base.init == usual_start(self.base.model)  # none was named
            if usual and starts - {describe(self.base.init)}:
                raise UserError(
                    f"The models of this sweep start differently by themselves "
                    f"({', '.join(sorted(starts))}), and the runs would all start as "
                    f"{describe(self.base.init)}. Name the start by an axis init, such as "
                    '"init": (Own(),).'
                )

    def __len__(self) -> int:
        own = prod(len(values) for values in self.axes.values())
        return own + sum(len(part) for part in self.also)

    @property
    def model_steps(self) -> int:
        """Count the steps of all runs if none ends early."""
        steps = self.axes.get("training.steps", [self.base.training.steps])
        own = prod(len(values) for values in self.axes.values()) // len(steps) * int(sum(steps))
        return own + sum(part.model_steps for part in self.also)

    @property
    def keeps_curves(self) -> bool:
        """Whether some of the runs keep curves or weights."""
        varied = any(axis.startswith("evaluation") for axis in self.axes)
        specs = (spec for spec, _ in self.cells()) if varied else (self.base,)
        kept = any(spec.evaluation.curves or spec.evaluation.weights for spec in specs)
        return kept or any(part.keeps_curves for part in self.also)

    def specs(self) -> Iterator[RunSpec]:
        """Yield every run."""
        *outer, last = self.axes or {"seed": (self.base.seed,)}
        for values in itertools.product(*(self.axes[axis] for axis in outer)):
            spec = self.base
            for axis, value in zip(outer, values, strict=True):
                spec = with_value(spec, axis, value)
            for value in self.axes.get(last, (self.base.seed,)):
                yield with_value(spec, last, value)
        for part in self.also:
            yield from part.specs()

    def cells(self) -> Iterator[tuple[RunSpec, Sequence[int]]]:
        """Yield every run that differs in more than its seed, with its seeds."""
        seeds = self.axes.get("seed", [self.base.seed])
        apart = {axis: values for axis, values in self.axes.items() if axis != "seed"}
        for spec in Sweep(self.base, apart).specs():
            yield spec, seeds
        for part in self.also:
            yield from part.cells()

    def parts(self) -> Iterator[Sweep]:
        """Yield the product of the axes by itself, and the sweeps that belong to it."""
        yield Sweep(self.base, self.axes)
        yield from self.also

    def grids(self) -> Iterator[Sweep]:
        """Yield the sweep and all that belong to it, at any depth."""
        yield self
        for part in self.also:
            yield from part.grids()

    def narrowed(self, settings: Sequence[str] | Mapping[str, Sequence[Any]]) -> Sweep:
        """Return the sweep with other values on some axes, as `axis=v1,v2,…` or by a mapping.

        Any path into the spec is an axis, and so is a short name such as `m`; in text, `0..9` are
        the whole numbers from 0 to 9. One text is a list of one.
        """
        axes = dict(self.axes)
        if isinstance(settings, str):
            settings = (settings,)
        if isinstance(settings, Mapping):
            axes |= {self._axis(name): values for name, values in settings.items()}
        else:
            given = [self._read_setting(setting) for setting in settings]
            names = [axis for axis, _ in given]
            for axis in names:
                if names.count(axis) > 1:
                    raise UserError(
                        f"Values of {axis} were given {names.count(axis)} times, and the last "
                        f"would replace the others. Give them once, by commas: --set {axis}=v1,v2,…"
                    )
            axes |= dict(given)
        also = tuple(part.narrowed(settings) for part in self.also)
        return Sweep(self.base, axes, also, self.allocate)

    def _axis(self, name: str) -> str:
        """Return the path that a name of the user stands for."""
        return axis_called(name, paths(self.base), first=self.axes, where="in this sweep")

    def _read_setting(self, setting: str) -> tuple[str, Sequence[Any]]:
        """Read `axis=v1,v2,…`."""
        name, equals, text = setting.partition("=")
        axis = self._axis(name)
        values = [
            parse_setting(part, axis, hint_at(self.base, axis), OFFERED)
            for value in split(text)
            for part in _range(value)
        ]
        if not equals or not values:
            raise UserError(f"--set {setting} gives no values. Write {axis}=v1,v2,…")
        return axis, tuple(values)

    def among(self, table: pl.DataFrame) -> pl.DataFrame:
        """Keep the rows of a store's table that belong to this sweep.

        A row belongs if its cell and restart are the sweep's, and its seed one of that cell's
        seeds: the same as comparing keys, without making one for each seed.
        """
        import polars as pl

        # Cells by their seeds and restart: few sets of many.
        wanted: dict[tuple[Sequence[int], int], list[str]] = {}
        for spec, seeds in self.cells():
            alike = seeds if isinstance(seeds, range) else tuple(seeds)
            wanted.setdefault((alike, spec.restart), []).append(cell_text(spec))
        # Tables of before there were restarts have no such column.
        again = pl.col("restart") if "restart" in table.columns else pl.lit(0)
        belongs = pl.lit(value=False)
        for (numbers, restart), texts in wanted.items():
            cell = pl.col("cell").is_in(pl.Series(texts, dtype=pl.Categorical).implode())
            seed = pl.col("seed").cast(pl.Int128)
            seed = seed.is_in(pl.Series(numbers, dtype=pl.Int128).implode())
            belongs |= cell & seed & (again.cast(pl.Int128) == restart)
        return table.filter(belongs)


def _refuse_replaced(axes: Sequence[str]) -> None:
    """Refuse an axis that stands after axes inside of it: their values would have no effect."""
    for place, axis in enumerate(axes):
        if lost := [name for name in axes[:place] if name.startswith(f"{axis}.")]:
            raise UserError(
                f"The axis {axis} replaces what {' and '.join(lost)} before it set, which would "
                f"have no effect. Set its fields one by one, such as {lost[0]}, or name {axis} "
                "first in the sweep."
            )


def _refuse_equal(axis: str, values: Sequence[Any]) -> None:
    """Refuse an axis that has a value twice, perhaps written in two ways, such as 0.1 and 1e-1.

    No run is made twice: most often another value was meant.
    """
    if isinstance(values, range):
        return
    seen: set[Any] = set()
    for value in values:
        known = value if isinstance(value, Hashable) else repr(value)
        if known in seen:
            raise UserError(
                f"The axis {axis} has the value {describe(value)} more than once, and no run is "
                "made twice. Give each value once."
            )
        seen.add(known)


def python_values(values: Sequence[Any], axis: str) -> Sequence[Any]:
    """Return the values of an axis with NumPy's numbers as Python's, and arrays as tuples."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        several = f"range({values})" if axis == "seed" and isinstance(values, int) else "a list"
        raise UserError(
            f"The axis {axis} has the one value {values!r}. Give {several}, or ({values!r},) if no "
            "other is meant."
        )
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, range):
        return values
    others = (np.generic, np.ndarray, FunctionType)  # a function is refused
    values = tuple(values)
    if not any(issubclass(kind, others) for kind in set(map(type, values))):
        return values
    name = f"the axis {axis}"
    return tuple(as_value(v, "Sweep", name) if isinstance(v, others) else v for v in values)


def paths(value: object, prefix: str = "") -> dict[str, Any]:
    """Return every path into a spec, with what stands there."""
    found: dict[str, Any] = {}
    for part in fields(value) if is_dataclass(value) else ():
        path, inner = f"{prefix}{part.name}", getattr(value, part.name)
        found[path] = inner
        found |= paths(inner, f"{path}.")
    return found


def axis_called(name: str, known: Iterable[str], *, first: Iterable[str], where: str) -> str:
    """Return the path that a user means: itself, a short name, or its last part if one has it.

    Where there is none, those of `first` are named first.
    """
    paths = list(known)
    axis = SHORT.get(name.strip(), name.strip())
    if axis in paths:
        return axis
    ends = [path for path in paths if path.endswith(f".{axis}")]
    if len(ends) == 1:
        return ends[0]
    said = f"There is no axis called {name!r} {where}."
    if ends:
        raise UserError(f"{said} Give one of {', '.join(sorted(ends))}.")
    # A path that is not there is no suggestion, nor is a short name of one or of several.
    short = [short for short, path in SHORT.items() if path in paths]
    lasts = Counter(path.rpartition(".")[2] for path in paths)
    short += [last for last, times in lasts.items() if times == 1]
    close = nearest(name, dict.fromkeys([*paths, *short]))
    if close.startswith("Known"):
        listed = list(dict.fromkeys([*(path for path in first if path in paths), *paths]))
        more = f" and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
        close = f"Known: {', '.join(listed[:MOST_NAMED])}{more}."
    raise UserError(f"{said} {close}")


def _hint_forgotten(base: RunSpec, axis: str) -> str:
    """Return what to do where an axis names an attribute of a class that is no field; else ""."""
    path, _, name = axis.rpartition(".")
    owner = paths(base).get(path)
    if not is_dataclass(owner) or not hasattr(owner, name):
        return ""
    return (
        f"{type(owner).__name__} has {name}, but not as a field: a field has a type hint, such as "
        f"{name}: {type(getattr(owner, name)).__name__}."
    )


def _is_path(value: object, path: str) -> bool:
    """Return whether `path` leads into a spec, without listing all that do."""
    head, dot, rest = path.partition(".")
    if isinstance(value, Gone):
        known = value.has(head)
    else:
        known = head in getattr(value, "__dataclass_fields__", ())
    if not known:
        return False
    return not dot or _is_path(getattr(value, head), rest)


def with_value(spec: Any, path: str, value: object) -> Any:
    """Return a copy of `spec` with `value` at `path`; an error if the spec does not keep it."""
    new = _with_value(spec, path, value)
    found = attrgetter(path)(new)
    if path == "training.stop" and found is None and value is not None:
        found = new.stop  # Training has written it as `target_error`
    if found is not value and found != value and plain(found) != plain(value):
        raise UserError(
            f"{path}={describe(value)} has no effect here: the value stays {describe(found)}."
        )
    return new


def _with_value(spec: Any, path: str, value: object) -> Any:
    head, dot, rest = path.partition(".")
    inner = _with_value(getattr(spec, head), rest, value) if dot else value
    if isinstance(spec, Gone):  # of a class that is not here: such a run can still be found
        return spec.with_field(head, inner)
    return replace(spec, **{head: inner})


def _range(text: str) -> list[str]:
    first, dots, last = text.partition("..")
    if dots and first.strip().isdigit() and last.strip().isdigit():
        numbers = range(int(first), int(last) + 1)
        if len(numbers) > MOST_VALUES:
            raise UserError(f"{text} are {len(numbers)} values. Give at most {MOST_VALUES}.")
        return [str(number) for number in numbers]
    return [text]
