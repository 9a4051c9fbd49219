"""Grids of runs: a base spec and axes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

from petridish.models import ACTIVATIONS, INITS, MODELS
from petridish.naming import UserError, nearest, parse_value, split
from petridish.tasks import TASKS
from petridish.training import LOSSES, OPTIMISERS, RunSpec, flat

if TYPE_CHECKING:
    import polars as pl

CHOICES: dict[str, type] = {**TASKS, **MODELS, **INITS, **ACTIVATIONS, **LOSSES, **OPTIMISERS}
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
    range(10)}`` is a sweep of 20 runs.
    """

    base: RunSpec
    axes: Mapping[str, Sequence[Any]]

    def __post_init__(self) -> None:
        for axis, values in self.axes.items():
            known = paths(self.base)
            if axis not in known:
                raise UserError(f"There is no axis called {axis!r}. {nearest(axis, known)}")
            if len(values) == 0:
                raise UserError(f"The axis {axis} has no values. Give at least one.")

    def __len__(self) -> int:
        return prod(len(values) for values in self.axes.values())

    @property
    def model_steps(self) -> int:
        """Count the steps of all runs if none ends early."""
        steps = self.axes.get("training.steps", [self.base.training.steps])
        return len(self) // len(steps) * int(sum(steps))

    def specs(self) -> Iterator[RunSpec]:
        """Give every run."""
        for values in itertools.product(*self.axes.values()):
            spec = self.base
            for axis, value in zip(self.axes, values, strict=True):
                spec = with_value(spec, axis, value)
            yield spec

    def shapes(self) -> Iterator[tuple[RunSpec, int]]:
        """Give every run that differs in more than its seed, and how many seeds it has."""
        seeds = len(self.axes.get("seed", [0]))
        cells = {axis: values for axis, values in self.axes.items() if axis != "seed"}
        for spec in Sweep(self.base, cells).specs():
            yield spec, seeds

    def narrowed(self, settings: Sequence[str]) -> Sweep:
        """Give the sweep with other values on some axes, each as `axis=v1,v2,…`.

        Any path into the spec is an axis, and so is a short name such as `m`; `0..9` are the whole
        numbers from 0 to 9.
        """
        base, axes = self.base, dict(self.axes)
        for setting in settings:
            name, equals, text = setting.partition("=")
            axis = SHORT.get(name.strip(), name.strip())
            known = paths(base)
            if axis not in known:
                raise UserError(
                    f"There is no axis called {name!r} in this sweep. "
                    f"{nearest(name, [*known, *SHORT])}"
                )
            values = [
                _fitting(known[axis], part, axis) for value in split(text) for part in _range(value)
            ]
            if not equals or not values:
                raise UserError(f"--set {setting} gives no values. Write {axis}=v1,v2,…")
            axes[axis] = tuple(values)
        return Sweep(base, axes)

    def among(self, table: pl.DataFrame) -> pl.DataFrame:
        """Keep the rows of a store's table that belong to this sweep.

        A row belongs if each axis column holds one of the axis's values and every other spec
        column the base's value: the same as comparing keys, without making each of them.
        """
        import polars as pl

        first = next(self.specs())
        conditions = [
            _is_among(table, column, [value])
            for column, value in flat(first).items()
            if not any(_related(axis, column) for axis in self.axes)
        ]
        for axis, values in self.axes.items():
            wholes = [value for value in values if is_dataclass(value)]
            parts = [list(v) if isinstance(v, tuple) else v for v in values if v not in wholes]
            among = [_is_among(table, axis, parts)] if parts else []
            for whole in wholes:
                columns = flat(with_value(first, axis, whole)).items()
                same = [_is_among(table, c, [v]) for c, v in columns if _covers(axis, c)]
                among.append(pl.all_horizontal(same))
            conditions.append(pl.any_horizontal(among))
        return table.filter(pl.all_horizontal(conditions))


def _covers(axis: str, column: str) -> bool:
    """Say whether a column is an axis or a part of it."""
    return f"{column}.".startswith(f"{axis}.")


def _related(axis: str, column: str) -> bool:
    """Say whether a column changes with an axis: the axis itself, a part or the whole of it."""
    return _covers(axis, column) or _covers(column, axis)


def _is_among(table: pl.DataFrame, column: str, values: list[Any]) -> pl.Expr:
    import polars as pl

    if column not in table.columns:
        return pl.lit(None in values)
    some = [value for value in values if value is not None]
    among = pl.col(column).is_null() if None in values else pl.lit(value=False)
    if isinstance(table.schema[column], pl.List):
        for value in some:
            among = among | (pl.col(column) == pl.lit(pl.Series([value]))).fill_null(value=False)
    elif some:
        cast = pl.Series(some, dtype=table.schema[column], strict=False)
        among = among | pl.col(column).is_in(cast.implode()).fill_null(value=False)
    return among


def paths(value: object, prefix: str = "") -> dict[str, Any]:
    """Give every path into a spec, with what stands there."""
    found: dict[str, Any] = {}
    for part in fields(value) if is_dataclass(value) else ():
        path, inner = f"{prefix}{part.name}", getattr(value, part.name)
        found[path] = inner
        found |= paths(inner, f"{path}.")
    return found


def with_value(spec: Any, path: str, value: object) -> Any:
    """Give a copy of `spec` with `value` at `path`."""
    head, dot, rest = path.partition(".")
    inner = with_value(getattr(spec, head), rest, value) if dot else value
    return replace(spec, **{head: inner})


def _range(text: str) -> list[str]:
    first, dots, last = text.partition("..")
    if dots and first.strip().isdigit() and last.strip().isdigit():
        return [str(number) for number in range(int(first), int(last) + 1)]
    return [text]


def _fitting(current: object, text: str, axis: str) -> Any:
    """Read a value for an axis; it must be of the kind that stands there now."""
    value = parse_value(text, CHOICES, what=f"value of {axis}")
    whole = isinstance(value, float) and value == value // 1 and abs(value) < 2**63
    if isinstance(current, int) and not isinstance(current, bool) and whole:
        return int(value)
    if is_dataclass(current) and not is_dataclass(value):
        raise UserError(f"There is no value of {axis} called {text!r}. {nearest(text, CHOICES)}")
    numeric = isinstance(current, int | float) and not isinstance(current, bool)
    if numeric and (isinstance(value, bool) or not isinstance(value, int | float)):
        if value is None and axis == "training.target_error":
            return None
        raise UserError(f"The axis {axis} takes numbers, but {text!r} was given. Give a number.")
    if isinstance(current, int) and not isinstance(current, bool) and isinstance(value, float):
        raise UserError(
            f"The axis {axis} takes whole numbers, but {text!r} was given. Give a whole number."
        )
    return value
