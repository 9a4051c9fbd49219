"""The name of a run: a hash of its whole spec, the same in every process and on every machine."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import Field, fields, is_dataclass
from functools import lru_cache
from typing import Any

from petridish.choices import LATER, describe
from petridish.errors import UserError
from petridish.sources import code_digest
from petridish.training.optimisers import Schedule
from petridish.training.spec import RunSpec

RESERVED = {"type", "code", "version"}  # beside a value's fields in its JSON
SCHEMA = 2  # rises when a spec comes to mean another run, or a stored column changes


def is_left_out(part: Field[Any], value: object) -> bool:
    """Say whether a field came after runs were stored, and stands at its default: old keys hold."""
    return part.metadata == LATER and bool(value == part.default)


def plain(value: object) -> Any:
    """Give the JSON form of a spec; type names keep two tasks with equal fields apart."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = {
            part.name: plain(getattr(value, part.name))
            for part in fields(value)
            if not is_left_out(part, getattr(value, part.name))
        }
        if reserved := sorted(RESERVED & parts.keys()):
            raise UserError(
                f"{type(value).__name__}: the field {reserved[0]!r} has a name that specs use "
                "themselves. Choose another."
            )
        if code := named_code(type(value)):
            parts["code"] = code
        return {"type": type(value).__name__, **parts}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if isinstance(value, float):
        # One spelling for equal numbers: 0 and 0.0 make one run, and one entry of a cache.
        return "inf" if math.isinf(value) else int(value) if value.is_integer() else value
    return value


named_code = lru_cache(maxsize=256)(code_digest)  # every part of every spec asks


def forget_code() -> None:
    """Look at users' classes anew: a constant that they use may have changed since."""
    named_code.cache_clear()
    _part_text.cache_clear()


SEED_TEXT = r', "seed": ([0-9]+)}$'  # the end of a spec's text, by which a run leaves its cell


def spec_text(spec: RunSpec) -> str:
    """Write a spec as one line of JSON, from which its key is made; the seed comes last."""
    return f'{cell_text(spec)}, "seed": {spec.seed}}}'


def cell_text(spec: RunSpec) -> str:
    """Write all of a spec but its seed: runs of one cell share it."""
    parts = [
        part.name
        for part in fields(spec)
        if part.name != "seed" and not is_left_out(part, getattr(spec, part.name))
    ]
    return "{" + ", ".join(f'"{name}": {_part_text(getattr(spec, name))}' for name in parts)


@lru_cache(maxsize=4096)
def _part_text(part: object) -> str:  # the runs of a sweep share most of their parts
    return json.dumps(plain(part), sort_keys=True)


def run_key(spec: RunSpec) -> str:
    """Name a run by the hash of its whole spec and of the schema."""
    text = f"petridish {SCHEMA} {spec_text(spec)}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def flat(spec: RunSpec) -> dict[str, Any]:
    """Give one entry a spec field, named by its path: `task.n`, `data.m`, `model.width`.

    A choice stands under its own path as text (`init`: "sparse(2)"), its fields below it
    (`init.s`: 2).
    """
    columns: dict[str, Any] = {}
    for part in fields(spec):
        flatten(part.name, getattr(spec, part.name), columns)
    return columns


def flatten(path: str, value: object, columns: dict[str, Any]) -> None:
    """Enter a field under its path, and the fields of a choice below it."""
    if not is_dataclass(value):
        columns[path] = list(value) if isinstance(value, tuple) else value
        return
    if hasattr(value, "name"):
        columns[path] = describe(value)
        kind: type = type(value)
        if code := named_code(kind):
            columns[f"{path}.code"] = code
    if not isinstance(value, Schedule):  # its pieces fit no column; they are in its text
        for part in fields(value):
            flatten(f"{path}.{part.name}", getattr(value, part.name), columns)
