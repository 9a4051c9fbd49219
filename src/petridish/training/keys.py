"""The name of a run: a hash of its whole spec, the same in every process and on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from petridish.choices import describe
from petridish.errors import UserError
from petridish.sources import is_users
from petridish.training.optimisers import Schedule
from petridish.training.spec import RunSpec
from petridish.user_classes import named_code
from petridish.values import Gone, find_gone, is_left_out, parts_of, plain, read

MEANING = "petridish 2"  # in every key; another number would change every key
KEY_BYTES = 16  # of a key, which is written as 32 hexadecimal digits
APART = ("seed", "restart")  # what runs of one cell differ in
_cells: dict[str, RunSpec] = {}  # cells already read, by their text
_parts: dict[str, Any] = {}  # their parts, by field and JSON


def forget_code() -> None:
    """Read users' code again: a class, or a constant that it uses, may have changed."""
    named_code.cache_clear()
    _part_text.cache_clear()
    _cells.clear()
    _parts.clear()


def users_codes(value: object) -> dict[type, str]:
    """Return the digests of the users' classes in a value."""
    kinds: set[type] = {type(part) for part in parts_of(value) if is_users(type(part))}
    return {kind: named_code(kind) for kind in kinds}


def spec_text(spec: RunSpec) -> str:
    """Write a spec as one line of JSON, from which its key is made; the seed comes last."""
    return f"{_but_the_seed(spec)}{spec.seed}}}"


def _but_the_seed(spec: RunSpec) -> str:
    restart = f', "restart": {spec.restart}' if spec.restart else ""
    return f'{cell_text(spec)[:-1]}{restart}, "seed": '


def cell_text(spec: RunSpec) -> str:
    """Write all of a spec but its seed and restart as JSON: runs of one cell share it."""
    parts = [
        part.name
        for part in fields(spec)
        if part.name not in APART and not is_left_out(part, getattr(spec, part.name))
    ]
    return "{" + ", ".join(f'"{name}": {_part_text(getattr(spec, name))}' for name in parts) + "}"


def read_cell(text: str) -> RunSpec:
    """Return the spec of a cell, with seed and restart 0; `cell_text` has written it."""
    if text in _cells:
        return _cells[text]
    written = _loaded(text)
    # Cells share most of their parts, and each is read once.
    names = {name: f"{name} {inner}" for name, inner in written.items()}
    parts = {name: _parts.get(names[name], inner) for name, inner in written.items()}
    spec = _as_spec(parts, text)
    fresh = [getattr(spec, name) for name, part in names.items() if part not in _parts]
    if not any(map(find_gone, fresh)):  # a class that is not here may be loaded yet
        _cells[text] = spec
        _parts.update({part: getattr(spec, name) for name, part in names.items()})
    return spec


def read_spec(text: str) -> RunSpec:
    """Return the spec that `spec_text` has written.

    A part whose class is not here is `Gone`: the spec has the key that it had, and does not run.
    """
    return _as_spec(_loaded(text), text)


def _loaded(text: str) -> dict[str, Any]:
    try:
        written = json.loads(text)
    except ValueError as error:
        raise _no_spec(text, f"{error}.") from error
    if not isinstance(written, dict):
        raise _no_spec(text, "It is no object of fields.")
    return written


def _as_spec(parts: dict[str, Any], text: str) -> RunSpec:
    """Make a spec of its parts, as JSON or as they were read before."""
    try:
        found = read({**parts, "type": "RunSpec"})
    except UserError:
        raise
    except Exception as error:  # whatever a class raises for missing or wrong fields
        raise _no_spec(text, f"{type(error).__name__}: {error}.") from error
    assert isinstance(found, RunSpec)
    return found


def _no_spec(text: str, why: str) -> UserError:
    shown = repr(text if len(text) <= 60 else f"{text[:60]}…")
    return UserError(f"This is not the text of a spec: {shown}. {why} Give what spec_text writes.")


@lru_cache(maxsize=4096)
def _part_text(part: object) -> str:  # the runs of a sweep share most of their parts
    return json.dumps(plain(part), sort_keys=True)


def run_key(spec: RunSpec) -> str:
    """Name a run by the hash of its whole spec."""
    return keys_like(spec)(spec.seed).hex()


def keys_like(spec: RunSpec) -> Callable[[int], bytes]:
    """Return a function from a seed to the bytes of the key of such a run."""
    begun = hashlib.sha256(f"{MEANING} {_but_the_seed(spec)}".encode())

    def key(seed: int) -> bytes:
        whole = begun.copy()
        whole.update(b"%d}" % seed)
        return whole.digest()[:KEY_BYTES]

    return key


def flat(spec: RunSpec) -> dict[str, Any]:
    """Return one entry per spec field, named by its path: `task.n`, `data.m`, `model.width`.

    A choice is under its own path as text (`init`: "sparse(2)"), its fields below it
    (`init.s`: 2).
    """
    columns: dict[str, Any] = {}
    for part in fields(spec):
        if not is_left_out(part, getattr(spec, part.name)):
            flatten(part.name, getattr(spec, part.name), columns)
    return columns


def flat_cells(specs: Iterable[RunSpec]) -> Iterator[dict[str, Any]]:
    """Yield `flat` of many specs that share most of their parts, each of which is read once."""
    known: dict[tuple[str, int], tuple[Any, dict[str, Any]]] = {}  # by identity, and kept alive
    names = fields(RunSpec)
    for spec in specs:
        columns: dict[str, Any] = {}
        for part in names:
            value = getattr(spec, part.name)
            if is_left_out(part, value):
                continue
            place = part.name, id(value)
            if place not in known:
                found: dict[str, Any] = {}
                flatten(part.name, value, found)
                known[place] = value, found
            columns |= known[place][1]
        yield columns


def _fits_column(part: object) -> bool:
    """Return whether a part of a tuple is put in a table unchanged; others as text."""
    return isinstance(part, str | int | float) or (
        isinstance(part, tuple) and all(_fits_column(each) for each in part)
    )


def flatten(path: str, value: object, columns: dict[str, Any]) -> None:
    """Enter a field under its path, and the fields of a choice below it."""
    if isinstance(value, Gone):
        columns[path] = describe(value)
        for name, part in value.parts:
            flatten(f"{path}.{name}", part, columns)
        return
    if isinstance(value, tuple):
        columns[path] = [part if _fits_column(part) else describe(part) for part in value]
        return
    if isinstance(value, RunSpec):
        columns[path] = describe(value)  # its fields are those of another run
        return
    if not is_dataclass(value):
        columns[path] = value
        return
    if isinstance(getattr(type(value), "name", None), str):
        columns[path] = describe(value)
        kind: type = type(value)
        if code := named_code(kind):
            columns[f"{path}.code"] = code
    if not isinstance(value, Schedule):  # its pieces fit no column; they are in its text
        for part in fields(value):
            flatten(f"{path}.{part.name}", getattr(value, part.name), columns)
