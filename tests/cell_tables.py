"""Made-up tables of runs get the specs that their columns speak of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any

import polars as pl

from petridish.choices import Offered, parse
from petridish.estimator import contenders
from petridish.models import INITS, MODELS, Init, Model
from petridish.sweeps.sweep import OFFERED
from petridish.tasks import SparseParity, Table
from petridish.training import Greedy, Piece, RunSpec, Schedule, Ticket, cell_text
from petridish.values import Gone, field_hints, with_types

CONTENDERS: dict[str, type] = {
    kind.name: kind
    for kind in vars(contenders).values()
    if is_dataclass(kind) and isinstance(kind, type) and hasattr(kind, "name")
}
KNOWN: Offered = {
    **OFFERED,
    Model: {**MODELS, **CONTENDERS},
    Init: {**INITS, Greedy.name: Greedy, Ticket.name: Ticket},
}
PARTS = tuple(part.name for part in fields(RunSpec) if part.name != "seed")


def with_cells(table: pl.DataFrame) -> pl.DataFrame:
    """Add the column `cell`, from real specs that have the values of the table's columns.

    What the columns do not say is as in `spec_of`. A name that is no class of petridish stands for
    a class that is gone.
    """
    names = [name for name in table.columns if name.partition(".")[0] in PARTS]
    if not names:
        cell = pl.lit(cell_text(spec_of({})), pl.Categorical)
        return table.with_columns(cell=cell)
    bare = table.drop("cell", strict=False)
    distinct = bare.select(names).unique(maintain_order=True)
    texts = [
        _cell(tuple(zip(names, map(_frozen, row), strict=True))) for row in distinct.iter_rows()
    ]
    named = distinct.with_columns(cell=pl.Series(texts, dtype=pl.Categorical))
    return bare.join(named, on=names, how="left", nulls_equal=True, maintain_order="left")


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@lru_cache(maxsize=10_000)
def _cell(columns: tuple[tuple[str, Any], ...]) -> str:
    return cell_text(spec_of(dict(columns)))


def spec_of(columns: Mapping[str, Any]) -> RunSpec:
    """Return the spec whose fields are as the columns say."""
    of_table = columns.get("task.dataset") is not None
    task: Any = Table("t", 1000, 3, "f" * 16) if of_table else SparseParity(50, 3)
    spec = RunSpec(task=task)
    return replace(spec, **{part: _part(spec, part, columns) for part in PARTS})


def _part(owner: Any, name: str, columns: Mapping[str, Any], path: str = "") -> Any:
    """Return a field of a value as the columns say; the text of a choice says all of it."""
    path = f"{path}{name}"
    kind: type = type(owner)
    hint = field_hints(kind).get(name)
    given, current = columns.get(path), getattr(owner, name)
    if isinstance(current, Schedule):
        return Schedule() if given is None else _schedule(given)
    if isinstance(given, str) and is_dataclass(current):
        return _choice(given, name, hint, columns, path)
    if not is_dataclass(current):
        value = current if given is None else given
        return value.replace(" ", "-") if path == "task.dataset" else with_types(value, hint)
    inside = {part.name: _part(current, part.name, columns, f"{path}.") for part in fields(current)}
    changed: Any = current
    return replace(changed, **inside)


def _choice(text: str, name: str, hint: Any, columns: Mapping[str, Any], path: str) -> Any:
    word, bracket, _ = text.partition("(")
    if not any(word in known for known in KNOWN.values()):
        return Gone(word, (("text", text),))
    if bracket:
        return parse(text, name, hint, KNOWN)
    kind = next(known[word] for known in KNOWN.values() if word in known)
    hints = field_hints(kind)
    given = {part.name: columns.get(f"{path}.{part.name}") for part in fields(kind)}
    return kind(
        **{
            part: parse(value, part, hints[part], KNOWN) if isinstance(value, str) else value
            for part, value in given.items()
            if value is not None
        }
    )


def _schedule(text: str) -> Schedule:
    named: Any = {"schedule": Schedule, "Piece": Piece}
    found = eval(text, named)
    return Schedule() if found is Schedule else found
